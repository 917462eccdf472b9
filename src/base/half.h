/* IEEE half precision: 11 bits of precision, up to 65504. */
#ifndef PSLD_BASE_HALF_H
#define PSLD_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The nearest one; of two, the even one. What is not a number stays so. */
static inline uint16_t psld_half_from(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff, half;
    if (magnitude > 0x7f800000)
        half = 0x7e00;
    else if (magnitude >= 0x477ff000) /* 65520, which rounds to infinity */
        half = 0x7c00;
    else if (magnitude < 0x38800000) /* 2^-14: below it, multiples of 2^-24 */
        half = (uint32_t)lrintf(fabsf(x) * 0x1p24f);
    else
        half = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
    return (uint16_t)(sign | half);
}

static inline float psld_half_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 0) return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction; /* exact */
    uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
