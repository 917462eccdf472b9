/* U = G w G'. Weights are read in blocks of 16 x 16 from their logical order, and written to all planes of U at once:
 * these lie an odd number of cache lines apart (winograd_u_plane), or they would fight for the same sets of the
 * cache. */
#include "kernels/simd/winograd.h"

#include "base/threads.h"
#include "kernels/simd/winograd_transform.h"

typedef struct {
    const simd_conv_shape *shape;
    int mirrored;
    const float *weights;
    float *u;
} weight_job;

simd_conv_shape simd_winograd_mirror(const simd_conv_shape *shape)
{
    simd_conv_shape m = *shape;
    m.inputs = shape->outputs, m.outputs = shape->inputs;
    m.height = shape->out_height, m.out_height = shape->height;
    m.width = shape->out_width, m.out_width = shape->width;
    m.pad_top = 2 - shape->pad_top;
    m.pad_left = 2 - shape->pad_left;
    return m;
}

ptrdiff_t simd_winograd_weights_size(const simd_conv_shape *shape)
{
    return (shape->outputs + 15) / 16 * winograd_panel_size(shape);
}

/* w[9][rows][16], whose taps are 256 apart, -> u[points][rows][16], whose points are `plane` apart. */
SIMD_INLINE void transform_rows(int size, ptrdiff_t rows, const float *w, float *u, ptrdiff_t plane)
{
    const int edge = size + 2;
    for (ptrdiff_t lane = 0; lane < 16 * rows; lane += V_LANES) {
        vec t[3 * WINOGRAD_EDGE];
#pragma GCC unroll 6
        for (int j = 0; j < 3; j++) {
            vec d[3];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) d[i] = v_load(w + (3 * i + j) * 256 + lane);
            winograd_weight(size, d, t + j, 3);
        }
#pragma GCC unroll 6
        for (int i = 0; i < edge; i++) {
            vec o[WINOGRAD_EDGE];
            winograd_weight(size, t + 3 * i, o, 1);
#pragma GCC unroll 6
            for (int j = 0; j < edge; j++) v_store(u + (edge * i + j) * plane + lane, o[j]);
        }
    }
}

/* The taps of a block in reverse order, each transposed: rows of outputs, 16 inputs as lanes. */
static void mirror_block(const float *block, float *mirror)
{
    for (int tap = 0; tap < 9; tap++) v_transpose16(block + tap * 256, mirror + (8 - tap) * 256);
}

/* The weights of 16 rows of k and one panel of lanes, [9][16][16]. With `mirrored` the weights are those of the
 * mirrored shape, whose outputs are the rows. */
static void read_weights(const weight_job *job, ptrdiff_t panel, ptrdiff_t rows, float *block)
{
    if (!job->mirrored) {
        simd_conv_read_block(job->shape, job->weights, panel, rows, block);
        return;
    }
    _Alignas(64) float forward[9 * 256];
    const simd_conv_shape shape = simd_winograd_mirror(job->shape);
    simd_conv_read_block(&shape, job->weights, rows, panel, forward);
    mirror_block(forward, block);
}

/* One panel of U with all its k. */
static void make_panel(const weight_job *job, ptrdiff_t panel, float *u)
{
    const ptrdiff_t k = psld_round8(job->shape->inputs), plane = winograd_u_plane(job->shape);
    _Alignas(64) float block[9 * 256];
    for (ptrdiff_t row = 0; row < k; row += 16) {
        read_weights(job, panel, row / 16, block);
        if (winograd_size(job->shape) == 4)
            transform_rows(4, psld_min(16, k - row), block, u + row * 16, plane);
        else
            transform_rows(2, psld_min(16, k - row), block, u + row * 16, plane);
    }
}

static void weight_range(void *context, size_t begin, size_t end)
{
    const weight_job *job = context;
    const ptrdiff_t size = winograd_panel_size(job->shape);
    for (ptrdiff_t j = (ptrdiff_t)begin; j < (ptrdiff_t)end; j++) make_panel(job, j, job->u + j * size);
}

void simd_winograd_panel(const simd_conv_shape *shape, int mirrored, const float *weights, ptrdiff_t panel, float *u)
{
    const weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights};
    make_panel(&job, panel, u);
}

void simd_winograd_weights(const simd_conv_shape *shape, int mirrored, const float *weights, float *u)
{
    weight_job job = {.shape = shape, .mirrored = mirrored, .weights = weights, .u = u};
    psld_parallel((size_t)((shape->outputs + 15) / 16), 1, weight_range, &job);
}
