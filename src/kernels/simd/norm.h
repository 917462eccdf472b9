/* GroupNorm in three steps: moments of every channel, tables of scale and shift for every image and channel, and an
 * affine map, with or without SiLU, that a convolution can apply while it reads (rows.h).
 *
 * Moments are kept per channel, not per group: groups may straddle the two halves of a concatenation, and a skip
 * connection's moments serve two layers. They are a mean and the sum of squares about it, combined over chunks of
 * fixed size; the difference E[x^2] - E[x]^2, which loses all digits when the mean is large, is never formed.
 *
 * Tables are [image][stride], padded with zeros to 8 channels. */
#ifndef PSLD_KERNELS_SIMD_NORM_H
#define PSLD_KERNELS_SIMD_NORM_H

#include <stddef.h>

#include "kernels/simd/names.h"

typedef struct simd_norm {
    ptrdiff_t images, pixels, channels, groups; /* pixels of an image; groups divide channels */
    float epsilon;
    ptrdiff_t stride; /* of all tables with a channel index */
    int silu;
} simd_norm;

/* mean and sum of squares about it, [image][c] */
void simd_moments(const simd_norm *norm, const float *x, ptrdiff_t x_stride, float *mean, float *square);

/* y = x scale + shift is the normalised x times gamma plus beta. Each group's mean and 1 / sqrt(variance + epsilon)
 * are wanted by the gradient; they come per channel, [image][c]. NULL for what is not wanted. */
void simd_norm_tables(const simd_norm *norm, const float *mean, const float *square, const float *gamma,
                      const float *beta, float *scale, float *shift, float *group_mean, float *group_rstd);

/* The gradient: first the sums over the pixels of each image, [image][2][stride], which are the gradients by gamma and
 * by beta before images are added up; then dx from them. dx may be dy. With norm->silu dy is the gradient at the output
 * of SiLU. */
typedef struct simd_norm_gradient {
    const float *x, *dy;
    ptrdiff_t x_stride, dy_stride;
    const float *gamma, *scale, *shift, *group_mean, *group_rstd;
} simd_norm_gradient;

void simd_norm_sums(const simd_norm *norm, const simd_norm_gradient *gradient, float *sums);

ptrdiff_t simd_norm_dx_scratch(const simd_norm *norm);
void simd_norm_dx(const simd_norm *norm, const simd_norm_gradient *gradient, const float *sums, float *dx,
                  ptrdiff_t dx_stride, float *scratch);

#endif
