/* U = G w G'. Weights are read in blocks of 16 x 16 from their logical order.
 *
 * Eight rows of k at a time are transformed into a stage of 18 KB that fits into the first cache, and leave it in
 * runs of 512 bytes: written directly, the planes of U (a power of two apart) would fight for the same sets of the
 * cache. */
#include "kernels/avx2/winograd.h"

#include "base/threads.h"
#include "kernels/avx2/winograd_transform.h"

#if defined(__AVX2__) && defined(__FMA__)

enum { RUN = 8 * 16 }; /* floats: eight rows of k, 16 outputs */

typedef struct {
    const psld_conv_shape_avx2 *shape;
    int mirrored, stream;
    const float *weights;
    float *u;
} weight_job;

psld_conv_shape_avx2 psld_winograd_mirror_avx2(const psld_conv_shape_avx2 *shape)
{
    psld_conv_shape_avx2 m = *shape;
    m.inputs = shape->outputs, m.outputs = shape->inputs;
    m.height = shape->out_height, m.out_height = shape->height;
    m.width = shape->out_width, m.out_width = shape->width;
    m.pad_top = 2 - shape->pad_top;
    m.pad_left = 2 - shape->pad_left;
    return m;
}

ptrdiff_t psld_winograd_weights_size_avx2(const psld_conv_shape_avx2 *shape)
{
    const winograd_tiles tiles = psld_winograd_tiles_avx2(shape);
    return tiles.points * psld_round8(shape->inputs) * psld_round16(shape->outputs);
}

/* w[tap][8][16] (taps `tap_stride` apart) -> stage[points][8][16] */
V8_INLINE void transform_run(int size, const float *w, ptrdiff_t tap_stride, float *stage)
{
    const int edge = size + 2;
    for (int lane = 0; lane < RUN; lane += 8) {
        v8 t[3 * WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < 3; j++) {
            v8 d[3];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) d[i] = v8_load(w + (3 * i + j) * tap_stride + lane);
            winograd_weight(size, d, t + j, 3);
        }
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) {
            v8 o[WINOGRAD_EDGE];
            winograd_weight(size, t + 3 * i, o, 1);
#pragma GCC unroll 6
            for (int j = 0; j < edge; j++) v8_store(stage + (edge * i + j) * RUN + lane, o[j]);
        }
    }
}

/* The taps of a block in reverse order, each transposed: rows of outputs, 16 inputs as lanes. */
static void mirror_block(const float *block, float *mirror)
{
    for (int tap = 0; tap < 9; tap++)
        for (int row = 0; row < 16; row += 8)
            for (int column = 0; column < 16; column += 8)
                v8_transpose(block + tap * 256 + row * 16 + column, 16, mirror + (8 - tap) * 256 + column * 16 + row,
                             16);
}

static void write_stage(const float *stage, float *u, ptrdiff_t points, ptrdiff_t plane, int stream)
{
    for (ptrdiff_t f = 0; f < points; f++, stage += RUN, u += plane)
        if (stream)
#pragma GCC unroll 16
            for (int i = 0; i < RUN; i += 8) _mm256_stream_ps(u + i, v8_load(stage + i));
        else
#pragma GCC unroll 16
            for (int i = 0; i < RUN; i += 8) v8_store(u + i, v8_load(stage + i));
}

/* The weights of 16 rows of k and one panel of lanes, [9][16][16]. With `mirrored` the weights are those of the
 * mirrored shape, whose outputs are the rows. */
static void read_weights(const weight_job *job, ptrdiff_t panel, ptrdiff_t rows, float *block)
{
    if (!job->mirrored) {
        psld_conv_read_block_avx2(job->shape, job->weights, panel, rows, block);
        return;
    }
    _Alignas(64) float forward[9 * 256];
    const psld_conv_shape_avx2 shape = psld_winograd_mirror_avx2(job->shape);
    psld_conv_read_block_avx2(&shape, job->weights, rows, panel, forward);
    mirror_block(forward, block);
}

/* One panel of U with all its k. */
static void make_panel(const weight_job *job, ptrdiff_t panel, float *u)
{
    const ptrdiff_t size = winograd_size(job->shape), points = (size + 2) * (size + 2);
    const ptrdiff_t k = psld_round8(job->shape->inputs), plane = 16 * k;
    _Alignas(64) float stage[WINOGRAD_POINTS * RUN];
    _Alignas(64) float block[9 * 256];
    for (ptrdiff_t row = 0; row < k; row += 8) {
        if (row % 16 == 0) read_weights(job, panel, row / 16, block);
        if (size == 4)
            transform_run(4, block + row % 16 * 16, 256, stage);
        else
            transform_run(2, block + row % 16 * 16, 256, stage);
        write_stage(stage, u + row * 16, points, plane, job->stream);
    }
}

static void weight_range(void *context, size_t begin, size_t end)
{
    const weight_job *job = context;
    const ptrdiff_t panels = (job->shape->outputs + 15) / 16,
                    size = psld_winograd_weights_size_avx2(job->shape) / panels;
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++) make_panel(job, j, job->u + j * size);
    if (job->stream) _mm_sfence();
}

void psld_winograd_panel_avx2(const psld_conv_shape_avx2 *shape, int mirrored, const float *weights, ptrdiff_t panel,
                              float *u)
{
    const weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights};
    make_panel(&job, panel, u);
}

void psld_winograd_weights_avx2(const psld_conv_shape_avx2 *shape, int mirrored, int stream, const float *weights,
                                float *u)
{
    weight_job job = {.shape = shape, .mirrored = mirrored, .stream = stream, .weights = weights, .u = u};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, weight_range, &job);
}

#endif
