/* 3 x 3 convolutions with stride 1 by Winograd's F(4 x 4, 3 x 3): 36 products for 16 outputs instead of 144. Images of
 * at most 4 x 4 outputs go by F(2 x 2, 3 x 3): 16 products for 4 outputs, but weights that are 16/36 as large.
 *
 * The shape must have kernels of 3 x 3, strides of 1 and pads of 0 to 2. Weights and their gradients are in the logical
 * order [output][input][3][3]. Before use weights are transformed to U, [outputs / 16][36 or 16][round8(inputs)][16]
 * with a little space after each of the 36: four times as large, so in training it lives in scratch only as long as its
 * convolution. The data gradient is the convolution of the mirrored shape with U made from the same weights, transposed
 * and turned by 180 degrees. */
#ifndef PSLD_KERNELS_SIMD_WINOGRAD_H
#define PSLD_KERNELS_SIMD_WINOGRAD_H

#include <stdint.h>

#include "kernels/simd/conv.h"

/* Floats of U, aligned to 64 bytes. `shape` is that of the convolution that will be run. */
ptrdiff_t simd_winograd_weights_size(const simd_conv_shape *shape);

/* U for `shape` from its weights, or with `mirrored` from the weights of the shape that it mirrors. */
void simd_winograd_weights(const simd_conv_shape *shape, int mirrored, const float *weights, float *u);

/* Floats of scratch, aligned to 64 bytes; enough for fewer images, too. */
ptrdiff_t simd_winograd_scratch(const simd_conv_shape *shape);

/* y = finish(x * weights); finish may be NULL. */
void simd_winograd(const simd_conv_shape *shape, simd_const_pixels x, const float *u, const simd_finish *finish,
                   simd_pixels y, float *scratch);

/* The same with U in half precision: half of the memory, and of what is read. A panel's numbers are scaled by a power of
 * two, so that the largest are near the end of that format's range; each part is widened just before it is used. */
ptrdiff_t simd_winograd_half_size(const simd_conv_shape *shape); /* bytes */
void simd_winograd_weights_half(const simd_conv_shape *shape, int mirrored, const float *weights, uint16_t *half);
ptrdiff_t simd_winograd_half_scratch(const simd_conv_shape *shape);
void simd_winograd_half(const simd_conv_shape *shape, simd_const_pixels x, const uint16_t *half,
                        const simd_finish *finish, simd_pixels y, float *scratch);

/* The same bits as with U in float, from the weights themselves: each panel of U is made just before it is used and never leaves the cache.
 * V of all tiles is kept meanwhile. Faster where tiles are few and weights many, say below a hundred tiles. */
ptrdiff_t simd_winograd_in_time_scratch(const simd_conv_shape *shape);
void simd_winograd_in_time(const simd_conv_shape *shape, simd_const_pixels x, int mirrored, const float *weights,
                           const simd_finish *finish, simd_pixels y, float *scratch);

/* dw = the gradient with respect to the weights. */
ptrdiff_t simd_winograd_dw_scratch(const simd_conv_shape *shape);
void simd_winograd_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw,
                      float *scratch);

#endif
