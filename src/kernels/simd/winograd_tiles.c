/* From the input to V = B' d B. Rows go through a ring with zeros around them, so the transform knows no borders. */
#include <string.h>

#include "kernels/simd/winograd_transform.h"

winograd_tiles simd_winograd_tiles(const simd_conv_shape *shape)
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
static void fill_ring_row(const simd_conv_shape *s, const winograd_tiles *t, simd_const_pixels x, ptrdiff_t image,
                          ptrdiff_t row, float *to)
{
    const ptrdiff_t y = row - s->pad_top;
    if (y < 0 || y >= s->height) {
        clear_floats(to, t->columns * t->pixel);
        return;
    }
    const ptrdiff_t count = psld_min(s->width, t->columns - s->pad_left);
    float *first = to + s->pad_left * t->pixel, *rest = first + count * t->pixel;
    clear_floats(to, s->pad_left * t->pixel);
    simd_copy(count, s->inputs, x.data + (image * s->height + y) * s->width * x.stride, x.stride, first, t->pixel);
    clear_floats(rest, (t->columns - s->pad_left - count) * t->pixel);
    if (t->channels % 16)
        for (float *pixel = first; pixel < rest; pixel += t->pixel) clear_floats(pixel + t->channels, 8);
}

/* A vector of channels, `left` of them and more in the planes: rows first, then columns. The loops that hold a row of vectors are unrolled, the others are not: the
 * whole would not fit into the registers. */
SIMD_INLINE void transform_vector(int size, const float *const rows[WINOGRAD_EDGE], ptrdiff_t pixel, float *v,
                                  ptrdiff_t plane, ptrdiff_t left)
{
    const int edge = size + 2;
    vec t[WINOGRAD_POINTS];
#pragma GCC unroll 1
    for (int i = 0; i < edge; i++) {
        vec d[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < edge; j++) d[j] = v_load(rows[i] + j * pixel);
        winograd_input(size, d, t + edge * i, 1);
    }
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, v += plane) {
        vec d[WINOGRAD_EDGE], o[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) d[i] = t[edge * i + j];
        winograd_input(size, d, o, 1);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v_store_part(v + edge * i * plane, left, o[i]);
    }
}

SIMD_INLINE void transform_tile(int size, const float *const first[WINOGRAD_EDGE], ptrdiff_t column, ptrdiff_t pixel,
                                const winograd_target *target, float *v)
{
    const float *rows[WINOGRAD_EDGE];
    for (int i = 0; i < size + 2; i++) rows[i] = first[i] + column * pixel;
    for (ptrdiff_t c = 0; c < target->channels; c += V_LANES) {
        transform_vector(size, rows, pixel, v + c / 16 * target->block + c % 16, target->plane, target->channels - c);
        for (int i = 0; i < size + 2; i++) rows[i] += V_LANES;
    }
}

void simd_winograd_tile_row(const simd_conv_shape *shape, const winograd_tiles *tiles, simd_const_pixels x,
                            winograd_ring *ring, ptrdiff_t row, const winograd_target *target)
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
