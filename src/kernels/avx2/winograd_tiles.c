/* From the input to V = B' d B. Rows go through a ring with zeros around them, so the transform knows no borders. */
#include <string.h>

#include "kernels/avx2/winograd_transform.h"

#if defined(__AVX2__) && defined(__FMA__)

winograd_tiles psld_winograd_tiles_avx2(const psld_conv_shape_avx2 *shape)
{
    const ptrdiff_t size = winograd_size(shape);
    winograd_tiles tiles = {.size = size, .points = (size + 2) * (size + 2)};
    tiles.across = (shape->out_width + size - 1) / size;
    tiles.down = (shape->out_height + size - 1) / size;
    tiles.rows = tiles.down * shape->images;
    tiles.channels = psld_round8(shape->inputs);
    tiles.columns = size * tiles.across + 2;
    tiles.pixel = psld_odd_lines(shape->inputs);
    return tiles;
}

static void clear_floats(float *from, ptrdiff_t count)
{
    if (count > 0) memset(from, 0, (size_t)count * sizeof *from);
}

/* One row of the padded image: zeros, the row's pixels, zeros. */
static void fill_ring_row(const psld_conv_shape_avx2 *s, const winograd_tiles *t, psld_const_pixels_avx2 x,
                          ptrdiff_t image, ptrdiff_t row, float *to)
{
    const ptrdiff_t y = row - s->pad_top;
    if (y < 0 || y >= s->height) {
        clear_floats(to, t->columns * t->pixel);
        return;
    }
    const ptrdiff_t count = psld_min(s->width, t->columns - s->pad_left);
    float *first = to + s->pad_left * t->pixel, *rest = first + count * t->pixel;
    clear_floats(to, s->pad_left * t->pixel);
    psld_copy_avx2(count, s->inputs, x.data + (image * s->height + y) * s->width * x.stride, x.stride, first, t->pixel);
    clear_floats(rest, (t->columns - s->pad_left - count) * t->pixel);
    if (t->channels % 16)
        for (float *pixel = first; pixel < rest; pixel += t->pixel) v8_store(pixel + t->channels, v8_zero());
}

/* Eight channels: rows first, then columns. The loops that hold a row of vectors are unrolled, the others are not: the
 * whole would not fit into the registers. */
V8_INLINE void transform8(int size, const float *const rows[WINOGRAD_EDGE], ptrdiff_t pixel, float *v, ptrdiff_t plane)
{
    const int edge = size + 2;
    v8 t[WINOGRAD_POINTS];
#pragma GCC unroll 1
    for (int i = 0; i < edge; i++) {
        v8 d[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < edge; j++) d[j] = v8_load(rows[i] + j * pixel);
        winograd_input(size, d, t + edge * i, 1);
    }
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, v += plane) {
        v8 d[WINOGRAD_EDGE], o[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) d[i] = t[edge * i + j];
        winograd_input(size, d, o, 1);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v8_store(v + edge * i * plane, o[i]);
    }
}

V8_INLINE void transform_tile(int size, const float *const first[WINOGRAD_EDGE], ptrdiff_t column, ptrdiff_t pixel,
                              const winograd_target *target, float *v)
{
    const float *rows[WINOGRAD_EDGE];
    for (int i = 0; i < size + 2; i++) rows[i] = first[i] + column * pixel;
    for (ptrdiff_t c = 0; c < target->channels; c += 8) {
        transform8(size, rows, pixel, v + c / 16 * target->block + c % 16, target->plane);
        for (int i = 0; i < size + 2; i++) rows[i] += 8;
    }
}

void psld_winograd_tile_row_avx2(const psld_conv_shape_avx2 *shape, const winograd_tiles *tiles,
                                 psld_const_pixels_avx2 x, winograd_ring *ring, ptrdiff_t row,
                                 const winograd_target *target)
{
    const ptrdiff_t image = row / tiles->down, top = row % tiles->down * tiles->size, bottom = top + tiles->size + 2;
    const ptrdiff_t length = tiles->columns * tiles->pixel;
    ptrdiff_t start = top;
    if (ring->image == image && ring->filled_until > top && ring->filled_until <= bottom) start = ring->filled_until;
    const float *rows[WINOGRAD_EDGE];
    for (ptrdiff_t r = top; r < bottom; r++) {
        float *to = ring->data + r % WINOGRAD_RING_ROWS * length;
        if (r >= start) fill_ring_row(shape, tiles, x, image, r, to);
        rows[r - top] = to;
    }
    ring->image = image;
    ring->filled_until = bottom;
    for (ptrdiff_t t = 0; t < tiles->across; t++) {
        float *v = target->v + t * target->tile;
        if (tiles->size == 4)
            transform_tile(4, rows, 4 * t, tiles->pixel, target, v);
        else
            transform_tile(2, rows, 2 * t, tiles->pixel, target, v);
    }
}

#endif
