/* Operations that move channels, add along pixels, or change the shape. */
#ifndef PSLD_KERNELS_REF_CHANNELS_H
#define PSLD_KERNELS_REF_CHANNELS_H

#include "kernels/ref/view.h"

/* The bias of a sample: dense ones are the same for all. */
static const real *bias_of(const psld_operand *b, int n)
{
    return b->pixel ? pixel_at(b, n, 0, 0) : b->data;
}

static void ref_bias(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    size_t pixels = (size_t)ref_pixels_of(call->out.shape);
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r), *b = bias_of(&call->in[1], (int)(r / pixels));
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t c = 0; c < out.width; c++) y[c] = x[c] + b[c];
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_broadcast(const psld_call *call, size_t begin, size_t end)
{
    row_view out = rows_of(&call->out);
    size_t pixels = (size_t)ref_pixels_of(call->out.shape);
    for (size_t r = begin; r < end; r++) {
        const real *b = bias_of(&call->in[0], (int)(r / pixels));
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t c = 0; c < out.width; c++) y[c] = b[c];
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static double sum_channel(const psld_operand *x, int n, int c)
{
    double sum = 0;
    for (int i = 0; i < ref_pixels_of(x->shape); i++) sum += (double)pixel_at(x, n, 0, 0)[i * (ptrdiff_t)x->pixel + c];
    return sum;
}

/* A task is a sample, or a channel where the samples are added up. */
static void ref_channel_sum(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    for (int task = (int)begin; task < (int)end; task++) {
        if (call->out.pixel) {
            real *y = pixel_at(&call->out, task, 0, 0);
            for (int c = 0; c < x->shape.c; c++) y[c] = (real)sum_channel(x, task, c);
            ref_clear_lanes(y, x->shape.c, (ptrdiff_t)psld_lanes(x->shape.c));
        } else {
            double sum = 0;
            for (int n = 0; n < x->shape.n; n++) sum += sum_channel(x, n, task);
            ((real *)call->out.data)[task] = (real)sum;
        }
    }
}

static size_t tasks_channel_sum(const psld_call *call)
{
    return (size_t)(call->out.pixel ? call->out.shape.n : call->out.shape.c);
}

static void ref_concat(const psld_call *call, size_t begin, size_t end)
{
    row_view out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        real *y = row_at(&call->out, out, r);
        ptrdiff_t at = 0;
        for (int i = 0; i < call->inputs; i++) {
            row_view in = rows_of(&call->in[i]);
            memcpy(y + at, row_at(&call->in[i], in, r), (size_t)in.width * sizeof *y);
            at += in.width;
        }
        ref_clear_lanes(y, at, out.lanes);
    }
}

static void ref_slice(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        real *y = row_at(&call->out, out, r);
        memcpy(y, row_at(&call->in[0], in, r) + call->attributes->slice.first, (size_t)out.width * sizeof *y);
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_slice_dx(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        real *y = row_at(&call->out, out, r);
        ref_clear_lanes(y, 0, out.lanes);
        memcpy(y + call->attributes->slice.first, row_at(&call->in[0], in, r), (size_t)in.width * sizeof *y);
    }
}

/* Number i of a sample in the order c, h, w. */
static real *reshape_element(const psld_operand *o, int n, ptrdiff_t i)
{
    ptrdiff_t plane = ref_pixels_of(o->shape);
    return pixel_at(o, n, 0, 0) + i % plane * (ptrdiff_t)o->pixel + i / plane;
}

static void ref_reshape(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (int n = (int)begin; n < (int)end; n++) {
        for (int i = 0; i < ref_pixels_of(s); i++)
            ref_clear_lanes(pixel_at(&call->out, n, 0, 0) + i * (ptrdiff_t)call->out.pixel, s.c,
                            (ptrdiff_t)psld_lanes(s.c));
        for (ptrdiff_t i = 0; i < (ptrdiff_t)s.c * ref_pixels_of(s); i++)
            *reshape_element(&call->out, n, i) = *reshape_element(&call->in[0], n, i);
    }
}

#endif
