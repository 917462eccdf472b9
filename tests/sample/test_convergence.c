/* How the stochastic samplers converge on data that are not Gaussian: weak order, and which is ahead at small budgets.
 *
 * The bias of N steps is far smaller than the statistical error of any number of samples one can afford, so runs of N,
 * 2N, 4N ... steps start from the same states and follow the same Brownian path: the noise of a coarse step is
 * composed of that of the two finer ones that it covers. With additive noise paths then differ by O(1/N), with the
 * same random factor on all levels, and the difference of two levels' moments has an error that is a small part of it.
 *
 * PSLD_TEST_SAMPLES=n asks for the long form: n samples (10,000 are enough for the orders), N = 400 ... 3200, both
 * grids. An argument, for example "told sscs", selects cases. docs/measurements/samplers.md has the results. */
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
#include "sample/options.h"
#include "sample/sample.h"
#include "sample/time_grid.h"
#include "sanitized.h"
#include "targets.h"

static const char *const grids[] = {"uniform", "quadratic"};

static size_t samples = 600, distance_samples = 2000;
static int finest = 800, levels = 3, largest_budget = 125, long_form;
static const char *selected = "";

static void choose_size(void)
{
    const char *wanted = getenv("PSLD_TEST_SAMPLES");
    if (PSLD_SANITIZED) samples = 40, distance_samples = 1000, largest_budget = 30;
    if (!wanted) return;
    samples = distance_samples = (size_t)strtoul(wanted, NULL, 10);
    finest = 3200;
    levels = 4;
    largest_budget = 250;
    long_form = 1;
}

/* ---- A law to sample from ---------------------------------------------------------------------------------------- */

typedef struct target {
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *source;
    int k;
    double mean[PSLD_MAX_K], cov[PSLD_MATRIX_SIZE]; /* of exact p_eps */
} target;

/* Two components of unequal weight and scale on a line. They overlap: with narrower ones paths that end in different
 * components make the differences noisy. */
static target open_target(const char *line, double eps)
{
    static const double weights[2] = {0.4, 0.6}, means[2] = {-0.6, 0.5}, scales[2] = {0.5, 0.3};
    double x_mean, x_variance;
    psld_gaussian kernel;
    target law;
    if (psld_recipe_open(line, &law.recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    assert_int_equal(psld_mixture_create(2, 1, weights, means, scales, &law.mixture), PSLD_OK);
    assert_int_equal(psld_source_mixture(law.mixture, law.recipe, &law.source), PSLD_OK);
    law.k = law.recipe->spec.k;
    psld_mixture_moments(law.mixture, &x_mean, &x_variance);
    psld_kernel(law.recipe, eps, PSLD_HSM, x_variance, &kernel);
    for (int a = 0; a < law.k; a++) law.mean[a] = kernel.mean[a * law.k] * x_mean;
    psld_matrix_copy(law.k, kernel.cov, law.cov);
    return law;
}

static void close_target(target *law)
{
    psld_source_free(law->source);
    psld_mixture_free(law->mixture);
    psld_recipe_free(law->recipe);
}

/* Means and second moments about the exact mean, in units of the exact deviations. */
typedef struct moments {
    double mean[PSLD_MAX_K], second[PSLD_MATRIX_SIZE];
} moments;

static void measure(const target *law, size_t n, const double *z, moments *out)
{
    int k = law->k;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        double scaled[PSLD_MAX_K];
        for (int a = 0; a < k; a++)
            scaled[a] = (z[i * (size_t)k + (size_t)a] - law->mean[a]) / sqrt(law->cov[a * k + a]);
        for (int a = 0; a < k; a++) {
            out->mean[a] += scaled[a] / (double)n;
            for (int b = 0; b < k; b++) out->second[a * k + b] += scaled[a] * scaled[b] / (double)n;
        }
    }
}

static void add_moments(const moments *from, double factor, moments *to)
{
    for (int a = 0; a < PSLD_MAX_K; a++) to->mean[a] += factor * from->mean[a];
    for (int i = 0; i < PSLD_MATRIX_SIZE; i++) to->second[i] += factor * from->second[i];
}

/* What is asked of an error in the moments. */
enum { OF_X, OF_COVARIANCE, OF_MEAN, STATISTICS };
static const char *const statistic_names[] = {"Var x", "covariance", "mean"};

static double size_of(const moments *error, int k, int statistic)
{
    double sum = 0;
    if (statistic == OF_X) return fabs(error->second[0]);
    for (int i = 0; statistic == OF_COVARIANCE && i < k * k; i++) sum += error->second[i] * error->second[i];
    for (int a = 0; statistic == OF_MEAN && a < k; a++) sum += error->mean[a] * error->mean[a];
    return sqrt(sum);
}

/* ---- One path for many grids ------------------------------------------------------------------------------------- */

enum { MAX_LEVELS = 4 };

/* Draw d of a level is A[d] times draw 2d of the next finer level + B[d] times its draw 2d + 1, with A A' + B B' = 1.
 * Euler-Maruyama has one draw a step, splitting two. */
typedef struct ladder {
    int levels, k; /* level 0 is the coarsest */
    uint64_t seed;
    double *A[MAX_LEVELS], *B[MAX_LEVELS];
} ladder;

typedef struct rung {
    const ladder *ladder;
    int level;
} rung;

static void draw_from(const ladder *path, int level, uint64_t sample, uint64_t draw, double *noise)
{
    int k = path->k;
    double first[PSLD_MAX_K], second[PSLD_MAX_K];
    if (level == path->levels - 1) {
        psld_random_normal(path->seed, PSLD_FOR_STEP, sample, draw, 0, (size_t)k, noise);
        return;
    }
    draw_from(path, level + 1, sample, 2 * draw, first);
    draw_from(path, level + 1, sample, 2 * draw + 1, second);
    const double *A = path->A[level] + draw * (size_t)(k * k), *B = path->B[level] + draw * (size_t)(k * k);
    for (int a = 0; a < k; a++) {
        noise[a] = 0;
        for (int b = 0; b < k; b++) noise[a] += A[a * k + b] * first[b] + B[a * k + b] * second[b];
    }
}

static void noise_of_rung(void *user, uint64_t sample, uint64_t draw, size_t first, size_t count, double *noise)
{
    const rung *here = user;
    assert_true(first == 0 && count == (size_t)here->ladder->k);
    draw_from(here->ladder, here->level, sample, draw, noise);
}

/* Brownian increments add up. */
static void compose_increments(int k, double first, double second, double *A, double *B)
{
    psld_matrix_identity(k, A);
    psld_matrix_identity(k, B);
    for (int i = 0; i < k * k; i++) {
        A[i] *= sqrt(first / (first + second));
        B[i] *= sqrt(second / (first + second));
    }
}

/* Exact linear steps follow one another: L n = Phi_2 L_1 n_1 + L_2 n_2. On a grid that is not uniform the finer step
 * from t to u is not quite half of the coarser one; its n is as good a standard normal vector, and close. */
static void compose_transitions(const psld_recipe *recipe, double t, double u, double *A, double *B)
{
    int k = recipe->spec.k;
    double middle = t - 0.5 * (t - u), inverse[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE];
    psld_gaussian first, second, both;
    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, middle, t), NULL, &first);
    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, u, middle), NULL, &second);
    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, u, t), NULL, &both);
    psld_matrix_invert_lower(k, both.factor, inverse);
    psld_matrix_multiply(k, second.mean, first.factor, product);
    psld_matrix_multiply(k, inverse, product, A);
    psld_matrix_multiply(k, inverse, second.factor, B);
}

static void check_composition(int k, const double *A, const double *B)
{
    double sum[PSLD_MATRIX_SIZE], other[PSLD_MATRIX_SIZE];
    psld_matrix_multiply_t(k, A, A, sum);
    psld_matrix_multiply_t(k, B, B, other);
    for (int i = 0; i < k * k; i++) assert_true(fabs(sum[i] + other[i] - (i % (k + 1) == 0)) < 1e-9);
}

static void build_ladder(const psld_recipe *recipe, const char *sampler, const char *grid, double eps, ladder *path)
{
    int k = path->k = recipe->spec.k, splits = strcmp(sampler, "sscs") == 0;
    for (int level = 0; level + 1 < path->levels; level++) {
        int finer = finest >> (path->levels - 2 - level), draws = splits ? finer : finer / 2;
        size_t size = (size_t)(k * k);
        double *times = malloc((size_t)(finer + 1) * sizeof *times);
        assert_int_equal(psld_grid_times(recipe, grid, 7, finer, eps, times), PSLD_OK);
        path->A[level] = malloc((size_t)draws * size * sizeof(double));
        path->B[level] = malloc((size_t)draws * size * sizeof(double));
        for (int d = 0; d < draws; d++) {
            double *A = path->A[level] + (size_t)d * size, *B = path->B[level] + (size_t)d * size;
            if (splits)
                compose_transitions(recipe, times[d], times[d + 1], A, B);
            else
                compose_increments(k, times[2 * d] - times[2 * d + 1], times[2 * d + 1] - times[2 * d + 2], A, B);
            check_composition(k, A, B);
        }
        free(times);
    }
}

static void free_ladder(ladder *path)
{
    for (int level = 0; level + 1 < path->levels; level++) {
        free(path->A[level]);
        free(path->B[level]);
    }
}

/* ---- Weak order -------------------------------------------------------------------------------------------------- */

enum { PARTS = 20 }; /* of the samples, to judge the error by */

/* parts[p][l] = E f on level l - E f on level l + 1, from part p of the samples. */
static void measure_levels(const target *law, const ladder *path, psld_sample_options *options,
                           moments parts[PARTS][MAX_LEVELS])
{
    size_t k = (size_t)law->k, part = samples / PARTS;
    double *start = malloc(samples * k * sizeof *start), *z = malloc(samples * k * sizeof *z);
    rung here = {path, 0};
    options->noise = noise_of_rung;
    options->noise_user = &here;
    assert_int_equal(psld_mixture_draw(law->mixture, law->recipe, 1, 9, 0, samples, start), PSLD_OK);
    memset(parts, 0, PARTS * sizeof *parts);
    for (here.level = 0; here.level < path->levels; here.level++) {
        options->nfe = finest >> (path->levels - 1 - here.level);
        if (psld_sample(law->recipe, law->source, options, 0, samples, 1, start, z, NULL) != PSLD_OK)
            fail_msg("%s", psld_error_text());
        for (size_t p = 0; p < PARTS; p++) {
            moments found;
            measure(law, part, z + p * part * k, &found);
            add_moments(&found, 1, &parts[p][here.level]);
            if (here.level) add_moments(&found, -1, &parts[p][here.level - 1]);
        }
    }
    free(start);
    free(z);
}

/* Bias at the coarsest level and at the last but one, from all parts but one (-1: from all). What is left beyond the
 * finest level is taken to be as large as the last difference: exact for order one. */
static void add_up(const ladder *path, moments parts[PARTS][MAX_LEVELS], int left_out, moments *coarse, moments *fine)
{
    int last = path->levels - 2;
    memset(coarse, 0, sizeof *coarse);
    memset(fine, 0, sizeof *fine);
    for (int p = 0; p < PARTS; p++) {
        if (p == left_out) continue;
        double weight = 1.0 / (left_out < 0 ? PARTS : PARTS - 1);
        for (int level = 0; level <= last; level++) add_moments(&parts[p][level], weight, coarse);
        add_moments(&parts[p][last], weight, coarse);
        add_moments(&parts[p][last], 2 * weight, fine);
    }
}

typedef struct estimate {
    double value, error;
} estimate;

/* The observed order, with its statistical error by leaving out a part at a time. */
static estimate observed_order(const ladder *path, moments parts[PARTS][MAX_LEVELS], int statistic)
{
    double sum = 0, squares = 0, halvings = path->levels - 2;
    estimate order = {0, 0};
    for (int p = -1; p < PARTS; p++) {
        moments coarse, fine;
        add_up(path, parts, p, &coarse, &fine);
        double found = log2(size_of(&coarse, path->k, statistic) / size_of(&fine, path->k, statistic)) / halvings;
        if (p < 0) order.value = found;
        if (p >= 0) sum += found / PARTS, squares += found * found / PARTS;
    }
    order.error = sqrt(fmax(squares - sum * sum, 0) * (PARTS - 1));
    return order;
}

/* Of the means the bias is too small beside that of the variances to be measured everywhere. On the uniform grid the
 * last step is longer than the time it ends at, until N = 1000: what auxiliary variables do there is not resolved, and
 * their variances converge faster than the order says until it is. */
static int is_resolved(int statistic, const char *grid)
{
    return statistic == OF_X || (statistic == OF_COVARIANCE && strcmp(grid, "quadratic") == 0);
}

static void check_order(const char *line, const char *sampler, const char *grid)
{
    static moments parts[PARTS][MAX_LEVELS];
    moments coarse, fine;
    psld_sample_options options = em_options();
    char name[64];
    snprintf(name, sizeof name, "%s %s %s", line, sampler, grid);
    if (!strstr(name, selected)) return;
    options.sampler = sampler;
    options.grid = grid;
    options.denoise = 0;
    target law = open_target(line, options.eps);
    ladder path = {.levels = levels, .seed = 11};
    build_ladder(law.recipe, sampler, grid, options.eps, &path);
    measure_levels(&law, &path, &options, parts);
    add_up(&path, parts, -1, &coarse, &fine);
    for (int s = 0; s < (long_form ? STATISTICS : OF_MEAN); s++) {
        estimate order = observed_order(&path, parts, s);
        printf("%-32s %-10s order %.3f +- %.3f, error at N = %d %.2e\n", name, statistic_names[s], order.value,
               order.error, finest >> (levels - 1), size_of(&coarse, law.k, s));
        if (is_resolved(s, grid)) assert_true(fabs(order.value - 1) < 0.1 + 3 * order.error);
    }
    fflush(stdout);
    free_ladder(&path);
    close_target(&law);
}

static void weak_order_on_a_mixture(void **state)
{
    (void)state;
    for (int p = 0; p < PRESETS; p++)
        for (int g = long_form ? 0 : 1; g < 2; g++) {
            check_order(preset_lines[p], "em", grids[g]);
            check_order(preset_lines[p], "sscs", grids[g]);
        }
}

/* ---- Small budgets ----------------------------------------------------------------------------------------------- */

/* Distances of what a sampler gives from exact p_eps, in units of its deviations. */
typedef struct distances {
    double covariance; /* Frobenius norm of the difference */
    double x, state;   /* Wasserstein, of x and (sliced) of all variables */
} distances;

static void scale_states(const target *law, double *z)
{
    size_t k = (size_t)law->k;
    for (size_t i = 0; i < distance_samples * k; i++) z[i] /= sqrt(law->cov[i % k * (k + 1)]);
}

static distances distances_after(const target *law, const char *sampler, const char *grid, int steps)
{
    size_t k = (size_t)law->k, n = distance_samples;
    double *z = malloc(n * k * sizeof *z), *exact = malloc(n * k * sizeof *exact);
    distances found;
    moments error;
    psld_sample_options options = em_options();
    options.sampler = sampler;
    options.grid = grid;
    options.nfe = steps;
    options.denoise = 0;
    assert_int_equal(psld_mixture_draw(law->mixture, law->recipe, 1, 9, 0, n, z), PSLD_OK);
    assert_int_equal(psld_sample(law->recipe, law->source, &options, 0, n, 1, z, z, NULL), PSLD_OK);
    assert_int_equal(psld_mixture_draw(law->mixture, law->recipe, options.eps, 5, 0, n, exact), PSLD_OK);
    measure(law, n, z, &error);
    for (int i = 0; i < law->k * law->k; i++)
        error.second[i] -=
            law->cov[i] / sqrt(law->cov[i / law->k * (law->k + 1)] * law->cov[i % law->k * (law->k + 1)]);
    found.covariance = size_of(&error, law->k, OF_COVARIANCE);
    scale_states(law, z);
    scale_states(law, exact);
    assert_int_equal(psld_sliced_wasserstein(k, n, z, n, exact, 50, 1, &found.state), PSLD_OK);
    for (size_t i = 0; i < n; i++) z[i] = z[i * k], exact[i] = exact[i * k];
    assert_int_equal(psld_sliced_wasserstein(1, n, z, n, exact, 1, 1, &found.x), PSLD_OK);
    free(z);
    free(exact);
    return found;
}

static void splitting_is_ahead_at_small_budgets(void **state)
{
    (void)state;
    static const int budgets[] = {30, 60, 125, 250};
    for (int p = 1; p < PRESETS; p++) /* with k = 1 there is no linear part to gain from */
        for (int g = 0; g < 2; g++) {
            target law = open_target(preset_lines[p], 1e-3);
            for (int b = 0; b < 4 && budgets[b] <= largest_budget; b++) {
                distances em = distances_after(&law, "em", grids[g], budgets[b]),
                          sscs = distances_after(&law, "sscs", grids[g], budgets[b]);
                printf("%-16s %-9s N = %3d: em, sscs: covariance %.3g, %.3g; x %.3g, %.3g; state %.3g, %.3g\n",
                       preset_lines[p], grids[g], budgets[b], em.covariance, sscs.covariance, em.x, sscs.x, em.state,
                       sscs.state);
                fflush(stdout);
                assert_true(sscs.covariance < em.covariance && sscs.state < em.state);
            }
            close_target(&law);
        }
}

int main(int count, char **arguments)
{
    choose_size();
    if (count > 1) selected = arguments[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitting_is_ahead_at_small_budgets),
        cmocka_unit_test(weak_order_on_a_mixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
