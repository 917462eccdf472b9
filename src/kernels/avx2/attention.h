/* Attention: out = softmax(factor q k') v, for every image and head.
 *
 * Rows are pixels, `length` of them an image; head h has the channels h width ... (h + 1) width - 1, width a multiple
 * of 8 when there are several heads. q, k and v are commonly slices of one buffer. Blocks of queries keep whole rows
 * of scores in the second cache, so the softmax is the plain one. */
#ifndef PSLD_KERNELS_AVX2_ATTENTION_H
#define PSLD_KERNELS_AVX2_ATTENTION_H

#include <stddef.h>

#include "kernels/avx2/conv.h"

typedef struct psld_attention_avx2 {
    ptrdiff_t images, heads, length, width;
    float factor; /* 1 / sqrt(width) */
    int slots;
    psld_const_pixels_avx2 q, k, v;
} psld_attention_avx2;

/* Floats of the softmax, [image][head][length][padded length], that the gradient wants. */
ptrdiff_t psld_attention_weights_avx2(const psld_attention_avx2 *attention);

/* `weights` keeps the softmax; NULL: it is not kept. */
ptrdiff_t psld_attention_scratch_avx2(const psld_attention_avx2 *attention);
void psld_attention_avx2_6x16(const psld_attention_avx2 *attention, float *weights, psld_pixels_avx2 out,
                              float *scratch);

ptrdiff_t psld_attention_dx_scratch_avx2(const psld_attention_avx2 *attention);
void psld_attention_dx_avx2_6x16(const psld_attention_avx2 *attention, const float *weights,
                                 psld_const_pixels_avx2 dout, psld_pixels_avx2 dq, psld_pixels_avx2 dk,
                                 psld_pixels_avx2 dv, float *scratch);

#endif
