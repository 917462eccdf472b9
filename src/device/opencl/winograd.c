/* Winograd's convolution: a transform of the input, 36 products, a transform back. It computes a quarter of the products
 * of the definition and moves several times as much memory, so it is for many channels. Images are taken some at a time,
 * to bound the memory between the transforms. */
#include "device/opencl/winograd.h"

enum { EDGE_OUT = 4, POINTS = 36, LEAST_CHANNELS = 64, GROUP = 64 };

/* Bytes between the transforms, about. */
static const size_t most_scratch = (size_t)64 << 20;

enum { PRODUCT = 0, WEIGHTS = 1, INPUT = 2, OUTPUT = 3 }; /* slots of a step */

static int tiles_along(int size)
{
    return (size + EDGE_OUT - 1) / EDGE_OUT;
}

int psld_cl_winograd_wins(const psld_attributes *a, int in_channels, psld_shape out)
{
    const int *kernel = a->conv.kernel, *stride = a->conv.stride;
    if (kernel[0] != 3 || kernel[1] != 3 || stride[0] != 1 || stride[1] != 1) return 0;
    if (in_channels < LEAST_CHANNELS || out.c < LEAST_CHANNELS) return 0;
    /* at most half of the definition's products, the parts of tiles outside counted */
    return 8 * tiles_along(out.h) * tiles_along(out.w) <= out.h * out.w;
}

size_t psld_cl_winograd_packed(int in_channels, psld_shape out)
{
    return POINTS * psld_lanes(in_channels) * psld_lanes(out.c) * sizeof(float);
}

static size_t tiles_of_image(psld_shape out)
{
    return (size_t)tiles_along(out.h) * (size_t)tiles_along(out.w);
}

static size_t image_bytes(int in_channels, psld_shape out)
{
    return POINTS * tiles_of_image(out) * (psld_lanes(in_channels) + psld_lanes(out.c)) * sizeof(float);
}

/* Images that are computed at a time. */
static int images_at_once(int in_channels, psld_shape out)
{
    size_t fit = most_scratch / image_bytes(in_channels, out);
    if (fit < 1) fit = 1;
    return fit < (size_t)out.n ? (int)fit : out.n;
}

size_t psld_cl_winograd_scratch(int in_channels, psld_shape out)
{
    return (size_t)images_at_once(in_channels, out) * image_bytes(in_channels, out);
}

/* The products for so many images. */
static void describe(const psld_device_call *call, int images, psld_cl_product *s, psld_cl_factors *f)
{
    int in = psld_cl_lanes(call->in[0].shape.c), out = psld_cl_lanes(call->out.shape.c);
    int64_t tiles = (int64_t)tiles_of_image(call->out.shape) * images;
    *f = (psld_cl_factors){.a = call->scratch.memory, .b = call->packed.memory, .out = call->scratch.memory};
    *s = (psld_cl_product){.a = (int64_t)call->scratch.offset,
                           .b = (int64_t)call->packed.offset,
                           .out = (int64_t)call->scratch.offset + POINTS * tiles * in,
                           .a_batch = tiles * in,
                           .b_batch = (int64_t)in * out,
                           .out_batch = tiles * out,
                           .m = (int32_t)tiles,
                           .n = out,
                           .k = in,
                           .columns = call->out.shape.c,
                           .b_rows = in,
                           .lda = in,
                           .ldb = out,
                           .ldc = out};
    s->out_height = 1; /* nothing is divided by nothing */
    s->out_width = 1;
}

psld_status psld_cl_winograd_prepare(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    static const char *const names[] = {"winograd_weights", "winograd_input", "winograd_output"};
    const psld_cl_product_kind kind = {.a = PSLD_CL_ROWS, .b = PSLD_CL_PANEL};
    char options[128];
    psld_cl_product s;
    psld_cl_factors f;
    psld_cl_half_options(call, options, sizeof options);
    for (int i = 0; i < 3; i++)
        PSLD_TRY(psld_cl_kernel(device, "winograd.cl", names[i], options, &step->kernel[WEIGHTS + i]));
    describe(call, images_at_once(call->in[0].shape.c, call->out.shape), &s, &f);
    return psld_cl_product_prepare(device, step, PRODUCT, &kind, &s, POINTS, &f);
}

psld_status psld_cl_winograd_pack(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call,
                                  int sum_step, int result_step, int flip)
{
    int sums = call->in[0].shape.c, results = call->out.shape.c;
    const int numbers[] = {sums, psld_cl_lanes(sums), results, psld_cl_lanes(results), sum_step, result_step, flip};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[WEIGHTS]);
    psld_cl_arg_place(&launch, call->in[1].at);
    psld_cl_arg_place(&launch, call->packed);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    return psld_cl_run(&launch, 2, (const size_t[]){psld_lanes(results), psld_lanes(sums)}, (const size_t[]){GROUP, 1});
}

static psld_status run_input(psld_cl_device *device, const psld_cl_step *step, const psld_device_call *call,
                             const int pad[2], int first, int tiles)
{
    const psld_device_operand *x = &call->in[0];
    psld_shape out = call->out.shape;
    const int numbers[] = {
        first,  tiles, tiles_along(out.h), tiles_along(out.w), psld_cl_lanes(x->shape.c), x->shape.h, x->shape.w,
        pad[0], pad[1]};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[INPUT]);
    psld_cl_arg_operand(&launch, x);
    psld_cl_arg_place(&launch, call->scratch);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    return psld_cl_run(&launch, 2, (const size_t[]){psld_lanes(x->shape.c), (size_t)tiles}, (const size_t[]){GROUP, 1});
}

static psld_status run_output(psld_cl_device *device, const psld_cl_step *step, const psld_device_call *call,
                              psld_place products, int first, int tiles)
{
    const psld_attributes *a = call->attributes;
    psld_shape out = call->out.shape;
    const int numbers[] = {first, tiles, tiles_along(out.h), tiles_along(out.w), out.c, psld_cl_lanes(out.c),
                           out.h, out.w, (int)a->conv.finish};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[OUTPUT]);
    psld_cl_arg_place(&launch, products);
    psld_cl_arg_place(&launch, call->in[2].at);
    psld_cl_arg_operand(&launch, &call->in[3]);
    psld_cl_arg_operand(&launch, &call->in[4]);
    psld_cl_arg_operand(&launch, &call->out);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) psld_cl_arg_int(&launch, numbers[i]);
    psld_cl_arg_float(&launch, a->conv.by);
    return psld_cl_run(&launch, 2, (const size_t[]){psld_lanes(out.c), (size_t)tiles}, (const size_t[]){GROUP, 1});
}

psld_status psld_cl_winograd_run(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call,
                                 const int pad[2])
{
    psld_shape out = call->out.shape;
    int most = images_at_once(call->in[0].shape.c, out);
    for (int first = 0; first < out.n; first += most) {
        int images = out.n - first < most ? out.n - first : most;
        psld_cl_product s;
        psld_cl_factors f;
        describe(call, images, &s, &f);
        PSLD_TRY(run_input(device, step, call, pad, first, s.m));
        PSLD_TRY(psld_cl_product_run(device, step, PRODUCT, &s, POINTS, &f));
        PSLD_TRY(run_output(device, step, call, (psld_place){call->scratch.memory, (size_t)s.out}, first, s.m));
    }
    return PSLD_OK;
}
