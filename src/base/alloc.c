#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static atomic_long live;
static atomic_long countdown; /* allocations until the one that fails; 0: none will */
static atomic_int failed;

static int must_fail(void)
{
    if (atomic_load(&countdown) == 0) return 0;
    if (atomic_fetch_sub(&countdown, 1) != 1) return 0;
    atomic_store(&failed, 1);
    return 1;
}

void *psld_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    void *block = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes <= SIZE_MAX - 2 * ALIGNMENT && !must_fail()) {
        bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
        block = aligned_alloc(ALIGNMENT, bytes);
    }
    if (!block) {
        psld_fail(PSLD_NO_MEMORY, "out of memory: %zu elements of %zu bytes asked for", count, size);
        return NULL;
    }
    atomic_fetch_add(&live, 1);
    return memset(block, 0, bytes);
}

void psld_release(void *block)
{
    if (!block) return;
    atomic_fetch_sub(&live, 1);
    free(block);
}

void *psld_copy_bytes(const void *bytes, size_t size)
{
    void *copy = psld_alloc(size, 1);
    if (copy && size) memcpy(copy, bytes, size);
    return copy;
}

char *psld_copy_text(const char *text)
{
    return psld_copy_bytes(text, strlen(text) + 1);
}

psld_status psld_grow(void **block, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return PSLD_OK;
    size_t wanted = need > SIZE_MAX / 2 ? need : need + need / 2 + 8;
    void *larger = psld_alloc(wanted, size);
    if (!larger) return PSLD_NO_MEMORY;
    if (*capacity) memcpy(larger, *block, *capacity * size);
    psld_release(*block);
    *block = larger;
    *capacity = wanted;
    return PSLD_OK;
}

void psld_alloc_fail_at(long n)
{
    atomic_store(&failed, 0);
    atomic_store(&countdown, n);
}

int psld_alloc_failed(void)
{
    return atomic_load(&failed);
}

long psld_alloc_live(void)
{
    return atomic_load(&live);
}
