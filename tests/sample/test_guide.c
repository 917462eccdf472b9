/* Classifier guidance against truth: with the exact classifier at scale 1 the guided source is the exact score of one
 * component, and the gradient of a classifier is that of its log-probability. */
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
#include "recipes.h"
#include "sample/sources/source.h"
#include "sanitized.h"

enum { DIM = 2, COMPONENTS = 3 };
static const double weights[COMPONENTS] = {0.3, 0.5, 0.2}, scales[COMPONENTS] = {0.3, 0.15, 0.3};
static const double means[COMPONENTS * DIM] = {-0.8, 0.5, 0.6, -0.2, 0.1, 0.9};

static psld_mixture *whole(void)
{
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(COMPONENTS, DIM, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

static psld_mixture *component(size_t c)
{
    const double one = 1;
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(1, DIM, &one, means + c * DIM, scales + c, &mixture), PSLD_OK);
    return mixture;
}

static psld_recipe *recipe_number(int p)
{
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told", "psld gamma=4 nu=0 factor=upper"};
    psld_recipe *recipe;
    if (p >= 5) return random_recipe(3, (recipe_kind)(p - 5), 5);
    if (psld_recipe_open(lines[p], &recipe) != PSLD_OK) fail_msg("%s: %s", lines[p], psld_error_text());
    return recipe;
}
enum { RECIPES = 5 + RECIPE_KINDS };

static void fill_state(const psld_recipe *recipe, double *z)
{
    for (int i = 0; i < DIM * recipe->spec.k; i++) z[i] = 0.5 * sin(1 + 3 * i) * recipe->deviation[i / DIM];
}

static void guided_score_is_that_of_the_class(void **state)
{
    (void)state;
    psld_mixture *mixture = whole();
    for (int p = 0; p < RECIPES; p++) {
        psld_recipe *recipe = recipe_number(p);
        psld_source *base;
        psld_classifier *classifier;
        assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
        assert_int_equal(psld_classifier_mixture(mixture, recipe, &classifier), PSLD_OK);
        assert_int_equal(psld_classifier_classes(classifier), COMPONENTS);
        for (size_t c = 0; c < COMPONENTS; c++) {
            psld_mixture *alone = component(c);
            psld_source *guided, *truth;
            double z[3 * DIM * PSLD_MAX_K] = {0}, t[3] = {0.02, 0.02, 0.6}, a[3 * DIM * PSLD_MAX_K];
            double b[3 * DIM * PSLD_MAX_K];
            size_t state_size = (size_t)(DIM * recipe->spec.k), count = (size_t)(3 * DIM * recipe->predicted);
            assert_int_equal(psld_source_guide(base, recipe, classifier, c, 1, &guided), PSLD_OK);
            assert_int_equal(psld_source_mixture(alone, recipe, &truth), PSLD_OK);
            for (size_t i = 0; i < 3; i++) fill_state(recipe, z + i * state_size), z[i * state_size] += 0.3 * (double)i;
            assert_int_equal(psld_source_predict(guided, &PSLD_STATES(3, DIM, z, t), a), PSLD_OK);
            assert_int_equal(psld_source_predict(truth, &PSLD_STATES(3, DIM, z, t), b), PSLD_OK);
            for (size_t i = 0; i < count; i++)
                if (!(fabs(a[i] - b[i]) <= 1e-9 * (1 + fabs(b[i]))))
                    fail_msg("%s, class %zu: eps[%zu] = %.15g, exactly %.15g", recipe->spec.name, c, i, a[i], b[i]);
            psld_source_free(guided);
            psld_source_free(truth);
            psld_mixture_free(alone);
        }
        psld_classifier_free(classifier);
        psld_source_free(base);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

static void exact_classifier_and_its_gradient(void **state)
{
    (void)state;
    psld_mixture *mixture = whole();
    for (int p = 0; p < RECIPES; p++) {
        psld_recipe *recipe = recipe_number(p);
        psld_classifier *classifier;
        double z[DIM * PSLD_MAX_K] = {0}, gradient[DIM * PSLD_MAX_K], unused[DIM * PSLD_MAX_K], t = 0.2, sum = 0;
        assert_int_equal(psld_classifier_mixture(mixture, recipe, &classifier), PSLD_OK);
        fill_state(recipe, z);
        for (int32_t c = 0; c < COMPONENTS; c++) {
            double log_p, up, down;
            assert_int_equal(psld_classifier_evaluate(classifier, &PSLD_STATES(1, DIM, z, &t), &c, &log_p, gradient),
                             PSLD_OK);
            sum += exp(log_p);
            for (int i = 0; i < DIM * recipe->spec.k; i++) {
                double kept = z[i], h = 1e-5 * recipe->deviation[i / DIM];
                z[i] = kept + h;
                assert_int_equal(psld_classifier_evaluate(classifier, &PSLD_STATES(1, DIM, z, &t), &c, &up, unused),
                                 PSLD_OK);
                z[i] = kept - h;
                assert_int_equal(psld_classifier_evaluate(classifier, &PSLD_STATES(1, DIM, z, &t), &c, &down, unused),
                                 PSLD_OK);
                z[i] = kept;
                assert_true(fabs(gradient[i] - (up - down) / (2 * h)) < 1e-5 * (1 + fabs(gradient[i])));
            }
        }
        assert_true(fabs(sum - 1) < 1e-12);
        psld_classifier_free(classifier);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Evaluations with which a sampler's own error is below the statistical one of SAMPLES samples. Of the samplers here that
 * have the larger errors these fall as 1 / nfe, and the statistical one as 1 / sqrt(samples), so PSLD_TEST_SAMPLES, which
 * asks for more samples, makes for more evaluations too. */
enum { SAMPLES = PSLD_SANITIZED ? 60 : 400 };
static const struct budget {
    const char *sampler;
    int nfe;
    const char *grid; /* NULL: its own; that of dpm suits x, not the last variable of told */
} budgets[] = {{"em", 300, NULL},         {"sscs", 300, NULL},          {"ode", 0, NULL},
               {"euler-ode", 2400, NULL}, {"heun", 240, NULL},          {"dpm", 80, "log"},
               {"collapsed", 40, NULL},   {"collapsed-heun", 40, NULL}, {"ancestral", 100, NULL}};

static size_t samples_asked_for(void)
{
    const char *text = getenv("PSLD_TEST_SAMPLES");
    size_t asked = text ? (size_t)strtoull(text, NULL, 10) : 0;
    return asked ? asked : SAMPLES;
}

static psld_sample_options options_for(const char *sampler, size_t n)
{
    psld_sample_options options = em_options();
    options.denoise = 0;
    options.sampler = sampler;
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
        if (strcmp(budgets[i].sampler, sampler) == 0) {
            options.nfe = (int)(budgets[i].nfe * sqrt((double)n / SAMPLES));
            options.grid = budgets[i].grid;
            return options;
        }
    return options; /* what suits it */
}

/* Largest deviation of means and covariances of n states from those of a Gaussian, in standard errors: `mean` [size] and
 * `cov` [size][size] are the truth. */
static double worst_deviation(size_t n, int size, const double *z, const double *mean, const double *cov)
{
    double worst = 0, root = sqrt((double)n);
    for (int i = 0; i < size; i++) {
        double sum = 0;
        for (size_t s = 0; s < n; s++) sum += z[s * (size_t)size + (size_t)i] - mean[i];
        worst = fmax(worst, fabs(sum) / root / sqrt(cov[i * size + i]));
        for (int j = 0; j <= i; j++) {
            double square = cov[i * size + i] * cov[j * size + j] + cov[i * size + j] * cov[i * size + j];
            sum = 0;
            for (size_t s = 0; s < n; s++) {
                const double *at = z + s * (size_t)size;
                sum += (at[i] - mean[i]) * (at[j] - mean[j]) - cov[i * size + j];
            }
            worst = fmax(worst, fabs(sum) / root / sqrt(square));
        }
    }
    return worst;
}

/* p_eps of one component, all variables: coordinates are independent. */
static void component_moments(const psld_recipe *recipe, size_t c, double eps, double *mean, double *cov)
{
    int k = recipe->spec.k, size = k * DIM;
    psld_gaussian kernel;
    psld_kernel(recipe, eps, PSLD_HSM, scales[c] * scales[c], &kernel);
    for (int i = 0; i < size; i++) {
        mean[i] = kernel.mean[i / DIM * k] * means[c * DIM + (size_t)(i % DIM)];
        for (int j = 0; j < size; j++) cov[i * size + j] = i % DIM == j % DIM ? kernel.cov[i / DIM * k + j / DIM] : 0;
    }
}

static void guided_samples_follow_the_class(void **state)
{
    (void)state;
    enum { CLASS = 2 };
    size_t n = samples_asked_for();
    psld_mixture *mixture = whole();
    double *z = malloc(n * DIM * PSLD_MAX_K * sizeof *z), mean[DIM * PSLD_MAX_K], cov[DIM * DIM * PSLD_MATRIX_SIZE];
    for (int p = 0; p < 4; p++) {
        psld_recipe *recipe = recipe_number(p);
        psld_source *base, *guided;
        psld_classifier *classifier;
        assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
        assert_int_equal(psld_classifier_mixture(mixture, recipe, &classifier), PSLD_OK);
        assert_int_equal(psld_source_guide(base, recipe, classifier, CLASS, 1, &guided), PSLD_OK);
        for (int s = 0; psld_sampler_at(s); s++) {
            psld_sample_options options = options_for(psld_sampler_at(s)->name, n);
            uint64_t nfe;
            if (psld_sampler_at(s)->consistency) continue; /* of a score its samples are not right */
            if (psld_sample(recipe, guided, &options, 0, n, DIM, NULL, z, &nfe) != PSLD_OK)
                fail_msg("%s, %s: %s", recipe->spec.name, options.sampler, psld_error_text());
            component_moments(recipe, CLASS, options.eps, mean, cov);
            double worst = worst_deviation(n, recipe->spec.k * DIM, z, mean, cov);
            printf("%-5s %-15s %4llu evaluations: at most %.2f standard errors off\n", recipe->spec.name,
                   options.sampler, (unsigned long long)nfe, worst);
            assert_true(worst < 4.5);
        }
        psld_source_free(guided);
        psld_source_free(base);
        psld_classifier_free(classifier);
        psld_recipe_free(recipe);
    }
    free(z);
    psld_mixture_free(mixture);
}

/* ---- Networks, composition, recipes ------------------------------------------------------------------------------ */

static const char classifier_yaml[] =
    "process: psld\ndata: {size: 4, channels: 1, classes: [dog, cat, '1']}\n"
    "model: {name: ncsnpp_clf, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [], n_cls: 3}\n";

static void networks_classify(void **state)
{
    (void)state;
    FILE *file = fopen("guide-classifier.yaml", "w");
    assert_non_null(file);
    fputs(classifier_yaml, file);
    fclose(file);
    psld_model *model;
    size_t label;
    if (psld_model_create("guide-classifier.yaml", NULL, 3, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    enum { N = 3, SIZE = 32 };
    const size_t shape[4] = {N, 2, 4, 4};
    psld_array *z, *t, *labels, *logits, *gradient;
    assert_int_equal(psld_array_create(PSLD_F64, 4, shape, &z), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F64, 1, shape, &t), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_I32, 1, shape, &labels), PSLD_OK);
    for (size_t i = 0; i < z->count; i++) ((double *)z->data)[i] = sin((double)i);
    for (int i = 0; i < N; i++) ((double *)t->data)[i] = 0.2 + 0.3 * i, ((int32_t *)labels->data)[i] = 2 - i;
    double log_p[N], grad_z[N * SIZE];
    assert_int_equal(psld_model_evaluate(model, z, t, NULL, labels, &logits, &gradient), PSLD_OK);
    assert_int_equal(psld_classifier_evaluate(psld_model_classifier(model), &PSLD_STATES(N, SIZE / 2, z->data, t->data),
                                              labels->data, log_p, grad_z),
                     PSLD_OK);
    for (int i = 0; i < N; i++) {
        const float *l = (const float *)logits->data + i * 3;
        double sum = exp((double)l[0]) + exp((double)l[1]) + exp((double)l[2]);
        assert_true(fabs(log_p[i] - log(exp((double)l[2 - i]) / sum)) < 1e-6);
    }
    for (size_t i = 0; i < z->count; i++) assert_true(grad_z[i] == (double)((float *)gradient->data)[i]);
    assert_int_equal(psld_model_label(model, "cat", &label), PSLD_OK);
    assert_int_equal(label, 1);
    assert_int_equal(psld_model_label(model, "1", &label), PSLD_OK); /* the name, not the number */
    assert_int_equal(label, 2);
    assert_int_equal(psld_model_label(model, "0", &label), PSLD_OK);
    assert_int_equal(label, 0);
    assert_int_equal(psld_model_label(model, "3", &label), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "label: expected 0 to 2, found 3");
    assert_int_equal(psld_model_label(model, "bird", &label), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "label: there is no class named \"bird\"; there are dog, cat, 1");
    psld_array_free(z);
    psld_array_free(t);
    psld_array_free(labels);
    psld_array_free(logits);
    psld_array_free(gradient);
    psld_model_free(model);
}

/* Guidance may wrap guidance: both gradients are added. */
static void wrappers_compose(void **state)
{
    (void)state;
    psld_mixture *mixture = whole();
    psld_recipe *recipe = recipe_number(2);
    psld_source *base, *once, *twice, *half;
    psld_classifier *classifier;
    double z[4], t = 0.3, a[4], b[4];
    assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
    assert_int_equal(psld_classifier_mixture(mixture, recipe, &classifier), PSLD_OK);
    assert_int_equal(psld_source_guide(base, recipe, classifier, 1, 3, &once), PSLD_OK);
    assert_int_equal(psld_source_guide(base, recipe, classifier, 1, 1.5, &half), PSLD_OK);
    assert_int_equal(psld_source_guide(half, recipe, classifier, 1, 1.5, &twice), PSLD_OK);
    fill_state(recipe, z);
    assert_int_equal(psld_source_predict(once, &PSLD_STATES(1, DIM, z, &t), a), PSLD_OK);
    assert_int_equal(psld_source_predict(twice, &PSLD_STATES(1, DIM, z, &t), b), PSLD_OK);
    for (int i = 0; i < 4; i++) assert_true(fabs(a[i] - b[i]) < 1e-12 * (1 + fabs(a[i])));
    psld_source *none;
    assert_int_equal(psld_source_guide(base, recipe, classifier, 3, 1, &none), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "label: expected 0 to 2, found 3");
    assert_null(none);
    assert_int_equal(psld_source_guide(base, recipe, classifier, 0, (double)NAN, &none), PSLD_BAD_ARGUMENT);
    psld_source_free(twice);
    psld_source_free(half);
    psld_source_free(once);
    psld_source_free(base);
    psld_classifier_free(classifier);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void recipes_are_compared(void **state)
{
    (void)state;
    psld_recipe *a, *b, *c, *d;
    assert_int_equal(psld_recipe_open("psld gamma=0.02", &a), PSLD_OK);
    assert_int_equal(psld_recipe_open("psld gamma=0.02 name=other stabiliser=1e-8", &b), PSLD_OK);
    assert_int_equal(psld_recipe_open("psld gamma=0.01", &c), PSLD_OK);
    assert_int_equal(psld_recipe_open("vp", &d), PSLD_OK);
    assert_true(psld_recipe_same(a, b));
    assert_false(psld_recipe_same(a, c));
    assert_false(psld_recipe_same(a, d));
    psld_recipe_free(a);
    psld_recipe_free(b);
    psld_recipe_free(c);
    psld_recipe_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(guided_score_is_that_of_the_class),
                                       cmocka_unit_test(exact_classifier_and_its_gradient),
                                       cmocka_unit_test(guided_samples_follow_the_class),
                                       cmocka_unit_test(networks_classify),
                                       cmocka_unit_test(wrappers_compose),
                                       cmocka_unit_test(recipes_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
