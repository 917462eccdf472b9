/* U = G w G'. Weights are read in blocks of 16 x 16 from their logical order, and written to all planes of U at once:
 * these lie an odd number of cache lines apart (winograd_u_plane), or they would fight for the same sets of the
 * cache. */
#include "kernels/simd/winograd.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/simd/winograd_transform.h"

typedef struct {
    const simd_conv_shape *shape;
    int mirrored;
    const float *weights;
    float *u;
    uint16_t *half;
} weight_job;

ptrdiff_t simd_winograd_weights_size(const simd_conv_shape *shape)
{
    return (shape->outputs + 15) / 16 * winograd_panel_size(shape);
}

/* w[9][rows][16], whose taps are 256 apart, -> u[points][rows][16], whose points are `plane` apart. */
SIMD_INLINE void transform_rows(int size, ptrdiff_t rows, const float *w, float *u, ptrdiff_t plane)
{
    const int edge = size + 2;
    for (ptrdiff_t lane = 0; lane < 16 * rows; lane += V_LANES) {
        vec t[3 * WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < 3; j++) {
            vec d[3];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) d[i] = v_load(w + (3 * i + j) * 256 + lane);
            winograd_weight(size, d, t + j, 3);
        }
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) {
            vec o[WINOGRAD_EDGE];
            winograd_weight(size, t + 3 * i, o, 1);
#pragma GCC unroll 6
            for (int j = 0; j < edge; j++) v_store(u + (edge * i + j) * plane + lane, o[j]);
        }
    }
}

/* The same numbers as pairs of rows. */
SIMD_INLINE void transform_row_pairs(int size, const float *w, float *u, ptrdiff_t plane)
{
    const int edge = size + 2;
    for (ptrdiff_t pair = 0; pair < 8; pair++) {
        vec t[2][3 * WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++) {
            vec d[3];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) d[i] = v_load(w + (3 * i + j % 3) * 256 + 32 * pair + j / 3 * 16);
            winograd_weight(size, d, t[j / 3] + j % 3, 3);
        }
#pragma GCC unroll 1
        for (int i = 0; i < edge; i++) {
            vec first[WINOGRAD_EDGE], second[WINOGRAD_EDGE];
            winograd_weight(size, t[0] + 3 * i, first, 1);
            winograd_weight(size, t[1] + 3 * i, second, 1);
#pragma GCC unroll 6
            for (int j = 0; j < edge; j++) v_store(u + (edge * i + j) * plane + 16 * pair, v_pair(first[j], second[j]));
        }
    }
}

/* One panel of U with all its k. */
static void make_panel(const weight_job *job, ptrdiff_t panel, float *u)
{
    const ptrdiff_t k = psld_round8(job->shape->inputs), plane = winograd_u_plane(job->shape);
    _Alignas(64) float block[9 * 256];
    for (ptrdiff_t row = 0; row < k; row += 16) {
        simd_conv_read_mirrored(job->shape, job->mirrored, job->weights, panel, row / 16, block);
        if (job->shape->pairs && winograd_size(job->shape) == 4)
            transform_row_pairs(4, block, u + row * 8, plane);
        else if (job->shape->pairs)
            transform_row_pairs(2, block, u + row * 8, plane);
        else if (winograd_size(job->shape) == 4)
            transform_rows(4, psld_min(16, k - row), block, u + row * 16, plane);
        else
            transform_rows(2, psld_min(16, k - row), block, u + row * 16, plane);
    }
}

static void weight_range(void *context, size_t begin, size_t end)
{
    const weight_job *job = context;
    const ptrdiff_t size = winograd_panel_size(job->shape);
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++) make_panel(job, j, job->u + j * size);
}

void simd_winograd_panel(const simd_conv_shape *shape, int mirrored, const float *weights, ptrdiff_t panel, float *u)
{
    const weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights};
    make_panel(&job, panel, u);
}

void simd_winograd_weights(const simd_conv_shape *shape, int mirrored, const float *weights, float *u)
{
    weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights, .u = u};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, weight_range, &job);
}

/* ---- In half precision ------------------------------------------------------------------------------------------- */

ptrdiff_t simd_winograd_half_size(const simd_conv_shape *shape)
{
    return (shape->outputs + 15) / 16 * winograd_half_panel_size(shape) * (ptrdiff_t)sizeof(uint16_t);
}

/* The power of two that brings the numbers of a panel to at most 2^15: those of U are at most twice the largest weight,
 * since the sums of |G| along its rows are at most 1.4. NaN if a weight is not finite: then so is what is made of it. */
static float panel_scale(const weight_job *job, ptrdiff_t panel)
{
    _Alignas(64) float block[9 * 256];
    float most = 0;
    int exponent = 0;
    for (ptrdiff_t i = 0; 16 * i < job->shape->inputs; i++) {
        simd_conv_read_mirrored(job->shape, job->mirrored, job->weights, panel, i, block);
        for (ptrdiff_t n = 0; n < 9 * 256; n++) {
            if (!(fabsf(block[n]) < INFINITY)) return NAN;
            if (fabsf(block[n]) > most) most = fabsf(block[n]);
        }
    }
    frexpf(most, &exponent);
    return most > 0 ? ldexpf(1, exponent < -100 ? 114 : 14 - exponent) : 1;
}

/* `rows` x 16 numbers of every point, 256 apart, times `scale`. */
static void store_halves(ptrdiff_t points, ptrdiff_t rows, const float *u, vec scale, uint16_t *half, ptrdiff_t plane)
{
    for (ptrdiff_t p = 0; p < points; p++)
        for (ptrdiff_t i = 0; i < 16 * rows; i += V_LANES)
            v_store_half(half + p * plane + i, v_mul(scale, v_load(u + p * 256 + i)));
}

static void make_half_panel(const weight_job *job, ptrdiff_t panel, uint16_t *half)
{
    const ptrdiff_t k = psld_round8(job->shape->inputs), plane = winograd_u_plane(job->shape);
    const ptrdiff_t size = winograd_size(job->shape), points = (size + 2) * (size + 2);
    const float scale = panel_scale(job, panel), factor = 1 / scale;
    _Alignas(64) float block[9 * 256], u[WINOGRAD_POINTS * 256];
    memset(half, 0, (size_t)winograd_half_panel_size(job->shape) * sizeof *half);
    memcpy(half, &factor, sizeof factor);
    for (ptrdiff_t row = 0; row < k; row += 16) {
        const ptrdiff_t rows = psld_min(16, k - row);
        simd_conv_read_mirrored(job->shape, job->mirrored, job->weights, panel, row / 16, block);
        if (size == 4)
            transform_rows(4, rows, block, u, 256);
        else
            transform_rows(2, rows, block, u, 256);
        store_halves(points, rows, u, v_set(scale), half + WINOGRAD_HALF_HEADER + row * 16, plane);
    }
}

static void half_range(void *context, size_t begin, size_t end)
{
    const weight_job *job = context;
    const ptrdiff_t size = winograd_half_panel_size(job->shape);
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++) make_half_panel(job, j, job->half + j * size);
}

void simd_winograd_weights_half(const simd_conv_shape *shape, int mirrored, const float *weights, uint16_t *half)
{
    weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights, .half = half};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, half_range, &job);
}
