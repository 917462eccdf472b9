/* With n = pixels x channels of a group, h = (x - mean) rstd and d = dy silu'(z) the gradient is
 *
 *     dx = rstd (gamma d - a - h b),    a = sum(gamma d) / n,    b = sum(gamma d h) / n,    sums over the group,
 *     dgamma = sum(d h),    dbeta = sum(d)    over images and pixels.
 *
 * The first pass sums d h and d over the pixels of each image and channel. The second makes d once more, which costs
 * less than keeping it, and dx = d k1 + (x - mean) k2 + k3 with k1 = rstd gamma, k2 = -rstd^2 b, k3 = -rstd a. */
#include "kernels/simd/norm.h"

#include <math.h>

#include "base/threads.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

/* Pixels that are summed in float, and channels of a task: whole cache lines, since memory is read in this pattern. */
enum { CHUNK = 32, STRIP = 64, VECTORS = STRIP / V_LANES };

typedef struct {
    const simd_norm *norm;
    const float *x;
    ptrdiff_t x_stride;
    float *mean, *square;
    const simd_norm_gradient *gradient;
    float *sums;               /* [image][2][stride]: d h, d */
    const float *k1, *k2, *k3; /* [image][stride] */
    float *dx;
    ptrdiff_t dx_stride;
} norm_job;

static ptrdiff_t strips(const simd_norm *norm)
{
    return (psld_round8(norm->channels) + STRIP - 1) / STRIP;
}

SIMD_INLINE vec strip_load(const float *x, int vector, ptrdiff_t width)
{
    return v_load_part(x + V_LANES * vector, width - V_LANES * vector);
}

/* ---- Moments ----------------------------------------------------------------------------------------------------- */

static int vectors_of(ptrdiff_t width)
{
    return (int)((width + V_LANES - 1) / V_LANES);
}

/* Means of `width` channels over one chunk, and the squares about them. Inlined with constant `width`. */
SIMD_INLINE void chunk_moments(ptrdiff_t width, const float *x, ptrdiff_t stride, ptrdiff_t pixels, vec *mean,
                               vec *square)
{
    const int count = vectors_of(width);
#pragma GCC unroll 16
    for (int i = 0; i < count; i++) mean[i] = square[i] = v_zero();
    for (ptrdiff_t p = 0; p < pixels; p++)
#pragma GCC unroll 16
        for (int i = 0; i < count; i++) mean[i] = v_add(mean[i], strip_load(x + p * stride, i, width));
#pragma GCC unroll 16
    for (int i = 0; i < count; i++) mean[i] = v_mul(mean[i], v_set(1.0F / (float)pixels));
    for (ptrdiff_t p = 0; p < pixels; p++)
#pragma GCC unroll 16
        for (int i = 0; i < count; i++) {
            const vec d = v_sub(strip_load(x + p * stride, i, width), mean[i]);
            square[i] = v_fma(d, d, square[i]);
        }
}

/* Means and squares of two disjoint sets give those of their union (Chan, Golub and LeVeque). Here the `before`
 * pixels that means and squares are of already, and a chunk of `count`. */
static void join_moments(ptrdiff_t width, const vec *mean, const vec *square, ptrdiff_t before, ptrdiff_t count,
                         float *means, float *squares)
{
    const vec weight = v_set((float)count / (float)(before + count));
    const vec between = v_mul(weight, v_set((float)before));
    for (int i = 0; i < vectors_of(width); i++) {
        const ptrdiff_t c = V_LANES * i, left = width - c;
        vec m = mean[i], s = square[i];
        if (before > 0) {
            const vec old = v_load_part(means + c, left), step = v_sub(m, old);
            s = v_fma(v_mul(step, step), between, v_add(v_load_part(squares + c, left), s));
            m = v_fma(step, weight, old);
        }
        v_store_part(means + c, left, m);
        v_store_part(squares + c, left, s);
    }
}

static void moments_strip(const norm_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t last)
{
    const simd_norm *norm = job->norm;
    const ptrdiff_t width = last - first;
    for (ptrdiff_t p = 0; p < norm->pixels; p += CHUNK) {
        const ptrdiff_t count = psld_min(CHUNK, norm->pixels - p), row = image * norm->stride + first;
        const float *x = job->x + (image * norm->pixels + p) * job->x_stride + first;
        vec mean[VECTORS], square[VECTORS];
        if (width == STRIP)
            chunk_moments(STRIP, x, job->x_stride, count, mean, square);
        else
            chunk_moments(width, x, job->x_stride, count, mean, square);
        join_moments(width, mean, square, p, count, job->mean + row, job->square + row);
    }
}

static void moments_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const ptrdiff_t count = strips(job->norm), width = psld_round8(job->norm->channels);
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        moments_strip(job, i / count, i % count * STRIP, psld_min(width, (i % count + 1) * STRIP));
}

void simd_moments(const simd_norm *norm, const float *x, ptrdiff_t x_stride, float *mean, float *square)
{
    norm_job job = {.norm = norm, .x = x, .x_stride = x_stride, .mean = mean, .square = square};
    psld_parallel((size_t)(norm->images * strips(norm)), 1, moments_range, &job);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Mean and 1 / sqrt(variance + epsilon) of a group. */
static void group_moments(const simd_norm *norm, const float *mean, const float *square, double *group_mean,
                          double *rstd)
{
    const ptrdiff_t count = norm->channels / norm->groups;
    double sum = 0, squares = 0;
    for (ptrdiff_t c = 0; c < count; c++) sum += (double)mean[c];
    *group_mean = sum / (double)count;
    for (ptrdiff_t c = 0; c < count; c++) {
        const double away = (double)mean[c] - *group_mean;
        squares += (double)square[c] + (double)norm->pixels * away * away;
    }
    *rstd = 1.0 / sqrt(squares / (double)(count * norm->pixels) + (double)norm->epsilon);
}

static void set_padding(const simd_norm *norm, float *table)
{
    for (ptrdiff_t c = norm->channels; table && c < psld_round8(norm->channels); c++) table[c] = 0;
}

void simd_norm_tables(const simd_norm *norm, const float *mean, const float *square, const float *gamma,
                      const float *beta, float *scale, float *shift, float *group_mean, float *group_rstd)
{
    const ptrdiff_t count = norm->channels / norm->groups;
    for (ptrdiff_t image = 0; image < norm->images; image++) {
        const ptrdiff_t row = image * norm->stride;
        double m = 0, r = 0;
        for (ptrdiff_t c = 0; c < norm->channels; c++) {
            if (c % count == 0) group_moments(norm, mean + row + c, square + row + c, &m, &r);
            const double factor = r * (double)gamma[c];
            if (scale) scale[row + c] = (float)factor;
            if (shift) shift[row + c] = (float)((double)beta[c] - m * factor);
            if (group_mean) group_mean[row + c] = (float)m;
            if (group_rstd) group_rstd[row + c] = (float)r;
        }
        set_padding(norm, scale ? scale + row : NULL);
        set_padding(norm, shift ? shift + row : NULL);
        set_padding(norm, group_mean ? group_mean + row : NULL);
        set_padding(norm, group_rstd ? group_rstd + row : NULL);
    }
}

/* ---- Gradient ---------------------------------------------------------------------------------------------------- */

/* d of a vector of channels of one pixel. Inlined with constant `silu`. */
SIMD_INLINE vec slope_of(int silu, vec x, vec dy, vec scale, vec shift)
{
    return silu ? v_mul(dy, v_silu_slope(v_fma(x, scale, shift))) : dy;
}

/* A vector of the `left` channels from `channel` on, one chunk of pixels, in whose table `row` lies: sums of d and of d (x - mean). */
SIMD_INLINE void sum_chunk(const simd_norm_gradient *g, ptrdiff_t row, ptrdiff_t channel, ptrdiff_t pixel,
                           ptrdiff_t left, ptrdiff_t pixels, int silu, vec *sum, vec *product)
{
    const vec scale = v_load_part(g->scale + row + channel, left), shift = v_load_part(g->shift + row + channel, left);
    const vec mean = v_load_part(g->group_mean + row + channel, left);
    const float *x = g->x + pixel * g->x_stride + channel, *dy = g->dy + pixel * g->dy_stride + channel;
    vec s = v_zero(), t = v_zero();
    for (ptrdiff_t p = 0; p < pixels; p++, x += g->x_stride, dy += g->dy_stride) {
        const vec value = v_load_part(x, left), d = slope_of(silu, value, v_load_part(dy, left), scale, shift);
        s = v_add(s, d);
        t = v_fma(d, v_sub(value, mean), t);
    }
    *sum = s;
    *product = t;
}

/* Chunks are summed in float, and the chunks in double. A chunk of a strip stays in the first cache while its vectors
 * are taken one by one. */
static void sums_strip(const norm_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t last)
{
    const simd_norm *norm = job->norm;
    const ptrdiff_t row = image * norm->stride;
    const int vectors = vectors_of(last - first);
    vec_double sums[VECTORS], products[VECTORS];
    for (int i = 0; i < VECTORS; i++) sums[i] = products[i] = vd_zero();
    for (ptrdiff_t p = 0; p < norm->pixels; p += CHUNK) {
        const ptrdiff_t pixel = image * norm->pixels + p, count = psld_min(CHUNK, norm->pixels - p);
        for (int i = 0; i < vectors; i++) {
            const ptrdiff_t channel = first + V_LANES * i, left = last - channel;
            vec sum, product;
            if (norm->silu)
                sum_chunk(job->gradient, row, channel, pixel, left, count, 1, &sum, &product);
            else
                sum_chunk(job->gradient, row, channel, pixel, left, count, 0, &sum, &product);
            sums[i] = vd_add(sums[i], sum);
            products[i] = vd_add(products[i], product);
        }
    }
    float *by_gamma = job->sums + 2 * row + first, *by_beta = by_gamma + norm->stride;
    for (int i = 0; i < vectors; i++) {
        const ptrdiff_t c = V_LANES * i, left = last - first - c;
        const vec rstd = v_load_part(job->gradient->group_rstd + row + first + c, left);
        v_store_part(by_gamma + c, left, v_mul(rstd, vd_to_float(products[i])));
        v_store_part(by_beta + c, left, vd_to_float(sums[i]));
    }
}

static void sums_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const ptrdiff_t count = strips(job->norm), width = psld_round8(job->norm->channels);
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        sums_strip(job, i / count, i % count * STRIP, psld_min(width, (i % count + 1) * STRIP));
}

void simd_norm_sums(const simd_norm *norm, const simd_norm_gradient *gradient, float *sums)
{
    norm_job job = {.norm = norm, .gradient = gradient, .sums = sums};
    psld_parallel((size_t)(norm->images * strips(norm)), 1, sums_range, &job);
}

/* The coefficients of one group of one image, from its sums. */
static void group_coefficients(const norm_job *job, const float *sums, ptrdiff_t row, ptrdiff_t first, float *k1,
                               float *k2, float *k3)
{
    const simd_norm *norm = job->norm;
    const simd_norm_gradient *g = job->gradient;
    const ptrdiff_t count = norm->channels / norm->groups;
    const double rstd = (double)g->group_rstd[row + first], n = (double)(count * norm->pixels);
    double a = 0, b = 0;
    for (ptrdiff_t c = first; c < first + count; c++) {
        a += (double)g->gamma[c] * (double)sums[norm->stride + c];
        b += (double)g->gamma[c] * (double)sums[c];
    }
    for (ptrdiff_t c = first; c < first + count; c++) {
        k1[row + c] = (float)(rstd * (double)g->gamma[c]);
        k2[row + c] = (float)(-rstd * rstd * b / n);
        k3[row + c] = (float)(-rstd * a / n);
    }
}

SIMD_INLINE void apply_pixels(const norm_job *job, ptrdiff_t begin, ptrdiff_t end, int silu)
{
    const simd_norm *norm = job->norm;
    const simd_norm_gradient *g = job->gradient;
    const ptrdiff_t width = psld_round8(norm->channels);
    for (ptrdiff_t p = begin; p < end; p++) {
        const ptrdiff_t row = p / norm->pixels * norm->stride;
        const float *x = g->x + p * g->x_stride, *dy = g->dy + p * g->dy_stride;
        float *dx = job->dx + p * job->dx_stride;
        for (ptrdiff_t c = 0; c < width; c += V_LANES) {
            const ptrdiff_t left = width - c, at = row + c;
            const vec value = v_load_part(x + c, left), away = v_sub(value, v_load_part(g->group_mean + at, left));
            const vec d = slope_of(silu, value, v_load_part(dy + c, left), v_load_part(g->scale + at, left),
                                   v_load_part(g->shift + at, left));
            const vec rest = v_fma(away, v_load_part(job->k2 + at, left), v_load_part(job->k3 + at, left));
            v_store_part(dx + c, left, v_fma(d, v_load_part(job->k1 + at, left), rest));
        }
    }
}

static void apply_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    if (job->norm->silu)
        apply_pixels(job, (ptrdiff_t)begin, (ptrdiff_t)end, 1);
    else
        apply_pixels(job, (ptrdiff_t)begin, (ptrdiff_t)end, 0);
}

ptrdiff_t simd_norm_dx_scratch(const simd_norm *norm)
{
    return 3 * norm->images * norm->stride;
}

void simd_norm_dx(const simd_norm *norm, const simd_norm_gradient *gradient, const float *sums, float *dx,
                  ptrdiff_t dx_stride, float *scratch)
{
    const ptrdiff_t table = norm->images * norm->stride;
    float *k1 = scratch, *k2 = k1 + table, *k3 = k2 + table;
    norm_job job = {.norm = norm, .gradient = gradient, .k1 = k1, .k2 = k2, .k3 = k3, .dx = dx};
    job.dx_stride = dx_stride;
    for (ptrdiff_t image = 0; image < norm->images; image++) {
        const ptrdiff_t row = image * norm->stride;
        for (ptrdiff_t c = 0; c < norm->channels; c += norm->channels / norm->groups)
            group_coefficients(&job, sums + 2 * row, row, c, k1, k2, k3);
        set_padding(norm, k1 + row), set_padding(norm, k2 + row), set_padding(norm, k3 + row);
    }
    psld_parallel((size_t)(norm->images * norm->pixels), (size_t)(16384 / psld_round8(norm->channels) + 1), apply_range,
                  &job);
}
