/* Group normalisation. Plans keep a mean and a variance for each channel; the kernels want the sum of squares about
 * the mean, padded tables, and make a scale and a shift for each image and channel of them. Other activations than
 * SiLU go to the reference kernels. */
#include "kernels/simd/table.h"

#include <string.h>

#include "kernels/simd/norm.h"
#include "kernels/simd/rows.h"
#include "kernels/simd/sizes.h"

static simd_norm norm_of(const psld_call *call)
{
    psld_shape s = call->in[0].shape;
    return (simd_norm){.images = s.n,
                       .pixels = (ptrdiff_t)s.h * s.w,
                       .channels = s.c,
                       .groups = call->attributes->norm.groups,
                       .epsilon = (float)call->attributes->norm.eps,
                       .stride = psld_round16(s.c),
                       .silu = call->attributes->norm.activation == PSLD_SILU};
}

static int is_fast_norm(const psld_call *call)
{
    return call->attributes->norm.activation == PSLD_SILU || call->attributes->norm.activation == PSLD_LINEAR;
}

/* ---- Moments ----------------------------------------------------------------------------------------------------- */

static size_t scratch_moments(const psld_call *call)
{
    psld_shape s = call->in[0].shape;
    return 2 * (size_t)(s.n * psld_round16(s.c)) * sizeof(float);
}

static void fast_moments(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    ptrdiff_t channels = x->shape.c, stride = psld_round16(channels), pixels = (ptrdiff_t)x->shape.h * x->shape.w;
    simd_norm norm = {.images = x->shape.n, .pixels = pixels, .channels = channels, .groups = 1, .stride = stride};
    float *mean = call->scratch, *square = mean + x->shape.n * stride;
    (void)begin, (void)end;
    simd_moments(&norm, x->data, (ptrdiff_t)x->pixel, mean, square);
    for (ptrdiff_t n = 0; n < x->shape.n; n++) {
        float *out = (float *)call->out.data + n * (ptrdiff_t)call->out.pixel;
        for (ptrdiff_t c = 0; c < channels; c++) {
            out[c] = mean[n * stride + c];
            out[channels + c] = square[n * stride + c] / (float)pixels;
        }
        for (ptrdiff_t c = 2 * channels; c < psld_round8(2 * channels); c++) out[c] = 0;
    }
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* All tables of a call, one after another in its scratch. */
typedef struct tables {
    float *mean, *square, *scale, *shift, *group_mean, *group_rstd; /* [image][stride] */
    float *gamma, *beta;                                            /* [stride] */
    float *sums;                                                    /* [image][2][stride], of the gradient */
    float *rest;
} tables;

static ptrdiff_t tables_size(const simd_norm *norm)
{
    return (8 * norm->images + 2) * norm->stride;
}

static tables lay_out_tables(const simd_norm *norm, float *scratch)
{
    tables t;
    float **each[] = {&t.mean, &t.square, &t.scale, &t.shift, &t.group_mean, &t.group_rstd};
    float **once[] = {&t.gamma, &t.beta};
    for (int i = 0; i < 6; i++, scratch += norm->images * norm->stride) *each[i] = scratch;
    for (int i = 0; i < 2; i++, scratch += norm->stride) *once[i] = scratch;
    t.sums = scratch;
    t.rest = scratch + 2 * norm->images * norm->stride;
    return t;
}

static tables make_tables(const psld_call *call, const simd_norm *norm)
{
    const psld_operand *moments = &call->in[1];
    tables t = lay_out_tables(norm, call->scratch);
    memset(call->scratch, 0, (size_t)tables_size(norm) * sizeof(float));
    memcpy(t.gamma, call->in[2].data, (size_t)norm->channels * sizeof(float));
    memcpy(t.beta, call->in[3].data, (size_t)norm->channels * sizeof(float));
    for (ptrdiff_t n = 0; n < norm->images; n++) {
        const float *mean = (const float *)moments->data + n * (ptrdiff_t)moments->pixel,
                    *variance = mean + norm->channels;
        for (ptrdiff_t c = 0; c < norm->channels; c++) {
            t.mean[n * norm->stride + c] = mean[c];
            t.square[n * norm->stride + c] = variance[c] * (float)norm->pixels;
        }
    }
    simd_norm_tables(norm, t.mean, t.square, t.gamma, t.beta, t.scale, t.shift, t.group_mean, t.group_rstd);
    return t;
}

/* ---- Normalisation and its adjoints ------------------------------------------------------------------------------ */

static size_t scratch_normalise(const psld_call *call)
{
    simd_norm norm = norm_of(call);
    return (size_t)tables_size(&norm) * sizeof(float);
}

static size_t tasks_normalise(const psld_call *call)
{
    return is_fast_norm(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE].tasks(call);
}

static void fast_normalise(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast_norm(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE].run(call, begin, end);
        return;
    }
    simd_norm norm = norm_of(call);
    tables t = make_tables(call, &norm);
    simd_fill fill = {.scale = t.scale, .shift = t.shift, .stride = norm.stride, .silu = norm.silu};
    simd_affine(&fill, norm.images, norm.pixels, norm.channels, call->in[0].data, (ptrdiff_t)call->in[0].pixel,
                call->out.data, (ptrdiff_t)call->out.pixel);
}

static simd_norm_gradient gradient_of(const psld_call *call, const tables *t)
{
    const psld_operand *x = &call->in[0], *dy = &call->in[4];
    return (simd_norm_gradient){.x = x->data,
                                .dy = dy->data,
                                .x_stride = (ptrdiff_t)x->pixel,
                                .dy_stride = (ptrdiff_t)dy->pixel,
                                .gamma = t->gamma,
                                .scale = t->scale,
                                .shift = t->shift,
                                .group_mean = t->group_mean,
                                .group_rstd = t->group_rstd};
}

static size_t tasks_normalise_sums(const psld_call *call)
{
    return is_fast_norm(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE_SUMS].tasks(call);
}

/* Sums are a tensor [n][2c] in plans, [image][2][stride] here. */
static void fast_normalise_sums(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast_norm(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE_SUMS].run(call, begin, end);
        return;
    }
    simd_norm norm = norm_of(call);
    tables t = make_tables(call, &norm);
    simd_norm_gradient gradient = gradient_of(call, &t);
    simd_norm_sums(&norm, &gradient, t.sums);
    for (ptrdiff_t n = 0; n < norm.images; n++) {
        float *out = (float *)call->out.data + n * (ptrdiff_t)call->out.pixel;
        memset(out, 0, psld_lanes(call->out.shape.c) * sizeof(float));
        for (ptrdiff_t half = 0; half < 2; half++)
            memcpy(out + half * norm.channels, t.sums + (2 * n + half) * norm.stride,
                   (size_t)norm.channels * sizeof(float));
    }
}

static size_t scratch_normalise_dx(const psld_call *call)
{
    simd_norm norm = norm_of(call);
    return (size_t)(tables_size(&norm) + simd_norm_dx_scratch(&norm)) * sizeof(float);
}

static size_t tasks_normalise_dx(const psld_call *call)
{
    return is_fast_norm(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE_DX].tasks(call);
}

static void fast_normalise_dx(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast_norm(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE_DX].run(call, begin, end);
        return;
    }
    simd_norm norm = norm_of(call);
    tables t = make_tables(call, &norm);
    simd_norm_gradient gradient = gradient_of(call, &t);
    for (ptrdiff_t n = 0; n < norm.images; n++)
        for (ptrdiff_t half = 0; half < 2; half++)
            memcpy(t.sums + (2 * n + half) * norm.stride,
                   (const float *)call->in[5].data + n * (ptrdiff_t)call->in[5].pixel + half * norm.channels,
                   (size_t)norm.channels * sizeof(float));
    simd_norm_dx(&norm, &gradient, t.sums, call->out.data, (ptrdiff_t)call->out.pixel, t.rest);
}

void simd_table_norms(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_MOMENTS] = (psld_op_kernel){
        .name = SIMD_TEXT("moments"), .tasks = simd_table_one_task, .run = fast_moments, .scratch = scratch_moments};
    kernel[PSLD_OP_NORMALISE] = (psld_op_kernel){.name = SIMD_TEXT("normalise"),
                                                 .tasks = tasks_normalise,
                                                 .run = fast_normalise,
                                                 .scratch = scratch_normalise,
                                                 .in_place = 1};
    kernel[PSLD_OP_NORMALISE_DX] = (psld_op_kernel){.name = SIMD_TEXT("normalise_dx"),
                                                    .tasks = tasks_normalise_dx,
                                                    .run = fast_normalise_dx,
                                                    .scratch = scratch_normalise_dx,
                                                    .in_place = 16};
    kernel[PSLD_OP_NORMALISE_SUMS] = (psld_op_kernel){.name = SIMD_TEXT("normalise_sums"),
                                                      .tasks = tasks_normalise_sums,
                                                      .run = fast_normalise_sums,
                                                      .scratch = scratch_normalise};
}
