/* Softmax, losses and embeddings of times: kernels/samples.cl. */
#include <math.h>

#include "base/alloc.h"
#include "device/opencl/rules.h"

enum { GROUP = 64 };

static psld_cl_launch begin(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    for (int i = 0; i < call->inputs; i++) psld_cl_arg_operand(&launch, &call->in[i]);
    psld_cl_arg_operand(&launch, &call->out);
    return launch;
}

static psld_status run_items(psld_cl_launch *launch, size_t items)
{
    return psld_cl_run(launch, 1, (const size_t[]){items}, (const size_t[]){GROUP});
}

static psld_status run_softmax(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    psld_cl_launch launch = begin(device, step, call);
    psld_cl_arg_int(&launch, (int)rows.width);
    psld_cl_arg_int(&launch, (int)rows.lanes);
    return run_items(&launch, rows.count * GROUP);
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

/* Without a metric the first input stands in its place, where nobody reads it. `given`: inputs before the metric. */
static psld_cl_launch begin_loss(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, int given)
{
    const psld_attributes *a = call->attributes;
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    for (int i = 0; i < given; i++) psld_cl_arg_operand(&launch, &call->in[i]);
    psld_cl_arg_operand(&launch, &call->in[a->loss.variables ? given : 0]);
    psld_cl_arg_operand(&launch, &call->out);
    return launch;
}

static size_t add_loss(psld_cl_launch *launch, const psld_device_call *call)
{
    const psld_attributes *a = call->attributes;
    psld_shape s = call->in[0].shape;
    int variables = a->loss.variables ? a->loss.variables : 1, each = s.c / variables;
    psld_cl_arg_int(launch, s.h * s.w);
    psld_cl_arg_int(launch, variables);
    psld_cl_arg_int(launch, each);
    psld_cl_arg_int(launch, a->loss.variables > 0);
    psld_cl_arg_int(launch, a->loss.power);
    return (size_t)s.n * (size_t)s.h * (size_t)s.w * (size_t)each;
}

static psld_status run_loss(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_loss(device, step, call, 2);
    add_loss(&launch, call);
    return run_items(&launch, (size_t)call->out.shape.n * GROUP);
}

static psld_status run_loss_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_loss(device, step, call, 3);
    psld_cl_arg_int(&launch, call->out.shape.n);
    return run_items(&launch, add_loss(&launch, call));
}

static psld_status run_root(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin(device, step, call);
    psld_cl_arg_int(&launch, call->out.shape.n);
    return run_items(&launch, (size_t)call->out.shape.n);
}

static psld_status run_entropy(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin(device, step, call);
    psld_cl_arg_int(&launch, call->out.shape.n);
    psld_cl_arg_int(&launch, call->in[0].shape.c);
    return run_items(&launch, (size_t)call->out.shape.n);
}

/* ---- Embeddings -------------------------------------------------------------------------------------------------- */

/* Rounded to float after each operation, as the networks were trained. */
static psld_status prepare_positional(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    int half = call->out.shape.c / 2;
    double range = half - call->attributes->embedding.shift;
    float rate = (float)(log(10000.0) / (range > 0 ? range : 1)),
          *frequency = psld_alloc((size_t)half, sizeof *frequency);
    if (!frequency) return PSLD_NO_MEMORY;
    for (int i = 0; i < half; i++) frequency[i] = (float)exp((double)((float)i * -rate));
    psld_status status = psld_cl_make_table(device, frequency, (size_t)half, step);
    psld_release(frequency);
    return status == PSLD_OK ? psld_cl_prepare_one(device, call, step) : status;
}

static psld_status run_embedding(psld_cl_launch *launch, const psld_device_call *call, int flag)
{
    psld_shape s = call->out.shape;
    psld_cl_arg_int(launch, s.n);
    psld_cl_arg_int(launch, (int)psld_lanes(s.c));
    psld_cl_arg_int(launch, s.c / 2);
    psld_cl_arg_int(launch, flag);
    return run_items(launch, (size_t)s.n * psld_lanes(s.c));
}

static psld_status run_positional(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin(device, step, call);
    psld_cl_arg_memory(&launch, step->table);
    return run_embedding(&launch, call, call->attributes->embedding.cos_first != 0);
}

static psld_status run_fourier(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin(device, step, call);
    return run_embedding(&launch, call, call->attributes->embedding.plain);
}

#define RULE(kernel_name, overlays, prepares, runs)                                                                   \
    {                                                                                                                 \
        .kernel = {.name = kernel_name, .in_place = overlays}, .file = "samples.cl", .prepare = prepares, .run = runs \
    }

const psld_cl_rule psld_cl_rule_softmax = RULE("softmax", 1, psld_cl_prepare_one, run_softmax),
                   psld_cl_rule_softmax_dx = RULE("softmax_dx", 3, psld_cl_prepare_one, run_softmax),
                   psld_cl_rule_loss = RULE("loss", 0, psld_cl_prepare_one, run_loss),
                   psld_cl_rule_loss_dx = RULE("loss_dx", 3, psld_cl_prepare_one, run_loss_dx),
                   psld_cl_rule_root = RULE("root", 0, psld_cl_prepare_one, run_root),
                   psld_cl_rule_root_dx = RULE("root_dx", 0, psld_cl_prepare_one, run_root),
                   psld_cl_rule_entropy = RULE("entropy", 0, psld_cl_prepare_one, run_entropy),
                   psld_cl_rule_entropy_dx = RULE("entropy_dx", 0, psld_cl_prepare_one, run_entropy),
                   psld_cl_rule_positional = RULE("positional", 0, prepare_positional, run_positional),
                   psld_cl_rule_fourier = RULE("fourier", 0, psld_cl_prepare_one, run_fourier);
