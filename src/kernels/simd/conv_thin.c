/* The weight gradient if one side has few channels, as in the first and the last layer of a network. Strips of 16
 * channels would be mostly zeros.
 *
 * Every pixel of the wide side gets its patch of the thin side, [taps][thin] numbers. The gradient is the product of
 * all patches, transposed, and the wide side. If the wide side is dy, the patches are those of the convolution. If
 * it is x, they are those of its adjoint, which has no gaps only for stride 1. Every element is one chain over the
 * pixels in their order, with zeros outside the image, and so has the same bits as in the general algorithm of
 * simd_conv_dw.
 *
 * A task computes some rows of the product for all pixels. It packs these rows of the patches for some hundred
 * pixels at a time, so no task waits for another. */
#include "base/threads.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/sizes.h"

enum { CHUNK = 512, MAX_ROWS = 6, FEWEST_ROWS = 4 };

typedef struct {
    const simd_conv_shape *shape;
    int adjoint;            /* the thin side is dy */
    ptrdiff_t thin, blocks; /* channels of the thin side; blocks of 16 of the wide one */
    ptrdiff_t rows, groups; /* taps * thin, and into how many tasks they are cut */
    ptrdiff_t height, width, thin_height, thin_width;
    simd_const_pixels from, wide;
    float *patches, *sums; /* [slots][CHUNK][rows of a task], [blocks][rows][16] */
    int accumulate;
} thin_gradient;

static int is_adjoint(const simd_conv_shape *s)
{
    return s->inputs >= 16;
}

/* The wide side is read 16 channels at a time where it lies. */
int simd_conv_is_thin(const simd_conv_shape *s)
{
    const int adjoint = is_adjoint(s);
    const ptrdiff_t thin = adjoint ? s->outputs : s->inputs, wide = adjoint ? s->inputs : s->outputs;
    return thin < 16 && psld_round8(wide) % 16 == 0 && (!adjoint || (s->stride_y == 1 && s->stride_x == 1));
}

static thin_gradient thin_of(const simd_conv_shape *s)
{
    thin_gradient g = {.shape = s, .adjoint = is_adjoint(s)};
    g.thin = g.adjoint ? s->outputs : s->inputs;
    g.blocks = ((g.adjoint ? s->inputs : s->outputs) + 15) / 16;
    g.rows = s->kernel_height * s->kernel_width * g.thin;
    g.height = g.adjoint ? s->height : s->out_height, g.width = g.adjoint ? s->width : s->out_width;
    g.thin_height = g.adjoint ? s->out_height : s->height, g.thin_width = g.adjoint ? s->out_width : s->width;
    const ptrdiff_t groups = (g.rows + MAX_ROWS - 1) / MAX_ROWS, even = (groups + s->slots - 1) / s->slots * s->slots;
    g.groups = even * FEWEST_ROWS <= g.rows ? even : groups;
    return g;
}

ptrdiff_t simd_conv_thin_scratch(const simd_conv_shape *s)
{
    const thin_gradient g = thin_of(s);
    return s->slots * CHUNK * MAX_ROWS + g.blocks * g.rows * 16;
}

/* ---- Patches ----------------------------------------------------------------------------------------------------- */

/* Where tap `k` of pixel `at` reads, in one direction; -1: outside. */
static ptrdiff_t thin_source(int adjoint, ptrdiff_t at, ptrdiff_t k, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t size)
{
    const ptrdiff_t from = adjoint ? at - k + pad : at * stride + k - pad;
    return from >= 0 && from < size ? from : -1;
}

/* Row `row` of the patches of pixels begin ... end - 1, line by line, to every `stride`-th place. */
static void pack_row(const thin_gradient *g, ptrdiff_t row, ptrdiff_t begin, ptrdiff_t end, float *to, ptrdiff_t stride)
{
    const simd_conv_shape *s = g->shape;
    const ptrdiff_t tap = row / g->thin, ky = tap / s->kernel_width, kx = tap % s->kernel_width;
    for (ptrdiff_t p = begin, next = 0; p < end; p = next) {
        const ptrdiff_t line = p / g->width, first = p - line * g->width;
        next = psld_min(end, (line + 1) * g->width);
        const ptrdiff_t y = thin_source(g->adjoint, line % g->height, ky, s->stride_y, s->pad_top, g->thin_height);
        const ptrdiff_t from = (line / g->height * g->thin_height + y) * g->thin_width;
        for (ptrdiff_t b = first; b < first + next - p; b++, to += stride) {
            const ptrdiff_t x = thin_source(g->adjoint, b, kx, s->stride_x, s->pad_left, g->thin_width);
            *to = y < 0 || x < 0 ? 0 : g->from.data[(from + x) * g->from.stride + row % g->thin];
        }
    }
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

static void rows_task(void *context, int slot, ptrdiff_t task)
{
    const thin_gradient *g = context;
    const ptrdiff_t first = g->rows * task / g->groups, rows = g->rows * (task + 1) / g->groups - first;
    const ptrdiff_t pixels = g->shape->images * g->height * g->width;
    float *patches = g->patches + slot * CHUNK * MAX_ROWS;
    for (ptrdiff_t begin = 0; begin < pixels; begin += CHUNK) {
        const ptrdiff_t end = psld_min(pixels, begin + CHUNK);
        for (ptrdiff_t row = 0; row < rows; row++) pack_row(g, first + row, begin, end, patches + row, rows);
        for (ptrdiff_t block = 0; block < g->blocks; block++)
            simd_gemm_tn(0, rows, end - begin, patches, rows, g->wide.data + begin * g->wide.stride + 16 * block, 0,
                         g->wide.stride, g->sums + (block * g->rows + first) * 16, 0, 16, 16,
                         g->accumulate || begin > 0);
    }
}

/* The place in blocks of weights of channel t of the thin side and `lane` of a block of the wide one. */
static ptrdiff_t thin_weight_offset(const thin_gradient *g, ptrdiff_t block, ptrdiff_t tap, ptrdiff_t t, ptrdiff_t lane)
{
    const ptrdiff_t taps = g->shape->kernel_height * g->shape->kernel_width;
    return (block * taps + tap) * 256 + (g->adjoint ? lane * 16 + t : t * 16 + lane);
}

/* Copies between sums and dw: with `out` it writes dw, and zeros where there are no channels. */
static void exchange_sums(const thin_gradient *g, int out, float *dw)
{
    for (ptrdiff_t block = 0; block < g->blocks; block++)
        for (ptrdiff_t tap = 0; tap < g->rows / g->thin; tap++)
            for (ptrdiff_t t = 0; t < 16; t++)
                for (ptrdiff_t lane = 0; lane < 16; lane++) {
                    float *sum = g->sums + (block * g->rows + tap * g->thin + t) * 16 + lane;
                    float *to = dw + thin_weight_offset(g, block, tap, t, lane);
                    if (out)
                        *to = t < g->thin ? *sum : 0;
                    else if (t < g->thin)
                        *sum = *to;
                }
}

void simd_conv_thin_dw(const simd_conv_shape *shape, simd_const_pixels x, simd_const_pixels dy, float *dw,
                       int accumulate, float *scratch)
{
    thin_gradient g = thin_of(shape);
    g.from = g.adjoint ? dy : x, g.wide = g.adjoint ? x : dy;
    g.sums = scratch, g.patches = scratch + g.blocks * g.rows * 16;
    g.accumulate = accumulate;
    if (accumulate) exchange_sums(&g, 0, dw);
    psld_parallel_tasks(shape->slots, g.groups, rows_task, &g);
    exchange_sums(&g, 1, dw);
}
