/* Matrix products by one register tile.
 *
 * B comes packed in panels of 16 columns, [panel][k][16], columns beyond the last padded with zeros. Each element of
 * the result is one chain of fused multiply-adds in the order of k, whatever the tile it falls into: a row's bits do
 * not depend on which rows it is computed with. */
#ifndef PSLD_KERNELS_SIMD_GEMM_H
#define PSLD_KERNELS_SIMD_GEMM_H

#include <stddef.h>

#include "kernels/simd/names.h"
#include "kernels/simd/rows.h"

/* TILE_ROWS and TILE_PANELS: the rows and the most panels of a tile. */
#include SIMD_TILE_H

/* Factors may be pairs of bfloat16 numbers, each in the place of a float: then k counts pairs, A has a row's neighbours
 * as pairs, and B those of a column. Only where simd_pairs_run() holds. */
int simd_pairs_run(void);

/* c[rows][lanes] = a[rows][k] panel[k][16] + bias[lanes]; lanes is a multiple of 8 up to the columns of a tile's
 * panels (16 TILE_PANELS), the second panel `panel_stride` behind the first; bias may be NULL. `next` is what will be
 * multiplied with next and is fetched into the cache meanwhile (k lines); NULL: nothing. */
void simd_gemm_panel(int pairs, ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *panel,
                     ptrdiff_t panel_stride, float *c, ptrdiff_t ldc, int lanes, const float *bias, const float *next);

/* The same with rows that lie anywhere and k cut in pieces, for convolutions by indirection:
 *
 *     c[row] = sum over blocks of 16 channels, taps, k < 16:  from[tap][row][16 block + k] panel[block][where[tap]][k]
 *
 * `from` has TILE_ROWS pointers a tap. The panel is [channels / 16][block_taps][16][16]. */
typedef struct simd_gemm_taps {
    ptrdiff_t taps;       /* that are summed; 0 gives zeros */
    ptrdiff_t block_taps; /* in the packed weights, >= taps */
    ptrdiff_t channels;
    const ptrdiff_t *where;
} simd_gemm_taps;

void simd_gemm_rows(ptrdiff_t rows, const simd_gemm_taps *taps, const float *const *from, const float *panel,
                    ptrdiff_t panel_stride, float *c, ptrdiff_t ldc, int lanes, const float *bias);

/* c[rows][lanes] (+)= a' b with a [k][lda], b [k][ldb], or pairs of their rows; b is read 16 wide. Accumulating continues
 * the chain. Of more than 16 lanes, up to 16 TILE_PANELS, the second 16 are a strip of their own in b and in c. */
void simd_gemm_tn(int pairs, ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b,
                  ptrdiff_t b_strip, ptrdiff_t ldb, float *c, ptrdiff_t c_strip, ptrdiff_t ldc, int lanes,
                  int accumulate);

/* c[rows][columns] = a[rows][k] b, with threads; panels of b are `panel_stride` apart. Rows are pixels, `pixels` to
 * an image. Columns are written up to the next multiple of 8. finish may be NULL. */
typedef struct simd_gemm {
    ptrdiff_t rows, columns, k, pixels;
    const float *a;
    ptrdiff_t lda;
    const float *b;
    ptrdiff_t panel_stride;
    float *c;
    ptrdiff_t ldc;
    const simd_finish *finish;
    int slots;
    int pairs;      /* b is of pairs, and a is rounded to pairs, */
    float *scratch; /* in here: simd_gemm_scratch floats */
} simd_gemm;

void simd_gemm_run(const simd_gemm *gemm);
ptrdiff_t simd_gemm_scratch(ptrdiff_t k, int slots);

/* Packs b[k][columns] (ldb a multiple of 8, zero lanes) into panels, or the transpose of b[columns][k]. */
void simd_gemm_pack(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                    ptrdiff_t panel_stride);
void simd_gemm_pack_transposed(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                               ptrdiff_t panel_stride);

/* The same in pairs, with zeros up to round16(k) / 2 of them. The transpose needs room for b in pairs,
 * simd_gemm_scratch(k, 1) floats for 96 columns. */
void simd_gemm_pack_pairs(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                          ptrdiff_t panel_stride);
void simd_gemm_pack_transposed_pairs(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *room,
                                     float *panels, ptrdiff_t panel_stride);

#endif
