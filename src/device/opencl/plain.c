/* Products, without anything for speed: kernels/plain.cl. */
#include "device/opencl/rules.h"

enum { GROUP = 64 };

static psld_status run_items(psld_cl_launch *launch, size_t items)
{
    return psld_cl_run(launch, 1, (const size_t[]){items}, (const size_t[]){GROUP});
}

/* x is the side of the image, y that of the convolution's result. */
static void add_sizes(psld_cl_launch *launch, const psld_attributes *a, psld_shape x, psld_shape y)
{
    int area = a->conv.kernel[0] * a->conv.kernel[1];
    const int sizes[] = {x.n,
                         x.c,
                         y.c,
                         x.h,
                         x.w,
                         y.h,
                         y.w,
                         a->conv.kernel[0],
                         a->conv.kernel[1],
                         a->conv.stride[0],
                         a->conv.stride[1],
                         a->conv.pad[0],
                         a->conv.pad[1],
                         a->conv.transposed ? area : area * x.c,
                         a->conv.transposed ? area * y.c : area};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) psld_cl_arg_int(launch, sizes[i]);
}

static psld_cl_launch begin_conv(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_operand(&launch, &call->in[0]);
    psld_cl_arg_place(&launch, call->in[1].at);
    psld_cl_arg_operand(&launch, &call->out);
    return launch;
}

static psld_status run_conv(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    psld_cl_launch launch = begin_conv(device, step, call);
    add_sizes(&launch, call->attributes, call->in[0].shape, call->out.shape);
    return run_items(&launch, rows.count * rows.lanes);
}

static psld_status run_conv_dx(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    psld_cl_launch launch = begin_conv(device, step, call);
    add_sizes(&launch, call->attributes, call->out.shape, call->in[0].shape);
    return run_items(&launch, rows.count * rows.lanes);
}

static psld_status run_conv_dw(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_operand(&launch, &call->in[0]);
    psld_cl_arg_operand(&launch, &call->in[1]);
    psld_cl_arg_place(&launch, call->out.at);
    add_sizes(&launch, call->attributes, call->in[0].shape, call->in[1].shape);
    return run_items(&launch, psld_cl_rows_of(&call->out).width);
}

static psld_status run_product(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    const int *turned = call->attributes->product.transposed;
    psld_shape a = call->in[0].shape, b = call->in[1].shape, s = call->out.shape;
    const int sizes[] = {s.n,
                         s.c,
                         turned[0] ? a.n : a.c,
                         turned[0] ? 1 : a.c,
                         turned[0] ? a.c : 1,
                         turned[1] ? 1 : b.c,
                         turned[1] ? b.c : 1};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_place(&launch, call->in[0].at);
    psld_cl_arg_place(&launch, call->in[1].at);
    psld_cl_arg_place(&launch, call->out.at);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) psld_cl_arg_int(&launch, sizes[i]);
    return run_items(&launch, (size_t)s.n * (size_t)s.c);
}

static psld_status run_matrix(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_cl_rows rows = psld_cl_rows_of(&call->out);
    psld_shape s = call->out.shape, other = call->in[1].shape;
    const int sizes[] = {s.n, s.h * s.w, other.h * other.w, other.c, (int)rows.lanes};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[0]);
    psld_cl_arg_operand(&launch, &call->in[0]);
    psld_cl_arg_operand(&launch, &call->in[1]);
    psld_cl_arg_operand(&launch, &call->out);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) psld_cl_arg_int(&launch, sizes[i]);
    psld_cl_arg_float(&launch, call->attributes->scale.by);
    return run_items(&launch, rows.count * rows.lanes);
}

#define RULE(kernel_name, runs)                                                                          \
    {                                                                                                    \
        .kernel = {.name = kernel_name}, .file = "plain.cl", .prepare = psld_cl_prepare_one, .run = runs \
    }

const psld_cl_rule psld_cl_plain_conv = RULE("plain_conv", run_conv),
                   psld_cl_plain_conv_dx = RULE("plain_conv_dx", run_conv_dx),
                   psld_cl_plain_conv_dw = RULE("plain_conv_dw", run_conv_dw),
                   psld_cl_plain_product = RULE("plain_product", run_product),
                   psld_cl_plain_scores = RULE("plain_scores", run_matrix),
                   psld_cl_plain_apply = RULE("plain_apply", run_matrix),
                   psld_cl_plain_apply_t = RULE("plain_apply_t", run_matrix);
