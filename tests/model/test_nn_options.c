/* Every option of the networks: derivatives in double against differences, the same bits in any batch and with any
 * number of threads, and parts that are built in another order than the reference writes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "model/networks/ncsnpp.h"
#include "nn/exec.h"
#include "nn/ops.h"
#include "nn/plan.h"

enum { SAMPLES = 3 };

static const char base_config[] =
    "data: {size: 8}\n"
    "model: {name: ncsnpp, in_ch: 2, out_ch: 3, nf: 8, ch_mult: [1, 2], num_res_blocks: 1,\n"
    "        attn_resolutions: [4], dropout: 0.1, init_scale: 1}\n";

/* Overrides, separated by spaces. */
static const char *const variants[] = {
    "model.resblock_type=biggan",
    "model.resblock_type=biggan model.fir=true",
    "model.resblock_type=biggan model.fir=true model.fir_kernel=[1,2,5]",
    "model.resblock_type=biggan model.skip_rescale=false model.nonlinearity=elu",
    "model.resblock_type=ddpm",
    "model.resblock_type=ddpm model.resamp_with_conv=false",
    "model.resblock_type=ddpm model.fir=true",
    "model.resblock_type=ddpm model.fir=true model.resamp_with_conv=false",
    "model.progressive=output_skip model.progressive_input=input_skip",
    "model.progressive=output_skip model.progressive_input=input_skip model.progressive_combine=cat model.fir=true",
    "model.progressive=residual model.progressive_input=residual",
    "model.progressive=residual model.progressive_input=residual model.fir=true model.skip_rescale=false",
    "model.progressive=residual model.resblock_type=ddpm model.fir=true model.ch_mult=[1,1,2] model.num_res_blocks=2",
    "model.embedding_type=fourier model.fourier_scale=1",
    "model.embedding_type=fourier model.noise_cond=false",
    "model.noise_cond=false model.attn_resolutions=[8,4]",
    "model.nonlinearity=relu",
    "model.nonlinearity=lrelu model.resblock_type=ddpm",
    "model.attn_resolutions=[] model.ch_mult=[2]",
    "model.patch=2",
    "model.patch=4 model.resblock_type=ddpm model.attn_resolutions=[]",
    "model.patch=3 data.size=12 model.resblock_type=ddpm model.resamp_with_conv=false",
    "model.patch=2 model.name=ncsnpp_clf model.n_cls=3",
    "model.name=ncsnpp_clf model.n_cls=5",
    "model.name=ncsnpp_clf model.n_cls=2 model.fir=true model.progressive_input=residual model.embedding_type=fourier",
    "model.name=mlp model.num_res_blocks=3",
    "model.name=mlp model.embedding_type=fourier model.fourier_scale=1 model.nonlinearity=elu",
    "model.name=mlp model.noise_cond=false",
};

static psld_network *open_variant(const char *overrides)
{
    psld_yaml *yaml = NULL;
    psld_network_config config;
    psld_network *network = NULL;
    char text[512];
    assert_int_equal(psld_yaml_parse(base_config, strlen(base_config), "base", &yaml), PSLD_OK);
    snprintf(text, sizeof text, "%s", overrides);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        if (psld_yaml_override(yaml, word) != PSLD_OK) fail_msg("%s", psld_error_text());
    if (psld_network_config_read(psld_yaml_root(yaml), NULL, &config) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_yaml_free(yaml);
    if (psld_network_create(&config, &network) != PSLD_OK) fail_msg("%s: %s", overrides, psld_error_text());
    psld_network_initialise(network, 4);
    /* Biases and scales other than 0 and 1, so that nothing hides behind them. */
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        for (size_t j = 0; p->init != PSLD_INIT_UNIFORM && j < p->count; j++) {
            double u;
            psld_random_uniform(5, PSLD_FOR_DATA, i, 0, j, 1, &u);
            network->weights[p->offset + j] += (float)(0.4 * u - 0.2);
        }
    }
    return network;
}

/* ---- What goes in and out ---------------------------------------------------------------------------------------- */

typedef struct arrays {
    size_t inputs, outputs; /* elements */
    double *z, *t, *grad_out, *out, *grad_z;
} arrays;

static double *numbers(size_t count, uint64_t what)
{
    double *x = psld_alloc(count, sizeof *x);
    psld_random_normal(6, PSLD_FOR_DATA, what, 0, 0, count, x);
    for (size_t i = 0; i < count; i++) x[i] = (double)(float)x[i];
    return x;
}

static void make_arrays(const psld_network *network, arrays *a)
{
    a->inputs = SAMPLES * psld_shape_count(psld_graph_shape(network->graph, network->inputs.z));
    a->outputs = SAMPLES * psld_shape_count(psld_graph_shape(network->graph, network->out));
    a->z = numbers(a->inputs, 0);
    a->grad_out = numbers(a->outputs, 1);
    a->t = numbers(SAMPLES, 2);
    for (int i = 0; i < SAMPLES; i++) a->t[i] = (double)(float)(1 / (1 + exp(a->t[i])));
    a->out = psld_alloc(a->outputs, sizeof *a->out);
    a->grad_z = psld_alloc(a->inputs, sizeof *a->grad_z);
}

static void free_arrays(arrays *a)
{
    double *all[] = {a->z, a->t, a->grad_out, a->out, a->grad_z};
    for (int i = 0; i < 5; i++) psld_release(all[i]);
}

static void run(psld_runner *runner, arrays *a, size_t first, size_t n)
{
    size_t in = a->inputs / SAMPLES, out = a->outputs / SAMPLES;
    psld_runner_data data = {.type = PSLD_F64,
                             .z = a->z + first * in,
                             .t = a->t + first,
                             .grad_out = a->grad_out + first * out,
                             .out = a->out + first * out,
                             .grad_z = a->grad_z + first * in};
    assert_int_equal(psld_runner_run(runner, n, &data), PSLD_OK);
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* ---- Derivatives ------------------------------------------------------------------------------------------------- */

/* sum(out * grad_out) with z moved by s d. */
static double moved_input(psld_runner *runner, const arrays *a, const double *d, double s)
{
    arrays moved = *a;
    moved.z = psld_alloc(a->inputs, sizeof *moved.z);
    for (size_t i = 0; i < a->inputs; i++) moved.z[i] = a->z[i] + s * d[i];
    run(runner, &moved, 0, SAMPLES);
    psld_release(moved.z);
    return dot(moved.out, a->grad_out, a->outputs);
}

/* The same with the trained parameters moved; they are float, so what counts is where they really went. */
static double moved_weights(psld_runner *runner, psld_network *network, arrays *a, double s, double *where)
{
    const psld_graph *graph = network->graph;
    size_t count = graph->parameter_elements;
    float *kept = psld_copy_bytes(network->weights, count * sizeof *kept);
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        for (size_t j = p->offset; p->trained && j < p->offset + p->count; j++) {
            double d;
            psld_random_normal(7, PSLD_FOR_DATA, 0, 0, j, 1, &d);
            network->weights[j] = (float)((double)kept[j] + s * d);
        }
    }
    for (size_t i = 0; i < count; i++) where[i] = (double)network->weights[i];
    run(runner, a, 0, SAMPLES);
    memcpy(network->weights, kept, count * sizeof *kept);
    psld_release(kept);
    return dot(a->out, a->grad_out, a->outputs);
}

static void check_close(const char *variant, const char *what, double found, double expected, double scale)
{
    if (!(fabs(found - expected) <= 1e-5 * (fabs(expected) + scale)))
        fail_msg("%s: derivative by %s is %.9g, differences give %.9g", variant, what, found, expected);
}

static void check_derivatives(const char *variant)
{
    psld_network *network = open_variant(variant);
    psld_runner *runner = NULL;
    arrays a;
    size_t count = network->graph->parameter_elements;
    make_arrays(network, &a);
    unsigned want = PSLD_WANT_GRADIENT_Z | PSLD_WANT_GRADIENT_PARAMETERS;
    psld_runner_options options = {&psld_backend_reference_f64, SAMPLES, want, 0, 1};
    assert_int_equal(psld_runner_open(network, &options, &runner), PSLD_OK);
    assert_int_equal(psld_plan_check(psld_runner_plan(runner)), PSLD_OK);
    run(runner, &a, 0, SAMPLES);
    double *d = numbers(a.inputs, 3), *grad_z = psld_copy_bytes(a.grad_z, a.inputs * sizeof *grad_z);
    double *gradients = psld_copy_bytes(psld_runner_gradients(runner), count * sizeof *gradients);
    double h = 1e-7, size = sqrt(dot(a.grad_out, a.grad_out, a.outputs));
    double slope = (moved_input(runner, &a, d, h) - moved_input(runner, &a, d, -h)) / (2 * h);
    check_close(variant, "z", dot(grad_z, d, a.inputs), slope, size);

    double *up = psld_alloc(count, sizeof *up), *down = psld_alloc(count, sizeof *down);
    double change = moved_weights(runner, network, &a, 5e-6, up) - moved_weights(runner, network, &a, -5e-6, down);
    for (size_t i = 0; i < count; i++) up[i] -= down[i];
    /* Kinks lie closer than the steps that float weights can take: with them, z alone. */
    int smooth = !strstr(variant, "relu");
    if (smooth) check_close(variant, "parameters", dot(gradients, up, count) / 1e-5, change / 1e-5, 100 * size);
    assert_int_equal(psld_runner_faults(runner), 0);
    double *all[] = {d, grad_z, gradients, up, down};
    for (int i = 0; i < 5; i++) psld_release(all[i]);
    free_arrays(&a);
    psld_runner_free(runner);
    psld_network_free(network);
}

static void derivatives(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) check_derivatives(variants[i]);
    printf("%zu variants: derivatives by z and by all parameters agree with differences\n",
           sizeof variants / sizeof *variants);
}

/* ---- Bits -------------------------------------------------------------------------------------------------------- */

static void check_same(const char *variant, const arrays *a, const arrays *b, const char *what)
{
    if (memcmp(a->out, b->out, a->outputs * sizeof(double)) != 0 ||
        memcmp(a->grad_z, b->grad_z, a->inputs * sizeof(double)) != 0)
        fail_msg("%s: other bits %s", variant, what);
}

static void check_bits(const char *variant)
{
    psld_network *network = open_variant(variant);
    psld_runner *whole = NULL, *pairs = NULL, *training = NULL;
    arrays a, b;
    make_arrays(network, &a);
    make_arrays(network, &b);
    psld_runner_options options = {&psld_backend_reference, SAMPLES, PSLD_WANT_GRADIENT_Z, 0, 0};
    assert_int_equal(psld_runner_open(network, &options, &whole), PSLD_OK);
    options.batch = 2, options.poison = 1, options.store = 100000; /* some packed weights kept, others not */
    assert_int_equal(psld_runner_open(network, &options, &pairs), PSLD_OK);
    psld_threads_set(1);
    run(whole, &a, 0, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) run(whole, &b, i, 1);
    check_same(variant, &a, &b, "alone");
    run(pairs, &b, 0, SAMPLES);
    check_same(variant, &a, &b, "in pairs");
    options = (psld_runner_options){&psld_backend_reference, SAMPLES, 0, 0, 0};
    options.want = PSLD_WANT_GRADIENT_Z | PSLD_WANT_GRADIENT_PARAMETERS;
    assert_int_equal(psld_runner_open(network, &options, &training), PSLD_OK);
    size_t bytes = network->graph->parameter_elements * sizeof(float);
    run(training, &b, 0, SAMPLES);
    void *gradients = psld_copy_bytes(psld_runner_gradients(training), bytes);
    for (int threads = 2; threads <= 3; threads++) {
        psld_threads_set(threads);
        run(training, &b, 0, SAMPLES);
        check_same(variant, &a, &b, "with more threads");
        assert_memory_equal(gradients, psld_runner_gradients(training), bytes);
    }
    psld_threads_set(0);
    psld_release(gradients);
    psld_runner_free(whole);
    psld_runner_free(pairs);
    psld_runner_free(training);
    free_arrays(&a);
    free_arrays(&b);
    psld_network_free(network);
}

static void bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) check_bits(variants[i]);
}

/* ---- The filter before the convolution --------------------------------------------------------------------------- */

/* Zeros between the pixels, the convolution with its whole border, then the filter: as the reference has it. */
static psld_id as_written(psld_graph *graph, psld_id x, const float *taps, int count)
{
    static const int once[2] = {1, 1}, all[4] = {2, 2, 2, 2};
    static const float one[1] = {1};
    psld_shape s = psld_graph_shape(graph, x);
    int shape[4] = {3, s.c, 3, 3}, sparse[2] = {2 * s.h - 1, 2 * s.w - 1}, size[2] = {2 * s.h, 2 * s.w};
    psld_id w = psld_graph_parameter(graph, "all_modules.0.Conv2d_0.weight", 4, shape, PSLD_INIT_UNIFORM, 1);
    psld_id y = psld_nn_conv(graph, psld_nn_resample(graph, x, 2, 1, 1, one, 0, sparse), w, once, all, 0);
    y = psld_nn_resample(graph, y, 1, 1, count, taps, (count - 3) / 2 + 1, size);
    psld_id b = psld_graph_parameter(graph, "all_modules.0.Conv2d_0.bias", 1, shape, PSLD_INIT_ZEROS, 1);
    return psld_nn_bias(graph, y, b);
}

static void upsampling_convolution(void **state)
{
    (void)state;
    enum { IN = 2 * 5 * 3, OUT = 3 * 10 * 6 };
    static const float up[4] = {0.25F, 0.75F, 0.75F, 0.25F};
    psld_network_config config = {.fir = 1, .fir_taps = 4, .fir_kernel = {1, 3, 3, 1}};
    psld_graph *graph = NULL;
    psld_plan *plan = NULL;
    psld_exec *exec = NULL;
    assert_int_equal(psld_graph_create(&graph), PSLD_OK);
    psld_id x = psld_graph_input(graph, 2, 5, 3);
    psld_unet unet;
    psld_unet_begin(&unet, &config, graph, &(psld_network_inputs){PSLD_NONE, PSLD_NONE, PSLD_NONE, PSLD_NONE});
    psld_plan_output outputs[2] = {{psld_unet_resize(&unet, x, 3, PSLD_UP, 1), PSLD_NONE},
                                   {as_written(graph, x, up, 4), PSLD_NONE}};
    assert_int_equal(
        psld_plan_create(graph, &(psld_plan_options){&psld_backend_reference_f64, 1, 0, 0}, outputs, 2, &plan),
        PSLD_OK);
    assert_int_equal(graph->parameter_count, 2);
    double *parameters = numbers(graph->parameter_elements, 8), *in = numbers(IN, 9), a[OUT], b[OUT];
    assert_int_equal(psld_exec_create(plan, parameters, NULL, 1, &exec), PSLD_OK);
    psld_exec_set(exec, x, 1, PSLD_F64, in);
    psld_exec_run(exec, 1, &(psld_run){0});
    psld_exec_get(exec, outputs[0].id, 1, PSLD_F64, a);
    psld_exec_get(exec, outputs[1].id, 1, PSLD_F64, b);
    for (int i = 0; i < OUT; i++) assert_true(fabs(a[i] - b[i]) < 1e-13 * 10);
    psld_exec_free(exec);
    psld_plan_free(plan);
    psld_graph_free(graph);
    psld_release(parameters);
    psld_release(in);
}

/* ---- Start of training ------------------------------------------------------------------------------------------- */

static void initialisation(void **state)
{
    (void)state;
    psld_network_config config;
    psld_yaml *yaml = NULL;
    psld_network *a = NULL, *b = NULL;
    assert_int_equal(psld_yaml_parse(base_config, strlen(base_config), "base", &yaml), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "model.nf=64"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "model.init_scale=0"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "model.embedding_type=fourier"), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    psld_yaml_free(yaml);
    assert_int_equal(psld_network_create(&config, &a), PSLD_OK);
    assert_int_equal(psld_network_create(&config, &b), PSLD_OK);
    psld_network_initialise(a, 1);
    psld_network_initialise(b, 1);
    assert_memory_equal(a->weights, b->weights, a->graph->parameter_elements * sizeof(float));
    psld_network_initialise(b, 2);
    assert_memory_not_equal(a->weights, b->weights, a->graph->parameter_elements * sizeof(float));
    for (size_t i = 0; i < a->graph->parameter_count; i++) {
        const psld_parameter *p = &a->graph->parameters[i];
        const float *w = a->weights + p->offset;
        double square = 0, expected = 0;
        for (size_t j = 0; j < p->count; j++) square += (double)w[j] * (double)w[j] / (double)p->count;
        int norm = strstr(p->name, "GroupNorm") || (p->rank == 1 && p->init == PSLD_INIT_ONES);
        int quiet = strstr(p->name, "Conv_1") || strstr(p->name, "NIN_3") || (p->rank == 4 && p->shape[0] == 3);
        if (p->rank > 1) {
            double fan = ((double)p->count / p->shape[0] + (double)p->count / p->shape[1]) / 2;
            expected = (quiet ? 1e-10 : strstr(p->name, "NIN") ? 0.1 : 1) / fan;
        } else if (strstr(p->name, ".W")) {
            expected = 256;
        } else if (norm && strstr(p->name, "weight")) {
            expected = 1;
        }
        double spread = 6 / sqrt((double)p->count); /* five deviations of the mean of squares, at least */
        if (!(fabs(square - expected) <= spread * expected))
            fail_msg("%s: mean square %g, not %g", p->name, square, expected);
    }
    psld_network_free(a);
    psld_network_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives),
        cmocka_unit_test(bits),
        cmocka_unit_test(upsampling_convolution),
        cmocka_unit_test(initialisation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
