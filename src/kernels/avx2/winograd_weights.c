/* U = G w G', from blocks of 16 x 16 weights.
 *
 * Eight rows of k at a time are transformed into a stage of 18 KB that fits into the first cache, and leave it in
 * runs of 512 bytes: written directly, the 36 planes of U (a power of two apart) would fight for the same sets of the
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
    return WINOGRAD_POINTS * psld_round8(shape->inputs) * psld_round16(shape->outputs);
}

/* w[tap][8][16] (taps `tap_stride` apart) -> stage[36][8][16] */
static void transform_run(const float *w, ptrdiff_t tap_stride, float *stage)
{
    for (int lane = 0; lane < RUN; lane += 8) {
        v8 t[18];
#pragma GCC unroll 6
        for (int j = 0; j < 3; j++) {
            v8 d[3];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) d[i] = v8_load(w + (3 * i + j) * tap_stride + lane);
            winograd_weight(d, t + j, 3);
        }
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
            v8 o[6];
            winograd_weight(t + 3 * i, o, 1);
#pragma GCC unroll 6
            for (int j = 0; j < 6; j++) v8_store(stage + (6 * i + j) * RUN + lane, o[j]);
        }
    }
}

/* The taps of a block in reverse order, each transposed: rows of eight outputs `first` on, 16 inputs as lanes. */
static void mirror_run(const float *block, ptrdiff_t first, float *w)
{
    for (int tap = 0; tap < 9; tap++)
        for (int half = 0; half < 16; half += 8)
            v8_transpose(block + tap * 256 + half * 16 + first, 16, w + (8 - tap) * RUN + half, 16);
}

static void write_stage(const float *stage, float *u, ptrdiff_t plane, int stream)
{
    for (int f = 0; f < WINOGRAD_POINTS; f++, stage += RUN, u += plane)
        if (stream)
#pragma GCC unroll 16
            for (int i = 0; i < RUN; i += 8) _mm256_stream_ps(u + i, v8_load(stage + i));
        else
#pragma GCC unroll 16
            for (int i = 0; i < RUN; i += 8) v8_store(u + i, v8_load(stage + i));
}

/* One panel of U with all its k. */
static void make_panel(const weight_job *job, ptrdiff_t panel, float *u)
{
    const ptrdiff_t k = psld_round8(job->shape->inputs), plane = 16 * k;
    const ptrdiff_t panels = (job->shape->outputs + 15) / 16, blocks = (k + 15) / 16;
    _Alignas(64) float stage[WINOGRAD_POINTS * RUN];
    _Alignas(64) float mirror[9 * RUN];
    for (ptrdiff_t row = 0; row < k; row += 8) {
        const ptrdiff_t i = row / 16;
        if (job->mirrored) {
            mirror_run(job->weights + (i * panels + panel) * 9 * 256, row % 16, mirror);
            transform_run(mirror, RUN, stage);
        } else {
            transform_run(job->weights + (panel * blocks + i) * 9 * 256 + row % 16 * 16, 256, stage);
        }
        write_stage(stage, u + row * 16, plane, job->stream);
    }
}

static void weight_range(void *context, size_t begin, size_t end)
{
    const weight_job *job = context;
    const ptrdiff_t size = WINOGRAD_POINTS * 16 * psld_round8(job->shape->inputs);
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++) make_panel(job, j, job->u + j * size);
    if (job->stream) _mm_sfence();
}

void psld_winograd_panel_avx2(const psld_conv_shape_avx2 *shape, int mirrored, const float *weights, ptrdiff_t panel,
                              float *u)
{
    const weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights};
    make_panel(&job, panel, u);
}

void psld_winograd_weights_avx2_4x4(const psld_conv_shape_avx2 *shape, int mirrored, int stream, const float *weights,
                                    float *u)
{
    weight_job job = {.shape = shape, .mirrored = mirrored, .stream = stream, .weights = weights, .u = u};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, weight_range, &job);
}

#endif
