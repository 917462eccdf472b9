/* Operations that see one element, or one pixel, at a time: kernels/rows.cl. */
#include <assert.h>
#include <math.h>

#include "base/random.h"
#include "device/opencl/rules.h"

#define ROWS "activate.cl rows.cl"

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

psld_cl_rows psld_cl_rows_of(const psld_device_operand *o)
{
    psld_shape s = o->shape;
    size_t planes = (size_t)s.n * (size_t)s.h * (size_t)s.w;
    if (o->pixel) return (psld_cl_rows){planes, (size_t)s.c, psld_lanes(s.c)};
    return (psld_cl_rows){1, planes * (size_t)s.c, planes * (size_t)s.c};
}

static void add_rows(psld_cl_launch *launch, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    psld_cl_arg_int(launch, (int)rows.count);
    psld_cl_arg_int(launch, (int)rows.width);
    psld_cl_arg_int(launch, (int)rows.lanes);
}

static psld_status run_items(psld_cl_launch *launch, size_t items)
{
    return psld_cl_run(launch, 1, (const size_t[]){items}, (const size_t[]){PSLD_CL_ROWS_GROUP});
}

static psld_status run_rows(psld_cl_launch *launch, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    return run_items(launch, rows.count * ((rows.lanes + 3) / 4));
}

static psld_status run_lanes(psld_cl_launch *launch, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    return run_items(launch, rows.count * rows.lanes);
}

/* Rows and all operands. */
static psld_cl_launch begin_rows(psld_cl_device *device, const psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    add_rows(&launch, call);
    for (int i = 0; i < call->inputs; i++) psld_cl_arg_operand(&launch, &call->in[i]);
    psld_cl_arg_operand(&launch, &call->out);
    return launch;
}

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

static psld_status run_activate(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_int(&launch, (int)call->attributes->activation.kind);
    return run_rows(&launch, call);
}

static psld_status run_scale(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_float(&launch, call->attributes->scale.by);
    return run_rows(&launch, call);
}

static psld_status run_fill(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_float(&launch, call->attributes->fill.value);
    return run_rows(&launch, call);
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

/* A vector for each sample, or, dense, one for all, is the last input. */
static psld_status run_vector(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_int(&launch, call->out.shape.h * call->out.shape.w);
    return run_rows(&launch, call);
}

/* Where channels go: to first ... last - 1, from `from` on; behind `count` of them there are zeros. */
typedef struct range {
    int first, last, from, count;
} range;

/* Whether four can be taken at a time. */
static int in_fours(const range *r, const psld_device_operand *to)
{
    return to->pixel && (r->first | r->last | r->from | r->count) % 4 == 0;
}

static psld_status prepare_take(psld_cl_device *device, psld_cl_step *step, int slot, const psld_device_operand *from,
                                const psld_device_operand *to, const range *r)
{
    psld_device_call one = {.inputs = 1, .in = {*from}, .out = *to};
    return psld_cl_prepare_kernel(device, &one, step, slot, ROWS, in_fours(r, to) ? "take4_rows" : "take_rows");
}

static psld_status take(psld_cl_device *device, cl_kernel kernel, const psld_device_operand *from,
                        const psld_device_operand *to, const range *r)
{
    psld_cl_launch launch = psld_cl_begin(device, kernel);
    psld_cl_rows rows = psld_cl_rows_of(to);
    psld_cl_arg_int(&launch, (int)rows.count);
    psld_cl_arg_operand(&launch, from);
    psld_cl_arg_operand(&launch, to);
    psld_cl_arg_int(&launch, r->first);
    psld_cl_arg_int(&launch, r->last);
    psld_cl_arg_int(&launch, r->from);
    psld_cl_arg_int(&launch, r->count);
    return run_items(&launch, rows.count * (size_t)(r->last - r->first) / (in_fours(r, to) ? 4 : 1));
}

/* Input i of a concatenation; with the last come the zeros behind it. */
static range part_of(const psld_device_call *call, int i)
{
    range r = {.count = call->in[i].shape.c};
    for (int j = 0; j < i; j++) r.first += call->in[j].shape.c;
    r.last = i == call->inputs - 1 ? (int)psld_cl_rows_of(&call->out).lanes : r.first + r.count;
    return r;
}

static psld_status run_concat(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    for (int i = 0; i < call->inputs; i++) {
        range r = part_of(call, i);
        PSLD_TRY(take(device, step->kernel[i], &call->in[i], &call->out, &r));
    }
    return PSLD_OK;
}

/* A kernel for each input: each may be in half precision or not. */
static psld_status prepare_concat(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    for (int i = 0; i < call->inputs; i++) {
        range r = part_of(call, i);
        PSLD_TRY(prepare_take(device, step, i, &call->in[i], &call->out, &r));
    }
    return PSLD_OK;
}

static range slice_of(const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    return (range){0, (int)rows.lanes, call->attributes->slice.first, (int)rows.width};
}

static psld_status prepare_slice(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    range r = slice_of(call);
    return prepare_take(device, step, 0, &call->in[0], &call->out, &r);
}

static psld_status run_slice(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    range r = slice_of(call);
    return take(device, step->kernel[0], &call->in[0], &call->out, &r);
}

static psld_status run_slice_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_int(&launch, call->attributes->slice.first);
    psld_cl_arg_int(&launch, (int)psld_cl_rows_of(&call->in[0]).width);
    return run_lanes(&launch, call);
}

static psld_status run_reshape(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_int(&launch, call->out.shape.h * call->out.shape.w);
    psld_cl_arg_int(&launch, call->in[0].shape.h * call->in[0].shape.w);
    return run_lanes(&launch, call);
}

/* ---- Rows of dense matrices -------------------------------------------------------------------------------------- */

/* A vector is a matrix with one number in each row. */
static int pick_width(psld_shape s)
{
    return s.n == 1 ? 1 : s.c * s.h * s.w;
}

static int pick_count(psld_shape s)
{
    return s.n == 1 ? s.c : s.n;
}

static psld_cl_launch begin_pick(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_shape s = call->out.shape;
    psld_cl_arg_place(&launch, call->in[0].at);
    psld_cl_arg_place(&launch, call->out.at);
    psld_cl_arg_int(&launch, pick_count(s) * pick_width(s));
    psld_cl_arg_int(&launch, pick_width(s));
    psld_cl_arg_int(&launch, call->attributes->pick.first);
    psld_cl_arg_int(&launch, call->attributes->pick.step);
    return launch;
}

static psld_status run_pick(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_pick(device, step, call);
    return run_items(&launch, (size_t)pick_count(call->out.shape) * (size_t)pick_width(call->out.shape));
}

static psld_status run_pick_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_pick(device, step, call);
    psld_cl_arg_int(&launch, pick_count(call->in[0].shape));
    return run_items(&launch, (size_t)pick_count(call->out.shape) * (size_t)pick_width(call->out.shape));
}

/* ---- Dropout ----------------------------------------------------------------------------------------------------- */

/* The second kernel copies: dropout is the identity where nobody trains. */
static psld_status prepare_dropout(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    PSLD_TRY(psld_cl_prepare_kernel(device, call, step, 0, ROWS, "dropout_rows"));
    return psld_cl_prepare_kernel(device, call, step, 1, ROWS, "scale_rows");
}

static psld_status run_dropout(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const psld_attributes *a = call->attributes;
    psld_shape s = call->out.shape;
    size_t pixels = (size_t)s.h * (size_t)s.w, blocks = (pixels * (size_t)s.c + 15) / 16;
    if (!call->run->training) {
        psld_cl_step copy = *step;
        copy.kernel[0] = step->kernel[1];
        psld_cl_launch launch = begin_rows(device, &copy, call);
        psld_cl_arg_float(&launch, 1);
        return run_rows(&launch, call);
    }
    psld_cl_launch launch = begin_rows(device, step, call);
    psld_cl_arg_int(&launch, (int)pixels);
    psld_cl_arg_int(&launch, (int)blocks);
    psld_cl_arg_long(&launch, call->run->seed);
    psld_cl_arg_long(&launch, PSLD_FOR_DROPOUT);
    psld_cl_arg_long(&launch, call->run->first);
    psld_cl_arg_long(&launch, call->run->step << 16 | (uint64_t)a->dropout.number);
    psld_cl_arg_int(&launch, (int)lround(a->dropout.rate * 65536));
    psld_cl_arg_float(&launch, 1 / (1 - a->dropout.rate));
    return run_items(&launch, (size_t)s.n * blocks);
}

#define RULE(kernel_name, overlays, runs)                                                                    \
    {                                                                                                        \
        .kernel = {.name = kernel_name, .in_place = overlays}, .file = ROWS, .prepare = psld_cl_prepare_one, \
        .run = runs                                                                                          \
    }

const psld_cl_rule psld_cl_rule_activate = RULE("activate_rows", 1, run_activate),
                   psld_cl_rule_activate_dx = RULE("activate_dx_rows", 3, run_activate),
                   psld_cl_rule_sum = RULE("sum_rows", 3, run_scale),
                   psld_cl_rule_scale = RULE("scale_rows", 1, run_scale),
                   psld_cl_rule_fill = RULE("fill_rows", 0, run_fill),
                   psld_cl_rule_bias = RULE("bias_rows", 1, run_vector),
                   psld_cl_rule_broadcast = RULE("broadcast_rows", 0, run_vector),
                   psld_cl_rule_modulate = RULE("modulate_rows", 1, run_vector),
                   psld_cl_rule_modulate_dx = RULE("modulate_dx_rows", 1, run_vector),
                   psld_cl_rule_slice_dx = RULE("slice_dx_rows", 0, run_slice_dx),
                   psld_cl_rule_reshape = RULE("reshape_rows", 0, run_reshape),
                   psld_cl_rule_pick = RULE("pick", 0, run_pick),
                   psld_cl_rule_pick_dx = RULE("pick_dx", 0, run_pick_dx);

const psld_cl_rule psld_cl_rule_slice = {.kernel = {.name = "take_rows"}, .prepare = prepare_slice, .run = run_slice};
const psld_cl_rule psld_cl_rule_concat = {.kernel = {.name = "concat"}, .prepare = prepare_concat, .run = run_concat};
const psld_cl_rule psld_cl_rule_dropout = {
    .kernel = {.name = "dropout_rows", .in_place = 1}, .prepare = prepare_dropout, .run = run_dropout};
