/* First the whole input becomes 16-bit numbers, with zeros around every image and behind its channels. Then each tile of
 * sums takes 16 pixels whose numbers lie a fixed step apart, for every tap alike:
 *
 *     - of images whose width is a multiple of 16, pixels of one line of a single copy with borders at all sides;
 *     - of others, any 16 pixels of an image in a row. For these there is a copy for each horizontal tap, shifted by
 *       it, as wide as the output and with borders above and below alone, so that a tap of all pixels of an image is
 *       again one stretch of a copy.
 *
 * The last tile of an image may reach beyond it, into what follows: those sums are not kept. Every sum is one chain in
 * the order of taps and channels, whatever the tile. */
#include "kernels/simd/direct.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/sizes.h"

/* What a tile of sums is made of: for each tap, `blocks` times 32 numbers at `offset` from a row's own place. */
typedef struct dot_sum {
    ptrdiff_t taps, blocks, lda;
    const ptrdiff_t *offset;
} dot_sum;

#ifdef SIMD_DOT_H

#include SIMD_DOT_H

enum { MAX_TAPS = SIMD_MAX_TAPS, TILE = 16, BLOCK_TILES = 16 };

typedef struct {
    const simd_conv_shape *shape;
    simd_const_pixels x;
    const uint16_t *packed;
    const simd_finish *finish;
    simd_pixels y;

    int shifted;                    /* a copy for each horizontal tap */
    ptrdiff_t copies, lines, width; /* lines and pixels of a line of an image in a copy */
    ptrdiff_t pixel, image, copy;   /* numbers from one to the next */
    uint16_t *numbers;
    ptrdiff_t offset[MAX_TAPS];
    dot_sum sum;
    ptrdiff_t tiles;  /* of an image */
    ptrdiff_t blocks; /* of tiles of the batch */
    ptrdiff_t panels, groups, panel_size;
} direct;

static ptrdiff_t round32(ptrdiff_t n)
{
    return (n + 31) & ~(ptrdiff_t)31;
}

/* Returns the floats of scratch. */
static ptrdiff_t arrange_direct(direct *d, const simd_conv_shape *s)
{
    d->shape = s;
    d->shifted = s->out_width % TILE != 0 && s->kernel_width > 1;
    d->copies = d->shifted ? s->kernel_width : 1;
    d->lines = s->out_height + s->kernel_height - 1;
    d->width = d->shifted ? s->out_width : s->out_width + s->kernel_width - 1;
    d->pixel = round32(s->inputs);
    d->image = d->lines * d->width * d->pixel;
    d->copy = s->images * d->image;
    d->tiles = (s->out_height * s->out_width + TILE - 1) / TILE;
    d->blocks = (s->images * d->tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    d->panels = (s->outputs + 15) / 16;
    d->panel_size = s->kernel_height * s->kernel_width * d->pixel * 16;
    /* At least four tasks a slot, of two panels at least. */
    const ptrdiff_t wanted = (4 * s->slots + d->blocks - 1) / d->blocks;
    d->groups = psld_max(1, psld_min(wanted, (d->panels + 1) / 2));
    d->sum = (dot_sum){s->kernel_height * s->kernel_width, d->pixel / 32, d->pixel, d->offset};
    for (ptrdiff_t ky = 0, tap = 0; ky < s->kernel_height; ky++)
        for (ptrdiff_t kx = 0; kx < s->kernel_width; kx++, tap++)
            d->offset[tap] = d->shifted ? kx * d->copy + ky * d->width * d->pixel : (ky * d->width + kx) * d->pixel;
    /* The last tile of the last image reads up to 15 pixels behind the end. */
    return psld_round16((d->copies * d->copy + TILE * d->pixel + 1) / 2);
}

int simd_direct_runs(void)
{
    return dot_runs();
}

ptrdiff_t simd_direct_scratch(const simd_conv_shape *shape)
{
    direct d;
    return arrange_direct(&d, shape);
}

ptrdiff_t simd_direct_weights_size(const simd_conv_shape *shape)
{
    direct d;
    arrange_direct(&d, shape);
    return d.panels * d.panel_size * (ptrdiff_t)sizeof(uint16_t);
}

/* ---- The input --------------------------------------------------------------------------------------------------- */

static void round_pixel(const direct *d, const float *from, uint16_t *to)
{
    const ptrdiff_t width = psld_round8(d->shape->inputs);
    ptrdiff_t c = 0;
    for (; c + 16 <= width; c += 16) dot_round16(from + c, to + c);
    if (c < width) {
        float half[16] = {0};
        memcpy(half, from + c, 8 * sizeof *half);
        dot_round16(half, to + c);
        c += 16;
    }
    memset(to + c, 0, (size_t)(d->pixel - c) * sizeof *to);
}

/* One line of one copy. Its first pixel stands for column `left` of the input. */
static void round_line(const direct *d, const float *line, ptrdiff_t left, uint16_t *to)
{
    for (ptrdiff_t x = left; x < left + d->width; x++, to += d->pixel) {
        if (line && x >= 0 && x < d->shape->width)
            round_pixel(d, line + x * d->x.stride, to);
        else
            memset(to, 0, (size_t)d->pixel * sizeof *to);
    }
}

/* Line `task` of all images' lines, in all copies. */
static void line_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const direct *d = context;
    const simd_conv_shape *s = d->shape;
    const ptrdiff_t image = task / d->lines, line = task % d->lines, y = line - s->pad_top;
    const float *from = y < 0 || y >= s->height ? NULL : d->x.data + (image * s->height + y) * s->width * d->x.stride;
    uint16_t *to = d->numbers + image * d->image + line * d->width * d->pixel;
    if (!d->shifted) {
        round_line(d, from, -s->pad_left, to);
        return;
    }
    for (ptrdiff_t kx = 0; kx < d->copies; kx++) round_line(d, from, kx - s->pad_left, to + kx * d->copy);
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

/* Where the numbers of tile `tile` of the batch begin, for the tap that has offset 0. */
static const uint16_t *tile_numbers(const direct *d, ptrdiff_t tile)
{
    const ptrdiff_t image = tile / d->tiles, pixel = tile % d->tiles * TILE, across = d->shape->out_width;
    const ptrdiff_t place = d->shifted || d->width == across ? pixel : pixel / across * d->width + pixel % across;
    return d->numbers + image * d->image + place * d->pixel;
}

/* Writes the 16 rows of a tile, or as many as the image has, and what comes after the product. */
static void keep_tile(const direct *d, ptrdiff_t tile, ptrdiff_t panel, ptrdiff_t lanes, const float *c)
{
    const ptrdiff_t area = d->shape->out_height * d->shape->out_width, first = tile % d->tiles * TILE;
    const ptrdiff_t begin = tile / d->tiles * area + first, count = psld_min(TILE, area - first);
    simd_copy(count, lanes, c, 32, d->y.data + begin * d->y.stride + 16 * panel, d->y.stride);
    if (d->finish)
        simd_finish_rows(d->finish, 0, d->y.data, d->y.stride, begin, begin + count, area, 16 * panel, lanes);
}

/* Two panels from `panel` on, if there are two, of the tiles begin ... end - 1. */
static void multiply_tiles(const direct *d, ptrdiff_t panel, ptrdiff_t begin, ptrdiff_t end)
{
    const uint16_t *b = d->packed + panel * d->panel_size;
    const ptrdiff_t lanes = psld_min(32, psld_round8(d->shape->outputs) - 16 * panel);
    _Alignas(64) float c[32 * 32];
    for (ptrdiff_t tile = begin; tile < end; tile += 2) {
        const uint16_t *a = tile_numbers(d, tile);
        for (ptrdiff_t i = tile; lanes <= 16 && i < psld_min(end, tile + 2); i++) {
            dot_tile(&d->sum, tile_numbers(d, i), b, c);
            keep_tile(d, i, panel, lanes, c);
        }
        if (lanes <= 16) continue;
        if (tile + 1 < end)
            dot_tiles(&d->sum, a, tile_numbers(d, tile + 1), b, d->panel_size, c);
        else
            dot_wide_tile(&d->sum, a, b, d->panel_size, c);
        keep_tile(d, tile, panel, lanes, c);
        if (tile + 1 < end) keep_tile(d, tile + 1, panel, lanes, c + 16 * 32);
    }
}

static void tiles_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const direct *d = context;
    const ptrdiff_t all = d->shape->images * d->tiles, block = task / d->groups, group = task % d->groups;
    const ptrdiff_t pairs = (d->panels + 1) / 2, last = pairs * (group + 1) / d->groups;
    dot_begin();
    for (ptrdiff_t pair = pairs * group / d->groups; pair < last; pair++)
        multiply_tiles(d, 2 * pair, all * block / d->blocks, all * (block + 1) / d->blocks);
    dot_end();
}

void simd_direct(const simd_conv_shape *shape, simd_const_pixels x, const uint16_t *packed, const simd_finish *finish,
                 simd_pixels y, float *scratch)
{
    direct d = {.x = x};
    arrange_direct(&d, shape);
    d.packed = packed, d.finish = finish, d.y = y;
    d.numbers = (uint16_t *)(void *)scratch;
    memset(d.numbers + d.copies * d.copy, 0, (size_t)(TILE * d.pixel) * sizeof *d.numbers);
    psld_parallel_tasks(shape->slots, shape->images * d.lines, line_task, &d);
    psld_parallel_tasks(shape->slots, d.blocks * d.groups, tiles_task, &d);
}

/* ---- Weights ----------------------------------------------------------------------------------------------------- */

typedef struct {
    direct d;
    int mirrored;
    const float *weights;
    uint16_t *packed;
} direct_packing;

/* Two blocks of 16 inputs, [2][taps][16][16], as one of 32 in pairs for every tap. */
static void pack_blocks(const direct *d, const float *blocks, uint16_t *to)
{
    const ptrdiff_t taps = d->sum.taps;
    for (ptrdiff_t tap = 0; tap < taps; tap++)
        for (ptrdiff_t pair = 0; pair < 16; pair++) {
            const float *rows = blocks + (pair / 8 * taps + tap) * 256 + pair % 8 * 32;
            dot_round_pairs(rows, rows + 16, to + (tap * d->sum.blocks * 16 + pair) * 32);
        }
}

static void pack_range(void *context, size_t begin, size_t end)
{
    const direct_packing *p = context;
    const direct *d = &p->d;
    const ptrdiff_t taps = d->sum.taps, in_blocks = (d->shape->inputs + 15) / 16;
    _Alignas(64) float blocks[2 * MAX_TAPS * 256];
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++)
        for (ptrdiff_t k = 0; k < d->sum.blocks; k++) {
            for (ptrdiff_t half = 0; half < 2; half++) {
                float *block = blocks + half * taps * 256;
                if (2 * k + half < in_blocks)
                    simd_conv_read_mirrored(d->shape, p->mirrored, p->weights, j, 2 * k + half, block);
                else
                    memset(block, 0, (size_t)(taps * 256) * sizeof *block);
            }
            pack_blocks(d, blocks, p->packed + j * d->panel_size + k * 512);
        }
}

void simd_direct_weights(const simd_conv_shape *shape, int mirrored, const float *weights, uint16_t *packed)
{
    direct_packing p = {.mirrored = mirrored, .weights = weights, .packed = packed};
    arrange_direct(&p.d, shape);
    p.d.sum.offset = p.d.offset;
    psld_parallel((size_t)p.d.panels, 1, pack_range, &p);
}

#else

/* No processor of this instruction set has a matrix unit that we know. */
int simd_direct_runs(void)
{
    return 0;
}

ptrdiff_t simd_direct_weights_size(const simd_conv_shape *shape)
{
    (void)shape;
    return 0;
}

void simd_direct_weights(const simd_conv_shape *shape, int mirrored, const float *weights, uint16_t *packed)
{
    (void)shape, (void)mirrored, (void)weights, (void)packed;
}

ptrdiff_t simd_direct_scratch(const simd_conv_shape *shape)
{
    (void)shape;
    return 0;
}

void simd_direct(const simd_conv_shape *shape, simd_const_pixels x, const uint16_t *packed, const simd_finish *finish,
                 simd_pixels y, float *scratch)
{
    (void)shape, (void)x, (void)packed, (void)finish, (void)y, (void)scratch;
}

#endif
