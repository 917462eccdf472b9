/* Group normalisation. Plans keep a mean and a variance for each channel; the kernels want the sum of squares about
 * the mean, padded tables, and make a scale and a shift for each image and channel of them. Other activations than
 * SiLU go to the reference kernels. */
#include "kernels/avx2/table.h"

#include <string.h>

#include "kernels/avx2/norm.h"
#include "kernels/avx2/rows.h"
#include "kernels/avx2/tasks.h"

#if defined(__AVX2__) && defined(__FMA__)

static psld_norm_avx2 norm_of(const psld_call *call)
{
    psld_shape s = call->in[0].shape;
    return (psld_norm_avx2){.images = s.n,
                            .pixels = (ptrdiff_t)s.h * s.w,
                            .channels = s.c,
                            .groups = call->attributes->norm.groups,
                            .epsilon = (float)call->attributes->norm.eps,
                            .stride = psld_round16(s.c),
                            .silu = call->attributes->norm.activation == PSLD_SILU};
}

static int is_fast(const psld_call *call)
{
    return call->attributes->norm.activation == PSLD_SILU || call->attributes->norm.activation == PSLD_LINEAR;
}

/* ---- Moments ----------------------------------------------------------------------------------------------------- */

static size_t scratch_moments(const psld_call *call)
{
    psld_shape s = call->in[0].shape;
    return 2 * (size_t)(s.n * psld_round16(s.c)) * sizeof(float);
}

static void run_moments(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    ptrdiff_t channels = x->shape.c, stride = psld_round16(channels), pixels = (ptrdiff_t)x->shape.h * x->shape.w;
    psld_norm_avx2 norm = {.images = x->shape.n, .pixels = pixels, .channels = channels, .groups = 1, .stride = stride};
    float *mean = call->scratch, *square = mean + x->shape.n * stride;
    (void)begin, (void)end;
    psld_moments_avx2(&norm, x->data, (ptrdiff_t)x->pixel, mean, square);
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
    float *gamma, *beta, *dgamma, *dbeta;                           /* [stride] */
    float *rest;
} tables;

static ptrdiff_t tables_size(const psld_norm_avx2 *norm)
{
    return (6 * norm->images + 4) * norm->stride;
}

static tables lay_out_tables(const psld_norm_avx2 *norm, float *scratch)
{
    tables t;
    float **each[] = {&t.mean, &t.square, &t.scale, &t.shift, &t.group_mean, &t.group_rstd};
    float **once[] = {&t.gamma, &t.beta, &t.dgamma, &t.dbeta};
    for (int i = 0; i < 6; i++, scratch += norm->images * norm->stride) *each[i] = scratch;
    for (int i = 0; i < 4; i++, scratch += norm->stride) *once[i] = scratch;
    t.rest = scratch;
    return t;
}

static tables make_tables(const psld_call *call, const psld_norm_avx2 *norm)
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
    psld_norm_tables_avx2(norm, t.mean, t.square, t.gamma, t.beta, t.scale, t.shift, t.group_mean, t.group_rstd);
    return t;
}

/* ---- Normalisation and its adjoints ------------------------------------------------------------------------------ */

static size_t scratch_normalise(const psld_call *call)
{
    psld_norm_avx2 norm = norm_of(call);
    return (size_t)tables_size(&norm) * sizeof(float);
}

static size_t tasks_normalise(const psld_call *call)
{
    return is_fast(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE].tasks(call);
}

static void run_normalise(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE].run(call, begin, end);
        return;
    }
    psld_norm_avx2 norm = norm_of(call);
    tables t = make_tables(call, &norm);
    psld_fill_avx2 fill = {.scale = t.scale, .shift = t.shift, .stride = norm.stride, .silu = norm.silu};
    psld_affine_avx2(&fill, norm.images, norm.pixels, norm.channels, call->in[0].data, (ptrdiff_t)call->in[0].pixel,
                     call->out.data, (ptrdiff_t)call->out.pixel);
}

static psld_norm_gradient_avx2 gradient_of(const psld_call *call, const tables *t)
{
    const psld_operand *x = &call->in[0], *dy = &call->in[4];
    return (psld_norm_gradient_avx2){.x = x->data,
                                     .dy = dy->data,
                                     .x_stride = (ptrdiff_t)x->pixel,
                                     .dy_stride = (ptrdiff_t)dy->pixel,
                                     .gamma = t->gamma,
                                     .scale = t->scale,
                                     .shift = t->shift,
                                     .group_mean = t->group_mean,
                                     .group_rstd = t->group_rstd,
                                     .dgamma = t->dgamma,
                                     .dbeta = t->dbeta};
}

static size_t scratch_normalise_dx(const psld_call *call)
{
    psld_norm_avx2 norm = norm_of(call);
    return (size_t)(tables_size(&norm) + psld_norm_dx_scratch_avx2(&norm)) * sizeof(float);
}

static size_t tasks_normalise_dx(const psld_call *call)
{
    return is_fast(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE_DX].tasks(call);
}

static void run_normalise_dx(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE_DX].run(call, begin, end);
        return;
    }
    psld_norm_avx2 norm = norm_of(call);
    tables t = make_tables(call, &norm);
    psld_norm_gradient_avx2 gradient = gradient_of(call, &t);
    gradient.dx = call->out.data;
    gradient.dx_stride = (ptrdiff_t)call->out.pixel;
    psld_norm_dx_avx2(&norm, &gradient, t.rest);
}

static size_t tasks_normalise_dw(const psld_call *call)
{
    return is_fast(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_NORMALISE_DW].tasks(call);
}

static void run_normalise_dw(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast(call)) {
        psld_backend_reference.kernel[PSLD_OP_NORMALISE_DW].run(call, begin, end);
        return;
    }
    psld_norm_avx2 norm = norm_of(call);
    tables t = make_tables(call, &norm);
    psld_norm_gradient_avx2 gradient = gradient_of(call, &t);
    float *out = call->out.data;
    psld_norm_dx_avx2(&norm, &gradient, t.rest);
    memcpy(out, t.dgamma, (size_t)norm.channels * sizeof(float));
    memcpy(out + norm.channels, t.dbeta, (size_t)norm.channels * sizeof(float));
}

void psld_table_norms_avx2(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_MOMENTS] = (psld_op_kernel){
        .name = "avx2_moments", .tasks = psld_table_one_task_avx2, .run = run_moments, .scratch = scratch_moments};
    kernel[PSLD_OP_NORMALISE] = (psld_op_kernel){.name = "avx2_normalise",
                                                 .tasks = tasks_normalise,
                                                 .run = run_normalise,
                                                 .scratch = scratch_normalise,
                                                 .in_place = 1};
    kernel[PSLD_OP_NORMALISE_DX] = (psld_op_kernel){.name = "avx2_normalise_dx",
                                                    .tasks = tasks_normalise_dx,
                                                    .run = run_normalise_dx,
                                                    .scratch = scratch_normalise_dx,
                                                    .in_place = 16};
    kernel[PSLD_OP_NORMALISE_DW] = (psld_op_kernel){.name = "avx2_normalise_dw",
                                                    .tasks = tasks_normalise_dw,
                                                    .run = run_normalise_dw,
                                                    .scratch = scratch_normalise_dx};
}

#endif
