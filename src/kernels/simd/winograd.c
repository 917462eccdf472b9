/* The convolution itself: tile rows -> V -> a product for each of 36 frequencies (16 for small images) -> output rows.
 *
 * In general a task owns a block of tile rows: it transforms them, multiplies with one panel of U after the other and
 * transforms back, all within the second cache. About 24 tiles make a block; 12 to 48 cost the same. When there are few
 * tiles to go round, V is made by all first and tasks are panels: each part of U is then read by one thread only, or
 * made by it. With 16 tiles for two threads that takes 0.75 of the time, with 32 it makes no difference.
 * In both cases each element of M is the same chain of multiply-adds.
 *
 * Scratch: [slot]{ ring, M [36][tiles][16], V [36][tiles][channels] }, or { [slot]{ ring, M, a panel of U }, V of all
 * tiles }. */
#include "kernels/simd/winograd.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/winograd_transform.h"

/* Where U comes from. */
typedef enum { U_STORED, U_IN_TIME, U_HALF } u_source;

enum { BLOCK_TILES = 24, PANEL_TILES = 48, TILES_A_SLOT = 16, WIDTH = 16 * TILE_PANELS };

typedef struct {
    const simd_conv_shape *shape;
    winograd_tiles tiles;
    simd_const_pixels x;
    const float *u, *weights; /* U, or what to make it of; */
    const uint16_t *half;     /* or U in half precision */
    int mirrored;
    const simd_finish *finish;
    simd_pixels y;
    float *scratch;

    int shared;             /* V is shared and tasks are panels */
    ptrdiff_t blocks, most; /* blocks of tile rows, tiles of the largest */
    ptrdiff_t panels;       /* of WIDTH outputs */
    ptrdiff_t v_plane, m_plane, m_offset, wide_offset, rest_offset, slot_size; /* rest: V, or a panel of U */
} convolution;

static ptrdiff_t count_tile_blocks(const winograd_tiles *tiles, ptrdiff_t block_tiles)
{
    const ptrdiff_t rows = psld_max(1, block_tiles / psld_max(1, tiles->across));
    return psld_max(1, (tiles->rows + rows - 1) / rows);
}

/* Schedule and layout of the scratch, whose size it returns. */
static ptrdiff_t arrange_tiles(convolution *c, const simd_conv_shape *shape, u_source source)
{
    c->shape = shape;
    c->tiles = simd_winograd_tiles(shape, winograd_size(shape));
    const winograd_tiles *t = &c->tiles;
    const ptrdiff_t slots = shape->slots, all = t->rows * t->across;
    c->panels = (shape->outputs + 16 * TILE_PANELS - 1) / (16 * TILE_PANELS);
    c->shared = source == U_IN_TIME || (slots > 1 && all < TILES_A_SLOT * slots);
    c->blocks = count_tile_blocks(t, c->shared ? PANEL_TILES : BLOCK_TILES);
    /* Even shares: a multiple of the number of slots while blocks are few. */
    if (!c->shared && c->blocks < 4 * slots) c->blocks = (c->blocks + slots - 1) / slots * slots;
    c->blocks = psld_max(1, psld_min(c->blocks, t->rows));
    c->most = (t->rows + c->blocks - 1) / c->blocks * t->across;
    c->v_plane = psld_odd_lines((c->shared ? all : c->most) * t->units);
    c->m_plane = psld_odd_lines(c->most * WIDTH);
    c->m_offset = winograd_ring_size(t);
    c->wide_offset = c->m_offset + t->points * c->m_plane;
    c->rest_offset = c->wide_offset + (source == U_HALF ? TILE_PANELS * winograd_u_plane(shape) : 0);
    const ptrdiff_t v_size = t->points * c->v_plane, u_size = TILE_PANELS * winograd_panel_size(shape);
    c->slot_size = c->rest_offset + (c->shared ? (source == U_IN_TIME ? u_size : 0) : v_size);
    return c->slot_size * slots + (c->shared ? v_size : 0);
}

/* Fewer images may be scheduled in another way, and their scratch be larger. */
static ptrdiff_t largest_scratch(const simd_conv_shape *shape, u_source source)
{
    simd_conv_shape fewer = *shape;
    convolution c = {0};
    ptrdiff_t largest = 0;
    for (fewer.images = 1; fewer.images <= shape->images; fewer.images++)
        largest = psld_max(largest, arrange_tiles(&c, &fewer, source));
    return largest;
}

ptrdiff_t simd_winograd_scratch(const simd_conv_shape *shape)
{
    return largest_scratch(shape, U_STORED);
}

ptrdiff_t simd_winograd_in_time_scratch(const simd_conv_shape *shape)
{
    return largest_scratch(shape, U_IN_TIME);
}

/* ---- Back from M to the output ----------------------------------------------------------------------------------- */

/* A vector of channels of a tile: y = A' m A + bias, of which `rows` x `columns` pixels exist. */
SIMD_INLINE void inverse_vector(int size, const float *m, ptrdiff_t plane, vec bias, float *y, ptrdiff_t row_stride,
                                ptrdiff_t pixel, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t left)
{
    const int edge = size + 2;
    vec t[4 * WINOGRAD_EDGE];
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, m += plane) {
        vec d[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) d[i] = v_load(m + edge * i * plane);
        winograd_output(size, d, t + j, edge);
    }
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, y += row_stride) {
        vec o[4];
        winograd_output(size, t + edge * i, o, 1);
#pragma GCC unroll 4
        for (int j = 0; j < size; j++)
            if (j < columns) v_store_part(y + j * pixel, left, v_add(o[j], bias));
    }
}

SIMD_INLINE void inverse_tile(int size, const float *m, ptrdiff_t plane, const float *bias, int lanes, float *y,
                              ptrdiff_t row_stride, ptrdiff_t pixel, ptrdiff_t rows, ptrdiff_t columns)
{
    for (int lane = 0; lane < lanes; lane += V_LANES) {
        const vec add = bias ? v_load_part(bias + lane, lanes - lane) : v_zero();
        if (rows == size && columns == size)
            inverse_vector(size, m + lane, plane, add, y + lane, row_stride, pixel, size, size, lanes - lane);
        else
            inverse_vector(size, m + lane, plane, add, y + lane, row_stride, pixel, rows, columns, lanes - lane);
    }
}

/* The tiles of one row, of which `rows` lines of the image exist. */
SIMD_INLINE void inverse_row(int size, const convolution *c, const float *m, const float *bias, int lanes, float *y,
                             ptrdiff_t rows)
{
    const ptrdiff_t pixel = c->y.stride, width = c->shape->out_width;
    for (ptrdiff_t tile = 0; tile < c->tiles.across; tile++, m += WIDTH, y += size * pixel)
        inverse_tile(size, m, c->m_plane, bias, lanes, y, width * pixel, pixel, rows,
                     psld_min(size, width - size * tile));
}

/* Frequency f of a tile's panels, from `half` on, in float. */
static void widen_u(const convolution *c, const uint16_t *half, ptrdiff_t f, int lanes, float *wide)
{
    const ptrdiff_t plane = winograd_u_plane(c->shape), count = 16 * c->tiles.channels;
    for (ptrdiff_t i = 0; 16 * i < lanes; i++, wide += plane, half += winograd_half_panel_size(c->shape)) {
        const uint16_t *from = half + WINOGRAD_HALF_HEADER + f * plane;
        float factor;
        memcpy(&factor, half, sizeof factor);
        for (ptrdiff_t n = 0; n < count; n += V_LANES) {
            __builtin_prefetch(from + n + plane);
            v_store(wide + n, v_mul(v_set(factor), v_load_half(from + n)));
        }
    }
}

/* Outputs WIDTH panel ... of tile rows begin ... end - 1, whose first tile has its V at v; u is the panel's part of
 * U. */
static void panel_of_rows(const convolution *c, ptrdiff_t panel, ptrdiff_t begin, ptrdiff_t end, const float *u,
                          const float *v, float *m)
{
    const simd_conv_shape *s = c->shape;
    const ptrdiff_t across = c->tiles.across, k = c->tiles.units, line = s->out_width * c->y.stride;
    const int lanes = (int)psld_min(psld_round8(s->outputs) - WIDTH * panel, WIDTH);
    const ptrdiff_t u_plane = winograd_u_plane(s);
    const uint16_t *half = c->half ? c->half + panel * TILE_PANELS * winograd_half_panel_size(s) : NULL;
    const ptrdiff_t apart = half ? u_plane : winograd_panel_size(s);
    float *wide = m + (c->wide_offset - c->m_offset);
    for (ptrdiff_t f = 0; f < c->tiles.points; f++) {
        const float *own = half ? wide : u + f * u_plane;
        if (half) widen_u(c, half, f, lanes, wide);
        const float *next = half ? NULL : own + u_plane;
        simd_gemm_panel(s->pairs, (end - begin) * across, k, v + f * c->v_plane, k, own, apart, m + f * c->m_plane,
                        WIDTH, lanes, NULL, next);
    }
    for (ptrdiff_t row = begin; row < end; row++, m += WIDTH * across) {
        const ptrdiff_t image = row / c->tiles.down, top = row % c->tiles.down * c->tiles.size;
        const ptrdiff_t rows = psld_min(c->tiles.size, s->out_height - top);
        float *y = c->y.data + (image * s->out_height + top) * line + WIDTH * panel;
        const float *bias = NULL;
        if (c->finish && c->finish->bias) bias = c->finish->bias + image * c->finish->bias_stride + WIDTH * panel;
        if (c->tiles.size == 4)
            inverse_row(4, c, m, bias, lanes, y, rows);
        else
            inverse_row(2, c, m, bias, lanes, y, rows);
    }
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

static void transform_rows(const convolution *c, int slot, ptrdiff_t begin, ptrdiff_t end, float *v)
{
    winograd_ring ring = {.data = c->scratch + slot * c->slot_size, .image = -1};
    const ptrdiff_t k = c->tiles.units;
    const int pairs = c->shape->pairs;
    for (ptrdiff_t row = begin; row < end; row++, v += c->tiles.across * k) {
        const winograd_target target = {.v = v,
                                        .plane = c->v_plane,
                                        .tile = k,
                                        .block = pairs ? 8 : 16,
                                        .channels = c->tiles.channels,
                                        .form = pairs ? WINOGRAD_PAIRED_CHANNELS : WINOGRAD_FLOATS};
        simd_winograd_tile_row(c->shape, &c->tiles, c->x, &ring, row, &target);
    }
}

static void finish_tile_rows(const convolution *c, ptrdiff_t begin, ptrdiff_t end)
{
    if (!c->finish) return;
    const simd_conv_shape *s = c->shape;
    for (ptrdiff_t row = begin; row < end; row++) {
        const ptrdiff_t first = row / c->tiles.down * s->out_height, top = row % c->tiles.down * c->tiles.size;
        const ptrdiff_t last = first + psld_min(s->out_height, top + c->tiles.size);
        simd_finish_rows(c->finish, 1, c->y.data, c->y.stride, (first + top) * s->out_width, last * s->out_width,
                         s->out_height * s->out_width, 0, psld_round8(s->outputs));
    }
}

static void block_task(void *context, int slot, ptrdiff_t task)
{
    const convolution *c = context;
    const ptrdiff_t begin = c->tiles.rows * task / c->blocks, end = c->tiles.rows * (task + 1) / c->blocks;
    const ptrdiff_t u_size = TILE_PANELS * winograd_panel_size(c->shape);
    float *base = c->scratch + slot * c->slot_size, *v = base + c->rest_offset;
    transform_rows(c, slot, begin, end, v);
    for (ptrdiff_t panel = 0; panel < c->panels; panel++)
        panel_of_rows(c, panel, begin, end, c->u ? c->u + panel * u_size : NULL, v, base + c->m_offset);
    finish_tile_rows(c, begin, end);
}

static float *shared_v(const convolution *c, ptrdiff_t row)
{
    return c->scratch + c->slot_size * c->shape->slots + row * c->tiles.across * c->tiles.units;
}

/* For a few rows at a time, so that the ring is of use. */
static void shared_rows_task(void *context, int slot, ptrdiff_t task)
{
    const convolution *c = context;
    const ptrdiff_t parts = psld_min(c->tiles.rows, 4 * c->shape->slots);
    const ptrdiff_t begin = c->tiles.rows * task / parts, end = c->tiles.rows * (task + 1) / parts;
    transform_rows(c, slot, begin, end, shared_v(c, begin));
}

static void shared_panel_task(void *context, int slot, ptrdiff_t panel)
{
    const convolution *c = context;
    float *base = c->scratch + slot * c->slot_size;
    const float *u = base + c->rest_offset;
    if (c->u) u = c->u + panel * TILE_PANELS * winograd_panel_size(c->shape);
    for (ptrdiff_t i = 0; c->weights && i < TILE_PANELS && WIDTH * panel + 16 * i < c->shape->outputs; i++)
        simd_winograd_panel(c->shape, c->mirrored, c->weights, TILE_PANELS * panel + i,
                            base + c->rest_offset + i * winograd_panel_size(c->shape));
    for (ptrdiff_t block = 0; block < c->blocks; block++) {
        const ptrdiff_t begin = c->tiles.rows * block / c->blocks, end = c->tiles.rows * (block + 1) / c->blocks;
        panel_of_rows(c, panel, begin, end, u, shared_v(c, begin), base + c->m_offset);
    }
}

static void finish_task(void *context, int slot, ptrdiff_t row)
{
    (void)slot;
    finish_tile_rows(context, row, row + 1);
}

static void run_shared(convolution *c)
{
    const int slots = c->shape->slots;
    psld_parallel_tasks(slots, psld_min(c->tiles.rows, 4 * slots), shared_rows_task, c);
    psld_parallel_tasks(slots, c->panels, shared_panel_task, c);
    if (c->finish && (c->finish->residual || c->finish->relu || c->finish->scale < 1 || c->finish->scale > 1))
        psld_parallel_tasks(slots, c->tiles.rows, finish_task, c);
}

void simd_winograd(const simd_conv_shape *shape, simd_const_pixels x, const float *u, const simd_finish *finish,
                   simd_pixels y, float *scratch)
{
    convolution c = {.x = x, .u = u, .finish = finish, .y = y, .scratch = scratch};
    arrange_tiles(&c, shape, U_STORED);
    if (c.shared)
        run_shared(&c);
    else
        psld_parallel_tasks(shape->slots, c.blocks, block_task, &c);
}

ptrdiff_t simd_winograd_half_scratch(const simd_conv_shape *shape)
{
    return largest_scratch(shape, U_HALF);
}

void simd_winograd_half(const simd_conv_shape *shape, simd_const_pixels x, const uint16_t *half,
                        const simd_finish *finish, simd_pixels y, float *scratch)
{
    convolution c = {.x = x, .half = half, .finish = finish, .y = y, .scratch = scratch};
    arrange_tiles(&c, shape, U_HALF);
    if (c.shared)
        run_shared(&c);
    else
        psld_parallel_tasks(shape->slots, c.blocks, block_task, &c);
}

void simd_winograd_in_time(const simd_conv_shape *shape, simd_const_pixels x, int mirrored, const float *weights,
                           const simd_finish *finish, simd_pixels y, float *scratch)
{
    convolution c = {.x = x, .weights = weights, .mirrored = mirrored, .finish = finish};
    c.y = y;
    c.scratch = scratch;
    arrange_tiles(&c, shape, U_IN_TIME);
    run_shared(&c);
}
