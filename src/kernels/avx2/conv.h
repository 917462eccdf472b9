/* Convolutions of any kernel size, stride and padding by indirection: a table of row pointers, one for each output
 * pixel and tap, feeds the 6 x 16 product; what falls outside the image points to a row of zeros. Nothing is copied.
 *
 * Weights and their gradients are in blocks, [outputs / 16][inputs / 16][taps][16 inputs][16 outputs], both padded
 * with zeros. For a 1 x 1 kernel that is the packed form of gemm.h, with panels 16 * round16(inputs) apart. */
#ifndef PSLD_KERNELS_AVX2_CONV_H
#define PSLD_KERNELS_AVX2_CONV_H

#include <stddef.h>

#include "kernels/avx2/rows.h"

/* Output pixel (i, j) reads input (i stride_y + ky - pad_top, j stride_x + kx - pad_left); padding right and below is
 * whatever the output's size asks for. */
typedef struct psld_conv_shape_avx2 {
    ptrdiff_t images, height, width, inputs;
    ptrdiff_t out_height, out_width, outputs;
    ptrdiff_t kernel_height, kernel_width, stride_y, stride_x, pad_top, pad_left;
    int slots; /* of scratch, and so the most threads that can take part */
} psld_conv_shape_avx2;

/* An activation: first pixel and floats from pixel to pixel. Rows and images follow without gaps. */
typedef struct psld_pixels_avx2 {
    float *data;
    ptrdiff_t stride;
} psld_pixels_avx2;

typedef struct psld_const_pixels_avx2 {
    const float *data;
    ptrdiff_t stride;
} psld_const_pixels_avx2;

/* Floats of a weight in blocks. */
ptrdiff_t psld_conv_weights_avx2(const psld_conv_shape_avx2 *shape);

/* From blocks to those of the data gradient, [inputs / 16][outputs / 16][taps][16 outputs][16 inputs]; taps keep
 * their order. */
void psld_conv_transpose_avx2(const psld_conv_shape_avx2 *shape, const float *weights, float *transposed);

/* From and to the logical order [output][input][ky][kx]: block (j, i), with outputs 16 j ... and inputs 16 i ..., and
 * all of them. */
void psld_conv_read_block_avx2(const psld_conv_shape_avx2 *shape, const float *logical, ptrdiff_t j, ptrdiff_t i,
                               float *block);
void psld_conv_write_block_avx2(const psld_conv_shape_avx2 *shape, const float *block, ptrdiff_t j, ptrdiff_t i,
                                float *logical);
void psld_conv_block_avx2(const psld_conv_shape_avx2 *shape, const float *logical, float *weights);
void psld_conv_unblock_avx2(const psld_conv_shape_avx2 *shape, const float *weights, float *logical);

/* Floats of scratch, 64-byte aligned, that the three functions below need (whichever is largest). */
ptrdiff_t psld_conv_scratch_avx2(const psld_conv_shape_avx2 *shape);

/* y = finish(x * weights); finish may be NULL. */
void psld_conv_avx2_6x16(const psld_conv_shape_avx2 *shape, psld_const_pixels_avx2 x, const float *weights,
                         const psld_finish_avx2 *finish, psld_pixels_avx2 y, float *scratch);
/* dx, with transposed weights: one problem for each phase of the stride, so that no zeros are multiplied. Also the
 * transposed convolution of dy, with finish. */
void psld_conv_dx_avx2_6x16(const psld_conv_shape_avx2 *shape, psld_const_pixels_avx2 dy, const float *transposed,
                            const psld_finish_avx2 *finish, psld_pixels_avx2 dx, float *scratch);
/* dw (+)= the gradient, in blocks. */
void psld_conv_dw_avx2_6x16(const psld_conv_shape_avx2 *shape, psld_const_pixels_avx2 x, psld_const_pixels_avx2 dy,
                            float *dw, int accumulate, float *scratch);

/* How it does that where one side has few channels (conv_thin.c): whether it can, floats of scratch, and the same. */
int psld_conv_is_thin_avx2(const psld_conv_shape_avx2 *shape);
ptrdiff_t psld_conv_thin_scratch_avx2(const psld_conv_shape_avx2 *shape);
void psld_conv_thin_dw_avx2(const psld_conv_shape_avx2 *shape, psld_const_pixels_avx2 x, psld_const_pixels_avx2 dy,
                            float *dw, int accumulate, float *scratch);

#endif
