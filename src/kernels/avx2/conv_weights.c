/* Weights in blocks, [outputs / 16][inputs / 16][taps][16 inputs][16 outputs]: a block is what the products read in
 * one go, and square, so that the transposed weights of the data gradient are made of whole blocks, too. */
#include <string.h>

#include "base/threads.h"
#include "kernels/avx2/conv.h"
#include "kernels/avx2/tasks.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

static ptrdiff_t count_taps(const psld_conv_shape_avx2 *s)
{
    return s->kernel_height * s->kernel_width;
}

ptrdiff_t psld_conv_weights_avx2(const psld_conv_shape_avx2 *shape)
{
    return psld_round16(shape->inputs) * psld_round16(shape->outputs) * count_taps(shape);
}

typedef struct {
    const float *from;
    float *to;
    ptrdiff_t in_blocks, out_blocks, taps;
} transposition;

static void transpose_range(void *context, size_t begin, size_t end)
{
    const transposition *t = context;
    for (ptrdiff_t i = (ptrdiff_t)begin; i < (ptrdiff_t)end; i++)
        for (ptrdiff_t j = 0; j < t->out_blocks; j++)
            for (ptrdiff_t tap = 0; tap < t->taps; tap++) {
                const float *from = t->from + ((j * t->in_blocks + i) * t->taps + tap) * 256;
                float *to = t->to + ((i * t->out_blocks + j) * t->taps + tap) * 256;
                for (int row = 0; row < 16; row += 8)
                    for (int column = 0; column < 16; column += 8)
                        v8_transpose(from + row * 16 + column, 16, to + column * 16 + row, 16);
            }
}

void psld_conv_transpose_avx2(const psld_conv_shape_avx2 *shape, const float *weights, float *transposed)
{
    transposition t = {weights, transposed, (shape->inputs + 15) / 16, (shape->outputs + 15) / 16, count_taps(shape)};
    psld_parallel((size_t)t.in_blocks, 1, transpose_range, &t);
}

/* Between the logical order and blocks. For 16 outputs and 16 inputs the logical weights are 16 rows of 16 taps
 * numbers; a whole block is transposed in pieces of 8 x 8, a block at the edge goes number by number. */
typedef struct {
    const psld_conv_shape_avx2 *shape;
    const float *from;
    float *to;
    int unblock;
} blocking;

static ptrdiff_t block_number(ptrdiff_t input, ptrdiff_t tap, ptrdiff_t output)
{
    return (tap * 16 + input) * 16 + output;
}

/* Eight of a row's numbers, `first` on, and eight outputs: each number is an input and a tap. */
static void block_piece(const float *rows, ptrdiff_t row, ptrdiff_t first, ptrdiff_t taps, float *block)
{
    _Alignas(32) float piece[64];
    v8_transpose(rows + first, row, piece, 8);
    for (ptrdiff_t i = 0; i < 8; i++)
        v8_store(block + block_number((first + i) / taps, (first + i) % taps, 0), v8_load(piece + 8 * i));
}

static void unblock_piece(const float *block, ptrdiff_t first, ptrdiff_t taps, float *rows, ptrdiff_t row)
{
    _Alignas(32) float piece[64];
    for (ptrdiff_t i = 0; i < 8; i++)
        v8_store(piece + 8 * i, v8_load(block + block_number((first + i) / taps, (first + i) % taps, 0)));
    v8_transpose(piece, 8, rows + first, row);
}

/* `rows` is the first of the block's outputs in the logical order, `row` floats from one output to the next. */
static void whole_block(const blocking *b, ptrdiff_t taps, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t block)
{
    for (ptrdiff_t half = 0; half < 16; half += 8)
        for (ptrdiff_t first = 0; first < 16 * taps; first += 8) {
            if (b->unblock)
                unblock_piece(b->from + block + half, first, taps, b->to + rows + half * row, row);
            else
                block_piece(b->from + rows + half * row, row, first, taps, b->to + block + half);
        }
}

static void edge_block(const blocking *b, ptrdiff_t taps, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t block,
                       ptrdiff_t outputs, ptrdiff_t inputs)
{
    if (!b->unblock) memset(b->to + block, 0, (size_t)(256 * taps) * sizeof *b->to);
    for (ptrdiff_t o = 0; o < outputs; o++)
        for (ptrdiff_t i = 0; i < inputs; i++)
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                const ptrdiff_t logical = rows + o * row + i * taps + tap;
                const ptrdiff_t blocked = block + block_number(i, tap, o);
                if (b->unblock)
                    b->to[logical] = b->from[blocked];
                else
                    b->to[blocked] = b->from[logical];
            }
}

static void block_range(void *context, size_t begin, size_t end)
{
    const blocking *b = context;
    const psld_conv_shape_avx2 *s = b->shape;
    const ptrdiff_t taps = count_taps(s), in_blocks = (s->inputs + 15) / 16, row = s->inputs * taps;
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++)
        for (ptrdiff_t i = 0; i < in_blocks; i++) {
            const ptrdiff_t rows = 16 * j * row + 16 * i * taps, block = (j * in_blocks + i) * 256 * taps;
            const ptrdiff_t outputs = psld_least(16, s->outputs - 16 * j), inputs = psld_least(16, s->inputs - 16 * i);
            if (outputs == 16 && inputs == 16)
                whole_block(b, taps, row, rows, block);
            else
                edge_block(b, taps, row, rows, block, outputs, inputs);
        }
}

void psld_conv_block_avx2(const psld_conv_shape_avx2 *shape, const float *logical, float *weights)
{
    blocking b = {.shape = shape, .from = logical, .to = weights};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, block_range, &b);
}

void psld_conv_unblock_avx2(const psld_conv_shape_avx2 *shape, const float *weights, float *logical)
{
    blocking b = {.shape = shape, .from = weights, .to = logical, .unblock = 1};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, block_range, &b);
}

#endif
