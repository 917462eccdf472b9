#include "kernels/avx2/rows.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/avx2/sizes.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

/* Floats that make a range of psld_parallel worth its while. */
enum { GRAIN = 1 << 14 };

static size_t grain_pixels(ptrdiff_t channels)
{
    return (size_t)(GRAIN / psld_round8(channels) + 1);
}

/* ---- Fill and finish --------------------------------------------------------------------------------------------- */

void psld_copy_avx2(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y,
                    ptrdiff_t y_stride)
{
    const ptrdiff_t width = psld_round8(channels);
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += 8) v8_store(y + c, v8_load(x + c));
}

static void affine_pixels(ptrdiff_t pixels, ptrdiff_t width, const float *scale, const float *shift, const float *x,
                          ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += 8)
            v8_store(y + c, v8_fma(v8_load(x + c), v8_load(scale + c), v8_load(shift + c)));
}

static void affine_silu_pixels(ptrdiff_t pixels, ptrdiff_t width, const float *scale, const float *shift,
                               const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += 8)
            v8_store(y + c, v8_silu(v8_fma(v8_load(x + c), v8_load(scale + c), v8_load(shift + c))));
}

static void fill_pixels(const psld_fill_avx2 *fill, ptrdiff_t image, ptrdiff_t pixels, ptrdiff_t channels,
                        const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    const ptrdiff_t width = psld_round8(channels);
    const float *scale = fill->scale + image * fill->stride, *shift = fill->shift + image * fill->stride;
    if (fill->silu)
        affine_silu_pixels(pixels, width, scale, shift, x, x_stride, y, y_stride);
    else
        affine_pixels(pixels, width, scale, shift, x, x_stride, y, y_stride);
}

void psld_finish_rows_avx2(const psld_finish_avx2 *finish, int skip_bias, float *y, ptrdiff_t y_stride, ptrdiff_t begin,
                           ptrdiff_t end, ptrdiff_t pixels, ptrdiff_t first, ptrdiff_t count)
{
    const float *bias = skip_bias ? NULL : finish->bias, *residual = finish->residual;
    const int scaled = finish->scale < 1.0F || finish->scale > 1.0F;
    if (!bias && !residual && !scaled && !finish->relu) return;
    const v8 scale = v8_set(finish->scale);
    for (ptrdiff_t p = begin; p < end; p++) {
        const float *pixel_bias = bias ? bias + p / pixels * finish->bias_stride : NULL;
        const float *pixel_residual = residual ? residual + p * finish->residual_stride : NULL;
        for (ptrdiff_t c = first; c < first + count; c += 8) {
            v8 v = v8_load(y + p * y_stride + c);
            if (pixel_bias) v = v8_add(v, v8_load(pixel_bias + c));
            if (pixel_residual) v = v8_add(v, v8_load(pixel_residual + c));
            if (scaled) v = v8_mul(v, scale);
            if (finish->relu) v = _mm256_max_ps(v, v8_zero());
            v8_store(y + p * y_stride + c, v);
        }
    }
}

/* ---- Elementwise ------------------------------------------------------------------------------------------------- */

typedef struct {
    const psld_fill_avx2 *fill;
    ptrdiff_t pixels, channels; /* pixels of an image, for fill */
    const float *a, *b;
    float *y;
    ptrdiff_t a_stride, b_stride, y_stride;
    float fa, fb;
} elementwise;

static void affine_pixel_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    for (ptrdiff_t p = (ptrdiff_t)begin, stop = (ptrdiff_t)end, next = 0; p < stop; p = next) {
        const ptrdiff_t image = p / e->pixels;
        next = psld_min(stop, (image + 1) * e->pixels);
        fill_pixels(e->fill, image, next - p, e->channels, e->a + p * e->a_stride, e->a_stride, e->y + p * e->y_stride,
                    e->y_stride);
    }
}

void psld_affine_avx2(const psld_fill_avx2 *fill, ptrdiff_t images, ptrdiff_t pixels, ptrdiff_t channels,
                      const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    elementwise e = {.fill = fill, .pixels = pixels, .channels = channels};
    e.a = x, e.a_stride = x_stride, e.y = y, e.y_stride = y_stride;
    psld_parallel((size_t)(images * pixels), grain_pixels(channels), affine_pixel_range, &e);
}

static void silu_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++)
        for (ptrdiff_t c = 0; c < width; c += 8)
            v8_store(e->y + p * e->y_stride + c, v8_silu(v8_load(e->a + p * e->a_stride + c)));
}

void psld_silu_avx2(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y,
                    ptrdiff_t y_stride)
{
    elementwise e = {.channels = channels, .a = x, .a_stride = x_stride, .y = y, .y_stride = y_stride};
    psld_parallel((size_t)pixels, grain_pixels(channels), silu_range, &e);
}

static void silu_dx_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++)
        for (ptrdiff_t c = 0; c < width; c += 8) {
            const v8 slope = v8_silu_slope(v8_load(e->a + p * e->a_stride + c));
            v8_store(e->y + p * e->y_stride + c, v8_mul(v8_load(e->b + p * e->b_stride + c), slope));
        }
}

void psld_silu_dx_avx2(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, const float *dy,
                       ptrdiff_t dy_stride, float *dx, ptrdiff_t dx_stride)
{
    elementwise e = {.channels = channels, .a = x, .a_stride = x_stride, .b = dy, .b_stride = dy_stride};
    e.y = dx, e.y_stride = dx_stride;
    psld_parallel((size_t)pixels, grain_pixels(channels), silu_dx_range, &e);
}

static void add_pixel_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    const v8 fa = v8_set(e->fa), fb = v8_set(e->fb);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++)
        for (ptrdiff_t c = 0; c < width; c += 8) {
            v8 v = v8_mul(v8_load(e->a + p * e->a_stride + c), fa);
            if (e->b) v = v8_fma(v8_load(e->b + p * e->b_stride + c), fb, v);
            v8_store(e->y + p * e->y_stride + c, v);
        }
}

void psld_add_avx2(ptrdiff_t pixels, ptrdiff_t channels, const float *a, ptrdiff_t a_stride, float fa, const float *b,
                   ptrdiff_t b_stride, float fb, float *y, ptrdiff_t y_stride)
{
    elementwise e = {.channels = channels, .a = a, .a_stride = a_stride, .fa = fa};
    e.b = b, e.b_stride = b_stride, e.fb = fb, e.y = y, e.y_stride = y_stride;
    psld_parallel((size_t)pixels, grain_pixels(channels), add_pixel_range, &e);
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 32, STRIP = 64, VECTORS = STRIP / 8 };

/* Up to eight vectors of channels over all pixels: chunks in float, the chunks in double. */
static void sum_strip(const elementwise *e, ptrdiff_t first, int vectors)
{
    __m256d low[VECTORS], high[VECTORS];
    for (int i = 0; i < VECTORS; i++) low[i] = high[i] = _mm256_setzero_pd();
    for (ptrdiff_t p = 0; p < e->pixels; p += CHUNK) {
        v8 sum[VECTORS];
        for (int i = 0; i < vectors; i++) sum[i] = v8_zero();
        const float *a = e->a + p * e->a_stride + first;
        for (ptrdiff_t n = psld_min(CHUNK, e->pixels - p); n > 0; n--, a += e->a_stride)
            for (int i = 0; i < vectors; i++) sum[i] = v8_add(sum[i], v8_load(a + 8 * i));
        for (int i = 0; i < vectors; i++) {
            low[i] = _mm256_add_pd(low[i], _mm256_cvtps_pd(_mm256_castps256_ps128(sum[i])));
            high[i] = _mm256_add_pd(high[i], _mm256_cvtps_pd(_mm256_extractf128_ps(sum[i], 1)));
        }
    }
    for (int i = 0; i < vectors; i++) {
        float *y = e->y + first + 8 * i;
        const v8 total = _mm256_set_m128(_mm256_cvtpd_ps(high[i]), _mm256_cvtpd_ps(low[i]));
        v8_store(y, e->fa > 0 ? v8_add(v8_load(y), total) : total);
    }
}

static void sum_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    for (ptrdiff_t c = (ptrdiff_t)begin * STRIP; c < psld_min(width, (ptrdiff_t)end * STRIP); c += STRIP)
        sum_strip(e, c, (int)psld_min(STRIP, width - c) / 8);
}

void psld_sum_pixels_avx2(ptrdiff_t pixels, ptrdiff_t channels, const float *y, ptrdiff_t y_stride, float *sum,
                          int accumulate)
{
    elementwise e = {.pixels = pixels, .channels = channels, .a = y, .a_stride = y_stride, .y = sum};
    e.fa = accumulate ? 1.0F : 0.0F;
    psld_parallel((size_t)((psld_round8(channels) + STRIP - 1) / STRIP), 1, sum_range, &e);
}

/* The last vector of a row, lanes beyond it replaced by `other`. */
V8_INLINE v8 load_rest(const float *x, ptrdiff_t count, float other)
{
    const v8 mask = v8_mask(count);
    return _mm256_blendv_ps(v8_set(other), _mm256_maskload_ps(x, _mm256_castps_si256(mask)), mask);
}

static v8 row_largest(ptrdiff_t columns, const float *x)
{
    v8 a = v8_set(-__builtin_inff()), b = a;
    ptrdiff_t i = 0;
    for (; i + 16 <= columns; i += 16) {
        a = _mm256_max_ps(v8_load(x + i), a);
        b = _mm256_max_ps(v8_load(x + i + 8), b);
    }
    for (; i < columns; i += 8) a = _mm256_max_ps(load_rest(x + i, columns - i, -__builtin_inff()), a);
    return v8_set(v8_largest(_mm256_max_ps(a, b)));
}

static void softmax_row(ptrdiff_t columns, ptrdiff_t padded, float factor, float *x)
{
    const v8 largest = row_largest(columns, x), scale = v8_set(factor * V8_LOG2E);
    v8 sum = v8_zero();
    ptrdiff_t i = 0;
    for (; i + 8 <= columns; i += 8) {
        const v8 e = v8_exp2(v8_mul(v8_sub(v8_load(x + i), largest), scale));
        v8_store(x + i, e);
        sum = v8_add(sum, e);
    }
    if (i < columns) {
        const v8 e = v8_exp2(v8_mul(v8_sub(load_rest(x + i, columns - i, 0), largest), scale));
        v8_store(x + i, _mm256_and_ps(e, v8_mask(columns - i)));
        sum = v8_add(sum, v8_load(x + i));
    }
    const v8 norm = v8_set(1.0F / v8_sum(sum));
    for (i = 0; i < columns; i += 8) v8_store(x + i, v8_mul(v8_load(x + i), norm));
    for (; i < padded; i += 8) v8_store(x + i, v8_zero());
}

void psld_softmax_rows_avx2(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t padded, float factor, float *x,
                            ptrdiff_t x_stride)
{
    for (ptrdiff_t row = 0; row < rows; row++) softmax_row(columns, padded, factor, x + row * x_stride);
}

#endif
