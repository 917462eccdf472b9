/* Convolutions of any kernel size, stride and padding by indirection: a table of row pointers, one for each output
 * pixel and tap, feeds the 6 x 16 product; what falls outside the image points to a row of zeros. Nothing is copied.
 *
 * Weights and their gradients are in blocks, [outputs / 16][inputs / 16][taps][16 inputs][16 outputs], both padded
 * with zeros. For a 1 x 1 kernel that is the packed form of gemm.h, with panels 16 * round16(inputs) apart. */
#ifndef PSLD_KERNELS_SIMD_CONV_H
#define PSLD_KERNELS_SIMD_CONV_H

#include <stddef.h>

#include "kernels/simd/names.h"
#include "kernels/simd/rows.h"

/* Output pixel (i, j) reads input (i stride_y + ky - pad_top, j stride_x + kx - pad_left); padding right and below is
 * whatever the output's size asks for. */
typedef struct simd_conv_shape {
    ptrdiff_t images, height, width, inputs;
    ptrdiff_t out_height, out_width, outputs;
    ptrdiff_t kernel_height, kernel_width, stride_y, stride_x, pad_top, pad_left;
    int slots; /* of scratch, and so the most threads that can take part */
    int pairs; /* the factors of products are pairs of bfloat16 (gemm.h): Winograd's, and those of weight gradients */
} simd_conv_shape;

/* An activation: first pixel and floats from pixel to pixel. Rows and images follow without gaps. */
typedef struct simd_pixels {
    float *data;
    ptrdiff_t stride;
} simd_pixels;

typedef struct simd_const_pixels {
    const float *data;
    ptrdiff_t stride;
} simd_const_pixels;

/* Floats of a weight in blocks. */
ptrdiff_t simd_conv_weights(const simd_conv_shape *shape);

/* From blocks to those of the data gradient, [inputs / 16][outputs / 16][taps][16 outputs][16 inputs]; taps keep
 * their order. */
void simd_conv_transpose(const simd_conv_shape *shape, const float *weights, float *transposed);

/* Of a 1 x 1 kernel, in pairs of bfloat16: [outputs / 16][inputs / 16][8 pairs of inputs][16 outputs], or transposed. */
void simd_conv_pairs(const simd_conv_shape *shape, int transposed, const float *weights, float *pairs);

/* From and to the logical order [output][input][ky][kx]: block (j, i), with outputs 16 j ... and inputs 16 i ..., and
 * all of them. */
void simd_conv_read_block(const simd_conv_shape *shape, const float *logical, ptrdiff_t j, ptrdiff_t i, float *block);
void simd_conv_write_block(const simd_conv_shape *shape, const float *block, ptrdiff_t j, ptrdiff_t i, float *logical);
/* Block (j, i) of the weights of `shape`; with `mirrored` they are given as those of the shape that it mirrors, and taken
 * transposed and turned by 180 degrees. */
void simd_conv_read_mirrored(const simd_conv_shape *shape, int mirrored, const float *logical, ptrdiff_t j, ptrdiff_t i,
                             float *block);
/* The shape whose convolution is the data gradient of `shape`, which has strides of 1. */
simd_conv_shape simd_conv_mirror(const simd_conv_shape *shape);
enum { SIMD_MAX_TAPS = 64 }; /* of these two */

void simd_conv_block(const simd_conv_shape *shape, const float *logical, float *weights);
void simd_conv_unblock(const simd_conv_shape *shape, const float *weights, float *logical);

/* Floats of scratch, 64-byte aligned, that the three functions below need (whichever is largest). */
ptrdiff_t simd_conv_scratch(const simd_conv_shape *shape);

/* y = finish(x * weights); finish may be NULL. */
void simd_conv(const simd_conv_shape *shape, simd_const_pixels x, const float *weights, const simd_finish *finish,
               simd_pixels y, float *scratch);
/* dx, with transposed weights: one problem for each phase of the stride, so that no zeros are multiplied. Also the
 * transposed convolution of dy, with finish. */
void simd_conv_dx(const simd_conv_shape *shape, simd_const_pixels dy, const float *transposed,
                  const simd_finish *finish, simd_pixels dx, float *scratch);
/* dw (+)= the gradient, in blocks. */
void simd_conv_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw, int accumulate,
                  float *scratch);

/* How it does that where one side has few channels (conv_thin.c): whether it can, floats of scratch, and the same. */
int simd_conv_is_thin(const simd_conv_shape *shape);
ptrdiff_t simd_conv_thin_scratch(const simd_conv_shape *shape);
void simd_conv_thin_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw,
                       int accumulate, float *scratch);

#endif
