/* The transforms of F(4 x 4, 3 x 3) and F(2 x 2, 3 x 3), for winograd.c, winograd_weights.c and winograd_dw.c.
 *
 * Four outputs y_i = sum_k g_k d_(i+k) of a 3-tap filter are, transposed, the product of two polynomials of degrees 3
 * and 2 (Toom-Cook): evaluate both at six points, multiply, interpolate. With the points 0, +-a, +-b, infinity and
 * N(x) = x (x^2 - a^2) (x^2 - b^2):
 *
 *     y = A' ((G g) . (B' d)),    A'[i][p] = p^i,    G[p][k] = p^k / N'(p),    B'[p][] = coefficients of N(x) / (x - p)
 *
 * with A' = (0 0 0 1)' and G = (0 0 1) at infinity, where B' has the coefficients of N itself. In two dimensions each
 * acts on columns, then on rows. Written out, with A = a^2, B = b^2:
 *
 *          | AB   0  -A-B   0   1  0 |        | 1/AB             |         | 1  1  1  1  1  0 |
 *          |  0 -aB   -B    a   1  0 |        | n   an   An      |         | 0  a -a  b -b  0 |
 *     B' = |  0  aB   -B   -a   1  0 |    G = | n  -an   An      |    A' = | 0  A  A  B  B  0 |   n = 1 / (2A (A - B))
 *          |  0 -bA   -A    b   1  0 |        | m   bm   Bm      |         | 0 aA -aA bB -bB 1 |  m = 1 / (2B (B - A))
 *          |  0  bA   -A   -b   1  0 |        | m  -bm   Bm      |
 *          |  0  AB    0  -A-B  0  1 |        | 0    0    1      |
 *
 * For two outputs the points 0, +-1, infinity do (b and its rows fall away).
 *
 * a = 0.625, b = 1.5 halve the rounding error of the usual 1 and 2, and all of A' and B' is exact in float. The
 * weight gradient is the transpose of the whole, G' ((B' d B) . (A dy A')) G: it needs A and G' besides. */
#ifndef PSLD_KERNELS_SIMD_WINOGRAD_TRANSFORM_H
#define PSLD_KERNELS_SIMD_WINOGRAD_TRANSFORM_H

#include "kernels/simd/conv.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

/* The largest tile: 4 x 4 outputs from 6 x 6 inputs. `size` is 4 or 2 below, and always a constant when inlined. */
enum { WINOGRAD_EDGE = 6, WINOGRAD_POINTS = 36 };

#define WINOGRAD_A  0.625F
#define WINOGRAD_B  1.5F
#define WINOGRAD_A2 (WINOGRAD_A * WINOGRAD_A)
#define WINOGRAD_B2 (WINOGRAD_B * WINOGRAD_B)
/* Rounded once, from double. */
#define WINOGRAD_N(x2, y2) (1.0 / (2.0 * (double)(x2) * ((double)(x2) - (double)(y2))))
#define WINOGRAD_N0        ((float)(1.0 / ((double)WINOGRAD_A2 * (double)WINOGRAD_B2)))
#define WINOGRAD_NA        WINOGRAD_N(WINOGRAD_A2, WINOGRAD_B2)
#define WINOGRAD_NB        WINOGRAD_N(WINOGRAD_B2, WINOGRAD_A2)

/* o = B' d; o[] is `step` apart */
SIMD_INLINE void winograd_input(int size, const vec *d, vec *o, int step)
{
    if (size == 2) {
        o[0] = v_sub(d[0], d[2]);
        o[step] = v_add(d[2], d[1]);
        o[2 * step] = v_sub(d[2], d[1]);
        o[3 * step] = v_sub(d[3], d[1]);
        return;
    }
    const vec product = v_set(WINOGRAD_A2 * WINOGRAD_B2), sum = v_set(WINOGRAD_A2 + WINOGRAD_B2);
    o[0] = v_fma(d[0], product, v_fnma(d[2], sum, d[4]));
    vec even = v_fnma(v_set(WINOGRAD_B2), d[2], d[4]), odd = v_fnma(v_set(WINOGRAD_B2), d[1], d[3]);
    o[step] = v_fma(v_set(WINOGRAD_A), odd, even);
    o[2 * step] = v_fnma(v_set(WINOGRAD_A), odd, even);
    even = v_fnma(v_set(WINOGRAD_A2), d[2], d[4]);
    odd = v_fnma(v_set(WINOGRAD_A2), d[1], d[3]);
    o[3 * step] = v_fma(v_set(WINOGRAD_B), odd, even);
    o[4 * step] = v_fnma(v_set(WINOGRAD_B), odd, even);
    o[5 * step] = v_fma(d[1], product, v_fnma(d[3], sum, d[5]));
}

/* y = A' m, size + 2 -> size */
SIMD_INLINE void winograd_output(int size, const vec *m, vec *y, int step)
{
    if (size == 2) {
        y[0] = v_add(m[0], v_add(m[1], m[2]));
        y[step] = v_add(v_sub(m[1], m[2]), m[3]);
        return;
    }
    const vec s1 = v_add(m[1], m[2]), d1 = v_sub(m[1], m[2]), s2 = v_add(m[3], m[4]), d2 = v_sub(m[3], m[4]);
    y[0] = v_add(m[0], v_add(s1, s2));
    y[step] = v_fma(v_set(WINOGRAD_B), d2, v_mul(v_set(WINOGRAD_A), d1));
    y[2 * step] = v_fma(v_set(WINOGRAD_B2), s2, v_mul(v_set(WINOGRAD_A2), s1));
    y[3 * step] = v_fma(v_set(WINOGRAD_B2 * WINOGRAD_B), d2, v_fma(v_set(WINOGRAD_A2 * WINOGRAD_A), d1, m[5]));
}

/* z = A y, size -> size + 2 */
SIMD_INLINE void winograd_gradient(int size, const vec *y, vec *z, int step)
{
    if (size == 2) {
        z[0] = y[0];
        z[step] = v_add(y[0], y[1]);
        z[2 * step] = v_sub(y[0], y[1]);
        z[3 * step] = y[1];
        return;
    }
    z[0] = y[0];
    vec even = v_fma(v_set(WINOGRAD_A2), y[2], y[0]), odd = v_fma(v_set(WINOGRAD_A2), y[3], y[1]);
    z[step] = v_fma(v_set(WINOGRAD_A), odd, even);
    z[2 * step] = v_fnma(v_set(WINOGRAD_A), odd, even);
    even = v_fma(v_set(WINOGRAD_B2), y[2], y[0]);
    odd = v_fma(v_set(WINOGRAD_B2), y[3], y[1]);
    z[3 * step] = v_fma(v_set(WINOGRAD_B), odd, even);
    z[4 * step] = v_fnma(v_set(WINOGRAD_B), odd, even);
    z[5 * step] = y[3];
}

/* u = G w, 3 -> size + 2 */
SIMD_INLINE void winograd_weight(int size, const vec *w, vec *u, int step)
{
    if (size == 2) {
        const vec even = v_mul(v_set(0.5F), v_add(w[0], w[2]));
        u[0] = w[0];
        u[step] = v_fma(v_set(0.5F), w[1], even);
        u[2 * step] = v_fnma(v_set(0.5F), w[1], even);
        u[3 * step] = w[2];
        return;
    }
    const vec na = v_set((float)WINOGRAD_NA), nb = v_set((float)WINOGRAD_NB);
    const vec ana = v_set((float)(WINOGRAD_NA * (double)WINOGRAD_A));
    const vec bnb = v_set((float)(WINOGRAD_NB * (double)WINOGRAD_B));
    u[0] = v_mul(v_set(WINOGRAD_N0), w[0]);
    vec even = v_mul(na, v_fma(v_set(WINOGRAD_A2), w[2], w[0]));
    u[step] = v_fma(ana, w[1], even);
    u[2 * step] = v_fnma(ana, w[1], even);
    even = v_mul(nb, v_fma(v_set(WINOGRAD_B2), w[2], w[0]));
    u[3 * step] = v_fma(bnb, w[1], even);
    u[4 * step] = v_fnma(bnb, w[1], even);
    u[5 * step] = w[2];
}

/* w = G' u, size + 2 -> 3 */
SIMD_INLINE void winograd_weight_gradient(int size, const vec *u, vec *w, int step)
{
    if (size == 2) {
        const vec sum = v_mul(v_set(0.5F), v_add(u[1], u[2]));
        w[0] = v_add(u[0], sum);
        w[step] = v_mul(v_set(0.5F), v_sub(u[1], u[2]));
        w[2 * step] = v_add(u[3], sum);
        return;
    }
    const vec s1 = v_add(u[1], u[2]), d1 = v_sub(u[1], u[2]), s2 = v_add(u[3], u[4]), d2 = v_sub(u[3], u[4]);
    const vec na = v_set((float)WINOGRAD_NA), nb = v_set((float)WINOGRAD_NB);
    const vec a2na = v_set((float)(WINOGRAD_NA * (double)WINOGRAD_A2));
    const vec b2nb = v_set((float)(WINOGRAD_NB * (double)WINOGRAD_B2));
    w[0] = v_fma(v_set(WINOGRAD_N0), u[0], v_fma(nb, s2, v_mul(na, s1)));
    w[step] = v_fma(v_set((float)(WINOGRAD_NB * (double)WINOGRAD_B)), d2,
                    v_mul(v_set((float)(WINOGRAD_NA * (double)WINOGRAD_A)), d1));
    w[2 * step] = v_add(u[5], v_fma(b2nb, s2, v_mul(a2na, s1)));
}

/* ---- Tiles and the ring of rows ---------------------------------------------------------------------------------- */

/* Tiles of size x size outputs; a tile row is the tiles of `size` rows of one image, numbered through the batch. */
typedef struct {
    ptrdiff_t size, points;   /* 4 or 2; 36 or 16 frequencies */
    ptrdiff_t across, down;   /* tiles of an image */
    ptrdiff_t rows;           /* tile rows of the batch */
    ptrdiff_t channels;       /* of the input, whole vectors */
    ptrdiff_t units;          /* of V for a tile: channels, or pairs of them */
    ptrdiff_t columns, pixel; /* of the ring: columns in a row, floats from column to column */
} winograd_tiles;

enum { WINOGRAD_RING_ROWS = 8 };

winograd_tiles simd_winograd_tiles(const simd_conv_shape *shape, ptrdiff_t size);

/* The input around the tile row at hand: eight rows with their padding, of which up to six are in use. Row r of the padded
 * image is in row r mod 8, so that the next tile row of the same image needs `size` new ones only. Channels are zero up
 * to a multiple of 16. */
typedef struct {
    float *data;
    ptrdiff_t image;        /* whose rows it has; -1: none */
    ptrdiff_t filled_until; /* the first row of the padded image that it does not have */
} winograd_ring;

static inline ptrdiff_t winograd_ring_size(const winograd_tiles *tiles)
{
    return WINOGRAD_RING_ROWS * tiles->columns * tiles->pixel;
}

/* What V is kept as: floats, or pairs of bfloat16, either of neighbouring channels or of the same channel of neighbouring
 * tiles of a row (the last of which may be alone). */
typedef enum { WINOGRAD_FLOATS, WINOGRAD_PAIRED_CHANNELS, WINOGRAD_PAIRED_TILES } winograd_form;

/* V of all tiles of tile row `row`. Frequency f of tile t (or pair of tiles t), channel c goes to v[f plane + t tile + c / 16 block
 * + c % 16], and the pairs of channels of a block to its first eight places. */
typedef struct {
    float *v;
    ptrdiff_t plane, tile, block, channels;
    winograd_form form;
} winograd_target;

void simd_winograd_tile_row(const simd_conv_shape *shape, const winograd_tiles *tiles, simd_const_pixels x,
                            winograd_ring *ring, ptrdiff_t row, const winograd_target *target);

/* Outputs of a tile along each axis. An image of 4 x 4 has but one tile of F(4 x 4), which leaves U, 36 numbers for 9
 * weights, to be read for a single row of each product: there F(2 x 2) does 1.8 times the products with 0.44 of U. Products
 * of pairs are so fast that reading U takes longest up to 8 x 8, and F(2 x 2) loses less by rounding. */
static inline ptrdiff_t winograd_size(const simd_conv_shape *shape)
{
    const ptrdiff_t small = shape->pairs ? 8 : 4;
    return shape->out_height <= small && shape->out_width <= small ? 2 : 4;
}

/* The same for weight gradients, which read no U. */
static inline ptrdiff_t winograd_gradient_size(const simd_conv_shape *shape)
{
    return shape->out_height <= 4 && shape->out_width <= 4 ? 2 : 4;
}

/* Numbers, or pairs of them, that an element of M is a sum of. */
static inline ptrdiff_t winograd_units(const simd_conv_shape *shape)
{
    return shape->pairs ? psld_round16(shape->inputs) / 2 : psld_round8(shape->inputs);
}

/* Floats from one of U's frequencies to the next, and of a panel of U, [points][plane]. */
static inline ptrdiff_t winograd_u_plane(const simd_conv_shape *shape)
{
    return psld_odd_lines(16 * winograd_units(shape));
}

static inline ptrdiff_t winograd_panel_size(const simd_conv_shape *shape)
{
    const ptrdiff_t edge = winograd_size(shape) + 2;
    return edge * edge * winograd_u_plane(shape);
}

/* The same panel in half precision: the factor that it is to be multiplied with (a float, in a line of its own), then its
 * numbers. */
enum { WINOGRAD_HALF_HEADER = 32 };

static inline ptrdiff_t winograd_half_panel_size(const simd_conv_shape *shape)
{
    return WINOGRAD_HALF_HEADER + winograd_panel_size(shape);
}

/* One panel of U from logical weights. */
void simd_winograd_panel(const simd_conv_shape *shape, int mirrored, const float *weights, ptrdiff_t panel, float *u);

#endif
