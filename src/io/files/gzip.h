/* A .gz file in memory, unpacked into memory. */
#ifndef PSLD_IO_GZIP_H
#define PSLD_IO_GZIP_H

#include <stddef.h>

#include "base/status.h"

int psld_gzip_is(const void *bytes, size_t size);

/* The first bytes that it holds, up to `room`; *got is less when there are no more (then their checksum was right). So
 * nobody needs memory for more than he expects. `origin` is for messages. */
psld_status psld_gzip_read(const void *bytes, size_t size, const char *origin, void *to, size_t room, size_t *got);

#endif
