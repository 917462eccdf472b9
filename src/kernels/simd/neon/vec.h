/* Eight floats at a time as two registers of NEON (AArch64). kernels/simd/vec.h says what each of these does. */
#ifndef PSLD_KERNELS_SIMD_NEON_VEC_H
#define PSLD_KERNELS_SIMD_NEON_VEC_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vec {
    float32x4_t a, b;
} vec;
typedef struct vec_int {
    int32x4_t a, b;
} vec_int;
typedef struct vec_double {
    float64x2_t part[4];
} vec_double;

enum { V_LANES = 8 };

SIMD_INLINE vec v_load(const float *p)
{
    return (vec){vld1q_f32(p), vld1q_f32(p + 4)};
}

SIMD_INLINE void v_store(float *p, vec x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
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
    return (vec){vdupq_n_f32(x), vdupq_n_f32(x)};
}

SIMD_INLINE vec v_zero(void)
{
    return v_set(0);
}

SIMD_INLINE vec v_fma(vec a, vec b, vec c)
{
    return (vec){vfmaq_f32(c.a, a.a, b.a), vfmaq_f32(c.b, a.b, b.b)};
}

SIMD_INLINE vec v_fnma(vec a, vec b, vec c)
{
    return (vec){vfmsq_f32(c.a, a.a, b.a), vfmsq_f32(c.b, a.b, b.b)};
}

SIMD_INLINE vec v_add(vec a, vec b)
{
    return (vec){vaddq_f32(a.a, b.a), vaddq_f32(a.b, b.b)};
}

SIMD_INLINE vec v_sub(vec a, vec b)
{
    return (vec){vsubq_f32(a.a, b.a), vsubq_f32(a.b, b.b)};
}

SIMD_INLINE vec v_mul(vec a, vec b)
{
    return (vec){vmulq_f32(a.a, b.a), vmulq_f32(a.b, b.b)};
}

SIMD_INLINE vec v_div(vec a, vec b)
{
    return (vec){vdivq_f32(a.a, b.a), vdivq_f32(a.b, b.b)};
}

SIMD_INLINE vec v_sqrt(vec x)
{
    return (vec){vsqrtq_f32(x.a), vsqrtq_f32(x.b)};
}

/* Not vmaxq: it treats NaN differently from the other instruction sets. */
SIMD_INLINE vec v_max(vec a, vec b)
{
    return (vec){vbslq_f32(vcgtq_f32(a.a, b.a), a.a, b.a), vbslq_f32(vcgtq_f32(a.b, b.b), a.b, b.b)};
}

SIMD_INLINE vec v_min(vec a, vec b)
{
    return (vec){vbslq_f32(vcltq_f32(a.a, b.a), a.a, b.a), vbslq_f32(vcltq_f32(a.b, b.b), a.b, b.b)};
}

SIMD_INLINE vec v_load_first(const float *p, ptrdiff_t count)
{
    float lanes[V_LANES] = {0};
    for (ptrdiff_t i = 0; i < count && i < V_LANES; i++) lanes[i] = p[i];
    return v_load(lanes);
}

SIMD_INLINE vec v_first(ptrdiff_t count, vec a, vec b)
{
    static const int32_t numbers[V_LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32x4_t n = vdupq_n_s32((int32_t)(count < V_LANES ? count : V_LANES));
    return (vec){vbslq_f32(vcltq_s32(vld1q_s32(numbers), n), a.a, b.a),
                 vbslq_f32(vcltq_s32(vld1q_s32(numbers + 4), n), a.b, b.b)};
}

SIMD_INLINE vec v_drop(const uint16_t *drawn, int limit, vec x)
{
    const uint16x8_t number = vld1q_u16(drawn);
    const uint32x4_t least = vdupq_n_u32((uint32_t)limit);
    const uint32x4_t a = vcgeq_u32(vmovl_u16(vget_low_u16(number)), least);
    const uint32x4_t b = vcgeq_u32(vmovl_u16(vget_high_u16(number)), least);
    return (vec){vreinterpretq_f32_u32(vandq_u32(a, vreinterpretq_u32_f32(x.a))),
                 vreinterpretq_f32_u32(vandq_u32(b, vreinterpretq_u32_f32(x.b)))};
}

/* Lanes in the order in which AVX2 adds them. */
SIMD_INLINE float v_sum(vec x)
{
    const float32x4_t s = vaddq_f32(x.a, x.b);
    const float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

SIMD_INLINE float v_largest(vec x)
{
    return vmaxvq_f32(vmaxq_f32(x.a, x.b));
}

SIMD_INLINE vec_int v_to_int(vec x)
{
    return (vec_int){vcvtnq_s32_f32(x.a), vcvtnq_s32_f32(x.b)};
}

SIMD_INLINE vec v_from_int(vec_int n)
{
    return (vec){vcvtq_f32_s32(n.a), vcvtq_f32_s32(n.b)};
}

SIMD_INLINE vec v_times_power(vec x, vec_int n)
{
    return (vec){vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.a), vshlq_n_s32(n.a, 23))),
                 vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.b), vshlq_n_s32(n.b, 23)))};
}

/* Four rows of four become columns. */
SIMD_INLINE void v_turn4(float32x4_t *a, float32x4_t *b, float32x4_t *c, float32x4_t *d)
{
    const float32x4x2_t ab = vtrnq_f32(*a, *b), cd = vtrnq_f32(*c, *d);
    *a = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
    *b = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
    *c = vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
    *d = vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}

SIMD_INLINE void v_turn(vec r[V_LANES])
{
    v_turn4(&r[0].a, &r[1].a, &r[2].a, &r[3].a);
    v_turn4(&r[0].b, &r[1].b, &r[2].b, &r[3].b);
    v_turn4(&r[4].a, &r[5].a, &r[6].a, &r[7].a);
    v_turn4(&r[4].b, &r[5].b, &r[6].b, &r[7].b);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const float32x4_t corner = r[i].b;
        r[i].b = r[i + 4].a;
        r[i + 4].a = corner;
    }
}

/* ---- Sums in double ---------------------------------------------------------------------------------------------- */

SIMD_INLINE vec_double vd_zero(void)
{
    const float64x2_t zero = vdupq_n_f64(0);
    return (vec_double){{zero, zero, zero, zero}};
}

SIMD_INLINE vec_double vd_of(vec x)
{
    return (vec_double){{vcvt_f64_f32(vget_low_f32(x.a)), vcvt_high_f64_f32(x.a), vcvt_f64_f32(vget_low_f32(x.b)),
                         vcvt_high_f64_f32(x.b)}};
}

SIMD_INLINE vec_double vd_add(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum.part[i] = vaddq_f64(sum.part[i], d.part[i]);
    return sum;
}

SIMD_INLINE vec_double vd_add_square(vec_double sum, vec x)
{
    const vec_double d = vd_of(x);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum.part[i] = vfmaq_f64(sum.part[i], d.part[i], d.part[i]);
    return sum;
}

SIMD_INLINE vec vd_to_float(vec_double x)
{
    return (vec){vcvt_high_f32_f64(vcvt_f32_f64(x.part[0]), x.part[1]),
                 vcvt_high_f32_f64(vcvt_f32_f64(x.part[2]), x.part[3])};
}

SIMD_INLINE double vd_sum(vec_double x)
{
    const float64x2_t a = vaddq_f64(x.part[0], x.part[2]), b = vaddq_f64(x.part[1], x.part[3]);
    return (vgetq_lane_f64(a, 0) + vgetq_lane_f64(a, 1)) + (vgetq_lane_f64(b, 0) + vgetq_lane_f64(b, 1));
}

/* ---- Numbers of 16 bits ------------------------------------------------------------------------------------------ */

SIMD_INLINE vec v_load_half(const uint16_t *p)
{
    const float16x8_t x = vreinterpretq_f16_u16(vld1q_u16(p));
    return (vec){vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
}

SIMD_INLINE void v_store_half(uint16_t *p, vec x)
{
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.a), x.b)));
}

#endif
