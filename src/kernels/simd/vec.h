/* A small vector of floats, which all files of this folder are written against. An instruction set's own vec.h has
 *
 *     vec, V_LANES                 the type and how many floats it holds: 4, 8 or 16
 *     v_load, v_store              V_LANES floats, at any address
 *     v_load_part, v_store_part    min(left, V_LANES) floats, left being a positive multiple of 8; the other lanes are
 *                                  zero, and are not stored: for rows of PSLD_LANES
 *     v_load_first(p, count)       the first `count` lanes (any number >= 0), the others are zero and are not read
 *     v_first(count, a, b)         the first `count` lanes of a, the others of b
 *     v_set, v_zero, v_add, v_sub, v_mul, v_div, v_sqrt
 *     v_fma, v_fnma                a b + c and c - a b, fused where the CPU does that
 *     v_max, v_min                 b where one of them is not a number
 *     v_sum, v_largest             over the lanes, in a fixed order
 *     v_drop(drawn, limit, x)      x, but 0 where drawn < limit
 *     vec_int, v_to_int, v_from_int, v_times_power(x, n)
 *                                  rounded to the nearest integer and back; x 2^n
 *     v_turn(r[V_LANES])           rows become columns
 *     vec_double, vd_zero, vd_add(sum, x), vd_add_square(sum, x), vd_to_float, vd_sum
 *                                  a double for every lane
 *     v_load_half, v_store_half    V_LANES numbers of 16 bits (IEEE half precision), rounded to nearest; finite ones
 *
 * and, where the processor multiplies pairs of bfloat16 numbers, V_PAIRS and (a pair lies where a float would)
 *
 *     v_pairs_run()                whether this processor does so, fast
 *     v_dot(a, b, c)               c + the products of the first and of the second numbers of each pair of a and b
 *     v_store_narrow(p, x)         V_LANES numbers rounded, as V_LANES / 2 pairs of neighbours
 *     v_pair(first, second)        the numbers of two vectors rounded, as V_LANES pairs
 *
 * Fused multiply-adds are written out, never left to the compiler, so that the bits are the same everywhere. */
#ifndef PSLD_KERNELS_SIMD_VEC_H
#define PSLD_KERNELS_SIMD_VEC_H

#include "kernels/simd/names.h"

#define SIMD_INLINE static inline __attribute__((always_inline))

#include SIMD_VEC_H

/* Without such pairs these are never called. */
#ifndef V_PAIRS
SIMD_INLINE int v_pairs_run(void)
{
    return 0;
}

SIMD_INLINE vec v_dot(vec a, vec b, vec c)
{
    (void)a, (void)b;
    return c;
}

SIMD_INLINE void v_store_narrow(float *p, vec x)
{
    (void)p, (void)x;
}

SIMD_INLINE vec v_pair(vec first, vec second)
{
    (void)second;
    return first;
}
#endif

/* 2^x to 2e-7, x clamped to [-126, 126]: 2^round(x) goes into the exponent, the rest is the polynomial of degree 6 with
 * the least relative error on [-1/2, 1/2] (1.9e-9 before rounding). A NaN stays one. */
SIMD_INLINE vec v_exp2(vec x)
{
    x = v_min(v_set(126.0F), v_max(v_set(-126.0F), x)); /* in this order a NaN passes */
    const vec_int n = v_to_int(x);
    const vec f = v_sub(x, v_from_int(n));
    vec p = v_set(1.53458122e-4F);
    p = v_fma(p, f, v_set(1.33999312e-3F));
    p = v_fma(p, f, v_set(9.61848896e-3F));
    p = v_fma(p, f, v_set(5.55032878e-2F));
    p = v_fma(p, f, v_set(2.40226469e-1F));
    p = v_fma(p, f, v_set(6.93147206e-1F));
    p = v_fma(p, f, v_set(1.0F));
    return v_times_power(p, n);
}

#define V_LOG2E 1.44269504F

/* 1 + exp(-x) */
SIMD_INLINE vec v_one_plus_exp_minus(vec x)
{
    return v_add(v_set(1.0F), v_exp2(v_mul(x, v_set(-V_LOG2E))));
}

/* x / (1 + exp(-x)); a NaN stays one. */
SIMD_INLINE vec v_silu(vec x)
{
    return v_div(x, v_one_plus_exp_minus(x));
}

/* The derivative of v_silu: s (1 + x (1 - s)), s = 1 / (1 + exp(-x)). */
SIMD_INLINE vec v_silu_slope(vec x)
{
    const vec s = v_div(v_set(1.0F), v_one_plus_exp_minus(x));
    return v_mul(s, v_fma(x, v_sub(v_set(1.0F), s), v_set(1.0F)));
}

/* A block of V_LANES x V_LANES in rows of `from_stride` becomes its transpose in rows of `to_stride`. */
SIMD_INLINE void v_transpose(const float *from, ptrdiff_t from_stride, float *to, ptrdiff_t to_stride)
{
    vec r[V_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++) r[i] = v_load(from + i * from_stride);
    v_turn(r);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++) v_store(to + i * to_stride, r[i]);
}

/* A block of 16 x 16 in rows of 16. */
SIMD_INLINE void v_transpose16(const float *from, float *to)
{
    for (int row = 0; row < 16; row += V_LANES)
        for (int column = 0; column < 16; column += V_LANES)
            v_transpose(from + row * 16 + column, 16, to + column * 16 + row, 16);
}

#endif
