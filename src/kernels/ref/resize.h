/* Bilinear resizing as TensorFlow 1 did it, which is part of what FID means: output pixel j lies at j in / out, and the
 * last pixel stands for what is beyond it. */
#ifndef PSLD_KERNELS_REF_RESIZE_H
#define PSLD_KERNELS_REF_RESIZE_H

#include "kernels/ref/view.h"

/* The two pixels that an output pixel lies between, and the share of the second. */
static double resize_source(int j, int in, int out, int source[2])
{
    double at = (double)j * (double)in / (double)out;
    source[0] = (int)at;
    source[1] = source[0] + 1 < in ? source[0] + 1 : in - 1;
    return at - source[0];
}

/* A task is a line of the output. */
static void ref_resize(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / (size_t)s.h), oy = (int)(task % (size_t)s.h), row[2], column[2];
        double down = resize_source(oy, x->shape.h, s.h, row);
        for (int ox = 0; ox < s.w; ox++) {
            double across = resize_source(ox, x->shape.w, s.w, column);
            real *y = pixel_at(&call->out, n, oy, ox);
            for (int c = 0; c < s.c; c++) {
                double line[2];
                for (int i = 0; i < 2; i++)
                    line[i] = (double)pixel_at(x, n, row[i], column[0])[c] * (1 - across) +
                              (double)pixel_at(x, n, row[i], column[1])[c] * across;
                y[c] = (real)(line[0] * (1 - down) + line[1] * down);
            }
            ref_clear_lanes(y, s.c, (ptrdiff_t)psld_lanes(s.c));
        }
    }
}

#endif
