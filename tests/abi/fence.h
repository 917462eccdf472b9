/* Structs of a caller between guard bytes. What is read beyond a struct shows as results that depend on the bytes' value,
 * what is written there as bytes that changed. With the address sanitizer a struct is a block of its own instead. */
#ifndef PSLD_ABI_FENCE_H
#define PSLD_ABI_FENCE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psld.h"
#include "structs.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FENCE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FENCE_SANITIZED 1
#endif

enum { FENCE_BYTES = 256, FENCE_MAX = 64 };

static unsigned char fence_byte;
static int fence_count;
static struct {
    unsigned char *block;
    size_t size;
} fence_list[FENCE_MAX];

/* A copy of a struct that lives until the program ends. */
static void *fence_copy(const void *from, size_t size)
{
#ifdef FENCE_SANITIZED
    size_t guard = 0;
#else
    size_t guard = FENCE_BYTES;
#endif
    unsigned char *block = malloc(size + 2 * guard);
    if (!block || fence_count == FENCE_MAX) exit(2);
    memset(block, fence_byte, size + 2 * guard);
    memcpy(block + guard, from, size);
    fence_list[fence_count].block = block;
    fence_list[fence_count++].size = guard ? size : 0;
    return block + guard;
}

#define FENCED(type, macro) ((type *)fence_copy(&(type)macro, sizeof(type)))

/* Ends the program where a guard byte has changed. */
static void fence_check(const char *what)
{
    for (int i = 0; i < fence_count; i++)
        for (size_t j = 0; fence_list[i].size && j < FENCE_BYTES; j++)
            if (fence_list[i].block[j] != fence_byte ||
                fence_list[i].block[FENCE_BYTES + fence_list[i].size + j] != fence_byte) {
                printf("%s: a byte beyond the struct has changed\n", what);
                exit(3);
            }
}

static void fence_free(void)
{
    while (fence_count) free(fence_list[--fence_count].block);
}

/* Ends the program unless a call succeeded; then looks at the guard bytes. */
static void must(const char *what, psld_status status)
{
    fence_check(what);
    if (status == PSLD_OK) return;
    printf("%s: %s\n", what, psld_error_text());
    exit(1);
}

/* One line of results: enough of them to tell when another field was read. */
static void tell(const char *what, size_t count, const double *numbers)
{
    printf("%s", what);
    for (size_t i = 0; i < count; i++) printf(" %a", numbers[i]);
    printf("\n");
}

#endif
