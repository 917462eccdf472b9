/* Samplers against truth: exact moments, weak order, SciPy's counts, and the same bits however the work is cut. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "psld_eval.h"
#include "sample/corrector.h"
#include "sample/options.h"
#include "sample/sample.h"
#include "sample/time_grid.h"
#include "sanitized.h"
#include "targets.h"

/* Two overlapping components on a line, of one scale: their score is short enough to be written down (below), and so
 * fast that the long form of the checks can afford all its evaluations. */
static const double line_weights[2] = {0.4, 0.6}, line_means[2] = {-0.6, 0.5}, line_scale = 0.4;

static psld_mixture *pair_on_a_line(void)
{
    const double scales[2] = {line_scale, line_scale};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 1, line_weights, line_means, scales, &mixture), PSLD_OK);
    return mixture;
}

/* ---- The exact score --------------------------------------------------------------------------------------------- */

/* log p_t of the pair by its definition, in long double. */
static long double log_density(const psld_recipe *recipe, double t, const double *z)
{
    const long double weights[2] = {0.3L, 0.7L}, means[2][2] = {{-0.8L, 0.5L}, {0.6L, -0.2L}},
                      scales[2] = {0.3L, 0.15L};
    int k = recipe->spec.k;
    long double sum = 0;
    for (int c = 0; c < 2; c++) {
        psld_gaussian kernel;
        double inverse[PSLD_MATRIX_SIZE];
        psld_kernel(recipe, t, PSLD_HSM, (double)(scales[c] * scales[c]), &kernel);
        psld_matrix_invert_lower(k, kernel.factor, inverse);
        long double exponent = 0;
        for (int j = 0; j < 2; j++)
            for (int a = 0; a < k; a++) {
                long double white = 0;
                for (int b = 0; b <= a; b++)
                    white += inverse[a * k + b] * (z[b * 2 + j] - (long double)kernel.mean[b * k] * means[c][j]);
                exponent -= white * white / 2 + logl((long double)kernel.factor[a * k + a]);
            }
        sum += weights[c] * expl(exponent);
    }
    return logl(sum);
}

static void score_is_the_gradient(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    for (int p = 0; p < PRESETS + 2; p++) {
        psld_recipe *recipe = p < PRESETS ? open_recipe(preset_lines[p])
                                          : random_recipe(3, p == PRESETS ? FULL_NOISE : RANK_ONE_NOISE, 5);
        int k = recipe->spec.k, predicted = recipe->predicted;
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (double t = 0.01; t <= 1; t *= 3) {
            double z[2 * PSLD_MAX_K], eps[2 * PSLD_MAX_K], inverse[PSLD_MATRIX_SIZE];
            for (int i = 0; i < 2 * k; i++) z[i] = 0.4 * sin(1 + 3 * i) * recipe->deviation[i / 2];
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 2, z, &t), eps), PSLD_OK);
            assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, NULL, inverse), PSLD_OK);
            for (int c = 0; c < predicted; c++)
                for (int j = 0; j < 2; j++) {
                    int a = recipe->order[k - predicted + c];
                    double score = 0, kept = z[a * 2 + j], h = 1e-4 * recipe->deviation[a];
                    for (int b = 0; b < predicted; b++)
                        score -= inverse[recipe->order[k - predicted + b] * k + a] * eps[b * 2 + j];
                    z[a * 2 + j] = kept + h;
                    long double up = log_density(recipe, t, z);
                    z[a * 2 + j] = kept - h;
                    long double down = log_density(recipe, t, z);
                    z[a * 2 + j] = kept;
                    double numeric = (double)((up - down) / (2 * h));
                    assert_true(fabs(score - numeric) < 1e-4 * (1 + fabs(numeric)));
                }
        }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* At one time eps = towards m + linear z, m being the posterior mean of the components' means: m_1 + (m_0 - m_1) r,
 * where r is the logistic function of offset + slope z. */
typedef struct line_score {
    double t, offset, slope[PSLD_MAX_K], towards[PSLD_MAX_K], linear[PSLD_MATRIX_SIZE];
} line_score;

static void prepare_line_score(const psld_recipe *recipe, double t, line_score *at)
{
    int k = recipe->spec.k, predicted = recipe->predicted;
    const int *order = recipe->order + k - predicted;
    double m0 = line_means[0], m1 = line_means[1], strength = 0, inverse[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE];
    psld_gaussian kernel;
    psld_kernel(recipe, t, PSLD_HSM, line_scale * line_scale, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, factor, NULL), PSLD_OK);
    memset(at, 0, sizeof *at);
    at->t = t;
    for (int c = 0; c < k; c++) { /* precision = inverse' inverse */
        double white = 0;
        for (int b = 0; b <= c; b++) white += inverse[c * k + b] * kernel.mean[b * k];
        strength += white * white;
        for (int a = 0; a <= c; a++) {
            at->slope[a] += (m0 - m1) * inverse[c * k + a] * white;
            for (int p = 0; p < predicted; p++)
                for (int v = p; v < predicted; v++)
                    if (order[v] == a) {
                        double share = factor[a * k + order[p]] * inverse[c * k + a];
                        at->towards[p] -= share * white;
                        for (int b = 0; b <= c; b++) at->linear[p * k + b] += share * inverse[c * k + b];
                    }
        }
    }
    at->offset = log(line_weights[0] / line_weights[1]) - strength * (m0 * m0 - m1 * m1) / 2;
}

static psld_status predict_on_the_line(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    const double *z = states->z, *t = states->t;
    const psld_recipe *recipe = user;
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted;
    line_score at = {.t = -1};
    assert_int_equal(dim, 1);
    for (size_t i = 0; i < n; i++, z += k) {
        if (t[i] != at.t) prepare_line_score(recipe, t[i], &at);
        double logit = at.offset;
        for (size_t a = 0; a < k; a++) logit += at.slope[a] * z[a];
        double mean = line_means[1] + (line_means[0] - line_means[1]) / (1 + exp(-logit));
        for (size_t p = 0; p < predicted; p++) {
            double sum = at.towards[p] * mean;
            for (size_t a = 0; a < k; a++) sum += at.linear[p * k + a] * z[a];
            *eps++ = sum;
        }
    }
    return PSLD_OK;
}

static void score_on_the_line(void **state)
{
    (void)state;
    psld_mixture *mixture = pair_on_a_line();
    for (int p = 0; p <= PRESETS; p++) {
        psld_recipe *recipe = p < PRESETS ? open_recipe(preset_lines[p]) : random_recipe(3, FULL_NOISE, 1);
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (double t = 0.001; t <= 1; t *= 2) {
            double z[PSLD_MAX_K], eps[2][PSLD_MAX_K];
            assert_int_equal(psld_mixture_draw(mixture, recipe, t, 1, 0, 1, z), PSLD_OK);
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 1, z, &t), eps[0]), PSLD_OK);
            assert_int_equal(predict_on_the_line(recipe, &PSLD_STATES(1, 1, z, &t), eps[1]), PSLD_OK);
            for (int a = 0; a < recipe->predicted; a++) assert_true(fabs(eps[0][a] - eps[1][a]) < 1e-9);
        }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* ---- Exact propagation of moments: weak order without statistical error ------------------------------------------ */

/* With Gaussian data eps is linear in z, so a step maps N(0, C) to N(0, M C M' + N N'). M and N are found by feeding
 * the step unit vectors and unit noise. */
typedef struct unit_noise {
    int variable;
    uint64_t draw;
} unit_noise;

static void give_unit_noise(void *user, uint64_t sample, uint64_t draw, size_t first, size_t count, double *noise)
{
    const unit_noise *unit = user;
    (void)sample;
    for (size_t i = 0; i < count; i++) noise[i] = draw == unit->draw && (int)(first + i) == unit->variable;
}

static void propagate(psld_reverse *reverse, const psld_sampler *sampler, double t, double u, int draws, double *C)
{
    int k = (int)reverse->k;
    double M[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE], next[PSLD_MATRIX_SIZE];
    unit_noise unit = {-1, 0};
    psld_sample_options options = *reverse->options;
    void *table = malloc(sampler->table_size);
    assert_int_equal(sampler->plan_step(reverse->recipe, t, u, 0, table), PSLD_OK);
    options.noise = give_unit_noise;
    options.noise_user = &unit;
    reverse->options = &options;
    for (int j = 0; j < k; j++) {
        for (int i = 0; i < k; i++) reverse->z[i] = i == j;
        assert_int_equal(sampler->step(reverse, 0, table), PSLD_OK);
        for (int i = 0; i < k; i++) M[i * k + j] = reverse->z[i];
    }
    psld_matrix_multiply(k, M, C, product);
    psld_matrix_multiply_t(k, product, M, next);
    for (unit.draw = 0; unit.draw < (uint64_t)draws; unit.draw++)
        for (unit.variable = 0; unit.variable < k; unit.variable++) {
            memset(reverse->z, 0, (size_t)k * sizeof(double));
            assert_int_equal(sampler->step(reverse, 0, table), PSLD_OK);
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) next[a * k + b] += reverse->z[a] * reverse->z[b];
        }
    psld_matrix_copy(k, next, C);
    free(table);
}

typedef struct covariance_error {
    double x;     /* of the variance of x, relative */
    double whole; /* largest of all entries, in units of the stationary deviations */
} covariance_error;

/* Error of the final covariance after `steps` uniform steps from the exact p_1 of Gaussian data. */
static covariance_error error_after(const char *line, const psld_sampler *sampler, int draws, int steps)
{
    double z[PSLD_MAX_K], eps[PSLD_MAX_K], time;
    uint64_t sample;
    const double one = 1, zero = 0, scale = 0.5;
    psld_recipe *recipe = open_recipe(line);
    psld_mixture *gaussian;
    psld_gaussian start, end;
    psld_sample_options options = em_options();
    psld_reverse reverse = {.recipe = recipe, .options = &options, .k = (size_t)recipe->spec.k, .dim = 1, .count = 1};
    reverse.predicted = (size_t)recipe->predicted;
    reverse.z = z;
    reverse.eps = eps;
    reverse.t = &time;
    reverse.sample = &sample;
    assert_int_equal(psld_mixture_create(1, 1, &one, &zero, &scale, &gaussian), PSLD_OK);
    assert_int_equal(psld_source_mixture(gaussian, recipe, &reverse.source), PSLD_OK);
    psld_kernel(recipe, 1, PSLD_HSM, scale * scale, &start);
    psld_kernel(recipe, options.eps, PSLD_HSM, scale * scale, &end);
    double *times = malloc((size_t)(steps + 1) * sizeof *times);
    assert_int_equal(psld_grid_times(recipe, "uniform", 7, steps, options.eps, times), PSLD_OK);
    for (int i = 0; i < steps; i++) {
        propagate(&reverse, sampler, times[i], times[i + 1], draws, start.cov);
        reverse.options = &options;
    }
    int k = recipe->spec.k;
    covariance_error error = {fabs(start.cov[0] / end.cov[0] - 1), 0};
    for (int i = 0; i < k * k; i++) {
        double scaled = fabs(start.cov[i] - end.cov[i]) / (recipe->deviation[i / k] * recipe->deviation[i % k]);
        error.whole = fmax(error.whole, scaled);
    }
    free(times);
    psld_source_free(reverse.source);
    psld_mixture_free(gaussian);
    psld_recipe_free(recipe);
    return error;
}

static void weak_order_is_one(void **state)
{
    (void)state;
    for (int p = 0; p < PRESETS; p++) {
        const char *line = preset_lines[p];
        covariance_error em = error_after(line, psld_sampler_row("em"), 1, 400),
                         sscs = error_after(line, psld_sampler_row("sscs"), 2, 400);
        double em_order = log(em.x / error_after(line, psld_sampler_row("em"), 1, 3200).x) / log(8);
        double sscs_order = log(sscs.x / error_after(line, psld_sampler_row("sscs"), 2, 3200).x) / log(8);
        printf("%-16s weak order over N = 400..3200: em %.3f, sscs %.3f; errors of Var x at 400: %.2g, %.2g\n", line,
               em_order, sscs_order, em.x, sscs.x);
        assert_true(em_order > 0.9 && em_order < 1.1);
        assert_true(sscs_order > 0.9 && sscs_order < 1.1);
        for (int steps = 30; p > 0 && steps < 250; steps *= 2) /* with k = 1 there is no linear part to gain from */
            assert_true(error_after(line, psld_sampler_row("sscs"), 2, steps).whole <
                        error_after(line, psld_sampler_row("em"), 1, steps).whole);
    }
}

/* ---- Moments of mixtures ----------------------------------------------------------------------------------------- */

/* PSLD_TEST_SAMPLES=200000 asks for the full check, with as many steps as keep the bias below the statistical error; it
 * takes hours. A first argument, for example "told em", selects rows of it, a second one is the seed. */
static size_t samples = 6000;
static int long_form;
static uint64_t moment_seed = 3;
static const char *selected = "";

static void choose_size(int count, char **arguments)
{
    const char *wanted = getenv("PSLD_TEST_SAMPLES");
    if (PSLD_SANITIZED) samples = 500;
    if (wanted) samples = (size_t)strtoul(wanted, NULL, 10);
    long_form = samples > 50000;
    if (count > 1) selected = arguments[1];
    if (count > 2) moment_seed = strtoull(arguments[2], NULL, 10);
}

/* Largest deviation of the samples' mean and covariance from those of exact p_eps, in standard errors. */
static double moment_deviation(const psld_mixture *mixture, const psld_recipe *recipe, double eps, const double *z)
{
    size_t k = (size_t)recipe->spec.k, dim = psld_mixture_dim(mixture), width = dim * k;
    double x_mean[2], x_cov[4], worst = 0, truth_mean[2 * PSLD_MAX_K], mean[2 * PSLD_MAX_K] = {0};
    psld_gaussian kernel; /* Var x_0 enters through the mixture's own covariance */
    psld_mixture_moments(mixture, x_mean, x_cov);
    psld_kernel(recipe, eps, PSLD_HSM, 0, &kernel);
    for (size_t i = 0; i < width; i++) truth_mean[i] = kernel.mean[i / dim * k] * x_mean[i % dim];
    for (size_t s = 0; s < samples; s++)
        for (size_t i = 0; i < width; i++) mean[i] += z[s * width + i] / (double)samples;
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j <= i; j++) {
            double truth = kernel.mean[i / dim * k] * kernel.mean[j / dim * k] * x_cov[i % dim * dim + j % dim];
            if (i % dim == j % dim) truth += kernel.cov[i / dim * k + j / dim];
            double sum = 0, squares = 0;
            for (size_t s = 0; s < samples; s++) {
                double product = (z[s * width + i] - truth_mean[i]) * (z[s * width + j] - truth_mean[j]);
                sum += product;
                squares += product * product;
            }
            double found = sum / (double)samples,
                   error = sqrt((squares / (double)samples - found * found) / (double)samples);
            worst = fmax(worst, fabs(found - truth) / error);
            if (i == j) worst = fmax(worst, fabs(mean[i] - truth_mean[i]) / sqrt(found / (double)samples));
        }
    return worst;
}

static void check_moments(const psld_mixture *mixture, psld_recipe *recipe, const char *sampler, int nfe, int corrector)
{
    psld_source *source;
    psld_sample_options options = em_options();
    size_t dim = psld_mixture_dim(mixture), width = dim * (size_t)recipe->spec.k;
    char name[PSLD_NAME_SIZE + 32];
    uint64_t evaluations;
    snprintf(name, sizeof name, "%s %s", recipe->spec.name, sampler);
    if (!strstr(name, selected)) return;
    double *start = malloc(samples * width * sizeof *start), *z = malloc(samples * width * sizeof *z);
    assert_int_equal(
        dim == 1 ? psld_source_callback(
                       &(psld_callback){.size = sizeof(psld_callback), .predict = predict_on_the_line, .user = recipe},
                       &source)
                 : psld_source_mixture(mixture, recipe, &source),
        PSLD_OK);
    options.sampler = sampler;
    options.nfe = nfe;
    options.tolerance = 1e-5;
    options.denoise = 0;
    options.corrector = corrector;
    options.batch = 4096;
    options.seed = moment_seed;
    assert_int_equal(psld_mixture_draw(mixture, recipe, 1, moment_seed + 6, 0, samples, start), PSLD_OK);
    if (psld_sample(recipe, source, &options, 0, samples, dim, start, z, &evaluations) != PSLD_OK)
        fail_msg("%s", psld_error_text());
    double deviation = moment_deviation(mixture, recipe, options.eps, z);
    printf("%-26s %6d evaluations, corrector %d: moments within %.1f standard errors\n", name, (int)evaluations,
           corrector, deviation);
    fflush(stdout);
    assert_true(deviation < 4.5); /* the largest of up to 33 numbers: 4 would fail by chance now and then */
    free(start);
    free(z);
    psld_source_free(source);
}

/* Evaluations that bring the bias below about 1.5 standard errors of 200,000 samples, for the presets and the random
 * recipe (docs/measurements/samplers.md), and enough for the few samples of every day. `euler-ode` would need too many,
 * and is compared with the flow instead (below). `ode` chooses its own. */
static const struct budget {
    const char *sampler;
    int needed[PRESETS + 1], everyday;
} budgets[] = {{"em", {2000, 8000, 8000, 8000, 8000}, 400},
               {"sscs", {1000, 2000, 2000, 4000, 4000}, 200},
               {"ode", {1, 1, 1, 1, 1}, 1},
               {"heun", {400, 400, 400, 400, 400}, 400},
               {"euler-ode", {1000, 24000, 24000, 50000, 16000}, 0}};

static void moments_of_mixtures(void **state)
{
    (void)state;
    psld_mixture *plane = pair(), *line = pair_on_a_line();
    for (int p = 0; p <= PRESETS; p++) {
        psld_recipe *recipe = p < PRESETS ? open_recipe(preset_lines[p]) : random_recipe(3, FULL_NOISE, 1);
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
            int everyday = recipe->spec.k > 2 ? 2 * budgets[b].everyday : budgets[b].everyday;
            if (long_form)
                check_moments(line, recipe, budgets[b].sampler, budgets[b].needed[p], 0);
            else if (everyday)
                check_moments(plane, recipe, budgets[b].sampler, everyday, 0);
        }
        psld_recipe_free(recipe);
    }
    psld_recipe *recipe = open_recipe("psld gamma=0.02");
    check_moments(plane, recipe, "em", long_form ? 4000 : 400, 1);
    psld_recipe_free(recipe);
    psld_mixture_free(plane);
    psld_mixture_free(line);
}

/* Distance of a deterministic sampler's end points from the converged flow. */
static double flow_error(const psld_recipe *recipe, psld_source *source, const char *sampler, int nfe)
{
    enum { N = 8 };
    double z[N * 2 * PSLD_MAX_K], truth[N * 2 * PSLD_MAX_K], sum = 0;
    psld_sample_options options = em_options();
    options.denoise = 0;
    options.sampler = "ode";
    options.tolerance = 1e-11;
    assert_int_equal(psld_sample(recipe, source, &options, 0, N, 2, NULL, truth, NULL), PSLD_OK);
    options.sampler = sampler;
    options.nfe = nfe;
    assert_int_equal(psld_sample(recipe, source, &options, 0, N, 2, NULL, z, NULL), PSLD_OK);
    for (int i = 0; i < N * 2 * recipe->spec.k; i++) sum += (z[i] - truth[i]) * (z[i] - truth[i]);
    return sqrt(sum);
}

static void orders_on_the_flow(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        double euler =
            log2(flow_error(recipe, source, "euler-ode", 2000) / flow_error(recipe, source, "euler-ode", 4000));
        double heun = log2(flow_error(recipe, source, "heun", 2000) / flow_error(recipe, source, "heun", 4000));
        printf("%-16s order on the flow: euler-ode %.3f, heun %.3f\n", preset_lines[p], euler, heun);
        assert_true(fabs(euler - 1) < 0.1 && fabs(heun - 2) < 0.1);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* Exact draws have the exact moments, at any time. */
static void draws_of_mixtures(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        double *z = malloc(samples * 2 * PSLD_MAX_K * sizeof *z);
        for (double t = 0.001; t <= 1; t *= 10) {
            assert_int_equal(psld_mixture_draw(mixture, recipe, t, 4, 0, samples, z), PSLD_OK);
            assert_true(moment_deviation(mixture, recipe, t, z) < 4.5);
        }
        free(z);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* Langevin steps keep p_t: many of them at one time change no moment. */
static void corrector_keeps_the_law(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_sample_options options = em_options();
        psld_affine step;
        double t = 0.3;
        size_t width = 2 * (size_t)recipe->spec.k;
        options.batch = (int)samples;
        psld_reverse reverse = {
            .recipe = recipe, .options = &options, .k = (size_t)recipe->spec.k, .dim = 2, .count = samples};
        reverse.predicted = (size_t)recipe->predicted;
        reverse.z = malloc(samples * width * sizeof(double));
        reverse.eps = malloc(samples * width * sizeof(double));
        reverse.t = malloc(samples * sizeof(double));
        reverse.sample = malloc(samples * sizeof(uint64_t));
        assert_int_equal(psld_source_mixture(mixture, recipe, &reverse.source), PSLD_OK);
        assert_int_equal(psld_mixture_draw(mixture, recipe, t, 5, 0, samples, reverse.z), PSLD_OK);
        assert_int_equal(psld_corrector_plan(recipe, t, 0.02, &step), PSLD_OK);
        for (uint64_t i = 0; i < 60; i++) {
            assert_int_equal(psld_reverse_predict(&reverse, reverse.z, t), PSLD_OK);
            psld_affine_apply(&reverse, &step, PSLD_FOR_CORRECTOR, i, NULL, reverse.z, reverse.z);
        }
        assert_true(moment_deviation(mixture, recipe, t, reverse.z) < 4.5);
        free(reverse.z);
        free(reverse.eps);
        free(reverse.t);
        free(reverse.sample);
        psld_source_free(reverse.source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* ---- SciPy's counts ---------------------------------------------------------------------------------------------- */

/* scipy.integrate.solve_ivp(method="RK45", rtol = atol = tol), SciPy 1.17, on the ring from z = 1.2 deviation sin(1
 * + 7 i + 3 a + 5 j), 16 samples i, variables a, coordinates j; eps = 1e-3. */
static void scipy_counts(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double tolerance;
        uint64_t nfe;
    } rows[] = {{"vp", 1e-2, 38},    {"vp", 1e-3, 50},   {"vp", 1e-5, 98},    {"cld", 1e-2, 68},
                {"cld", 1e-3, 92},   {"cld", 1e-5, 218}, {"psld", 1e-2, 74},  {"psld", 1e-3, 92},
                {"psld", 1e-5, 206}, {"told", 1e-2, 80}, {"told", 1e-3, 134}, {"told", 1e-5, 266}};
    psld_mixture *mixture = ring();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        psld_recipe *recipe = open_recipe(rows[r].line);
        psld_source *source;
        psld_sample_options options = em_options();
        double z[16 * 2 * PSLD_MAX_K];
        uint64_t nfe;
        int k = recipe->spec.k;
        for (int i = 0; i < 16 * k * 2; i++) {
            int a = i / 2 % k;
            z[i] = recipe->deviation[a] * 1.2 * sin(1 + 7 * (i / (2 * k)) + 3 * a + 5 * (i % 2));
        }
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        options.sampler = "ode";
        options.tolerance = rows[r].tolerance;
        options.denoise = 0;
        assert_int_equal(psld_sample(recipe, source, &options, 0, 16, 2, z, z, &nfe), PSLD_OK);
        if (nfe != rows[r].nfe)
            fail_msg("%s at %g: %d evaluations, SciPy has %d", rows[r].line, rows[r].tolerance, (int)nfe,
                     (int)rows[r].nfe);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* ---- Bits -------------------------------------------------------------------------------------------------------- */

static void same_bits(void **state)
{
    (void)state;
    enum { N = 50 };
    static const struct {
        size_t batch;
        int threads;
    } ways[] = {{1, 1}, {7, 2}, {16, 1}, {1000, 2}, {1000, 3}, {33, 1}};
    psld_mixture *mixture = ring();
    for (int p = 0; p < PRESETS; p++)
        for (int s = 0; psld_sampler_at(s); s++) {
            psld_recipe *recipe = open_recipe(preset_lines[p]);
            psld_source *source;
            psld_sample_options options = em_options();
            double reference[N * 2 * PSLD_MAX_K], z[N * 2 * PSLD_MAX_K];
            size_t width = 2 * (size_t)recipe->spec.k;
            uint64_t nfe, reference_nfe = 0;
            assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
            options.sampler = psld_sampler_at(s)->name;
            options.nfe = 21;
            options.tolerance = 1e-2;
            options.corrector = strcmp(options.sampler, "em") == 0;
            options.seed = 77;
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                options.batch = (int)ways[w].batch;
                assert_int_equal(psld_threads_set(ways[w].threads), PSLD_OK);
                assert_int_equal(psld_sample(recipe, source, &options, 0, N, 2, NULL, z, &nfe), PSLD_OK);
                if (w == 0) memcpy(reference, z, sizeof z), reference_nfe = nfe;
                assert_memory_equal(z, reference, N * width * sizeof(double));
                assert_int_equal(nfe, reference_nfe);
            }
            /* sample 16 ... 31 alone: a whole group of ode */
            assert_int_equal(psld_sample(recipe, source, &options, 16, 16, 2, NULL, z, NULL), PSLD_OK);
            assert_memory_equal(z, reference + 16 * width, 16 * width * sizeof(double));
            options.seed = 78;
            assert_int_equal(psld_sample(recipe, source, &options, 0, N, 2, NULL, z, NULL), PSLD_OK);
            assert_memory_not_equal(z, reference, N * width * sizeof(double));
            psld_source_free(source);
            psld_recipe_free(recipe);
        }
    psld_mixture_free(mixture);
    psld_threads_set(0);
}

/* Batches and groups that are as large as a number can be are all the samples there are. */
static void endless_batches(void **state)
{
    (void)state;
    enum { N = 20 };
    static const int large[] = {N, INT_MAX / 2 + 1, INT_MAX - 15, INT_MAX};
    psld_mixture *mixture = ring();
    psld_recipe *recipe = open_recipe("cld");
    psld_source *source;
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    for (int s = 0; psld_sampler_at(s); s++)
        for (int grouped = 0; grouped < 2; grouped++) {
            double z[N * 4], reference[N * 4];
            uint64_t nfe, reference_nfe = 0;
            psld_sample_options options = em_options();
            options.sampler = psld_sampler_at(s)->name;
            options.nfe = 4;
            options.tolerance = 0.1;
            for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
                options.batch = large[i];
                if (grouped) options.ode_group = large[i];
                assert_int_equal(psld_sample(recipe, source, &options, 0, N, 2, NULL, z, &nfe), PSLD_OK);
                if (i == 0) memcpy(reference, z, sizeof z), reference_nfe = nfe;
                assert_memory_equal(z, reference, sizeof z);
                assert_int_equal(nfe, reference_nfe);
            }
        }
    psld_source_free(source);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void batches_of_whole_groups(void **state)
{
    (void)state;
    static const struct {
        size_t count, batch, group, expected;
    } rows[] = {{100, 30, 1, 30},        {100, 30, 16, 32},
                {100, 32, 16, 32},       {100, 33, 16, 48},
                {100, 97, 16, 100},      {100, 100, 16, 100},
                {100, 30, 60, 60},       {100, 1, 100, 100},
                {100, 0, 16, 16},        {100, 0, 0, 1},
                {1, 1, 16, 1},           {100, SIZE_MAX, 16, 100},
                {100, 1, SIZE_MAX, 100}, {100, SIZE_MAX, SIZE_MAX, 100}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        assert_int_equal(psld_batch_size(rows[r].count, rows[r].batch, rows[r].group), rows[r].expected);
}

/* States wider than a chunk of the affine primitive: the noise of a coordinate must not depend on the chunking. */
static psld_status ignore_state(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    size_t predicted = *(size_t *)user;
    memset(eps, 0, n * predicted * dim * sizeof *eps);
    return PSLD_OK;
}

static void wide_states(void **state)
{
    (void)state;
    enum { DIM = 700 };
    psld_recipe *recipe = open_recipe("psld");
    size_t predicted = 2;
    psld_source *source;
    psld_sample_options options = em_options();
    static double z[2 * DIM], expected[4];
    assert_int_equal(
        psld_source_callback(
            &(psld_callback){.size = sizeof(psld_callback), .predict = ignore_state, .user = &predicted}, &source),
        PSLD_OK);
    options.nfe = 1;
    options.denoise = 0;
    options.grid = "uniform";
    assert_int_equal(psld_sample(recipe, source, &options, 5, 1, DIM, NULL, z, NULL), PSLD_OK);
    double start[2], noise[2], dt = 0.999, h = 8 * dt; /* one Euler step of coordinate 650, by hand */
    for (size_t a = 0; a < 2; a++) {
        psld_random_normal(0, PSLD_FOR_START, 5, 0, a * DIM + 650, 1, &start[a]);
        psld_random_normal(0, PSLD_FOR_STEP, 5, 0, a * DIM + 650, 1, &noise[a]);
    }
    start[1] *= 0.5;
    expected[0] = start[0] + h * (0.005 * start[0] - 0.5 * 4 * start[1]) + sqrt(h * 0.01) * noise[0];
    expected[1] = start[1] + h * (0.5 * start[0] + 0.50125 * 4 * start[1]) + sqrt(h * 1.0025) * noise[1];
    for (int a = 0; a < 2; a++) assert_true(fabs(z[a * DIM + 650] - expected[a]) < 1e-12);
    psld_source_free(source);
    psld_recipe_free(recipe);
}

/* ---- Counting, cancelling, refusing ------------------------------------------------------------------------------ */

typedef struct counter {
    size_t calls, predicted;
    double last;
} counter;

static psld_status count_calls(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    const double *t = states->t;
    counter *c = user;
    c->calls++;
    c->last = t[0];
    memset(eps, 0, n * c->predicted * dim * sizeof *eps);
    return PSLD_OK;
}

static void evaluations_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *sampler;
        int nfe, corrector, denoise, expected;
    } rows[] = {{"em", 10, 0, 1, 10},   {"em", 10, 0, 0, 10},   {"sscs", 10, 0, 1, 10}, {"euler-ode", 7, 0, 1, 7},
                {"heun", 10, 0, 1, 10}, {"heun", 11, 0, 1, 11}, {"heun", 2, 0, 1, 2},   {"em", 10, 1, 1, 9},
                {"em", 11, 1, 1, 11},   {"sscs", 20, 3, 0, 20}, {"em", 2, 0, 1, 2},     {"em", 1, 0, 0, 1},
                {"heun", 1, 0, 0, 1}};
    psld_recipe *recipe = open_recipe("psld");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        counter c = {0, 2, -1};
        psld_source *source;
        psld_sample_options options = em_options();
        double z[4];
        uint64_t nfe;
        assert_int_equal(
            psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = count_calls, .user = &c},
                                 &source),
            PSLD_OK);
        options.sampler = rows[r].sampler;
        options.nfe = rows[r].nfe;
        options.corrector = rows[r].corrector;
        options.denoise = rows[r].denoise;
        assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 2, NULL, z, &nfe), PSLD_OK);
        assert_int_equal(nfe, rows[r].expected);
        assert_int_equal(c.calls, rows[r].expected);
        if (rows[r].denoise) assert_true(c.last == options.eps);
        psld_source_free(source);
    }
    psld_recipe_free(recipe);
}

static int cancel_half_way(void *user, uint64_t done, uint64_t total)
{
    *(uint64_t *)user = done;
    return 2 * done >= total;
}

static psld_status fail_always(void *user, const psld_states *states, double *eps)
{
    (void)user, (void)eps, (void)states;
    return psld_fail(PSLD_IO, "the network is unplugged");
}

static psld_status explode(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    (void)user;
    for (size_t i = 0; i < n * dim * 2; i++) eps[i] = NAN;
    return PSLD_OK;
}

static void failures_come_through(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("psld");
    psld_mixture *mixture = ring();
    psld_source *exact, *failing, *exploding;
    uint64_t done = 0;
    double z[8];
    assert_int_equal(psld_source_mixture(mixture, recipe, &exact), PSLD_OK);
    assert_int_equal(
        psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = fail_always}, &failing),
        PSLD_OK);
    assert_int_equal(
        psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = explode}, &exploding), PSLD_OK);
    for (int s = 0; psld_sampler_at(s); s++) {
        psld_sample_options options = em_options();
        options.sampler = psld_sampler_at(s)->name;
        options.nfe = 20;
        assert_int_equal(psld_sample(recipe, failing, &options, 0, 2, 2, NULL, z, NULL), PSLD_IO);
        assert_string_equal(psld_error_text(), "the network is unplugged");
        for (int clip = 0; clip < 2; clip++)
            for (int threshold = 0; threshold < 2; threshold++) {
                options.clip = clip;
                options.threshold = 0.9 * threshold;
                assert_int_equal(psld_sample(recipe, exploding, &options, 0, 2, 2, NULL, z, NULL), PSLD_NOT_FINITE);
            }
        options.clip = options.threshold = 0;
        options.progress = cancel_half_way;
        options.progress_user = &done;
        assert_int_equal(psld_sample(recipe, exact, &options, 0, 2, 2, NULL, z, NULL), PSLD_CANCELLED);
        assert_true(done > 0);
    }
    psld_sample_options options = em_options();
    assert_int_equal(psld_sample(recipe, exact, &options, 0, 1, 3, NULL, z, NULL), PSLD_BAD_ARGUMENT);
    psld_source_free(exact);
    psld_source_free(failing);
    psld_source_free(exploding);
    psld_source_free(NULL);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

static void options_are_checked(void **state)
{
    (void)state;
    psld_sample_options o;
#define REFUSED(field, value, word) (o = em_options(), o.field = (value), expect_refused(&o, word))
    REFUSED(sampler, "magic", "sscs");
    REFUSED(grid, "magic", "quadratic");
    REFUSED(nfe, 1, "at least 2");
    REFUSED(nfe, -5, "nfe");
    REFUSED(eps, -2, "eps");
    REFUSED(eps, 1, "eps");
    REFUSED(eps, NAN, "eps");
    REFUSED(tolerance, -2, "tolerance");
    REFUSED(tolerance, NAN, "tolerance");
    REFUSED(corrector, -2, "corrector");
    REFUSED(corrector_size, 2, "corrector_size");
    REFUSED(batch, -2, "batch");
    REFUSED(ode_group, -2, "ode_group");
    o = em_options();
    o.sampler = "ode";
    o.corrector = 1;
    expect_refused(&o, "corrector");
}

static void mixtures_are_checked(void **state)
{
    (void)state;
    psld_mixture *mixture = (psld_mixture *)8;
    const double half[2] = {0.5, 0.5}, short_sum[2] = {0.5, 0.4}, negative[2] = {1.5, -0.5}, means[2] = {0, 1},
                 bad[2] = {0, NAN};
    assert_int_equal(psld_mixture_create(2, 1, short_sum, means, half, &mixture), PSLD_BAD_INPUT);
    assert_null(mixture);
    assert_non_null(strstr(psld_error_text(), "sum of 1"));
    assert_int_equal(psld_mixture_create(2, 1, negative, means, half, &mixture), PSLD_BAD_INPUT);
    assert_int_equal(psld_mixture_create(2, 1, half, bad, half, &mixture), PSLD_BAD_INPUT);
    assert_int_equal(psld_mixture_create(2, 1, half, means, bad, &mixture), PSLD_BAD_INPUT);
    assert_int_equal(psld_mixture_create(0, 1, half, means, half, &mixture), PSLD_BAD_INPUT);
    psld_mixture_free(NULL);
    assert_int_equal(psld_mixture_create(2, 1, half, means, half, &mixture), PSLD_OK);
    psld_recipe *recipe = open_recipe("vp");
    double z;
    assert_int_equal(psld_mixture_draw(mixture, recipe, 2, 0, 0, 1, &z), PSLD_BAD_ARGUMENT);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

/* A mixture of many components needs memory of its own; it must give what a small one gives. */
static void many_components(void **state)
{
    (void)state;
    enum { MANY = 600 };
    static double weights[MANY], means[2 * MANY], scales[MANY];
    double z[4] = {0.3, -0.2, 0.1, 0.4}, t = 0.2, eps[2][4];
    const double one = 1, origin[2] = {0.5, 0.25}, scale = 0.3;
    psld_recipe *recipe = open_recipe("psld");
    for (int i = 0; i < 2; i++) {
        psld_mixture *mixture;
        psld_source *source;
        for (int c = 0; c < MANY; c++)
            weights[c] = 1.0 / MANY, means[2 * c] = 0.5, means[2 * c + 1] = 0.25, scales[c] = 0.3;
        assert_int_equal(i ? psld_mixture_create(MANY, 2, weights, means, scales, &mixture)
                           : psld_mixture_create(1, 2, &one, origin, &scale, &mixture),
                         PSLD_OK);
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 2, z, &t), eps[i]), PSLD_OK);
        psld_source_free(source);
        psld_mixture_free(mixture);
    }
    for (int j = 0; j < 4; j++) assert_true(fabs(eps[0][j] - eps[1][j]) < 1e-12);
    psld_recipe_free(recipe);
}

/* ---- Sliced Wasserstein distance --------------------------------------------------------------------------------- */

static void sliced_distance(void **state)
{
    (void)state;
    const double a[3] = {3, 1, 2}, b[3] = {1.5, 2.5, 3.5}, c[2] = {0, 10};
    double distance;
    assert_int_equal(psld_sliced_wasserstein(1, 3, a, 3, a, 5, 0, &distance), PSLD_OK);
    assert_true(distance == 0);
    assert_int_equal(psld_sliced_wasserstein(1, 3, a, 3, b, 5, 0, &distance), PSLD_OK);
    assert_true(fabs(distance - 0.5) < 1e-12);
    assert_int_equal(psld_sliced_wasserstein(1, 3, a, 2, c, 5, 0, &distance), PSLD_OK); /* quantile by quantile */
    assert_true(fabs(distance - (1 + 0.5 * 2 + 0.5 * 8 + 7) / 3) < 1e-12);
    double x[20], shifted[20]; /* a shift by v moves every projection by its part of v: the mean of |cos| is 2/pi */
    for (int i = 0; i < 20; i++) x[i] = sin(3 * i), shifted[i] = x[i] + (i % 2 ? 0 : 1);
    assert_int_equal(psld_sliced_wasserstein(2, 10, x, 10, shifted, 4000, 1, &distance), PSLD_OK);
    assert_true(fabs(distance - 0.63662) < 0.02);
    assert_int_equal(psld_sliced_wasserstein(2, 0, x, 10, shifted, 1, 1, &distance), PSLD_BAD_ARGUMENT);
}

int main(int count, char **arguments)
{
    choose_size(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_is_the_gradient),
        cmocka_unit_test(score_on_the_line),
        cmocka_unit_test(weak_order_is_one),
        cmocka_unit_test(moments_of_mixtures),
        cmocka_unit_test(orders_on_the_flow),
        cmocka_unit_test(draws_of_mixtures),
        cmocka_unit_test(corrector_keeps_the_law),
        cmocka_unit_test(scipy_counts),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(endless_batches),
        cmocka_unit_test(batches_of_whole_groups),
        cmocka_unit_test(wide_states),
        cmocka_unit_test(evaluations_are_counted),
        cmocka_unit_test(failures_come_through),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(mixtures_are_checked),
        cmocka_unit_test(many_components),
        cmocka_unit_test(sliced_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
