/* The weight gradient G' (sum over tiles (B' d B) . (A dy A')) G.
 *
 * V and Z of a block of tiles are made once, by all threads, as [frequency][channels / 16][tiles][16]. The sums over tiles
 * are then a product V' Z for each frequency, whose blocks of 16 x 16 are shared out, one frequency after the other, since V and Z of
 * one frequency fit into the second cache. A block's sum continues over all blocks of tiles; at the end it is
 * transformed back. With a single block of tiles the sums of a block are transformed at once and never leave the
 * cache. Both give the same chains. */
#include "kernels/avx2/winograd.h"

#include "base/threads.h"
#include "kernels/avx2/gemm.h"
#include "kernels/avx2/winograd_transform.h"

#if defined(__AVX2__) && defined(__FMA__)

enum { BLOCK_TILES = 64, LOCAL_PLANE = 256 + 16 };

typedef struct {
    const psld_conv_shape_avx2 *shape;
    winograd_tiles tiles;
    psld_const_pixels_avx2 x, dy;
    float *dw;

    ptrdiff_t block_rows, blocks, most;   /* tile rows of a block of tiles, such blocks, tiles of the largest */
    ptrdiff_t in_blocks, out_blocks;      /* of 16 channels */
    ptrdiff_t v_plane, z_plane, du_plane; /* floats from frequency to frequency */
    ptrdiff_t slot_size;                  /* ring, or the sums of a block */
    float *slots, *v, *z, *du;            /* scratch; du [frequency][out_blocks][in_blocks][16][16] */
    ptrdiff_t begin, end, stretch;        /* tile rows of the block at hand; of a task */
} gradient;

/* Returns the floats of scratch. */
static ptrdiff_t arrange_gradient(gradient *g, const psld_conv_shape_avx2 *shape, float *scratch)
{
    g->shape = shape;
    g->tiles = psld_winograd_tiles_avx2(shape);
    const winograd_tiles *t = &g->tiles;
    g->block_rows = psld_min(t->rows, psld_max(1, BLOCK_TILES / psld_max(1, t->across)));
    g->blocks = (t->rows + g->block_rows - 1) / g->block_rows;
    g->most = g->block_rows * t->across;
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

ptrdiff_t psld_winograd_dw_scratch_avx2(const psld_conv_shape_avx2 *shape)
{
    gradient g = {0};
    _Alignas(64) float none[16]; /* an address to count from */
    return arrange_gradient(&g, shape, none);
}

/* ---- V and Z ----------------------------------------------------------------------------------------------------- */

/* Eight channels of a tile: z = A dy A'. Pixels outside the image count as zero. */
V8_INLINE void gradient8(int size, const float *dy, ptrdiff_t row_stride, ptrdiff_t pixel, ptrdiff_t rows,
                         ptrdiff_t columns, float *z, ptrdiff_t plane)
{
    const int edge = size + 2;
    v8 t[4 * WINOGRAD_EDGE]; /* transposed: [frequency][row] */
#pragma GCC unroll 1
    for (int i = 0; i < size; i++) {
        v8 d[4];
#pragma GCC unroll 4
        for (int j = 0; j < size; j++)
            d[j] = i < rows && j < columns ? v8_load(dy + i * row_stride + j * pixel) : v8_zero();
        winograd_gradient(size, d, t + i, size);
    }
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, z += plane) {
        v8 o[WINOGRAD_EDGE];
        winograd_gradient(size, t + size * j, o, 1);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v8_store(z + edge * i * plane, o[i]);
    }
}

V8_INLINE void gradient_tile(int size, const gradient *g, const float *dy, ptrdiff_t rows, ptrdiff_t columns, float *z)
{
    const ptrdiff_t line = g->shape->out_width * g->dy.stride, block = g->most * 16;
    const ptrdiff_t channels = psld_round8(g->shape->outputs);
    for (ptrdiff_t c = 0; c < channels; c += 8) {
        float *to = z + c / 16 * block + c % 16;
        if (rows == size && columns == size)
            gradient8(size, dy + c, line, g->dy.stride, size, size, to, g->z_plane);
        else
            gradient8(size, dy + c, line, g->dy.stride, rows, columns, to, g->z_plane);
    }
    if (channels % 16)
        for (int f = 0; f < g->tiles.points; f++) v8_store(z + f * g->z_plane + channels / 16 * block + 8, v8_zero());
}

/* Z of the tiles of one row, of which `rows` lines of the image exist. */
V8_INLINE void gradient_row(int size, const gradient *g, const float *dy, ptrdiff_t rows, float *z)
{
    for (ptrdiff_t i = 0; i < g->tiles.across; i++)
        gradient_tile(size, g, dy + size * i * g->dy.stride, rows, psld_min(size, g->shape->out_width - size * i),
                      z + i * 16);
}

static void tile_rows_task(void *context, int slot, ptrdiff_t task)
{
    const gradient *g = context;
    const psld_conv_shape_avx2 *s = g->shape;
    winograd_ring ring = {.data = g->slots + slot * g->slot_size, .image = -1};
    const ptrdiff_t first = g->begin + task * g->stretch, last = psld_min(g->end, first + g->stretch);
    for (ptrdiff_t row = first; row < last; row++) {
        const ptrdiff_t tile = (row - g->begin) * g->tiles.across;
        const winograd_target target = {g->v + tile * 16, g->v_plane, 16, g->most * 16, g->in_blocks * 16};
        psld_winograd_tile_row_avx2(s, &g->tiles, g->x, &ring, row, &target);
        const ptrdiff_t image = row / g->tiles.down, top = row % g->tiles.down * g->tiles.size;
        const ptrdiff_t rows = psld_min(g->tiles.size, s->out_height - top);
        const float *dy = g->dy.data + (image * s->out_height + top) * s->out_width * g->dy.stride;
        if (g->tiles.size == 4)
            gradient_row(4, g, dy, rows, g->z + tile * 16);
        else
            gradient_row(2, g, dy, rows, g->z + tile * 16);
    }
}

/* ---- Sums over tiles --------------------------------------------------------------------------------------------- */

/* The 16 x 16 sums of frequency f, blocks i and j, over the tiles at hand. */
static void sum_block(const gradient *g, ptrdiff_t f, ptrdiff_t i, ptrdiff_t j, float *du, int accumulate)
{
    const ptrdiff_t block = g->most * 16, count = (g->end - g->begin) * g->tiles.across;
    psld_gemm_tn_avx2_6x16(16, count, g->v + f * g->v_plane + i * block, 16, g->z + f * g->z_plane + j * block, 16, du,
                           16, 16, accumulate);
}

/* One frequency, all blocks of one panel of outputs. */
static void sum_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const gradient *g = context;
    const ptrdiff_t f = task / g->out_blocks, j = task % g->out_blocks;
    float *du = g->du + f * g->du_plane + j * g->in_blocks * 256;
    for (ptrdiff_t i = 0; i < g->in_blocks; i++) sum_block(g, f, i, j, du + i * 256, g->begin > 0);
}

/* w[9][16][16] = G' du G for one block, whose frequencies are `plane` apart. */
V8_INLINE void inverse_block(int size, const float *du, ptrdiff_t plane, float *w)
{
    const int edge = size + 2;
    for (int lane = 0; lane < 256; lane += 8) {
        v8 t[3 * WINOGRAD_EDGE]; /* transposed: [row][frequency] */
#pragma GCC unroll 1
        for (int j = 0; j < edge; j++) {
            v8 d[WINOGRAD_EDGE];
#pragma GCC unroll 6
            for (int i = 0; i < edge; i++) d[i] = v8_load(du + (edge * i + j) * plane + lane);
            winograd_weight_gradient(size, d, t + j, edge);
        }
#pragma GCC unroll 1
        for (int i = 0; i < 3; i++) {
            v8 o[3];
            winograd_weight_gradient(size, t + edge * i, o, 1);
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) v8_store(w + (3 * i + j) * 256 + lane, o[j]);
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
    psld_conv_write_block_avx2(g->shape, block, task / g->in_blocks, task % g->in_blocks, g->dw);
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
        sum_block(g, f, task % g->in_blocks, task / g->in_blocks, du + f * LOCAL_PLANE, 0);
    finish_block(g, task, du, LOCAL_PLANE);
}

void psld_winograd_dw_avx2(const psld_conv_shape_avx2 *shape, psld_const_pixels_avx2 x, psld_const_pixels_avx2 dy,
                           float *dw, float *scratch)
{
    gradient g = {.x = x, .dy = dy, .dw = dw};
    arrange_gradient(&g, shape, scratch);
    const ptrdiff_t blocks = g.in_blocks * g.out_blocks;
    for (g.begin = 0; g.begin < g.tiles.rows; g.begin = g.end) {
        g.end = psld_min(g.tiles.rows, g.begin + g.block_rows);
        g.stretch = (g.end - g.begin + shape->slots - 1) / shape->slots;
        psld_parallel_tasks(shape->slots, (g.end - g.begin + g.stretch - 1) / g.stretch, tile_rows_task, &g);
        if (g.blocks > 1)
            psld_parallel_tasks(shape->slots, g.tiles.points * g.out_blocks, sum_task, &g);
        else
            psld_parallel_tasks(shape->slots, blocks, fused_task, &g);
    }
    if (g.blocks > 1) psld_parallel_tasks(shape->slots, blocks, inverse_task, &g);
}

#endif
