/* Invariants
 *   1. An item's state goes from ABSENT to MAKING under the lock, so that one thread makes it; it leaves MAKING when
 *   that thread calls psld_cache_end, after its bytes are stored.
 *   2. KEPT and BROKEN are final: their bytes may be read without the lock.
 *   3. When the file cannot be written (a full disk), items beyond memory stay ABSENT and are made again each time. */
#include "data/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "io/files/scratch.h"

struct psld_cache {
    size_t size;
    uint64_t in_memory; /* items below this are in memory */
    uint8_t *memory;
    char *folder;
    int scratch;    /* -1: not opened yet */
    int is_useless; /* the file cannot be written */
    _Atomic unsigned char *states;
    pthread_mutex_t lock;
    pthread_cond_t made;
};

psld_status psld_cache_create(uint64_t count, size_t size, size_t memory, const char *folder, psld_cache **cache)
{
    *cache = NULL;
    psld_cache *c = psld_alloc(1, sizeof *c);
    if (!c) return PSLD_NO_MEMORY;
    c->size = size;
    c->scratch = -1;
    c->in_memory = memory / size < count ? memory / size : count;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->made, NULL);
    c->states = psld_alloc(count, sizeof *c->states);
    c->memory = psld_alloc(c->in_memory, size);
    c->folder = folder ? psld_copy_text(folder) : NULL;
    if (!c->states || !c->memory || (folder && !c->folder)) {
        psld_cache_free(c);
        return PSLD_NO_MEMORY;
    }
    *cache = c;
    return PSLD_OK;
}

void psld_cache_free(psld_cache *cache)
{
    if (!cache) return;
    psld_scratch_close(cache->scratch);
    pthread_cond_destroy(&cache->made);
    pthread_mutex_destroy(&cache->lock);
    psld_release(cache->memory);
    psld_release(cache->states);
    psld_release(cache->folder);
    psld_release(cache);
}

psld_cache_state psld_cache_state_of(const psld_cache *cache, uint64_t index)
{
    return (psld_cache_state)atomic_load_explicit(&cache->states[index], memory_order_acquire);
}

static void set_state(psld_cache *cache, uint64_t index, psld_cache_state state)
{
    atomic_store_explicit(&cache->states[index], (unsigned char)state, memory_order_release);
}

psld_cache_state psld_cache_begin(psld_cache *cache, uint64_t index)
{
    psld_cache_state state = psld_cache_state_of(cache, index);
    if (state == PSLD_CACHE_KEPT || state == PSLD_CACHE_BROKEN) return state;
    pthread_mutex_lock(&cache->lock);
    while ((state = psld_cache_state_of(cache, index)) == PSLD_CACHE_MAKING)
        pthread_cond_wait(&cache->made, &cache->lock);
    if (state == PSLD_CACHE_ABSENT) set_state(cache, index, PSLD_CACHE_MAKING);
    pthread_mutex_unlock(&cache->lock);
    return state;
}

static uint64_t place_of(const psld_cache *cache, uint64_t index)
{
    return (index - cache->in_memory) * cache->size;
}

/* Opens the file when it is first needed; a failure is logged once. */
static int scratch_of(psld_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    if (cache->scratch < 0 && !cache->is_useless && psld_scratch_open(cache->folder, &cache->scratch) != PSLD_OK) {
        cache->is_useless = 1;
        psld_log(PSLD_LOG_WARNING, "%s; images are decoded each time they are used", psld_error_text());
    }
    int fd = cache->is_useless ? -1 : cache->scratch;
    pthread_mutex_unlock(&cache->lock);
    return fd;
}

static psld_cache_state cache_keep(psld_cache *cache, uint64_t index, const void *bytes)
{
    if (index < cache->in_memory) {
        memcpy(cache->memory + index * cache->size, bytes, cache->size);
        return PSLD_CACHE_KEPT;
    }
    int fd = scratch_of(cache);
    if (fd < 0) return PSLD_CACHE_ABSENT;
    if (psld_scratch_put(fd, place_of(cache, index), bytes, cache->size) == PSLD_OK) return PSLD_CACHE_KEPT;
    pthread_mutex_lock(&cache->lock);
    if (!cache->is_useless)
        psld_log(PSLD_LOG_WARNING, "%s; further images are decoded each time they are used", psld_error_text());
    cache->is_useless = 1;
    pthread_mutex_unlock(&cache->lock);
    return PSLD_CACHE_ABSENT;
}

void psld_cache_end(psld_cache *cache, uint64_t index, psld_cache_state state, const void *bytes)
{
    if (state == PSLD_CACHE_KEPT) state = cache_keep(cache, index, bytes);
    pthread_mutex_lock(&cache->lock);
    set_state(cache, index, state);
    pthread_cond_broadcast(&cache->made);
    pthread_mutex_unlock(&cache->lock);
}

psld_status psld_cache_get(psld_cache *cache, uint64_t index, void *bytes)
{
    if (index >= cache->in_memory) return psld_scratch_get(cache->scratch, place_of(cache, index), bytes, cache->size);
    memcpy(bytes, cache->memory + index * cache->size, cache->size);
    return PSLD_OK;
}
