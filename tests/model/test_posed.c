/* Exact models posed as networks say what the exact model says, for every kind of network and every process. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "sample/sources/mixture.h"

enum { DIM = 2, N = 6, SAMPLES = 500 };
static const char mixture[] = "mixture: {weights: [0.3, 0.5, 0.2], means: [[-1, 0.5], [1, 0], [0.2, -0.6]], "
                              "scales: [0.3, 0.2, 0.5], labels: [0, 1, 0]}\n";
static const char *const kinds[] = {"edm",
                                    "vp",
                                    "ve",
                                    "{timesteps: linear}",
                                    "{timesteps: squaredcos_cap_v2, predicts: v_prediction}",
                                    "{kind: timesteps, schedule: linear, predicts: sample}",
                                    "{kind: edm, sigma_data: 0.8}"};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const char *const processes[] = {"vp", "cld", "psld gamma=0.02", "told"};
enum { PROCESSES = sizeof processes / sizeof *processes };

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static psld_status open_text(const char *process, const char *as, psld_model **model)
{
    static const char path[] = "posed.yaml";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%sprocess: %s\n%s%s\n", mixture, process, as ? "as: " : "", as ? as : "");
    assert_int_equal(fclose(file), 0);
    return psld_model_open(path, NULL, model);
}

/* `as` NULL: the exact model itself. */
static psld_model *open_model(const char *process, const char *as)
{
    psld_model *model;
    must(open_text(process, as, &model));
    return model;
}

/* States around what the process makes of the data, at times that end well inside all tables. */
static void fill_states(const psld_model *model, double *z, double *t, int32_t *label)
{
    for (size_t i = 0; i < N; i++) {
        t[i] = 0.1 + 0.12 * (double)i;
        label[i] = (int32_t)(i % 3) - 1;
        must(psld_mixture_draw(model->mixture, model->recipe, t[i], 3, i, 1,
                               z + i * (size_t)model->recipe->spec.k * DIM));
    }
}

static void says_what_the_exact_model_says(void **state)
{
    (void)state;
    for (int p = 0; p < PROCESSES; p++)
        for (int kind = 0; kind < KINDS; kind++) {
            double z[N * PSLD_MAX_K * DIM], t[N], expected[N * DIM], found[N * DIM];
            int32_t label[N];
            psld_model *exact = open_model(processes[p], NULL), *posed = open_model(processes[p], kinds[kind]);
            fill_states(exact, z, t, label);
            psld_states states = PSLD_STATES(N, DIM, z, t);
            states.label = label;
            must(psld_source_denoise(exact->source, exact->recipe, &states, expected));
            must(psld_source_denoise(posed->source, posed->recipe, &states, found));
            for (size_t i = 0; i < N * DIM; i++)
                if (fabs(found[i] - expected[i]) > 2e-4)
                    fail_msg("%s as %s: sample %zu: %.9g, expected %.9g", processes[p], kinds[kind], i / DIM, found[i],
                             expected[i]);
            psld_model_free(exact);
            psld_model_free(posed);
        }
}

/* The difference quotient of sum(weight eps) along a direction. */
static double quotient(psld_model *model, const double *z, const double *t, const double *weight, size_t at,
                       size_t size)
{
    const double step = 1e-3;
    double moved[PSLD_MAX_K * DIM], eps[PSLD_MAX_K * DIM], sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        for (size_t i = 0; i < size; i++) moved[i] = z[i] + (i == at ? side * step : 0);
        psld_states states = PSLD_STATES(1, DIM, moved, t);
        must(psld_source_predict(model->source, &states, eps));
        for (size_t i = 0; i < (size_t)model->recipe->predicted * DIM; i++)
            sum += side * weight[i] * eps[i] / (2 * step);
    }
    return sum;
}

static void has_the_gradient_of_what_it_says(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        psld_model *model = open_model("psld gamma=0.02", kinds[kind]);
        const double z[2 * DIM] = {0.4, -0.3, 0.2, 0.5}, t[1] = {0.4}, weight[2 * DIM] = {1, -0.5, 0.7, 0.3};
        double eps[2 * DIM], grad[2 * DIM];
        psld_states states = PSLD_STATES(1, DIM, z, t);
        must(psld_source_gradient(model->source, &states, weight, eps, grad));
        for (size_t i = 0; i < 2 * DIM; i++) {
            double expected = quotient(model, z, t, weight, i, 2 * DIM);
            if (fabs(grad[i] - expected) > 2e-3 * (1 + fabs(expected)))
                fail_msg("as %s: %zu: %.9g, expected %.9g", kinds[kind], i, grad[i], expected);
        }
        psld_model_free(model);
    }
}

/* Samples that differ only by rounding from those of the exact model: what holds for its laws holds for theirs. */
static void draws_the_samples_of_the_exact_model(void **state)
{
    (void)state;
    static const char *const samplers[] = {"sscs", "ode", "dpm", "ancestral"};
    static double expected[SAMPLES * PSLD_MAX_K * DIM], found[SAMPLES * PSLD_MAX_K * DIM];
    for (int p = 0; p < PROCESSES; p++)
        for (int s = 0; s < 8; s++) {
            psld_model *exact = open_model(processes[p], NULL);
            psld_model *posed = open_model(processes[p], s % 2 ? "edm" : "{timesteps: linear}");
            psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
            options.sampler = samplers[s / 2];
            if (s / 2 != 1) options.nfe = 50;
            must(psld_sample(exact->recipe, exact->source, &options, 0, SAMPLES, DIM, NULL, expected, NULL));
            must(psld_sample(posed->recipe, posed->source, &options, 0, SAMPLES, DIM, NULL, found, NULL));
            double sum = 0;
            size_t state_size = (size_t)exact->recipe->spec.k * DIM;
            for (size_t i = 0; i < SAMPLES; i++)
                sum += fabs(found[i * state_size] - expected[i * state_size]) / SAMPLES;
            if (!(sum < 2e-3)) fail_msg("%s, %s: the samples differ by %g", processes[p], samplers[s / 2], sum);
            psld_model_free(exact);
            psld_model_free(posed);
        }
}

/* Sums over a fine grid in one dimension, with the density of y given x_0 as weight. */
static void denoises_as_the_integral_says(void **state)
{
    (void)state;
    enum { POINTS = 40001 };
    const double w[2] = {0.4, 0.6}, m[2] = {-0.7, 0.5}, s[2] = {0.2, 0.4}, sigmas[] = {0.05, 0.3, 2, 50};
    const int32_t label[2] = {0, 1};
    psld_mixture *plain, *law;
    must(psld_mixture_create(2, 1, w, m, s, &plain));
    must(psld_mixture_label(plain, label, &law));
    for (size_t g = 0; g < sizeof sigmas / sizeof *sigmas; g++)
        for (int32_t of = -1; of < 2; of++) {
            double y = 0.3 + sigmas[g] * 0.2, sum = 0, mean = 0, x, h = 1e-5, grad, up, down, weight = 1;
            for (int i = 0; i < POINTS; i++) {
                double x0 = -6 + 12.0 * i / (POINTS - 1), p = 0, e = (y - x0) / sigmas[g];
                for (int c = 0; c < 2; c++)
                    if (of < 0 || of == c) p += w[c] / s[c] * exp(-(x0 - m[c]) * (x0 - m[c]) / (2 * s[c] * s[c]));
                sum += p * exp(-e * e / 2);
                mean += x0 * p * exp(-e * e / 2);
            }
            psld_mixture_denoise(law, &y, sigmas[g], of, &weight, &x, &grad);
            if (fabs(x - mean / sum) > 1e-9) fail_msg("sigma %g: %.12g, expected %.12g", sigmas[g], x, mean / sum);
            y += h;
            psld_mixture_denoise(law, &y, sigmas[g], of, NULL, &up, NULL);
            y -= 2 * h;
            psld_mixture_denoise(law, &y, sigmas[g], of, NULL, &down, NULL);
            if (fabs(grad - (up - down) / (2 * h)) > 1e-6 * (1 + fabs(grad)))
                fail_msg("sigma %g: gradient %.9g, expected %.9g", sigmas[g], grad, (up - down) / (2 * h));
        }
    psld_mixture_free(plain);
    psld_mixture_free(law);
}

static void refuses_what_is_no_network(void **state)
{
    (void)state;
    static const struct {
        const char *as, *message;
    } cases[] = {{"unet", "as: expected"},
                 {"{timesteps: cubic}", "timesteps: expected"},
                 {"{timesteps: linear, step: 10}", "unknown key \"step\""},
                 {"{schedule: linear}", "kind is missing"},
                 {"{timesteps: linear, beta_end: 0.001}", "was trained for"},
                 {"[edm]", "as: expected"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        psld_model *model;
        assert_int_not_equal(open_text("vp", cases[i].as, &model), PSLD_OK);
        assert_null(model);
        if (!strstr(psld_error_text(), cases[i].message)) fail_msg("%s: %s", cases[i].as, psld_error_text());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_the_exact_model_says),       cmocka_unit_test(has_the_gradient_of_what_it_says),
        cmocka_unit_test(draws_the_samples_of_the_exact_model), cmocka_unit_test(denoises_as_the_integral_says),
        cmocka_unit_test(refuses_what_is_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
