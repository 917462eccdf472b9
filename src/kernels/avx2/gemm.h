/* Matrix products by one 6 x 16 register tile.
 *
 * B comes packed in panels of 16 columns, [panel][k][16], columns beyond the last padded with zeros. Each element of
 * the result is one chain of fused multiply-adds in the order of k, whatever the tile it falls into: a row's bits do
 * not depend on which rows it is computed with. */
#ifndef PSLD_KERNELS_AVX2_GEMM_H
#define PSLD_KERNELS_AVX2_GEMM_H

#include <stddef.h>

#include "kernels/avx2/rows.h"

/* c[rows][lanes] = a[rows][k] panel[k][16] + bias[lanes]; lanes is 8 or 16, bias may be NULL. `next` is what will be
 * multiplied with next and is fetched into the cache meanwhile (k lines); NULL: nothing. */
void psld_gemm_panel_avx2_6x16(ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *panel, float *c,
                               ptrdiff_t ldc, int lanes, const float *bias, const float *next);

/* The same with rows that lie anywhere and k cut in pieces, for convolutions by indirection:
 *
 *     c[row] = sum over blocks of 16 channels, taps, k < 16:  from[tap][row][16 block + k] panel[block][where[tap]][k]
 *
 * `from` has six pointers a tap. The panel is [channels / 16][block_taps][16][16]. */
typedef struct psld_gemm_taps_avx2 {
    ptrdiff_t taps;       /* that are summed; 0 gives zeros */
    ptrdiff_t block_taps; /* in the packed weights, >= taps */
    ptrdiff_t channels;
    const ptrdiff_t *where;
} psld_gemm_taps_avx2;

void psld_gemm_taps_avx2_6x16(ptrdiff_t rows, const psld_gemm_taps_avx2 *taps, const float *const *from,
                              const float *panel, float *c, ptrdiff_t ldc, int lanes, const float *bias);

/* c[rows][lanes] (+)= a' b with a [k][lda], b [k][ldb]; b is read 16 wide. Accumulating continues the chain. */
void psld_gemm_tn_avx2_6x16(ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb,
                            float *c, ptrdiff_t ldc, int lanes, int accumulate);

/* c[rows][columns] = a[rows][k] b, with threads; panels of b are `panel_stride` apart. Rows are pixels, `pixels` to
 * an image. Columns are written up to the next multiple of 8. finish may be NULL. */
typedef struct psld_gemm_avx2 {
    ptrdiff_t rows, columns, k, pixels;
    const float *a;
    ptrdiff_t lda;
    const float *b;
    ptrdiff_t panel_stride;
    float *c;
    ptrdiff_t ldc;
    const psld_finish_avx2 *finish;
    int slots;
} psld_gemm_avx2;

void psld_gemm_avx2_6x16(const psld_gemm_avx2 *gemm);

/* Packs b[k][columns] (ldb a multiple of 8, zero lanes) into panels, or the transpose of b[columns][k]. */
void psld_gemm_pack_avx2(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                         ptrdiff_t panel_stride);
void psld_gemm_pack_transposed_avx2(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                                    ptrdiff_t panel_stride);

#endif
