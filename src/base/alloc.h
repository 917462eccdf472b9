/* All allocation happens here.
 *
 * Every block is aligned to 64 bytes (a cache line, and enough for any vector unit) and zeroed. A failure sets the
 * error text and returns NULL. psld_alloc_fail_at makes the n-th call from now on fail, and psld_alloc_live counts
 * blocks, so tests can try every way to run out of memory and prove that nothing leaks. */
#ifndef PSLD_BASE_ALLOC_H
#define PSLD_BASE_ALLOC_H

#include <stddef.h>

#include "base/status.h"

/* `count` elements of `size` bytes, zeroed; NULL when they do not fit into memory or size_t. Never NULL for 0. */
void *psld_alloc(size_t count, size_t size);

/* Frees a block; NULL is harmless. */
void psld_release(void *block);

/* A copy of a string or of a block of bytes. */
char *psld_copy_text(const char *text);
void *psld_copy_bytes(const void *bytes, size_t size);

/* Makes room for at least `need` elements in *block, which has *capacity now. It allocates half as many again, so
 * growing by one element at a time stays cheap. The contents are kept. */
psld_status psld_grow(void **block, size_t *capacity, size_t need, size_t size);

/* Fails if an array of a x b x c doubles has more bytes than ptrdiff_t can count. Callers' sizes are checked with it
 * before anything is computed from them. */
psld_status psld_check_doubles(const char *what, size_t a, size_t b, size_t c);

/* Tests: makes the n-th allocation from now on (1: the next) fail once; 0 switches this off. */
void psld_alloc_fail_at(long n);
/* Tests: whether the requested failure has happened. */
int psld_alloc_failed(void);
/* Tests: number of blocks allocated and not yet released. */
long psld_alloc_live(void);

#endif
