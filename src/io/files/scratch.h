/* A nameless file for data that do not fit into memory. It disappears when it is closed, however the program ends. */
#ifndef PSLD_IO_SCRATCH_H
#define PSLD_IO_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* In `folder`; if NULL, in the system's folder for large temporary files. *fd is -1 on failure. */
psld_status psld_scratch_open(const char *folder, int *fd);
void psld_scratch_close(int fd);

/* At an offset. Thread-safe. */
psld_status psld_scratch_put(int fd, uint64_t place, const void *bytes, size_t size);
psld_status psld_scratch_get(int fd, uint64_t place, void *bytes, size_t size);

#endif
