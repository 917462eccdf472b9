/* Every operation against its definition: see op_check.h for what is checked of each case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "nn/ops.h"
#include "op_check.h"
#include "opencl_test.h"

static const int some_channels[] = {1, 3, 6, 17};
static const int some_sizes[][2] = {{1, 1}, {2, 3}, {5, 7}};

enum { CHANNELS = 4, SIZES = 3 };

/* Element (n, c, y, x) of an array [n][c][h][w]; with channels `c` and so on of the shape. */
static size_t at(psld_shape s, int n, int c, int y, int x)
{
    return (((size_t)n * (size_t)s.c + (size_t)c) * (size_t)s.h + (size_t)y) * (size_t)s.w + (size_t)x;
}

static psld_shape batched(int c, int h, int w)
{
    return (psld_shape){0, c, h, w};
}

static size_t total(psld_shape s, int n)
{
    return psld_shape_count(s) * (size_t)(s.n > 0 ? 1 : n);
}

/* ---- Convolution ------------------------------------------------------------------------------------------------- */

typedef struct geometry {
    int ci, co, h, w, kernel[2], stride[2], pad[4], transposed;
} geometry;

static const geometry geometries[] = {
    {1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, 0},   {3, 6, 5, 7, {3, 3}, {1, 1}, {1, 1, 1, 1}, 0},
    {17, 3, 3, 2, {3, 3}, {1, 1}, {1, 1, 1, 1}, 0},  {6, 17, 7, 5, {3, 3}, {2, 2}, {0, 0, 1, 1}, 0},
    {3, 1, 5, 5, {5, 5}, {1, 1}, {2, 2, 2, 2}, 0},   {1, 3, 7, 7, {1, 7}, {1, 1}, {0, 3, 0, 3}, 0},
    {6, 3, 7, 3, {7, 1}, {1, 1}, {3, 0, 3, 0}, 0},   {3, 6, 7, 5, {2, 3}, {3, 2}, {1, 0, 2, 3}, 0},
    {17, 17, 2, 3, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1}, {6, 3, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, 0},
    {3, 6, 5, 7, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1},   {6, 6, 2, 2, {3, 3}, {1, 1}, {2, 2, 2, 2}, 0},
    {3, 3, 5, 5, {1, 1}, {2, 2}, {0, 0, 0, 0}, 0},   {1, 17, 3, 5, {3, 3}, {1, 1}, {0, 0, 0, 0}, 0},
    {3, 6, 7, 7, {3, 3}, {2, 2}, {0, 0, 0, 0}, 0}, /* a stride that leaves rows unused */
};

/* Calls for every product of the convolution with the places of its three factors. */
static void each_product(const op_case *c, int n, psld_shape x, psld_shape y, psld_shape w,
                         void (*add)(void *, size_t, size_t, size_t), void *user)
{
    const psld_attributes *a = &c->a;
    for (int i = 0; i < n * y.c * y.h * y.w; i++) {
        int ox = i % y.w, oy = i / y.w % y.h, co = i / y.w / y.h % y.c, sample = i / y.w / y.h / y.c;
        for (int j = 0; j < x.c * w.h * w.w; j++) {
            int kx = j % w.w, ky = j / w.w % w.h, ci = j / w.w / w.h;
            int iy = oy * a->conv.stride[0] + ky - a->conv.pad[0], ix = ox * a->conv.stride[1] + kx - a->conv.pad[1];
            if (iy < 0 || iy >= x.h || ix < 0 || ix >= x.w) continue;
            size_t weight = a->conv.transposed ? at(w, ci, co, ky, kx) : at(w, co, ci, ky, kx);
            add(user, at(x, sample, ci, iy, ix), at(y, sample, co, oy, ox), weight);
        }
    }
}

typedef struct factors {
    double *x, *y, *w;
} factors;

static void add_to_y(void *user, size_t x, size_t y, size_t w)
{
    factors *f = user;
    f->y[y] += f->x[x] * f->w[w];
}

static void add_to_x(void *user, size_t x, size_t y, size_t w)
{
    factors *f = user;
    f->x[x] += f->y[y] * f->w[w];
}

static void add_to_w(void *user, size_t x, size_t y, size_t w)
{
    factors *f = user;
    f->w[w] += f->y[y] * f->x[x];
}

static void define_conv(const op_case *c, int n, double *const *in, psld_shape out_shape, double *out)
{
    factors f = {in[0], out, in[1]};
    each_product(c, n, c->in[0], out_shape, c->in[1], add_to_y, &f);
}

static void define_conv_dx(const op_case *c, int n, double *const *in, psld_shape out_shape, double *out)
{
    factors f = {out, in[0], in[1]};
    each_product(c, n, out_shape, c->in[0], c->in[1], add_to_x, &f);
}

static void define_conv_dw(const op_case *c, int n, double *const *in, psld_shape out_shape, double *out)
{
    factors f = {in[0], in[1], out};
    each_product(c, n, c->in[0], c->in[1], out_shape, add_to_w, &f);
}

static psld_shape output_shape(const geometry *g)
{
    return batched(g->co, (g->h + g->pad[0] + g->pad[2] - g->kernel[0]) / g->stride[0] + 1,
                   (g->w + g->pad[1] + g->pad[3] - g->kernel[1]) / g->stride[1] + 1);
}

static void set_geometry(op_case *c, const geometry *g)
{
    memcpy(c->a.conv.kernel, g->kernel, sizeof g->kernel);
    memcpy(c->a.conv.stride, g->stride, sizeof g->stride);
    memcpy(c->a.conv.pad, g->pad, sizeof g->pad);
    c->a.conv.transposed = g->transposed;
}

static void convolutions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
        const geometry *g = &geometries[i];
        psld_shape x = batched(g->ci, g->h, g->w), y = output_shape(g), w = {g->co, g->ci, g->kernel[0], g->kernel[1]};
        if (g->transposed) w = (psld_shape){g->ci, g->co, g->kernel[0], g->kernel[1]};
        op_case c = {.op = PSLD_OP_CONV, .inputs = 2, .in = {x, w}, .linear = 3, .define = define_conv};
        set_geometry(&c, g);
        snprintf(c.name, sizeof c.name, "conv %zu", i);
        check_op(&c);
        snprintf(c.name, sizeof c.name, "conv_dx %zu", i);
        c.op = PSLD_OP_CONV_DX, c.in[0] = y, c.hint = x, c.define = define_conv_dx;
        check_op(&c);
        snprintf(c.name, sizeof c.name, "conv_dw %zu", i);
        c.op = PSLD_OP_CONV_DW, c.in[0] = x, c.in[1] = y, c.define = define_conv_dw;
        check_op(&c);
    }
}

/* A convolution and all that can be fused into it. In float it is one step, in double each is its own. */
static psld_id build_finished(psld_graph *graph, const op_case *c, const psld_id *in)
{
    psld_id y = c->op == PSLD_OP_CONV ? psld_nn_conv(graph, in[0], in[1], c->a.conv.stride, c->a.conv.pad, 0)
                                      : psld_graph_add(graph, PSLD_OP_CONV_DX, 2, in, &c->a, &c->hint);
    return psld_nn_sum(graph, in[4], psld_nn_bias(graph, psld_nn_bias(graph, y, in[2]), in[3]), 0.7);
}

static op_case finished_case(const geometry *g)
{
    op_case c = {.op = PSLD_OP_CONV, .inputs = 5, .build = build_finished};
    c.in[0] = batched(g->ci, g->h, g->w), c.in[1] = (psld_shape){g->co, g->ci, g->kernel[0], g->kernel[1]};
    c.in[2] = (psld_shape){1, g->co, 1, 1}, c.in[3] = batched(g->co, 1, 1), c.in[4] = output_shape(g);
    set_geometry(&c, g);
    return c;
}

static void finished_convolutions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
        const geometry *g = &geometries[i];
        if (g->transposed) continue;
        op_case c = finished_case(g);
        psld_shape x = c.in[0], y = c.in[4];
        snprintf(c.name, sizeof c.name, "finished conv %zu", i);
        check_op(&c);
        c.op = PSLD_OP_CONV_DX, c.in[0] = y, c.hint = x;
        c.in[2] = (psld_shape){1, g->ci, 1, 1}, c.in[3] = batched(g->ci, 1, 1), c.in[4] = x;
        snprintf(c.name, sizeof c.name, "finished conv_dx %zu", i);
        check_op(&c);
    }
}

/* With ReLU behind it, which fuses where nobody asks for a gradient. */
static psld_id build_rectified(psld_graph *graph, const op_case *c, const psld_id *in)
{
    return psld_nn_activate(graph, build_finished(graph, c, in), PSLD_RELU);
}

static void rectified_convolutions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
        const geometry *g = &geometries[i];
        if (g->transposed) continue;
        op_case c = finished_case(g);
        for (int j = 0; j < 5; j++) c.kind[j] = FIXED_NUMBERS;
        c.build = build_rectified;
        snprintf(c.name, sizeof c.name, "rectified conv %zu", i);
        check_op(&c);
    }
    /* by Winograd: that of a CPU, that of OpenCL devices */
    static const geometry wide[] = {{16, 24, 9, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, 0},
                                    {64, 72, 7, 8, {3, 3}, {1, 1}, {1, 1, 1, 1}, 0}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        op_case c = finished_case(&wide[i]);
        c.build = build_rectified;
        for (int j = 0; j < 5; j++) c.kind[j] = FIXED_NUMBERS;
        snprintf(c.name, sizeof c.name, "rectified conv of %d channels", wide[i].ci);
        check_op(&c);
    }
}

/* ---- Matrices ---------------------------------------------------------------------------------------------------- */

static void define_product(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    const int *turned = c->a.product.transposed;
    int length = turned[0] ? c->in[0].n : c->in[0].c;
    (void)n;
    for (int i = 0; i < s.n * s.c * length; i++) {
        int k = i % length, column = i / length % s.c, row = i / length / s.c;
        double a = in[0][turned[0] ? k * s.n + row : row * length + k];
        double b = in[1][turned[1] ? column * length + k : k * s.c + column];
        out[row * s.c + column] += a * b;
    }
}

static void products(void **state)
{
    static const int sizes[][3] = {{1, 1, 1}, {1, 48, 16}, {17, 3, 6}, {5, 16, 32}, {16, 9, 48}, {32, 32, 32}};
    (void)state;
    for (int i = 0; i < 6 * 4; i++) {
        const int *size = sizes[i / 4], turn_a = i & 1, turn_b = i >> 1 & 1;
        op_case c = {.op = PSLD_OP_PRODUCT, .inputs = 2, .linear = 3, .define = define_product};
        c.a.product.transposed[0] = turn_a, c.a.product.transposed[1] = turn_b;
        c.in[0] = (psld_shape){turn_a ? size[1] : size[0], turn_a ? size[0] : size[1], 1, 1};
        c.in[1] = (psld_shape){turn_b ? size[2] : size[1], turn_b ? size[1] : size[2], 1, 1};
        snprintf(c.name, sizeof c.name, "product of %d x %d x %d%s%s", size[0], size[1], size[2],
                 turn_a ? ", the first transposed" : "", turn_b ? ", the second transposed" : "");
        check_op(&c);
    }
}

/* ---- Vectors added and summed ------------------------------------------------------------------------------------ */

static void define_bias(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(s, n); i++) {
        size_t plane = i / (size_t)(s.h * s.w);
        out[i] = in[0][i] + in[1][c->in[1].n ? plane % (size_t)s.c : plane];
    }
}

static void define_channel_sum(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(c->in[0], n); i++) {
        size_t plane = i / (size_t)(c->in[0].h * c->in[0].w);
        out[s.n ? plane % (size_t)s.c : plane] += in[0][i];
    }
}

static void define_broadcast(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(s, n); i++) {
        size_t plane = i / (size_t)(s.h * s.w);
        out[i] = in[0][c->in[0].n ? plane % (size_t)s.c : plane];
    }
}

static void vectors(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES * 2; i++) {
        int channels = some_channels[i / 2 / SIZES], dense = i % 2;
        const int *size = some_sizes[i / 2 % SIZES];
        psld_shape x = batched(channels, size[0], size[1]), b = {dense, channels, 1, 1};
        op_case c = {.op = PSLD_OP_BIAS, .inputs = 2, .in = {x, b}, .define = define_bias};
        snprintf(c.name, sizeof c.name, "bias %d x %d x %d%s", channels, size[0], size[1], dense ? " dense" : "");
        check_op(&c);
        c = (op_case){.op = PSLD_OP_CHANNEL_SUM, .inputs = 1, .in = {x}, .hint = b, .linear = 1};
        c.define = define_channel_sum;
        snprintf(c.name, sizeof c.name, "channel_sum %d x %d x %d", channels, size[0], size[1]);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_BROADCAST, .inputs = 1, .in = {b}, .hint = x, .linear = 1};
        c.define = define_broadcast;
        snprintf(c.name, sizeof c.name, "broadcast %d x %d x %d", channels, size[0], size[1]);
        check_op(&c);
    }
}

/* ---- Activations and sums ---------------------------------------------------------------------------------------- */

static double activation_value(psld_activation kind, double x)
{
    if (kind == PSLD_SILU) return x * 0.5 * (1 + tanh(x / 2));
    if (kind == PSLD_RELU) return fmax(x, 0);
    if (kind == PSLD_ELU) return x >= 0 ? x : exp(x) - 1;
    if (kind == PSLD_LEAKY_RELU) return fmax(x, 0) + 0.2 * fmin(x, 0);
    return x;
}

static void define_activate(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(s, n); i++) out[i] = activation_value(c->a.activation.kind, in[0][i]);
}

static void define_sum(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(s, n); i++) out[i] = c->a.scale.by * (c->inputs == 2 ? in[0][i] + in[1][i] : in[0][i]);
}

static void define_fill(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    (void)in;
    for (size_t i = 0; i < total(s, n); i++) out[i] = c->a.fill.value;
}

static void elementwise(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES * 2; i++) {
        const int *size = some_sizes[i / 2 % SIZES];
        psld_shape s = {i % 2 ? 2 : 0, some_channels[i / 2 / SIZES], size[0], size[1]};
        op_case c = {.inputs = 1, .in = {s, s}, .define = define_activate};
        for (psld_activation kind = PSLD_LINEAR; kind <= PSLD_LEAKY_RELU; kind++) {
            c.op = PSLD_OP_ACTIVATE, c.a.activation.kind = kind;
            snprintf(c.name, sizeof c.name, "activation %d of [%d][%d][%d][%d]", (int)kind, s.n, s.c, s.h, s.w);
            check_op(&c);
        }
        memset(&c.a, 0, sizeof c.a);
        c.op = PSLD_OP_SCALE, c.a.scale.by = -0.75, c.linear = 1, c.define = define_sum;
        snprintf(c.name, sizeof c.name, "scale of [%d][%d][%d][%d]", s.n, s.c, s.h, s.w);
        check_op(&c);
        c.op = PSLD_OP_SUM, c.inputs = 2, c.linear = 0;
        snprintf(c.name, sizeof c.name, "sum of [%d][%d][%d][%d]", s.n, s.c, s.h, s.w);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_FILL, .a = {.fill = {1.5}}, .hint = s, .define = define_fill};
        snprintf(c.name, sizeof c.name, "fill of [%d][%d][%d][%d]", s.n, s.c, s.h, s.w);
        check_op(&c);
    }
}

/* The same address says the same for a sample, wherever it stands in a batch. */
static void define_dropout(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (size_t i = 0; i < total(s, n); i++) {
        size_t plane = (size_t)(s.h * s.w), size = psld_shape_count(s), element = i % size;
        uint64_t number = element % plane * (size_t)s.c + element / plane;
        uint16_t u;
        psld_random_short(3, PSLD_FOR_DROPOUT, 100 + i / size, 5 << 16 | 2, number, 1, &u);
        out[i] = !c->training                            ? in[0][i]
                 : u < lround(65536 * c->a.dropout.rate) ? 0
                                                         : in[0][i] / (1 - c->a.dropout.rate);
    }
}

static void dropout(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES * 2; i++) {
        const int *size = some_sizes[i / 2 % SIZES];
        psld_shape s = batched(some_channels[i / 2 / SIZES] * (i / 2 == 11 ? 5 : 1), size[0], size[1]);
        op_case c = {.op = PSLD_OP_DROPOUT, .inputs = 1, .in = {s}, .training = i % 2, .linear = 1};
        c.define = define_dropout;
        c.a.dropout.rate = 0.3;
        c.a.dropout.number = 2;
        snprintf(c.name, sizeof c.name, "dropout of %d x %d x %d", s.c, s.h, s.w);
        check_op(&c);
    }
}

/* ---- Channels and shapes ----------------------------------------------------------------------------------------- */

static void define_concat(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (int i = 0; i < (int)total(s, n); i++) {
        int sample = i / (s.c * s.h * s.w), pixel = i % (s.h * s.w), channel = i / (s.h * s.w) % s.c, part = 0;
        while (channel >= c->in[part].c) channel -= c->in[part++].c;
        out[i] = in[part][(sample * c->in[part].c + channel) * s.h * s.w + pixel];
    }
}

static void define_slice(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    for (int sample = 0; sample < (s.n ? s.n : n); sample++)
        for (int i = 0; i < s.c * s.h * s.w; i++)
            out[sample * s.c * s.h * s.w + i] = in[0][(sample * c->in[0].c + c->a.slice.first) * s.h * s.w + i];
}

static void define_slice_dx(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int part = c->in[0].c * s.h * s.w;
    for (int sample = 0; sample < (s.n ? s.n : n); sample++)
        for (int i = 0; i < part; i++)
            out[(sample * s.c + c->a.slice.first) * s.h * s.w + i] = in[0][sample * part + i];
}

static void define_reshape(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    (void)c;
    memcpy(out, in[0], total(s, n) * sizeof *out);
}

static void channels(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES; i++) {
        const int *size = some_sizes[i % SIZES];
        int first = some_channels[i / SIZES], second = some_channels[(i / SIZES + i) % CHANNELS];
        psld_shape a = batched(first, size[0], size[1]), b = batched(second, size[0], size[1]),
                   both = batched(first + second, size[0], size[1]);
        op_case c = {.op = PSLD_OP_CONCAT, .inputs = 3, .in = {a, b, a}, .define = define_concat};
        snprintf(c.name, sizeof c.name, "concat %d + %d + %d at %d x %d", first, second, first, size[0], size[1]);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_SLICE, .inputs = 1, .in = {both}, .hint = b, .linear = 1, .define = define_slice};
        c.a.slice.first = first;
        snprintf(c.name, sizeof c.name, "slice %d after %d at %d x %d", second, first, size[0], size[1]);
        check_op(&c);
        c.op = PSLD_OP_SLICE_DX, c.in[0] = b, c.hint = both, c.define = define_slice_dx;
        snprintf(c.name, sizeof c.name, "slice_dx %d after %d at %d x %d", second, first, size[0], size[1]);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_SLICE, .inputs = 1, .linear = 1, .define = define_slice};
        c.in[0] = (psld_shape){1, first + second, 1, 1}, c.hint = (psld_shape){1, second, 1, 1};
        c.a.slice.first = first;
        snprintf(c.name, sizeof c.name, "slice %d after %d of a vector", second, first);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_RESHAPE, .inputs = 1, .in = {a}, .linear = 1, .define = define_reshape};
        c.hint = batched(first * size[0] * size[1], 1, 1);
        snprintf(c.name, sizeof c.name, "reshape %d x %d x %d to a vector", first, size[0], size[1]);
        check_op(&c);
        c.hint = batched(size[1], first, size[0]);
        snprintf(c.name, sizeof c.name, "reshape %d x %d x %d to an image", first, size[0], size[1]);
        check_op(&c);
    }
}

/* ---- Scale and shift, rows of parameters ------------------------------------------------------------------------- */

static void define_modulate(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int pixels = s.h * s.w;
    for (int i = 0; i < n * s.c * pixels; i++) {
        int sample = i / (s.c * pixels), channel = i / pixels % s.c;
        const double *v = in[1] + (ptrdiff_t)sample * 2 * s.c + channel;
        out[i] = in[0][i] * (1 + v[0]) + (c->op == PSLD_OP_MODULATE ? v[s.c] : 0);
    }
}

static void define_modulate_sums(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int pixels = c->in[0].h * c->in[0].w, width = c->in[0].c;
    for (int i = 0; i < n * width * pixels; i++) {
        double *to = out + (ptrdiff_t)(i / (width * pixels)) * s.c + i / pixels % width;
        to[0] += in[0][i] * in[1][i];
        to[width] += in[1][i];
    }
}

static void modulation(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES; i++) {
        const int *size = some_sizes[i % SIZES];
        psld_shape x = batched(some_channels[i / SIZES], size[0], size[1]), v = batched(2 * x.c, 1, 1);
        op_case c = {.op = PSLD_OP_MODULATE, .inputs = 2, .in = {x, v}, .define = define_modulate};
        snprintf(c.name, sizeof c.name, "modulate %d x %d x %d", x.c, x.h, x.w);
        check_op(&c);
        c.op = PSLD_OP_MODULATE_DX, c.kind[0] = c.kind[1] = FIXED_NUMBERS;
        snprintf(c.name, sizeof c.name, "modulate_dx %d x %d x %d", x.c, x.h, x.w);
        check_op(&c);
        c.op = PSLD_OP_MODULATE_SUMS, c.in[1] = x, c.define = define_modulate_sums;
        snprintf(c.name, sizeof c.name, "modulate_sums %d x %d x %d", x.c, x.h, x.w);
        check_op(&c);
    }
}

/* Elements in a row of a dense tensor; a vector has one in each. */
static int picked_width(psld_shape s)
{
    return s.n == 1 ? 1 : s.c * s.h * s.w;
}

static void define_pick(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int width = picked_width(s), count = s.n == 1 ? s.c : s.n;
    (void)n;
    for (int i = 0; i < count * width; i++)
        out[i] = in[0][(c->a.pick.first + i / width * c->a.pick.step) * width + i % width];
}

static void define_pick_dx(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int width = picked_width(s), count = s.n == 1 ? c->in[0].c : c->in[0].n;
    (void)n;
    for (int i = 0; i < count * width; i++)
        out[(c->a.pick.first + i / width * c->a.pick.step) * width + i % width] = in[0][i];
}

static void rows_of_parameters(void **state)
{
    static const int all[][4] = {{12, 0, 3, 4}, {12, 2, 3, 4}, {7, 1, 1, 5}, {9, 3, 2, 3}, {5, 0, 4, 2}};
    (void)state;
    for (int i = 0; i < 15; i++) {
        const int *a = all[i % 5];
        psld_shape whole = {a[0], 3, i < 10 ? 1 : 2, 1}, part = {a[3], whole.c, whole.h, 1};
        if (i < 5) whole = (psld_shape){1, a[0], 1, 1}, part = (psld_shape){1, a[3], 1, 1};
        op_case c = {.op = PSLD_OP_PICK, .inputs = 1, .in = {whole}, .linear = 1, .define = define_pick};
        c.hint = (psld_shape){a[3], 1, 1, 1};
        c.a.pick.first = a[1], c.a.pick.step = a[2];
        snprintf(c.name, sizeof c.name, "pick %d of %d from %d in steps of %d, %d", a[3], a[0], a[1], a[2], i / 5);
        check_op(&c);
        c.op = PSLD_OP_PICK_DX, c.in[0] = part, c.hint = whole, c.define = define_pick_dx;
        snprintf(c.name, sizeof c.name, "pick_dx %d of %d from %d in steps of %d, %d", a[3], a[0], a[1], a[2], i / 5);
        check_op(&c);
    }
}

/* ---- Group normalisation ----------------------------------------------------------------------------------------- */

static psld_id build_norm(psld_graph *graph, const op_case *c, const psld_id *in)
{
    return psld_nn_group_norm(graph, in[0], in[1], in[2], c->a.norm.groups, c->a.norm.eps, c->a.norm.activation);
}

static void define_norm(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int groups = c->a.norm.groups, size = s.c / groups * s.h * s.w;
    for (int g = 0; g < n * groups; g++) {
        const double *x = in[0] + g * size;
        double mean = 0, variance = 0;
        for (int i = 0; i < size; i++) mean += x[i] / size;
        for (int i = 0; i < size; i++) variance += (x[i] - mean) * (x[i] - mean) / size;
        for (int i = 0; i < size; i++) {
            int channel = g % groups * (s.c / groups) + i / (s.h * s.w);
            double u = (x[i] - mean) / sqrt(variance + c->a.norm.eps) * in[1][channel] + in[2][channel];
            out[g * size + i] = activation_value(c->a.norm.activation, u);
        }
    }
}

static void define_moments(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int channels_in = c->in[0].c, plane = c->in[0].h * c->in[0].w;
    (void)s;
    for (int i = 0; i < n * channels_in; i++) {
        const double *x = in[0] + i * plane;
        double *mean = out + i / channels_in * 2 * channels_in + i % channels_in, *variance = mean + channels_in;
        for (int j = 0; j < plane; j++) *mean += x[j] / plane;
        for (int j = 0; j < plane; j++) *variance += (x[j] - *mean) * (x[j] - *mean) / plane;
    }
}

static void normalisation(void **state)
{
    (void)state;
    static const int groupings[][2] = {{1, 1}, {3, 1}, {3, 3}, {6, 2}, {17, 1}, {17, 17}, {16, 4}};
    for (int i = 0; i < 7 * SIZES; i++) {
        const int *size = some_sizes[i % SIZES];
        int channels_in = groupings[i / SIZES][0], groups = groupings[i / SIZES][1];
        psld_shape x = batched(channels_in, size[0], size[1]), v = {1, channels_in, 1, 1};
        op_case c = {.inputs = 3, .in = {x, v, v}, .build = build_norm, .define = define_norm};
        c.a.norm.groups = groups;
        c.a.norm.eps = 1e-2; /* large enough for the differences where a group is a single number */
        c.tolerance = 5e-6;  /* moments are rounded to float */
        for (psld_activation kind = PSLD_LINEAR; kind <= PSLD_LEAKY_RELU; kind++) {
            c.a.norm.activation = kind;
            snprintf(c.name, sizeof c.name, "normalise %d x %d x %d in %d, activation %d", channels_in, size[0],
                     size[1], groups, (int)kind);
            check_op(&c);
        }
        c = (op_case){.op = PSLD_OP_MOMENTS, .inputs = 1, .in = {x}, .kind = {FIXED_NUMBERS}};
        c.define = define_moments;
        snprintf(c.name, sizeof c.name, "moments %d x %d x %d", channels_in, size[0], size[1]);
        check_op(&c);
    }
}

/* ---- Resampling -------------------------------------------------------------------------------------------------- */

/* How much of input pixel i is in output pixel j: one entry of the matrix of an axis. */
static double resample_entry(const psld_attributes *a, int j, int i)
{
    int k = i * a->resample.up + a->resample.pad - j * a->resample.down;
    return k >= 0 && k < a->resample.taps ? (double)a->resample.tap[k] : 0;
}

static void define_resample(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    psld_shape x = c->in[0];
    for (int plane = 0; plane < n * s.c; plane++)
        for (int j = 0; j < s.h * s.w; j++)
            for (int i = 0; i < x.h * x.w; i++)
                out[plane * s.h * s.w + j] += resample_entry(&c->a, j / s.w, i / x.w) *
                                              resample_entry(&c->a, j % s.w, i % x.w) * in[0][plane * x.h * x.w + i];
}

static void resampling(void **state)
{
    (void)state;
    static const psld_attributes kinds[] = {
        {.resample = {2, 1, 1, 2, {1, 1}}},                           /* nearest */
        {.resample = {1, 2, 0, 2, {0.5F, 0.5F}}},                     /* mean */
        {.resample = {2, 1, 2, 4, {0.25F, 0.75F, 0.75F, 0.25F}}},     /* filter up ... */
        {.resample = {1, 2, 1, 4, {0.125F, 0.375F, 0.375F, 0.125F}}}, /* ... and down */
        {.resample = {1, 1, 2, 4, {0.1F, 0.2F, 0.3F, 0.4F}}},         /* not symmetric */
        {.resample = {3, 2, 1, 5, {1, -2, 3, -4, 5}}},
        {.resample = {2, 1, 0, 1, {1}}}, /* zeros in between */
    };
    for (int i = 0; i < 7 * CHANNELS * SIZES; i++) {
        const int *size = some_sizes[i % SIZES];
        op_case c = {.op = PSLD_OP_RESAMPLE, .inputs = 1, .linear = 1, .define = define_resample};
        c.a = kinds[i / SIZES / CHANNELS];
        c.in[0] = batched(some_channels[i / SIZES % CHANNELS], size[0] + 1, size[1]);
        c.hint = batched(1, (size[0] + 1) * c.a.resample.up / c.a.resample.down,
                         (size[1] * c.a.resample.up + 1) / c.a.resample.down);
        snprintf(c.name, sizeof c.name, "resample %d of %d x %d x %d", i / SIZES / CHANNELS, c.in[0].c, size[0] + 1,
                 size[1]);
        check_op(&c);
    }
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

static psld_id build_attention(psld_graph *graph, const op_case *c, const psld_id *in)
{
    (void)c;
    return psld_nn_attention(graph, in[0], in[1], in[2]);
}

/* exp(x_i) over their sum, x being `step` apart. */
static double softmax_at(const double *x, int count, int step, int i)
{
    double sum = 0;
    for (int j = 0; j < count; j++) sum += exp(x[j * step] - x[i * step]);
    return 1 / sum;
}

static void define_softmax(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int plane = s.h * s.w;
    (void)c;
    for (int i = 0; i < n * s.c * plane; i++)
        out[i] = softmax_at(in[0] + i / plane / s.c * s.c * plane + i % plane, s.c, plane, i / plane % s.c);
}

static void define_attention(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    enum { MOST = 64 };
    int queries = s.h * s.w, keys = c->in[1].h * c->in[1].w, width = c->in[0].c;
    double score[MOST];
    for (int i = 0; i < n * queries; i++) {
        int sample = i / queries, q = i % queries;
        for (int k = 0; k < keys; k++) {
            score[k] = 0;
            for (int channel = 0; channel < width; channel++)
                score[k] += in[0][(sample * width + channel) * queries + q] *
                            in[1][(sample * width + channel) * keys + k] / sqrt((double)width);
        }
        for (int k = 0; k < keys; k++)
            for (int channel = 0; channel < s.c; channel++)
                out[(sample * s.c + channel) * queries + q] +=
                    softmax_at(score, keys, 1, k) * in[2][(sample * s.c + channel) * keys + k];
    }
}

static void define_apply_t(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int targets = s.h * s.w, sources = c->in[1].h * c->in[1].w;
    for (int i = 0; i < n * s.c * targets * sources; i++) {
        int from = i % sources, to = i / sources % targets, channel = i / sources / targets % s.c,
            sample = i / sources / targets / s.c;
        out[(sample * s.c + channel) * targets + to] += c->a.scale.by *
                                                        in[0][(sample * targets + to) * sources + from] *
                                                        in[1][(sample * s.c + channel) * sources + from];
    }
}

static void attention(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES; i++) {
        const int *size = some_sizes[i % SIZES];
        int width = some_channels[i / SIZES], height = size[0], keys = size[1];
        psld_shape q = batched(width, height, 2), k = batched(width, keys, 1), v = batched(5, keys, 1);
        op_case c = {.inputs = 3, .in = {q, k, v}, .linear = 4, .build = build_attention};
        c.define = define_attention;
        c.tolerance = 2e-6; /* scores and weights are rounded to float in between */
        snprintf(c.name, sizeof c.name, "attention %d wide, %d x 2 to %d", width, height, keys);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_SOFTMAX, .inputs = 1, .in = {q}, .define = define_softmax};
        snprintf(c.name, sizeof c.name, "softmax of %d x %d x 2", width, height);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_APPLY_T, .inputs = 2, .linear = 3, .define = define_apply_t};
        c.in[0] = batched(keys, height, 2), c.in[1] = q, c.hint = batched(1, keys, 1);
        c.a.scale.by = 0.5;
        snprintf(c.name, sizeof c.name, "apply_t %d wide, %d x 2 to %d", width, height, keys);
        check_op(&c);
    }
}

/* ---- Embeddings -------------------------------------------------------------------------------------------------- */

static void define_positional(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int half = s.c / 2, cos_first = c->a.embedding.cos_first;
    double range = half - c->a.embedding.shift;
    for (int i = 0; i < n * half; i++) {
        double angle = in[0][i / half] * pow(10000, -(double)(i % half) / (range > 0 ? range : 1));
        out[i / half * s.c + (cos_first ? half : 0) + i % half] = sin(angle);
        out[i / half * s.c + (cos_first ? 0 : half) + i % half] = cos(angle);
    }
}

static void define_fourier(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int half = s.c / 2;
    for (int i = 0; i < n * half; i++) {
        double t = in[0][i / half], angle = 2 * acos(-1) * in[1][i % half] * (c->a.embedding.plain ? t : log(t));
        out[i / half * s.c + i % half] = sin(angle);
        out[i / half * s.c + half + i % half] = cos(angle);
    }
}

static void embeddings(void **state)
{
    (void)state;
    static const int widths[] = {2, 3, 6, 17, 48};
    for (int i = 0; i < 5; i++) {
        psld_shape t = batched(1, 1, 1), w = {1, widths[i], 1, 1};
        op_case c = {.op = PSLD_OP_POSITIONAL, .inputs = 1, .in = {t}, .kind = {TIMES}};
        c.hint = batched(widths[i], 1, 1), c.define = define_positional;
        c.a.embedding.shift = 1;
        snprintf(c.name, sizeof c.name, "positional %d", widths[i]);
        check_op(&c);
        c.a.embedding.shift = i % 2 ? 0 : 0.5, c.a.embedding.cos_first = 1;
        snprintf(c.name, sizeof c.name, "positional %d, cosines first", widths[i]);
        check_op(&c);
        c = (op_case){.op = PSLD_OP_FOURIER, .inputs = 2, .in = {t, w}, .kind = {TIMES, FIXED_NUMBERS}};
        c.define = define_fourier;
        c.tolerance = 2e-5; /* angles up to 100, rounded to float */
        snprintf(c.name, sizeof c.name, "fourier %d", widths[i]);
        check_op(&c);
        c.a.embedding.plain = 1;
        snprintf(c.name, sizeof c.name, "fourier %d of t itself", widths[i]);
        check_op(&c);
    }
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

static void define_loss(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int size = (int)psld_shape_count(c->in[0]);
    (void)s;
    for (int i = 0; i < n * size; i++) out[i / size] += pow(fabs(in[0][i] - in[1][i]), c->a.loss.power) / size;
}

/* With a metric: e' M e over the variables that the channels are made of. */
static void define_weighed_loss(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int size = (int)psld_shape_count(c->in[0]), variables = c->a.loss.variables, each = size / variables;
    (void)s;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < variables; v++)
            for (int w = 0; w < variables; w++)
                for (int j = 0; j < each; j++) {
                    int a = i * size + v * each + j, b = i * size + w * each + j;
                    double metric = in[2][(i * variables + v) * variables + w];
                    out[i] += metric * (in[0][a] - in[1][a]) * (in[0][b] - in[1][b]) / size;
                }
}

static void define_root(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    (void)c, (void)s;
    for (int i = 0; i < n; i++) out[i] = sqrt(in[0][i] + in[1][i] * in[1][i]) - in[1][i];
}

static void define_entropy(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    int classes = c->in[0].c;
    (void)s;
    for (int i = 0; i < n; i++) out[i] = -log(softmax_at(in[0] + i * classes, classes, 1, (int)in[1][i]));
}

static void losses(void **state)
{
    (void)state;
    for (int i = 0; i < CHANNELS * SIZES * 2; i++) {
        const int *size = some_sizes[i / 2 % SIZES];
        psld_shape x = batched(some_channels[i / 2 / SIZES], size[0], size[1]);
        op_case c = {.op = PSLD_OP_LOSS, .inputs = 2, .in = {x, x}, .define = define_loss};
        c.a.loss.power = 1 + i % 2;
        snprintf(c.name, sizeof c.name, "loss of power %d over %d x %d x %d", 1 + i % 2, x.c, x.h, x.w);
        check_op(&c);
    }
    for (int i = 0; i < 3 * SIZES; i++) {
        const int *size = some_sizes[i % SIZES], variables = 1 + i / SIZES;
        psld_shape x = batched(3 * variables, size[0], size[1]), metric = batched(variables * variables, 1, 1);
        op_case c = {
            .op = PSLD_OP_LOSS, .inputs = 3, .in = {x, x, metric}, .kind = {NORMAL_NUMBERS, NORMAL_NUMBERS, TIMES}};
        c.define = define_weighed_loss;
        c.a.loss.power = 2;
        c.a.loss.variables = variables;
        snprintf(c.name, sizeof c.name, "loss by a metric of %d variables over %d x %d x %d", variables, x.c, x.h, x.w);
        check_op(&c);
    }
    op_case root = {.op = PSLD_OP_ROOT, .inputs = 2, .in = {batched(1, 1, 1), batched(1, 1, 1)}, .define = define_root};
    root.kind[0] = PROBABILITIES, root.kind[1] = TIMES;
    snprintf(root.name, sizeof root.name, "root");
    check_op(&root);
    for (int i = 0; i < CHANNELS; i++) {
        psld_shape x = batched(some_channels[i], 1, 1), label = batched(1, 1, 1);
        op_case c = {.op = PSLD_OP_ENTROPY, .inputs = 2, .in = {x, label}, .kind = {NORMAL_NUMBERS, LABELS}};
        c.define = define_entropy;
        snprintf(c.name, sizeof c.name, "entropy of %d classes", x.c);
        check_op(&c);
    }
}

/* ---- Pooling and resizing: what evaluation networks need --------------------------------------------------------- */

static void define_pool(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    const psld_attributes *a = &c->a;
    psld_shape x = c->in[0];
    for (int i = 0; i < n * s.c * s.h * s.w; i++) {
        int top = i / s.w % s.h * a->pool.stride[0] - a->pool.pad[0],
            left = i % s.w * a->pool.stride[1] - a->pool.pad[1];
        int count = 0;
        for (int y = top < 0 ? 0 : top; y < top + a->pool.kernel[0] && y < x.h; y++)
            for (int column = left < 0 ? 0 : left; column < left + a->pool.kernel[1] && column < x.w;
                 column++, count++) {
                double value = in[0][at(x, i / s.w / s.h / s.c, i / s.w / s.h % s.c, y, column)];
                out[i] = a->pool.mean ? out[i] + value : count && out[i] > value ? out[i] : value;
            }
        if (a->pool.mean) out[i] /= count;
    }
}

static void pooling(void **state)
{
    static const psld_attributes kinds[] = {
        {.pool = {{3, 3}, {2, 2}, {0, 0, 0, 0}, 0}}, {.pool = {{3, 3}, {1, 1}, {1, 1, 1, 1}, 0}},
        {.pool = {{3, 3}, {1, 1}, {1, 1, 1, 1}, 1}}, {.pool = {{2, 3}, {2, 1}, {0, 2, 1, 1}, 1}},
        {.pool = {{1, 2}, {3, 2}, {0, 1, 0, 0}, 0}},
    };
    (void)state;
    for (int i = 0; i < 5 * CHANNELS; i++) {
        op_case c = {.op = PSLD_OP_POOL, .inputs = 1, .kind = {FIXED_NUMBERS}, .define = define_pool};
        c.a = kinds[i / CHANNELS];
        c.in[0] = batched(some_channels[i % CHANNELS], 5, 8);
        snprintf(c.name, sizeof c.name, "pool %d of %d channels", i / CHANNELS, c.in[0].c);
        check_op(&c);
    }
}

/* The corner weights of one output pixel at a time. */
static void define_resize(const op_case *c, int n, double *const *in, psld_shape s, double *out)
{
    psld_shape x = c->in[0];
    for (int i = 0; i < n * s.c * s.h * s.w; i++) {
        double y = (double)(i / s.w % s.h) * x.h / s.h, column = (double)(i % s.w) * x.w / s.w;
        for (int corner = 0; corner < 4; corner++) {
            int row = (int)floor(y) + corner / 2, across = (int)floor(column) + corner % 2;
            double weight = (1 - fabs(y - row)) * (1 - fabs(column - across));
            row = row < x.h ? row : x.h - 1, across = across < x.w ? across : x.w - 1;
            out[i] += weight * in[0][at(x, i / s.w / s.h / s.c, i / s.w / s.h % s.c, row, across)];
        }
    }
}

static void resizing(void **state)
{
    static const int sizes[][4] = {{4, 5, 11, 13}, {7, 9, 7, 9}, {8, 6, 3, 5}, {1, 1, 3, 4}, {3, 2, 3, 8}};
    (void)state;
    for (int i = 0; i < 5 * CHANNELS; i++) {
        const int *size = sizes[i / CHANNELS];
        op_case c = {.op = PSLD_OP_RESIZE, .inputs = 1, .kind = {FIXED_NUMBERS}, .define = define_resize};
        c.in[0] = batched(some_channels[i % CHANNELS], size[0], size[1]);
        c.hint = batched(1, size[2], size[3]);
        snprintf(c.name, sizeof c.name, "resize %d of %d channels", i / CHANNELS, c.in[0].c);
        check_op(&c);
    }
}

/* ---- One after the other ------------------------------------------------------------------------------------------ */

/* What a network is made of, on shapes that no tile and no group divides. */
static psld_id build_block(psld_graph *graph, const op_case *c, const psld_id *in)
{
    static const int stride[2] = {1, 1}, pad[4] = {1, 1, 1, 1};
    static const float taps[] = {0.125F, 0.375F, 0.375F, 0.125F};
    psld_shape x = c->in[0];
    psld_id h = psld_nn_dropout(graph, psld_nn_conv(graph, in[0], in[1], stride, pad, 0), 0.25);
    h = psld_nn_group_norm(graph, h, in[2], in[3], 1, 1e-2, PSLD_SILU);
    h = psld_nn_concat(graph, psld_nn_modulate(graph, h, in[4]), in[0]);
    return psld_nn_resample(graph, h, 1, 2, 4, taps, 1, (const int[]){(x.h + 1) / 2, (x.w + 1) / 2});
}

static void blocks_of_odd_shapes(void **state)
{
    static const int sizes[][2] = {{1, 1}, {33, 31}, {1, 9}}, channels_in[] = {1, 3, 5, 17};
    (void)state;
    for (int i = 0; i < 4 * 3; i++) {
        const int *size = sizes[i % 3], from = channels_in[i / 3], to = 22 - from;
        psld_shape x = batched(from, size[0], size[1]), v = {1, to, 1, 1};
        op_case c = {.inputs = 5, .in = {x, {to, from, 3, 3}, v, v, batched(2 * to, 1, 1)}, .build = build_block};
        c.training = 1;
        c.samples = i % 3 == 1 ? 1 : 7;
        c.tolerance = 5e-6; /* moments are rounded to float */
        snprintf(c.name, sizeof c.name, "a block of %d samples of %d x %d x %d", c.samples, from, size[0], size[1]);
        check_op(&c);
    }
}

static void count(void **state)
{
    (void)state;
    printf("%d cases, each: value, gradients, adjoints, bits, memory\n", checked_ops());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(finished_convolutions),
        cmocka_unit_test(products),
        cmocka_unit_test(vectors),
        cmocka_unit_test(elementwise),
        cmocka_unit_test(dropout),
        cmocka_unit_test(channels),
        cmocka_unit_test(modulation),
        cmocka_unit_test(rows_of_parameters),
        cmocka_unit_test(normalisation),
        cmocka_unit_test(resampling),
        cmocka_unit_test(attention),
        cmocka_unit_test(embeddings),
        cmocka_unit_test(losses),
        cmocka_unit_test(rectified_convolutions),
        cmocka_unit_test(pooling),
        cmocka_unit_test(resizing),
        cmocka_unit_test(blocks_of_odd_shapes),
        cmocka_unit_test(count),
    };
    cmocka_set_test_filter(getenv("PSLD_OPS")); /* some of them, for whoever asks: "conv*"; NULL is all */
#ifdef OPS_OF_OPENCL                            /* test_ops_opencl */
    psld_device *device = opencl_for_test();
    check_ops_on(device);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    psld_device_close(device);
    return failed;
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
