#include "kernels/simd/rows.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

/* Floats that make a range of psld_parallel worth its while. */
enum { GRAIN = 1 << 14 };

static size_t grain_pixels(ptrdiff_t channels)
{
    return (size_t)(GRAIN / psld_round8(channels) + 1);
}

/* ---- Fill and finish --------------------------------------------------------------------------------------------- */

void simd_copy(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    const ptrdiff_t width = psld_round8(channels);
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += V_LANES) v_store_part(y + c, width - c, v_load_part(x + c, width - c));
}

SIMD_INLINE vec affine_part(const float *x, const float *scale, const float *shift, ptrdiff_t left)
{
    return v_fma(v_load_part(x, left), v_load_part(scale, left), v_load_part(shift, left));
}

static void affine_pixels(ptrdiff_t pixels, ptrdiff_t width, const float *scale, const float *shift, const float *x,
                          ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += V_LANES)
            v_store_part(y + c, width - c, affine_part(x + c, scale + c, shift + c, width - c));
}

static void affine_silu_pixels(ptrdiff_t pixels, ptrdiff_t width, const float *scale, const float *shift,
                               const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    for (ptrdiff_t p = 0; p < pixels; p++, x += x_stride, y += y_stride)
        for (ptrdiff_t c = 0; c < width; c += V_LANES)
            v_store_part(y + c, width - c, v_silu(affine_part(x + c, scale + c, shift + c, width - c)));
}

static void fill_pixels(const simd_fill *fill, ptrdiff_t image, ptrdiff_t pixels, ptrdiff_t channels, const float *x,
                        ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    const ptrdiff_t width = psld_round8(channels);
    const float *scale = fill->scale + image * fill->stride, *shift = fill->shift + image * fill->stride;
    if (fill->silu)
        affine_silu_pixels(pixels, width, scale, shift, x, x_stride, y, y_stride);
    else
        affine_pixels(pixels, width, scale, shift, x, x_stride, y, y_stride);
}

void simd_finish_rows(const simd_finish *finish, int skip_bias, float *y, ptrdiff_t y_stride, ptrdiff_t begin,
                      ptrdiff_t end, ptrdiff_t pixels, ptrdiff_t first, ptrdiff_t count)
{
    const float *bias = skip_bias ? NULL : finish->bias, *residual = finish->residual;
    const int scaled = finish->scale < 1.0F || finish->scale > 1.0F;
    if (!bias && !residual && !scaled && !finish->relu) return;
    const vec scale = v_set(finish->scale);
    for (ptrdiff_t p = begin; p < end; p++) {
        const float *pixel_bias = bias ? bias + p / pixels * finish->bias_stride : NULL;
        const float *pixel_residual = residual ? residual + p * finish->residual_stride : NULL;
        for (ptrdiff_t c = first; c < first + count; c += V_LANES) {
            const ptrdiff_t left = first + count - c;
            vec v = v_load_part(y + p * y_stride + c, left);
            if (pixel_bias) v = v_add(v, v_load_part(pixel_bias + c, left));
            if (pixel_residual) v = v_add(v, v_load_part(pixel_residual + c, left));
            if (scaled) v = v_mul(v, scale);
            if (finish->relu) v = v_max(v, v_zero());
            v_store_part(y + p * y_stride + c, left, v);
        }
    }
}

/* ---- Elementwise ------------------------------------------------------------------------------------------------- */

typedef struct {
    const simd_fill *fill;
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

void simd_affine(const simd_fill *fill, ptrdiff_t images, ptrdiff_t pixels, ptrdiff_t channels, const float *x,
                 ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
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
        for (ptrdiff_t c = 0; c < width; c += V_LANES)
            v_store_part(e->y + p * e->y_stride + c, width - c,
                         v_silu(v_load_part(e->a + p * e->a_stride + c, width - c)));
}

void simd_silu(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride)
{
    elementwise e = {.channels = channels, .a = x, .a_stride = x_stride, .y = y, .y_stride = y_stride};
    psld_parallel((size_t)pixels, grain_pixels(channels), silu_range, &e);
}

static void silu_dx_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++)
        for (ptrdiff_t c = 0; c < width; c += V_LANES) {
            const vec slope = v_silu_slope(v_load_part(e->a + p * e->a_stride + c, width - c));
            v_store_part(e->y + p * e->y_stride + c, width - c,
                         v_mul(v_load_part(e->b + p * e->b_stride + c, width - c), slope));
        }
}

void simd_silu_dx(ptrdiff_t pixels, ptrdiff_t channels, const float *x, ptrdiff_t x_stride, const float *dy,
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
    const vec fa = v_set(e->fa), fb = v_set(e->fb);
    for (ptrdiff_t p = (ptrdiff_t)begin; p < (ptrdiff_t)end; p++)
        for (ptrdiff_t c = 0; c < width; c += V_LANES) {
            vec v = v_mul(v_load_part(e->a + p * e->a_stride + c, width - c), fa);
            if (e->b) v = v_fma(v_load_part(e->b + p * e->b_stride + c, width - c), fb, v);
            v_store_part(e->y + p * e->y_stride + c, width - c, v);
        }
}

void simd_add(ptrdiff_t pixels, ptrdiff_t channels, const float *a, ptrdiff_t a_stride, float fa, const float *b,
              ptrdiff_t b_stride, float fb, float *y, ptrdiff_t y_stride)
{
    elementwise e = {.channels = channels, .a = a, .a_stride = a_stride, .fa = fa};
    e.b = b, e.b_stride = b_stride, e.fb = fb, e.y = y, e.y_stride = y_stride;
    psld_parallel((size_t)pixels, grain_pixels(channels), add_pixel_range, &e);
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 32, STRIP = 64, VECTORS = STRIP / V_LANES };

/* `width` channels over all pixels: chunks in float, the chunks in double. */
static void sum_strip(const elementwise *e, ptrdiff_t first, ptrdiff_t width)
{
    const int vectors = (int)((width + V_LANES - 1) / V_LANES);
    vec_double sums[VECTORS];
    for (int i = 0; i < VECTORS; i++) sums[i] = vd_zero();
    for (ptrdiff_t p = 0; p < e->pixels; p += CHUNK) {
        vec sum[VECTORS];
        for (int i = 0; i < vectors; i++) sum[i] = v_zero();
        const float *a = e->a + p * e->a_stride + first;
        for (ptrdiff_t n = psld_min(CHUNK, e->pixels - p); n > 0; n--, a += e->a_stride)
            for (int i = 0; i < vectors; i++) sum[i] = v_add(sum[i], v_load_part(a + V_LANES * i, width - V_LANES * i));
        for (int i = 0; i < vectors; i++) sums[i] = vd_add(sums[i], sum[i]);
    }
    for (int i = 0; i < vectors; i++) {
        const ptrdiff_t left = width - V_LANES * i;
        float *y = e->y + first + V_LANES * i;
        const vec total = vd_to_float(sums[i]);
        v_store_part(y, left, e->fa > 0 ? v_add(v_load_part(y, left), total) : total);
    }
}

static void sum_range(void *context, size_t begin, size_t end)
{
    const elementwise *e = context;
    const ptrdiff_t width = psld_round8(e->channels);
    for (ptrdiff_t c = (ptrdiff_t)begin * STRIP; c < psld_min(width, (ptrdiff_t)end * STRIP); c += STRIP)
        sum_strip(e, c, psld_min(STRIP, width - c));
}

void simd_sum_pixels(ptrdiff_t pixels, ptrdiff_t channels, const float *y, ptrdiff_t y_stride, float *sum,
                     int accumulate)
{
    elementwise e = {.pixels = pixels, .channels = channels, .a = y, .a_stride = y_stride, .y = sum};
    e.fa = accumulate ? 1.0F : 0.0F;
    psld_parallel((size_t)((psld_round8(channels) + STRIP - 1) / STRIP), 1, sum_range, &e);
}

/* The last vector of a row, lanes beyond it replaced by `other`. */
SIMD_INLINE vec load_rest(const float *x, ptrdiff_t count, float other)
{
    return v_first(count, v_load_first(x, count), v_set(other));
}

static vec row_largest(ptrdiff_t columns, const float *x)
{
    vec a = v_set(-__builtin_inff()), b = a;
    ptrdiff_t i = 0;
    for (; i + 2 * V_LANES <= columns; i += 2 * V_LANES) {
        a = v_max(v_load(x + i), a);
        b = v_max(v_load(x + i + V_LANES), b);
    }
    for (; i < columns; i += V_LANES) a = v_max(load_rest(x + i, columns - i, -__builtin_inff()), a);
    return v_set(v_largest(v_max(a, b)));
}

static void softmax_row(ptrdiff_t columns, ptrdiff_t padded, float factor, float *x)
{
    const vec largest = row_largest(columns, x), scale = v_set(factor * V_LOG2E);
    const ptrdiff_t width = psld_round8(columns);
    vec sum = v_zero();
    ptrdiff_t i = 0;
    for (; i + V_LANES <= columns; i += V_LANES) {
        const vec e = v_exp2(v_mul(v_sub(v_load(x + i), largest), scale));
        v_store(x + i, e);
        sum = v_add(sum, e);
    }
    for (; i < width; i += V_LANES) { /* up to where the lanes of the row end */
        const vec e = v_exp2(v_mul(v_sub(load_rest(x + i, columns - i, 0), largest), scale));
        const vec kept = v_first(columns - i, e, v_zero());
        v_store_part(x + i, width - i, kept);
        sum = v_add(sum, kept);
    }
    const vec norm = v_set(1.0F / v_sum(sum));
    for (i = 0; i < width; i += V_LANES) v_store_part(x + i, width - i, v_mul(v_load_part(x + i, width - i), norm));
    for (i = width; i < padded; i += V_LANES) v_store_part(x + i, padded - i, v_zero());
}

void simd_softmax_rows(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t padded, float factor, float *x, ptrdiff_t x_stride)
{
    for (ptrdiff_t row = 0; row < rows; row++) softmax_row(columns, padded, factor, x + row * x_stride);
}
