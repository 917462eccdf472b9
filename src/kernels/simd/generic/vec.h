/* Four floats at a time by the compiler's vector extensions: for processors that have no folder of their own.
 * kernels/simd/vec.h says what each of these does. */
#ifndef PSLD_KERNELS_SIMD_GENERIC_VEC_H
#define PSLD_KERNELS_SIMD_GENERIC_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(16)));
typedef int32_t vec_int __attribute__((vector_size(16)));
typedef double vec_half __attribute__((vector_size(16)));
typedef struct vec_double {
    vec_half low, high;
} vec_double;

enum { V_LANES = 4 };

SIMD_INLINE vec v_load(const float *p)
{
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}

SIMD_INLINE void v_store(float *p, vec x)
{
    memcpy(p, &x, sizeof x);
}

SIMD_INLINE vec v_load_part(const float *p, ptrdiff_t left)
{
    (void)left;
    return v_load(p);
}

SIMD_INLINE void v_store_part(float *p, ptrdiff_t left, vec x)
{
    (void)left;
    v_store(p, x);
}

SIMD_INLINE vec v_set(float x)
{
    return (vec){x, x, x, x};
}

SIMD_INLINE vec v_zero(void)
{
    return v_set(0);
}

SIMD_INLINE vec v_fma(vec a, vec b, vec c)
{
    return a * b + c;
}

SIMD_INLINE vec v_fnma(vec a, vec b, vec c)
{
    return c - a * b;
}

SIMD_INLINE vec v_add(vec a, vec b)
{
    return a + b;
}

SIMD_INLINE vec v_sub(vec a, vec b)
{
    return a - b;
}

SIMD_INLINE vec v_mul(vec a, vec b)
{
    return a * b;
}

SIMD_INLINE vec v_div(vec a, vec b)
{
    return a / b;
}

SIMD_INLINE vec v_sqrt(vec x)
{
    return (vec){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

/* Lanes of a where the bits of `which` are set, of b elsewhere. */
SIMD_INLINE vec v_choose(vec_int which, vec a, vec b)
{
    return (vec)((which & (vec_int)a) | (~which & (vec_int)b));
}

SIMD_INLINE vec v_max(vec a, vec b)
{
    return v_choose(a > b, a, b);
}

SIMD_INLINE vec v_min(vec a, vec b)
{
    return v_choose(a < b, a, b);
}

SIMD_INLINE vec v_load_first(const float *p, ptrdiff_t count)
{
    vec x = v_zero();
    if (count > 0) memcpy(&x, p, (size_t)(count < V_LANES ? count : V_LANES) * sizeof *p);
    return x;
}

SIMD_INLINE vec v_first(ptrdiff_t count, vec a, vec b)
{
    const int32_t n = (int32_t)(count < V_LANES ? count : V_LANES);
    return v_choose((vec_int){0, 1, 2, 3} < (vec_int){n, n, n, n}, a, b);
}

SIMD_INLINE vec v_drop(const uint16_t *drawn, int limit, vec x)
{
    const vec_int number = {drawn[0], drawn[1], drawn[2], drawn[3]};
    return v_choose(number >= (vec_int){limit, limit, limit, limit}, x, v_zero());
}

SIMD_INLINE float v_sum(vec x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

SIMD_INLINE float v_largest(vec x)
{
    const float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
    return a > b ? a : b;
}

/* Adding and subtracting 1.5 2^23 rounds what is smaller than 2^22, and leaves the integer in the lowest bits. */
SIMD_INLINE vec_int v_to_int(vec x)
{
    const vec magic = v_set(12582912.0F);
    return (vec_int)(x + magic) - (vec_int)magic;
}

SIMD_INLINE vec v_from_int(vec_int n)
{
    const vec magic = v_set(12582912.0F);
    return (vec)(n + (vec_int)magic) - magic;
}

SIMD_INLINE vec v_times_power(vec x, vec_int n)
{
    return (vec)((vec_int)x + (n << 23));
}

SIMD_INLINE void v_turn(vec r[V_LANES])
{
    const vec a = r[0], b = r[1], c = r[2], d = r[3];
    r[0] = (vec){a[0], b[0], c[0], d[0]};
    r[1] = (vec){a[1], b[1], c[1], d[1]};
    r[2] = (vec){a[2], b[2], c[2], d[2]};
    r[3] = (vec){a[3], b[3], c[3], d[3]};
}

/* ---- Sums in double ---------------------------------------------------------------------------------------------- */

SIMD_INLINE vec_double vd_zero(void)
{
    return (vec_double){{0, 0}, {0, 0}};
}

SIMD_INLINE vec_double vd_of(vec x)
{
    return (vec_double){{(double)x[0], (double)x[1]}, {(double)x[2], (double)x[3]}};
}

SIMD_INLINE vec_double vd_add(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){sum.low + d.low, sum.high + d.high};
}

SIMD_INLINE vec_double vd_add_square(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){sum.low + d.low * d.low, sum.high + d.high * d.high};
}

SIMD_INLINE vec vd_to_float(vec_double x)
{
    return (vec){(float)x.low[0], (float)x.low[1], (float)x.high[0], (float)x.high[1]};
}

SIMD_INLINE double vd_sum(vec_double x)
{
    const vec_half sum = x.low + x.high;
    return sum[0] + sum[1];
}

/* ---- Numbers of 16 bits ------------------------------------------------------------------------------------------ */

/* The exponents of the two formats are 112 apart; multiplying by 2^112 also makes the subnormal numbers right. */
SIMD_INLINE vec v_load_half(const uint16_t *p)
{
    const vec_int bits = {p[0], p[1], p[2], p[3]};
    const vec size = (vec)((bits & 0x7FFF) << 13) * v_set(0x1p112F);
    return (vec)((vec_int)size | (bits & 0x8000) << 16);
}

/* To nearest, ties to even, by adding half of the last place. Below the smallest normal number, 2^-14, the last place is
 * 2^-24, which adding and subtracting 1/2 rounds to. Above 65504 the result is infinite. */
SIMD_INLINE void v_store_half(uint16_t *p, vec x)
{
    const vec_int sign = (vec_int)x & (vec_int)v_set(-0.0F), size = (vec_int)x ^ sign;
    const vec_int normal = (size - (112 << 23) + 0xFFF + (size >> 13 & 1)) >> 13;
    const vec_int small = (vec_int)((vec)size + v_set(0.5F)) - (vec_int)v_set(0.5F);
    vec_int half = (vec_int)v_choose((vec)size < v_set(0x1p-14F), (vec)small, (vec)normal);
    half = (vec_int)v_choose((vec)size < v_set(65520.0F), (vec)half, (vec)(vec_int){0x7C00, 0x7C00, 0x7C00, 0x7C00});
    for (int i = 0; i < V_LANES; i++) p[i] = (uint16_t)(half[i] | (int32_t)((uint32_t)sign[i] >> 16));
}

#endif
