/* Work on finished rows of pixels: what a convolution does to its output while that is still in the cache (finish), and
 * the elementwise operations.
 *
 * Activations are NHWC in float. A pixel has its channels, zero lanes up to the next multiple of 8, and a stride in
 * floats that is a multiple of 8; a slice of a wider buffer is a pointer and a stride. Every function reads and
 * writes whole vectors of 8 and leaves zero lanes zero; tables per channel ([c], [image][c]) are padded likewise. */
#ifndef PSLD_KERNELS_SIMD_ROWS_H
#define PSLD_KERNELS_SIMD_ROWS_H

#include <stddef.h>

#include "kernels/simd/names.h"

/* y = f(x scale[image][c] + shift[image][c]) with f SiLU or the identity: GroupNorm as it is applied. */
typedef struct simd_fill {
    const float *scale, *shift; /* [image][c] */
    ptrdiff_t stride;           /* from image to image */
    int silu;
} simd_fill;

/* y = x, in the calling thread. */
void simd_copy(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride);

/* y = (y + bias[image][c] + residual[pixel][c]) scale, in this order, then ReLU. A residual that is y itself
 * accumulates. */
typedef struct simd_finish {
    const float *bias;     /* padded to 16 channels; NULL: none */
    ptrdiff_t bias_stride; /* from image to image; 0: one for all */
    const float *residual; /* NULL: none */
    ptrdiff_t residual_stride;
    float scale;
    int relu;
} simd_finish;

/* Rows (= pixels) begin ... end - 1, channels first ... first + count - 1 of y; `pixels` make an image. `skip_bias`
 * when the product has added the bias already. */
void simd_finish_rows(const simd_finish *finish, int skip_bias, float *y, ptrdiff_t y_stride, ptrdiff_t begin,
                      ptrdiff_t end, ptrdiff_t pixels, ptrdiff_t first, ptrdiff_t count);

/* ---- Elementwise, on `pixels` pixels, with threads --------------------------------------------------------------- */

void simd_affine(const simd_fill *fill, ptrdiff_t images, ptrdiff_t pixels, ptrdiff_t channels, const float *x,
                 ptrdiff_t x_stride, float *y, ptrdiff_t y_stride);
/* y = silu(x);  dx = dy silu'(x) */
void simd_silu(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride);
void simd_silu_dx(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, const float *dy,
                  ptrdiff_t dy_stride, float *dx, ptrdiff_t dx_stride);
/* y = a fa + b fb; b may be NULL, y may be a or b. With fb = 0 and b NULL a scaled copy. */
void simd_add(ptrdiff_t pixels, ptrdiff_t channels, const float *a, ptrdiff_t a_stride, float fa, const float *b,
              ptrdiff_t b_stride, float fb, float *y, ptrdiff_t y_stride);

/* sum[c] (+)= sum of y over all pixels, in chunks of fixed size: the gradient of a bias. */
void simd_sum_pixels(ptrdiff_t pixels, ptrdiff_t channels, const float *y, ptrdiff_t y_stride, float *sum,
                     int accumulate);

/* Each row becomes exp(factor (x - max)) / sum over its first `columns`; the rest up to `padded` becomes zero. */
void simd_softmax_rows(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t padded, float factor, float *x, ptrdiff_t x_stride);

#endif
