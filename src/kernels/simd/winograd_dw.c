/* The weight gradient G' (sum over tiles (B' d B) . (A dy A')) G.
 *
 * V and Z of a block of tiles are made once, by all threads, as [frequency][channels / 16][tiles][16]. The sums over tiles
 * are then a product V' Z for each frequency, whose blocks of 16 x 16 are shared out, one frequency after the other, since V and Z of
 * one frequency fit into the second cache. A block's sum continues over all blocks of tiles; at the end it is
 * transformed back. With a single block of tiles the sums of a block are transformed at once and never leave the
 * cache. Both give the same chains. */
#include "kernels/simd/winograd.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/winograd_transform.h"

enum { BLOCK_TILES = 64, LOCAL_PLANE = 256 + 16 };

typedef struct {
    const simd_conv_shape *shape;
    winograd_tiles tiles;
    simd_const_pixels x, dy;
    float *dw;

    ptrdiff_t across; /* tiles of a row, or pairs of them */
    ptrdiff_t block_rows, blocks,
        most; /* tile rows of a block of tiles, such blocks, of the largest `across` times that */
    ptrdiff_t in_blocks, out_blocks;      /* of 16 channels */
    ptrdiff_t v_plane, z_plane, du_plane; /* floats from frequency to frequency */
    ptrdiff_t slot_size;                  /* ring, or the sums of a block */
    float *slots, *v, *z, *du;            /* scratch; du [frequency][out_blocks][in_blocks][16][16] */
    ptrdiff_t begin, end, stretch;        /* tile rows of the block at hand; of a task */
} gradient;

/* Returns the floats of scratch. */
static ptrdiff_t arrange_gradient(gradient *g, const simd_conv_shape *shape, float *scratch)
{
    g->shape = shape;
    g->tiles = simd_winograd_tiles(shape, winograd_gradient_size(shape));
    const winograd_tiles *t = &g->tiles;
    g->across = shape->pairs ? (t->across + 1) / 2 : t->across;
    g->block_rows = psld_min(t->rows, psld_max(1, BLOCK_TILES / psld_max(1, t->across)));
    g->blocks = (t->rows + g->block_rows - 1) / g->block_rows;
    g->most = g->block_rows * g->across;
    g->in_blocks = (shape->inputs + 15) / 16;
    g->out_blocks = (shape->outputs + 15) / 16;
    g->v_plane = psld_odd_lines(g->in_blocks * g->most * 16);
    g->z_plane = psld_odd_lines(g->out_blocks * g->most * 16);
    g->du_plane = psld_odd_lines(g->in_blocks * g->out_blocks * 256);
    g->slot_size = psld_max(winograd_ring_size(t), t->points * LOCAL_PLANE);
    g->slots = scratch;
    g->v = scratch + g->slot_size * shape->slots;
    g->z = g->v + t->points * g->v_plane;
    g->du = g->z + t->points * g->z_plane;
    return g->slot_size * shape->slots + t->points * (g->v_plane + g->z_plane + (g->blocks > 1 ? g->du_plane : 0));
}

ptrdiff_t simd_winograd_dw_scratch(const simd_conv_shape *shape)
{
    gradient g = {0};
    _Alignas(64) float none[16]; /* an address to count from */
    return arrange_gradient(&g, shape, none);
}

/* ---- V and Z ----------------------------------------------------------------------------------------------------- */

/* How many lines and pixels of a tile exist: the others count as zero. */
typedef struct {
    ptrdiff_t rows, columns;
} extent;

/* The columns of a tile of a vector of channels, of which `left` and more exist: t = A dy, transposed. */
SIMD_INLINE void gradient_rows(int size, const gradient *g, const float *dy, extent e, ptrdiff_t left, vec *t)
{
    const ptrdiff_t pixel = g->dy.stride, line = g->shape->out_width * pixel;
#pragma GCC unroll 1
    for (int i = 0; i < size; i++) {
        vec d[4];
#pragma GCC unroll 4
        for (int j = 0; j < size; j++)
            d[j] = i < e.rows && j < e.columns ? v_load_part(dy + i * line + j * pixel, left) : v_zero();
        winograd_gradient(size, d, t + i, size);
    }
}

/* z = A dy A' */
SIMD_INLINE void gradient_vector(int size, const gradient *g, const float *dy, extent e, float *z, ptrdiff_t left)
{
    const int edge = size + 2;
    vec t[4 * WINOGRAD_EDGE];
    gradient_rows(size, g, dy, e, left, t);
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, z += g->z_plane) {
        vec o[WINOGRAD_EDGE];
        winograd_gradient(size, t + size * j, o, 1);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v_store_part(z + edge * i * g->z_plane, left, o[i]);
    }
}

/* The same of two tiles side by side, the second of which has `second` columns. */
SIMD_INLINE void gradient_two_vectors(int size, const gradient *g, const float *dy, extent e, ptrdiff_t second,
                                      float *z, ptrdiff_t left)
{
    const int edge = size + 2;
    vec t[4 * WINOGRAD_EDGE], u[4 * WINOGRAD_EDGE];
    gradient_rows(size, g, dy, e, left, t);
    gradient_rows(size, g, dy + size * g->dy.stride, (extent){e.rows, second}, left, u);
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, z += g->z_plane) {
        vec o[WINOGRAD_EDGE], p[WINOGRAD_EDGE];
        winograd_gradient(size, t + size * j, o, 1);
        winograd_gradient(size, u + size * j, p, 1);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v_store(z + edge * i * g->z_plane, v_pair(o[i], p[i]));
    }
}

/* A tile of which `columns` and more pixels are in a line, or the two from it on. */
SIMD_INLINE void gradient_tile(int size, int pairs, const gradient *g, const float *dy, ptrdiff_t rows,
                               ptrdiff_t columns, float *z)
{
    const ptrdiff_t block = g->most * 16, channels = psld_round8(g->shape->outputs);
    const extent all = {size, size}, some = {rows, psld_min(size, columns)};
    const ptrdiff_t second = psld_max(0, psld_min(size, columns - size));
    for (ptrdiff_t c = 0; c < channels; c += V_LANES) {
        float *to = z + c / 16 * block + c % 16;
        if (pairs && rows == size && second == size)
            gradient_two_vectors(size, g, dy + c, all, size, to, channels - c);
        else if (pairs)
            gradient_two_vectors(size, g, dy + c, some, second, to, channels - c);
        else if (rows == size && columns >= size)
            gradient_vector(size, g, dy + c, all, to, channels - c);
        else
            gradient_vector(size, g, dy + c, some, to, channels - c);
    }
    if (!pairs && channels % 16)
        for (int f = 0; f < g->tiles.points; f++) memset(z + f * g->z_plane + channels / 16 * block + 8, 0, 32);
}

/* Z of the tiles of one row, of which `rows` lines of the image exist. */
SIMD_INLINE void gradient_row(int size, int pairs, const gradient *g, const float *dy, ptrdiff_t rows, float *z)
{
    const ptrdiff_t width = size * (pairs ? 2 : 1);
    for (ptrdiff_t i = 0; i < g->across; i++)
        gradient_tile(size, pairs, g, dy + width * i * g->dy.stride, rows, g->shape->out_width - width * i, z + i * 16);
}

static void tile_rows_task(void *context, int slot, ptrdiff_t task)
{
    const gradient *g = context;
    const simd_conv_shape *s = g->shape;
    winograd_ring ring = {.data = g->slots + slot * g->slot_size, .image = -1};
    const ptrdiff_t first = g->begin + task * g->stretch, last = psld_min(g->end, first + g->stretch);
    for (ptrdiff_t row = first; row < last; row++) {
        const ptrdiff_t tile = (row - g->begin) * g->across;
        const winograd_target target = {
            g->v + tile * 16, g->v_plane,        16,
            g->most * 16,     g->in_blocks * 16, s->pairs ? WINOGRAD_PAIRED_TILES : WINOGRAD_FLOATS};
        simd_winograd_tile_row(s, &g->tiles, g->x, &ring, row, &target);
        const ptrdiff_t image = row / g->tiles.down, top = row % g->tiles.down * g->tiles.size;
        const ptrdiff_t rows = psld_min(g->tiles.size, s->out_height - top);
        const float *dy = g->dy.data + (image * s->out_height + top) * s->out_width * g->dy.stride;
        float *z = g->z + tile * 16;
        if (g->tiles.size == 4 && s->pairs)
            gradient_row(4, 1, g, dy, rows, z);
        else if (g->tiles.size == 4)
            gradient_row(4, 0, g, dy, rows, z);
        else if (s->pairs)
            gradient_row(2, 1, g, dy, rows, z);
        else
            gradient_row(2, 0, g, dy, rows, z);
    }
}

/* Groups of panels of outputs. */
static ptrdiff_t count_groups(const gradient *g)
{
    return (g->out_blocks + TILE_PANELS - 1) / TILE_PANELS;
}

/* ---- Sums over tiles --------------------------------------------------------------------------------------------- */

/* The 16 x 16 sums of frequency f, block i of inputs, over the tiles at hand: for `count` blocks of outputs from j on,
 * which lie `du_strip` apart. */
static void sum_blocks(const gradient *g, ptrdiff_t f, ptrdiff_t i, ptrdiff_t j, ptrdiff_t blocks, float *du,
                       ptrdiff_t du_strip, int accumulate)
{
    const ptrdiff_t block = g->most * 16, count = (g->end - g->begin) * g->across;
    simd_gemm_tn(g->shape->pairs, 16, count, g->v + f * g->v_plane + i * block, 16, g->z + f * g->z_plane + j * block,
                 block, 16, du, du_strip, 16, (int)(16 * blocks), accumulate);
}

/* One frequency, all blocks of some panels of outputs, as many as a tile takes. */
static void sum_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const gradient *g = context;
    const ptrdiff_t groups = count_groups(g), f = task / groups, j = task % groups * TILE_PANELS;
    const ptrdiff_t blocks = psld_min(TILE_PANELS, g->out_blocks - j), strip = g->in_blocks * 256;
    float *du = g->du + f * g->du_plane + j * strip;
    for (ptrdiff_t i = 0; i < g->in_blocks; i++) sum_blocks(g, f, i, j, blocks, du + i * 256, strip, g->begin > 0);
}

/* w[9][16][16] = G' du G for one block, whose frequencies are `plane` apart. */
SIMD_INLINE void inverse_block(int size, const float *du, ptrdiff_t plane, float *w)
{
    const int edge = size + 2;
    for (int lane = 0; lane < 256; lane += V_LANES) {
        vec t[3 * WINOGRAD_EDGE]; /* transposed: [row][frequency] */
#pragma GCC unroll 1
        for (int j = 0; j < edge; j++) {
            vec d[WINOGRAD_EDGE];
#pragma GCC unroll 6
            for (int i = 0; i < edge; i++) d[i] = v_load(du + (edge * i + j) * plane + lane);
            winograd_weight_gradient(size, d, t + j, edge);
        }
#pragma GCC unroll 1
        for (int i = 0; i < 3; i++) {
            vec o[3];
            winograd_weight_gradient(size, t + edge * i, o, 1);
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) v_store(w + (3 * i + j) * 256 + lane, o[j]);
        }
    }
}

/* The sums of block number `task` become weights in their logical order. */
static void finish_block(const gradient *g, ptrdiff_t task, const float *du, ptrdiff_t plane)
{
    _Alignas(64) float block[9 * 256];
    if (g->tiles.size == 4)
        inverse_block(4, du, plane, block);
    else
        inverse_block(2, du, plane, block);
    simd_conv_write_block(g->shape, block, task / g->in_blocks, task % g->in_blocks, g->dw);
}

static void inverse_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const gradient *g = context;
    finish_block(g, task, g->du + task * 256, g->du_plane);
}

static void fused_task(void *context, int slot, ptrdiff_t task)
{
    const gradient *g = context;
    float *du = g->slots + slot * g->slot_size;
    for (ptrdiff_t f = 0; f < g->tiles.points; f++)
        sum_blocks(g, f, task % g->in_blocks, task / g->in_blocks, 1, du + f * LOCAL_PLANE, 0, 0);
    finish_block(g, task, du, LOCAL_PLANE);
}

void simd_winograd_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw,
                      float *scratch)
{
    gradient g = {.x = x, .dy = dy, .dw = dw};
    arrange_gradient(&g, shape, scratch);
    const ptrdiff_t blocks = g.in_blocks * g.out_blocks;
    for (g.begin = 0; g.begin < g.tiles.rows; g.begin = g.end) {
        g.end = psld_min(g.tiles.rows, g.begin + g.block_rows);
        g.stretch = (g.end - g.begin + shape->slots - 1) / shape->slots;
        psld_parallel_tasks(shape->slots, (g.end - g.begin + g.stretch - 1) / g.stretch, tile_rows_task, &g);
        if (g.blocks > 1)
            psld_parallel_tasks(shape->slots, g.tiles.points * count_groups(&g), sum_task, &g);
        else
            psld_parallel_tasks(shape->slots, blocks, fused_task, &g);
    }
    if (g.blocks > 1) psld_parallel_tasks(shape->slots, blocks, inverse_task, &g);
}
