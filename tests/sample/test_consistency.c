/* The sampler consistency with a consistency function that is known: that of Gaussian data N(mean, scale^2), where the
 * probability flow of y = x_0 + sigma n ends at
 *     f(y, sigma) = mean + scale (y - mean) / sqrt(scale^2 + sigma^2). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "sample/collapsed_frame.h"
#include "sample/sources/source.h"
#include "sample/time_grid.h"
#include "sanitized.h"
#include "targets.h"

enum { SAMPLES = PSLD_SANITIZED ? 2000 : 20000, DIM = 2 };

static const double mean[DIM] = {0.4, -0.7}, scale[DIM] = {0.3, 0.8};

static double flow_end(double y, double sigma, size_t j)
{
    return mean[j] + scale[j] * (y - mean[j]) / hypot(scale[j], sigma);
}

static double statistic(const psld_collapsed_frame *frame, size_t k, const double *z, size_t j)
{
    double sum = 0;
    for (size_t a = 0; a < k; a++) sum += frame->inverse[a] * z[a * DIM + j];
    return frame->sigma * sum;
}

/* A psld_score_fn that says clean data; `user` is the recipe. */
static psld_status predict_flow_end(void *user, const psld_states *states, double *x)
{
    const psld_recipe *recipe = user;
    size_t k = (size_t)recipe->spec.k;
    psld_collapsed_frame frame;
    for (size_t i = 0; i < states->n; i++) {
        PSLD_TRY(psld_collapsed_frame_plan(recipe, 1, states->t[i], &frame));
        for (size_t j = 0; j < DIM; j++)
            x[i * DIM + j] = flow_end(statistic(&frame, k, states->z + i * k * DIM, j), frame.sigma, j);
    }
    return PSLD_OK;
}

static psld_source *exact_function(const psld_recipe *recipe)
{
    psld_source *source;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    callback.predicts = PSLD_PREDICTS_DATA;
    callback.recipe = recipe;
    callback.predict = predict_flow_end;
    callback.user = (void *)(uintptr_t)recipe;
    assert_int_equal(psld_source_callback(&callback, &source), PSLD_OK);
    return source;
}

static psld_sample_options options_of(int nfe)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = "consistency";
    options.nfe = nfe;
    options.seed = 11;
    return options;
}

/* Mean and variance of each coordinate, in standard errors. The law is exact: the first state has y ~ N(0, sigma^2), which
 * lacks the data, and every evaluation brings f(y) = mean + part (y - mean). */
static void check_law(const psld_recipe *recipe, int nfe, const double *z)
{
    psld_sample_options options = options_of(nfe);
    double worst = 0, times[8], n = SAMPLES;
    size_t width = DIM * (size_t)recipe->spec.k;
    assert_int_equal(psld_sample_complete(recipe, &options), PSLD_OK);
    assert_int_equal(psld_grid_times(recipe, options.grid, 7, nfe - 1, options.eps, times), PSLD_OK);
    for (size_t j = 0; j < DIM; j++) {
        double sum = 0, square = 0, bias = -mean[j], variance = 0, sigma;
        for (int e = 0; e < nfe; e++) {
            assert_int_equal(psld_recipe_sigma(recipe, times[e], &sigma), PSLD_OK);
            double part = scale[j] / hypot(scale[j], sigma);
            bias *= part;
            variance = part * part * (variance + sigma * sigma);
        }
        for (size_t i = 0; i < SAMPLES; i++) {
            double e = z[i * width + j] - mean[j] - bias;
            sum += e, square += e * e;
        }
        assert_true(fabs(bias) < 0.05 && fabs(variance / (scale[j] * scale[j]) - 1) < 0.01);
        worst = fmax(worst, fabs(sum / n) / (scale[j] / sqrt(n)));
        worst = fmax(worst, fabs(square / n - variance) / (variance * sqrt(2 / n)));
    }
    printf("%-16s %d evaluations: at most %.2f standard errors off\n", recipe->spec.name, nfe, worst);
    assert_true(worst < 4.5);
}

static void samples_have_the_law_of_the_data(void **state)
{
    (void)state;
    double *z = malloc((size_t)SAMPLES * DIM * PSLD_MAX_K * sizeof *z);
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source = exact_function(recipe);
        for (int nfe = 1; nfe <= 4; nfe++) {
            psld_sample_options options = options_of(nfe);
            uint64_t made;
            if (psld_sample(recipe, source, &options, 0, SAMPLES, DIM, NULL, z, &made) != PSLD_OK)
                fail_msg("%s: %s", preset_lines[p], psld_error_text());
            assert_int_equal(made, nfe);
            check_law(recipe, nfe, z);
        }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    free(z);
}

/* A function of one recipe serves another. */
static void another_recipe(void **state)
{
    (void)state;
    static const char *const others[] = {"vp", "cld", "told"};
    double *z = malloc((size_t)SAMPLES * DIM * PSLD_MAX_K * sizeof *z);
    psld_recipe *known = open_recipe("psld gamma=0.02");
    psld_source *base = exact_function(known), *source;
    for (int o = 0; o < 3; o++) {
        psld_recipe *wanted = open_recipe(others[o]);
        psld_sample_options options = options_of(2);
        assert_int_equal(psld_source_translate(base, known, wanted, &source), PSLD_OK);
        if (psld_sample(wanted, source, &options, 0, SAMPLES, DIM, NULL, z, NULL) != PSLD_OK)
            fail_msg("%s: %s", others[o], psld_error_text());
        check_law(wanted, 2, z);
        psld_source_free(source);
        psld_recipe_free(wanted);
    }
    psld_source_free(base);
    psld_recipe_free(known);
    free(z);
}

/* One evaluation is the function of the initial state, and nothing else. */
static void one_evaluation_is_the_function(void **state)
{
    (void)state;
    enum { N = 5 };
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source = exact_function(recipe);
        psld_sample_options options = options_of(1);
        psld_collapsed_frame frame;
        size_t k = (size_t)recipe->spec.k;
        double start[N * DIM * PSLD_MAX_K], z[N * DIM * PSLD_MAX_K];
        for (size_t i = 0; i < N * DIM * k; i++) start[i] = cos(3.1 * (double)i);
        assert_int_equal(psld_sample(recipe, source, &options, 0, N, DIM, start, z, NULL), PSLD_OK);
        assert_int_equal(psld_collapsed_frame_plan(recipe, 1, 1, &frame), PSLD_OK);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < DIM; j++) {
                double wanted = flow_end(statistic(&frame, k, start + i * k * DIM, j), frame.sigma, j);
                assert_true(fabs(z[i * k * DIM + j] - wanted) < 1e-9);
            }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
}

/* A step leaves states of the law at its end. */
static void states_have_the_noise_of_their_time(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("cld");
    psld_source *source = exact_function(recipe);
    psld_sample_options options = options_of(2);
    psld_collapsed_frame frame;
    double *z = malloc((size_t)SAMPLES * DIM * 2 * sizeof *z), sum = 0, n = SAMPLES, time;
    options.denoise = 0;
    options.grid = "sigma:3,0.6";
    assert_int_equal(psld_sample(recipe, source, &options, 0, SAMPLES, DIM, NULL, z, NULL), PSLD_OK);
    assert_int_equal(psld_recipe_time(recipe, 0.6, &time), PSLD_OK);
    assert_int_equal(psld_collapsed_frame_plan(recipe, 1, time, &frame), PSLD_OK);
    double variance = scale[1] * scale[1] + 0.36;
    for (size_t i = 0; i < SAMPLES; i++) {
        double e = statistic(&frame, 2, z + i * 2 * DIM, 1) - mean[1];
        sum += e * e;
    }
    assert_true(fabs(sum / n / variance - 1) < 4.5 * sqrt(2 / n));
    free(z);
    psld_source_free(source);
    psld_recipe_free(recipe);
}

/* ---- Grids and options ------------------------------------------------------------------------------------------- */

static void grid_of_noise_levels(void **state)
{
    (void)state;
    static const double levels[] = {5, 1, 0.25};
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        double times[4], sigma, most;
        assert_int_equal(psld_grid_times(recipe, "sigma:5, 1,0.25", 7, 3, 0, times), PSLD_OK);
        assert_true(times[0] == 1);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(psld_recipe_sigma(recipe, times[i + 1], &sigma), PSLD_OK);
            assert_true(fabs(sigma / levels[i] - 1) < 1e-9);
        }
        /* equal steps in one over the root of the noise */
        double root[5], t_min;
        assert_int_equal(psld_recipe_time(recipe, 0.3, &t_min), PSLD_OK);
        assert_int_equal(psld_recipe_sigma(recipe, 1, &most), PSLD_OK);
        double inverse[5];
        assert_int_equal(psld_grid_times(recipe, "inverse", 7, 4, t_min, inverse), PSLD_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(psld_recipe_sigma(recipe, inverse[i], &sigma), PSLD_OK);
            root[i] = 1 / sqrt(sigma);
        }
        for (int i = 1; i < 5; i++) assert_true(fabs((root[i] - root[i - 1]) / ((root[4] - root[0]) / 4) - 1) < 1e-6);
        psld_recipe_free(recipe);
    }
}

static void refuse(const psld_recipe *recipe, psld_sample_options options, const char *text)
{
    psld_source *source = exact_function(recipe);
    double z[4 * DIM];
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, DIM, NULL, z, NULL), PSLD_BAD_ARGUMENT);
    if (!strstr(psld_error_text(), text)) fail_msg("no \"%s\" in \"%s\"", text, psld_error_text());
    psld_source_free(source);
}

static void bad_options(void **state)
{
    (void)state;
    static const struct {
        const char *grid, *text;
    } rows[] = {{"sigma:5,7", "expected decreasing times"},
                {"sigma:0", "falling noise levels"},
                {"sigma:", "falling noise levels"},
                {"sigma:3,x,1", "positive noise levels"},
                {"sigma:1e9", "noise below"},
                {"sigma:-1,1", "positive noise levels"},
                {"sigma", "times with commas"},
                {"sigma:2,,1", "positive noise levels"}};
    psld_recipe *recipe = open_recipe("cld");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_sample_options options = options_of(0);
        options.grid = rows[i].grid;
        refuse(recipe, options, rows[i].text);
    }
    psld_sample_options options = options_of(1);
    options.grid = "sigma:0.8";
    refuse(recipe, options, "one evaluation");
    options = options_of(3);
    options.grid = "sigma:0.8";
    refuse(recipe, options, "need 2 evaluations, found 3");
    options = options_of(4);
    options.corrector = 1;
    refuse(recipe, options, "corrector");
    options = options_of(1);
    options.sampler = "em";
    refuse(recipe, options, "at least 2 evaluations");
    psld_recipe_free(recipe);
}

/* Options that are complete are so again. */
static void complete_twice(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("told");
    for (int nfe = 0; nfe <= 4; nfe++) {
        psld_sample_options options = options_of(nfe), again;
        assert_int_equal(psld_sample_complete(recipe, &options), PSLD_OK);
        assert_int_equal(options.nfe, nfe ? nfe : 2);
        assert_true(nfe == 1 ? options.eps == 1 : options.eps < 1);
        again = options;
        assert_int_equal(psld_sample_complete(recipe, &again), PSLD_OK);
        assert_true(again.eps == options.eps && again.nfe == options.nfe);
    }
    psld_recipe_free(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_the_law_of_the_data),
        cmocka_unit_test(another_recipe),
        cmocka_unit_test(one_evaluation_is_the_function),
        cmocka_unit_test(states_have_the_noise_of_their_time),
        cmocka_unit_test(grid_of_noise_levels),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(complete_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
