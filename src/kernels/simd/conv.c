/* Forward convolution and data gradient are one thing here, a grid of output pixels that each sum over taps:
 *
 *     out[first_y + a step_y][first_x + b step_x] = sum over taps  in[a from_y + dy(tap)][b from_x + dx(tap)] w[tap]
 *
 * Forward: first = 0, step = 1, from = stride, dy = ky - pad. Data gradient: one grid for each phase r = (i + pad)
 * mod stride of the input pixels, with the taps ky = r mod stride: step = stride, from = 1, dy = (first + pad - ky) /
 * stride.
 *
 * Scratch: a row of zeros; for each tap dy, dx, its place in the weights and how far it lies from a pixel's own place;
 * for each slot the row pointers of a block of pixels. */
#include "kernels/simd/conv.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

enum { BLOCK_PIXELS = 48, TAP_NUMBERS = 4 };

typedef struct {
    ptrdiff_t images, rows, columns; /* of the grid */
    ptrdiff_t first_y, first_x, step_y, step_x, out_height, out_width, outputs;
    ptrdiff_t from_y, from_x, in_height, in_width;
    simd_const_pixels in;
    simd_pixels out;
    simd_gemm_taps taps;
    const ptrdiff_t *dy, *dx, *offset; /* [taps]; offset: floats */
    const float *weights;
    const simd_finish *finish;
    const float *zeros;
    const float **tables; /* [slot][BLOCK_PIXELS / TILE_ROWS][taps][TILE_ROWS] */
    ptrdiff_t table_size;
} grid;

static ptrdiff_t tap_count(const simd_conv_shape *s)
{
    return s->kernel_height * s->kernel_width;
}

/* The number of floats that hold `count` pointers or numbers, in whole cache lines. */
static ptrdiff_t pointer_floats(ptrdiff_t count)
{
    _Static_assert(sizeof(ptrdiff_t) == 2 * sizeof(float) && sizeof(float *) == 2 * sizeof(float), "64-bit only");
    return psld_round16(2 * count);
}

/* ---- Pointers ---------------------------------------------------------------------------------------------------- */

typedef struct {
    ptrdiff_t image, a, b;
} position;

static position position_of(const grid *g, ptrdiff_t pixel)
{
    return (position){pixel / g->columns / g->rows, pixel / g->columns % g->rows, pixel % g->columns};
}

/* Steps to the next pixel. Dividing instead would take longer than all other work per pixel. */
static void next_position(const grid *g, position *at)
{
    if (++at->b < g->columns) return;
    at->b = 0;
    if (++at->a < g->rows) return;
    at->a = 0;
    at->image++;
}

/* Number of the output pixel in its buffer. */
static ptrdiff_t output_pixel(const grid *g, ptrdiff_t pixel)
{
    const position at = position_of(g, pixel);
    return (at.image * g->out_height + g->first_y + at.a * g->step_y) * g->out_width + g->first_x + at.b * g->step_x;
}

/* Where a tap of a pixel reads. */
static const float *source_of(const grid *g, const position *at, ptrdiff_t tap)
{
    const ptrdiff_t y = at->a * g->from_y + g->dy[tap], x = at->b * g->from_x + g->dx[tap];
    const int outside = y < 0 || y >= g->in_height || x < 0 || x >= g->in_width;
    return outside ? g->zeros : g->in.data + ((at->image * g->in_height + y) * g->in_width + x) * g->in.stride;
}

/* Whether all taps of a pixel are inside the image: then they are if the first and the last in both directions are. */
static int is_inside(const grid *g, const position *at)
{
    const ptrdiff_t last = g->taps.taps - 1, y = at->a * g->from_y, x = at->b * g->from_x;
    return last >= 0 && psld_min(y + g->dy[0], y + g->dy[last]) >= 0 &&
           psld_max(y + g->dy[0], y + g->dy[last]) < g->in_height && psld_min(x + g->dx[0], x + g->dx[last]) >= 0 &&
           psld_max(x + g->dx[0], x + g->dx[last]) < g->in_width;
}

/* The pointers of one pixel, at every TILE_ROWS-th place. */
static void point_pixel(const grid *g, const position *at, const float **table)
{
    const ptrdiff_t taps = g->taps.taps;
    if (is_inside(g, at)) {
        const ptrdiff_t y = at->a * g->from_y, x = at->b * g->from_x;
        const ptrdiff_t own = ((at->image * g->in_height + y) * g->in_width + x) * g->in.stride;
        for (ptrdiff_t tap = 0; tap < taps; tap++) table[TILE_ROWS * tap] = g->in.data + (own + g->offset[tap]);
    } else {
        for (ptrdiff_t tap = 0; tap < taps; tap++) table[TILE_ROWS * tap] = source_of(g, at, tap);
    }
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

/* A tile's pixels from `pixel` on, a tile's panels. If they are not adjacent, the tile goes through a buffer. */
static void multiply_group(const grid *g, ptrdiff_t pixel, ptrdiff_t count, const float *const *table, ptrdiff_t panel)
{
    const ptrdiff_t panel_size = psld_round16(g->taps.channels) * g->taps.block_taps * 16;
    const int lanes = (int)psld_min(psld_round8(g->outputs) - 16 * panel, 16 * TILE_PANELS);
    const float *weights = g->weights + panel * panel_size;
    if (g->step_y == 1 && g->step_x == 1) {
        simd_gemm_rows(count, &g->taps, table, weights, panel_size, g->out.data + pixel * g->out.stride + 16 * panel,
                       g->out.stride, lanes, NULL);
        return;
    }
    enum { WIDTH = 16 * TILE_PANELS };
    _Alignas(64) float buffer[TILE_ROWS * WIDTH];
    simd_gemm_rows(count, &g->taps, table, weights, panel_size, buffer, WIDTH, lanes, NULL);
    for (ptrdiff_t i = 0; i < count; i++) {
        float *to = g->out.data + output_pixel(g, pixel + i) * g->out.stride + 16 * panel;
        simd_copy(1, lanes, buffer + WIDTH * i, 0, to, 0);
    }
}

static void finish_pixels(const grid *g, ptrdiff_t begin, ptrdiff_t end)
{
    if (!g->finish) return;
    const ptrdiff_t pixels = g->out_height * g->out_width, channels = psld_round8(g->outputs);
    if (g->step_y == 1 && g->step_x == 1) {
        simd_finish_rows(g->finish, 0, g->out.data, g->out.stride, begin, end, pixels, 0, channels);
        return;
    }
    for (ptrdiff_t p = begin; p < end; p++) {
        const ptrdiff_t out = output_pixel(g, p);
        simd_finish_rows(g->finish, 0, g->out.data, g->out.stride, out, out + 1, pixels, 0, channels);
    }
}

static void pixels_task(void *context, int slot, ptrdiff_t task)
{
    const grid *g = context;
    const ptrdiff_t all = g->images * g->rows * g->columns, step = TILE_ROWS * g->taps.taps;
    const ptrdiff_t begin = task * BLOCK_PIXELS, end = psld_min(all, begin + BLOCK_PIXELS);
    const float **table = g->tables + slot * g->table_size;
    position at = position_of(g, begin);
    for (ptrdiff_t p = 0; p < end - begin; p++, next_position(g, &at))
        point_pixel(g, &at, table + p / TILE_ROWS * step + p % TILE_ROWS);
    for (ptrdiff_t panel = 0; 16 * panel < g->outputs; panel += TILE_PANELS)
        for (ptrdiff_t p = begin; p < end; p += TILE_ROWS)
            multiply_group(g, p, psld_min(TILE_ROWS, end - p), table + (p - begin) / TILE_ROWS * step, panel);
    finish_pixels(g, begin, end);
}

static void run_grid(grid *g, int slots)
{
    const ptrdiff_t pixels = g->images * g->rows * g->columns;
    psld_parallel_tasks(slots, (pixels + BLOCK_PIXELS - 1) / BLOCK_PIXELS, pixels_task, g);
}

/* ---- Forward and data gradient ----------------------------------------------------------------------------------- */

/* The scratch of a grid: zeros, then [TAP_NUMBERS][taps] numbers, then tables. Returns the numbers. */
static ptrdiff_t *lay_out_grid(grid *g, const simd_conv_shape *s, ptrdiff_t channels, float *scratch)
{
    const ptrdiff_t taps = tap_count(s), width = psld_round16(channels);
    memset(scratch, 0, (size_t)width * sizeof *scratch);
    g->zeros = scratch;
    ptrdiff_t *numbers = (ptrdiff_t *)(void *)(scratch + width);
    g->tables = (const float **)(void *)(scratch + width + pointer_floats(TAP_NUMBERS * taps));
    g->table_size = pointer_floats(BLOCK_PIXELS * taps) / 2;
    g->taps.block_taps = taps;
    g->taps.channels = channels;
    return numbers;
}

static ptrdiff_t grid_scratch(const simd_conv_shape *s)
{
    const ptrdiff_t taps = tap_count(s);
    return psld_round16(psld_max(s->inputs, s->outputs)) + pointer_floats(TAP_NUMBERS * taps) +
           s->slots * pointer_floats(BLOCK_PIXELS * taps);
}

/* The taps ky, kx = first_ky, first_kx + multiples of step, with dy = (base_y +- ky) / divide and so on. */
typedef struct {
    ptrdiff_t first, step, count, base, sign, divide;
} tap_axis;

static void list_taps(grid *g, ptrdiff_t *numbers, ptrdiff_t kernel_width, const tap_axis *y, const tap_axis *x)
{
    const ptrdiff_t room = g->taps.block_taps;
    ptrdiff_t *where = numbers, *dy = where + room, *dx = dy + room, *offset = dx + room, n = 0;
    for (ptrdiff_t ky = y->first; ky < y->count; ky += y->step)
        for (ptrdiff_t kx = x->first; kx < x->count; kx += x->step, n++) {
            where[n] = ky * kernel_width + kx;
            dy[n] = (y->base + y->sign * ky) / y->divide;
            dx[n] = (x->base + x->sign * kx) / x->divide;
            offset[n] = (dy[n] * g->in_width + dx[n]) * g->in.stride;
        }
    g->taps.taps = n;
    g->taps.where = where;
    g->dy = dy;
    g->dx = dx;
    g->offset = offset;
}

void simd_conv(const simd_conv_shape *shape, simd_const_pixels x, const float *weights, const simd_finish *finish,
               simd_pixels y, float *scratch)
{
    grid g = {.images = shape->images, .rows = shape->out_height, .columns = shape->out_width};
    g.step_y = g.step_x = 1;
    g.out_height = shape->out_height, g.out_width = shape->out_width, g.outputs = shape->outputs;
    g.from_y = shape->stride_y, g.from_x = shape->stride_x;
    g.in_height = shape->height, g.in_width = shape->width;
    g.in = x, g.out = y, g.weights = weights, g.finish = finish;
    const tap_axis down = {0, 1, shape->kernel_height, -shape->pad_top, 1, 1};
    const tap_axis across = {0, 1, shape->kernel_width, -shape->pad_left, 1, 1};
    list_taps(&g, lay_out_grid(&g, shape, shape->inputs, scratch), shape->kernel_width, &down, &across);
    run_grid(&g, shape->slots);
}

/* One dimension of phase r: where its pixels start and how many there are. */
static ptrdiff_t phase_pixels(ptrdiff_t size, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t r, ptrdiff_t *first)
{
    *first = ((r - pad) % stride + stride) % stride;
    return *first < size ? (size - *first + stride - 1) / stride : 0;
}

void simd_conv_dx(const simd_conv_shape *shape, simd_const_pixels dy, const float *transposed,
                  const simd_finish *finish, simd_pixels dx, float *scratch)
{
    grid g = {.images = shape->images, .step_y = shape->stride_y, .step_x = shape->stride_x, .from_y = 1, .from_x = 1};
    g.out_height = shape->height, g.out_width = shape->width, g.outputs = shape->inputs;
    g.in_height = shape->out_height, g.in_width = shape->out_width;
    g.in = dy, g.out = dx, g.weights = transposed, g.finish = finish;
    ptrdiff_t *numbers = lay_out_grid(&g, shape, shape->outputs, scratch);
    for (ptrdiff_t ry = 0; ry < shape->stride_y; ry++)
        for (ptrdiff_t rx = 0; rx < shape->stride_x; rx++) {
            g.rows = phase_pixels(shape->height, shape->stride_y, shape->pad_top, ry, &g.first_y);
            g.columns = phase_pixels(shape->width, shape->stride_x, shape->pad_left, rx, &g.first_x);
            const tap_axis down = {ry, shape->stride_y, shape->kernel_height, g.first_y + shape->pad_top,
                                   -1, shape->stride_y};
            const tap_axis across = {rx, shape->stride_x, shape->kernel_width, g.first_x + shape->pad_left,
                                     -1, shape->stride_x};
            list_taps(&g, numbers, shape->kernel_width, &down, &across);
            run_grid(&g, shape->slots);
        }
}

/* ---- Weight gradient --------------------------------------------------------------------------------------------- */

/* Pixels are taken in chunks. Of each chunk x is packed for every tap as [taps][inputs / 16][pixels][16], dy
 * likewise; the blocks of dw, products of two such strips, are shared out. A block's sum continues over all chunks. */
typedef struct {
    grid g; /* of the forward convolution: where x is read */
    const simd_conv_shape *shape;
    simd_const_pixels dy;
    float *dw, *x_pack, *dy_pack;
    ptrdiff_t chunk, begin, end;
    ptrdiff_t in_blocks, out_blocks;
    int accumulate;
} weight_gradient;

enum { PACK_PIXELS = 32, CHUNK_FLOATS = 1 << 18 };

/* As many pixels as keep both packs within a megabyte, 64 to 512. */
static ptrdiff_t chunk_pixels(const simd_conv_shape *s)
{
    const ptrdiff_t width = tap_count(s) * psld_round16(s->inputs) + psld_round16(s->outputs);
    const ptrdiff_t fit = psld_max(64, psld_min(512, CHUNK_FLOATS / width / PACK_PIXELS * PACK_PIXELS));
    return psld_min(fit, s->images * s->out_height * s->out_width);
}

static ptrdiff_t pack_size(const simd_conv_shape *s)
{
    return chunk_pixels(s) * (tap_count(s) * psld_round16(s->inputs) + psld_round16(s->outputs));
}

ptrdiff_t simd_conv_scratch(const simd_conv_shape *shape)
{
    const ptrdiff_t gradient =
        simd_conv_is_thin(shape) ? simd_conv_thin_scratch(shape) : grid_scratch(shape) + pack_size(shape);
    return psld_max(grid_scratch(shape), gradient);
}

/* One pixel's channels to its place in every strip of 16. */
static void pack_pixel(const float *from, ptrdiff_t channels, float *to, ptrdiff_t strip)
{
    const ptrdiff_t width = psld_round8(channels);
    for (ptrdiff_t c = 0; c < width; c += 16, to += strip)
        for (int lane = 0; lane < 16; lane += V_LANES)
            v_store(to + lane, c + lane < width ? v_load_part(from + c + lane, width - c - lane) : v_zero());
}

/* The channels of two pixels in pairs; NULL: zeros. */
static void pack_two_pixels(const float *first, const float *second, ptrdiff_t channels, float *to, ptrdiff_t strip)
{
    const ptrdiff_t width = psld_round8(channels);
    for (ptrdiff_t c = 0; c < width; c += 16, to += strip)
        v_store(to, v_pair(v_load_part(first + c, width - c), second ? v_load_part(second + c, width - c) : v_zero()));
}

/* Pixels first ... last - 1 of one tap, or of dy. */
static void pack_pairs(const weight_gradient *w, ptrdiff_t tap, ptrdiff_t first, ptrdiff_t last)
{
    const grid *g = &w->g;
    const ptrdiff_t strip = w->chunk * 16;
    position at = position_of(g, first);
    for (ptrdiff_t p = first; p < last; p += 2, next_position(g, &at)) {
        const ptrdiff_t place = (p - w->begin) / 2 * 16;
        const float *one = w->dy.data + p * w->dy.stride;
        if (tap == g->taps.taps) {
            pack_two_pixels(one, p + 1 < last ? one + w->dy.stride : NULL, w->shape->outputs, w->dy_pack + place,
                            strip);
            continue;
        }
        one = source_of(g, &at, tap);
        next_position(g, &at);
        pack_two_pixels(one, p + 1 < last ? source_of(g, &at, tap) : NULL, w->shape->inputs,
                        w->x_pack + tap * w->in_blocks * strip + place, strip);
    }
}

static void pack_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const weight_gradient *w = context;
    const grid *g = &w->g;
    const ptrdiff_t tap = task % (g->taps.taps + 1), strip = w->chunk * 16;
    const ptrdiff_t first = w->begin + task / (g->taps.taps + 1) * PACK_PIXELS;
    const ptrdiff_t last = psld_min(w->end, first + PACK_PIXELS);
    if (w->shape->pairs) {
        pack_pairs(w, tap, first, last);
        return;
    }
    position at = position_of(g, first);
    for (ptrdiff_t p = first; p < last; p++, next_position(g, &at)) {
        const ptrdiff_t place = (p - w->begin) * 16;
        if (tap == g->taps.taps)
            pack_pixel(w->dy.data + p * w->dy.stride, w->shape->outputs, w->dy_pack + place, strip);
        else
            pack_pixel(source_of(g, &at, tap), w->shape->inputs, w->x_pack + tap * w->in_blocks * strip + place, strip);
    }
}

/* A tap of all blocks of some panels of outputs, as many as a tile takes. */
static void conv_product_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const weight_gradient *w = context;
    const ptrdiff_t taps = w->g.taps.taps, tap = task % taps, j = task / taps * TILE_PANELS, strip = w->chunk * 16;
    const ptrdiff_t panels = psld_min(TILE_PANELS, w->out_blocks - j), apart = w->in_blocks * taps * 256;
    const ptrdiff_t pixels = w->end - w->begin, length = w->shape->pairs ? (pixels + 1) / 2 : pixels;
    const int continues = w->accumulate || w->begin > 0;
    for (ptrdiff_t i = 0; i < w->in_blocks; i++) {
        const ptrdiff_t rows = psld_min(16, w->shape->inputs - 16 * i);
        float *dw = w->dw + ((j * w->in_blocks + i) * taps + tap) * 256;
        for (ptrdiff_t panel = 0; !continues && panel < panels; panel++)
            memset(dw + panel * apart + 16 * rows, 0, (size_t)(16 - rows) * 16 * sizeof *dw);
        simd_gemm_tn(w->shape->pairs, rows, length, w->x_pack + (tap * w->in_blocks + i) * strip, 16,
                     w->dy_pack + j * strip, strip, 16, dw, apart, 16, (int)(16 * panels), continues);
    }
}

void simd_conv_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw, int accumulate,
                  float *scratch)
{
    if (simd_conv_is_thin(shape)) {
        simd_conv_thin_dw(shape, x, dy, dw, accumulate, scratch);
        return;
    }
    weight_gradient w = {.shape = shape, .dy = dy, .dw = dw, .accumulate = accumulate};
    grid *g = &w.g;
    g->rows = shape->out_height, g->columns = shape->out_width;
    g->from_y = shape->stride_y, g->from_x = shape->stride_x;
    g->in_height = shape->height, g->in_width = shape->width, g->in = x;
    const tap_axis down = {0, 1, shape->kernel_height, -shape->pad_top, 1, 1};
    const tap_axis across = {0, 1, shape->kernel_width, -shape->pad_left, 1, 1};
    list_taps(g, lay_out_grid(g, shape, shape->inputs, scratch), shape->kernel_width, &down, &across);
    w.chunk = chunk_pixels(shape);
    w.in_blocks = (shape->inputs + 15) / 16;
    w.out_blocks = (shape->outputs + 15) / 16;
    w.x_pack = scratch + grid_scratch(shape);
    w.dy_pack = w.x_pack + w.chunk * g->taps.taps * w.in_blocks * 16;
    const ptrdiff_t pixels = shape->images * shape->out_height * shape->out_width;
    for (w.begin = 0; w.begin < pixels; w.begin = w.end) {
        w.end = psld_min(pixels, w.begin + w.chunk);
        const ptrdiff_t parts = (w.end - w.begin + PACK_PIXELS - 1) / PACK_PIXELS;
        psld_parallel_tasks(shape->slots, parts * (g->taps.taps + 1), pack_task, &w);
        const ptrdiff_t groups = (w.out_blocks + TILE_PANELS - 1) / TILE_PANELS;
        psld_parallel_tasks(shape->slots, groups * g->taps.taps, conv_product_task, &w);
    }
}
