/* Products on the OpenCL device: every tile gives the same bits, for any batch, near to the CPU's numbers; what was tried
 * is kept. Skipped where there is no device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "kernels/backend.h"
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"
#include "opencl_test.h"

enum { TILES = 6, SMALL_TILE = 3, BATCH = 7, LEAVES = 3, RESULTS = 4 };

static psld_device *device;

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

typedef struct subject {
    char name[96];
    psld_graph *graph;
    psld_id leaf[LEAVES], seed, result[RESULTS]; /* the value, then gradients by the leaves */
    int leaves;
} subject;

static psld_id add_leaf(psld_graph *graph, psld_shape s)
{
    const int shape[] = {s.n, s.c, s.h, s.w};
    return s.n ? psld_graph_parameter(graph, "w", 4, shape, PSLD_INIT_ZEROS, 1)
               : psld_graph_input(graph, s.c, s.h, s.w);
}

static void add_gradients(subject *t)
{
    psld_id by[RESULTS];
    t->seed = add_leaf(t->graph, psld_graph_shape(t->graph, t->result[0]));
    must(psld_graph_status(t->graph));
    must(psld_gradient(t->graph, t->result[0], t->seed, t->leaf, (size_t)t->leaves, by));
    memcpy(t->result + 1, by, (size_t)t->leaves * sizeof *by);
}

static void make_conv(subject *t, int ci, int co, int h, int w, int kernel, int stride)
{
    *t = (subject){.leaves = 2};
    snprintf(t->name, sizeof t->name, "conv %d -> %d, %d x %d, taps %d, stride %d", ci, co, h, w, kernel, stride);
    must(psld_graph_create(&t->graph));
    t->leaf[0] = add_leaf(t->graph, (psld_shape){0, ci, h, w});
    t->leaf[1] = add_leaf(t->graph, (psld_shape){co, ci, kernel, kernel});
    const int strides[] = {stride, stride}, pad[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    t->result[0] = psld_nn_conv(t->graph, t->leaf[0], t->leaf[1], strides, pad, 0);
    add_gradients(t);
}

static void make_attention(subject *t, int channels, int h, int w)
{
    *t = (subject){.leaves = 3};
    snprintf(t->name, sizeof t->name, "attention, %d channels, %d x %d", channels, h, w);
    must(psld_graph_create(&t->graph));
    for (int i = 0; i < 3; i++) t->leaf[i] = add_leaf(t->graph, (psld_shape){0, channels, h, w});
    t->result[0] = psld_nn_attention(t->graph, t->leaf[0], t->leaf[1], t->leaf[2]);
    add_gradients(t);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef struct numbers {
    float *result[RESULTS];
} numbers;

static size_t count_of(const subject *t, psld_id id, int n)
{
    psld_shape s = psld_graph_shape(t->graph, id);
    return psld_shape_count(s) * (size_t)(s.n ? 1 : n);
}

static void put_leaf(const subject *t, psld_exec *exec, float *parameters, psld_id id, int n)
{
    size_t count = count_of(t, id, BATCH);
    double *x = psld_alloc(count, sizeof *x);
    psld_random_normal(11, PSLD_FOR_DATA, (uint64_t)id, 0, 0, count, x);
    if (psld_graph_shape(t->graph, id).n)
        for (size_t i = 0; i < count; i++) parameters[i] = (float)x[i];
    else
        must(psld_exec_set(exec, id, n, PSLD_F64, x));
    psld_release(x);
}

static numbers run_subject(const subject *t, const psld_backend *backend, int n)
{
    psld_plan_output outputs[RESULTS];
    psld_plan *plan;
    psld_exec *exec;
    numbers found = {{NULL}};
    psld_run run = {0};
    for (int i = 0; i <= t->leaves; i++) outputs[i] = (psld_plan_output){t->result[i], PSLD_NONE};
    must(psld_plan_create(t->graph, &(psld_plan_options){backend, BATCH, PSLD_PASS_ALL, 0}, outputs,
                          (size_t)t->leaves + 1, &plan));
    float *parameters = psld_alloc(plan->parameters + 1, sizeof *parameters);
    must(psld_exec_create(plan, parameters, NULL, 1, &exec));
    for (int i = 0; i < t->leaves; i++) put_leaf(t, exec, parameters, t->leaf[i], n);
    put_leaf(t, exec, parameters, t->seed, n);
    must(psld_exec_run(exec, n, &run));
    for (int i = 0; i <= t->leaves; i++) {
        found.result[i] = psld_alloc(count_of(t, t->result[i], n), sizeof(float));
        must(psld_exec_get(exec, t->result[i], n, PSLD_F32, found.result[i]));
    }
    assert_int_equal(psld_exec_faults(exec), 0);
    psld_exec_free(exec);
    psld_plan_free(plan);
    psld_release(parameters);
    return found;
}

static void free_numbers(numbers *x)
{
    for (int i = 0; i < RESULTS; i++) psld_release(x->result[i]);
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static void check_near(const subject *t, const numbers *found, const numbers *expected, int n, double tolerance)
{
    for (int i = 0; i <= t->leaves; i++) {
        size_t count = count_of(t, t->result[i], n);
        double most = 1e-30, error = 0;
        for (size_t j = 0; j < count; j++) {
            double d = fabs((double)found->result[i][j] - (double)expected->result[i][j]);
            most = fmax(most, fabs((double)expected->result[i][j]));
            if (!(d <= error)) error = d;
        }
        if (!(error <= tolerance * most)) fail_msg("%s: result %d is off by %g", t->name, i, error / most);
    }
}

/* The same bits; of a smaller batch, sums over samples are others. */
static void check_same(const subject *t, const numbers *a, const numbers *b, int n, int whole, const char *what)
{
    for (int i = 0; i <= t->leaves; i++) {
        if (!whole && psld_graph_shape(t->graph, t->result[i]).n) continue;
        if (memcmp(a->result[i], b->result[i], count_of(t, t->result[i], n) * sizeof(float)) != 0)
            fail_msg("%s: other bits of result %d %s", t->name, i, what);
    }
}

static numbers run_with_tile(const subject *t, const psld_backend *backend, int n, int tile)
{
    char text[8];
    snprintf(text, sizeof text, "%d", tile);
    setenv("PSLD_OPENCL_TILE", text, 1);
    numbers found = run_subject(t, backend, n);
    unsetenv("PSLD_OPENCL_TILE");
    return found;
}

/* `tiles`: bit i for tile i. Compiling them for a processor takes most of the time, so not all go with everything. */
static void check_precision(const subject *t, const char *precision, const numbers *cpu, double tolerance,
                            unsigned tiles)
{
    const psld_backend *backend;
    must(device->does->backend(device, precision, &backend));
    numbers first = run_with_tile(t, backend, BATCH, SMALL_TILE);
    check_near(t, &first, cpu, BATCH, tolerance);
    for (int tile = 0; tile < TILES; tile++) {
        if (!(tiles >> tile & 1)) continue;
        numbers other = run_with_tile(t, backend, BATCH, tile);
        check_same(t, &first, &other, BATCH, 1, "with another tile");
        free_numbers(&other);
    }
    numbers alone = run_with_tile(t, backend, 1, SMALL_TILE);
    check_same(t, &first, &alone, 1, 0, "alone");
    free_numbers(&alone);
    free_numbers(&first);
}

static void check_subject(subject *t, unsigned tiles)
{
    numbers cpu = run_subject(t, psld_backend_fastest(), BATCH);
    check_precision(t, "fp32", &cpu, 2e-5, tiles);
    check_precision(t, "fp16", &cpu, 1e-2, 1u << (TILES - 1));
    free_numbers(&cpu);
    psld_graph_free(t->graph);
}

static void convolutions(void **state)
{
    (void)state;
    static const int shapes[][6] = {
        {1, 1, 1, 1, 1, 1},   {3, 5, 33, 31, 3, 1},  {17, 3, 7, 5, 3, 1}, {5, 17, 9, 11, 3, 2},  {40, 24, 1, 1, 1, 1},
        {1, 17, 5, 33, 5, 1}, {72, 136, 4, 3, 3, 1}, {5, 3, 8, 8, 1, 2},  {65, 80, 7, 10, 3, 1}, {64, 64, 4, 8, 3, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        subject t;
        const int *s = shapes[i];
        make_conv(&t, s[0], s[1], s[2], s[3], s[4], s[5]);
        check_subject(&t, (1u << TILES) - 1);
    }
}

static void attention(void **state)
{
    (void)state;
    static const int shapes[][3] = {{1, 1, 1}, {5, 3, 7}, {17, 9, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        subject t;
        make_attention(&t, shapes[i][0], shapes[i][1], shapes[i][2]);
        check_subject(&t, 1u | 1u << (TILES - 1));
    }
}

/* Large matrices between pixels are made by parts, here of 256 rows and of less: the same numbers in less memory. */
static void attention_by_parts(void **state)
{
    (void)state;
    static const int shapes[][3] = {{5, 16, 32}, {9, 23, 25}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        subject t;
        const psld_backend *backend;
        psld_plan_output outputs[RESULTS];
        psld_plan *plan[2];
        make_attention(&t, shapes[i][0], shapes[i][1], shapes[i][2]);
        must(device->does->backend(device, NULL, &backend));
        for (int j = 0; j < RESULTS; j++) outputs[j] = (psld_plan_output){t.result[j], PSLD_NONE};
        for (int fused = 0; fused < 2; fused++)
            must(psld_plan_create(t.graph, &(psld_plan_options){backend, BATCH, fused ? PSLD_PASS_ALL : 0, 0}, outputs,
                                  RESULTS, &plan[fused]));
        for (size_t j = 0; j < plan[1]->step_count; j++) assert_int_equal(plan[1]->steps[j].op, PSLD_OP_ATTEND);
        assert_int_equal(plan[1]->step_count, 4);
        assert_true(plan[1]->arena < plan[0]->arena);
        for (int fused = 0; fused < 2; fused++) psld_plan_free(plan[fused]);
        check_subject(&t, 1u << (TILES - 1));
    }
}

/* All tiles are tried once; then the choice is found, also by a device that is opened later. */
static void tuning(void **state)
{
    (void)state;
    subject t;
    const psld_backend *backend;
    must(device->does->backend(device, NULL, &backend));
    make_conv(&t, 9, 12, 6, 5, 3, 1);
    numbers untuned = run_subject(&t, backend, BATCH);
    setenv("PSLD_OPENCL_TUNE", "1", 1);
    for (int again = 0; again < 2; again++) {
        numbers tuned = run_subject(&t, backend, BATCH);
        check_same(&t, &untuned, &tuned, BATCH, 1, "when tuned");
        free_numbers(&tuned);
        psld_device_close(device);
        device = opencl_for_test();
        must(device->does->backend(device, NULL, &backend));
    }
    unsetenv("PSLD_OPENCL_TUNE");
    free_numbers(&untuned);
    psld_graph_free(t.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(attention),
        cmocka_unit_test(attention_by_parts),
        cmocka_unit_test(tuning),
    };
    device = opencl_for_test();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    psld_device_close(device);
    return failed;
}
