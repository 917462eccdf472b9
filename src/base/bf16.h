/* bfloat16: the upper half of a float, 8 bits of precision at the range of a float. */
#ifndef PSLD_BASE_BF16_H
#define PSLD_BASE_BF16_H

#include <stdint.h>
#include <string.h>

/* The nearest bfloat16; of two, the even one. NaN stays NaN. */
static inline uint16_t psld_bf16_from(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

static inline float psld_bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
