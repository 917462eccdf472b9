/* A scale and a shift for each channel of each sample: y = x (1 + scale) + shift. */
#ifndef PSLD_KERNELS_REF_MODULATE_H
#define PSLD_KERNELS_REF_MODULATE_H

#include "kernels/ref/view.h"

/* Scales and shifts of the sample that a row of the result belongs to. */
static const real *modulation_of(const psld_call *call, size_t row)
{
    return pixel_at(&call->in[1], (int)(row / (size_t)ref_pixels_of(call->out.shape)), 0, 0);
}

static void ref_modulate(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r), *scale = modulation_of(call, r), *shift = scale + out.width;
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t c = 0; c < out.width; c++) y[c] = x[c] * (1 + scale[c]) + shift[c];
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_modulate_dx(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        const real *dy = row_at(&call->in[0], in, r), *scale = modulation_of(call, r);
        real *dx = row_at(&call->out, out, r);
        for (ptrdiff_t c = 0; c < out.width; c++) dx[c] = dy[c] * (1 + scale[c]);
        ref_clear_lanes(dx, out.width, out.lanes);
    }
}

/* A task is a sample. */
static void ref_modulate_sums(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0], *dy = &call->in[1];
    int channels = x->shape.c, pixels = ref_pixels_of(x->shape);
    for (int n = (int)begin; n < (int)end; n++) {
        const real *a = pixel_at(x, n, 0, 0), *b = pixel_at(dy, n, 0, 0);
        real *out = pixel_at(&call->out, n, 0, 0);
        for (int c = 0; c < channels; c++) {
            double by_scale = 0, by_shift = 0;
            for (int i = 0; i < pixels; i++) {
                double slope = (double)b[i * (ptrdiff_t)dy->pixel + c];
                by_scale += slope * (double)a[i * (ptrdiff_t)x->pixel + c];
                by_shift += slope;
            }
            out[c] = (real)by_scale;
            out[channels + c] = (real)by_shift;
        }
        ref_clear_lanes(out, 2 * channels, (ptrdiff_t)psld_lanes(2 * channels));
    }
}

#endif
