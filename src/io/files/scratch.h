/* A file without a name, for what does not fit into memory: it is gone when it is closed, however the program ends. */
#ifndef PSLD_IO_SCRATCH_H
#define PSLD_IO_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* In `folder`, or where the system wants large temporary files when it is NULL. *fd is -1 on failure. */
psld_status psld_scratch_open(const char *folder, int *fd);
void psld_scratch_close(int fd);

/* At a place, from any thread. */
psld_status psld_scratch_put(int fd, uint64_t place, const void *bytes, size_t size);
psld_status psld_scratch_get(int fd, uint64_t place, void *bytes, size_t size);

#endif
