/* Eight floats at a time: the few operations that all files of this folder share. Fused multiply-adds are written out,
 * never left to the compiler, so that the bits are the same everywhere. */
#ifndef PSLD_KERNELS_AVX2_VEC_H
#define PSLD_KERNELS_AVX2_VEC_H

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>
#include <stddef.h>

typedef __m256 v8;

#define V8_INLINE static inline __attribute__((always_inline))

V8_INLINE v8 v8_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

V8_INLINE void v8_store(float *p, v8 x)
{
    _mm256_storeu_ps(p, x);
}

V8_INLINE v8 v8_set(float x)
{
    return _mm256_set1_ps(x);
}

V8_INLINE v8 v8_zero(void)
{
    return _mm256_setzero_ps();
}

/* a b + c */
V8_INLINE v8 v8_fma(v8 a, v8 b, v8 c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* c - a b */
V8_INLINE v8 v8_fnma(v8 a, v8 b, v8 c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

V8_INLINE v8 v8_add(v8 a, v8 b)
{
    return _mm256_add_ps(a, b);
}

V8_INLINE v8 v8_sub(v8 a, v8 b)
{
    return _mm256_sub_ps(a, b);
}

V8_INLINE v8 v8_mul(v8 a, v8 b)
{
    return _mm256_mul_ps(a, b);
}

/* All bits set in the first `count` lanes. */
V8_INLINE v8 v8_mask(ptrdiff_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)(count < 8 ? count : 8)), lanes));
}

/* Lanes added in a fixed order. */
V8_INLINE float v8_sum(v8 x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

V8_INLINE float v8_largest(v8 x)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* 2^x to 2e-7, x clamped to [-126, 126]: 2^round(x) goes into the exponent, the rest is the polynomial of degree 6 with
 * the least relative error on [-1/2, 1/2] (1.9e-9 before rounding). A NaN stays one. */
V8_INLINE v8 v8_exp2(v8 x)
{
    x = _mm256_min_ps(v8_set(126.0F), _mm256_max_ps(v8_set(-126.0F), x)); /* in this order a NaN passes */
    const __m256i n = _mm256_cvtps_epi32(x);
    const v8 f = v8_sub(x, _mm256_cvtepi32_ps(n));
    v8 p = v8_set(1.53458122e-4F);
    p = v8_fma(p, f, v8_set(1.33999312e-3F));
    p = v8_fma(p, f, v8_set(9.61848896e-3F));
    p = v8_fma(p, f, v8_set(5.55032878e-2F));
    p = v8_fma(p, f, v8_set(2.40226469e-1F));
    p = v8_fma(p, f, v8_set(6.93147206e-1F));
    p = v8_fma(p, f, v8_set(1.0F));
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(n, 23)));
}

#define V8_LOG2E 1.44269504F

/* 1 + exp(-x) */
V8_INLINE v8 v8_one_plus_exp_minus(v8 x)
{
    return v8_add(v8_set(1.0F), v8_exp2(v8_mul(x, v8_set(-V8_LOG2E))));
}

/* x / (1 + exp(-x)); a NaN stays one. */
V8_INLINE v8 v8_silu(v8 x)
{
    return _mm256_div_ps(x, v8_one_plus_exp_minus(x));
}

/* The derivative of v8_silu: s (1 + x (1 - s)), s = 1 / (1 + exp(-x)). */
V8_INLINE v8 v8_silu_slope(v8 x)
{
    const v8 s = _mm256_div_ps(v8_set(1.0F), v8_one_plus_exp_minus(x));
    return v8_mul(s, v8_fma(x, v8_sub(v8_set(1.0F), s), v8_set(1.0F)));
}

/* Eight rows of eight become their transpose. */
V8_INLINE void v8_turn(v8 r[8])
{
    v8 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* An 8 x 8 block in rows of `from_stride` becomes its transpose in rows of `to_stride`. */
V8_INLINE void v8_transpose(const float *from, ptrdiff_t from_stride, float *to, ptrdiff_t to_stride)
{
    v8 r[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = v8_load(from + i * from_stride);
    v8_turn(r);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v8_store(to + i * to_stride, r[i]);
}

#endif
#endif
