/* The .npy format, inside the library. */
#ifndef PSLD_IO_NPY_H
#define PSLD_IO_NPY_H

#include "io/files/file.h"
#include "io/tensors/array.h"

/* As psld_array_load, from the rest of a reader's data. Nothing may follow the array. */
psld_status psld_npy_read(psld_reader *reader, psld_array **array);
/* An array whose elements stay in the bytes of a file (maybe not aligned). If *fortran is set, the first index
 * counts fastest; the view does not change that. */
psld_status psld_npy_view(const void *bytes, size_t size, const char *path, psld_array *view, int *fortran);
/* As psld_array_save; the writer's commit reports failures. */
void psld_npy_write(const psld_array *array, psld_writer *writer);

/* The bytes before the elements of an array in its file; returns their number. */
enum { PSLD_NPY_HEADER = 512 };
size_t psld_npy_header(const psld_array *array, char header[PSLD_NPY_HEADER]);

#endif
