/* Convolutions, their two gradients and linear maps as products in tiles, and products of small matrices.
 *
 * A convolution's packed weights are lines [tap][summed channel]; those of the gradient by x have their taps in the
 * opposite order, so that it is a convolution of dy with other margins. The gradient by weights is a sum over pixels,
 * cut into parts of so many of them as the geometry alone says, which a second kernel adds in their order. Convolutions
 * of 3 x 3 taps between many channels go by Winograd's algorithm. */
#include "device/opencl/product.h"
#include "device/opencl/rules.h"
#include "device/opencl/winograd.h"

/* ---- Shapes ------------------------------------------------------------------------------------------------------ */

static int taps_of(const psld_attributes *a)
{
    return a->conv.kernel[0] * a->conv.kernel[1];
}

static int by_winograd(const psld_device_call *call)
{
    return psld_cl_winograd_wins(call->attributes, call->in[0].shape.c, call->out.shape);
}

static size_t scratch_conv(const psld_call *call)
{
    int in = call->in[0].shape.c;
    return psld_cl_winograd_wins(call->attributes, in, call->out.shape) ? psld_cl_winograd_scratch(in, call->out.shape)
                                                                        : 0;
}

static size_t packed_conv(const psld_call *call)
{
    int in = call->in[0].shape.c;
    if (psld_cl_winograd_wins(call->attributes, in, call->out.shape))
        return psld_cl_winograd_packed(in, call->out.shape);
    return (size_t)taps_of(call->attributes) * psld_lanes(in) * psld_lanes(call->out.shape.c) * sizeof(float);
}

/* What is done to the result before it is written. */
static void add_finish(const psld_device_call *call, psld_cl_product *s, psld_cl_factors *f)
{
    const psld_attributes *a = call->attributes;
    s->finish = (int32_t)a->conv.finish;
    s->by = (float)a->conv.by;
    if (call->out.half) s->finish |= PSLD_CL_HALF_OUT;
    if (a->conv.finish & PSLD_FINISH_BIAS) {
        s->bias = (int64_t)call->in[2].at.offset;
        f->bias = call->in[2].at.memory;
    }
    if (a->conv.finish & PSLD_FINISH_VECTOR) {
        s->vector = (int64_t)call->in[3].at.offset;
        s->ldv = (int32_t)call->in[3].pixel;
        f->vector = call->in[3].at.memory;
        if (call->in[3].half) s->finish |= PSLD_CL_HALF_VECTOR;
    }
    if (a->conv.finish & PSLD_FINISH_RESIDUAL) {
        s->residual = (int64_t)call->in[4].at.offset;
        s->ldr = (int32_t)call->in[4].pixel;
        f->residual = call->in[4].at.memory;
        if (call->in[4].half) s->finish |= PSLD_CL_HALF_RESIDUAL;
    }
}

/* Of a convolution, or of its gradient by x. */
static void describe_conv(const psld_device_call *call, int backward, psld_cl_product *s, psld_cl_factors *f)
{
    const psld_attributes *a = call->attributes;
    const psld_device_operand *from = &call->in[0], *to = &call->out;
    *f = (psld_cl_factors){.a = from->at.memory, .b = call->packed.memory, .out = to->at.memory};
    *s = (psld_cl_product){.a = (int64_t)from->at.offset,
                           .b = (int64_t)call->packed.offset,
                           .out = (int64_t)to->at.offset,
                           .m = to->shape.n * to->shape.h * to->shape.w,
                           .n = psld_cl_lanes(to->shape.c),
                           .k = taps_of(a) * psld_cl_lanes(from->shape.c),
                           .columns = to->shape.c,
                           .lda = (int32_t)from->pixel,
                           .ldb = psld_cl_lanes(to->shape.c),
                           .ldc = (int32_t)to->pixel,
                           .height = from->shape.h,
                           .width = from->shape.w,
                           .out_height = to->shape.h,
                           .out_width = to->shape.w,
                           .taps_y = a->conv.kernel[0],
                           .taps_x = a->conv.kernel[1],
                           .stride_y = backward ? 1 : a->conv.stride[0],
                           .stride_x = backward ? 1 : a->conv.stride[1],
                           .pad_y = backward ? a->conv.kernel[0] - 1 - a->conv.pad[0] : a->conv.pad[0],
                           .pad_x = backward ? a->conv.kernel[1] - 1 - a->conv.pad[1] : a->conv.pad[1],
                           .spread_y = a->conv.stride[0],
                           .spread_x = a->conv.stride[1],
                           .lanes = psld_cl_lanes(from->shape.c)};
    s->b_rows = s->k;
    add_finish(call, s, f);
}

/* ---- Convolution, and its gradient by x -------------------------------------------------------------------------- */

enum { PRODUCT = 0, WEIGHTS = 1 }; /* slots of a step */

static psld_status prepare_either(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step,
                                  int backward)
{
    psld_cl_product s;
    psld_cl_factors f;
    const int *stride = call->attributes->conv.stride;
    psld_cl_product_kind kind = {.a = PSLD_CL_PIXELS,
                                 .b = PSLD_CL_PANEL,
                                 .a_half = call->in[0].half,
                                 .spread = backward && (stride[0] > 1 || stride[1] > 1)};
    if (by_winograd(call)) return psld_cl_winograd_prepare(device, call, step);
    describe_conv(call, backward, &s, &f);
    PSLD_TRY(psld_cl_kernel(device, "weights.cl", "pack_weights", NULL, &step->kernel[WEIGHTS]));
    return psld_cl_product_prepare(device, step, PRODUCT, &kind, &s, 1, &f);
}

static psld_status prepare_conv(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    return prepare_either(device, call, step, 0);
}

static psld_status prepare_conv_dx(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    return prepare_either(device, call, step, 1);
}

static psld_status run_either(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, int backward)
{
    psld_cl_product s;
    psld_cl_factors f;
    describe_conv(call, backward, &s, &f);
    if (by_winograd(call)) return psld_cl_winograd_run(device, step, call, (const int[]){s.pad_y, s.pad_x});
    return psld_cl_product_run(device, step, PRODUCT, &s, 1, &f);
}

static psld_status run_conv(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    return run_either(device, step, call, 0);
}

static psld_status run_conv_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    return run_either(device, step, call, 1);
}

/* `sum_step`, `result_step`: from a summed channel, one of the result, to the next in the weights. */
static psld_status pack_either(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, int sum_step,
                               int result_step, int flip)
{
    if (by_winograd(call)) return psld_cl_winograd_pack(device, step, call, sum_step, result_step, flip);
    int sums = call->in[0].shape.c, results = call->out.shape.c, taps = taps_of(call->attributes);
    const int numbers[] = {sums,     psld_cl_lanes(sums), results, psld_cl_lanes(results), taps,
                           sum_step, result_step,         flip};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[WEIGHTS]);
    psld_cl_arg_place(&launch, call->in[1].at);
    psld_cl_arg_place(&launch, call->packed);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    return psld_cl_run(&launch, 2, (const size_t[]){psld_lanes(results), (size_t)taps * psld_lanes(sums)},
                       (const size_t[]){8, 8});
}

static psld_status pack_conv(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    int taps = taps_of(call->attributes), in = call->in[0].shape.c, out = call->out.shape.c;
    if (call->attributes->conv.transposed) return pack_either(device, step, call, taps * out, taps, 0);
    return pack_either(device, step, call, taps, taps * in, 0);
}

/* Here the summed channels are the outputs. */
static psld_status pack_conv_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    int taps = taps_of(call->attributes), out = call->in[0].shape.c, in = call->out.shape.c;
    if (call->attributes->conv.transposed) return pack_either(device, step, call, taps, taps * out, 1);
    return pack_either(device, step, call, taps * in, taps, 1);
}

/* ---- The gradient by weights ------------------------------------------------------------------------------------- */

/* Pixels of a part: fewer where the weights alone make too few tiles to fill a device. */
static int chunk_for(int out, int columns)
{
    int tiles = ((out + 63) / 64) * ((columns + 63) / 64);
    return tiles >= 64 ? 4096 : tiles >= 16 ? 2048 : tiles >= 4 ? 1024 : 512;
}

static size_t scratch_conv_dw(const psld_call *call)
{
    psld_shape x = call->in[0].shape, dy = call->in[1].shape;
    int columns = taps_of(call->attributes) * psld_cl_lanes(x.c), chunk = chunk_for(dy.c, columns);
    size_t pixels = (size_t)dy.n * (size_t)dy.h * (size_t)dy.w;
    return (pixels + (size_t)chunk - 1) / (size_t)chunk * (size_t)dy.c * (size_t)columns * sizeof(float);
}

static void describe_conv_dw(const psld_device_call *call, psld_cl_product *s, psld_cl_factors *f)
{
    const psld_attributes *a = call->attributes;
    const psld_device_operand *x = &call->in[0], *dy = &call->in[1];
    int columns = taps_of(a) * psld_cl_lanes(x->shape.c), pixels = dy->shape.n * dy->shape.h * dy->shape.w;
    *f = (psld_cl_factors){.a = dy->at.memory, .b = x->at.memory, .out = call->scratch.memory};
    *s = (psld_cl_product){.a = (int64_t)dy->at.offset,
                           .b = (int64_t)x->at.offset,
                           .out = (int64_t)call->scratch.offset,
                           .out_batch = (int64_t)dy->shape.c * columns,
                           .m = dy->shape.c,
                           .n = columns,
                           .k = pixels,
                           .columns = columns,
                           .lda = (int32_t)dy->pixel,
                           .ldb = (int32_t)x->pixel,
                           .ldc = columns,
                           .height = x->shape.h,
                           .width = x->shape.w,
                           .out_height = dy->shape.h,
                           .out_width = dy->shape.w,
                           .taps_y = a->conv.kernel[0],
                           .taps_x = a->conv.kernel[1],
                           .stride_y = a->conv.stride[0],
                           .stride_x = a->conv.stride[1],
                           .pad_y = a->conv.pad[0],
                           .pad_x = a->conv.pad[1],
                           .lanes = psld_cl_lanes(x->shape.c),
                           .chunk = chunk_for(dy->shape.c, columns)};
}

static int parts_of(const psld_cl_product *s)
{
    return (s->k + s->chunk - 1) / s->chunk;
}

static psld_status prepare_conv_dw(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    psld_cl_product s;
    psld_cl_factors f;
    psld_cl_product_kind kind = {
        .a = PSLD_CL_COLUMNS, .b = PSLD_CL_PIXELS, .a_half = call->in[1].half, .b_half = call->in[0].half};
    describe_conv_dw(call, &s, &f);
    PSLD_TRY(psld_cl_kernel(device, "weights.cl", "add_parts", NULL, &step->kernel[WEIGHTS]));
    return psld_cl_product_prepare(device, step, PRODUCT, &kind, &s, parts_of(&s), &f);
}

static psld_status run_conv_dw(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_product s;
    psld_cl_factors f;
    describe_conv_dw(call, &s, &f);
    PSLD_TRY(psld_cl_product_run(device, step, PRODUCT, &s, parts_of(&s), &f));
    int in = call->in[0].shape.c, out = call->in[1].shape.c, taps = taps_of(call->attributes);
    int transposed = call->attributes->conv.transposed;
    const int numbers[] = {
        parts_of(&s), out, in, s.lanes, taps, transposed ? taps : taps * in, transposed ? taps * out : taps};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[WEIGHTS]);
    psld_cl_arg_place(&launch, call->scratch);
    psld_cl_arg_place(&launch, call->out.at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    return psld_cl_run(&launch, 2, (const size_t[]){(size_t)s.n, (size_t)out}, (const size_t[]){32, 4});
}

/* ---- Products of small matrices ---------------------------------------------------------------------------------- */

static psld_status prepare_product(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    (void)call;
    return psld_cl_kernel(device, "weights.cl", "multiply_small", NULL, &step->kernel[PRODUCT]);
}

static psld_status run_product(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_shape a = call->in[0].shape, b = call->in[1].shape, out = call->out.shape;
    const int *transposed = call->attributes->product.transposed;
    const int numbers[] = {out.n,
                           out.c,
                           transposed[0] ? a.n : a.c,
                           transposed[0] ? 1 : a.c,
                           transposed[0] ? a.c : 1,
                           transposed[1] ? 1 : b.c,
                           transposed[1] ? b.c : 1};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[PRODUCT]);
    psld_cl_arg_place(&launch, call->in[0].at);
    psld_cl_arg_place(&launch, call->in[1].at);
    psld_cl_arg_place(&launch, call->out.at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    return psld_cl_run(&launch, 2, (const size_t[]){(size_t)out.c, (size_t)out.n}, (const size_t[]){16, 4});
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

#define FINISHES (PSLD_FINISH_BIAS | PSLD_FINISH_VECTOR | PSLD_FINISH_RESIDUAL | PSLD_FINISH_SCALE | PSLD_FINISH_RELU)

const psld_cl_rule psld_cl_rule_conv = {
    {.name = "conv opencl", .scratch = scratch_conv, .packed = packed_conv, .finish = FINISHES},
    prepare_conv,
    pack_conv,
    run_conv,
    NULL};
const psld_cl_rule psld_cl_rule_conv_dx = {
    {.name = "conv_dx opencl", .scratch = scratch_conv, .packed = packed_conv, .finish = FINISHES},
    prepare_conv_dx,
    pack_conv_dx,
    run_conv_dx,
    NULL};
const psld_cl_rule psld_cl_rule_conv_dw = {
    {.name = "conv_dw opencl", .scratch = scratch_conv_dw}, prepare_conv_dw, NULL, run_conv_dw, NULL};
const psld_cl_rule psld_cl_rule_product = {{.name = "product opencl"}, prepare_product, NULL, run_product, NULL};
