/* Sums, scales, activations, dropout, sums over pixels. Dense operands and other activations than SiLU go to the reference
 * kernels. */
#include "kernels/simd/table.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "kernels/simd/rows.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

static ptrdiff_t pixel_count(const psld_operand *o)
{
    return (ptrdiff_t)o->shape.n * o->shape.h * o->shape.w;
}

static ptrdiff_t stride_of(const psld_operand *o)
{
    return (ptrdiff_t)o->pixel;
}

/* Whether the fast kernel takes this call. */
static int is_batched(const psld_call *call)
{
    return call->out.pixel != 0;
}

static int is_silu(const psld_call *call)
{
    return call->out.pixel != 0 && call->attributes->activation.kind == PSLD_SILU;
}

static void fast_sum(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out;
    float by = (float)call->attributes->scale.by;
    if (!is_batched(call)) {
        psld_backend_reference.kernel[PSLD_OP_SUM].run(call, begin, end);
        return;
    }
    simd_add(pixel_count(y), y->shape.c, a->data, stride_of(a), by, b->data, stride_of(b), by, y->data, stride_of(y));
}

static void fast_scale(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *a = &call->in[0], *y = &call->out;
    if (!is_batched(call)) {
        psld_backend_reference.kernel[PSLD_OP_SCALE].run(call, begin, end);
        return;
    }
    simd_add(pixel_count(y), y->shape.c, a->data, stride_of(a), (float)call->attributes->scale.by, NULL, 0, 0, y->data,
             stride_of(y));
}

static void fast_activate(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0], *y = &call->out;
    if (!is_silu(call)) {
        psld_backend_reference.kernel[PSLD_OP_ACTIVATE].run(call, begin, end);
        return;
    }
    simd_silu(pixel_count(y), y->shape.c, x->data, stride_of(x), y->data, stride_of(y));
}

static void fast_activate_dx(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0], *dy = &call->in[1], *dx = &call->out;
    if (!is_silu(call)) {
        psld_backend_reference.kernel[PSLD_OP_ACTIVATE_DX].run(call, begin, end);
        return;
    }
    simd_silu_dx(pixel_count(dx), dx->shape.c, x->data, stride_of(x), dy->data, stride_of(dy), dx->data, stride_of(dx));
}

/* The fast kernels divide their work themselves; the reference kernels run in tasks. */
static size_t tasks_sum(const psld_call *call)
{
    return is_batched(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_SUM].tasks(call);
}

static size_t tasks_scale(const psld_call *call)
{
    return is_batched(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_SCALE].tasks(call);
}

static size_t tasks_activate(const psld_call *call)
{
    return is_silu(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_ACTIVATE].tasks(call);
}

static size_t tasks_activate_dx(const psld_call *call)
{
    return is_silu(call) ? 1 : psld_backend_reference.kernel[PSLD_OP_ACTIVATE_DX].tasks(call);
}

/* ---- Dropout ----------------------------------------------------------------------------------------------------- */

static int is_dropping(const psld_call *call)
{
    return call->out.pixel != 0 && call->run->training;
}

static size_t tasks_dropout(const psld_call *call)
{
    return is_dropping(call) ? (size_t)call->out.shape.n * (size_t)call->out.shape.h
                             : psld_backend_reference.kernel[PSLD_OP_DROPOUT].tasks(call);
}

/* Elements whose number is at least `dropped` stay, times `kept`. Zero lanes stay zero whatever their number. */
static void drop_elements(ptrdiff_t count, const uint16_t *drawn, int dropped, float kept, const float *x, float *y)
{
    for (ptrdiff_t i = 0; i < count; i += V_LANES)
        v_store_part(y + i, count - i, v_drop(drawn + i, dropped, v_mul(v_load_part(x + i, count - i), v_set(kept))));
}

/* A task is a line of an image; addresses of random numbers are those of the reference kernel. */
static void fast_dropout(const psld_call *call, size_t begin, size_t end)
{
    enum { PIECE = 512 };
    if (!is_dropping(call)) {
        psld_backend_reference.kernel[PSLD_OP_DROPOUT].run(call, begin, end);
        return;
    }
    const psld_operand *in = &call->in[0], *out = &call->out;
    const psld_run *run = call->run;
    const double rate = call->attributes->dropout.rate;
    const int dropped = (int)lround(rate * 65536);
    const uint64_t address = run->step << 16 | (uint64_t)call->attributes->dropout.number;
    const ptrdiff_t channels = out->shape.c, area = (ptrdiff_t)out->shape.h * out->shape.w;
    uint16_t drawn[PIECE];
    for (ptrdiff_t p = (ptrdiff_t)begin * out->shape.w; p < (ptrdiff_t)end * out->shape.w; p++)
        for (ptrdiff_t c = 0; c < channels; c += PIECE) {
            const ptrdiff_t count = psld_round8(psld_min(PIECE, channels - c));
            psld_random_short(run->seed, PSLD_FOR_DROPOUT, run->first + (uint64_t)(p / area), address,
                              (uint64_t)(p % area * channels + c), (size_t)count, drawn);
            drop_elements(count, drawn, dropped, (float)(1 / (1 - rate)),
                          (const float *)in->data + p * stride_of(in) + c, (float *)out->data + p * stride_of(out) + c);
        }
}

/* ---- Sums over pixels -------------------------------------------------------------------------------------------- */

static size_t scratch_channel_sum(const psld_call *call)
{
    return (size_t)psld_round16(call->in[0].shape.c) * sizeof(float);
}

/* Dense: over all samples. Batched: one sum a sample, whose lanes are written whole. */
static void fast_channel_sum(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0], *y = &call->out;
    ptrdiff_t area = (ptrdiff_t)x->shape.h * x->shape.w;
    (void)begin, (void)end;
    if (y->pixel == 0) {
        simd_sum_pixels(pixel_count(x), x->shape.c, x->data, stride_of(x), call->scratch, 0);
        memcpy(y->data, call->scratch, (size_t)x->shape.c * sizeof(float));
        return;
    }
    for (ptrdiff_t n = 0; n < x->shape.n; n++)
        simd_sum_pixels(area, x->shape.c, (const float *)x->data + n * area * stride_of(x), stride_of(x),
                        (float *)y->data + n * stride_of(y), 0);
}

void simd_table_pointwise(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_SUM] =
        (psld_op_kernel){.name = SIMD_TEXT("sum"), .tasks = tasks_sum, .run = fast_sum, .in_place = 3};
    kernel[PSLD_OP_SCALE] =
        (psld_op_kernel){.name = SIMD_TEXT("scale"), .tasks = tasks_scale, .run = fast_scale, .in_place = 1};
    kernel[PSLD_OP_ACTIVATE] =
        (psld_op_kernel){.name = SIMD_TEXT("activate"), .tasks = tasks_activate, .run = fast_activate, .in_place = 1};
    kernel[PSLD_OP_ACTIVATE_DX] = (psld_op_kernel){
        .name = SIMD_TEXT("activate_dx"), .tasks = tasks_activate_dx, .run = fast_activate_dx, .in_place = 3};
    kernel[PSLD_OP_DROPOUT] =
        (psld_op_kernel){.name = SIMD_TEXT("dropout"), .tasks = tasks_dropout, .run = fast_dropout, .in_place = 1};
    kernel[PSLD_OP_CHANNEL_SUM] = (psld_op_kernel){.name = SIMD_TEXT("channel_sum"),
                                                   .tasks = simd_table_one_task,
                                                   .run = fast_channel_sum,
                                                   .scratch = scratch_channel_sum};
}
