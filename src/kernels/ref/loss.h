/* Losses, one number a sample; what weighs the samples against one another is the gradient that comes back. */
#ifndef PSLD_KERNELS_REF_LOSS_H
#define PSLD_KERNELS_REF_LOSS_H

#include "kernels/ref/attention.h"

static void put_number(const psld_operand *out, int n, double value)
{
    real *y = pixel_at(out, n, 0, 0);
    clear_lanes(y, 1, PSLD_LANES);
    y[0] = (real)value;
}

/* mean |a - b|^power */
static void run_loss(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->in[0].shape;
    for (int n = (int)begin; n < (int)end; n++) {
        double sum = 0;
        for (int i = 0; i < pixels_of(s); i++) {
            const real *a = numbered_pixel(&call->in[0], n, i), *b = numbered_pixel(&call->in[1], n, i);
            for (int c = 0; c < s.c; c++) {
                double d = fabs((double)a[c] - (double)b[c]);
                sum += call->attributes->loss.power == 2 ? d * d : d;
            }
        }
        put_number(&call->out, n, sum / ((double)s.c * pixels_of(s)));
    }
}

static void run_loss_dx(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    size_t pixels = (size_t)pixels_of(s);
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / pixels), i = (int)(task % pixels);
        const real *a = numbered_pixel(&call->in[0], n, i), *b = numbered_pixel(&call->in[1], n, i);
        double by = (double)pixel_at(&call->in[2], n, 0, 0)[0] / ((double)s.c * (double)pixels);
        real *out = numbered_pixel(&call->out, n, i);
        for (int c = 0; c < s.c; c++) {
            double d = (double)a[c] - (double)b[c];
            out[c] = (real)(by * (call->attributes->loss.power == 2 ? 2 * d : (d > 0) - (d < 0)));
        }
        clear_lanes(out, s.c, (ptrdiff_t)psld_lanes(s.c));
    }
}

/* Logarithm of the sum of exp(x), the largest taken out. */
static double log_sum(const real *x, int count)
{
    double largest = (double)x[0], sum = 0;
    for (int i = 1; i < count; i++) largest = fmax(largest, (double)x[i]);
    for (int i = 0; i < count; i++) sum += exp((double)x[i] - largest);
    return largest + log(sum);
}

static void run_entropy(const psld_call *call, size_t begin, size_t end)
{
    int classes = call->in[0].shape.c;
    for (int n = (int)begin; n < (int)end; n++) {
        const real *x = pixel_at(&call->in[0], n, 0, 0);
        int label = (int)pixel_at(&call->in[1], n, 0, 0)[0];
        assert(label >= 0 && label < classes);
        put_number(&call->out, n, log_sum(x, classes) - (double)x[label]);
    }
}

static void run_entropy_dx(const psld_call *call, size_t begin, size_t end)
{
    int classes = call->in[0].shape.c;
    for (int n = (int)begin; n < (int)end; n++) {
        const real *x = pixel_at(&call->in[0], n, 0, 0);
        int label = (int)pixel_at(&call->in[1], n, 0, 0)[0];
        double dy = (double)pixel_at(&call->in[2], n, 0, 0)[0], all = log_sum(x, classes);
        real *out = pixel_at(&call->out, n, 0, 0);
        for (int c = 0; c < classes; c++) out[c] = (real)(dy * (exp((double)x[c] - all) - (c == label)));
        clear_lanes(out, classes, (ptrdiff_t)psld_lanes(classes));
    }
}

#endif
