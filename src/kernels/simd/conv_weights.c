/* Weights in blocks, [outputs / 16][inputs / 16][taps][16 inputs][16 outputs]: a block is what the products read in
 * one go, and square, so that the transposed weights of the data gradient are made of whole blocks, too. */
#include <string.h>

#include "base/threads.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

static ptrdiff_t count_taps(const simd_conv_shape *s)
{
    return s->kernel_height * s->kernel_width;
}

ptrdiff_t simd_conv_weights(const simd_conv_shape *shape)
{
    return psld_round16(shape->inputs) * psld_round16(shape->outputs) * count_taps(shape);
}

typedef struct {
    const float *from;
    float *to;
    ptrdiff_t in_blocks, out_blocks, taps;
    int mirrored; /* of pairs: the result is transposed */
} transposition;

static void transpose_range(void *context, size_t begin, size_t end)
{
    const transposition *t = context;
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        for (ptrdiff_t j = 0; j < t->out_blocks; j++)
            for (ptrdiff_t tap = 0; tap < t->taps; tap++) {
                const float *from = t->from + ((j * t->in_blocks + i) * t->taps + tap) * 256;
                float *to = t->to + ((i * t->out_blocks + j) * t->taps + tap) * 256;
                v_transpose16(from, to);
            }
}

void simd_conv_transpose(const simd_conv_shape *shape, const float *weights, float *transposed)
{
    transposition t = {.from = weights, .to = transposed, .taps = count_taps(shape)};
    t.in_blocks = (shape->inputs + 15) / 16, t.out_blocks = (shape->outputs + 15) / 16;
    psld_parallel((size_t)t.in_blocks, 1, transpose_range, &t);
}

/* Rows of a block, or its columns, as pairs. */
static void pair_block(int transposed, const float *block, float *to)
{
    vec r[V_LANES];
    if (V_LANES != 16) return; /* only such vectors come in pairs */
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++) r[i] = v_load(block + 16 * i);
    if (transposed) v_turn(r);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i += 2) v_store(to + 8 * i, v_pair(r[i], r[i + 1]));
}

static void pair_range(void *context, size_t begin, size_t end)
{
    const transposition *t = context;
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++)
        for (ptrdiff_t i = 0; i < t->in_blocks; i++)
            pair_block(t->mirrored, t->from + (j * t->in_blocks + i) * 256,
                       t->to + (t->mirrored ? i * t->out_blocks + j : j * t->in_blocks + i) * 128);
}

void simd_conv_pairs(const simd_conv_shape *shape, int transposed, const float *weights, float *pairs)
{
    transposition t = {.from = weights, .to = pairs, .mirrored = transposed, .taps = 1};
    t.in_blocks = (shape->inputs + 15) / 16, t.out_blocks = (shape->outputs + 15) / 16;
    psld_parallel((size_t)t.out_blocks, 1, pair_range, &t);
}

/* ---- Between the logical order and blocks ------------------------------------------------------------------------ */

/* A block's weights in the logical order: 16 rows of 16 taps numbers, some of them missing at the edges. */
typedef struct {
    ptrdiff_t first, row; /* where they begin, and floats from one output to the next */
    ptrdiff_t outputs, inputs, taps;
} block_view;

static block_view view_block(const simd_conv_shape *s, ptrdiff_t j, ptrdiff_t i)
{
    const ptrdiff_t taps = count_taps(s), row = s->inputs * taps;
    return (block_view){16 * j * row + 16 * i * taps, row, psld_min(16, s->outputs - 16 * j),
                        psld_min(16, s->inputs - 16 * i), taps};
}

static ptrdiff_t block_number(ptrdiff_t input, ptrdiff_t tap, ptrdiff_t output)
{
    return (tap * 16 + input) * 16 + output;
}

/* Whole blocks are transposed in square pieces: some outputs, as many of a row's numbers, each an input and a tap. */
SIMD_INLINE void read_whole_block(ptrdiff_t taps, const float *rows, ptrdiff_t row, float *block)
{
    for (ptrdiff_t part = 0; part < 16; part += V_LANES, rows += V_LANES * row)
        for (ptrdiff_t first = 0, input = 0, tap = 0; first < 16 * taps; first += V_LANES) {
            vec r[V_LANES];
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++) r[i] = v_load(rows + first + i * row);
            v_turn(r);
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++) {
                v_store(block + block_number(input, tap, part), r[i]);
                if (++tap == taps) tap = 0, input++;
            }
        }
}

SIMD_INLINE void write_whole_block(ptrdiff_t taps, const float *block, float *rows, ptrdiff_t row)
{
    for (ptrdiff_t part = 0; part < 16; part += V_LANES, rows += V_LANES * row)
        for (ptrdiff_t first = 0, input = 0, tap = 0; first < 16 * taps; first += V_LANES) {
            vec r[V_LANES];
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++) {
                r[i] = v_load(block + block_number(input, tap, part));
                if (++tap == taps) tap = 0, input++;
            }
            v_turn(r);
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++) v_store(rows + first + i * row, r[i]);
        }
}

void simd_conv_read_block(const simd_conv_shape *shape, const float *logical, ptrdiff_t j, ptrdiff_t i, float *block)
{
    const block_view v = view_block(shape, j, i);
    const float *rows = logical + v.first;
    if (v.outputs == 16 && v.inputs == 16) {
        read_whole_block(v.taps, rows, v.row, block);
        return;
    }
    memset(block, 0, (size_t)(256 * v.taps) * sizeof *block);
    for (ptrdiff_t o = 0; o < v.outputs; o++)
        for (ptrdiff_t n = 0; n < v.inputs; n++)
            for (ptrdiff_t tap = 0; tap < v.taps; tap++)
                block[block_number(n, tap, o)] = rows[o * v.row + n * v.taps + tap];
}

void simd_conv_write_block(const simd_conv_shape *shape, const float *block, ptrdiff_t j, ptrdiff_t i, float *logical)
{
    const block_view v = view_block(shape, j, i);
    float *rows = logical + v.first;
    if (v.outputs == 16 && v.inputs == 16) {
        write_whole_block(v.taps, block, rows, v.row);
        return;
    }
    for (ptrdiff_t o = 0; o < v.outputs; o++)
        for (ptrdiff_t n = 0; n < v.inputs; n++)
            for (ptrdiff_t tap = 0; tap < v.taps; tap++)
                rows[o * v.row + n * v.taps + tap] = block[block_number(n, tap, o)];
}

simd_conv_shape simd_conv_mirror(const simd_conv_shape *shape)
{
    simd_conv_shape m = *shape;
    m.inputs = shape->outputs, m.outputs = shape->inputs;
    m.height = shape->out_height, m.out_height = shape->height;
    m.width = shape->out_width, m.out_width = shape->width;
    m.pad_top = shape->kernel_height - 1 - shape->pad_top;
    m.pad_left = shape->kernel_width - 1 - shape->pad_left;
    return m;
}

void simd_conv_read_mirrored(const simd_conv_shape *shape, int mirrored, const float *logical, ptrdiff_t j, ptrdiff_t i,
                             float *block)
{
    if (!mirrored) {
        simd_conv_read_block(shape, logical, j, i, block);
        return;
    }
    _Alignas(64) float forward[SIMD_MAX_TAPS * 256];
    const simd_conv_shape other = simd_conv_mirror(shape);
    const ptrdiff_t taps = count_taps(shape);
    simd_conv_read_block(&other, logical, i, j, forward);
    for (ptrdiff_t tap = 0; tap < taps; tap++) v_transpose16(forward + tap * 256, block + (taps - 1 - tap) * 256);
}

typedef struct {
    const simd_conv_shape *shape;
    const float *from;
    float *to;
} blocking;

static void block_range(void *context, size_t begin, size_t end)
{
    const blocking *b = context;
    const ptrdiff_t in_blocks = (b->shape->inputs + 15) / 16, size = 256 * count_taps(b->shape);
    for (ptrdiff_t n = (ptrdiff_t)begin; n < (ptrdiff_t)end; n++)
        simd_conv_read_block(b->shape, b->from, n / in_blocks, n % in_blocks, b->to + n * size);
}

static void unblock_range(void *context, size_t begin, size_t end)
{
    const blocking *b = context;
    const ptrdiff_t in_blocks = (b->shape->inputs + 15) / 16, size = 256 * count_taps(b->shape);
    for (ptrdiff_t n = (ptrdiff_t)begin; n < (ptrdiff_t)end; n++)
        simd_conv_write_block(b->shape, b->from + n * size, n / in_blocks, n % in_blocks, b->to);
}

static size_t count_weight_blocks(const simd_conv_shape *s)
{
    return (size_t)((s->outputs + 15) / 16 * ((s->inputs + 15) / 16));
}

void simd_conv_block(const simd_conv_shape *shape, const float *logical, float *weights)
{
    blocking b = {shape, logical, weights};
    psld_parallel(count_weight_blocks(shape), 16, block_range, &b);
}

void simd_conv_unblock(const simd_conv_shape *shape, const float *weights, float *logical)
{
    blocking b = {shape, weights, logical};
    psld_parallel(count_weight_blocks(shape), 16, unblock_range, &b);
}
