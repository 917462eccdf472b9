/* The .npy format, inside the library. */
#ifndef PSLD_IO_NPY_H
#define PSLD_IO_NPY_H

#include "io/files/file.h"
#include "io/tensors/array.h"

/* As psld_array_load, from the rest of what a reader has (and nothing may follow the array). */
psld_status psld_npy_read(psld_reader *reader, psld_array **array);
/* An array whose elements stay where they are, in the bytes of a file (maybe not aligned). With *fortran the first index
 * counts fastest, which the view does not undo. */
psld_status psld_npy_view(const void *bytes, size_t size, const char *path, psld_array *view, int *fortran);
/* As psld_array_save; the writer's commit reports failures. */
void psld_npy_write(const psld_array *array, psld_writer *writer);

/* What stands before the elements of an array in its file; returns its length. */
enum { PSLD_NPY_HEADER = 512 };
size_t psld_npy_header(const psld_array *array, char header[PSLD_NPY_HEADER]);

#endif
