#include "base/alloc.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* calloc aligns to at least a pointer, so there is always room for one in front of a multiple of ALIGNMENT. */
enum { ALIGNMENT = 64, HUGE = 1 << 21 };
_Static_assert(_Alignof(max_align_t) >= sizeof(void *), "a block's pointer fits in front of it");

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

/* Weights and activations are streamed. Fewer, larger pages mean fewer address translations. This is advice only. */
static void advise_huge_pages(char *memory, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    uintptr_t begin = ((uintptr_t)memory + HUGE - 1) / HUGE * HUGE, end = ((uintptr_t)memory + bytes) / HUGE * HUGE;
    if (end > begin) madvise(memory + (begin - (uintptr_t)memory), end - begin, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void *psld_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    char *memory = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes <= SIZE_MAX - ALIGNMENT && !must_fail())
        memory = calloc(1, bytes + ALIGNMENT); /* large blocks come as zero pages, which cost nothing until used */
    if (!memory) {
        psld_fail(PSLD_NO_MEMORY, "out of memory: %zu elements of %zu bytes asked for", count, size);
        return NULL;
    }
    if (bytes >= HUGE) advise_huge_pages(memory, bytes);
    atomic_fetch_add(&live, 1);
    char *block = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);
    memcpy(block - sizeof memory, &memory, sizeof memory); /* the address to free, kept in front of the block */
    return block;
}

void psld_release(void *block)
{
    if (!block) return;
    void *memory;
    memcpy(&memory, (char *)block - sizeof memory, sizeof memory);
    atomic_fetch_sub(&live, 1);
    free(memory);
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

psld_status psld_check_doubles(const char *what, size_t a, size_t b, size_t c)
{
    ptrdiff_t bytes;
    if (!__builtin_mul_overflow(a, b, &bytes) && !__builtin_mul_overflow(bytes, c, &bytes) &&
        !__builtin_mul_overflow(bytes, sizeof(double), &bytes))
        return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: %zu x %zu x %zu numbers do not fit into memory", what, a, b, c);
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
