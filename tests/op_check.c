#include "op_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "device/device.h"
#include "kernels/backend.h"
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"

enum { FIRST = 100, DIRECTIONS = 3 };

/* The backends that a case is run on: reference kernels, the same in double, and those of every instruction set that
 * this CPU has, exact and then with 16-bit products. */
enum { IN_FLOAT, IN_DOUBLE, FAST, BACKENDS = FAST + 16 };

/* What stands for these on another device. */
static const psld_backend *of_device[BACKENDS];

static const psld_backend *backend_at(int i)
{
    if (of_device[IN_DOUBLE]) return of_device[i];
    if (i == IN_FLOAT) return &psld_backend_reference;
    if (i == IN_DOUBLE) return &psld_backend_reference_f64;
    int sets = 0;
    while (psld_backend_number_bf16(sets)) sets++;
    i -= FAST;
    return i < sets ? psld_backend_number(i) : psld_backend_number_bf16(i - sets);
}

void check_ops_on(psld_device *device)
{
    of_device[IN_DOUBLE] = &psld_backend_reference_f64;
    assert_int_equal(device->does->backend(device, "fp32", &of_device[IN_FLOAT]), PSLD_OK);
    assert_int_equal(device->does->backend(device, "fp16", &of_device[FAST]), PSLD_OK);
}

static int checked, offered;

int checked_ops(void)
{
    return checked;
}

/* A case as a graph with its gradients; `seed` multiplies the result. */
typedef struct bench {
    const op_case *c;
    psld_graph *graph;
    psld_id in[OP_INPUTS], out, seed, gradient[OP_INPUTS]; /* PSLD_NONE: no gradient */
    psld_plan *plan[BACKENDS];
} bench;

/* What goes in and comes out, in double, [n][c][h][w]. */
typedef struct values {
    double *in[OP_INPUTS], *seed, *out, *gradient[OP_INPUTS];
} values;

/* Of the batch. */
static int samples_of(const bench *b)
{
    return b->c->samples ? b->c->samples : 3;
}

static int differentiated(const op_case *c, int i)
{
    return c->kind[i] == NORMAL_NUMBERS || c->kind[i] == PROBABILITIES;
}

static size_t count_of(psld_shape s, int n)
{
    return psld_shape_count(s) * (size_t)(s.n > 0 ? 1 : n);
}

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

static psld_id add_leaf(psld_graph *graph, psld_shape s, const char *name)
{
    int shape[4] = {s.n, s.c, s.h, s.w};
    if (s.n == 0) return psld_graph_input(graph, s.c, s.h, s.w);
    return psld_graph_parameter(graph, name, 4, shape, PSLD_INIT_ZEROS, 1);
}

static void make_bench(bench *b, const op_case *c)
{
    psld_id by[OP_INPUTS], gradient[OP_INPUTS];
    psld_plan_output outputs[2 * OP_INPUTS + 1];
    size_t count = 0;
    *b = (bench){.c = c};
    assert_int_equal(psld_graph_create(&b->graph), PSLD_OK);
    for (int i = 0; i < c->inputs; i++) b->in[i] = add_leaf(b->graph, c->in[i], (char[]){(char)('a' + i), 0});
    b->out =
        c->build ? c->build(b->graph, c, b->in) : psld_graph_add(b->graph, c->op, c->inputs, b->in, &c->a, &c->hint);
    if (psld_graph_status(b->graph) != PSLD_OK) fail_msg("%s: %s", c->name, psld_error_text());
    b->seed = add_leaf(b->graph, psld_graph_shape(b->graph, b->out), "seed");
    for (int i = 0; i < c->inputs; i++)
        if (differentiated(c, i)) by[count++] = b->in[i];
    if (count && psld_gradient(b->graph, b->out, b->seed, by, count, gradient) != PSLD_OK)
        fail_msg("%s: %s", c->name, psld_error_text());
    outputs[0] = (psld_plan_output){b->out, PSLD_NONE};
    count = 0;
    for (int i = 0; i < c->inputs; i++) {
        b->gradient[i] = differentiated(c, i) ? gradient[count++] : PSLD_NONE;
        if (b->gradient[i] == PSLD_NONE) continue;
        assert_true(psld_shape_same(psld_graph_shape(b->graph, b->gradient[i]), c->in[i]));
        outputs[count] = (psld_plan_output){b->gradient[i], PSLD_NONE};
    }
    /* In double the inputs outlive the run, so that nothing is computed in their place, and nothing is fused; in float
     * whatever may be is. */
    size_t kept = count;
    for (int j = 0; j < c->inputs; j++) outputs[++kept] = (psld_plan_output){b->in[j], PSLD_NONE};
    for (int i = 0; i < BACKENDS && backend_at(i); i++) {
        psld_plan_options options = {backend_at(i), samples_of(b), i == IN_DOUBLE ? 0 : PSLD_PASS_ALL, 0};
        size_t wanted = 1 + (i == IN_DOUBLE ? kept : count);
        assert_int_equal(psld_plan_create(b->graph, &options, outputs, wanted, &b->plan[i]), PSLD_OK);
        assert_int_equal(psld_plan_check(b->plan[i]), PSLD_OK);
    }
}

static void free_bench(bench *b)
{
    for (int i = 0; i < BACKENDS; i++) psld_plan_free(b->plan[i]);
    psld_graph_free(b->graph);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* Numbers that float has exactly, so that both types compute with the same. */
static void draw(const op_case *c, int i, size_t count, double *x)
{
    psld_random_normal(7, PSLD_FOR_DATA, (uint64_t)i, 0, 0, count, x);
    for (size_t j = 0; j < count; j++) {
        if (c->kind[i] == TIMES) x[j] = 1 / (1 + exp(-2 * x[j]));
        if (c->kind[i] == PROBABILITIES) x[j] = exp(x[j] - 1);
        if (c->kind[i] == LABELS) x[j] = (double)(j * 5 % (size_t)c->in[0].c);
        if (c->kind[i] == NORMAL_NUMBERS && fabs(x[j]) < 0.02) x[j] = 0.02; /* activations have kinks at 0 */
        x[j] = (double)(float)x[j];
    }
}

static void make_values(const bench *b, values *v)
{
    psld_shape out = psld_graph_shape(b->graph, b->out);
    for (int i = 0; i < b->c->inputs; i++) {
        size_t count = count_of(b->c->in[i], samples_of(b));
        v->in[i] = psld_alloc(count, sizeof(double));
        v->gradient[i] = psld_alloc(count, sizeof(double));
        draw(b->c, i, count, v->in[i]);
    }
    v->out = psld_alloc(count_of(out, samples_of(b)), sizeof(double));
    v->seed = psld_alloc(count_of(out, samples_of(b)), sizeof(double));
    psld_random_normal(8, PSLD_FOR_DATA, 0, 0, 0, count_of(out, samples_of(b)), v->seed);
    for (size_t j = 0; j < count_of(out, samples_of(b)); j++) v->seed[j] = (double)(float)v->seed[j];
}

static void free_values(const bench *b, values *v)
{
    for (int i = 0; i < b->c->inputs; i++) {
        psld_release(v->in[i]);
        psld_release(v->gradient[i]);
    }
    psld_release(v->out);
    psld_release(v->seed);
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *a, size_t count)
{
    double most = 1e-30;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs(a[i]));
    return most;
}

static double difference(const double *a, const double *b, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs(a[i] - b[i]);
        if (!(d <= most)) most = d; /* a NaN stays */
    }
    return most;
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void put_leaf(const bench *b, psld_exec *exec, void *parameters, psld_type type, psld_id id, size_t sample,
                     int n, const double *x)
{
    psld_shape s = psld_graph_shape(b->graph, id);
    if (s.n == 0) {
        psld_exec_set(exec, id, n, PSLD_F64, x + sample * psld_shape_count(s));
        return;
    }
    const psld_parameter *p = &b->graph->parameters[b->graph->nodes[id].parameter];
    for (size_t i = 0; i < p->count; i++) {
        if (type == PSLD_F64)
            ((double *)parameters)[p->offset + i] = x[i];
        else
            ((float *)parameters)[p->offset + i] = (float)x[i];
    }
}

static double *sample_of(double *x, psld_shape s, size_t sample)
{
    return s.n > 0 ? x : x + sample * psld_shape_count(s);
}

/* Runs samples `sample` ... of the values. Results land where those samples' are. */
static void run_bench(const bench *b, int backend, size_t sample, int n, values *v)
{
    const psld_plan *plan = b->plan[backend];
    psld_run run = {.seed = 3, .step = 5, .first = FIRST + sample, .training = b->c->training};
    psld_type type = plan->backend->type;
    void *parameters = psld_alloc(plan->parameters + 1, plan->element);
    psld_exec *exec = NULL;
    if (psld_exec_create(plan, parameters, NULL, 1, &exec) != PSLD_OK)
        fail_msg("%s: %s", b->c->name, psld_error_text());
    for (int i = 0; i < b->c->inputs; i++) put_leaf(b, exec, parameters, type, b->in[i], sample, n, v->in[i]);
    put_leaf(b, exec, parameters, type, b->seed, sample, n, v->seed);
    if (psld_exec_run(exec, n, &run) != PSLD_OK) fail_msg("%s: %s", b->c->name, psld_error_text());
    psld_shape out = psld_graph_shape(b->graph, b->out);
    psld_exec_get(exec, b->out, n, PSLD_F64, sample_of(v->out, out, sample));
    for (int i = 0; i < b->c->inputs; i++)
        if (b->gradient[i] != PSLD_NONE)
            psld_exec_get(exec, b->gradient[i], n, PSLD_F64, sample_of(v->gradient[i], b->c->in[i], sample));
    if (psld_exec_faults(exec)) fail_msg("%s: lanes behind the channels are not zero", b->c->name);
    psld_exec_free(exec);
    psld_release(parameters);
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* `slack`: how much larger errors may be than those of the reference kernels, which sum in double. */
static void check_value(const bench *b, int backend, const values *exact, const values *single, double slack)
{
    const op_case *c = b->c;
    psld_shape out = psld_graph_shape(b->graph, b->out);
    size_t count = count_of(out, samples_of(b));
    double *expected = psld_alloc(count, sizeof *expected),
           tolerance = slack * (c->tolerance > 0 ? c->tolerance : 5e-7);
    if (c->define) {
        c->define(c, samples_of(b), (double *const *)exact->in, out, expected);
        double most = largest(expected, count), error = difference(exact->out, expected, count) / most;
        if (!(error <= 1e-12)) fail_msg("%s: in double off by %g", c->name, error);
    } else {
        memcpy(expected, exact->out, count * sizeof *expected);
    }
    double error = difference(single->out, expected, count) / largest(expected, count);
    if (!(error <= tolerance))
        fail_msg("%s: %s is off by %g (%g)", c->name, backend_at(backend)->name, error, tolerance);
    psld_release(expected);
    for (int i = 0; i < c->inputs; i++) {
        size_t size = count_of(c->in[i], samples_of(b));
        if (b->gradient[i] == PSLD_NONE) continue;
        error =
            difference(single->gradient[i], exact->gradient[i], size) / fmax(largest(exact->gradient[i], size), 1e-3);
        if (!(error <= 20 * tolerance))
            fail_msg("%s: gradient %d of %s is off by %g", c->name, i, backend_at(backend)->name, error);
    }
}

/* f(x + h d) - f(x - h d) over 2 h against <gradient, d>: with h = 1e-4 it is off by about 1e-8 f''' and 1e-12 f. */
static void check_direction(const bench *b, const values *v, int i, const double *d, values *moved)
{
    size_t count = count_of(b->c->in[i], samples_of(b)),
           results = count_of(psld_graph_shape(b->graph, b->out), samples_of(b));
    double h = 1e-4, f[2];
    for (int side = 0; side < 2; side++) {
        for (size_t j = 0; j < count; j++) moved->in[i][j] = v->in[i][j] + (side ? h : -h) * d[j];
        run_bench(b, IN_DOUBLE, 0, samples_of(b), moved);
        f[side] = dot(moved->out, v->seed, results);
    }
    memcpy(moved->in[i], v->in[i], count * sizeof(double));
    double found = dot(v->gradient[i], d, count), expected = (f[1] - f[0]) / (2 * h);
    double scale = sqrt(dot(v->gradient[i], v->gradient[i], count) * dot(d, d, count)) + 1e-3;
    if (!(fabs(found - expected) <= 1e-5 * scale))
        fail_msg("%s: gradient by input %d: %.10g, differences give %.10g", b->c->name, i, found, expected);
}

static void check_differences(const bench *b, const values *v)
{
    values moved;
    make_values(b, &moved);
    for (int i = 0; i < b->c->inputs; i++) {
        size_t count = count_of(b->c->in[i], samples_of(b));
        double *d = psld_alloc(count, sizeof *d);
        for (int direction = 0; b->gradient[i] != PSLD_NONE && direction < DIRECTIONS; direction++) {
            psld_random_normal(9, PSLD_FOR_DATA, (uint64_t)i, (uint64_t)direction, 0, count, d);
            check_direction(b, v, i, d, &moved);
        }
        psld_release(d);
    }
    free_values(b, &moved);
}

static void check_adjoint(const bench *b, const values *v)
{
    size_t results = count_of(psld_graph_shape(b->graph, b->out), samples_of(b));
    double left = dot(v->out, v->seed, results);
    for (int i = 0; i < b->c->inputs; i++) {
        size_t count = count_of(b->c->in[i], samples_of(b));
        if (!(b->c->linear >> i & 1)) continue;
        double right = dot(v->in[i], v->gradient[i], count), scale = fabs(left) + (double)results;
        if (!(fabs(left - right) <= 1e-12 * scale))
            fail_msg("%s: <K x, y> = %.15g, but <x, K' y> = %.15g by input %d", b->c->name, left, right, i);
    }
}

static void check_same(const bench *b, const values *v, const values *other, const char *what, int with_dense)
{
    psld_shape out = psld_graph_shape(b->graph, b->out);
    if ((out.n == 0 || with_dense) && memcmp(v->out, other->out, count_of(out, samples_of(b)) * sizeof(double)) != 0)
        fail_msg("%s: other bits %s", b->c->name, what);
    for (int i = 0; i < b->c->inputs; i++)
        if (b->gradient[i] != PSLD_NONE && (b->c->in[i].n == 0 || with_dense) &&
            memcmp(v->gradient[i], other->gradient[i], count_of(b->c->in[i], samples_of(b)) * sizeof(double)) != 0)
            fail_msg("%s: other bits of gradient %d %s", b->c->name, i, what);
}

/* Results with a dense part sum over samples: these alone depend on who is in the batch. */
static void check_bits(const bench *b, int backend, const values *v)
{
    values other;
    make_values(b, &other);
    int dense_result = psld_graph_shape(b->graph, b->out).n > 0;
    for (size_t sample = 0; !dense_result && sample < (size_t)samples_of(b); sample++)
        run_bench(b, backend, sample, 1, &other);
    if (!dense_result) check_same(b, v, &other, "alone", 0);
    for (int threads = 1; threads <= (of_device[backend] ? 1 : 3); threads++) {
        char what[32];
        snprintf(what, sizeof what, "with %d threads", threads);
        psld_threads_set(threads);
        run_bench(b, backend, 0, samples_of(b), &other);
        check_same(b, v, &other, what, 1);
    }
    psld_threads_set(0);
    free_values(b, &other);
}

/* ---- Speed, for whoever asks (PSLD_TIME_OPS=1): nothing depends on it -------------------------------------------- */

/* Microseconds of a run of the case with its gradients, the best of several. */
static double time_plan(const bench *b, int backend, const values *v)
{
    const psld_plan *plan = b->plan[backend];
    psld_run run = {.training = b->c->training};
    void *parameters = psld_alloc(plan->parameters + 1, plan->element);
    psld_exec *exec = NULL;
    double best = 1e30;
    assert_int_equal(psld_exec_create(plan, parameters, NULL, 0, &exec), PSLD_OK);
    for (int r = 0; r < 5; r++) {
        struct timespec began, ended;
        for (int i = 0; i < b->c->inputs; i++)
            put_leaf(b, exec, parameters, plan->backend->type, b->in[i], 0, samples_of(b), v->in[i]);
        clock_gettime(CLOCK_MONOTONIC, &began);
        psld_exec_run(exec, samples_of(b), &run);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        best = fmin(best, (double)(ended.tv_sec - began.tv_sec) * 1e6 + (double)(ended.tv_nsec - began.tv_nsec) * 1e-3);
    }
    psld_exec_free(exec);
    psld_release(parameters);
    return best;
}

static void print_times(const bench *b, const values *v)
{
    printf("%-60s", b->c->name);
    for (int i = 0; i < BACKENDS && backend_at(i); i++)
        if (i != IN_DOUBLE) printf("  %s %9.1f us", backend_at(i)->name, time_plan(b, i, v));
    printf("\n");
}

/* Sums in float, and Winograd's transforms lose a digit. With 16-bit products a factor has 8 bits (2e-3 at most), and
 * errors of many terms hardly add up; numbers that are kept in half precision have 11. */
static double slack_of(const char *precision)
{
    return strcmp(precision, "bf16") == 0 ? 5e4 : strcmp(precision, "fp16") == 0 ? 4e3 : 20;
}

/* PSLD_OPS_EVERY=N: each Nth case alone, and once, for who takes long (make oclgrind). 0: all of each. */
static int part_of_cases(void)
{
    const char *every = getenv("PSLD_OPS_EVERY");
    return every ? atoi(every) : 0;
}

static void check_fast(const bench *b, int backend, const values *exact)
{
    values fast;
    make_values(b, &fast);
    run_bench(b, backend, 0, samples_of(b), &fast);
    check_value(b, backend, exact, &fast, slack_of(backend_at(backend)->precision));
    if (!part_of_cases()) check_bits(b, backend, &fast);
    free_values(b, &fast);
}

void check_op(const op_case *c)
{
    bench b;
    values exact, single;
    int part = part_of_cases();
    if (part && offered++ % part != 0) return;
    make_bench(&b, c);
    make_values(&b, &exact);
    make_values(&b, &single);
    run_bench(&b, IN_DOUBLE, 0, samples_of(&b), &exact);
    run_bench(&b, IN_FLOAT, 0, samples_of(&b), &single);
    check_value(&b, IN_FLOAT, &exact, &single, of_device[IN_FLOAT] ? 20 : 1);
    if (!of_device[IN_DOUBLE]) check_differences(&b, &exact);
    check_adjoint(&b, &exact);
    if (!part) check_bits(&b, IN_FLOAT, &single);
    for (int i = FAST; i < BACKENDS && backend_at(i); i++) check_fast(&b, i, &exact);
    if (getenv("PSLD_TIME_OPS")) print_times(&b, &exact);
    free_values(&b, &exact);
    free_values(&b, &single);
    free_bench(&b);
    checked++;
}
