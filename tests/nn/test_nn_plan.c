/* Graphs, gradients and plans as such: what they refuse, what they leave out, and that no plan lets two live tensors
 * meet. */
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
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"

static const int once[2] = {1, 1}, around[4] = {1, 1, 1, 1};

/* ---- A small network with everything that plans have to deal with ------------------------------------------------ */

typedef struct net {
    psld_graph *graph;
    psld_id x, out, seed, by[16], gradient[16];
    size_t count; /* of `by` */
    psld_plan *plan;
    psld_exec *exec;
    float parameters[4096], gradients[4096];
} net;

static psld_id weight(psld_graph *graph, const char *name, int a, int b, int k)
{
    int shape[4] = {a, b, k, k};
    return psld_graph_parameter(graph, name, 4, shape, PSLD_INIT_UNIFORM, 1);
}

/* A block that is all convolution: h + conv(h) + bias + vector, the convolution reading what is added to it. */
static psld_id build_plain(psld_graph *graph, psld_id x, psld_id h)
{
    int channels = 6;
    psld_id y = psld_nn_conv(graph, h, weight(graph, "plain", 6, 6, 3), once, around, 0);
    psld_id vector = psld_nn_linear(graph, psld_nn_channel_sum(graph, x, 0), weight(graph, "vector", 6, 3, 1), 0);
    y = psld_nn_bias(graph, y, psld_graph_parameter(graph, "bias", 1, &channels, PSLD_INIT_ZEROS, 1));
    return psld_nn_sum(graph, psld_nn_bias(graph, y, vector), h, 0.75);
}

/* Residual blocks, a skip, a concatenation, and two maps composed. */
static psld_id build_blocks(psld_graph *graph, psld_id x)
{
    int channels = 6;
    psld_id skip = psld_nn_conv(graph, x, weight(graph, "first", 6, 3, 3), once, around, 0);
    psld_id h = build_plain(graph, x, skip);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "scale%d", i);
        psld_id scale = psld_graph_parameter(graph, name, 1, &channels, PSLD_INIT_ONES, 1);
        snprintf(name, sizeof name, "shift%d", i);
        psld_id shift = psld_graph_parameter(graph, name, 1, &channels, PSLD_INIT_ZEROS, 1);
        psld_id r = psld_nn_group_norm(graph, h, scale, shift, 2, 1e-6, PSLD_SILU);
        snprintf(name, sizeof name, "conv%d", i);
        r = psld_nn_conv(graph, r, weight(graph, name, 6, 6, 3), once, around, 0);
        h = psld_nn_sum(graph, h, psld_nn_activate(graph, r, PSLD_ELU), 0.5);
    }
    psld_id composed =
        psld_nn_product(graph, weight(graph, "last", 2, 12, 1), 0, weight(graph, "but one", 12, 12, 1), 0);
    return psld_nn_linear(graph, psld_nn_concat(graph, h, skip), composed, 0);
}

static psld_status make_net(net *n, int batch, unsigned passes, size_t store, int poison)
{
    memset(n, 0, sizeof *n);
    PSLD_TRY(psld_graph_create(&n->graph));
    n->x = psld_graph_input(n->graph, 3, 5, 4);
    n->out = build_blocks(n->graph, n->x);
    PSLD_TRY(psld_graph_status(n->graph));
    n->seed = psld_graph_input(n->graph, 2, 5, 4);
    PSLD_TRY(psld_graph_status(n->graph));
    psld_plan_output outputs[17] = {{n->out, PSLD_NONE}};
    psld_plan_options options = {&psld_backend_reference, batch, passes, store};
    for (size_t i = 0; i < n->graph->parameter_count; i++) n->by[n->count++] = n->graph->parameters[i].id;
    n->by[n->count++] = n->x;
    PSLD_TRY(psld_gradient(n->graph, n->out, n->seed, n->by, n->count, n->gradient));
    for (size_t i = 0; i < n->count; i++)
        outputs[i + 1] = (psld_plan_output){n->gradient[i], n->by[i] == n->x ? PSLD_NONE : (int)i};
    PSLD_TRY(psld_plan_create(n->graph, &options, outputs, n->count + 1, &n->plan));
    return psld_exec_create(n->plan, n->parameters, n->gradients, poison, &n->exec);
}

static void free_net(net *n)
{
    psld_exec_free(n->exec);
    psld_plan_free(n->plan);
    psld_graph_free(n->graph);
}

static void fill(float *x, size_t count, uint64_t what)
{
    for (size_t i = 0; i < count; i++) {
        double number;
        psld_random_normal(1, PSLD_FOR_DATA, what, 0, i, 1, &number);
        x[i] = (float)(0.3 * number);
    }
}

static uint64_t salt; /* chooses the weights */

static void run_net(net *n, int samples, float *out, float *grad_x)
{
    static float x[8 * 60], seed[8 * 40];
    psld_run run = {0};
    fill(n->parameters, n->plan->parameters, 10 + salt);
    fill(x, (size_t)samples * 60, 1);
    fill(seed, (size_t)samples * 40, 2);
    psld_exec_set(n->exec, n->x, samples, PSLD_F32, x);
    psld_exec_set(n->exec, n->seed, samples, PSLD_F32, seed);
    psld_exec_run(n->exec, samples, &run);
    psld_exec_get(n->exec, n->out, samples, PSLD_F32, out);
    psld_exec_get(n->exec, n->gradient[n->count - 1], samples, PSLD_F32, grad_x);
}

/* A plan for eight runs three, with the bits that a plan for three has, poisoned or not, and again the next time. */
static void partial_batches(void **state)
{
    (void)state;
    static net a, b;
    float out[2][3 * 40], grad_x[2][3 * 60];
    assert_int_equal(make_net(&a, 8, 0, 0, 1), PSLD_OK);
    assert_int_equal(make_net(&b, 3, 0, 0, 0), PSLD_OK);
    for (int again = 0; again < 2; again++) {
        psld_alloc_fail_at(1); /* running allocates nothing */
        run_net(&a, 3, out[0], grad_x[0]);
        run_net(&b, 3, out[1], grad_x[1]);
        assert_false(psld_alloc_failed());
        psld_alloc_fail_at(0);
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        assert_memory_equal(grad_x[0], grad_x[1], sizeof grad_x[0]);
        assert_memory_equal(a.gradients, b.gradients, sizeof a.gradients);
        for (size_t i = 0; i < 120; i++) assert_true(isfinite(out[0][i]));
    }
    assert_int_equal(psld_exec_faults(a.exec), 0);
    free_net(&a);
    free_net(&b);
}

static double largest_difference(const float *a, const float *b, size_t count)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)a[i] - (double)b[i]);
        if (!(error <= worst)) worst = error;
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static size_t steps_of(const psld_plan *plan, psld_op op)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->step_count; i++) count += plan->steps[i].op == op;
    return count;
}

/* Fused and not: the same but for roundings; forward, the chain is gone; backward, sums of gradients are taken in. */
static void fusion(void **state)
{
    (void)state;
    static net a, b;
    float out[2][3 * 40], grad_x[2][3 * 60];
    assert_int_equal(make_net(&a, 3, 0, 0, 1), PSLD_OK);
    assert_int_equal(make_net(&b, 3, PSLD_PASS_FUSE, 0, 1), PSLD_OK);
    assert_int_equal(psld_plan_check(b.plan), PSLD_OK);
    run_net(&a, 3, out[0], grad_x[0]);
    run_net(&b, 3, out[1], grad_x[1]);
    assert_true(largest_difference(out[0], out[1], 120) < 1e-6);
    assert_true(largest_difference(grad_x[0], grad_x[1], 180) < 1e-6);
    assert_true(largest_difference(a.gradients, b.gradients, a.plan->parameters) < 1e-6);
    assert_int_equal(psld_exec_faults(b.exec), 0);
    assert_int_equal(steps_of(a.plan, PSLD_OP_BIAS), 2);
    assert_int_equal(steps_of(b.plan, PSLD_OP_BIAS), 0);
    assert_true(steps_of(b.plan, PSLD_OP_SUM) + 2 <= steps_of(a.plan, PSLD_OP_SUM));
    size_t finished = 0;
    for (size_t i = 0; i < b.plan->step_count; i++)
        if (b.plan->steps[i].op == PSLD_OP_CONV) finished += b.plan->steps[i].attributes.conv.finish == 15;
    assert_int_equal(finished, 1);
    free_net(&a);
    free_net(&b);
}

/* Packed weights kept, kept in part, and made each time: the same bits; what is kept is made again when told. */
static void packing(void **state)
{
    (void)state;
    static net n[3];
    float out[3][3 * 40], grad_x[3][3 * 60];
    static const size_t store[3] = {0, 30000, 1 << 24};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(make_net(&n[i], 3, PSLD_PASS_ALL, store[i], 1), PSLD_OK);
        assert_int_equal(psld_plan_check(n[i].plan), PSLD_OK);
        assert_true(n[i].plan->kept * sizeof(float) <= store[i]);
        run_net(&n[i], 3, out[i], grad_x[i]);
        assert_memory_equal(out[i], out[0], sizeof out[0]);
        assert_memory_equal(grad_x[i], grad_x[0], sizeof grad_x[0]);
    }
    assert_true(n[0].plan->kept == 0 && n[1].plan->kept > 0 && n[2].plan->kept > n[1].plan->kept);
    psld_parameter *last = &n[0].graph->parameters[n[0].graph->parameter_count - 1];
    for (int i = 0; i < 3; i++) {
        psld_exec_changed(n[i].exec);
        salt = 1;
        run_net(&n[i], 3, out[i], grad_x[i]);
        salt = 0;
        assert_memory_equal(out[i], out[0], sizeof out[0]);
        assert_true(fabs((double)n[i].parameters[last->offset]) > 0);
    }
    for (int i = 0; i < 3; i++) free_net(&n[i]);
}

/* A table that starts as the reference's and overrides an entry, with a kernel that wants scratch. */
static size_t scratch_bytes(const psld_call *call)
{
    return (size_t)call->out.shape.n * 6 * sizeof(float);
}

static size_t one_task(const psld_call *call)
{
    (void)call;
    return 1;
}

static void run_through_scratch(const psld_call *call, size_t begin, size_t end)
{
    float *scratch = call->scratch;
    size_t bytes = scratch_bytes(call) / 6;
    (void)begin, (void)end;
    for (size_t i = 0; i < scratch_bytes(call) / sizeof *scratch; i++) assert_true(isnan(scratch[i]));
    psld_backend_reference.kernel[PSLD_OP_ACTIVATE].run(call, 0,
                                                        psld_backend_reference.kernel[PSLD_OP_ACTIVATE].tasks(call));
    memcpy(scratch, call->out.data, bytes);
}

static void overriding(void **state)
{
    (void)state;
    psld_backend mine = psld_backend_reference;
    psld_plan_options options = {&mine, 2, PSLD_PASS_ALL, 0};
    psld_graph *graph = NULL;
    psld_plan *plan = NULL;
    psld_exec *exec = NULL;
    float x[8] = {-2, -1, 0, 1, 2, 3, 4, 5}, y[8], twice[8];
    mine.name = "mine";
    mine.kernel[PSLD_OP_ACTIVATE] =
        (psld_op_kernel){"mine", one_task, run_through_scratch, scratch_bytes, 1, 0, NULL, NULL, NULL, NULL};
    assert_int_equal(psld_graph_create(&graph), PSLD_OK);
    psld_id in = psld_graph_input(graph, 2, 2, 1), a = psld_nn_activate(graph, in, PSLD_RELU);
    psld_id b = psld_nn_activate(graph, a, PSLD_RELU), sum = psld_nn_sum(graph, a, b, 1);
    psld_plan_output outputs[2] = {{sum, PSLD_NONE}, {a, PSLD_NONE}};
    assert_int_equal(psld_plan_create(graph, &options, outputs, 2, &plan), PSLD_OK);
    assert_int_equal(psld_plan_check(plan), PSLD_OK);
    assert_int_equal(psld_exec_create(plan, NULL, NULL, 1, &exec), PSLD_OK);
    psld_exec_set(exec, in, 2, PSLD_F32, x);
    psld_exec_run(exec, 2, &(psld_run){0});
    psld_exec_get(exec, a, 2, PSLD_F32, y);
    psld_exec_get(exec, sum, 2, PSLD_F32, twice);
    for (int i = 0; i < 8; i++) assert_true(y[i] == fmaxf(x[i], 0) && twice[i] == 2 * y[i]);
    psld_exec_free(exec);
    psld_plan_free(plan);
    psld_graph_free(graph);
}

/* ---- The checker ------------------------------------------------------------------------------------------------- */

static void checker(void **state)
{
    (void)state;
    static net n;
    int found = 0;
    assert_int_equal(make_net(&n, 4, 0, 0, 0), PSLD_OK);
    psld_plan *plan = n.plan;
    assert_int_equal(psld_plan_check(plan), PSLD_OK);
    assert_true(plan->arena >= plan->bound && plan->arena <= plan->bound + plan->bound / 10);
    for (size_t i = 0; i < plan->region_count;
         i++) { /* any region moved by a line, or shortened by a step, is noticed */
        psld_region was = plan->regions[i];
        plan->regions[i].offset += 16;
        assert_int_not_equal(psld_plan_check(plan), PSLD_OK);
        plan->regions[i] = was;
        plan->regions[i].last--;
        found += psld_plan_check(plan) != PSLD_OK;
        plan->regions[i] = was;
    }
    assert_true(found > (int)plan->region_count / 2); /* not those that only outlive the run */
    for (size_t i = 1; i < plan->region_count; i++) { /* two that live at once, in one place */
        psld_region was = plan->regions[i];
        if (was.first > plan->regions[0].last) continue;
        plan->regions[i].offset = plan->regions[0].offset;
        assert_int_not_equal(psld_plan_check(plan), PSLD_OK);
        plan->regions[i] = was;
    }
    assert_int_equal(psld_plan_check(plan), PSLD_OK);
    free_net(&n);
}

/* Many random lifetimes: long chains whose nodes are read again at random distances. */
static void random_graphs(void **state)
{
    (void)state;
    double worst = 1;
    for (uint64_t seed = 0; seed < 20; seed++) {
        psld_graph *graph = NULL;
        psld_plan *plan = NULL;
        psld_id ids[200];
        assert_int_equal(psld_graph_create(&graph), PSLD_OK);
        ids[0] = psld_graph_input(graph, 4, 3, 3);
        for (int i = 1; i < 200; i++) {
            double u[3];
            psld_random_uniform(seed, PSLD_FOR_DATA, 0, (uint64_t)i, 0, 3, u);
            psld_id a = ids[i - 1 - (int)(u[0] * u[0] * fmin(i, 20))], b = ids[(int)(u[1] * i)];
            if (u[2] < 0.4)
                ids[i] = psld_nn_activate(graph, a, PSLD_SILU);
            else if (u[2] < 0.7)
                ids[i] = psld_nn_slice(graph, psld_nn_concat(graph, a, b), 1 + (int)(u[1] * 3), 4);
            else
                ids[i] = psld_nn_sum(graph, a, b, 0.5);
        }
        psld_plan_output outputs[2] = {{ids[199], PSLD_NONE}, {ids[100], PSLD_NONE}};
        assert_int_equal(
            psld_plan_create(graph, &(psld_plan_options){&psld_backend_reference, 5, 0, 0}, outputs, 2, &plan),
            PSLD_OK);
        if (psld_plan_check(plan) != PSLD_OK) fail_msg("seed %d: %s", (int)seed, psld_error_text());
        worst = fmax(worst, (double)plan->arena / (double)plan->bound);
        psld_plan_free(plan);
        psld_graph_free(graph);
    }
    printf("20 random graphs: arena at most %.3f of the bound\n", worst);
    assert_true(worst < 1.15);
}

/* ---- What is left out -------------------------------------------------------------------------------------------- */

static size_t steps_for(const net *n, const psld_id *by, size_t count)
{
    psld_id gradient[8];
    psld_plan_output outputs[8];
    psld_plan_options options = {&psld_backend_reference, 1, 0, 0};
    psld_plan *plan = NULL;
    assert_int_equal(psld_gradient(n->graph, n->out, n->seed, by, count, gradient), PSLD_OK);
    for (size_t i = 0; i < count; i++) outputs[i] = (psld_plan_output){gradient[i], PSLD_NONE};
    assert_int_equal(psld_plan_create(n->graph, &options, outputs, count, &plan), PSLD_OK);
    size_t steps = plan->step_count, weights = 0;
    for (size_t i = 0; i < steps; i++) weights += plan->steps[i].op == PSLD_OP_CONV_DW;
    psld_plan_free(plan);
    return weights;
}

/* Gradients that nobody asked for are not computed, nor what only they need. */
static void pruning(void **state)
{
    (void)state;
    static net n;
    assert_int_equal(make_net(&n, 1, 0, 0, 0), PSLD_OK);
    assert_int_equal(steps_for(&n, &n.x, 1), 0);
    psld_id last = n.graph->parameters[n.graph->parameter_count - 1].id;
    assert_int_equal(steps_for(&n, &last, 1), 1);

    psld_id alone = psld_graph_input(n.graph, 3, 2, 2), zero, twice[2] = {n.x, n.x}, two[2];
    assert_int_equal(psld_gradient(n.graph, n.out, n.seed, &alone, 1, &zero), PSLD_OK);
    assert_int_equal(n.graph->nodes[zero].op, PSLD_OP_FILL);
    assert_int_equal(psld_gradient(n.graph, n.out, n.seed, twice, 2, two), PSLD_OK);
    assert_int_not_equal(two[0], two[1]);
    free_net(&n);
}

static void printing(void **state)
{
    (void)state;
    static net n;
    char *text = NULL;
    assert_int_equal(make_net(&n, 2, 0, 0, 0), PSLD_OK);
    assert_int_equal(psld_plan_text(n.plan, NULL, 0, &text), PSLD_OK);
    assert_non_null(strstr(text, "backend reference, batch 2"));
    assert_non_null(strstr(text, "ref_conv_dw"));
    assert_non_null(strstr(text, "6 x 5 x 4"));
    double conv = 2.0 * 9 * 6 * 20; /* of a 3x3 convolution to six channels, for each channel that goes in */
    double forward = conv * (3 + 6 + 6 + 6) + 2.0 * 3 * 6 + 2.0 * 12 * 2 * 20;
    assert_true(fabs(psld_plan_flops(n.plan, 2) - 2 * 3 * forward) < 1);
    psld_release(text);
    free_net(&n);
}

/* Times go into the text, and summed by kernel they are all there, the slowest first. */
static void timing(void **state)
{
    (void)state;
    static net n;
    static double seconds[1000];
    psld_kernel_time kinds[64];
    char *text = NULL;
    double sum = 0, flops = 0, all = 0;
    size_t steps = 0;
    assert_int_equal(make_net(&n, 2, 0, 0, 0), PSLD_OK);
    assert_true(n.plan->step_count <= 1000);
    for (size_t i = 0; i < n.plan->step_count; i++) all += seconds[i] = 1e-3 * (double)(1 + i % 7);
    size_t count = psld_plan_kinds(n.plan, seconds, 2, 64, kinds);
    for (size_t i = 0; i < count; i++) {
        sum += kinds[i].seconds;
        flops += kinds[i].flops;
        steps += kinds[i].steps;
        assert_true(i == 0 || kinds[i].seconds <= kinds[i - 1].seconds);
    }
    assert_int_equal(steps, n.plan->step_count);
    assert_true(fabs(2 * sum - all) < 1e-12 && fabs(flops - psld_plan_flops(n.plan, 1)) < 1e-3);
    assert_int_equal(psld_plan_kinds(n.plan, seconds, 2, 2, kinds), 2);
    assert_int_equal(psld_plan_text(n.plan, seconds, 2, &text), PSLD_OK);
    assert_non_null(strstr(text, "Gflop/s"));
    assert_non_null(strstr(text, "    7.000 "));
    psld_release(text);

    memset(seconds, 0, sizeof seconds);
    psld_exec_time(n.exec, seconds);
    psld_run run = {0};
    psld_exec_run(n.exec, 1, &run);
    for (size_t i = 0; i < n.plan->step_count; i++) assert_true(seconds[i] > 0 && seconds[i] < 60);
    free_net(&n);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void expect_failure(psld_graph *graph, const char *part)
{
    assert_int_equal(psld_graph_status(graph), PSLD_BAD_ARGUMENT);
    if (!strstr(psld_error_text(), part)) fail_msg("expected \"%s\" in \"%s\"", part, psld_error_text());
    assert_int_equal(psld_graph_input(graph, 1, 1, 1), PSLD_NONE); /* the first failure sticks */
    graph->status = PSLD_OK;
}

static void refusals(void **state)
{
    (void)state;
    psld_graph *graph = NULL;
    static const int twice[2] = {2, 2}, none[4] = {0}, no_stride[2] = {0, 1};
    assert_int_equal(psld_graph_create(&graph), PSLD_OK);
    psld_id x = psld_graph_input(graph, 3, 4, 4), y = psld_graph_input(graph, 3, 2, 2), w = weight(graph, "w", 6, 3, 5),
            v = psld_graph_input(graph, 4, 1, 1), small = weight(graph, "s", 6, 2, 3);
    float taps[1] = {1};
    int shape[2] = {6, 3};
    expect_failure((psld_nn_sum(graph, x, y, 1), graph), "sum: input 0 is 3 x 4 x 4, but input 1 is 3 x 2 x 2");
    expect_failure((psld_nn_conv(graph, x, w, once, none, 0), graph), "smaller than the kernel");
    expect_failure((psld_nn_conv(graph, x, small, once, none, 0), graph), "expect 2 channels, the input has 3");
    expect_failure((psld_nn_conv(graph, x, w, no_stride, around, 0), graph), "stride 0");
    expect_failure((psld_nn_bias(graph, x, v), graph), "expected a vector of 3");
    expect_failure((psld_nn_concat(graph, x, y), graph), "2 x 2 and 4 x 4");
    expect_failure((psld_nn_slice(graph, x, 2, 2), graph), "channels 2 to 3 of 3");
    expect_failure((psld_nn_reshape(graph, x, 7, 7, 1), graph), "as many numbers");
    expect_failure((psld_nn_dropout(graph, x, 1), graph), "rate");
    expect_failure((psld_nn_entropy(graph, x, v), graph), "one label");
    expect_failure((psld_nn_loss(graph, x, x, PSLD_NONE, 3), graph), "power");
    expect_failure((psld_nn_resample(graph, x, 2, 1, 0, taps, 0, twice), graph), "1 to 16 taps");
    expect_failure((psld_nn_positional(graph, x, 4), graph), "one time");
    expect_failure((psld_graph_parameter(graph, "w", 2, shape, PSLD_INIT_ONES, 1), graph), "two different shapes");
    expect_failure((psld_graph_input(graph, 1 << 24, 1 << 24, 4), graph), "too large or empty");

    psld_id t = psld_graph_input(graph, 1, 1, 1), e = psld_nn_positional(graph, t, 4), g;
    assert_int_equal(psld_gradient(graph, e, v, &t, 1, &g), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "positional has no gradient"));
    graph->status = PSLD_OK;

    psld_plan *plan = NULL;
    psld_plan_output wrong = {e, 0};
    psld_plan_options options = {&psld_backend_reference, 1, 0, 0};
    assert_int_equal(psld_plan_create(graph, &options, &wrong, 1, &plan), PSLD_BAD_ARGUMENT);
    assert_null(plan);
    psld_graph_free(graph);
}

/* Every allocation made to fail once: an error each time, and nothing left behind. */
static void out_of_memory(void **state)
{
    (void)state;
    static net n;
    long before = psld_alloc_live(), at = 1;
    for (;; at++) {
        psld_alloc_fail_at(at);
        psld_status status = make_net(&n, 2, PSLD_PASS_ALL, 4000, 0);
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        free_net(&n);
        assert_int_equal(psld_alloc_live(), before);
        if (!failed) break;
        assert_int_equal(status, PSLD_NO_MEMORY);
    }
    assert_true(at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_batches), cmocka_unit_test(fusion),        cmocka_unit_test(packing),
        cmocka_unit_test(overriding),      cmocka_unit_test(checker),       cmocka_unit_test(random_graphs),
        cmocka_unit_test(pruning),         cmocka_unit_test(printing),      cmocka_unit_test(timing),
        cmocka_unit_test(refusals),        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
