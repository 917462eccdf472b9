/* Pooling: the largest or the mean of a window's pixels in the image. */
#ifndef PSLD_KERNELS_REF_POOL_H
#define PSLD_KERNELS_REF_POOL_H

#include "kernels/ref/view.h"

static real pool_value(const psld_call *call, int n, int oy, int ox, int c)
{
    const psld_operand *x = &call->in[0];
    const psld_attributes *a = call->attributes;
    double sum = 0, largest = -(double)INFINITY;
    int count = 0;
    for (int ky = 0; ky < a->pool.kernel[0]; ky++)
        for (int kx = 0; kx < a->pool.kernel[1]; kx++) {
            int iy = oy * a->pool.stride[0] + ky - a->pool.pad[0], ix = ox * a->pool.stride[1] + kx - a->pool.pad[1];
            if (iy < 0 || iy >= x->shape.h || ix < 0 || ix >= x->shape.w) continue;
            double value = (double)pixel_at(x, n, iy, ix)[c];
            sum += value;
            count++;
            if (value > largest) largest = value;
        }
    return (real)(a->pool.mean ? sum / count : largest);
}

/* A task is a line of the output. */
static void ref_pool(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / (size_t)s.h), oy = (int)(task % (size_t)s.h);
        for (int ox = 0; ox < s.w; ox++) {
            real *y = pixel_at(&call->out, n, oy, ox);
            for (int c = 0; c < s.c; c++) y[c] = pool_value(call, n, oy, ox, c);
            ref_clear_lanes(y, s.c, (ptrdiff_t)psld_lanes(s.c));
        }
    }
}

#endif
