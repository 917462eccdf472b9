/* Operations that look at several pixels of an image: kernels/image.cl. */
#include "device/opencl/rules.h"

enum { GROUP = 128 };

/* A table of floats of the step's own. */
psld_status psld_cl_make_table(psld_cl_device *device, const float *values, size_t count, psld_cl_step *step)
{
    PSLD_TRY(psld_cl_create(&device->device, count * sizeof *values, &step->table));
    return psld_cl_upload(step->table, 0, count * sizeof *values, values);
}

static psld_cl_launch begin_image(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_shape x = call->in[0].shape, y = call->out.shape;
    const int sizes[] = {y.n, y.c, (int)psld_lanes(y.c), x.h, x.w, y.h, y.w};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_operand(&launch, &call->in[0]);
    psld_cl_arg_operand(&launch, &call->out);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) psld_cl_arg_int(&launch, sizes[i]);
    return launch;
}

static psld_status run_image(psld_cl_launch *launch, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    return psld_cl_run(launch, 1, (const size_t[]){rows.count * rows.lanes / 4}, (const size_t[]){GROUP});
}

static psld_status prepare_resample(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    PSLD_TRY(psld_cl_make_table(device, call->attributes->resample.tap, PSLD_MAX_TAPS, step));
    return psld_cl_prepare_one(device, call, step);
}

static psld_status run_resample(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const psld_attributes *a = call->attributes;
    psld_cl_launch launch = begin_image(device, step, call);
    psld_cl_arg_memory(&launch, step->table);
    psld_cl_arg_int(&launch, a->resample.taps);
    psld_cl_arg_int(&launch, a->resample.up);
    psld_cl_arg_int(&launch, a->resample.down);
    psld_cl_arg_int(&launch, a->resample.pad);
    return run_image(&launch, call);
}

static psld_status run_pool(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const psld_attributes *a = call->attributes;
    const int window[] = {a->pool.kernel[0], a->pool.kernel[1], a->pool.stride[0], a->pool.stride[1],
                          a->pool.pad[0],    a->pool.pad[1],    a->pool.mean};
    psld_cl_launch launch = begin_image(device, step, call);
    for (size_t i = 0; i < sizeof window / sizeof *window; i++) psld_cl_arg_int(&launch, window[i]);
    return run_image(&launch, call);
}

static psld_status run_resize(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = begin_image(device, step, call);
    return run_image(&launch, call);
}

#define RULE(kernel_name, prepares, runs)                                                     \
    {                                                                                         \
        .kernel = {.name = kernel_name}, .file = "image.cl", .prepare = prepares, .run = runs \
    }

const psld_cl_rule psld_cl_rule_resample = RULE("resample", prepare_resample, run_resample),
                   psld_cl_rule_pool = RULE("pool", psld_cl_prepare_one, run_pool),
                   psld_cl_rule_resize = RULE("resize", psld_cl_prepare_one, run_resize);
