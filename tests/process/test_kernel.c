/* The perturbation kernel against 60-digit truth, against the moment ODEs in extended precision, and against closed
 * forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"
#include "recipes.h"

static psld_recipe *recipe_of_row(const json_t *row)
{
    psld_recipe *recipe = NULL;
    psld_recipe_spec spec;
    const char *process = golden_text(row, "process");
    double beta[2];
    golden_numbers(json_object_get(row, "beta"), beta);
    if (json_object_get(row, "D")) {
        golden_spec(row, &spec);
        assert_int_equal(psld_recipe_create(&spec, &recipe), PSLD_OK);
        return recipe;
    }
    char line[256];
    if (strcmp(process, "vpsde") == 0)
        snprintf(line, sizeof line, "vp beta=[%.17g, %.17g]", beta[0], beta[1]);
    else
        snprintf(line, sizeof line, "psld gamma=%s nu=%s m_inv=%s kappa=%s beta=[%.17g, %.17g]",
                 golden_text(row, "gamma"), golden_text(row, "nu"), golden_text(row, "m_inv"),
                 golden_text(row, "kappa"), beta[0], beta[1]);
    assert_int_equal(psld_recipe_open(line, &recipe), PSLD_OK);
    return recipe;
}

/* Largest error of the entries relative to themselves; an entry that passes through zero is measured against 1e-3 of
 * the geometric mean of its diagonal entries. */
static double relative_error(int k, const double *found, const double *truth)
{
    double worst = 0;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double t = truth[i * k + j];
            double scale = fmax(fabs(t), 1e-3 * sqrt(fabs(truth[i * k + i] * truth[j * k + j])));
            if (found[i * k + j] != t) worst = fmax(worst, fabs(found[i * k + j] - t) / scale);
        }
    return worst;
}

static void check_kernels(const char *folder)
{
    json_t *rows = golden_json(folder, "kernels.json");
    double worst[3] = {0};
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *row = json_array_get(rows, r);
        psld_recipe *recipe = recipe_of_row(row);
        int k = psld_recipe_get(recipe)->k;
        psld_mode mode = strcmp(golden_text(row, "mode"), "dsm") == 0 ? PSLD_DSM : PSLD_HSM;
        double found[3][PSLD_MATRIX_SIZE], truth[PSLD_MATRIX_SIZE], t = golden_number(json_object_get(row, "t"));
        assert_int_equal(psld_recipe_kernel(recipe, t, mode, found[0], found[1], found[2]), PSLD_OK);
        static const char *const names[3] = {"mean", "cov", "chol"};
        for (int i = 0; i < 3; i++) {
            golden_numbers(json_object_get(row, names[i]), truth);
            double error = relative_error(k, found[i], truth), limit = i == 2 && k > 3 ? 1e-10 : 1e-12;
            worst[i] = fmax(worst[i], error);
            if (!(error <= limit))
                fail_msg("row %zu (%s, t = %g): %s off by %g, at most %g", r, golden_text(row, "process"), t, names[i],
                         error, limit);
        }
        psld_recipe_free(recipe);
    }
    printf("%s: %zu kernels: largest relative error: mean %.2g, cov %.2g, chol %.2g, tolerance 1e-12\n", folder,
           json_array_size(rows), worst[0], worst[1], worst[2]);
    json_decref(rows);
}

static void golden_kernels(void **state)
{
    (void)state;
    const golden_list *list = golden_find("kernels.json");
    for (size_t i = 0; i < list->count; i++) check_kernels(list->folders[i]);
}

/* ---- A second method: Gauss-Legendre quadrature of int exp(A s) S exp(A' s) ds in long double -------------------- */

typedef long double wide;

static void wide_multiply(int k, const wide *a, const wide *b, wide *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            wide sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[l * k + j];
            out[i * k + j] = sum;
        }
}

static void wide_exponential(int k, const wide *a, wide h, wide *out)
{
    wide term[PSLD_MATRIX_SIZE], next[PSLD_MATRIX_SIZE], norm = 0;
    int halvings = 0;
    for (int i = 0; i < k * k; i++) norm += fabsl(a[i]);
    while (norm * h > 0.5L) h /= 2, halvings++;
    for (int i = 0; i < k * k; i++) out[i] = term[i] = i % (k + 1) == 0;
    for (int j = 1; j < 40; j++) {
        wide_multiply(k, a, term, next);
        for (int i = 0; i < k * k; i++) out[i] += term[i] = next[i] * h / j;
    }
    while (halvings-- > 0) {
        wide_multiply(k, out, out, next);
        memcpy(out, next, sizeof(wide) * (size_t)(k * k));
    }
}

enum { NODES = 24 };

/* Roots of the Legendre polynomial by Newton's method. */
static void legendre_rule(wide *x, wide *w)
{
    for (int i = 0; i < NODES; i++) {
        wide z = cosl(3.14159265358979323846L * (i + 0.75L) / (NODES + 0.5L)), slope = 0;
        for (int step = 0; step < 60; step++) {
            wide p = 1, before = 0;
            for (int n = 1; n <= NODES; n++) {
                wide next = ((2 * n - 1) * z * p - (n - 1) * before) / n;
                before = p;
                p = next;
            }
            slope = NODES * (z * p - before) / (z * z - 1);
            z -= p / slope;
        }
        x[i] = (1 + z) / 2;
        w[i] = 1 / ((1 - z * z) * slope * slope);
    }
}

/* Mean map and covariance over beta-time h from start variances, all in the recipe's own units. */
static void integrate_kernel(const psld_recipe_spec *spec, wide h, const wide *start, double *mean, double *cov)
{
    int k = spec->k, panels = 1;
    wide a[PSLD_MATRIX_SIZE], phi[PSLD_MATRIX_SIZE], sum[PSLD_MATRIX_SIZE] = {0}, x[NODES], w[NODES], norm = 0;
    for (int i = 0; i < k * k; i++) {
        a[i] = -((wide)spec->D[i] + spec->Q[i]) / (i % k ? spec->mass[i % k - 1] : 1);
        norm += fabsl(a[i]);
    }
    while (norm * h / panels > 2) panels *= 2;
    legendre_rule(x, w);
    for (int p = 0; p < panels; p++)
        for (int n = 0; n < NODES; n++) {
            wide left[PSLD_MATRIX_SIZE], s[PSLD_MATRIX_SIZE];
            for (int i = 0; i < k * k; i++) s[i] = 2 * (wide)spec->D[i];
            wide_exponential(k, a, h * (p + x[n]) / panels, phi);
            wide_multiply(k, phi, s, left);
            for (int i = 0; i < k; i++)
                for (int j = 0; j < k; j++)
                    for (int l = 0; l < k; l++) sum[i * k + j] += w[n] * h / panels * left[i * k + l] * phi[j * k + l];
        }
    wide_exponential(k, a, h, phi);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            for (int l = 0; l < k; l++) sum[i * k + j] += phi[i * k + l] * start[l] * phi[j * k + l];
            mean[i * k + j] = (double)phi[i * k + j];
            cov[i * k + j] = (double)sum[i * k + j];
        }
}

static void check_random(const psld_recipe *recipe, double t, psld_mode mode, double *worst)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    int k = spec->k;
    wide start[PSLD_MAX_K] = {0};
    for (int i = 1; mode == PSLD_HSM && i < k; i++) start[i] = (wide)spec->init[i - 1] * spec->mass[i - 1];
    wide h = (wide)spec->beta_min * t + ((wide)spec->beta_max - spec->beta_min) * t * t / 2;
    double mean[PSLD_MATRIX_SIZE], cov[PSLD_MATRIX_SIZE], found[3][PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE];
    integrate_kernel(spec, h, start, mean, cov);
    assert_int_equal(psld_recipe_kernel(recipe, t, mode, found[0], found[1], found[2]), PSLD_OK);
    psld_matrix_multiply_t(k, found[2], found[2], product);
    double error[3] = {relative_error(k, found[0], mean), relative_error(k, found[1], cov),
                       relative_error(k, product, cov)};
    for (int i = 0; i < 3; i++) {
        worst[i] = fmax(worst[i], error[i]);
        if (!(error[i] <= 1e-12))
            fail_msg("%s, t = %g, mode %d: %s off by %g", spec->name, t, mode,
                     i == 0   ? "mean"
                     : i == 1 ? "cov"
                              : "chol chol'",
                     error[i]);
    }
}

static void random_recipes_against_quadrature(void **state)
{
    (void)state;
    static const double times[] = {1e-5, 1e-3, 0.03, 0.3, 1};
    double worst[3] = {0};
    for (int k = 1; k <= 6; k++)
        for (int kind = 0; kind < RECIPE_KINDS; kind++)
            for (uint64_t number = 0; number < 3; number++) {
                psld_recipe *recipe = random_recipe(k, (recipe_kind)kind, number);
                assert_non_null(recipe);
                for (size_t i = 0; i < sizeof times / sizeof *times; i++)
                    for (int mode = PSLD_HSM; mode <= PSLD_DSM; mode++)
                        check_random(recipe, times[i], (psld_mode)mode, worst);
                psld_recipe_free(recipe);
            }
    printf("random recipes, k = 1..6: largest relative error: mean %.2g, cov %.2g, chol chol' %.2g (1e-12)\n", worst[0],
           worst[1], worst[2]);
}

/* The paper's closed forms (docs/explanation/recipe.md has the misprints), away from where they cancel. */
static void closed_forms(void **state)
{
    (void)state;
    psld_recipe *recipe;
    double mean[4], cov[4], t = 0.4, B = 8 * t, gamma = 0.25, nu = 4.25, M = 0.25, s_mm = 0.04 * M;
    double decay = exp(-(nu + gamma) / 4 * B), grow = exp((nu + gamma) / 2 * B) - 1, m_inv = 1 / M;
    assert_int_equal(psld_recipe_open("psld gamma=0.25", &recipe), PSLD_OK);
    assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, mean, cov, NULL), PSLD_OK);
    const double mean_paper[4] = {(1 + (nu - gamma) / 4 * B) * decay, m_inv / 2 * B * decay, -B / 2 * decay,
                                  (1 + (gamma - nu) / 4 * B) * decay};
    double xx = m_inv * m_inv / 4 * B * B * s_mm - m_inv / 2 * B * B + (gamma - nu) / 2 * B + grow;
    double xm = pow(gamma - nu, 3) / 32 * B * B * s_mm + m_inv / 2 * B * s_mm + (nu - gamma) / 4 * B * B;
    double mm =
        m_inv / 4 * B * B * s_mm + (gamma - nu) / 2 * B * s_mm - B * B / 2 + M * (nu - gamma) / 2 * B + M * grow + s_mm;
    const double cov_paper[4] = {xx * decay * decay, xm * decay * decay, xm * decay * decay, mm * decay * decay};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(mean[i] - mean_paper[i]) < 1e-13);
        assert_true(fabs(cov[i] - cov_paper[i]) < 1e-13);
    }
    psld_recipe_free(recipe);
    assert_int_equal(psld_recipe_open("vp", &recipe), PSLD_OK);
    for (t = 1e-5; t <= 1; t *= 10) {
        B = 0.1 * t + 19.9 * t * t / 2;
        assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_DSM, mean, cov, NULL), PSLD_OK);
        assert_true(fabs(mean[0] / exp(-B / 2) - 1) < 1e-14);
        assert_true(fabs(cov[0] / -expm1(-B) - 1) < 1e-13);
    }
    psld_recipe_free(recipe);
}

/* The corrected half-step of the paper's splitting, App. B.4.2, against the transition with Q flipped. */
static void closed_half_step(void **state)
{
    (void)state;
    psld_recipe *recipe;
    psld_gaussian found;
    double gamma = 0.25, nu = 4.25, M = 0.25, h = 0.7;
    double decay = exp(-(nu + gamma) * h / 4), grow = exp((gamma + nu) * h / 2) - 1, difference = gamma - nu;
    assert_int_equal(psld_recipe_open("psld gamma=0.25", &recipe), PSLD_OK);
    psld_transition(recipe, PSLD_FLIPPED, h, NULL, &found);
    const double mean[4] = {(1 - difference * h / 4) * decay, -difference * difference * h / 8 * decay, h / 2 * decay,
                            (1 + difference * h / 4) * decay};
    double xx = -difference * difference * h * h / 8 + difference * h / 2 + grow, xm = difference * h * h / 4;
    double mm = -h * h / 2 - M * difference * h / 2 + M * grow;
    const double cov[4] = {xx * decay * decay, xm * decay * decay, xm * decay * decay, mm * decay * decay};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(found.mean[i] - mean[i]) < 1e-14);
        assert_true(fabs(found.cov[i] - cov[i]) < 1e-14);
    }
    psld_recipe_free(recipe);
}

/* Two transitions in a row are one: mean and covariance compose, for a step of any size. */
static void transitions_compose(void **state)
{
    (void)state;
    for (int k = 1; k <= PSLD_MAX_K; k++) {
        psld_recipe *recipe = random_recipe(k, k % 2 ? CHAIN : FULL_NOISE, 7);
        psld_gaussian first, second, both;
        double product[PSLD_MATRIX_SIZE], moved[PSLD_MATRIX_SIZE], cov[PSLD_MATRIX_SIZE];
        for (double h = 1e-4; h < 10; h *= 7) {
            psld_transition(recipe, PSLD_FORWARD, h, NULL, &first);
            psld_transition(recipe, PSLD_FORWARD, 0.3 * h, NULL, &second);
            psld_transition(recipe, PSLD_FORWARD, 1.3 * h, NULL, &both);
            psld_matrix_multiply(k, second.mean, first.mean, product);
            assert_true(relative_error(k, product, both.mean) < 1e-11);
            psld_matrix_multiply(k, second.mean, first.cov, product);
            psld_matrix_multiply_t(k, product, second.mean, moved);
            psld_matrix_copy(k, second.cov, cov);
            psld_matrix_add(k, 1, moved, cov);
            assert_true(relative_error(k, cov, both.cov) < 1e-11);
        }
        psld_recipe_free(recipe);
    }
}

/* factor factor' is the stabilised covariance, inverse its inverse, triangular in the order of the variables. */
static void factor_and_inverse(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld", "psld gamma=4 nu=0", "told", "psld factor=upper"};
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        psld_recipe *recipe;
        assert_int_equal(psld_recipe_open(lines[l], &recipe), PSLD_OK);
        int k = psld_recipe_get(recipe)->k, order[PSLD_MAX_K];
        psld_recipe_order(recipe, order);
        for (double t = 1e-5; t <= 1; t *= 10) {
            double cov[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE],
                product[PSLD_MATRIX_SIZE];
            assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, NULL, cov, NULL), PSLD_OK);
            assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, factor, inverse), PSLD_OK);
            for (int i = 0; i < k; i++) cov[i * k + i] += psld_recipe_get(recipe)->stabiliser;
            psld_matrix_multiply_t(k, factor, factor, product);
            assert_true(relative_error(k, product, cov) < 1e-12);
            psld_matrix_multiply(k, inverse, factor, product);
            for (int i = 0; i < k; i++)
                for (int j = 0; j < k; j++) {
                    assert_true(fabs(product[i * k + j] - (i == j)) < 1e-10);
                    if (j > i) assert_true(factor[order[i] * k + order[j]] == 0);
                }
        }
        psld_recipe_free(recipe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_kernels),      cmocka_unit_test(random_recipes_against_quadrature),
        cmocka_unit_test(closed_forms),        cmocka_unit_test(closed_half_step),
        cmocka_unit_test(transitions_compose), cmocka_unit_test(factor_and_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
