/* Sizes that all kernels round to. */
#ifndef PSLD_KERNELS_SIMD_SIZES_H
#define PSLD_KERNELS_SIMD_SIZES_H

#include <stddef.h>

/* The lanes of a vector, the outputs of a panel, and the floats of an odd number of cache lines (strides that are powers
 * of two would map everything to the same few cache sets). */
static inline ptrdiff_t psld_round8(ptrdiff_t n)
{
    return (n + 7) & ~(ptrdiff_t)7;
}

static inline ptrdiff_t psld_round16(ptrdiff_t n)
{
    return (n + 15) & ~(ptrdiff_t)15;
}

static inline ptrdiff_t psld_odd_lines(ptrdiff_t n)
{
    return psld_round16(n) | 16;
}

static inline ptrdiff_t psld_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static inline ptrdiff_t psld_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

#endif
