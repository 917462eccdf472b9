/* The only place that allocates.
 *
 * Every block is aligned to 64 bytes (a cache line, and enough for any vector unit) and zeroed. Failure sets the
 * error text and returns NULL. psld_alloc_fail_at makes the n-th call from now on fail, and psld_alloc_live counts
 * blocks, so that tests can walk through every way to run out of memory and prove that nothing leaks. */
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

/* Room for at least `need` elements in *block, which has *capacity now: half as many again as needed, so that
 * growing one by one costs little. Contents are kept. */
psld_status psld_grow(void **block, size_t *capacity, size_t need, size_t size);

/* Fails where an array of a x b x c doubles has more bytes than can be counted: sizes that a caller gives may be those of
 * nothing, and are checked before anything is computed from them. */
psld_status psld_check_doubles(const char *what, size_t a, size_t b, size_t c);

/* Tests: the n-th allocation from now on (1 = the next) fails, once; 0 switches that off. */
void psld_alloc_fail_at(long n);
/* Tests: whether the failure asked for has happened. */
int psld_alloc_failed(void);
/* Tests: number of blocks allocated and not yet released. */
long psld_alloc_live(void);

#endif
