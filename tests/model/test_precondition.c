/* Networks of clean data: eps from what they say, its gradient, and what they are trained on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "recipes.h"
#include "sample/sources/denoiser.h"
#include "train/perturb.h"

enum { RECIPES = 8, DIM = 3 };

static const double times[] = {1e-3, 0.1, 0.5, 1};
enum { TIMES = sizeof times / sizeof *times };

static void fill(size_t count, double phase, double *numbers)
{
    for (size_t i = 0; i < count; i++) numbers[i] = sin(phase + 1.7 * (double)i);
}

/* A network that says f stands for X = keep u + scale f, and eps must be that of X by the denoiser view. */
static void eps_is_that_of_the_clean_data(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES * TIMES; i++) {
        psld_recipe *recipe = numbered_recipe(i / TIMES);
        psld_precondition p;
        psld_denoiser denoiser;
        double z[PSLD_MAX_K * DIM], eps[PSLD_MAX_K * DIM], expected[PSLD_MAX_K * DIM], x[DIM], largest = 0;
        const float f[DIM] = {0.5f, -1.25f, 2};
        assert_int_equal(psld_precondition_plan(recipe, 0.7, times[i % TIMES], &p), PSLD_OK);
        assert_int_equal(psld_denoiser_plan(recipe, 0, times[i % TIMES], &denoiser), PSLD_OK);
        fill(PSLD_MAX_K * DIM, i, z);
        for (int j = 0; j < DIM; j++) {
            x[j] = p.scale * (double)f[j];
            for (int a = 0; a < p.k; a++) x[j] += p.keep * p.input[a] * z[a * DIM + j];
        }
        psld_precondition_eps(&p, DIM, z, f, eps);
        psld_denoiser_eps(&denoiser, 1, DIM, z, x, expected);
        for (int j = 0; j < p.predicted * DIM; j++) largest = fmax(largest, fabs(expected[j]));
        for (int j = 0; j < p.predicted * DIM; j++)
            if (!(fabs(eps[j] - expected[j]) <= 1e-9 * largest))
                fail_msg("%s at %g: %.9g, not %.9g", recipe->spec.name, times[i % TIMES], eps[j], expected[j]);
        psld_recipe_free(recipe);
    }
}

/* With the network f = 3 u, sum(weight eps) is linear in z: its differences are its gradient. */
static double weighed_sum(const psld_precondition *p, const double *z, const double *weight)
{
    float u[DIM], f[DIM];
    double eps[PSLD_MAX_K * DIM], sum = 0;
    psld_precondition_input(p, DIM, z, u);
    for (int j = 0; j < DIM; j++) f[j] = 3 * u[j];
    psld_precondition_eps(p, DIM, z, f, eps);
    for (int j = 0; j < p->predicted * DIM; j++) sum += weight[j] * eps[j];
    return sum;
}

static void gradients(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES * TIMES; i++) {
        psld_recipe *recipe = numbered_recipe(i / TIMES);
        psld_precondition p;
        double z[PSLD_MAX_K * DIM], weight[PSLD_MAX_K * DIM], by_z[PSLD_MAX_K * DIM], largest = 0;
        float of_f[DIM], by_u[DIM];
        assert_int_equal(psld_precondition_plan(recipe, 0.5, times[i % TIMES], &p), PSLD_OK);
        fill(PSLD_MAX_K * DIM, i, z);
        fill(PSLD_MAX_K * DIM, i + 0.5, weight);
        psld_precondition_weight(&p, DIM, weight, of_f);
        for (int j = 0; j < DIM; j++) by_u[j] = 3 * of_f[j];
        psld_precondition_gradient(&p, DIM, weight, by_u, by_z);
        for (int j = 0; j < p.k * DIM; j++) largest = fmax(largest, fabs(by_z[j]));
        for (int j = 0; j < p.k * DIM; j++) {
            double middle = z[j], up, down;
            z[j] = middle + 1;
            up = weighed_sum(&p, z, weight);
            z[j] = middle - 1;
            down = weighed_sum(&p, z, weight);
            z[j] = middle;
            if (!(fabs((up - down) / 2 - by_z[j]) <= 1e-5 * largest))
                fail_msg("%s at %g: %.9g, not %.9g", recipe->spec.name, times[i % TIMES], by_z[j], (up - down) / 2);
        }
        psld_recipe_free(recipe);
    }
}

/* What the network sees and should say have mean square 1 and are uncorrelated when the data are normal with the
 * deviation stated, whatever the recipe, the times and the kernel. Five standard errors. */
static void training_is_of_unit_size(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    static float x[MANY], u[MANY], target[MANY], metric[MANY], time[MANY];
    static double t[MANY], normal[MANY];
    psld_random_normal(3, PSLD_FOR_DATA, 0, 0, 0, MANY, normal);
    for (int i = 0; i < MANY; i++) x[i] = (float)(0.7 * normal[i]);
    for (int i = 0; i < 2 * RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i / 2);
        psld_perturbation how = {.recipe = recipe, .mode = i % 2 ? PSLD_DSM : PSLD_HSM, .dim = 1, .t_min = 1e-3};
        psld_microbatch batch = {.x = x, .z = u, .target = target, .metric = metric, .time = time, .t = t};
        how.weighting = PSLD_WEIGH_LIKELIHOOD;
        how.data_deviation = 0.7;
        batch.first = 0, batch.n = MANY;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        double uu = 0, ff = 0, uf = 0;
        for (int j = 0; j < MANY; j++) {
            uu += (double)u[j] * (double)u[j] / MANY;
            ff += (double)target[j] * (double)target[j] / MANY;
            uf += (double)u[j] * (double)target[j] / MANY;
            assert_true(time[j] >= 0 && time[j] <= 1);
        }
        double error = 5 / sqrt((double)MANY);
        if (!(fabs(uu - 1) < sqrt(2) * error && fabs(ff - 1) < sqrt(2) * error && fabs(uf) < error))
            fail_msg("%s: %g %g %g", recipe->spec.name, uu, ff, uf);
        psld_recipe_free(recipe);
    }
}

/* The likelihood's metric for an error of f is that of the eps that it stands for. */
static void metric_is_that_of_eps(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i);
        float x = 0.3f, of_eps[PSLD_MATRIX_SIZE], of_data, z[PSLD_MAX_K], target, time;
        double t, sum = 0;
        psld_precondition p;
        psld_perturbation how = {.recipe = recipe, .dim = 1, .t_min = 1e-2, .weighting = PSLD_WEIGH_LIKELIHOOD};
        psld_microbatch batch = {.x = &x, .z = z, .metric = of_eps, .time = &time, .t = &t};
        batch.first = 0, batch.n = 1;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        how.data_deviation = 0.5;
        batch.target = &target;
        batch.metric = &of_data;
        batch.first = 0, batch.n = 1;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        assert_int_equal(psld_precondition_plan(recipe, 0.5, t, &p), PSLD_OK);
        for (int a = 0; a < p.predicted; a++)
            for (int b = 0; b < p.predicted; b++) sum += p.gain[a] * p.gain[b] * (double)of_eps[a * p.predicted + b];
        assert_true(fabs(sum - (double)of_data) <= 1e-5 * fabs(sum));
        psld_recipe_free(recipe);
    }
}

/* A whole model: the gradient of sum(weight eps) by z against differences, in float. */
static void models(void **state)
{
    (void)state;
    enum { N = 2, K = 2 };
    static const char text[] = "process: psld gamma=0.1\ndata: {channels: 3}\n"
                               "model: {name: mlp, nf: 16, num_res_blocks: 1, predicts: data, init_scale: 1}";
    psld_yaml *yaml;
    psld_model *model;
    assert_int_equal(psld_yaml_parse(text, sizeof text - 1, "text", &yaml), PSLD_OK);
    assert_int_equal(psld_model_from_config(yaml, 1, &model), PSLD_OK);
    psld_yaml_free(yaml);
    double z[N * K * DIM], weight[N * K * DIM], eps[N * K * DIM], by_z[N * K * DIM], t[N] = {0.3, 0.6}, largest = 0;
    fill(N * K * DIM, 1, z);
    fill(N * K * DIM, 2, weight);
    assert_int_equal(psld_model_differentiate(model, &PSLD_STATES(N, DIM, z, t), weight, eps, by_z), PSLD_OK);
    for (int i = 0; i < N * K * DIM; i++) largest = fmax(largest, fabs(by_z[i]));
    for (int i = 0; i < N * K * DIM; i++) {
        double middle = z[i], h = 1e-2, difference = 0;
        for (int side = -1; side <= 1; side += 2) {
            z[i] = middle + side * h;
            assert_int_equal(psld_model_predict(model, &PSLD_STATES(N, DIM, z, t), eps), PSLD_OK);
            for (int j = 0; j < N * K * DIM; j++) difference += side * weight[j] * eps[j] / (2 * h);
        }
        z[i] = middle;
        if (!(fabs(difference - by_z[i]) <= 2e-3 * largest)) fail_msg("%d: %g, not %g", i, by_z[i], difference);
    }
    psld_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eps_is_that_of_the_clean_data),
        cmocka_unit_test(gradients),
        cmocka_unit_test(training_is_of_unit_size),
        cmocka_unit_test(metric_is_that_of_eps),
        cmocka_unit_test(models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
