/* The products of attention and their adjoints. Pixels of an image are numbered line by line; a matrix between pixels
 * is a tensor whose pixel i holds row i as channels. */
#ifndef PSLD_KERNELS_REF_ATTENTION_H
#define PSLD_KERNELS_REF_ATTENTION_H

#include "kernels/ref/view.h"

static real *numbered_pixel(const psld_operand *o, int n, int i)
{
    return pixel_at(o, n, 0, 0) + i * (ptrdiff_t)o->pixel;
}

static void ref_scores(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    size_t pixels = (size_t)ref_pixels_of(s);
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / pixels), i = (int)(task % pixels), channels = call->in[0].shape.c;
        const real *q = numbered_pixel(&call->in[0], n, i);
        real *out = numbered_pixel(&call->out, n, i);
        for (int j = 0; j < s.c; j++) {
            const real *k = numbered_pixel(&call->in[1], n, j);
            double sum = 0;
            for (int c = 0; c < channels; c++) sum += (double)q[c] * (double)k[c];
            out[j] = (real)(sum * call->attributes->scale.by);
        }
        ref_clear_lanes(out, s.c, (ptrdiff_t)psld_lanes(s.c));
    }
}

static void ref_softmax(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        const real *s = row_at(&call->in[0], in, r);
        real *p = row_at(&call->out, out, r), largest = s[0];
        double sum = 0;
        for (ptrdiff_t i = 1; i < in.width; i++) largest = s[i] > largest ? s[i] : largest;
        for (ptrdiff_t i = 0; i < in.width; i++) sum += exp((double)s[i] - (double)largest);
        for (ptrdiff_t i = 0; i < in.width; i++) p[i] = (real)(exp((double)s[i] - (double)largest) / sum);
        ref_clear_lanes(p, out.width, out.lanes);
    }
}

/* ds = p (dp - <p, dp>) */
static void ref_softmax_dx(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), above = rows_of(&call->in[1]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        const real *p = row_at(&call->in[0], in, r), *dp = row_at(&call->in[1], above, r);
        real *ds = row_at(&call->out, out, r);
        double sum = 0;
        for (ptrdiff_t i = 0; i < in.width; i++) sum += (double)p[i] * (double)dp[i];
        for (ptrdiff_t i = 0; i < in.width; i++) ds[i] = (real)((double)p[i] * ((double)dp[i] - sum));
        ref_clear_lanes(ds, out.width, out.lanes);
    }
}

/* One pixel of p v or p' v: the sum over j of coefficient j, `step` apart, times pixel j of v. */
static void combine_pixels(const psld_call *call, int n, const real *coefficient, ptrdiff_t step, real *out)
{
    enum { BLOCK = 16 };
    const psld_operand *v = &call->in[1];
    for (int first = 0; first < v->shape.c; first += BLOCK) {
        int count = v->shape.c - first < BLOCK ? v->shape.c - first : BLOCK;
        double sum[BLOCK] = {0};
        for (int j = 0; j < ref_pixels_of(v->shape); j++) {
            const real *pixel = numbered_pixel(v, n, j) + first;
            double p = (double)coefficient[j * step];
            for (int c = 0; c < count; c++) sum[c] += p * (double)pixel[c];
        }
        for (int c = 0; c < count; c++) out[first + c] = (real)(sum[c] * call->attributes->scale.by);
    }
    ref_clear_lanes(out, v->shape.c, (ptrdiff_t)psld_lanes(v->shape.c));
}

static void ref_apply(const psld_call *call, size_t begin, size_t end)
{
    size_t pixels = (size_t)ref_pixels_of(call->out.shape);
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / pixels), i = (int)(task % pixels);
        combine_pixels(call, n, numbered_pixel(&call->in[0], n, i), 1, numbered_pixel(&call->out, n, i));
    }
}

static void ref_apply_t(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *p = &call->in[0];
    size_t pixels = (size_t)ref_pixels_of(call->out.shape);
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / pixels), j = (int)(task % pixels);
        combine_pixels(call, n, numbered_pixel(p, n, 0) + j, (ptrdiff_t)p->pixel, numbered_pixel(&call->out, n, j));
    }
}

#endif
