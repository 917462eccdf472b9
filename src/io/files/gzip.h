/* Decompresses a .gz file from memory into memory. */
#ifndef PSLD_IO_GZIP_H
#define PSLD_IO_GZIP_H

#include <stddef.h>

#include "base/status.h"

int psld_gzip_is(const void *bytes, size_t size);

/* Writes the first `room` bytes of its contents. *got is less if there are no more (then the checksum was right). So
 * a caller needs no more memory than it expects. `origin` is for messages. */
psld_status psld_gzip_read(const void *bytes, size_t size, const char *origin, void *to, size_t room, size_t *got);

#endif
