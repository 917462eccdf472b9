/* Inpainting: what is known comes back to the bit, what is unknown is independent of how the work is cut, and its
 * distribution is measured against the exact conditional of a mixture. */
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
#include "psld_eval.h"
#include "sample/inverse/inpaint.h"
#include "sanitized.h"

static const char *const preset_lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
enum { PRESETS = sizeof preset_lines / sizeof *preset_lines };

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* Two clusters in three dimensions: the first coordinate tells which of them. */
static psld_mixture *clusters(void)
{
    const double weights[2] = {0.4, 0.6}, means[6] = {-0.8, 0.6, 0.3, 0.8, -0.4, -0.5}, scales[2] = {0.3, 0.3};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 3, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

static psld_sample_options options_for(const char *sampler, int nfe, const psld_inpainting *inpainting)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = sampler;
    options.nfe = nfe;
    options.seed = 11;
    options.inpainting = inpainting;
    return options;
}

static void known_comes_back(void **state)
{
    (void)state;
    const double x[6] = {0.123456789, 0, -0.5, 0.7, 0.25, 0};
    const unsigned char known[6] = {1, 0, 1, 1, 1, 0};
    psld_mixture *mixture = clusters();
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    inpainting.images = 2;
    inpainting.each = 3;
    inpainting.x = x;
    inpainting.known = known;
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        size_t k = (size_t)recipe->spec.k;
        double *z = malloc(12 * 3 * k * sizeof *z);
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (int s = 0; psld_sampler_at(s); s++) {
            psld_sample_options options = options_for(psld_sampler_at(s)->name, 21, &inpainting);
            options.tolerance = 1e-3;
            if (psld_sample(recipe, source, &options, 0, 12, 3, NULL, z, NULL) != PSLD_OK)
                fail_msg("%s: %s", options.sampler, psld_error_text());
            for (size_t i = 0; i < 12; i++)
                for (size_t j = 0; j < 3; j++) {
                    size_t image = i / 3 % 2;
                    if (known[image * 3 + j]) assert_true(z[i * 3 * k + j] == x[image * 3 + j]);
                }
        }
        free(z);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

static void same_bits_however_cut(void **state)
{
    (void)state;
    const double x[3] = {0.4, 0, 0};
    const unsigned char known[3] = {1, 0, 0};
    enum { N = 24 };
    psld_mixture *mixture = clusters();
    psld_recipe *recipe = open_recipe("psld");
    psld_source *source;
    double whole[N * 6], part[N * 6];
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    inpainting.x = x;
    inpainting.known = known;
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    for (inpainting.repeats = 1; inpainting.repeats <= 3; inpainting.repeats += 2) {
        psld_sample_options options = options_for("sscs", 31, &inpainting);
        options.corrector = 1;
        inpainting.jump = 2;
        uint64_t nfe;
        assert_int_equal(psld_sample(recipe, source, &options, 0, N, 3, NULL, whole, &nfe), PSLD_OK);
        assert_true(nfe == 1 + 30 * (uint64_t)inpainting.repeats);
        options.batch = 5;
        assert_int_equal(psld_sample(recipe, source, &options, 0, 10, 3, NULL, part, NULL), PSLD_OK);
        assert_int_equal(psld_sample(recipe, source, &options, 10, 14, 3, NULL, part + 60, NULL), PSLD_OK);
        assert_memory_equal(whole, part, sizeof whole);
    }
    psld_source_free(source);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void bad_options(void **state)
{
    (void)state;
    const double x = 0;
    const unsigned char known = 1;
    double z;
    const double one = 1, zero = 0;
    psld_recipe *recipe = open_recipe("vp");
    psld_mixture *mixture;
    psld_source *source;
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    inpainting.x = &x;
    inpainting.known = &known;
    assert_int_equal(psld_mixture_create(1, 1, &one, &zero, &one, &mixture), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    inpainting.repeats = 5;
    psld_sample_options options = options_for("ode", 20, &inpainting);
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(),
                        "repeats: the sampler ode chooses its own steps and cannot repeat them: set 1");
    options.sampler = "em";
    options.nfe = 1;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "nfe: em needs at least 2 evaluations here, found 1");
    inpainting.repeats = 0;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    inpainting.repeats = 1;
    inpainting.each = 0;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

/* ---- Against the exact conditional ------------------------------------------------------------------------------- */

/* A mixture whose first coordinate is known. */
enum { MAX_PARTS = 13, MAX_DIM = 3 };
typedef struct problem {
    const char *name;
    size_t parts, dim;
    double weights[MAX_PARTS], means[MAX_PARTS * MAX_DIM], scales[MAX_PARTS], known;
} problem;

/* Two clusters, of which the known coordinate nearly tells which. */
static problem clusters_problem(void)
{
    return (problem){.name = "clusters",
                     .parts = 2,
                     .dim = 3,
                     .weights = {0.4, 0.6},
                     .means = {-0.8, 0.6, 0.3, 0.8, -0.4, -0.5},
                     .scales = {0.3, 0.3},
                     .known = 0.3};
}

/* A correlated Gaussian in the plane, nearly, as a chain of round ones along the diagonal. */
static problem diagonal_problem(void)
{
    problem p = {.name = "diagonal", .parts = MAX_PARTS, .dim = 2, .known = 0.6};
    double sum = 0;
    for (int c = 0; c < MAX_PARTS; c++) {
        double u = -1.2 + 0.2 * c;
        sum += p.weights[c] = exp(-2 * u * u);
        p.means[2 * c] = p.means[2 * c + 1] = u;
        p.scales[c] = 0.2;
    }
    for (int c = 0; c < MAX_PARTS; c++) p.weights[c] /= sum;
    return p;
}

/* n exact draws [n][dim - 1] of what is unknown: a mixture too. */
static void draw_conditional(const problem *p, uint64_t seed, size_t n, double *points)
{
    double weights[MAX_PARTS], means[MAX_PARTS * MAX_DIM], sum = 0;
    size_t rest = p->dim - 1;
    psld_recipe *recipe = open_recipe("vp"); /* at t = 0 its states are the data */
    psld_mixture *mixture;
    for (size_t c = 0; c < p->parts; c++) {
        double off = (p->known - p->means[c * p->dim]) / p->scales[c];
        sum += weights[c] = p->weights[c] / p->scales[c] * exp(-off * off / 2);
        for (size_t j = 0; j < rest; j++) means[c * rest + j] = p->means[c * p->dim + 1 + j];
    }
    for (size_t c = 0; c < p->parts; c++) weights[c] /= sum;
    assert_int_equal(psld_mixture_create(p->parts, rest, weights, means, p->scales, &mixture), PSLD_OK);
    assert_int_equal(psld_mixture_draw(mixture, recipe, 0, seed, 0, n, points), PSLD_OK);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

/* Sliced Wasserstein distance of n inpainted samples from exact ones. */
static double inpainting_error(const problem *p, const char *line, const char *sampler, int nfe, int repeats, size_t n)
{
    double x[MAX_DIM] = {p->known}, distance;
    const unsigned char known[MAX_DIM] = {1};
    size_t rest = p->dim - 1;
    psld_recipe *recipe = open_recipe(line);
    size_t state = (size_t)recipe->spec.k * p->dim;
    double *z = malloc(n * state * sizeof *z), *points = malloc(2 * n * rest * sizeof *points);
    psld_mixture *mixture;
    psld_source *source;
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    inpainting.x = x;
    inpainting.known = known;
    inpainting.repeats = repeats;
    psld_sample_options options = options_for(sampler, nfe, &inpainting);
    assert_int_equal(psld_mixture_create(p->parts, p->dim, p->weights, p->means, p->scales, &mixture), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    if (psld_sample(recipe, source, &options, 0, n, p->dim, NULL, z, NULL) != PSLD_OK)
        fail_msg("%s, %s: %s", line, sampler, psld_error_text());
    for (size_t i = 0; i < n; i++) memcpy(points + i * rest, z + i * state + 1, rest * sizeof *points);
    draw_conditional(p, 5, n, points + n * rest);
    assert_int_equal(psld_sliced_wasserstein(rest, n, points, n, points + n * rest, 32, 0, &distance), PSLD_OK);
    free(z);
    free(points);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    return distance;
}

/* The distance of two exact sets: what no error can be told from. */
static double distance_of_exact_sets(const problem *p, size_t n)
{
    size_t rest = p->dim - 1;
    double *points = malloc(2 * n * rest * sizeof *points), distance;
    draw_conditional(p, 5, n, points);
    draw_conditional(p, 6, n, points + n * rest);
    assert_int_equal(psld_sliced_wasserstein(rest, n, points, n, points + n * rest, 32, 0, &distance), PSLD_OK);
    free(points);
    return distance;
}

/* Resampling at its default of ten repeats has at most half the error of replacement, for every recipe and sampler. */
static void resampling_halves_the_error(void **state)
{
    (void)state;
    static const struct {
        const char *sampler;
        int nfe;
    } ways[] = {{"ancestral", 21}, {"collapsed", 21}, {"sscs", 41}, {"em", 61}};
    enum { WAYS = sizeof ways / sizeof *ways };
    const problem problems[] = {clusters_problem(), diagonal_problem()};
    const char *text = getenv("PSLD_TEST_SAMPLES");
    size_t asked = text ? (size_t)strtoull(text, NULL, 10) : 0, n = asked ? asked : PSLD_SANITIZED ? 100 : 400;
    for (int i = 0; i < 2; i++) {
        printf("%s: two exact sets are %.3f apart\n", problems[i].name, distance_of_exact_sets(&problems[i], n));
        for (int p = 0; p < PRESETS; p++) {
            double plain = inpainting_error(&problems[i], preset_lines[p], "sscs", 61, 1, n);
            printf("%s, %s: replace %.3f; resample", problems[i].name, preset_lines[p], plain);
            for (int w = 0; w < WAYS; w++) {
                if (!asked && w != 0 && w != 1 + (p + i) % (WAYS - 1)) continue; /* two of them, in turn */
                double error = inpainting_error(&problems[i], preset_lines[p], ways[w].sampler, ways[w].nfe, 10, n);
                printf(" %.3f (%s, %d x 10)", error, ways[w].sampler, ways[w].nfe - 1);
                assert_true(error <= plain / 2);
            }
            printf("\n");
        }
    }
}

/* The jump takes p_u to p_t whatever the recipe: states drawn at u, noised to t, have the moments of p_t. */
static void jumps_keep_the_law(void **state)
{
    (void)state;
    enum { N = PSLD_SANITIZED ? 500 : 4000 };
    const double u = 0.05, t = 0.2, one = 1, centre = 0.7, scale = 0.4;
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(1, 1, &one, &centre, &scale, &mixture), PSLD_OK);
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source;
        psld_gaussian kernel;
        int k = recipe->spec.k;
        double *z = malloc((size_t)(N * k) * sizeof *z);
        psld_sample_options options = options_for("em", 10, NULL);
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        assert_int_equal(psld_mixture_draw(mixture, recipe, u, 3, 0, N, z), PSLD_OK);
        psld_reverse reverse = {.recipe = recipe, .source = source, .options = &options, .dim = 1, .count = N, .z = z};
        reverse.k = (size_t)k;
        reverse.predicted = (size_t)recipe->predicted;
        reverse.eps = calloc((size_t)(N * k), sizeof *reverse.eps);
        assert_int_equal(psld_inpaint_diffuse(&reverse, u, t, 0), PSLD_OK);
        psld_kernel(recipe, t, PSLD_HSM, scale * scale, &kernel);
        for (int a = 0; a < k; a++)
            for (int b = 0; b <= a; b++) {
                double cov = kernel.cov[a * k + b], mean_a = kernel.mean[a * k] * centre, sum = 0, first = 0;
                double mean_b = kernel.mean[b * k] * centre, size = kernel.cov[a * k + a] * kernel.cov[b * k + b];
                for (int i = 0; i < N; i++) {
                    first += (z[i * k + a] - mean_a) / N;
                    sum += (z[i * k + a] - mean_a) * (z[i * k + b] - mean_b) / N;
                }
                assert_true(fabs(first) < 4.5 * sqrt(kernel.cov[a * k + a] / N));
                assert_true(fabs(sum - cov) < 4.5 * sqrt((size + cov * cov) / N));
            }
        free(reverse.eps);
        free(z);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_comes_back), cmocka_unit_test(same_bits_however_cut),
                                       cmocka_unit_test(jumps_keep_the_law),
                                       cmocka_unit_test(resampling_halves_the_error), cmocka_unit_test(bad_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
