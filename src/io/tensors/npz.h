/* NumPy's .npz: a zip archive of .npy arrays, each under its name with ".npy" behind it. Writing is public. */
#ifndef PSLD_IO_NPZ_H
#define PSLD_IO_NPZ_H

#include "io/files/file.h"

typedef struct psld_npz psld_npz;

/* Lists what is in the file; the arrays are read when they are asked for, so that one of a type that we do not have
 * does not stand in the way of others. */
psld_status psld_npz_open(const char *path, psld_npz **npz);
/* The same from bytes that must outlive it; `name` stands for the path in messages. */
psld_status psld_npz_parse(const void *bytes, size_t size, const char *name, psld_npz **npz);
void psld_npz_free(psld_npz *npz);

/* Number of arrays, and their names, without ".npy", in the order of the file; index < size. */
size_t psld_npz_size(const psld_npz *npz);
const char *psld_npz_name(const psld_npz *npz, size_t index);
/* The array of a name; a message says what there is if there is none of it. Stored or deflated; its checksum is
 * checked. Not from two threads at once. */
psld_status psld_npz_read(psld_npz *npz, const char *name, psld_array **array);

#endif
