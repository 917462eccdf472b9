/* A recipe that is learned with its network: the gradient of the training loss by D, Q, masses and beta against finite
 * differences in double, through a real network; its parts over micro-batches; the law of times by the trace of the metric,
 * under which the bound has the same mean as under any other. */
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
#include "process/learned.h"
#include "sample/bound.h"
#include "starve.h"
#include "train/learner.h"
#include "train/objective.h"
#include "train/trainer.h"

enum { DIM = 3, N = 6, MOST = N * DIM * PSLD_MAX_K };

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

typedef struct subject {
    psld_model *model;
    psld_perturbation how;
    psld_microbatch batch;
    psld_runner *runner; /* the network in double */
    psld_learner *learner;
    psld_learned learned;
    double parameters[PSLD_LEARNED_SIZE];
} subject;

static subject begin_subject(const char *process, unsigned what, double cell)
{
    subject s = {0};
    char text[512];
    psld_yaml *yaml;
    snprintf(text, sizeof text,
             "process: %s\ndata: {size: 1, channels: %d}\nmodel: {name: mlp, nf: 16, num_res_blocks: 1}\n"
             "train: {loss: elbo}\n",
             process, DIM);
    must(psld_yaml_parse(text, strlen(text), "test", &yaml));
    must(psld_model_from_config(yaml, 5, &s.model));
    psld_yaml_free(yaml);
    size_t count = s.model->network->graph->parameter_elements;
    float *weights = s.model->network->weights;
    for (size_t i = 0; i < count; i++) weights[i] += 0.1f * (float)sin(1.3 * (double)i);
    s.how = (psld_perturbation){.recipe = s.model->recipe,
                                .dim = DIM,
                                .t_min = 1e-3,
                                .by_trace = 1,
                                .weighting = PSLD_WEIGH_LIKELIHOOD,
                                .cell = cell,
                                .seed = 3};
    must(psld_learned_begin(s.model->recipe, what, 1, &s.learned, s.parameters));
    must(psld_learner_create(s.model->recipe, what, N, &s.learner));
    must(psld_perturbation_tabulate_trace(&s.how));
    size_t k = (size_t)s.model->recipe->spec.k, outputs = psld_objective_variables(s.model);
    psld_microbatch_sizes sizes = {.x = DIM,
                                   .z = k * DIM,
                                   .target = outputs * DIM,
                                   .metric = outputs * outputs,
                                   .out = outputs * DIM,
                                   .base = 1,
                                   .moves = 1};
    must(psld_microbatch_allocate(&s.batch, N, &sizes));
    s.batch.n = N;
    s.batch.last = 1;
    for (size_t i = 0; i < N * DIM; i++) s.batch.x[i] = (float)sin(1.7 * (double)i);
    for (size_t i = 0; i < N; i++) s.batch.weight[i] = 1 / (float)N;
    psld_runner_options options = {&psld_backend_reference_f64, N, PSLD_WANT_GRADIENT_Z, 0, 0};
    must(psld_runner_open(s.model->network, &options, &s.runner));
    must(psld_objective_elbo.fill(&s.how, PSLD_PHASE_TRAIN, &s.batch));
    return s;
}

static void end_subject(subject *s)
{
    psld_runner_free(s->runner);
    psld_learner_free(s->learner);
    psld_microbatch_clear(&s->batch);
    psld_model_free(s->model);
}

/* The network in double at the states that the micro-batch has under a recipe. `weight` and `by_z`: NULL or as in
 * psld_runner_data. */
static void run_double(const subject *s, const psld_recipe *recipe, const double *weight, double *out, double *by_z)
{
    double z[MOST], time[N], zeros[MOST] = {0}, ignored[MOST];
    size_t k = (size_t)recipe->spec.k;
    for (size_t i = 0; i < N; i++) {
        psld_bound_time at;
        must(psld_bound_time_plan(recipe, s->batch.t[i], &at));
        time[i] = (double)s->batch.time[i];
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < DIM; j++) {
                double sum = at.mu[a] * (double)s->batch.x[i * DIM + j];
                for (size_t b = 0; b < k; b++)
                    sum += at.factor[a * k + b] * (double)s->batch.eps[(i * k + b) * DIM + j];
                z[(i * k + a) * DIM + j] = sum;
            }
    }
    psld_runner_data data = {.type = PSLD_F64, .z = z, .t = time, .grad_out = weight ? weight : zeros};
    data.out = out;
    data.grad_z = by_z ? by_z : ignored;
    must(psld_runner_run(s->runner, N, &data));
}

/* The training loss under a recipe, times and their weights being those of the subject's own; with the gradient by what the
 * network says where that is wanted. r' M r is written out. */
static double loss_in_double(const subject *s, const psld_recipe *recipe, double *by_out)
{
    double out[MOST], square = 0, loss = 0;
    size_t k = (size_t)recipe->spec.k, outputs = (size_t)recipe->predicted;
    psld_bound ends = {0};
    run_double(s, recipe, NULL, out, NULL);
    for (size_t i = 0; i < N; i++) {
        double t = s->batch.t[i], inverse[PSLD_MATRIX_SIZE], half[PSLD_MATRIX_SIZE], M[PSLD_MATRIX_SIZE];
        double scale = psld_perturbation_time_weight(&s->how, t) * psld_elbo_scale(&s->how) / N;
        must(psld_recipe_factor(recipe, t, PSLD_HSM, NULL, inverse));
        psld_matrix_multiply((int)k, inverse, recipe->spec.D, half);
        psld_matrix_multiply_t((int)k, half, inverse, M);
        for (size_t j = 0; j < DIM; j++) {
            double r[PSLD_MAX_K] = {0}, x = (double)s->batch.x[i * DIM + j];
            square += x * x / N;
            for (size_t b = 0; b < outputs; b++) {
                size_t a = (size_t)recipe->variable[b];
                r[a] = out[(i * outputs + b) * DIM + j] - (double)s->batch.eps[(i * k + a) * DIM + j];
            }
            for (size_t a = 0; a < k; a++)
                for (size_t b = 0; b < k; b++) loss += scale * psld_beta(recipe, t) * r[a] * M[a * k + b] * r[b];
            for (size_t b = 0; by_out && b < outputs; b++) {
                double sum = 0;
                for (size_t l = 0; l < k; l++) sum += M[(size_t)recipe->variable[b] * k + l] * r[l];
                by_out[(i * outputs + b) * DIM + j] = 2 * scale * psld_beta(recipe, t) * sum;
            }
        }
    }
    psld_bound_data data = {DIM, square, s->how.cell};
    must(psld_bound_add_ends(recipe, s->how.t_min, &data, -psld_elbo_unit(&s->how), &ends));
    return loss + ends.value;
}

static double loss_at(const subject *s, const double *parameters)
{
    psld_recipe_spec spec;
    psld_recipe *recipe;
    psld_learned_spec(&s->learned, parameters, &spec);
    must(psld_recipe_create(&spec, &recipe));
    double loss = loss_in_double(s, recipe, NULL);
    psld_recipe_free(recipe);
    return loss;
}

static double difference(subject *s, int p, double h)
{
    static const double place[4] = {-2, -1, 1, 2}, weight[4] = {1, -8, 8, -1};
    double before = s->parameters[p], sum = 0;
    for (int i = 0; i < 4; i++) {
        s->parameters[p] = before + place[i] * h;
        sum += weight[i] * loss_at(s, s->parameters) / (12 * h);
    }
    s->parameters[p] = before;
    return sum;
}

static void store(const double *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static double worst_of(const subject *s, const double *gradient, const double *expected)
{
    double largest = 0, worst = 0;
    for (int p = 0; p < s->learned.count; p++) largest = fmax(largest, fabs(expected[p]));
    for (int p = 0; p < s->learned.count; p++) worst = fmax(worst, fabs(gradient[p] - expected[p]) / largest);
    return worst;
}

/* What the learner makes of the network in double, and of a trainer's float. */
static void check_gradient(const char *process, unsigned what, double cell)
{
    subject s = begin_subject(process, what, cell);
    psld_microbatch *b = &s.batch;
    double out[MOST], by_out[MOST], by_z[MOST], gradient[PSLD_LEARNED_SIZE], expected[PSLD_LEARNED_SIZE], norm;
    size_t k = (size_t)s.model->recipe->spec.k, outputs = (size_t)s.model->recipe->predicted;
    for (int p = 0; p < s.learned.count; p++) expected[p] = difference(&s, p, 3e-5);
    loss_in_double(&s, s.model->recipe, by_out);
    run_double(&s, s.model->recipe, by_out, out, by_z);
    store(out, N * outputs * DIM, b->out);
    store(by_z, N * k * DIM, b->by_z);
    psld_learner_begin(s.learner);
    must(psld_learner_add(s.learner, &s.how, b));
    must(psld_learner_finish(s.learner, &s.how, gradient, &norm));
    double in_double = worst_of(&s, gradient, expected);

    psld_trainer_options options;
    psld_trainer *trainer;
    psld_trainer_defaults(&options);
    options.backend = s.model->backend;
    options.batch = N;
    options.by_z = 1;
    psld_objective_elbo.set_options(NULL, s.model, &options);
    must(psld_trainer_create(s.model->network, &options, &trainer));
    must(psld_trainer_add(trainer, b));
    psld_objective_elbo.judge(NULL, s.model, b);
    double loss = 0;
    for (size_t i = 0; i < N; i++) loss += (double)b->loss[i] / N;
    psld_learner_begin(s.learner);
    must(psld_learner_add(s.learner, &s.how, b));
    must(psld_learner_finish(s.learner, &s.how, gradient, &norm));
    double in_float = worst_of(&s, gradient, expected), exact = loss_in_double(&s, s.model->recipe, NULL);
    printf("%-42s %2d parameters: worst %.1e in double, %.1e in float; loss %.6f, off %.1e\n", process, s.learned.count,
           in_double, in_float, exact, loss - exact);
    assert_true(in_double < 1e-6);
    assert_true(in_float < 1e-3);
    assert_true(fabs(loss - exact) < 1e-4 * fmax(1, fabs(exact)));
    psld_trainer_free(trainer);
    end_subject(&s);
}

static void gradients(void **state)
{
    (void)state;
    const unsigned D = PSLD_LEARN_D, Q = PSLD_LEARN_Q, mass = PSLD_LEARN_MASS, beta = PSLD_LEARN_BETA;
    check_gradient("vp", D | beta, 2.0 / 255);
    check_gradient("psld gamma=0.25 stabiliser=0", D | Q | beta, 0);
    check_gradient("psld gamma=0.25 stabiliser=0", D | Q | beta, 2.0 / 255);
    check_gradient("psld gamma=0.02 beta=[1,9] stabiliser=0", mass | beta, 2.0 / 255);
    check_gradient("cld stabiliser=0", D | Q | mass | beta, 2.0 / 255);
    check_gradient("cld stabiliser=0", Q | mass, 0);
    check_gradient("told stabiliser=0", D | Q | beta, 0);
    check_gradient("psld gamma=0.5 factor=upper stabiliser=0", D | mass | beta, 0);
}

/* The same sum to the bit, whatever the micro-batches. */
static void parts(void **state)
{
    (void)state;
    subject s = begin_subject("psld gamma=0.25 stabiliser=0", PSLD_LEARN_D | PSLD_LEARN_Q | PSLD_LEARN_BETA, 0);
    psld_microbatch *b = &s.batch, part;
    double whole[PSLD_LEARNED_SIZE], sum[PSLD_LEARNED_SIZE], norm;
    for (size_t i = 0; i < N * 2 * DIM; i++) b->out[i] = b->by_z[i] = (float)cos((double)i);
    psld_learner_begin(s.learner);
    must(psld_learner_add(s.learner, &s.how, b));
    must(psld_learner_finish(s.learner, &s.how, whole, &norm));
    psld_learner_begin(s.learner);
    for (size_t at = 0; at < N; at += 2) {
        part = *b;
        part.n = 2;
        part.in_step = at;
        part.x += at * DIM;
        part.t += at;
        part.weight += at;
        part.eps += at * 2 * DIM;
        part.out += at * 2 * DIM;
        part.by_z += at * 2 * DIM;
        must(psld_learner_add(s.learner, &s.how, &part));
    }
    must(psld_learner_finish(s.learner, &s.how, sum, &norm));
    assert_memory_equal(whole, sum, (size_t)s.learned.count * sizeof *sum);
    end_subject(&s);
}

/* Steps go downhill, are undone by restoring, and one into nowhere changes nothing. */
static void steps(void **state)
{
    (void)state;
    subject s = begin_subject("psld gamma=0.25 stabiliser=0", PSLD_LEARN_D | PSLD_LEARN_BETA, 0);
    psld_learner_step how = {1e-3, 0.9, 0.999, 1e-8, 1, 1};
    size_t count;
    double *now = psld_learner_state(s.learner, &count), before[3 * PSLD_LEARNED_SIZE], gradient[PSLD_LEARNED_SIZE],
           norm;
    assert_int_equal(count, 3 * s.learned.count);
    memcpy(before, now, count * sizeof *now);
    psld_recipe first = *s.model->recipe;
    assert_string_equal(first.spec.name, "psld-learned");
    memset(s.batch.out, 0, N * 2 * DIM * sizeof(float));
    memset(s.batch.by_z, 0, N * 2 * DIM * sizeof(float));
    psld_learner_begin(s.learner);
    must(psld_learner_add(s.learner, &s.how, &s.batch));
    must(psld_learner_finish(s.learner, &s.how, gradient, &norm));
    must(psld_learner_update(s.learner, &s.how, &how, &norm));
    for (int p = 0; p < s.learned.count; p++)
        if (fabs(gradient[p]) > 1e-6) assert_true(fabs(now[p] - before[p] + copysign(1e-3, gradient[p])) < 1e-5);
    assert_false(psld_recipe_same(&first, s.model->recipe));
    memcpy(now, before, count * sizeof *now);
    must(psld_learner_restored(s.learner));
    assert_true(psld_recipe_same(&first, s.model->recipe));
    how.rate = 1e300;
    assert_int_not_equal(psld_learner_update(s.learner, &s.how, &how, &norm), PSLD_OK);
    assert_memory_equal(now, before, count * sizeof *now);
    assert_true(psld_recipe_same(&first, s.model->recipe));
    s.batch.out[0] = (float)NAN;
    psld_learner_begin(s.learner);
    must(psld_learner_add(s.learner, &s.how, &s.batch));
    assert_int_equal(psld_learner_update(s.learner, &s.how, &how, &norm), PSLD_NOT_FINITE);
    assert_memory_equal(now, before, count * sizeof *now);
    end_subject(&s);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* Times by the trace: their weight times the trace is nearly flat, and weighed means are those over uniform times. */
static void times_by_trace(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "psld gamma=0.02", "cld stabiliser=0", "hold n=4 stabiliser=0"};
    enum { COUNT = 40000 };
    for (size_t l = 0; l < 4; l++) {
        psld_recipe *recipe;
        must(psld_recipe_open(lines[l], &recipe));
        psld_perturbation how = {.recipe = recipe, .dim = 1, .t_min = 1e-3, .by_trace = 1, .seed = 5};
        must(psld_perturbation_tabulate_trace(&how));
        double ones = 0, square = 0, low = 1e300, high = 0, shares = 0;
        for (int bin = 0; bin < 10; bin++) shares += psld_perturbation_share(&how, bin);
        for (uint64_t i = 0; i < COUNT; i++) {
            double t = psld_perturbation_time(&how, i, PSLD_PHASE_TRAIN), inverse[PSLD_MATRIX_SIZE], trace = 0;
            double half[PSLD_MATRIX_SIZE], weight = psld_perturbation_time_weight(&how, t);
            assert_true(t >= 1e-3 && t <= 1);
            ones += weight / COUNT;
            square += weight * t * t / COUNT;
            if (i >= 500) continue;
            must(psld_recipe_factor(recipe, t, PSLD_HSM, NULL, inverse));
            psld_matrix_multiply(recipe->spec.k, inverse, recipe->spec.D, half);
            for (int j = 0; j < recipe->spec.k * recipe->spec.k; j++) trace += half[j] * inverse[j];
            trace *= weight * psld_beta(recipe, t);
            low = fmin(low, trace);
            high = fmax(high, trace);
        }
        printf("%-24s mean weight %.4f, of t^2 %.4f, weighed trace within %.4f\n", lines[l], ones, square,
               high / low - 1);
        assert_true(fabs(shares - 1) < 1e-9);
        assert_true(fabs(ones - 1) < 0.06);
        assert_true(fabs(square - 1.0 / 3) < 0.03);
        assert_true(high / low < 1.05);
        double held_out = 0; /* the same mean by bins, as on held-out data */
        for (int bin = 0; bin < 10; bin++)
            for (uint64_t i = 0; i < COUNT / 10; i++) {
                double t = psld_perturbation_time(&how, i, (psld_phase)(PSLD_PHASE_HELD_OUT + bin));
                assert_true(t >= bin / 10.0 && t <= (bin + 1) / 10.0);
                held_out += psld_perturbation_share(&how, bin) * psld_perturbation_time_weight(&how, t) * t * t;
            }
        held_out /= COUNT / 10;
        printf("%-24s of t^2 by bins %.4f\n", "", held_out);
        assert_true(fabs(held_out - 1.0 / 3) < 0.01);
        psld_recipe_free(recipe);
    }
}

static psld_status starved_learner(void)
{
    psld_recipe *recipe;
    psld_learner *learner = NULL;
    PSLD_TRY(psld_recipe_open("psld", &recipe));
    psld_status status = psld_learner_create(recipe, PSLD_LEARN_D, 4, &learner);
    if (status == PSLD_OK) status = psld_learner_restored(learner);
    psld_learner_free(learner);
    psld_recipe_free(recipe);
    return status;
}

static void starving(void **state)
{
    (void)state;
    starve(starved_learner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),      cmocka_unit_test(parts),    cmocka_unit_test(steps),
        cmocka_unit_test(times_by_trace), cmocka_unit_test(starving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
