/* With n = pixels x channels of a group, h = (x - mean) rstd and d = dy silu'(z) the gradient is
 *
 *     dx = rstd (gamma d - a - h b),    a = sum(gamma d) / n,    b = sum(gamma d h) / n,    sums over the group,
 *     dgamma = sum(d h),    dbeta = sum(d)    over images and pixels.
 *
 * The first pass writes d to dx and sums d and d (x - mean) for every channel; the second applies
 * dx = d k1 + (x - mean) k2 + k3 with k1 = rstd gamma, k2 = -rstd^2 b, k3 = -rstd a. */
#include "kernels/avx2/norm.h"

#include <math.h>

#include "base/threads.h"
#include "kernels/avx2/tasks.h"
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
    float *sums;               /* [image][2][stride]: d, d (x - mean) */
    const float *k1, *k2, *k3; /* [image][stride] */
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
        const ptrdiff_t count = psld_least(CHUNK, norm->pixels - p), row = image * norm->stride + first;
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
        moments_strip(job, i / count, i % count * STRIP, psld_least(width, (i % count + 1) * STRIP));
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

/* `count` vectors of channels, one chunk of pixels: d to dx, sums of d and of d (x - mean). Inlined with constant
 * `silu`. */
V8_INLINE void gradient_chunk(const psld_norm_gradient_avx2 *g, ptrdiff_t row, ptrdiff_t channel, ptrdiff_t pixel,
                              ptrdiff_t pixels, int count, int silu, v8 *sum, v8 *product)
{
    for (int i = 0; i < count; i++) sum[i] = product[i] = v8_zero();
    for (ptrdiff_t p = pixel; p < pixel + pixels; p++)
        for (int i = 0; i < count; i++) {
            const ptrdiff_t c = channel + 8 * i;
            const v8 value = v8_load(g->x + p * g->x_stride + c);
            v8 d = v8_load(g->dy + p * g->dy_stride + c);
            if (silu) {
                const v8 z = v8_fma(value, v8_load(g->scale + row + c), v8_load(g->shift + row + c));
                d = v8_mul(d, v8_silu_slope(z));
            }
            if (g->dx) v8_store(g->dx + p * g->dx_stride + c, d);
            sum[i] = v8_add(sum[i], d);
            product[i] = v8_fma(d, v8_sub(value, v8_load(g->group_mean + row + c)), product[i]);
        }
}

/* Chunks are summed in float, and the chunks in double. */
static void sums_strip(const norm_job *job, ptrdiff_t image, ptrdiff_t first, ptrdiff_t last)
{
    const psld_norm_avx2 *norm = job->norm;
    const int vectors = (int)(last - first) / 8;
    __m256d sums[VECTORS][2], products[VECTORS][2];
    for (int i = 0; i < VECTORS; i++) sums[i][0] = sums[i][1] = products[i][0] = products[i][1] = _mm256_setzero_pd();
    for (ptrdiff_t p = 0; p < norm->pixels; p += CHUNK) {
        v8 sum[VECTORS], product[VECTORS];
        const ptrdiff_t row = image * norm->stride, pixel = image * norm->pixels + p;
        const ptrdiff_t count = psld_least(CHUNK, norm->pixels - p);
        if (norm->silu)
            gradient_chunk(job->gradient, row, first, pixel, count, vectors, 1, sum, product);
        else
            gradient_chunk(job->gradient, row, first, pixel, count, vectors, 0, sum, product);
        for (int i = 0; i < vectors; i++) {
            add_to_doubles(sum[i], sums[i]);
            add_to_doubles(product[i], products[i]);
        }
    }
    float *to = job->sums + image * 2 * norm->stride + first;
    for (int i = 0; i < vectors; i++) {
        v8_store(to + 8 * i, from_doubles(sums[i]));
        v8_store(to + norm->stride + 8 * i, from_doubles(products[i]));
    }
}

static void sums_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const ptrdiff_t count = strips(job->norm), width = psld_round8(job->norm->channels);
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        sums_strip(job, i / count, i % count * STRIP, psld_least(width, (i % count + 1) * STRIP));
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
        a += (double)g->gamma[c] * (double)sums[c];
        b += (double)g->gamma[c] * (double)sums[norm->stride + c] * rstd;
    }
    for (ptrdiff_t c = first; c < first + count; c++) {
        k1[row + c] = (float)(rstd * (double)g->gamma[c]);
        k2[row + c] = (float)(-rstd * rstd * b / n);
        k3[row + c] = (float)(-rstd * a / n);
    }
}

static void parameter_gradients(const norm_job *job)
{
    const psld_norm_avx2 *norm = job->norm;
    const psld_norm_gradient_avx2 *g = job->gradient;
    for (ptrdiff_t c = 0; c < psld_round8(norm->channels); c++) {
        double scale = 0, shift = 0;
        for (ptrdiff_t image = 0; image < norm->images; image++) {
            const float *sums = job->sums + image * 2 * norm->stride;
            shift += (double)sums[c];
            scale += (double)sums[norm->stride + c] * (double)g->group_rstd[image * norm->stride + c];
        }
        if (g->dgamma) g->dgamma[c] = (float)scale + (g->accumulate ? g->dgamma[c] : 0);
        if (g->dbeta) g->dbeta[c] = (float)shift + (g->accumulate ? g->dbeta[c] : 0);
    }
}

static void apply_range(void *context, size_t begin, size_t end)
{
    const norm_job *job = context;
    const psld_norm_avx2 *norm = job->norm;
    const psld_norm_gradient_avx2 *g = job->gradient;
    const ptrdiff_t width = psld_round8(norm->channels);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++) {
        const ptrdiff_t row = p / norm->pixels * norm->stride;
        const float *x = g->x + p * g->x_stride;
        float *dx = g->dx + p * g->dx_stride;
        for (ptrdiff_t c = 0; c < width; c += 8) {
            const v8 away = v8_sub(v8_load(x + c), v8_load(g->group_mean + row + c));
            const v8 rest = v8_fma(away, v8_load(job->k2 + row + c), v8_load(job->k3 + row + c));
            v8_store(dx + c, v8_fma(v8_load(dx + c), v8_load(job->k1 + row + c), rest));
        }
    }
}

ptrdiff_t psld_norm_dx_scratch_avx2(const psld_norm_avx2 *norm)
{
    return 5 * norm->images * norm->stride;
}

void psld_norm_dx_avx2(const psld_norm_avx2 *norm, const psld_norm_gradient_avx2 *gradient, float *scratch)
{
    const ptrdiff_t table = norm->images * norm->stride;
    float *k1 = scratch + 2 * table, *k2 = k1 + table, *k3 = k2 + table;
    norm_job job = {.norm = norm, .gradient = gradient, .sums = scratch, .k1 = k1, .k2 = k2, .k3 = k3};
    psld_parallel((size_t)(norm->images * strips(norm)), 1, sums_range, &job);
    for (ptrdiff_t image = 0; image < norm->images; image++) {
        const ptrdiff_t row = image * norm->stride;
        for (ptrdiff_t c = 0; c < norm->channels; c += norm->channels / norm->groups)
            group_coefficients(&job, scratch + 2 * row, row, c, k1, k2, k3);
        set_padding(norm, k1 + row);
        set_padding(norm, k2 + row);
        set_padding(norm, k3 + row);
    }
    parameter_gradients(&job);
    if (!gradient->dx) return;
    psld_parallel((size_t)(norm->images * norm->pixels), (size_t)(16384 / psld_round8(norm->channels) + 1), apply_range,
                  &job);
}

#endif
