/* Group normalisation. With m and v the mean and variance of a group (all its channels and pixels in one sample) and
 * r = 1/sqrt(v + eps),
 *     h = (x - m) r,     u = weight h + bias,     y = activation(u).
 * Moments are kept by channel, so that those of a concatenation are the concatenation of moments; a group's follow from
 *     m = mean of m_c,     v = mean of v_c + (m_c - m)^2.
 * Backward, with g = dy activation'(u) weight:   dx = r (g - mean(g) - h mean(g h)),  means over the group. They follow
 * from sums over pixels, which are the gradients by weight and bias. */
#ifndef PSLD_KERNELS_REF_NORM_H
#define PSLD_KERNELS_REF_NORM_H

#include "kernels/ref/pointwise.h"

/* A task is a sample. Two passes: differences from the mean stay exact if the mean is large. */
static void ref_moments(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    int channels = x->shape.c, pixels = ref_pixels_of(x->shape);
    for (int n = (int)begin; n < (int)end; n++) {
        const real *data = pixel_at(x, n, 0, 0);
        real *out = pixel_at(&call->out, n, 0, 0);
        for (int c = 0; c < channels; c++) {
            double sum = 0, square = 0;
            for (int i = 0; i < pixels; i++) sum += (double)data[i * (ptrdiff_t)x->pixel + c];
            double mean = sum / pixels;
            for (int i = 0; i < pixels; i++) {
                double d = (double)data[i * (ptrdiff_t)x->pixel + c] - mean;
                square += d * d;
            }
            out[c] = (real)mean;
            out[channels + c] = (real)(square / pixels);
        }
        ref_clear_lanes(out, 2 * channels, (ptrdiff_t)psld_lanes(2 * channels));
    }
}

typedef struct group_moments {
    double mean, r;
    int first, count; /* channels */
} group_moments;

static group_moments group_of(const psld_call *call, int n, int group)
{
    int channels = call->in[0].shape.c, count = channels / call->attributes->norm.groups;
    const real *mean = pixel_at(&call->in[1], n, 0, 0) + group * count, *variance = mean + channels;
    double m = 0, v = 0;
    for (int c = 0; c < count; c++) m += (double)mean[c];
    m /= count;
    for (int c = 0; c < count; c++) v += (double)variance[c] + ((double)mean[c] - m) * ((double)mean[c] - m);
    return (group_moments){m, 1 / sqrt(v / count + call->attributes->norm.eps), group * count, count};
}

static size_t tasks_groups(const psld_call *call)
{
    return (size_t)call->in[0].shape.n * (size_t)call->attributes->norm.groups;
}

/* A task is a group of a sample; the last group of a pixel clears the lanes behind it. */
static void ref_normalise(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    const real *weight = call->in[2].data, *bias = call->in[3].data;
    int groups = call->attributes->norm.groups, channels = x->shape.c;
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / (size_t)groups), group = (int)(task % (size_t)groups);
        group_moments g = group_of(call, n, group);
        for (int i = 0; i < ref_pixels_of(x->shape); i++) {
            const real *from = pixel_at(x, n, 0, 0) + i * (ptrdiff_t)x->pixel;
            real *to = pixel_at(&call->out, n, 0, 0) + i * (ptrdiff_t)call->out.pixel;
            for (int c = g.first; c < g.first + g.count; c++) {
                double u = ((double)from[c] - g.mean) * g.r * (double)weight[c] + (double)bias[c];
                to[c] = (real)activate(call->attributes->norm.activation, u);
            }
            if (group == groups - 1) ref_clear_lanes(to, channels, (ptrdiff_t)psld_lanes(channels));
        }
    }
}

/* h at one element, and dy activation'(u) there. */
static double norm_slope(const psld_call *call, group_moments g, int n, int i, int c, double *h)
{
    const real *x = pixel_at(&call->in[0], n, 0, 0) + i * (ptrdiff_t)call->in[0].pixel;
    const real *dy = pixel_at(&call->in[4], n, 0, 0) + i * (ptrdiff_t)call->in[4].pixel;
    const real *weight = call->in[2].data, *bias = call->in[3].data;
    *h = ((double)x[c] - g.mean) * g.r;
    double u = *h * (double)weight[c] + (double)bias[c];
    return (double)dy[c] * activate_slope(call->attributes->norm.activation, u);
}

/* A task is a sample. */
static void ref_normalise_sums(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->in[0].shape;
    int groups = call->attributes->norm.groups;
    for (int n = (int)begin; n < (int)end; n++) {
        real *out = pixel_at(&call->out, n, 0, 0);
        for (int c = 0; c < s.c; c++) {
            group_moments g = group_of(call, n, c / (s.c / groups));
            double by_weight = 0, by_bias = 0, h = 0;
            for (int i = 0; i < ref_pixels_of(s); i++) {
                double slope = norm_slope(call, g, n, i, c, &h);
                by_weight += slope * h;
                by_bias += slope;
            }
            out[c] = (real)by_weight;
            out[s.c + c] = (real)by_bias;
        }
        ref_clear_lanes(out, 2 * s.c, (ptrdiff_t)psld_lanes(2 * s.c));
    }
}

/* A task is a group of a sample. Its means are computed here, in double, and not from the rounded sums: if dx is a
 * small difference of large numbers, that rounding would be visible. */
static void ref_normalise_dx(const psld_call *call, size_t begin, size_t end)
{
    int groups = call->attributes->norm.groups, channels = call->out.shape.c, pixels = ref_pixels_of(call->out.shape);
    const real *weight = call->in[2].data;
    for (size_t task = begin; task < end; task++) {
        int n = (int)(task / (size_t)groups), group = (int)(task % (size_t)groups);
        group_moments g = group_of(call, n, group);
        double mean = 0, mean_h = 0, h = 0;
        for (int i = 0; i < pixels; i++)
            for (int c = g.first; c < g.first + g.count; c++) {
                double slope = norm_slope(call, g, n, i, c, &h) * (double)weight[c];
                mean += slope;
                mean_h += slope * h;
            }
        mean /= (double)g.count * pixels;
        mean_h /= (double)g.count * pixels;
        for (int i = 0; i < pixels; i++) {
            real *dx = pixel_at(&call->out, n, 0, 0) + i * (ptrdiff_t)call->out.pixel;
            for (int c = g.first; c < g.first + g.count; c++) {
                double slope = norm_slope(call, g, n, i, c, &h) * (double)weight[c];
                dx[c] = (real)(g.r * (slope - mean - h * mean_h));
            }
            if (group == groups - 1) ref_clear_lanes(dx, channels, (ptrdiff_t)psld_lanes(channels));
        }
    }
}

#endif
