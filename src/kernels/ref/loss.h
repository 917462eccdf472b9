/* Losses, one number per sample. The weights of the samples are in the gradient that is passed back. */
#ifndef PSLD_KERNELS_REF_LOSS_H
#define PSLD_KERNELS_REF_LOSS_H

#include "kernels/ref/attention.h"

static void put_loss(const psld_operand *out, int n, double value)
{
    real *y = pixel_at(out, n, 0, 0);
    ref_clear_lanes(y, 1, PSLD_LANES);
    y[0] = (real)value;
}

/* The errors of all variables at one place of a pixel: the work of both kernels. Without a metric there is one variable,
 * and it counts once. */
typedef struct loss_work {
    int power, variables, each; /* channels of a variable */
    const real *metric;
    double error[PSLD_MAX_METRIC];
} loss_work;

static loss_work loss_begin(const psld_call *call, int n)
{
    int variables = call->attributes->loss.variables, channels = call->in[0].shape.c;
    loss_work w = {.power = call->attributes->loss.power, .variables = variables ? variables : 1};
    w.each = channels / w.variables;
    if (variables) w.metric = pixel_at(&call->in[call->inputs - 1], n, 0, 0);
    return w;
}

static void loss_look(loss_work *w, const real *a, const real *b, int place)
{
    for (int v = 0; v < w->variables; v++)
        w->error[v] = (double)a[v * w->each + place] - (double)b[v * w->each + place];
}

/* Half the derivative of the square by the error of variable v. */
static double loss_weighed(const loss_work *w, int v)
{
    double sum = 0;
    if (!w->metric) return w->error[v];
    for (int i = 0; i < w->variables; i++)
        sum += ((double)w->metric[v * w->variables + i] + (double)w->metric[i * w->variables + v]) * w->error[i];
    return sum / 2;
}

/* mean |a - b|^power, or of the square by the metric */
static void ref_loss(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->in[0].shape;
    for (int n = (int)begin; n < (int)end; n++) {
        loss_work w = loss_begin(call, n);
        double sum = 0;
        for (int i = 0; i < ref_pixels_of(s); i++) {
            const real *a = numbered_pixel(&call->in[0], n, i), *b = numbered_pixel(&call->in[1], n, i);
            for (int place = 0; place < w.each; place++) {
                loss_look(&w, a, b, place);
                for (int v = 0; v < w.variables; v++)
                    sum += w.power == 2 ? w.error[v] * loss_weighed(&w, v) : fabs(w.error[v]);
            }
        }
        put_loss(&call->out, n, sum / ((double)s.c * ref_pixels_of(s)));
    }
}

static void ref_loss_dx(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    size_t pixels = (size_t)ref_pixels_of(s);
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / pixels), i = (int)(task % pixels);
        const real *a = numbered_pixel(&call->in[0], n, i), *b = numbered_pixel(&call->in[1], n, i);
        double by = (double)pixel_at(&call->in[2], n, 0, 0)[0] / ((double)s.c * (double)pixels);
        loss_work w = loss_begin(call, n);
        real *out = numbered_pixel(&call->out, n, i);
        for (int place = 0; place < w.each;
             place++) { /* out may be a or b: each place is read completely before it is written */
            loss_look(&w, a, b, place);
            for (int v = 0; v < w.variables; v++) {
                double d = loss_weighed(&w, v);
                out[v * w.each + place] = (real)(by * (w.power == 2 ? 2 * d : (d > 0) - (d < 0)));
            }
        }
        ref_clear_lanes(out, s.c, (ptrdiff_t)psld_lanes(s.c));
    }
}

/* x / (sqrt(x + a^2) + a), which does not cancel. */
static void ref_root(const psld_call *call, size_t begin, size_t end)
{
    for (int n = (int)begin; n < (int)end; n++) {
        double x = (double)pixel_at(&call->in[0], n, 0, 0)[0], a = (double)pixel_at(&call->in[1], n, 0, 0)[0];
        put_loss(&call->out, n, x > 0 ? x / (sqrt(x + a * a) + a) : 0);
    }
}

static void ref_root_dx(const psld_call *call, size_t begin, size_t end)
{
    for (int n = (int)begin; n < (int)end; n++) {
        double x = (double)pixel_at(&call->in[0], n, 0, 0)[0], a = (double)pixel_at(&call->in[1], n, 0, 0)[0];
        double dy = (double)pixel_at(&call->in[2], n, 0, 0)[0], root = sqrt(x + a * a);
        put_loss(&call->out, n, root > 0 ? dy / (2 * root) : 0);
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

static void ref_entropy(const psld_call *call, size_t begin, size_t end)
{
    int classes = call->in[0].shape.c;
    for (int n = (int)begin; n < (int)end; n++) {
        const real *x = pixel_at(&call->in[0], n, 0, 0);
        int label = (int)pixel_at(&call->in[1], n, 0, 0)[0];
        assert(label >= 0 && label < classes);
        put_loss(&call->out, n, log_sum(x, classes) - (double)x[label]);
    }
}

static void ref_entropy_dx(const psld_call *call, size_t begin, size_t end)
{
    int classes = call->in[0].shape.c;
    for (int n = (int)begin; n < (int)end; n++) {
        const real *x = pixel_at(&call->in[0], n, 0, 0);
        int label = (int)pixel_at(&call->in[1], n, 0, 0)[0];
        double dy = (double)pixel_at(&call->in[2], n, 0, 0)[0], all = log_sum(x, classes);
        real *out = pixel_at(&call->out, n, 0, 0);
        for (int c = 0; c < classes; c++) out[c] = (real)(dy * (exp((double)x[c] - all) - (c == label)));
        ref_clear_lanes(out, classes, (ptrdiff_t)psld_lanes(classes));
    }
}

#endif
