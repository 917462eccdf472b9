/* IDX, the format of MNIST: two 0 bytes, the type of the elements (8: u8), the number of sizes, the sizes as big-endian
 * 32-bit numbers, the elements. */
#ifndef PSLD_IO_IDX_H
#define PSLD_IO_IDX_H

#include <stdint.h>

#include "io/files/map.h"

typedef struct psld_idx {
    int rank; /* 1 to 4 */
    size_t shape[4];
    const uint8_t *data; /* in the bytes */
} psld_idx;

/* Whether bytes begin like an IDX file. */
int psld_idx_is(const void *bytes, size_t size);
/* Reads u8 elements of a file, unpacking it first if it is a .gz: then *bytes is replaced. `origin` is for messages. */
psld_status psld_idx_read(psld_map *bytes, const char *origin, psld_idx *idx);

#endif
