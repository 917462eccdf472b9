/* Speed of the AVX2 kernels on the layers of the 39M CIFAR-10 network (nf 128, ch_mult 1,2,2,2, two blocks, attention
 * at 16): medians of interleaved repetitions, in GFLOP/s. Convolutions count the operations of the direct algorithm,
 * whatever is used.
 *
 *     bench_kernels [NAME]    only lines that contain NAME */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/backend.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/norm.h"
#include "kernels/simd/rows.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/update.h"
#include "kernels/simd/winograd.h"
#include "psld.h"

static const psld_backend *backend;

enum { MAX_RUNS = 400, MAX_CONTENDERS = 8 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *buffer(ptrdiff_t count)
{
    float *data = psld_alloc((size_t)count, sizeof *data);
    if (!data) {
        fprintf(stderr, "%s\n", psld_error_text());
        exit(1);
    }
    for (ptrdiff_t i = 0; i < count; i++) data[i] = (float)(i * 7919 % 1009) * 0x1p-10F - 0.5F;
    return data;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void (*run_fn)(void *layer, int slots);

typedef struct {
    const char *name;
    run_fn run;
    double flops;
} contender;

/* Runs everything with one and with two threads in turns for about a second, and prints medians. Kernels without
 * slots follow the number of threads of the library: with `by_pool` that is changed, which ends and makes threads
 * outside of the time taken. */
static void compete(void *layer, const contender *contenders, int count, int by_pool)
{
    static double times[2 * MAX_CONTENDERS][MAX_RUNS];
    const double end = now() + 1.0;
    int runs = 0;
    for (; runs < MAX_RUNS && (runs < 5 || now() < end); runs++)
        for (int slots = 1; slots <= 2; slots++) {
            if (by_pool) {
                psld_threads_set(slots);
                contenders[0].run(layer, slots);
            }
            for (int i = 0; i < count; i++) {
                const double start = now();
                contenders[i].run(layer, slots);
                times[2 * i + slots - 1][runs] = now() - start;
            }
        }
    psld_threads_set(2);
    for (int i = 0; i < 2 * count; i++) {
        qsort(times[i], (size_t)runs, sizeof(double), ascending);
        const double median = times[i][runs / 2], best = times[i][runs / 10];
        if (i % 2 == 0) printf("  %-8s", contenders[i / 2].name);
        printf(" %8.3f ms %5.0f (%3.0f)", 1e3 * median, 1e-9 * contenders[i / 2].flops / median,
               1e-9 * contenders[i / 2].flops / best);
        if (i % 2) printf("\n");
    }
}

/* ---- Convolutions ------------------------------------------------------------------------------------------------ */

/* There are several copies of U that together exceed the caches: in a network, U of a layer is no longer in the cache
 * when it is needed again. */
enum { COLD_FLOATS = 16 << 20 };

typedef struct {
    simd_conv_shape s, mirror;
    float *x, *y, *w, *u, *mirror_u, *dx, *dw, *scratch;
    ptrdiff_t x_stride, y_stride, copies, turn, u_size;
} conv_layer;

static void wino_forward(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    l->turn = (l->turn + 1) % l->copies;
    simd_winograd(&l->s, (simd_const_pixels){l->x, l->x_stride}, l->u + l->turn * l->u_size, NULL,
                  (simd_pixels){l->y, l->y_stride}, l->scratch);
}

static void wino_forward_hot(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_winograd(&l->s, (simd_const_pixels){l->x, l->x_stride}, l->u, NULL, (simd_pixels){l->y, l->y_stride},
                  l->scratch);
}

static void wino_dx(void *context, int slots)
{
    conv_layer *l = context;
    l->mirror.slots = slots;
    simd_winograd(&l->mirror, (simd_const_pixels){l->y, l->y_stride}, l->mirror_u, NULL,
                  (simd_pixels){l->dx, l->x_stride}, l->scratch);
}

static void wino_dw(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_winograd_dw(&l->s, (simd_const_pixels){l->x, l->x_stride}, (simd_const_pixels){l->y, l->y_stride}, l->dw,
                     l->scratch);
}

static void wino_u(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_winograd_weights(&l->s, 0, l->w, l->u);
}

static void wino_u_mirrored(void *context, int slots)
{
    conv_layer *l = context;
    l->mirror.slots = slots;
    simd_winograd_weights(&l->mirror, 1, l->w, l->mirror_u);
}

static void wino_in_time(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_winograd_in_time(&l->s, (simd_const_pixels){l->x, l->x_stride}, 0, l->w, NULL,
                          (simd_pixels){l->y, l->y_stride}, l->scratch);
}

static void indirect_forward(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_conv(&l->s, (simd_const_pixels){l->x, l->x_stride}, l->w, NULL, (simd_pixels){l->y, l->y_stride}, l->scratch);
}

static void indirect_dx(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_conv_dx(&l->s, (simd_const_pixels){l->y, l->y_stride}, l->mirror_u, NULL, (simd_pixels){l->dx, l->x_stride},
                 l->scratch);
}

static void indirect_dw(void *context, int slots)
{
    conv_layer *l = context;
    l->s.slots = slots;
    simd_conv_dw(&l->s, (simd_const_pixels){l->x, l->x_stride}, (simd_const_pixels){l->y, l->y_stride}, l->dw, 0,
                 l->scratch);
}

static void product_forward(void *context, int slots)
{
    conv_layer *l = context;
    const ptrdiff_t pixels = l->s.height * l->s.width, k = psld_round8(l->s.inputs);
    const simd_gemm gemm = {.rows = l->s.images * pixels,
                            .columns = l->s.outputs,
                            .k = k,
                            .pixels = pixels,
                            .a = l->x,
                            .lda = l->x_stride,
                            .b = l->w,
                            .panel_stride = 16 * psld_round16(l->s.inputs),
                            .c = l->y,
                            .ldc = l->y_stride,
                            .slots = slots};
    simd_gemm_run(&gemm);
}

static conv_layer open_layer(ptrdiff_t n, ptrdiff_t ci, ptrdiff_t co, ptrdiff_t size, ptrdiff_t kernel, int winograd)
{
    conv_layer l = {.s = {n, size, size, ci, size, size, co, kernel, kernel, 1, 1, kernel / 2, kernel / 2, 2, 0}};
    l.mirror = simd_conv_mirror(&l.s);
    l.x_stride = psld_round8(ci);
    l.y_stride = psld_round8(co);
    l.x = buffer(n * size * size * l.x_stride);
    l.dx = buffer(n * size * size * l.x_stride);
    l.y = buffer(n * size * size * l.y_stride);
    l.w = buffer(simd_conv_weights(&l.s));
    l.dw = buffer(simd_conv_weights(&l.s));
    ptrdiff_t scratch = simd_conv_scratch(&l.s), mirror = simd_conv_weights(&l.s);
    l.copies = 1;
    if (winograd) {
        l.u_size = simd_winograd_weights_size(&l.s);
        l.copies = COLD_FLOATS / l.u_size + 1;
        mirror = simd_winograd_weights_size(&l.mirror);
        for (l.s.slots = l.mirror.slots = 1; l.s.slots <= 2; l.s.slots++, l.mirror.slots++) {
            scratch = psld_max(scratch, simd_winograd_scratch(&l.s));
            scratch = psld_max(scratch, simd_winograd_scratch(&l.mirror));
            scratch = psld_max(scratch, simd_winograd_dw_scratch(&l.s));
            scratch = psld_max(scratch, simd_winograd_in_time_scratch(&l.s));
        }
    }
    l.u = buffer(l.copies * l.u_size);
    l.mirror_u = buffer(mirror);
    l.scratch = buffer(scratch);
    return l;
}

static void close_layer(conv_layer *l)
{
    psld_release(l->x), psld_release(l->dx), psld_release(l->y), psld_release(l->w), psld_release(l->dw);
    psld_release(l->u), psld_release(l->mirror_u), psld_release(l->scratch);
}

static const char *wanted;

static int title(const char *text)
{
    if (wanted && !strstr(text, wanted)) return 0;
    printf("%s\n", text);
    fflush(stdout);
    return 1;
}

static void bench_conv(ptrdiff_t n, ptrdiff_t ci, ptrdiff_t co, ptrdiff_t size, ptrdiff_t kernel, int winograd)
{
    char text[100];
    snprintf(text, sizeof text, "B=%td %tdx%td %td->%td@%td", n, kernel, kernel, ci, co, size);
    if (!title(text)) return;
    conv_layer l = open_layer(n, ci, co, size, kernel, winograd);
    const double flops = 2.0 * (double)(n * size * size * ci * co * kernel * kernel), u = 18.0 * (double)(ci * co);
    const contender by_winograd[] = {{"y", wino_forward, flops},
                                     {"y hot U", wino_forward_hot, flops},
                                     {"dx", wino_dx, flops},
                                     {"dw", wino_dw, flops},
                                     {"U", wino_u, u},
                                     {"U mirror", wino_u_mirrored, u},
                                     {"in time", wino_in_time, flops}};
    const contender by_pointers[] = {{"y", indirect_forward, flops},
                                     {"dx", indirect_dx, flops},
                                     {"dw", indirect_dw, flops},
                                     {"y gemm", product_forward, flops}};
    if (winograd)
        compete(&l, by_winograd, 7, 0);
    else
        compete(&l, by_pointers, kernel == 1 ? 4 : 3, 0);
    close_layer(&l);
}

static void bench_convolutions(ptrdiff_t n)
{
    static const ptrdiff_t wide[][3] = {{128, 128, 32}, {256, 128, 32}, {384, 128, 32}, {256, 256, 32},
                                        {128, 256, 16}, {256, 256, 16}, {384, 256, 16}, {512, 256, 16},
                                        {256, 256, 8},  {512, 256, 8},  {256, 256, 4},  {512, 256, 4}};
    static const ptrdiff_t narrow[][3] = {{256, 128, 32}, {384, 128, 32}, {256, 256, 16}, {256, 768, 16},
                                          {512, 256, 16}, {512, 256, 8},  {512, 256, 4}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) bench_conv(n, wide[i][0], wide[i][1], wide[i][2], 3, 1);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        bench_conv(n, narrow[i][0], narrow[i][1], narrow[i][2], 1, 0);
    bench_conv(n, 6, 128, 32, 3, 0);
    bench_conv(n, 128, 6, 32, 3, 0);
}

/* ---- Everything else --------------------------------------------------------------------------------------------- */

/* For these the "flops" are bytes that have to move at least: the columns are GB/s. */
typedef struct {
    simd_norm norm;
    float *x, *y, *dy, *tables, *parameters, *weights, *scratch;
    ptrdiff_t count;
    double *sums;
} rest_layer;

static float *table(const rest_layer *l, int which)
{
    return l->tables + which * l->norm.images * l->norm.stride;
}

static void norm_forward(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    simd_moments(&l->norm, l->x, l->norm.stride, table(l, 0), table(l, 1));
    simd_norm_tables(&l->norm, table(l, 0), table(l, 1), l->parameters, l->parameters, table(l, 2), table(l, 3),
                     table(l, 4), table(l, 5));
    const simd_fill fill = {table(l, 2), table(l, 3), l->norm.stride, 1};
    simd_affine(&fill, l->norm.images, l->norm.pixels, l->norm.channels, l->x, l->norm.stride, l->y, l->norm.stride);
}

static void norm_moments(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    simd_moments(&l->norm, l->x, l->norm.stride, table(l, 0), table(l, 1));
}

static void norm_backward(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    const ptrdiff_t stride = l->norm.stride;
    const simd_norm_gradient g = {.x = l->x,
                                  .dy = l->dy,
                                  .x_stride = stride,
                                  .dy_stride = stride,
                                  .gamma = l->parameters,
                                  .scale = table(l, 2),
                                  .shift = table(l, 3),
                                  .group_mean = table(l, 4),
                                  .group_rstd = table(l, 5)};
    float *sums = l->scratch + simd_norm_dx_scratch(&l->norm);
    simd_norm_sums(&l->norm, &g, sums);
    simd_norm_dx(&l->norm, &g, sums, l->y, stride, l->scratch);
}

static void add_pixels(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    simd_add(l->norm.images * l->norm.pixels, l->norm.channels, l->x, l->norm.stride, 1, l->dy, l->norm.stride, 1, l->y,
             l->norm.stride);
}

static void bench_norm(ptrdiff_t n, ptrdiff_t channels, ptrdiff_t size)
{
    char text[100];
    snprintf(text, sizeof text, "B=%td GroupNorm+SiLU %td@%td, GB/s", n, channels, size);
    if (!title(text)) return;
    rest_layer l = {.norm = {n, size * size, channels, 32, 1e-6F, channels, 1}};
    l.count = n * size * size * channels;
    l.x = buffer(l.count), l.y = buffer(l.count), l.dy = buffer(l.count);
    l.tables = buffer(6 * n * channels), l.parameters = buffer(channels);
    l.scratch = buffer(simd_norm_dx_scratch(&l.norm) + 2 * l.norm.images * l.norm.stride);
    const double bytes = 4.0 * (double)l.count;
    const contender contenders[] = {{"y", norm_forward, 3 * bytes},
                                    {"moments", norm_moments, bytes},
                                    {"dx", norm_backward, 6 * bytes},
                                    {"add", add_pixels, 3 * bytes}};
    compete(&l, contenders, 4, 1);
    psld_release(l.x), psld_release(l.y), psld_release(l.dy), psld_release(l.tables), psld_release(l.parameters);
    psld_release(l.scratch);
}

/* The three operations of attention in plans, run as plans do. */
typedef struct {
    psld_attributes by[3];
    psld_call call[3];
    float *qkv, *weights, *out, *scratch;
} attention_layer;

static const psld_op attention_ops[3] = {PSLD_OP_SCORES, PSLD_OP_SOFTMAX, PSLD_OP_APPLY};

typedef struct {
    const psld_op_kernel *kernel;
    const psld_call *call;
} operation;

static void run_operation(void *context, size_t begin, size_t end)
{
    const operation *o = context;
    o->kernel->run(o->call, begin, end);
}

static void attention_forward(void *context, int slots)
{
    (void)slots;
    attention_layer *l = context;
    for (int i = 0; i < 3; i++) {
        operation o = {&backend->kernel[attention_ops[i]], &l->call[i]};
        psld_parallel(o.kernel->tasks(o.call), 1, run_operation, &o);
    }
}

static void bench_attention(int n, int side, int width)
{
    char text[100];
    const int length = side * side;
    snprintf(text, sizeof text, "B=%d attention %d x %d", n, length, width);
    if (!title(text)) return;
    const ptrdiff_t pixels = (ptrdiff_t)n * length;
    const size_t stride = 3 * (size_t)width;
    attention_layer l = {.by = {{.scale.by = 1 / sqrt(width)}, {.scale.by = 1}, {.scale.by = 1}}};
    l.qkv = buffer(pixels * 3 * width), l.weights = buffer(pixels * length), l.out = buffer(pixels * width);
    const psld_shape narrow = {n, width, side, side}, wide = {n, length, side, side};
    const psld_operand q = {l.qkv, narrow, stride}, k = {l.qkv + width, narrow, stride};
    const psld_operand v = {l.qkv + 2 * width, narrow, stride}, p = {l.weights, wide, (size_t)length};
    l.call[0] = (psld_call){.inputs = 2, .in = {q, k}, .out = p};
    l.call[1] = (psld_call){.inputs = 1, .in = {p}, .out = p};
    l.call[2] = (psld_call){.inputs = 2, .in = {p, v}, .out = {l.out, narrow, (size_t)width}};
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        const psld_op_kernel *kernel = &backend->kernel[attention_ops[i]];
        l.call[i].attributes = &l.by[i];
        const size_t bytes = kernel->scratch ? kernel->scratch(&l.call[i]) : 0;
        most = bytes > most ? bytes : most;
    }
    l.scratch = buffer((ptrdiff_t)(most / sizeof(float)));
    for (int i = 0; i < 3; i++) l.call[i].scratch = l.scratch;
    const contender contenders[] = {{"y", attention_forward, 4.0 * (double)pixels * length * width}};
    compete(&l, contenders, 1, 1);
    psld_release(l.qkv), psld_release(l.weights), psld_release(l.out), psld_release(l.scratch);
}

static void adam_step(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    const psld_adam adam = {2e-4, 0.9, 0.999, 1e-8, 0, 1, 0.9999, 1, 10};
    simd_adam(&adam, (size_t)l->count, l->x, l->y, l->dy, l->tables, l->weights);
}

static void square_norm(void *context, int slots)
{
    (void)slots;
    rest_layer *l = context;
    simd_sum_squares((size_t)l->count, l->x, l->sums);
}

static void bench_update(void)
{
    if (!title("update of 39.4 million parameters, GB/s")) return;
    rest_layer l = {.count = 39400000};
    l.x = buffer(l.count), l.y = buffer(l.count), l.dy = buffer(l.count), l.tables = buffer(l.count);
    l.weights = buffer(l.count);
    for (ptrdiff_t i = 0; i < l.count; i++) l.tables[i] = l.tables[i] * l.tables[i];
    l.sums = psld_alloc((size_t)simd_square_chunks((size_t)l.count), sizeof(double));
    const double bytes = 4.0 * (double)l.count;
    const contender contenders[] = {{"adam", adam_step, 9 * bytes}, {"norm", square_norm, bytes}};
    compete(&l, contenders, 2, 1);
    psld_release(l.x), psld_release(l.y), psld_release(l.dy), psld_release(l.tables), psld_release(l.weights);
    psld_release(l.sums);
}

static void empty_task(void *context, int slot, ptrdiff_t task)
{
    (void)context, (void)slot, (void)task;
}

static void empty_tasks(void *context, int slots)
{
    (void)context;
    for (int i = 0; i < 1000; i++) psld_parallel_tasks(slots, 8, empty_task, NULL);
}

static void bench_pool(void)
{
    if (!title("a thousand calls of the pool, GFLOP/s = thousand calls a second")) return;
    const contender contenders[] = {{"pool", empty_tasks, 1e9}};
    compete(NULL, contenders, 1, 0);
}

int main(int argc, char **argv)
{
    if (psld_backend_find(SIMD_QUOTE(SIMD_SET), NULL, &backend) != PSLD_OK) {
        printf("%s\n", psld_error_text());
        return 0;
    }
    wanted = argc > 1 ? argv[1] : NULL;
    psld_threads_set(2);
    printf("%-10s one thread: median ms, GFLOP/s (best tenth); two threads likewise\n", "");
    for (ptrdiff_t n = 1; n <= 8; n += 7) {
        bench_convolutions(n);
        bench_norm(n, 128, 32);
        bench_norm(n, 384, 32);
        bench_norm(n, 256, 16);
        bench_norm(n, 256, 8);
        bench_attention((int)n, 16, 256);
    }
    bench_update();
    bench_pool();
    return 0;
}
