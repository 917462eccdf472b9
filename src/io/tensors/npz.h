/* NumPy's .npz: a zip archive of .npy arrays, each under its name with ".npy" appended. Writing is public. */
#ifndef PSLD_IO_NPZ_H
#define PSLD_IO_NPZ_H

#include "io/files/file.h"

typedef struct psld_npz psld_npz;

/* Lists the contents of the file. Arrays are read on demand, so an array of an unsupported type does not prevent
 * reading the others. */
psld_status psld_npz_open(const char *path, psld_npz **npz);
/* The same from bytes that must outlive it; `name` stands for the path in messages. */
psld_status psld_npz_parse(const void *bytes, size_t size, const char *name, psld_npz **npz);
void psld_npz_free(psld_npz *npz);

/* The number of arrays, and their names, without ".npy", in the order of the file; index < size. */
size_t psld_npz_size(const psld_npz *npz);
const char *psld_npz_name(const psld_npz *npz, size_t index);
/* The array of a name, stored or deflated; its checksum is verified. If it does not exist, the message lists those
 * that do. Not thread-safe. */
psld_status psld_npz_read(psld_npz *npz, const char *name, psld_array **array);

#endif
