/* Convolution and its two adjoints, from one relation between the pixels of x and of y:
 *     input row = output row * stride + tap - pad          (and the same for columns),
 * zeros outside. Weights are read where they lie, [co][ci][kh][kw] or [ci][co][kh][kw]. */
#ifndef PSLD_KERNELS_REF_CONV_H
#define PSLD_KERNELS_REF_CONV_H

#include "kernels/ref/view.h"

typedef struct weight_view {
    ptrdiff_t out, in; /* elements from one output channel, input channel, to the next */
    int kh, kw;
} weight_view;

static weight_view weights_of(const psld_attributes *a, int co, int ci)
{
    int kh = a->conv.kernel[0], kw = a->conv.kernel[1];
    ptrdiff_t area = (ptrdiff_t)kh * kw;
    weight_view v = {area * ci, area, kh, kw};
    if (a->conv.transposed) {
        v.out = area;
        v.in = area * co;
    }
    return v;
}

/* ---- y and dx: blocks of channels -------------------------------------------------------------------------------- */

/* A task computes a block of channels of the result everywhere. Weights are packed as [block][tap][summed
 * channel][CONV_BLOCK], so that the inner loop runs along memory and a compiler can make vectors of it. */
enum { CONV_BLOCK = 16 };

typedef struct conv_block {
    int first, count;     /* channels of the result */
    int sums;             /* channels that are summed over */
    const double *packed; /* [kh * kw][sums][CONV_BLOCK] */
} conv_block;

static size_t tasks_conv(const psld_call *call)
{
    return ((size_t)call->out.shape.c + CONV_BLOCK - 1) / CONV_BLOCK;
}

static size_t block_size(const psld_call *call)
{
    const int *kernel = call->attributes->conv.kernel;
    return (size_t)kernel[0] * (size_t)kernel[1] * (size_t)call->in[0].shape.c * CONV_BLOCK;
}

static size_t ref_packed_conv(const psld_call *call)
{
    return tasks_conv(call) * block_size(call) * sizeof(double);
}

static conv_block conv_block_of(const psld_call *call, size_t task)
{
    int first = (int)task * CONV_BLOCK, left = call->out.shape.c - first;
    const double *packed = (const double *)call->packed + task * block_size(call);
    return (conv_block){first, left < CONV_BLOCK ? left : CONV_BLOCK, call->in[0].shape.c, packed};
}

/* `step` and `sum_step`: from a channel of the result, a summed channel, to the next in the weights. */
static void pack_block(const psld_call *call, size_t task, ptrdiff_t step, ptrdiff_t sum_step)
{
    conv_block block = conv_block_of(call, task);
    const int *kernel = call->attributes->conv.kernel;
    const real *w = (const real *)call->in[1].data + block.first * step;
    double *packed = (double *)call->packed + task * block_size(call);
    for (int tap = 0; tap < kernel[0] * kernel[1]; tap++)
        for (int s = 0; s < block.sums; s++)
            for (int j = 0; j < CONV_BLOCK; j++)
                *packed++ = j < block.count ? (double)w[j * step + s * sum_step + tap] : 0;
}

static void ref_pack_conv(const psld_call *call, size_t begin, size_t end)
{
    weight_view v = weights_of(call->attributes, call->out.shape.c, call->in[0].shape.c);
    for (size_t task = begin; task < end; task++) pack_block(call, task, v.out, v.in);
}

static void ref_pack_conv_dx(const psld_call *call, size_t begin, size_t end)
{
    weight_view v = weights_of(call->attributes, call->in[0].shape.c, call->out.shape.c);
    for (size_t task = begin; task < end; task++) pack_block(call, task, v.in, v.out);
}

/* Adds what one pixel gives by one tap. The sums are local for the inner loop: nothing else can be where they are. */
static void add_tap(conv_block block, int tap, const real *pixel, double *sum)
{
    const double *w = block.packed + (ptrdiff_t)tap * block.sums * CONV_BLOCK;
    double local[CONV_BLOCK];
    memcpy(local, sum, sizeof local);
    for (int s = 0; s < block.sums; s++, w += CONV_BLOCK) {
        double x = (double)pixel[s];
        for (int j = 0; j < CONV_BLOCK; j++) local[j] += x * w[j];
    }
    memcpy(sum, local, sizeof local);
}

/* Finishes the sums of one pixel and writes them. */
static void finish_conv_pixel(const psld_call *call, conv_block block, double *sum, int n, int y, int x)
{
    const psld_attributes *a = call->attributes;
    const real *bias = call->in[2].data, *vector = NULL, *residual = NULL;
    real *pixel = pixel_at(&call->out, n, y, x) + block.first;
    int channels = call->out.shape.c;
    if (a->conv.finish & PSLD_FINISH_VECTOR) vector = pixel_at(&call->in[3], n, 0, 0) + block.first;
    if (a->conv.finish & PSLD_FINISH_RESIDUAL) residual = pixel_at(&call->in[4], n, y, x) + block.first;
    for (int j = 0; j < block.count; j++) {
        if (a->conv.finish & PSLD_FINISH_BIAS) sum[j] += (double)bias[block.first + j];
        if (vector) sum[j] += (double)vector[j];
        if (residual) sum[j] += (double)residual[j];
        if (a->conv.finish & PSLD_FINISH_SCALE) sum[j] *= a->conv.by;
        if ((a->conv.finish & PSLD_FINISH_RELU) && !(sum[j] > 0)) sum[j] = 0;
        pixel[j] = (real)sum[j];
    }
    if (block.first + block.count == channels)
        ref_clear_lanes(pixel, block.count, (ptrdiff_t)psld_lanes(channels) - block.first);
}

static void conv_pixel(const psld_call *call, conv_block block, int n, int oy, int ox)
{
    const psld_operand *x = &call->in[0];
    const psld_attributes *a = call->attributes;
    int top = oy * a->conv.stride[0] - a->conv.pad[0], left = ox * a->conv.stride[1] - a->conv.pad[1];
    double sum[CONV_BLOCK] = {0};
    for (int ky = 0; ky < a->conv.kernel[0]; ky++) {
        if (top + ky < 0 || top + ky >= x->shape.h) continue;
        for (int kx = 0; kx < a->conv.kernel[1]; kx++)
            if (left + kx >= 0 && left + kx < x->shape.w)
                add_tap(block, ky * a->conv.kernel[1] + kx, pixel_at(x, n, top + ky, left + kx), sum);
    }
    finish_conv_pixel(call, block, sum, n, oy, ox);
}

static void ref_conv(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        conv_block block = conv_block_of(call, task);
        for (int line = 0; line < s.n * s.h; line++)
            for (int ox = 0; ox < s.w; ox++) conv_pixel(call, block, line / s.h, line % s.h, ox);
    }
}

/* The row of y whose tap `k` looks at row `at` of x; -1: none. */
static int output_of(int at, int k, int pad, int stride, int size)
{
    int from = at + pad - k;
    if (from < 0 || from % stride != 0) return -1;
    return from / stride < size ? from / stride : -1;
}

static void conv_dx_pixel(const psld_call *call, conv_block block, int n, int iy, int ix)
{
    const psld_operand *dy = &call->in[0];
    const psld_attributes *a = call->attributes;
    double sum[CONV_BLOCK] = {0};
    for (int ky = 0; ky < a->conv.kernel[0]; ky++) {
        int oy = output_of(iy, ky, a->conv.pad[0], a->conv.stride[0], dy->shape.h);
        for (int kx = 0; oy >= 0 && kx < a->conv.kernel[1]; kx++) {
            int ox = output_of(ix, kx, a->conv.pad[1], a->conv.stride[1], dy->shape.w);
            if (ox >= 0) add_tap(block, ky * a->conv.kernel[1] + kx, pixel_at(dy, n, oy, ox), sum);
        }
    }
    finish_conv_pixel(call, block, sum, n, iy, ix);
}

static void ref_conv_dx(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        conv_block block = conv_block_of(call, task);
        for (int line = 0; line < s.n * s.h; line++)
            for (int ix = 0; ix < s.w; ix++) conv_dx_pixel(call, block, line / s.h, line % s.h, ix);
    }
}

/* ---- dw ---------------------------------------------------------------------------------------------------------- */

/* A task is a few output channels; input channels come in blocks of the lanes that every pixel has. Both may reach
 * into lanes that are zero. */
enum { DW_ROWS = 4 };

typedef double dw_block[DW_ROWS][PSLD_LANES];

/* Adds what one sample gives to dw[co ...][ci ...] at one tap. */
static void add_conv_dw(const psld_call *call, int n, int co, int ci, int ky, int kx, dw_block sum)
{
    const psld_operand *x = &call->in[0], *dy = &call->in[1];
    const psld_attributes *a = call->attributes;
    dw_block local;
    memcpy(local, sum, sizeof local);
    for (int oy = 0; oy < dy->shape.h; oy++) {
        int iy = oy * a->conv.stride[0] + ky - a->conv.pad[0];
        if (iy < 0 || iy >= x->shape.h) continue;
        for (int ox = 0; ox < dy->shape.w; ox++) {
            int ix = ox * a->conv.stride[1] + kx - a->conv.pad[1];
            if (ix < 0 || ix >= x->shape.w) continue;
            const real *g = pixel_at(dy, n, oy, ox) + co, *pixel = pixel_at(x, n, iy, ix) + ci;
            for (int r = 0; r < DW_ROWS; r++)
                for (int i = 0; i < PSLD_LANES; i++) local[r][i] += (double)g[r] * (double)pixel[i];
        }
    }
    memcpy(sum, local, sizeof local);
}

static void ref_conv_dw(const psld_call *call, size_t begin, size_t end)
{
    int in = call->in[0].shape.c, out = call->in[1].shape.c, samples = call->in[0].shape.n;
    weight_view v = weights_of(call->attributes, out, in);
    for (int co = (int)begin * DW_ROWS; co < (int)end * DW_ROWS; co += DW_ROWS)
        for (int tap = 0; tap < v.kh * v.kw; tap++)
            for (int ci = 0; ci < in; ci += PSLD_LANES) {
                dw_block sum = {{0}};
                for (int n = 0; n < samples; n++) add_conv_dw(call, n, co, ci, tap / v.kw, tap % v.kw, sum);
                for (int r = 0; r < DW_ROWS && co + r < out; r++) {
                    real *dw = (real *)call->out.data + (co + r) * v.out + tap;
                    for (int i = 0; i < PSLD_LANES && ci + i < in; i++) dw[(ci + i) * v.in] = (real)sum[r][i];
                }
            }
}

static size_t tasks_conv_dw(const psld_call *call)
{
    return ((size_t)call->in[1].shape.c + DW_ROWS - 1) / DW_ROWS;
}

#endif
