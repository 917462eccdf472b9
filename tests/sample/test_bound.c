/* The variational bound: tight for the exact score of Gaussian data, and its gradients by D, Q, masses and beta, through
 * the kernel and through the source, against finite differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/learned.h"
#include "recipes.h"
#include "sample/bound.h"
#include "starve.h"

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

/* ---- Gaussian data ----------------------------------------------------------------------------------------------- */

/* Points whose mean of any quadratic function of (x, eps) is its expectation, for x of this variance. */
static psld_bound_batch sigma_points(int k, double variance, double *x, double *eps)
{
    int count = k + 1;
    for (int p = 0; p < 2 * count; p++) {
        double side = (p % 2 ? -1 : 1) * sqrt((double)count);
        x[p] = p / 2 == 0 ? side * sqrt(variance) : 0;
        for (int i = 0; i < k; i++) eps[p * k + i] = p / 2 == i + 1 ? side : 0;
    }
    return (psld_bound_batch){(size_t)(2 * count), 1, x, eps};
}

/* -1/2 log det (2 pi e C), C the covariance of z_t for x of this variance: E log p(z_t). */
static double exact_value(const psld_recipe *recipe, double variance, double t)
{
    psld_gaussian kernel;
    int k = recipe->spec.k;
    double value = 0;
    psld_kernel(recipe, t, PSLD_HSM, variance, &kernel);
    for (int i = 0; i < k; i++) value -= 0.5 * log(2 * M_PI * exp(1)) + log(kernel.factor[i * k + i]);
    return value;
}

/* The bound by Simpson's rule with `points` times, even in log t. */
static double bound_by_quadrature(const psld_recipe *recipe, psld_source *source, const psld_bound_batch *batch,
                                  double e, int points)
{
    psld_bound bound = {0};
    double step = -log(e) / (points - 1);
    must(psld_bound_add_end(recipe, batch, 1, &bound));
    for (int i = 0; i < points; i++) {
        double t = i == points - 1 ? 1 : e * exp(step * i);
        double simpson = i == 0 || i == points - 1 ? 1 : i % 2 ? 4 : 2;
        must(psld_bound_add_rate(recipe, source, t, batch, simpson * step * t / 3, 0, &bound));
    }
    return bound.value;
}

static void check_gaussian(const char *line, double e, double variance)
{
    const double weight = 1, mean = 0, scale = sqrt(variance);
    double x[2 * PSLD_MAX_K + 2], eps[(2 * PSLD_MAX_K + 2) * PSLD_MAX_K];
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *source;
    must(psld_recipe_open(line, &recipe));
    must(psld_mixture_create(1, 1, &weight, &mean, &scale, &mixture));
    must(psld_source_mixture(mixture, recipe, &source));
    psld_bound_batch batch = sigma_points(psld_recipe_get(recipe)->k, variance, x, eps);
    double bound = bound_by_quadrature(recipe, source, &batch, e, 2001), exact = exact_value(recipe, variance, e);
    /* what the end costs: z_1 is not quite stationary; the bound is below by that divergence, and by nothing else */
    psld_gaussian last;
    int k = recipe->spec.k;
    double mismatch = 0;
    psld_kernel(recipe, 1, PSLD_HSM, variance, &last);
    for (int i = 0; i < k; i++) {
        double mass = i ? recipe->spec.mass[i - 1] : 1;
        mismatch += (last.cov[i * k + i] / mass - 1 + log(mass)) / 2 - log(last.factor[i * k + i]);
    }
    printf("%-44s e %.0e: bound %.10f exact %.10f mismatch %.2e off %.2e\n", line, e, bound, exact, mismatch,
           bound + mismatch - exact);
    assert_true(fabs(bound + mismatch - exact) < 1e-6);
    assert_true(bound <= exact + 1e-6);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

static void tight_for_gaussian_data(void **state)
{
    (void)state;
    check_gaussian("psld gamma=0.25 stabiliser=0", 1e-5, 0.3);
    check_gaussian("vp", 1e-5, 0.3);
    check_gaussian("vp beta=3", 1e-3, 2);
    check_gaussian("cld stabiliser=0", 1e-3, 0.3);
    check_gaussian("psld gamma=0.02 beta=[0.5,9] stabiliser=0", 1e-3, 0.1);
    check_gaussian("told stabiliser=0", 1e-2, 0.3);
}

/* The number of the documentation: psld gamma=0.25, variance 0.3, one coordinate, e = 1e-5. */
static void known_value(void **state)
{
    (void)state;
    psld_recipe *recipe;
    must(psld_recipe_open("psld gamma=0.25 stabiliser=0", &recipe));
    assert_true(fabs(exact_value(recipe, 0.3, 1e-5) - 0.0626083405) < 1e-9);
    psld_recipe_free(recipe);
}

/* ---- Gradients --------------------------------------------------------------------------------------------------- */

/* A smooth function in place of a network: it does not know the recipe, mixes the variables and depends on the time. */
typedef struct made_up {
    size_t k, outputs;
} made_up;

static double mixing(size_t b, size_t a)
{
    return 0.4 * cos(1 + 3.0 * (double)b + 1.7 * (double)a);
}

static double inner(const made_up *m, const psld_states *s, size_t i, size_t b, size_t j)
{
    double sum = 0.2 * (double)b + 0.5 * s->t[i];
    for (size_t a = 0; a < m->k; a++) sum += mixing(b, a) * s->z[(i * m->k + a) * s->dim + j];
    return sum;
}

static psld_status made_up_predict(void *user, const psld_states *s, double *out)
{
    const made_up *m = user;
    for (size_t i = 0; i < s->n; i++)
        for (size_t b = 0; b < m->outputs; b++)
            for (size_t j = 0; j < s->dim; j++) out[(i * m->outputs + b) * s->dim + j] = sin(inner(m, s, i, b, j));
    return PSLD_OK;
}

static psld_status made_up_gradient(void *user, const psld_states *s, const double *weight, double *out, double *grad_z)
{
    const made_up *m = user;
    if (out) made_up_predict(user, s, out);
    memset(grad_z, 0, s->n * m->k * s->dim * sizeof *grad_z);
    for (size_t i = 0; i < s->n; i++)
        for (size_t b = 0; b < m->outputs; b++)
            for (size_t j = 0; j < s->dim; j++)
                for (size_t a = 0; a < m->k; a++)
                    grad_z[(i * m->k + a) * s->dim + j] +=
                        weight[(i * m->outputs + b) * s->dim + j] * cos(inner(m, s, i, b, j)) * mixing(b, a);
    return PSLD_OK;
}

enum { SAMPLES = 3, DIM = 2 };
static const double times[] = {0.003, 0.05, 0.4, 0.97};

static psld_status bound_at(const psld_learned *learned, const double *parameters, int with_gradient, psld_bound *bound)
{
    double x[SAMPLES * DIM], eps[SAMPLES * DIM * PSLD_MAX_K];
    psld_recipe_spec spec;
    psld_recipe *recipe = NULL;
    psld_source *source = NULL;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    memset(bound, 0, sizeof *bound);
    psld_learned_spec(learned, parameters, &spec);
    psld_random_normal(7, PSLD_FOR_DATA, 0, 0, 0, SAMPLES * DIM, x);
    psld_random_normal(7, PSLD_FOR_NOISE, 0, 0, 0, (size_t)(SAMPLES * DIM * spec.k), eps);
    psld_bound_batch batch = {SAMPLES, DIM, x, eps};
    psld_status status = psld_recipe_create(&spec, &recipe);
    made_up user = {(size_t)spec.k, recipe ? (size_t)recipe->predicted : 0};
    callback.predict = made_up_predict;
    callback.gradient = made_up_gradient;
    callback.user = &user;
    callback.recipe = recipe;
    if (status == PSLD_OK) status = psld_source_callback(&callback, &source);
    if (status == PSLD_OK) status = psld_bound_add_end(recipe, &batch, 1, bound);
    for (size_t i = 0; status == PSLD_OK && i < sizeof times / sizeof *times; i++)
        status = psld_bound_add_rate(recipe, source, times[i], &batch, times[i], with_gradient, bound);
    psld_source_free(source);
    psld_recipe_free(recipe);
    return status;
}

/* Differences of fourth order in steps of h. */
static double difference(const psld_learned *learned, double *parameters, int p, double h)
{
    static const double place[4] = {-2, -1, 1, 2}, weight[4] = {1, -8, 8, -1};
    double before = parameters[p], sum = 0;
    for (int i = 0; i < 4; i++) {
        psld_bound bound;
        parameters[p] = before + place[i] * h;
        must(bound_at(learned, parameters, 0, &bound));
        sum += weight[i] * bound.value / (12 * h);
    }
    parameters[p] = before;
    return sum;
}

static double check_gradient(const psld_recipe *recipe, unsigned what, int keeps_zeros)
{
    psld_learned learned;
    psld_bound bound;
    double parameters[PSLD_LEARNED_SIZE], gradient[PSLD_LEARNED_SIZE], largest = 0, worst = 0;
    must(psld_learned_begin(recipe, what, keeps_zeros, &learned, parameters));
    must(bound_at(&learned, parameters, 1, &bound));
    psld_learned_differentiate(&learned, parameters, &bound.gradient, gradient);
    for (int p = 0; p < learned.count; p++) largest = fmax(largest, fabs(gradient[p]));
    for (int p = 0; p < learned.count; p++) {
        double by_difference = difference(&learned, parameters, p, 3e-5);
        double off = fabs(gradient[p] - by_difference) / largest;
        if (off > 1e-6)
            printf("%s parameter %d of %d: %.10g by differences %.10g\n", recipe->spec.name, p, learned.count,
                   gradient[p], by_difference);
        worst = fmax(worst, off);
    }
    return worst;
}

static void gradients(void **state)
{
    (void)state;
    static const unsigned sets[] = {PSLD_LEARN_D | PSLD_LEARN_Q | PSLD_LEARN_BETA, PSLD_LEARN_MASS | PSLD_LEARN_BETA,
                                    PSLD_LEARN_D | PSLD_LEARN_MASS, PSLD_LEARN_Q | PSLD_LEARN_MASS | PSLD_LEARN_BETA};
    for (int i = 0; i < 9; i++) {
        psld_recipe *recipe = i < 4 ? numbered_recipe(i) : random_recipe(i < 8 ? i - 2 : 8, FULL_NOISE, (uint64_t)i);
        double worst = 0;
        for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
            if (recipe->spec.k > 1 || (sets[s] & PSLD_LEARN_D)) worst = fmax(worst, check_gradient(recipe, sets[s], 1));
        printf("%-16s k %d: worst relative error %.1e\n", recipe->spec.name, recipe->spec.k, worst);
        assert_true(worst < 1e-6);
        psld_recipe_free(recipe);
    }
}

/* A natural and an upper factor have other orders of the variables. */
static void gradients_of_other_factors(void **state)
{
    (void)state;
    static const char *const lines[] = {"psld gamma=0.5 factor=upper", "cld factor=natural", "told factor=upper"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        psld_recipe *recipe;
        must(psld_recipe_open(lines[i], &recipe));
        double worst = check_gradient(recipe, PSLD_LEARN_D | PSLD_LEARN_Q | PSLD_LEARN_BETA, 1);
        printf("%-30s worst relative error %.1e\n", lines[i], worst);
        assert_true(worst < 1e-6);
        psld_recipe_free(recipe);
    }
}

/* ---- Data themselves --------------------------------------------------------------------------------------------- */

/* The third term of the bound of data, by Simpson's rule as above, from what a source says. */
static double squares_by_quadrature(const psld_recipe *recipe, psld_source *source, const psld_bound_batch *batch,
                                    double e, int points)
{
    int k = recipe->spec.k;
    double step = -log(e) / (points - 1), total = 0;
    for (int i = 0; i < points; i++) {
        double t = i == points - 1 ? 1 : e * exp(step * i), out[PSLD_MAX_K];
        double simpson = i == 0 || i == points - 1 ? 1 : i % 2 ? 4 : 2;
        psld_bound_time at;
        psld_bound_sums sums = {0};
        must(psld_bound_time_plan(recipe, t, &at));
        for (size_t n = 0; n < batch->n; n++) {
            double z[PSLD_MAX_K];
            for (int a = 0; a < k; a++) {
                z[a] = at.mu[a] * batch->x[n];
                for (int b = 0; b < k; b++) z[a] += at.factor[a * k + b] * batch->eps[(int)n * k + b];
            }
            psld_states states = PSLD_STATES(1, 1, z, &t);
            must(psld_source_predict(source, &states, out));
            psld_bound_part part = {1, 1, batch->x + n, batch->eps + (int)n * k, out};
            psld_bound_add_square(recipe, &at, &part, 1 / (double)batch->n, NULL, &sums);
        }
        total += simpson * step * t / 3 * sums.value;
    }
    return total;
}

/* log p(x_0) of Gaussian data. What is missing is known: the divergence of p(z_1) from N(0, P^-1), and that of what y tells
 * of x_0 from N(y, sigma^2), 1/2 log (1 + sigma^2 / variance). */
static void check_gaussian_data(const char *line, double e, double variance)
{
    const double weight = 1, mean = 0, scale = sqrt(variance);
    double x[2 * PSLD_MAX_K + 2], eps[(2 * PSLD_MAX_K + 2) * PSLD_MAX_K], sigma;
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *source;
    psld_bound bound = {0};
    psld_gaussian last;
    must(psld_recipe_open(line, &recipe));
    must(psld_mixture_create(1, 1, &weight, &mean, &scale, &mixture));
    must(psld_source_mixture(mixture, recipe, &source));
    psld_bound_batch batch = sigma_points(psld_recipe_get(recipe)->k, variance, x, eps);
    psld_bound_data data = {.dim = 1, .square = variance};
    must(psld_bound_add_ends(recipe, e, &data, 1, &bound));
    double value = bound.value - squares_by_quadrature(recipe, source, &batch, e, 2001);
    double exact = -0.5 * log(2 * M_PI * exp(1) * variance), missing;
    must(psld_recipe_sigma(recipe, e, &sigma));
    missing = 0.5 * log1p(sigma * sigma / variance);
    psld_kernel(recipe, 1, PSLD_HSM, variance, &last);
    for (int i = 0, k = recipe->spec.k; i < k; i++) {
        double mass = i ? recipe->spec.mass[i - 1] : 1;
        missing += (last.cov[i * k + i] / mass - 1 + log(mass)) / 2 - log(last.factor[i * k + i]);
    }
    printf("%-44s e %.0e: bound %.10f exact %.10f missing %.2e off %.2e\n", line, e, value, exact, missing,
           value + missing - exact);
    assert_true(fabs(value + missing - exact) < 1e-6);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

static void tight_for_gaussian_data_themselves(void **state)
{
    (void)state;
    check_gaussian_data("psld gamma=0.25 stabiliser=0", 1e-5, 0.3);
    check_gaussian_data("vp", 1e-5, 0.3);
    check_gaussian_data("cld stabiliser=0", 1e-3, 0.3);
    check_gaussian_data("psld gamma=0.02 beta=[0.5,9] stabiliser=0", 1e-3, 0.1);
    check_gaussian_data("told stabiliser=0", 1e-2, 0.3);
}

static psld_bound ends_at(const psld_learned *learned, const double *parameters, double cell)
{
    psld_bound_data data = {.dim = 3, .square = 0.7, .cell = cell};
    psld_bound bound = {0};
    psld_recipe_spec spec;
    psld_recipe *recipe;
    psld_learned_spec(learned, parameters, &spec);
    must(psld_recipe_create(&spec, &recipe));
    must(psld_bound_add_ends(recipe, 0.002, &data, 1, &bound));
    psld_recipe_free(recipe);
    return bound;
}

static void gradients_of_ends(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "psld gamma=0.3 stabiliser=0", "cld stabiliser=0", "told stabiliser=0",
                                        "psld gamma=0.5 factor=upper stabiliser=0"};
    static const double cells[] = {0, 2.0 / 255, 0.3};
    static const double place[4] = {-2, -1, 1, 2}, weight[4] = {1, -8, 8, -1};
    const double h = 3e-5;
    for (size_t i = 0; i < 3 * sizeof lines / sizeof *lines; i++)
        for (int masses = 0; masses < 2; masses++) {
            psld_recipe *recipe;
            psld_learned learned;
            double parameters[PSLD_LEARNED_SIZE], gradient[PSLD_LEARNED_SIZE], largest = 0, worst = 0;
            must(psld_recipe_open(lines[i / 3], &recipe));
            unsigned what = masses ? PSLD_LEARN_MASS | PSLD_LEARN_BETA : PSLD_LEARN_D | PSLD_LEARN_Q | PSLD_LEARN_BETA;
            must(psld_learned_begin(recipe, what, 1, &learned, parameters));
            psld_bound bound = ends_at(&learned, parameters, cells[i % 3]);
            psld_learned_differentiate(&learned, parameters, &bound.gradient, gradient);
            for (int p = 0; p < learned.count; p++) largest = fmax(largest, fabs(gradient[p]));
            for (int p = 0; p < learned.count; p++) {
                double before = parameters[p], sum = 0;
                for (int d = 0; d < 4; d++) {
                    parameters[p] = before + place[d] * h;
                    sum += weight[d] * ends_at(&learned, parameters, cells[i % 3]).value / (12 * h);
                }
                parameters[p] = before;
                worst = fmax(worst, fabs(sum - gradient[p]) / largest);
            }
            printf("%-42s cell %.4f: worst relative error %.1e\n", lines[i / 3], cells[i % 3], worst);
            assert_true(worst < 1e-6);
            psld_recipe_free(recipe);
        }
}

/* A cell much wider than the noise is certain; one much narrower has its width times the density. */
static void cells(void **state)
{
    (void)state;
    psld_recipe *recipe;
    double value[3], sigma;
    must(psld_recipe_open("vp", &recipe));
    must(psld_recipe_sigma(recipe, 0.01, &sigma));
    const double width[3] = {0, 1e-3 * sigma, 1e3 * sigma};
    for (int i = 0; i < 3; i++) {
        psld_bound bound = {0};
        must(psld_bound_add_ends(recipe, 0.01, &(psld_bound_data){1, 0.5, width[i]}, 1, &bound));
        value[i] = bound.value;
    }
    assert_true(fabs(value[1] - value[0] - log(width[1])) < 1e-6);
    assert_true(fabs(value[2] - value[0] - 0.5 * log(2 * M_PI * exp(1) * sigma * sigma)) < 1e-12);
    psld_recipe_free(recipe);
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* The parameters of a recipe give it back, and any parameters a valid one. */
static void parameters_are_recipes(void **state)
{
    (void)state;
    const unsigned all = PSLD_LEARN_D | PSLD_LEARN_Q | PSLD_LEARN_MASS | PSLD_LEARN_BETA;
    for (int i = 0; i < 12; i++) {
        psld_recipe *recipe = numbered_recipe(i), *same = NULL, *other = NULL;
        psld_learned learned;
        psld_recipe_spec spec;
        double parameters[PSLD_LEARNED_SIZE], moved[PSLD_LEARNED_SIZE];
        must(psld_learned_begin(recipe, all, 0, &learned, parameters));
        psld_learned_spec(&learned, parameters, &spec);
        must(psld_recipe_create(&spec, &same));
        assert_true(psld_recipe_same(recipe, same));
        psld_random_normal(3, PSLD_FOR_DATA, (uint64_t)i, 0, 0, (size_t)learned.count, moved);
        for (int p = 0; p < learned.count; p++) moved[p] += parameters[p];
        psld_learned_spec(&learned, moved, &spec);
        must(psld_recipe_create(&spec, &other));
        assert_false(psld_recipe_same(recipe, other));
        assert_true(fabs(spec.beta_min + spec.beta_max - recipe->spec.beta_min - recipe->spec.beta_max) < 1e-9);
        psld_recipe_free(recipe);
        psld_recipe_free(same);
        psld_recipe_free(other);
    }
}

static void check_refused(psld_status status, const char *text)
{
    assert_int_not_equal(status, PSLD_OK);
    if (!strstr(psld_error_text(), text)) fail_msg("said: %s", psld_error_text());
}

static void refusals(void **state)
{
    (void)state;
    unsigned bits;
    psld_learned learned;
    psld_recipe *recipe;
    psld_bound bound = {0};
    double parameters[PSLD_LEARNED_SIZE], x = 0, eps[2] = {0};
    must(psld_learn_parse("learn", "D, beta,mass", &bits));
    assert_int_equal(bits, PSLD_LEARN_D | PSLD_LEARN_BETA | PSLD_LEARN_MASS);
    check_refused(psld_learn_parse("learn", "D,colour", &bits),
                  "learn: expected some of D, Q, mass, beta, found \"colour\"");
    check_refused(psld_learn_parse("learn", " ", &bits), "found nothing");
    must(psld_recipe_open("vp", &recipe));
    check_refused(psld_learned_begin(recipe, PSLD_LEARN_MASS, 0, &learned, parameters), "nothing");
    psld_recipe_free(recipe);
    must(psld_recipe_open("psld beta=[0,8]", &recipe));
    check_refused(psld_learned_begin(recipe, PSLD_LEARN_BETA, 0, &learned, parameters), "0 at t = 0");
    psld_recipe_free(recipe);
    must(psld_recipe_open("psld kernel=dsm", &recipe));
    psld_bound_batch batch = {1, 1, &x, eps};
    check_refused(psld_bound_add_end(recipe, &batch, 1, &bound), "kernel hsm");
    psld_recipe_free(recipe);
}

static psld_status starved_bound(void)
{
    psld_recipe *recipe;
    psld_learned learned;
    psld_bound bound;
    double parameters[PSLD_LEARNED_SIZE];
    PSLD_TRY(psld_recipe_open("psld", &recipe));
    psld_status status = psld_learned_begin(recipe, PSLD_LEARN_D, 0, &learned, parameters);
    if (status == PSLD_OK) status = bound_at(&learned, parameters, 1, &bound);
    psld_recipe_free(recipe);
    return status;
}

static void starving(void **state)
{
    (void)state;
    starve(starved_bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tight_for_gaussian_data),
        cmocka_unit_test(known_value),
        cmocka_unit_test(gradients),
        cmocka_unit_test(gradients_of_other_factors),
        cmocka_unit_test(tight_for_gaussian_data_themselves),
        cmocka_unit_test(gradients_of_ends),
        cmocka_unit_test(cells),
        cmocka_unit_test(parameters_are_recipes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(starving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
