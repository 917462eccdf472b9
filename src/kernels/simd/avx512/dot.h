/* Products of 16-bit factors by the matrix unit (AMX): a tile register holds 16 rows of 32 numbers of A, or 16 pairs of
 * rows of 16 columns of B, and one instruction adds their product to 16 x 16 sums in float. */
#ifndef PSLD_KERNELS_SIMD_AVX512_DOT_H
#define PSLD_KERNELS_SIMD_AVX512_DOT_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu.h"

#define DOT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

static inline int dot_runs(void)
{
    return psld_cpu_has_amx();
}

/* Before and after a thread's products. Eight tiles of 16 rows of 64 bytes. The description is a constant, since gcc 12
 * thinks that only its first bytes are read, and may leave out storing the others. */
DOT_TARGET static inline void dot_begin(void)
{
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

DOT_TARGET static inline void dot_end(void)
{
    _tile_release();
}

/* Rounds to nearest, ties to even; 16 numbers. */
DOT_TARGET static inline void dot_round16(const float *from, uint16_t *to)
{
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(from));
    memcpy(to, &rounded, sizeof rounded);
}

/* Two rows of 16 numbers, as 16 pairs. */
DOT_TARGET static inline void dot_round_pairs(const float *first, const float *second, uint16_t *to)
{
    const __m256bh low = _mm512_cvtneps_pbh(_mm512_loadu_ps(first)), high = _mm512_cvtneps_pbh(_mm512_loadu_ps(second));
    const __m512i pairs = _mm512_or_si512(_mm512_cvtepu16_epi32((__m256i)low),
                                          _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)high), 16));
    _mm512_storeu_si512(to, pairs);
}

/* c[32][32] = sum over taps and blocks of 32 numbers; two tiles of 16 rows, each of which begins at `a0` or `a1` and whose
 * rows are `lda` apart, and two panels, `second` apart. */
DOT_TARGET static inline void dot_tiles(const dot_sum *s, const uint16_t *a0, const uint16_t *a1, const uint16_t *b,
                                        ptrdiff_t second, float *c)
{
    const long stride = 2 * (long)s->lda;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (ptrdiff_t tap = 0; tap < s->taps; tap++)
        for (ptrdiff_t k = 0; k < s->blocks; k++, b += 512) {
            const uint16_t *x = a0 + s->offset[tap] + 32 * k, *y = a1 + s->offset[tap] + 32 * k;
            _tile_loadd(4, x, stride);
            _tile_loadd(6, b, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + second, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, y, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    _tile_stored(0, c, 128);
    _tile_stored(1, c + 16, 128);
    _tile_stored(2, c + 512, 128);
    _tile_stored(3, c + 528, 128);
}

/* The same with the first tile and the first panel alone. */
DOT_TARGET static inline void dot_tile(const dot_sum *s, const uint16_t *a, const uint16_t *b, float *c)
{
    _tile_zero(0);
    for (ptrdiff_t tap = 0; tap < s->taps; tap++)
        for (ptrdiff_t k = 0; k < s->blocks; k++, b += 512) {
            _tile_loadd(4, a + s->offset[tap] + 32 * k, 2 * (long)s->lda);
            _tile_loadd(6, b, 64);
            _tile_dpbf16ps(0, 4, 6);
        }
    _tile_stored(0, c, 128);
}

/* With one tile and two panels. */
DOT_TARGET static inline void dot_wide_tile(const dot_sum *s, const uint16_t *a, const uint16_t *b, ptrdiff_t second,
                                            float *c)
{
    _tile_zero(0);
    _tile_zero(1);
    for (ptrdiff_t tap = 0; tap < s->taps; tap++)
        for (ptrdiff_t k = 0; k < s->blocks; k++, b += 512) {
            _tile_loadd(4, a + s->offset[tap] + 32 * k, 2 * (long)s->lda);
            _tile_loadd(6, b, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + second, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
    _tile_stored(0, c, 128);
    _tile_stored(1, c + 16, 128);
}

#endif
