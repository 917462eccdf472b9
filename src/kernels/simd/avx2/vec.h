/* Eight floats at a time, with AVX2 and FMA. kernels/simd/vec.h says what each of these does. */
#ifndef PSLD_KERNELS_SIMD_AVX2_VEC_H
#define PSLD_KERNELS_SIMD_AVX2_VEC_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m256 vec;
typedef __m256i vec_int;
typedef struct vec_double {
    __m256d low, high;
} vec_double;

enum { V_LANES = 8 };

SIMD_INLINE vec v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

SIMD_INLINE void v_store(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
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
    return _mm256_set1_ps(x);
}

SIMD_INLINE vec v_zero(void)
{
    return _mm256_setzero_ps();
}

SIMD_INLINE vec v_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE vec v_fnma(vec a, vec b, vec c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

SIMD_INLINE vec v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

SIMD_INLINE vec v_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

SIMD_INLINE vec v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

SIMD_INLINE vec v_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

SIMD_INLINE vec v_sqrt(vec x)
{
    return _mm256_sqrt_ps(x);
}

SIMD_INLINE vec v_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

SIMD_INLINE vec v_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

SIMD_INLINE vec v_select_mask(ptrdiff_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)(count < 8 ? count : 8)), lanes));
}

SIMD_INLINE vec v_load_first(const float *p, ptrdiff_t count)
{
    return _mm256_maskload_ps(p, _mm256_castps_si256(v_select_mask(count)));
}

SIMD_INLINE vec v_first(ptrdiff_t count, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, v_select_mask(count));
}

SIMD_INLINE vec v_drop(const uint16_t *drawn, int limit, vec x)
{
    const __m256i number = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)drawn));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(limit), number)), x);
}

SIMD_INLINE float v_sum(vec x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE float v_largest(vec x)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE vec_int v_to_int(vec x)
{
    return _mm256_cvtps_epi32(x);
}

SIMD_INLINE vec v_from_int(vec_int n)
{
    return _mm256_cvtepi32_ps(n);
}

SIMD_INLINE vec v_times_power(vec x, vec_int n)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(n, 23)));
}

SIMD_INLINE void v_turn(vec r[V_LANES])
{
    vec a[8], b[8];
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

/* ---- Sums in double ---------------------------------------------------------------------------------------------- */

SIMD_INLINE vec_double vd_zero(void)
{
    return (vec_double){_mm256_setzero_pd(), _mm256_setzero_pd()};
}

SIMD_INLINE vec_double vd_of(vec x)
{
    return (vec_double){_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

SIMD_INLINE vec_double vd_add(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){_mm256_add_pd(sum.low, d.low), _mm256_add_pd(sum.high, d.high)};
}

SIMD_INLINE vec_double vd_add_square(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
    return (vec_double){_mm256_fmadd_pd(d.low, d.low, sum.low), _mm256_fmadd_pd(d.high, d.high, sum.high)};
}

SIMD_INLINE vec vd_to_float(vec_double x)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(x.high), _mm256_cvtpd_ps(x.low));
}

SIMD_INLINE double vd_sum(vec_double x)
{
    double lanes[4];
    _mm256_storeu_pd(lanes, _mm256_add_pd(x.low, x.high));
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* ---- Numbers of 16 bits ------------------------------------------------------------------------------------------ */

SIMD_INLINE vec v_load_half(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

SIMD_INLINE void v_store_half(uint16_t *p, vec x)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

#endif
