/* Sums over the pixels of a sample, and group normalisation: kernels/sums.cl. */
#include "device/opencl/rules.h"

/* As in sums.cl. */
enum { GROUP = 128, CHANNELS = 16, NORM_PIXELS = 256, SAMPLE_GROUP = 64 };

#define SUMS "activate.cl sums.cl"

static int pixels_of(const psld_device_operand *o)
{
    return o->shape.h * o->shape.w;
}

/* Work groups for each 16 channels of each sample; `pieces` for its pixels. */
static psld_status run_groups(psld_cl_launch *launch, psld_shape s, size_t pieces)
{
    const size_t global[] = {(psld_lanes(s.c) + CHANNELS - 1) / CHANNELS * GROUP, (size_t)s.n, pieces};
    const size_t group[] = {GROUP, 1, 1};
    return psld_cl_run(launch, 3, global, group);
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

/* The sums of each sample, where these are added up. */
static size_t channel_sum_scratch(const psld_call *call)
{
    if (call->out.pixel) return 0;
    return (size_t)call->in[0].shape.n * psld_lanes(call->in[0].shape.c) * sizeof(float);
}

static psld_status prepare_channel_sum(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    PSLD_TRY(psld_cl_prepare_kernel(device, call, step, 0, SUMS, "channel_sum"));
    return psld_cl_prepare_kernel(device, call, step, 1, SUMS, "sample_sum");
}

static psld_status run_channel_sum(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const psld_device_operand *x = &call->in[0];
    size_t lanes = psld_lanes(x->shape.c);
    psld_device_operand each = call->out;
    if (!call->out.pixel) each = (psld_device_operand){.at = call->scratch, .pixel = lanes};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_operand(&launch, x);
    psld_cl_arg_operand(&launch, &each);
    psld_cl_arg_int(&launch, pixels_of(x));
    psld_cl_arg_int(&launch, (int)lanes);
    PSLD_TRY(run_groups(&launch, x->shape, 1));
    if (call->out.pixel) return PSLD_OK;
    launch = psld_cl_begin(device, step->kernel[1]);
    psld_cl_arg_operand(&launch, &each);
    psld_cl_arg_place(&launch, call->out.at);
    psld_cl_arg_int(&launch, x->shape.n);
    psld_cl_arg_int(&launch, x->shape.c);
    return psld_cl_run(&launch, 1, (const size_t[]){(size_t)x->shape.c}, (const size_t[]){SAMPLE_GROUP});
}

/* Moments, and the sums of modulation: all inputs, the result, pixels and channels. */
static psld_status run_sums(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    for (int i = 0; i < call->inputs; i++) psld_cl_arg_operand(&launch, &call->in[i]);
    psld_cl_arg_operand(&launch, &call->out);
    psld_cl_arg_int(&launch, pixels_of(&call->in[0]));
    psld_cl_arg_int(&launch, call->in[0].shape.c);
    return run_groups(&launch, call->in[0].shape, 1);
}

/* ---- Group normalisation ----------------------------------------------------------------------------------------- */

static psld_cl_launch begin_norm(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const psld_attributes *a = call->attributes;
    int channels = call->in[0].shape.c;
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    for (int i = 0; i < call->inputs; i++) psld_cl_arg_operand(&launch, &call->in[i]);
    psld_cl_arg_operand(&launch, &call->out);
    psld_cl_arg_int(&launch, pixels_of(&call->in[0]));
    psld_cl_arg_int(&launch, channels);
    psld_cl_arg_int(&launch, (int)psld_lanes(channels));
    psld_cl_arg_int(&launch, channels / a->norm.groups);
    psld_cl_arg_float(&launch, a->norm.eps);
    psld_cl_arg_int(&launch, (int)a->norm.activation);
    return launch;
}

static psld_status run_normalise(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_norm(device, step, call);
    return run_groups(&launch, call->in[0].shape, ((size_t)pixels_of(&call->in[0]) + NORM_PIXELS - 1) / NORM_PIXELS);
}

static psld_status run_normalise_sums(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_norm(device, step, call);
    return run_groups(&launch, call->in[0].shape, 1);
}

#define RULE(kernel_name, overlays, runs)                                                                    \
    {                                                                                                        \
        .kernel = {.name = kernel_name, .in_place = overlays}, .file = SUMS, .prepare = psld_cl_prepare_one, \
        .run = runs                                                                                          \
    }

const psld_cl_rule psld_cl_rule_modulate_sums = RULE("modulate_sums", 0, run_sums),
                   psld_cl_rule_moments = RULE("moments", 0, run_sums),
                   psld_cl_rule_normalise = RULE("normalise", 1, run_normalise),
                   psld_cl_rule_normalise_sums = RULE("normalise_sums", 0, run_normalise_sums),
                   psld_cl_rule_normalise_dx = RULE("normalise_dx", 17, run_normalise);

const psld_cl_rule psld_cl_rule_channel_sum = {.kernel = {.name = "channel_sum", .scratch = channel_sum_scratch},
                                               .prepare = prepare_channel_sum,
                                               .run = run_channel_sum};
