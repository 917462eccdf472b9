/* The loss of consistency against a direct computation, its parts, and its gradient. */
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
#include "model/networks/network_plan.h"
#include "nn/exec.h"
#include "nn/ops.h"
#include "sample/collapsed_frame.h"
#include "sample/sources/denoiser.h"
#include "train/objective.h"

enum { N = 24, DIM = 3, STAGES = 4 };

/* ---- A network and a micro-batch for it -------------------------------------------------------------------------- */

typedef struct subject {
    psld_model *model;
    psld_perturbation how;
    psld_microbatch batch;
} subject;

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static subject make_subject(const char *process, int predicts_data, uint64_t step, double dropout)
{
    char text[512];
    subject s;
    psld_yaml *yaml;
    snprintf(
        text, sizeof text,
        "process: %s\ndata: {size: 1, channels: %d}\nmodel: {name: mlp, nf: 16, num_res_blocks: 1, dropout: %g%s}\n"
        "train: {loss: consistency, deviation: 0.7}\n",
        process, DIM, dropout, predicts_data ? ", predicts: data, data_deviation: 0.7" : "");
    must(psld_yaml_parse(text, strlen(text), "test", &yaml));
    must(psld_model_from_config(yaml, 5, &s.model));
    psld_yaml_free(yaml);
    s.how = (psld_perturbation){.recipe = s.model->recipe,
                                .dim = DIM,
                                .t_min = 1e-5,
                                .by_noise = 1,
                                .noise_middle = 0.5,
                                .noise_spread = 2,
                                .data_deviation = predicts_data ? 0.7 : 0,
                                .seed = 3,
                                .consistency = {0.7, 2, STAGES, 0.01, N, STAGES}};
    must(psld_perturbation_tabulate(&s.how));
    size_t k = (size_t)s.model->recipe->spec.k, outputs = psld_objective_variables(s.model);
    psld_microbatch_sizes sizes = {
        .x = DIM, .z = k * DIM, .target = outputs * DIM, .metric = outputs * outputs, .out = outputs * DIM, .other = 1};
    must(psld_microbatch_allocate(&s.batch, N, &sizes));
    s.batch.n = N;
    s.batch.first = step * N;
    for (size_t i = 0; i < N * DIM; i++) s.batch.x[i] = (float)sin(1.7 * (double)i);
    for (size_t i = 0; i < N; i++) s.batch.weight[i] = 1;
    return s;
}

static void free_subject(subject *s)
{
    psld_microbatch_clear(&s->batch);
    psld_model_free(s->model);
}

/* Fills the micro-batch and looks at the network; what it says is in out and other. */
static void run_subject(subject *s)
{
    psld_microbatch *b = &s->batch;
    must(psld_objective_consistency.fill(&s->how, PSLD_PHASE_TRAIN, b));
    must(psld_model_run(s->model, N, b->other_z, b->other_time, NULL, b->other));
    must(psld_objective_consistency.aim(&s->how, PSLD_PHASE_TRAIN, b));
    must(psld_model_run(s->model, N, b->z, b->time, NULL, b->out));
    psld_objective_consistency.judge(NULL, s->model, b);
}

/* ---- Both sides -------------------------------------------------------------------------------------------------- */

/* What is known of one side of a sample by the public way from a state to clean data. */
typedef struct side {
    double sigma, clean[DIM], direction[DIM], rest[PSLD_MAX_K][DIM]; /* y = x_0 + sigma direction */
} side;

/* Of a network of eps: its input is the state. */
static side side_of_state(const subject *s, double t, const float *x, const float *z, const float *out)
{
    side found = {0};
    psld_collapsed_frame frame;
    psld_denoiser denoiser;
    size_t k = (size_t)s->how.recipe->spec.k, outputs = (size_t)s->how.recipe->predicted;
    double wide[PSLD_MAX_K * DIM], eps[PSLD_MAX_K * DIM];
    must(psld_collapsed_frame_plan(s->how.recipe, 0, t, &frame));
    must(psld_denoiser_plan(s->how.recipe, 0, t, &denoiser));
    for (size_t i = 0; i < k * DIM; i++) wide[i] = (double)z[i];
    for (size_t i = 0; i < outputs * DIM; i++) eps[i] = (double)out[i];
    psld_denoiser_apply(&denoiser, 1, DIM, wide, eps, found.clean);
    found.sigma = frame.sigma;
    for (size_t j = 0; j < DIM; j++)
        for (size_t a = 0; a < k; a++) {
            double sum = 0;
            for (size_t b = 0; b < k; b++) sum += frame.inverse[a * k + b] * wide[b * DIM + j];
            if (a == 0)
                found.direction[j] = sum - (double)x[j] / frame.sigma;
            else
                found.rest[a][j] = sum;
        }
    return found;
}

/* Of a network of clean data, whose time says the noise: time = sigma / (sigma + deviation). */
static side side_of_clean(float time, const float *x, const float *u, const float *out)
{
    const double d = 0.7;
    side found = {.sigma = d * (double)time / (1 - (double)time)};
    double root = hypot(found.sigma, d);
    for (size_t j = 0; j < DIM; j++) {
        double y = root * (double)u[j];
        found.direction[j] = (y - (double)x[j]) / found.sigma;
        found.clean[j] = (d * d * (double)u[j] + found.sigma * d * (double)out[j]) / root;
    }
    return found;
}

static int is_at_data(const subject *s, uint64_t stage, double sigma, double *less)
{
    const psld_consistency *c = &s->how.consistency;
    double sigmoid = 1 / (1 + exp(sigma / (2 * c->deviation)));
    *less = sigma * (1 - pow(c->q, -(double)(stage + 1)) * (1 + 8 * sigmoid));
    return !(*less > exp(s->how.noise_at[0]));
}

/* Returns whether r is 0. */
static int check_sample(const subject *s, uint64_t stage, int predicts_data, size_t i)
{
    const psld_microbatch *b = &s->batch;
    size_t rows = predicts_data ? 1 : (size_t)s->how.recipe->spec.k, outputs = psld_objective_variables(s->model);
    const float *x = b->x + i * DIM, *z = b->z + i * rows * DIM, *other_z = b->other_z + i * rows * DIM;
    const float *out = b->out + i * outputs * DIM, *other = b->other + i * outputs * DIM;
    side more = predicts_data ? side_of_clean(b->time[i], x, z, out) : side_of_state(s, b->t[i], x, z, out);
    double wanted, square = 0, soft = s->how.consistency.huber;
    int at_data = is_at_data(s, stage, more.sigma, &wanted);
    side less = {0};
    if (!at_data)
        less = predicts_data ? side_of_clean(b->other_time[i], x, other_z, other)
                             : side_of_state(s, (double)b->other_time[i], x, other_z, other);
    for (size_t j = 0; j < DIM; j++) {
        double difference = more.clean[j] - (at_data ? (double)x[j] : less.clean[j]);
        square += difference * difference / DIM;
        if (at_data) continue;
        assert_true(fabs(more.direction[j] - less.direction[j]) < 2e-3 * (1 + 1e-3 / less.sigma));
        for (size_t a = 1; a < rows; a++) assert_true(fabs(more.rest[a][j] - less.rest[a][j]) < 2e-3);
    }
    if (!at_data && !(fabs(less.sigma / wanted - 1) < 2e-3))
        fail_msg("%s, clean %d, sample %zu at sigma %g: r %g instead of %g", s->how.recipe->spec.name, predicts_data, i,
                 more.sigma, less.sigma, wanted);
    double loss = (sqrt(square + soft * soft) - soft) / (more.sigma - less.sigma);
    if (!(fabs(loss - (double)b->loss[i]) < 2e-3 * loss + 1e-4))
        fail_msg("%s, sample %zu at sigma %g: loss %g instead of %g", s->how.recipe->spec.name, i, more.sigma,
                 (double)b->loss[i], loss);
    return at_data;
}

static void loss_is_that_of_its_definition(void **state)
{
    (void)state;
    static const char *const processes[] = {"vp", "cld", "psld gamma=0.02", "told"};
    int at_data[STAGES] = {0};
    for (int p = 0; p < 4; p++)
        for (int predicts_data = 0; predicts_data < 2; predicts_data++)
            for (uint64_t stage = 0; stage < STAGES; stage++) {
                subject s = make_subject(processes[p], predicts_data, stage, 0); /* a stage for each step */
                run_subject(&s);
                for (size_t i = 0; i < N; i++) at_data[stage] += check_sample(&s, stage, predicts_data, i);
                free_subject(&s);
            }
    assert_true(at_data[0] > at_data[1] && at_data[1] > at_data[2] && at_data[2] >= at_data[3]);
}

/* What the trainer says of its loss, and of the other side, is the same. */
static void trainer_agrees(void **state)
{
    (void)state;
    for (int predicts_data = 0; predicts_data < 2; predicts_data++) {
        subject s = make_subject("psld gamma=0.02", predicts_data, 3, 0);
        psld_trainer_options options;
        psld_trainer *trainer;
        float loss[N], other[N * DIM * 2];
        size_t outputs = psld_objective_variables(s.model);
        run_subject(&s);
        memcpy(loss, s.batch.loss, sizeof loss);
        memcpy(other, s.batch.other, N * DIM * outputs * sizeof *other);
        psld_trainer_defaults(&options);
        options.backend = s.model->backend;
        options.batch = N;
        psld_objective_consistency.set_options(NULL, s.model, &options);
        must(psld_trainer_create(s.model->network, &options, &trainer));
        psld_trainer_look(trainer, &s.batch);
        for (size_t i = 0; i < N * DIM * outputs; i++)
            assert_true(fabs((double)s.batch.other[i] - (double)other[i]) < 1e-5);
        psld_trainer_add(trainer, &s.batch);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs((double)s.batch.loss[i] - (double)loss[i]) < 1e-4 * (1 + fabs((double)loss[i])));
        psld_trainer_free(trainer);
        free_subject(&s);
    }
}

/* With dropout both sides have the same mask: of the same state they say the same. */
static void sides_share_their_dropout(void **state)
{
    (void)state;
    subject s = make_subject("cld", 1, 3, 0.5);
    psld_trainer_options options;
    psld_trainer *trainer;
    float different = 0;
    for (size_t i = 0; i < s.model->network->graph->parameter_elements; i++)
        s.model->network->weights[i] += (float)(0.3 * sin(2.3 * (double)i));
    run_subject(&s);
    memcpy(s.batch.other_z, s.batch.z, N * DIM * sizeof *s.batch.z);
    memcpy(s.batch.other_time, s.batch.time, N * sizeof *s.batch.time);
    psld_trainer_defaults(&options);
    options.backend = s.model->backend;
    options.batch = N;
    psld_objective_consistency.set_options(NULL, s.model, &options);
    must(psld_trainer_create(s.model->network, &options, &trainer));
    must(psld_trainer_look(trainer, &s.batch));
    memcpy(s.batch.target, s.batch.other, N * DIM * sizeof *s.batch.other);
    must(psld_trainer_add(trainer, &s.batch));
    for (size_t i = 0; i < N; i++) assert_true(fabs((double)s.batch.loss[i]) < 1e-5);
    must(psld_model_run(s.model, N, s.batch.z, s.batch.time, NULL, s.batch.out));
    for (size_t i = 0; i < N * DIM; i++) different = fmaxf(different, fabsf(s.batch.out[i] - s.batch.other[i]));
    assert_true(different > 0.01f); /* there was a mask */
    psld_trainer_free(trainer);
    free_subject(&s);
}

/* ---- The gradient ------------------------------------------------------------------------------------------------ */

/* The loss of a micro-batch in double, by the reference kernels, and its gradient by the weights. */
typedef struct plan {
    psld_network_plan network;
    psld_id target, metric, soft, loss, weight;
    psld_exec *exec;
    double *weights, *gradients;
    size_t count;
} plan;

static plan make_plan(const subject *s)
{
    plan p;
    int outputs = (int)psld_objective_variables(s->model);
    must(psld_network_plan_begin(&s->model->network->config, 1, &p.network));
    psld_graph *graph = p.network.graph;
    psld_shape shape = psld_graph_shape(graph, p.network.out);
    p.target = psld_graph_input(graph, shape.c, shape.h, shape.w);
    p.metric = psld_graph_input(graph, outputs * outputs, 1, 1);
    p.soft = psld_graph_input(graph, 1, 1, 1);
    p.loss = psld_nn_root(graph, psld_nn_loss(graph, p.network.out, p.target, p.metric, 2), p.soft);
    p.weight = psld_graph_input(graph, 1, 1, 1);
    psld_network_plan_options how = {.backend = &psld_backend_reference_f64,
                                     .batch = N,
                                     .want = PSLD_WANT_GRADIENT_PARAMETERS,
                                     .objective = p.loss,
                                     .weight = p.weight,
                                     .keeps_value = 1};
    must(psld_network_plan_finish(&p.network, &how));
    p.count = s->model->network->graph->parameter_elements;
    p.weights = calloc(p.count, sizeof *p.weights);
    p.gradients = calloc(p.count, sizeof *p.gradients);
    for (size_t i = 0; i < p.count; i++) p.weights[i] = (double)s->model->network->weights[i];
    must(psld_exec_create(p.network.plan, p.weights, p.gradients, 0, &p.exec));
    return p;
}

static double run_plan(plan *p, const psld_microbatch *b)
{
    double loss[N], sum = 0;
    psld_run run = {.training = 1};
    psld_exec_set(p->exec, p->network.inputs.z, N, PSLD_F32, b->z);
    psld_exec_set(p->exec, p->network.inputs.t, N, PSLD_F32, b->time);
    psld_exec_set(p->exec, p->target, N, PSLD_F32, b->target);
    psld_exec_set(p->exec, p->metric, N, PSLD_F32, b->metric);
    psld_exec_set(p->exec, p->soft, N, PSLD_F32, b->soft);
    psld_exec_set(p->exec, p->weight, N, PSLD_F32, b->weight);
    psld_exec_run(p->exec, N, &run);
    psld_exec_get(p->exec, p->loss, N, PSLD_F64, loss);
    for (int i = 0; i < N; i++) sum += loss[i];
    return sum;
}

/* The target is fixed: what the network says at less noise has no gradient. */
static void check_gradient(double huber)
{
    subject s = make_subject("cld", 0, 2, 0);
    s.how.consistency.huber = huber;
    run_subject(&s);
    plan p = make_plan(&s);
    double *gradient = malloc(p.count * sizeof *gradient), *direction = malloc(p.count * sizeof *direction);
    double value = run_plan(&p, &s.batch), reported = 0, wanted = 0;
    for (int i = 0; i < N; i++) reported += (double)s.batch.loss[i];
    assert_true(fabs(value / reported - 1) < 1e-5);
    memcpy(gradient, p.gradients, p.count * sizeof *gradient);
    psld_random_normal(9, PSLD_FOR_PROBE, 0, 0, 0, p.count, direction);
    const double h = 1e-6;
    double ends[2];
    for (size_t i = 0; i < p.count; i++) wanted += gradient[i] * direction[i];
    for (int end = 0; end < 2; end++) {
        for (size_t i = 0; i < p.count; i++)
            p.weights[i] = (double)s.model->network->weights[i] + (end ? h : -h) * direction[i];
        psld_exec_changed(p.exec);
        ends[end] = run_plan(&p, &s.batch);
    }
    double found = (ends[1] - ends[0]) / (2 * h);
    printf("gradient along a direction: %.10g, by differences %.10g\n", wanted, found);
    assert_true(fabs(wanted) > 1e-3 && fabs(found / wanted - 1) < 1e-6);
    free(gradient);
    free(direction);
    free(p.weights);
    free(p.gradients);
    psld_exec_free(p.exec);
    psld_network_plan_clear(&p.network);
    free_subject(&s);
}

static void gradient_is_that_of_differences(void **state)
{
    (void)state;
    check_gradient(0.01);
    check_gradient(0);
}

/* ---- Less noise -------------------------------------------------------------------------------------------------- */

static void sides_come_closer(void **state)
{
    (void)state;
    psld_consistency c = {.deviation = 0.5, .q = 2, .stages = 8};
    for (double sigma = 0.01; sigma < 300; sigma *= 1.3) {
        double before = 0;
        for (int stage = 0; stage < 12; stage++) {
            double less = psld_consistency_less(&c, stage, sigma);
            assert_true(less >= before && less < sigma);
            before = less;
        }
        assert_true(before > 0.99 * sigma - 1e-12 - 0.002 * sigma);
    }
    assert_true(psld_consistency_less(&c, 0, 1) == 0);
    assert_true(fabs(psld_consistency_less(&c, 7, 80) - 80 * (1 - (1 + 8 / (1 + exp(80.0))) / 256)) < 1e-9);
    c.deviation = 5; /* noise is measured by it */
    psld_consistency small = {.deviation = 0.5, .q = 2};
    assert_true(fabs(psld_consistency_less(&c, 4, 20) - 10 * psld_consistency_less(&small, 4, 2)) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_is_that_of_its_definition),
        cmocka_unit_test(trainer_agrees),
        cmocka_unit_test(sides_share_their_dropout),
        cmocka_unit_test(gradient_is_that_of_differences),
        cmocka_unit_test(sides_come_closer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
