/* Models of users: what is predicted as eps, as the score or as clean data is the same source. Each form is made of the
 * exact mixture, whose eps, gradients and samples are the truth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/recipe.h"
#include "sample/sources/denoiser.h"

enum { DIM = 2, N = 6, STATE = PSLD_MAX_K * DIM, FORMS = 3 };

static const char *const lines[] = {
    "vp", "cld", "psld gamma=0.02", "told", "psld gamma=0.5 factor=upper", "psld gamma=0.3 mode=dsm",
};
enum { LINES = sizeof lines / sizeof *lines };

static const psld_predicts forms[FORMS] = {PSLD_PREDICTS_EPS, PSLD_PREDICTS_SCORE, PSLD_PREDICTS_DATA};

typedef struct truth {
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *exact;
    uint64_t expected; /* sample number of the first state, if `numbered` */
    int numbered;
} truth;

static truth make_truth(const char *line)
{
    const double weights[] = {0.3, 0.5, 0.2}, means[] = {-1, 0.5, 0.8, -0.2, 0.1, 1.1}, scales[] = {0.2, 0.2, 0.3};
    truth made = {0};
    char text[64];
    snprintf(text, sizeof text, "%s", line);
    char *mode = strstr(text, " mode=dsm");
    if (mode) *mode = 0;
    if (psld_recipe_open(text, &made.recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    if (mode) psld_recipe_set_mode(made.recipe, PSLD_DSM);
    assert_int_equal(psld_mixture_create(3, DIM, weights, means, scales, &made.mixture), PSLD_OK);
    assert_int_equal(psld_source_mixture(made.mixture, made.recipe, &made.exact), PSLD_OK);
    return made;
}

static void free_truth(truth *made)
{
    psld_source_free(made->exact);
    psld_mixture_free(made->mixture);
    psld_recipe_free(made->recipe);
}

/* ---- The three forms, and their gradients ------------------------------------------------------------------------ */

static void check_samples(const truth *of, const psld_states *states)
{
    if (!of->numbered) return;
    assert_non_null(states->sample);
    for (size_t i = 0; i < states->n; i++)
        assert_true(states->sample[i] >= of->expected && states->sample[i] < of->expected + N);
}

static psld_status say_eps(void *user, const psld_states *states, double *eps)
{
    check_samples(user, states);
    return psld_source_predict(((truth *)user)->exact, states, eps);
}

/* s_P = -R' eps_P, R the inverse of the block factor[P, P], solved by elimination. */
static void solve_transposed(const psld_recipe *recipe, double t, double *vector)
{
    double factor[PSLD_MATRIX_SIZE], a[PSLD_MAX_K][PSLD_MAX_K];
    int k = recipe->spec.k, p = recipe->predicted;
    assert_int_equal(psld_recipe_factor(recipe, t, recipe->spec.mode, factor, NULL), PSLD_OK);
    for (int r = 0; r < p; r++)
        for (int c = 0; c < p; c++) a[r][c] = factor[recipe->variable[c] * k + recipe->variable[r]];
    for (int c = 0; c < p; c++) {
        int pivot = c;
        for (int r = c; r < p; r++)
            if (fabs(a[r][c]) > fabs(a[pivot][c])) pivot = r;
        for (int j = 0; j < p; j++) {
            double kept = a[c][j];
            a[c][j] = a[pivot][j];
            a[pivot][j] = kept;
        }
        double kept = vector[c];
        vector[c] = vector[pivot];
        vector[pivot] = kept;
        for (int r = 0; r < p; r++) {
            double share = r == c ? 0 : a[r][c] / a[c][c];
            for (int j = 0; j < p; j++) a[r][j] -= share * a[c][j];
            vector[r] -= share * vector[c];
        }
    }
    for (int c = 0; c < p; c++) vector[c] /= a[c][c];
}

static psld_status say_score(void *user, const psld_states *states, double *score)
{
    const truth *of = user;
    size_t p = (size_t)of->recipe->predicted, dim = states->dim;
    psld_status status = say_eps(user, states, score);
    for (size_t i = 0; status == PSLD_OK && i < states->n; i++)
        for (size_t j = 0; j < dim; j++) {
            double column[PSLD_MAX_K];
            for (size_t c = 0; c < p; c++) column[c] = -score[(i * p + c) * dim + j];
            solve_transposed(of->recipe, states->t[i], column);
            for (size_t c = 0; c < p; c++) score[(i * p + c) * dim + j] = column[c];
        }
    return status;
}

static psld_status say_data(void *user, const psld_states *states, double *x)
{
    const truth *of = user;
    check_samples(user, states);
    return psld_source_denoise(of->exact, of->recipe, states, x);
}

static size_t outputs_of(const truth *of, psld_predicts form)
{
    return form == PSLD_PREDICTS_DATA ? DIM : (size_t)of->recipe->predicted * DIM;
}

/* The gradient of any of them by central differences, each state for itself. */
static psld_status differentiate_by_differences(truth *of, psld_predicts form, psld_score_fn say,
                                                const psld_states *states, const double *weight, double *out,
                                                double *grad_z)
{
    size_t outputs = outputs_of(of, form), width = (size_t)of->recipe->spec.k * DIM;
    double z[STATE], up[STATE], down[STATE];
    for (size_t i = 0; i < states->n; i++)
        for (size_t j = 0; j < width; j++) {
            const double h = 1e-5;
            memcpy(z, states->z + i * width, width * sizeof *z);
            z[j] = states->z[i * width + j] + h;
            assert_int_equal(say(of, &PSLD_STATES(1, DIM, z, states->t + i), up), PSLD_OK);
            z[j] = states->z[i * width + j] - h;
            assert_int_equal(say(of, &PSLD_STATES(1, DIM, z, states->t + i), down), PSLD_OK);
            grad_z[i * width + j] = 0;
            for (size_t c = 0; c < outputs; c++)
                grad_z[i * width + j] += weight[i * outputs + c] * (up[c] - down[c]) / (2 * h);
        }
    return out ? say(of, states, out) : PSLD_OK;
}

static psld_status differentiate_eps(void *user, const psld_states *states, const double *weight, double *out,
                                     double *grad_z)
{
    return differentiate_by_differences(user, PSLD_PREDICTS_EPS, say_eps, states, weight, out, grad_z);
}

static psld_status differentiate_score(void *user, const psld_states *states, const double *weight, double *out,
                                       double *grad_z)
{
    return differentiate_by_differences(user, PSLD_PREDICTS_SCORE, say_score, states, weight, out, grad_z);
}

static psld_status differentiate_data(void *user, const psld_states *states, const double *weight, double *out,
                                      double *grad_z)
{
    return differentiate_by_differences(user, PSLD_PREDICTS_DATA, say_data, states, weight, out, grad_z);
}

static psld_source *make_source(truth *of, psld_predicts form)
{
    static const psld_score_fn say[FORMS] = {say_eps, say_score, say_data};
    static const psld_score_gradient_fn differentiate[FORMS] = {differentiate_eps, differentiate_score,
                                                                differentiate_data};
    psld_source *source;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    callback.predicts = form;
    callback.recipe = of->recipe;
    callback.predict = say[form];
    callback.gradient = differentiate[form];
    callback.user = of;
    if (psld_source_callback(&callback, &source) != PSLD_OK) fail_msg("%s", psld_error_text());
    return source;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

/* Times that differ within a batch, two states of each. */
static void draw_states(const truth *of, double *z, double *t)
{
    static const double times[N] = {0.9, 0.9, 0.5, 0.5, 0.1, 0.1};
    size_t width = (size_t)of->recipe->spec.k * DIM;
    memcpy(t, times, sizeof times);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(psld_mixture_draw(of->mixture, of->recipe, t[i], 7, i, 1, z + i * width), PSLD_OK);
}

/* By how much an error of one part in 1e16 of what is predicted moves eps: data are recovered from eps with the
 * certainty of psld_denoiser, and eps = white z - gain X cancels where z is much larger than its noise. */
static double conditioning(const truth *of, psld_predicts form, double t)
{
    psld_denoiser denoiser;
    double largest = 1;
    int k = of->recipe->spec.k;
    if (form != PSLD_PREDICTS_DATA) return 10;
    assert_int_equal(psld_denoiser_plan(of->recipe, 1, t, &denoiser), PSLD_OK);
    for (int i = 0; i < of->recipe->predicted * k; i++) largest = fmax(largest, fabs(denoiser.white[i]));
    return 10 * largest / denoiser.certainty;
}

static void forms_agree(void **state)
{
    (void)state;
    for (int line = 0; line < LINES; line++) {
        truth of = make_truth(lines[line]);
        double z[N * STATE], t[N], expected[N * STATE], eps[N * STATE];
        size_t predicted = (size_t)of.recipe->predicted * DIM;
        draw_states(&of, z, t);
        assert_int_equal(psld_source_predict(of.exact, &PSLD_STATES(N, DIM, z, t), expected), PSLD_OK);
        for (int f = 0; f < FORMS; f++) {
            psld_source *source = make_source(&of, forms[f]);
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(N, DIM, z, t), eps), PSLD_OK);
            for (size_t i = 0; i < N * predicted; i++) {
                double limit = fmax(1e-12, 1e-15 * conditioning(&of, forms[f], t[i / predicted]));
                if (!(fabs(eps[i] - expected[i]) <= limit * fmax(1, fabs(expected[i]))))
                    fail_msg("%s, form %d, t = %g: eps %.17g, expected %.17g, limit %g", lines[line], f,
                             t[i / predicted], eps[i], expected[i], limit);
            }
            psld_source_free(source);
        }
        free_truth(&of);
    }
}

static void gradients_agree(void **state)
{
    (void)state;
    for (int line = 0; line < LINES; line++) {
        truth of = make_truth(lines[line]);
        double z[N * STATE], t[N], weight[N * STATE], eps[2][N * STATE], grad[2][N * STATE], largest = 0;
        size_t predicted = (size_t)of.recipe->predicted * DIM, width = (size_t)of.recipe->spec.k * DIM;
        draw_states(&of, z, t);
        for (size_t i = 0; i < N * predicted; i++) weight[i] = sin(1 + (double)i);
        psld_states states = PSLD_STATES(N, DIM, z, t);
        assert_int_equal(psld_source_gradient(of.exact, &states, weight, eps[0], grad[0]), PSLD_OK);
        for (size_t i = 0; i < N * width; i++) largest = fmax(largest, fabs(grad[0][i]));
        for (int f = 0; f < FORMS; f++) {
            psld_source *source = make_source(&of, forms[f]);
            for (int with_eps = 0; with_eps < 2; with_eps++) {
                assert_int_equal(psld_source_gradient(source, &states, weight, with_eps ? eps[1] : NULL, grad[1]),
                                 PSLD_OK);
                for (size_t i = 0; i < N * width; i++)
                    if (!(fabs(grad[1][i] - grad[0][i]) < 1e-6 * largest))
                        fail_msg("%s, form %d: gradient %.9g, expected %.9g", lines[line], f, grad[1][i], grad[0][i]);
            }
            for (size_t i = 0; i < N * predicted; i++) assert_true(fabs(eps[1][i] - eps[0][i]) < 1e-8);
            psld_source_free(source);
        }
        free_truth(&of);
    }
}

/* An eps is taken as that of the stabilised kernel, which samplers of clean data look at; a score and clean data are
 * exact, like the mixture. Sample numbers reach the callback. */
static void samples_agree(void **state)
{
    (void)state;
    static const char *const samplers[] = {"sscs", "heun", "ode", "ancestral"};
    for (int line = 0; line < LINES; line++)
        for (int s = 0; s < 4; s++)
            for (int f = 0; f < FORMS; f++) {
                truth of = make_truth(lines[line]);
                double z[2][N * STATE];
                psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
                options.sampler = samplers[s];
                options.nfe = 20;
                options.tolerance = 1e-4;
                options.eps = 1e-2;
                psld_source *source = make_source(&of, forms[f]);
                assert_int_equal(psld_sample(of.recipe, of.exact, &options, 40, N, DIM, NULL, z[0], NULL), PSLD_OK);
                of.numbered = 1;
                of.expected = 40;
                if (psld_sample(of.recipe, source, &options, 40, N, DIM, NULL, z[1], NULL) != PSLD_OK)
                    fail_msg("%s %s: %s", lines[line], samplers[s], psld_error_text());
                double limit = strcmp(samplers[s], "ancestral") == 0 && forms[f] == PSLD_PREDICTS_EPS ? 1e-4 : 1e-8;
                for (size_t i = 0; i < N * (size_t)of.recipe->spec.k * DIM; i++)
                    if (!(fabs(z[0][i] - z[1][i]) < limit))
                        fail_msg("%s %s, form %d: %.12g, expected %.12g", lines[line], samplers[s], f, z[1][i],
                                 z[0][i]);
                psld_source_free(source);
                free_truth(&of);
            }
}

/* An eps that comes from an exact score is as good as the exact source: not a bit differs, whatever the steps are made of. */
static void exact_eps_gives_the_same_bits(void **state)
{
    static const char *const samplers[] = {"em", "sscs", "ode", "dpm", "collapsed-heun", "ancestral"};
    (void)state;
    for (size_t line = 0; line < LINES; line++)
        for (size_t s = 0; s < sizeof samplers / sizeof *samplers; s++) {
            truth of = make_truth(lines[line]);
            double z[2][N * STATE];
            psld_source *own;
            psld_callback callback = PSLD_CALLBACK_DEFAULTS;
            psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
            callback.predict = say_eps;
            callback.user = &of;
            callback.is_exact = 1;
            options.sampler = samplers[s];
            options.tolerance = 1e-2;
            options.nfe = s == 2 ? PSLD_UNSET : 9;
            assert_int_equal(psld_source_callback(&callback, &own), PSLD_OK);
            for (int i = 0; i < 2; i++)
                if (psld_sample(of.recipe, i ? own : of.exact, &options, 0, N, DIM, NULL, z[i], NULL) != PSLD_OK)
                    fail_msg("%s %s: %s", lines[line], samplers[s], psld_error_text());
            assert_memory_equal(z[0], z[1], N * (size_t)of.recipe->spec.k * DIM * sizeof(double));
            psld_source_free(own);
            free_truth(&of);
        }
}

/* Numbers of samples go through every wrapper. */
static void sample_numbers_reach_the_callback(void **state)
{
    (void)state;
    truth of = make_truth("cld");
    psld_recipe *other;
    psld_classifier *classifier;
    psld_source *all[5] = {make_source(&of, PSLD_PREDICTS_EPS)};
    assert_int_equal(psld_recipe_open("vp", &other), PSLD_OK);
    assert_int_equal(psld_classifier_mixture(of.mixture, of.recipe, &classifier), PSLD_OK);
    assert_int_equal(psld_source_clip(all[0], of.recipe, 2, 0, &all[1]), PSLD_OK);
    assert_int_equal(psld_source_guide(all[1], of.recipe, classifier, 1, 0.5, &all[2]), PSLD_OK);
    assert_int_equal(psld_source_autoguide(all[2], all[0], of.recipe, 1.5, &all[3]), PSLD_OK);
    assert_int_equal(psld_source_translate(all[3], of.recipe, other, &all[4]), PSLD_OK);
    of.numbered = 1;
    for (int wrapped = 0; wrapped < 5; wrapped++) {
        double z[N * STATE];
        psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
        options.sampler = wrapped == 1 ? "ode" : "em";
        options.tolerance = 1e-2;
        options.nfe = 5;
        options.batch = 4;
        options.ode_group = 4;
        of.expected = 1000;
        if (psld_sample(wrapped == 4 ? other : of.recipe, all[wrapped], &options, 1000, N, DIM, NULL, z, NULL) !=
            PSLD_OK)
            fail_msg("wrapper %d: %s", wrapped, psld_error_text());
    }
    for (int i = 4; i >= 0; i--) psld_source_free(all[i]);
    psld_classifier_free(classifier);
    psld_recipe_free(other);
    free_truth(&of);
}

static void refused(psld_status status, const char *part)
{
    assert_int_equal(status, PSLD_BAD_ARGUMENT);
    if (!strstr(psld_error_text(), part)) fail_msg("\"%s\" does not say \"%s\"", psld_error_text(), part);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    truth of = make_truth("vp");
    psld_source *source;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    refused(psld_source_callback(&callback, &source), "expected a callback");
    callback.predict = say_eps;
    callback.predicts = (psld_predicts)17;
    refused(psld_source_callback(&callback, &source), "found the value 17");
    callback.predicts = PSLD_PREDICTS_SCORE;
    refused(psld_source_callback(&callback, &source), "needs the recipe");
    callback.predicts = PSLD_PREDICTS_DATA;
    refused(psld_source_callback(&callback, &source), "needs the recipe");
    callback.size = 0;
    refused(psld_source_callback(&callback, &source), "PSLD_CALLBACK_DEFAULTS");
    callback.size = sizeof callback + 1;
    refused(psld_source_callback(&callback, &source), "PSLD_CALLBACK_DEFAULTS");
    assert_null(source);
    double z[2] = {0}, t = 0.5, eps[2];
    refused(psld_source_predict(of.exact, &(psld_states){.n = 1, .dim = DIM, .z = z, .t = &t}, eps), "PSLD_STATES");
    free_truth(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(gradients_agree),
        cmocka_unit_test(samples_agree),
        cmocka_unit_test(exact_eps_gives_the_same_bits),
        cmocka_unit_test(sample_numbers_reach_the_callback),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
