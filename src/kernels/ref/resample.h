/* Resampling: zeros between the pixels, a separable filter, every so many pixels kept (see kernels.h). Nearest
 * upsampling is taps (1, 1), pooling taps (1/2, 1/2), and so on; the adjoint is a resampling as well. */
#ifndef PSLD_KERNELS_REF_RESAMPLE_H
#define PSLD_KERNELS_REF_RESAMPLE_H

#include "kernels/ref/view.h"

/* The input row that tap k of output row j looks at; -1: a zero. */
static int resample_source(const psld_attributes *a, int j, int k, int size)
{
    int at = j * a->resample.down + k - a->resample.pad;
    if (at < 0 || at % a->resample.up != 0) return -1;
    return at / a->resample.up < size ? at / a->resample.up : -1;
}

static double resample_value(const psld_call *call, int n, int oy, int ox, int c)
{
    const psld_operand *x = &call->in[0];
    const psld_attributes *a = call->attributes;
    double sum = 0;
    for (int ky = 0; ky < a->resample.taps; ky++) {
        int iy = resample_source(a, oy, ky, x->shape.h);
        if (iy < 0) continue;
        double line = 0;
        for (int kx = 0; kx < a->resample.taps; kx++) {
            int ix = resample_source(a, ox, kx, x->shape.w);
            if (ix >= 0) line += (double)a->resample.tap[kx] * (double)pixel_at(x, n, iy, ix)[c];
        }
        sum += (double)a->resample.tap[ky] * line;
    }
    return sum;
}

/* A task is a line of the output. */
static void ref_resample(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / (size_t)s.h), oy = (int)(task % (size_t)s.h);
        for (int ox = 0; ox < s.w; ox++) {
            real *y = pixel_at(&call->out, n, oy, ox);
            for (int c = 0; c < s.c; c++) y[c] = (real)resample_value(call, n, oy, ox, c);
            ref_clear_lanes(y, s.c, (ptrdiff_t)psld_lanes(s.c));
        }
    }
}

#endif
