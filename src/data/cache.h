/* Decoded images by number. Each is decoded once; the first ones are kept in memory, the rest in a file without a
 * name. */
#ifndef PSLD_DATA_CACHE_H
#define PSLD_DATA_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct psld_cache psld_cache;

/* For `count` items of `size` bytes, with at most `memory` bytes in memory. */
psld_status psld_cache_create(uint64_t count, size_t size, size_t memory, const char *folder, psld_cache **cache);
void psld_cache_free(psld_cache *cache);

typedef enum psld_cache_state {
    PSLD_CACHE_ABSENT,
    PSLD_CACHE_MAKING,
    PSLD_CACHE_KEPT,
    PSLD_CACHE_BROKEN, /* cannot be made */
} psld_cache_state;

/* KEPT, BROKEN, or ABSENT: then the caller makes the item and must call psld_cache_end. Waits while another thread makes
 * it. */
psld_cache_state psld_cache_begin(psld_cache *cache, uint64_t index);
/* Reports the result: KEPT with its bytes, BROKEN, or ABSENT if it is to be tried again. */
void psld_cache_end(psld_cache *cache, uint64_t index, psld_cache_state state, const void *bytes);
/* The present state of an item. Does not wait. */
psld_cache_state psld_cache_state_of(const psld_cache *cache, uint64_t index);
/* The bytes of an item that is KEPT. */
psld_status psld_cache_get(psld_cache *cache, uint64_t index, void *bytes);

#endif
