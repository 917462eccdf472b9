/* Sixteen floats at a time, with AVX-512 (F, BW, VL and DQ). kernels/simd/vec.h says what each of these does. */
#ifndef PSLD_KERNELS_SIMD_AVX512_VEC_H
#define PSLD_KERNELS_SIMD_AVX512_VEC_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"

typedef __m512 vec;
typedef __m512i vec_int;
typedef struct vec_double {
    __m512d low, high;
} vec_double;

enum { V_LANES = 16 };

SIMD_INLINE vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

SIMD_INLINE void v_store(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}

/* Half a vector by its own instructions: masked stores are slow on some processors. */
SIMD_INLINE vec v_load_part(const float *p, ptrdiff_t left)
{
    return left >= 16 ? v_load(p) : _mm512_zextps256_ps512(_mm256_loadu_ps(p));
}

SIMD_INLINE void v_store_part(float *p, ptrdiff_t left, vec x)
{
    if (left >= 16)
        v_store(p, x);
    else
        _mm256_storeu_ps(p, _mm512_castps512_ps256(x));
}

SIMD_INLINE vec v_set(float x)
{
    return _mm512_set1_ps(x);
}

SIMD_INLINE vec v_zero(void)
{
    return _mm512_setzero_ps();
}

SIMD_INLINE vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

SIMD_INLINE vec v_fnma(vec a, vec b, vec c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

SIMD_INLINE vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

SIMD_INLINE vec v_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

SIMD_INLINE vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

SIMD_INLINE vec v_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

SIMD_INLINE vec v_sqrt(vec x)
{
    return _mm512_sqrt_ps(x);
}

SIMD_INLINE vec v_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

SIMD_INLINE vec v_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

SIMD_INLINE __mmask16 v_mask(ptrdiff_t count)
{
    return (__mmask16)(count >= 16 ? 0xFFFF : (1U << count) - 1);
}

SIMD_INLINE vec v_load_first(const float *p, ptrdiff_t count)
{
    return _mm512_maskz_loadu_ps(v_mask(count), p);
}

SIMD_INLINE vec v_first(ptrdiff_t count, vec a, vec b)
{
    return _mm512_mask_blend_ps(v_mask(count), b, a);
}

SIMD_INLINE vec v_drop(const uint16_t *drawn, int limit, vec x)
{
    const __m512i number = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)drawn));
    return _mm512_maskz_mov_ps(_mm512_cmpge_epi32_mask(number, _mm512_set1_epi32(limit)), x);
}

SIMD_INLINE __m256 v_upper(vec x)
{
    return _mm512_extractf32x8_ps(x, 1);
}

SIMD_INLINE float v_sum(vec x)
{
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), v_upper(x));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE float v_largest(vec x)
{
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), v_upper(x));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE vec_int v_to_int(vec x)
{
    return _mm512_cvtps_epi32(x);
}

SIMD_INLINE vec v_from_int(vec_int n)
{
    return _mm512_cvtepi32_ps(n);
}

SIMD_INLINE vec v_times_power(vec x, vec_int n)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_slli_epi32(n, 23)));
}

/* Blocks of 4 x 4 become their transpose within each quarter; then quarters change places. */
SIMD_INLINE void v_turn(vec r[V_LANES])
{
    vec a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
        b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
        a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xDD);
        a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xDD);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xDD);
        r[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xDD);
    }
}

/* ---- Sums in double ---------------------------------------------------------------------------------------------- */

SIMD_INLINE vec_double vd_zero(void)
{
    return (vec_double){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

SIMD_INLINE vec_double vd_of(vec x)
{
    return (vec_double){_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(v_upper(x))};
}

SIMD_INLINE vec_double vd_add(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){_mm512_add_pd(sum.low, d.low), _mm512_add_pd(sum.high, d.high)};
}

SIMD_INLINE vec_double vd_add_square(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){_mm512_fmadd_pd(d.low, d.low, sum.low), _mm512_fmadd_pd(d.high, d.high, sum.high)};
}

SIMD_INLINE vec vd_to_float(vec_double x)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.low)), _mm512_cvtpd_ps(x.high), 1);
}

SIMD_INLINE double vd_sum(vec_double x)
{
    double lanes[8];
    _mm512_storeu_pd(lanes, _mm512_add_pd(x.low, x.high));
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

/* ---- Numbers of 16 bits ------------------------------------------------------------------------------------------ */

SIMD_INLINE vec v_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

SIMD_INLINE void v_store_half(uint16_t *p, vec x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

/* ---- Pairs of bfloat16 ------------------------------------------------------------------------------------------- */

#define V_PAIRS 1

SIMD_INLINE int v_pairs_run(void)
{
    return psld_cpu_has_fast_dot();
}

SIMD_INLINE vec v_dot(vec a, vec b, vec c)
{
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}

SIMD_INLINE void v_store_narrow(float *p, vec x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)_mm512_cvtneps_pbh(x));
}

SIMD_INLINE vec v_pair(vec first, vec second)
{
    const __m512i places = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                            21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (vec)_mm512_permutexvar_epi16(places, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

#endif
