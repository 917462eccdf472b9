/* From the input to V = B' d B. Rows go through a ring with zeros around them, so the transform knows no borders. */
#include <string.h>

#include "kernels/simd/winograd_transform.h"

winograd_tiles simd_winograd_tiles(const simd_conv_shape *shape, ptrdiff_t size)
{
    winograd_tiles tiles = {.size = size, .points = (size + 2) * (size + 2)};
    tiles.across = (shape->out_width + size - 1) / size;
    tiles.down = (shape->out_height + size - 1) / size;
    tiles.rows = tiles.down * shape->images;
    tiles.channels = psld_round8(shape->inputs);
    tiles.units = winograd_units(shape);
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

/* The rows of a tile of a vector of channels are transformed, then the columns. The loops that hold a row of vectors are
 * unrolled, the others are not: the whole would not fit into the registers. */
SIMD_INLINE void transform_rows(int size, const float *const rows[WINOGRAD_EDGE], ptrdiff_t pixel, vec *t)
{
#pragma GCC unroll 1
    for (int i = 0; i < size + 2; i++) {
        vec d[WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < size + 2; j++) d[j] = v_load(rows[i] + j * pixel);
        winograd_input(size, d, t + (size + 2) * i, 1);
    }
}

SIMD_INLINE void transform_column(int size, int j, const vec *t, vec o[WINOGRAD_EDGE])
{
    vec d[WINOGRAD_EDGE];
#pragma GCC unroll 6
    for (int i = 0; i < size + 2; i++) d[i] = t[(size + 2) * i + j];
    winograd_input(size, d, o, 1);
}

/* A vector of channels, `left` of them and more in the planes. */
SIMD_INLINE void transform_vector(int size, int narrow, const float *const rows[WINOGRAD_EDGE], ptrdiff_t pixel,
                                  float *v, ptrdiff_t plane, ptrdiff_t left)
{
    const int edge = size + 2;
    vec t[WINOGRAD_POINTS];
    transform_rows(size, rows, pixel, t);
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, v += plane) {
        vec o[WINOGRAD_EDGE];
        transform_column(size, j, t, o);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) {
            if (narrow)
                v_store_narrow(v + edge * i * plane, o[i]);
            else
                v_store_part(v + edge * i * plane, left, o[i]);
        }
    }
}

/* The same of two tiles, `apart` floats from one to the other in the ring; 0: the second is all zeros. */
SIMD_INLINE void transform_two_vectors(int size, const float *const rows[WINOGRAD_EDGE], ptrdiff_t apart,
                                       ptrdiff_t pixel, float *v, ptrdiff_t plane)
{
    const int edge = size + 2;
    const float *second[WINOGRAD_EDGE];
    vec t[WINOGRAD_POINTS], u[WINOGRAD_POINTS];
    for (int i = 0; i < edge; i++) second[i] = rows[i] + apart;
    transform_rows(size, rows, pixel, t);
    transform_rows(size, second, pixel, u);
#pragma GCC unroll 1
    for (int j = 0; j < edge; j++, v += plane) {
        vec o[WINOGRAD_EDGE], p[WINOGRAD_EDGE];
        transform_column(size, j, t, o);
        transform_column(size, j, u, p);
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) v_store(v + edge * i * plane, v_pair(o[i], apart ? p[i] : v_zero()));
    }
}

/* All channels of a tile, or of the two from it on. */
SIMD_INLINE void transform_tile(int size, winograd_form form, const float *const first[WINOGRAD_EDGE], ptrdiff_t column,
                                ptrdiff_t apart, ptrdiff_t pixel, const winograd_target *target, float *v)
{
    const float *rows[WINOGRAD_EDGE];
    for (int i = 0; i < size + 2; i++) rows[i] = first[i] + column * pixel;
    for (ptrdiff_t c = 0; c < target->channels; c += V_LANES) {
        float *to = v + c / 16 * target->block + c % 16;
        if (form == WINOGRAD_PAIRED_TILES)
            transform_two_vectors(size, rows, apart, pixel, to, target->plane);
        else
            transform_vector(size, form == WINOGRAD_PAIRED_CHANNELS, rows, pixel, to, target->plane,
                             target->channels - c);
        for (int i = 0; i < size + 2; i++) rows[i] += V_LANES;
    }
}

SIMD_INLINE void transform_tile_row(int size, winograd_form form, const float *const rows[WINOGRAD_EDGE],
                                    const winograd_tiles *tiles, const winograd_target *target)
{
    const ptrdiff_t step = form == WINOGRAD_PAIRED_TILES ? 2 : 1;
    float *v = target->v;
    for (ptrdiff_t t = 0; t < tiles->across; t += step, v += target->tile)
        transform_tile(size, form, rows, size * t, t + 1 < tiles->across ? size * tiles->pixel : 0, tiles->pixel,
                       target, v);
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
    const int is_four = tiles->size == 4;
    if (target->form == WINOGRAD_FLOATS && is_four)
        transform_tile_row(4, WINOGRAD_FLOATS, rows, tiles, target);
    else if (target->form == WINOGRAD_FLOATS)
        transform_tile_row(2, WINOGRAD_FLOATS, rows, tiles, target);
    else if (target->form == WINOGRAD_PAIRED_CHANNELS && is_four)
        transform_tile_row(4, WINOGRAD_PAIRED_CHANNELS, rows, tiles, target);
    else if (target->form == WINOGRAD_PAIRED_CHANNELS)
        transform_tile_row(2, WINOGRAD_PAIRED_CHANNELS, rows, tiles, target);
    else if (is_four)
        transform_tile_row(4, WINOGRAD_PAIRED_TILES, rows, tiles, target);
    else
        transform_tile_row(2, WINOGRAD_PAIRED_TILES, rows, tiles, target);
}
