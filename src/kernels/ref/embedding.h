/* Time embeddings, rounded to the element type after each operation, as the networks were trained: the angle 2 pi w
 * log t is in the hundreds, and its rounding shows. */
#ifndef PSLD_KERNELS_REF_EMBEDDING_H
#define PSLD_KERNELS_REF_EMBEDDING_H

#include "kernels/ref/view.h"

/* [sin(t f_0) ... sin(t f_{half-1}), cos ..., 0 if c is odd], f_i = 10000^(-i / (half - shift)); or cosines first */
static void ref_positional(const psld_call *call, size_t begin, size_t end)
{
    int channels = call->out.shape.c, half = channels / 2, cos_first = call->attributes->embedding.cos_first;
    double range = half - call->attributes->embedding.shift;
    real rate = (real)(log(10000.0) / (range > 0 ? range : 1));
    for (int n = (int)begin; n < (int)end; n++) {
        real t = pixel_at(&call->in[0], n, 0, 0)[0], *out = pixel_at(&call->out, n, 0, 0);
        for (int i = 0; i < half; i++) {
            real frequency = (real)exp((double)((real)i * -rate)), angle = t * frequency;
            out[cos_first ? half + i : i] = (real)sin((double)angle);
            out[cos_first ? i : half + i] = (real)cos((double)angle);
        }
        ref_clear_lanes(out, 2 * half, (ptrdiff_t)psld_lanes(channels));
    }
}

/* [sin(2 pi w_0 log t) ..., cos ...], or of 2 pi w t, with the products in the order of the networks that use it */
static void ref_fourier(const psld_call *call, size_t begin, size_t end)
{
    int half = call->out.shape.c / 2, plain = call->attributes->embedding.plain;
    const real pi = (real)3.14159265358979323846;
    const real *w = call->in[1].data;
    for (int n = (int)begin; n < (int)end; n++) {
        real t = pixel_at(&call->in[0], n, 0, 0)[0], *out = pixel_at(&call->out, n, 0, 0);
        real log_t = plain ? t : (real)log((double)t);
        for (int i = 0; i < half; i++) {
            real angle = plain ? t * (w[i] * (2 * pi)) : log_t * w[i] * 2 * pi;
            out[i] = (real)sin((double)angle);
            out[half + i] = (real)cos((double)angle);
        }
        ref_clear_lanes(out, 2 * half, (ptrdiff_t)psld_lanes(2 * half));
    }
}

#endif
