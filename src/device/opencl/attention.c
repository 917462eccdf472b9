/* The products of attention, one for each image. */
#include "device/opencl/product.h"
#include "device/opencl/rules.h"

static int area_of(const psld_device_operand *o)
{
    return o->shape.h * o->shape.w;
}

static int64_t image_of(const psld_device_operand *o)
{
    return (int64_t)area_of(o) * (int64_t)o->pixel;
}

/* C = by A B for each image, A and B being inputs 0 and 1: S = q k', o = P v, o = P' y. */
static void describe(const psld_device_call *call, psld_cl_product *s, psld_cl_factors *f)
{
    const psld_device_operand *a = &call->in[0], *b = &call->in[1], *out = &call->out;
    int length = call->op == PSLD_OP_APPLY_T ? area_of(a) : psld_cl_lanes(a->shape.c);
    *f = (psld_cl_factors){.a = a->at.memory, .b = b->at.memory, .out = out->at.memory};
    *s = (psld_cl_product){.a = (int64_t)a->at.offset,
                           .b = (int64_t)b->at.offset,
                           .out = (int64_t)out->at.offset,
                           .a_batch = image_of(a),
                           .b_batch = image_of(b),
                           .out_batch = image_of(out),
                           .m = area_of(out),
                           .n = psld_cl_lanes(out->shape.c),
                           .k = length,
                           .columns = out->shape.c,
                           .b_rows = area_of(b),
                           .lda = (int32_t)a->pixel,
                           .ldb = (int32_t)b->pixel,
                           .ldc = (int32_t)out->pixel,
                           .finish = PSLD_FINISH_SCALE | (out->half ? PSLD_CL_HALF_OUT : 0),
                           .by = (float)call->attributes->scale.by};
}

static psld_status prepare_attention(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    psld_cl_product s;
    psld_cl_factors f;
    psld_cl_product_kind kind = {.a = call->op == PSLD_OP_APPLY_T ? PSLD_CL_COLUMNS : PSLD_CL_ROWS,
                                 .b = call->op == PSLD_OP_SCORES ? PSLD_CL_ROWS : PSLD_CL_PANEL,
                                 .a_half = call->in[0].half,
                                 .b_half = call->in[1].half};
    describe(call, &s, &f);
    return psld_cl_product_prepare(device, step, 0, &kind, &s, call->out.shape.n, &f);
}

static psld_status run_attention(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_product s;
    psld_cl_factors f;
    describe(call, &s, &f);
    return psld_cl_product_run(device, step, 0, &s, call->out.shape.n, &f);
}

const psld_cl_rule psld_cl_rule_scores = {{.name = "scores opencl"}, prepare_attention, NULL, run_attention, NULL};
const psld_cl_rule psld_cl_rule_apply = {{.name = "apply opencl"}, prepare_attention, NULL, run_attention, NULL};
const psld_cl_rule psld_cl_rule_apply_t = {{.name = "apply_t opencl"}, prepare_attention, NULL, run_attention, NULL};
