/* The denoiser view of sources: against posterior means by their definition, for exact sources and learned ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipes.h"
#include "sample/sources/denoiser.h"

enum { RECIPES = 10 };

static const double weights[2] = {0.3, 0.7}, means[2] = {-0.8, 0.6}, scales[2] = {0.3, 0.15};

/* E[x_0 | z_t] of a mixture of two in one dimension: each component's own regression, weighed by its density at z. */
static double posterior_mean(const psld_recipe *recipe, double t, const double *z)
{
    int k = recipe->spec.k;
    long double logs[2], clean[2];
    for (int c = 0; c < 2; c++) {
        psld_gaussian kernel;
        double inverse[PSLD_MATRIX_SIZE];
        psld_kernel(recipe, t, PSLD_HSM, scales[c] * scales[c], &kernel);
        psld_matrix_invert_lower(k, kernel.factor, inverse);
        logs[c] = logl(weights[c]);
        clean[c] = means[c];
        for (int a = 0; a < k; a++) {
            long double white = 0, column = 0;
            for (int b = 0; b <= a; b++) {
                white += inverse[a * k + b] * (z[b] - (long double)kernel.mean[b * k] * means[c]);
                column += (long double)inverse[a * k + b] * kernel.mean[b * k];
            }
            logs[c] -= white * white / 2 + logl(kernel.factor[a * k + a]);
            clean[c] += scales[c] * scales[c] * column * white;
        }
    }
    long double share = 1 / (1 + expl(logs[1] - logs[0]));
    return (double)(share * clean[0] + (1 - share) * clean[1]);
}

static void exact_sources_give_posterior_means(void **state)
{
    (void)state;
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 1, weights, means, scales, &mixture), PSLD_OK);
    for (int i = 0; i < RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i);
        psld_source *source;
        double worst = 0;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (double t = 1e-4; t <= 1; t *= 1.7) {
            enum { DRAWS = 20 };
            double z[DRAWS * PSLD_MAX_K], times[DRAWS], x[DRAWS], sigma;
            for (int n = 0; n < DRAWS; n++) times[n] = t;
            assert_int_equal(psld_mixture_draw(mixture, recipe, t, 3, 0, DRAWS, z), PSLD_OK);
            assert_int_equal(psld_source_denoise(source, recipe, &PSLD_STATES(DRAWS, 1, z, times), x), PSLD_OK);
            assert_int_equal(psld_recipe_sigma(recipe, t, &sigma), PSLD_OK);
            for (int n = 0; n < DRAWS; n++)
                worst = fmax(worst, fabs(x[n] - posterior_mean(recipe, t, z + n * recipe->spec.k)) / (1 + sigma));
        }
        print_message("%s: clean values within %.1e of posterior means\n", recipe->spec.name, worst);
        assert_true(worst < 1e-9);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* What an ideal network would say for data that are one point: eps = L^-1 (z - mu x), L being stabilised. */
typedef struct point {
    const psld_recipe *recipe;
    double x;
} point;

static psld_status predict_point(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    const double *z = states->z, *t = states->t;
    const point *p = user;
    int k = p->recipe->spec.k, predicted = p->recipe->predicted;
    for (size_t i = 0; i < n; i++) {
        double inverse[PSLD_MATRIX_SIZE], mean[PSLD_MATRIX_SIZE];
        psld_recipe_kernel(p->recipe, t[i], PSLD_HSM, mean, NULL, NULL);
        psld_recipe_factor(p->recipe, t[i], PSLD_HSM, NULL, inverse);
        for (size_t c = 0; c < (size_t)predicted; c++)
            for (size_t j = 0; j < dim; j++) {
                double sum = 0;
                for (int b = 0; b < k; b++)
                    sum += inverse[p->recipe->variable[c] * k + b] *
                           (z[(i * (size_t)k + (size_t)b) * dim + j] - mean[b * k] * p->x);
                eps[(i * (size_t)predicted + c) * dim + j] = sum;
            }
    }
    return PSLD_OK;
}

static void learned_sources_belong_to_the_stabilised_kernel(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i);
        point p = {recipe, 0.37};
        psld_source *source;
        int k = recipe->spec.k, predicted = recipe->predicted;
        assert_int_equal(
            psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict_point, .user = &p},
                                 &source),
            PSLD_OK);
        for (double t = 1e-5; t <= 1; t *= 3) {
            double z[3 * PSLD_MAX_K], times[1] = {t}, x[3], eps[3 * PSLD_MAX_K], again[3 * PSLD_MAX_K];
            psld_gaussian kernel;
            psld_denoiser denoiser;
            psld_source_kernel(recipe, 0, t, &kernel);
            for (int a = 0; a < k; a++)
                for (int j = 0; j < 3; j++) {
                    z[a * 3 + j] = kernel.mean[a * k] * p.x;
                    for (int b = 0; b <= a; b++) z[a * 3 + j] += kernel.factor[a * k + b] * sin(1 + 7 * b + j);
                }
            assert_int_equal(psld_source_denoise(source, recipe, &PSLD_STATES(1, 3, z, times), x), PSLD_OK);
            for (int j = 0; j < 3; j++) assert_true(fabs(x[j] - p.x) < 1e-10);
            assert_int_equal(psld_denoiser_plan(recipe, 0, t, &denoiser), PSLD_OK);
            psld_denoiser_eps(&denoiser, 1, 3, z, x, again);
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 3, z, times), eps), PSLD_OK);
            for (int j = 0; j < 3 * predicted; j++) assert_true(fabs(eps[j] - again[j]) < 1e-5);
        }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
}

/* The constants that everybody may have are those by which sources are asked for clean data. */
static void constants_are_those_of_denoising(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i);
        psld_source *source;
        point p = {recipe, 0.37};
        size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted;
        assert_int_equal(
            psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict_point, .user = &p},
                                 &source),
            PSLD_OK);
        for (double t = 1e-3; t <= 1; t *= 5) {
            double z[PSLD_MAX_K], eps[PSLD_MAX_K], x, sum = 0;
            double to_x[PSLD_MAX_K], noise[PSLD_MAX_K], white[PSLD_MATRIX_SIZE], gain[PSLD_MAX_K];
            for (size_t a = 0; a < k; a++) z[a] = sin(1 + 3 * (double)a);
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 1, z, &t), eps), PSLD_OK);
            assert_int_equal(psld_source_denoise(source, recipe, &PSLD_STATES(1, 1, z, &t), &x), PSLD_OK);
            assert_int_equal(psld_recipe_denoiser(recipe, t, to_x, noise, white, gain), PSLD_OK);
            for (size_t a = 0; a < k; a++) sum += to_x[a] * z[a];
            for (size_t c = 0; c < predicted; c++) sum += noise[c] * eps[c];
            assert_true(fabs(sum - x) <= 1e-12 * (1 + fabs(x)));
            for (size_t c = 0; c < predicted; c++) { /* its eps is that of one clean number, so the way back is exact */
                double again = -gain[c] * x;
                for (size_t a = 0; a < k; a++) again += white[c * k + a] * z[a];
                assert_true(fabs(again - eps[c]) <= 1e-5 * (1 + fabs(eps[c])));
            }
        }
        assert_int_equal(psld_recipe_denoiser(recipe, 0.5, NULL, NULL, NULL, NULL), PSLD_OK);
        assert_int_equal(psld_recipe_denoiser(recipe, 0, NULL, NULL, NULL, NULL), PSLD_BAD_ARGUMENT);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
}

/* The kernel of learned sources has the stabiliser on its diagonal, and its factor is one. */
static void kernels_of_sources(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES; i++) {
        psld_recipe *recipe = numbered_recipe(i);
        psld_gaussian exact, learned;
        int k = recipe->spec.k;
        psld_source_kernel(recipe, 1, 1e-3, &exact);
        psld_source_kernel(recipe, 0, 1e-3, &learned);
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++) {
                double product = 0, expected = exact.cov[a * k + b] + (a == b ? recipe->spec.stabiliser : 0);
                for (int c = 0; c < k; c++) product += learned.factor[a * k + c] * learned.factor[b * k + c];
                double scale = sqrt(learned.cov[a * k + a] * learned.cov[b * k + b]);
                assert_true(fabs(learned.cov[a * k + b] - expected) <= 1e-15 * scale);
                assert_true(fabs(product - expected) <= 1e-14 * scale);
            }
        psld_recipe_free(recipe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_sources_give_posterior_means),
                                       cmocka_unit_test(learned_sources_belong_to_the_stabilised_kernel),
                                       cmocka_unit_test(constants_are_those_of_denoising),
                                       cmocka_unit_test(kernels_of_sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
