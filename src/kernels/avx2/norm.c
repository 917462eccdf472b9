/* With n = pixels x channels of a group, h = (x - mean) rstd and d = dy silu'(z) the gradient is
 *
 *     dx = rstd (gamma d - a - h b),    a = sum(gamma d) / n,    b = sum(gamma d h) / n,    sums over the group,
 *     dgamma = sum(d h),    dbeta = sum(d)    over images and pixels.
 *
 * The first pass sums d h and d over the pixels of each image and channel. The second makes d once more, which costs
 * less than keeping it, and dx = d k1 + (x - mean) k2 + k3 with k1 = rstd gamma, k2 = -rstd^2 b, k3 = -rstd a. */
#include "kernels/avx2/norm.h"

#include <math.h>

#include "base/threads.h"
#include "kernels/avx2/sizes.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

/* Pixels that are summed in float, and channels of a task: whole cache lines, since memory is read in this pattern. */
enum { CHUNK = 32, STRIP = 64, VECTORS = STRIP / 8 };

typedef struct {
    const psld_norm_avx2 *norm;
    const float *x;
    ptrdiff_t x_stride;
    float *mean, *square;
    const psld_norm_gradient_avx2 *gradient;
    float *sums;               /* [image][2][stride]: d h, d */
    const float *k1, *k2, *k3; /* [image][stride] */
    float *dx;
    ptrdiff_t dx_stride;
} norm_job;

static ptrdiff_t strips(const psld_norm_avx2 *norm)
{
    return (psld_round8(norm->channels) + STRIP - 1) / STRIP;
}

/* ---- Moments ----------------------------------------------------------------------------------------------------- */

/* Means of `count` vectors of channels over one chunk, and the squares about them. Inlined with constant `count`. */
V8_INLINE void chunk_moments(int count, const float *x, ptrdiff_t stride, ptrdiff_t pixels, v8 *mean, v8 *square)
{
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) mean[i] = square[i] = v8_zero();
    for (ptrdiff_t p = 0; p < pixels; p++)
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) mean[i] = v8_add(mean[i], v8_load(x + p * stride + 8 * i));
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) mean[i] = v8_mul(mean[i], v8_set(1.0F / (float)pixels));
    for (ptrdiff_t p = 0; p < pixels; p++)
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const v8 d = v8_sub(v8_load(x + p * stride + 8 * i), mean[i]);
            square[i] = v8_fma(d, d, square[i]);
        }
}

/* Means and squares of two disjoint sets give those of their union (Chan, Golub and LeVeque). Here the `before`
 * pixels that means and squares are of already, and a chunk of `count`. */
static void join_moments(int vectors, const v8 *mean, const v8 *square, ptrdiff_t before, ptrdiff_t count, float *means,
                         float *squares)
{
    const v8 weight = v8_set((float)count / (float)(before + count));
    const v8 between = v8_mul(weight, v8_set((float)before));
    for (int i = 0; i < vectors; i++) {
        v8 m = mean[i], s = square[i];
        if (before > 0) {
            const v8 old = v8_load(means + 8 * i), step = v8_sub(m, old);
            s = v8_fma(v8_mul(step, step), between, v8_add(v8_load(squares + 8 * i), s));
            m = v8_fma(step, weight, old);
        }
        v8_store(means + 8 * i, m);
        v8_store(squares + 8 * i, s);
    }
}

static void moments_strip(const norm_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t last)
{
    const psld_norm_avx2 *norm = job->norm;
    const int vectors = (int)(last - first) / 8;
    for (ptrdiff_t p = 0; p < norm->pixels; p += CHUNK) {
        const ptrdiff_t count = psld_min(CHUNK, norm->pixels - p), row = image * norm->stride + first;
        const float *x = job->x + (image * norm->pixels + p) * job->x_stride + first;
        v8 mean[VECTORS], square[VECTORS];
        if (vectors == VECTORS)
            chunk_moments(VECTORS, x, job->x_stride, count, mean, square);
        else
            chunk_moments(vectors, x, job->x_stride, count, mean, square);
        join_moments(vectors, mean, square, p, count, job->mean + row, job->square + row);
    }
}

static void moments_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const ptrdiff_t count = strips(job->norm), width = psld_round8(job->norm->channels);
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        moments_strip(job, i / count, i % count * STRIP, psld_min(width, (i % count + 1) * STRIP));
}

void psld_moments_avx2(const psld_norm_avx2 *norm, const float *x, ptrdiff_t x_stride, float *mean, float *square)
{
    norm_job job = {.norm = norm, .x = x, .x_stride = x_stride, .mean = mean, .square = square};
    psld_parallel((size_t)(norm->images * strips(norm)), 1, moments_range, &job);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Mean and 1 / sqrt(variance + epsilon) of a group. */
static void group_moments(const psld_norm_avx2 *norm, const float *mean, const float *square, double *group_mean,
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

static void set_padding(const psld_norm_avx2 *norm, float *table)
{
    for (ptrdiff_t c = norm->channels; table && c < psld_round8(norm->channels); c++) table[c] = 0;
}

void psld_norm_tables_avx2(const psld_norm_avx2 *norm, const float *mean, const float *square, const float *gamma,
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

/* Four doubles from each half of x are added to sum[0], sum[1]. */
V8_INLINE void add_to_doubles(v8 x, __m256d *sum)
{
    sum[0] = _mm256_add_pd(sum[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    sum[1] = _mm256_add_pd(sum[1], _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

V8_INLINE v8 from_doubles(const __m256d *sum)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(sum[1]), _mm256_cvtpd_ps(sum[0]));
}

/* d of eight channels of one pixel. Inlined with constant `silu`. */
V8_INLINE v8 slope8(int silu, v8 x, v8 dy, v8 scale, v8 shift)
{
    return silu ? v8_mul(dy, v8_silu_slope(v8_fma(x, scale, shift))) : dy;
}

/* One vector of channels, one chunk of pixels, in whose table `row` lies: sums of d and of d (x - mean). */
V8_INLINE void sum_chunk(const psld_norm_gradient_avx2 *g, ptrdiff_t row, ptrdiff_t channel, ptrdiff_t pixel,
                         ptrdiff_t pixels, int silu, v8 *sum, v8 *product)
{
    const v8 scale = v8_load(g->scale + row + channel), shift = v8_load(g->shift + row + channel);
    const v8 mean = v8_load(g->group_mean + row + channel);
    const float *x = g->x + pixel * g->x_stride + channel, *dy = g->dy + pixel * g->dy_stride + channel;
    v8 s = v8_zero(), t = v8_zero();
    for (ptrdiff_t p = 0; p < pixels; p++, x += g->x_stride, dy += g->dy_stride) {
        const v8 value = v8_load(x), d = slope8(silu, value, v8_load(dy), scale, shift);
        s = v8_add(s, d);
        t = v8_fma(d, v8_sub(value, mean), t);
    }
    *sum = s;
    *product = t;
}

/* Chunks are summed in float, and the chunks in double. A chunk of a strip stays in the first cache while its vectors
 * are taken one by one. */
static void sums_strip(const norm_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t last)
{
    const psld_norm_avx2 *norm = job->norm;
    const ptrdiff_t row = image * norm->stride;
    const int vectors = (int)(last - first) / 8;
    __m256d sums[VECTORS][2], products[VECTORS][2];
    for (int i = 0; i < VECTORS; i++) sums[i][0] = sums[i][1] = products[i][0] = products[i][1] = _mm256_setzero_pd();
    for (ptrdiff_t p = 0; p < norm->pixels; p += CHUNK) {
        const ptrdiff_t pixel = image * norm->pixels + p, count = psld_min(CHUNK, norm->pixels - p);
        for (int i = 0; i < vectors; i++) {
            v8 sum, product;
            if (norm->silu)
                sum_chunk(job->gradient, row, first + 8 * i, pixel, count, 1, &sum, &product);
            else
                sum_chunk(job->gradient, row, first + 8 * i, pixel, count, 0, &sum, &product);
            add_to_doubles(sum, sums[i]);
            add_to_doubles(product, products[i]);
        }
    }
    float *by_gamma = job->sums + 2 * row + first, *by_beta = by_gamma + norm->stride;
    for (int i = 0; i < vectors; i++) {
        const v8 rstd = v8_load(job->gradient->group_rstd + row + first + 8 * i);
        v8_store(by_gamma + 8 * i, v8_mul(rstd, from_doubles(products[i])));
        v8_store(by_beta + 8 * i, from_doubles(sums[i]));
    }
}

static void sums_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const ptrdiff_t count = strips(job->norm), width = psld_round8(job->norm->channels);
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        sums_strip(job, i / count, i % count * STRIP, psld_min(width, (i % count + 1) * STRIP));
}

void psld_norm_sums_avx2(const psld_norm_avx2 *norm, const psld_norm_gradient_avx2 *gradient, float *sums)
{
    norm_job job = {.norm = norm, .gradient = gradient, .sums = sums};
    psld_parallel((size_t)(norm->images * strips(norm)), 1, sums_range, &job);
}

/* The coefficients of one group of one image, from its sums. */
static void group_coefficients(const norm_job *job, const float *sums, ptrdiff_t row, ptrdiff_t first, float *k1,
                               float *k2, float *k3)
{
    const psld_norm_avx2 *norm = job->norm;
    const psld_norm_gradient_avx2 *g = job->gradient;
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

V8_INLINE void apply_pixels(const norm_job *job, ptrdiff_t begin, ptrdiff_t end, int silu)
{
    const psld_norm_avx2 *norm = job->norm;
    const psld_norm_gradient_avx2 *g = job->gradient;
    const ptrdiff_t width = psld_round8(norm->channels);
    for (ptrdiff_t p = begin; p < end; p++) {
        const ptrdiff_t row = p / norm->pixels * norm->stride;
        const float *x = g->x + p * g->x_stride, *dy = g->dy + p * g->dy_stride;
        float *dx = job->dx + p * job->dx_stride;
        for (ptrdiff_t c = 0; c < width; c += 8) {
            const v8 value = v8_load(x + c), away = v8_sub(value, v8_load(g->group_mean + row + c));
            const v8 d = slope8(silu, value, v8_load(dy + c), v8_load(g->scale + row + c), v8_load(g->shift + row + c));
            const v8 rest = v8_fma(away, v8_load(job->k2 + row + c), v8_load(job->k3 + row + c));
            v8_store(dx + c, v8_fma(d, v8_load(job->k1 + row + c), rest));
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

ptrdiff_t psld_norm_dx_scratch_avx2(const psld_norm_avx2 *norm)
{
    return 3 * norm->images * norm->stride;
}

void psld_norm_dx_avx2(const psld_norm_avx2 *norm, const psld_norm_gradient_avx2 *gradient, const float *sums,
                       float *dx, ptrdiff_t dx_stride, float *scratch)
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

#endif
