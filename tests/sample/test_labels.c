/* Labels and classifier-free guidance against truth: the score of a class is that of its components alone, guidance is the
 * closed form, and samples of Gaussian laws have the moments of the linear reverse equation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recipes.h"
#include "sample/sources/mixture.h"
#include "sample/sources/source.h"
#include "sanitized.h"

enum { DIM = 2, COMPONENTS = 4, CLASSES = 2, N = 5 };
static const double weights[COMPONENTS] = {0.3, 0.4, 0.2, 0.1}, scales[COMPONENTS] = {0.3, 0.15, 0.3, 0.5};
static const double means[COMPONENTS * DIM] = {-0.8, 0.5, 0.6, -0.2, 0.1, 0.9, 0.4, -0.7};
static const int32_t classes_of[COMPONENTS] = {0, 1, 0, 1};

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static psld_mixture *labelled_mixture(void)
{
    psld_mixture *plain, *labelled;
    must(psld_mixture_create(COMPONENTS, DIM, weights, means, scales, &plain));
    must(psld_mixture_label(plain, classes_of, &labelled));
    assert_int_equal(psld_mixture_classes(plain), 0);
    assert_int_equal(psld_mixture_classes(labelled), CLASSES);
    psld_mixture_free(plain);
    return labelled;
}

/* The components of a class as a mixture of their own; -1: all. */
static psld_mixture *mixture_of_class(int32_t label)
{
    double w[COMPONENTS], m[COMPONENTS * DIM], s[COMPONENTS], sum = 0;
    size_t count = 0;
    psld_mixture *mixture;
    for (size_t c = 0; c < COMPONENTS; c++) {
        if (label >= 0 && classes_of[c] != label) continue;
        w[count] = weights[c];
        sum += weights[c];
        s[count] = scales[c];
        memcpy(m + count * DIM, means + c * DIM, DIM * sizeof *m);
        count++;
    }
    for (size_t c = 0; c < count; c++) w[c] /= sum;
    must(psld_mixture_create(count, DIM, w, m, s, &mixture));
    return mixture;
}

static psld_recipe *recipe_number(int p)
{
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
    psld_recipe *recipe;
    if (p >= 4) return random_recipe(3, (recipe_kind)(p - 4), 5);
    must(psld_recipe_open(lines[p], &recipe));
    return recipe;
}
enum { RECIPES = 4 + RECIPE_KINDS };

static psld_labels some_labels(const int32_t *label, size_t count, double cfg)
{
    psld_labels labels = PSLD_LABELS_DEFAULTS;
    labels.label = label;
    labels.count = count;
    labels.cfg = cfg;
    return labels;
}

/* ---- The closed form --------------------------------------------------------------------------------------------- */

typedef struct batch {
    double z[N * DIM * PSLD_MAX_K], t[N];
    uint64_t sample[N];
    psld_states states;
    size_t state, predicted;
} batch;

static void fill_batch(const psld_recipe *recipe, batch *b)
{
    size_t k = (size_t)recipe->spec.k;
    for (size_t i = 0; i < N; i++) {
        b->t[i] = i < 2 ? 0.3 : 0.05 * (double)i; /* equal times, and others */
        b->sample[i] = 100 + 3 * i;
        for (size_t j = 0; j < k * DIM; j++)
            b->z[i * k * DIM + j] = 0.7 * sin(1 + 3 * (double)(i * k * DIM + j)) * recipe->deviation[j / DIM];
    }
    b->state = k * DIM;
    b->predicted = (size_t)recipe->predicted * DIM;
    b->states = PSLD_STATES(N, DIM, b->z, b->t);
    b->states.sample = b->sample;
}

/* none + scale (label - none) from the sources of the mixtures themselves. */
static void expected_eps(const psld_recipe *recipe, const batch *b, const int32_t *label, double scale, double *eps)
{
    double none[N * DIM * PSLD_MAX_K], one[N * DIM * PSLD_MAX_K];
    for (int32_t y = -1; y < CLASSES; y++) {
        psld_mixture *mixture = mixture_of_class(y);
        psld_source *source;
        must(psld_source_mixture(mixture, recipe, &source));
        must(psld_source_predict(source, &b->states, y < 0 ? none : one));
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < b->predicted; j++) {
                size_t at = i * b->predicted + j;
                if (y < 0 && label[i] < 0) eps[at] = none[at];
                if (y >= 0 && label[i] == y) eps[at] = none[at] + scale * (one[at] - none[at]);
            }
        psld_source_free(source);
        psld_mixture_free(mixture);
    }
}

static double largest_difference(size_t count, const double *a, const double *b)
{
    double most = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        size = fmax(size, fabs(b[i]));
    }
    return most / fmax(size, 1);
}

static void guidance_is_the_closed_form(void **state)
{
    (void)state;
    static const double scale_of[] = {0, 1, 3, -0.5};
    static const int32_t list[] = {0, 1, -1};
    psld_mixture *mixture = labelled_mixture();
    double worst = 0;
    for (int p = 0; p < RECIPES; p++) {
        psld_recipe *recipe = recipe_number(p);
        psld_source *base;
        batch b;
        fill_batch(recipe, &b);
        must(psld_source_mixture(mixture, recipe, &base));
        assert_int_equal(psld_source_classes(base), CLASSES);
        assert_int_equal(psld_source_needs_label(base), 0);
        for (size_t i = 0; i < sizeof scale_of / sizeof *scale_of; i++) {
            double eps[N * DIM * PSLD_MAX_K], truth[N * DIM * PSLD_MAX_K];
            psld_labels labels = some_labels(list, 3, scale_of[i]);
            labels.first = 7;
            psld_source *source;
            int32_t label[N];
            for (size_t j = 0; j < N; j++) label[j] = list[(b.sample[j] - 7) % 3];
            must(psld_source_label(base, recipe, &labels, &source));
            must(psld_source_predict(source, &b.states, eps));
            expected_eps(recipe, &b, label, scale_of[i], truth);
            worst = fmax(worst, largest_difference(N * b.predicted, eps, truth));
            psld_source_free(source);
        }
        psld_source_free(base);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
    printf("eps of classifier-free guidance: within %.1e of the closed form\n", worst);
    assert_true(worst <= 1e-12);
}

static void guidance_acts_in_its_range_only(void **state)
{
    (void)state;
    static const int32_t one = 1;
    psld_mixture *mixture = labelled_mixture();
    psld_recipe *recipe = recipe_number(2);
    psld_source *base, *guided, *plain, *ranged;
    batch b;
    double strong[N * DIM * PSLD_MAX_K], weak[N * DIM * PSLD_MAX_K], eps[N * DIM * PSLD_MAX_K], sigma;
    fill_batch(recipe, &b);
    must(psld_source_mixture(mixture, recipe, &base));
    psld_labels labels = some_labels(&one, 1, 4);
    must(psld_source_label(base, recipe, &labels, &guided));
    must(psld_recipe_sigma(recipe, 0.12, &labels.sigma_min));
    must(psld_recipe_sigma(recipe, 0.18, &labels.sigma_max));
    must(psld_source_label(base, recipe, &labels, &ranged));
    labels.cfg = 1;
    must(psld_source_label(base, recipe, &labels, &plain));
    must(psld_source_predict(guided, &b.states, strong));
    must(psld_source_predict(plain, &b.states, weak));
    must(psld_source_predict(ranged, &b.states, eps));
    for (size_t i = 0; i < N; i++) {
        must(psld_recipe_sigma(recipe, b.t[i], &sigma));
        int inside = sigma >= labels.sigma_min && sigma <= labels.sigma_max;
        assert_memory_equal(eps + i * b.predicted, (inside ? strong : weak) + i * b.predicted,
                            b.predicted * sizeof *eps);
    }
    psld_source_free(guided);
    psld_source_free(ranged);
    psld_source_free(plain);
    psld_source_free(base);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void gradient_by_finite_differences(void **state)
{
    (void)state;
    static const int32_t list[] = {1, 0, -1};
    psld_mixture *mixture = labelled_mixture();
    double worst = 0;
    for (int p = 0; p < RECIPES; p++) {
        psld_recipe *recipe = recipe_number(p);
        psld_source *base, *source;
        batch b;
        double weight[N * DIM * PSLD_MAX_K], gradient[N * DIM * PSLD_MAX_K], eps[2][N * DIM * PSLD_MAX_K];
        fill_batch(recipe, &b);
        for (size_t j = 0; j < N * b.predicted; j++) weight[j] = cos(5 * (double)j);
        psld_labels labels = some_labels(list, 3, 2.5);
        must(psld_source_mixture(mixture, recipe, &base));
        must(psld_source_label(base, recipe, &labels, &source));
        must(psld_source_gradient(source, &b.states, weight, NULL, gradient));
        for (size_t at = 0; at < N * b.state; at++) {
            double before = b.z[at], h = 1e-5 * recipe->deviation[at % b.state / DIM], slope = 0;
            for (int side = 0; side < 2; side++) {
                b.z[at] = before + (side ? h : -h);
                must(psld_source_predict(source, &b.states, eps[side]));
            }
            b.z[at] = before;
            for (size_t j = 0; j < N * b.predicted; j++) slope += weight[j] * (eps[1][j] - eps[0][j]) / (2 * h);
            worst = fmax(worst, fabs(slope - gradient[at]) / fmax(1, fabs(slope)));
        }
        psld_source_free(source);
        psld_source_free(base);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
    printf("gradient: within %.1e of finite differences\n", worst);
    assert_true(worst <= 1e-5);
}

/* ---- The classifier of labels ------------------------------------------------------------------------------------ */

/* log p(y | z) + log p(z) = log p(y) + log p(z | y), so its gradient is that of the class less that of the mixture. */
static void classifier_knows_the_labels(void **state)
{
    (void)state;
    psld_mixture *mixture = labelled_mixture();
    psld_recipe *recipe = recipe_number(1);
    psld_classifier *classifier;
    batch b;
    double log_p[CLASSES][N], gradient[N * DIM * PSLD_MAX_K];
    fill_batch(recipe, &b);
    must(psld_classifier_mixture(mixture, recipe, &classifier));
    assert_int_equal(psld_classifier_classes(classifier), CLASSES);
    for (int32_t y = 0; y < CLASSES; y++) {
        int32_t label[N] = {y, y, y, y, y};
        must(psld_classifier_evaluate(classifier, &b.states, label, log_p[y], gradient));
        for (size_t at = 0; at < N * b.state; at++) {
            double before = b.z[at], h = 1e-5 * recipe->deviation[at % b.state / DIM], side[2][N],
                   unused[N * DIM * PSLD_MAX_K];
            for (int s = 0; s < 2; s++) {
                b.z[at] = before + (s ? h : -h);
                must(psld_classifier_evaluate(classifier, &b.states, label, side[s], unused));
            }
            b.z[at] = before;
            double slope = (side[1][at / b.state] - side[0][at / b.state]) / (2 * h);
            assert_true(fabs(slope - gradient[at]) <= 1e-5 * fmax(1, fabs(slope)));
        }
    }
    for (size_t i = 0; i < N; i++) assert_true(fabs(exp(log_p[0][i]) + exp(log_p[1][i]) - 1) <= 1e-12);
    psld_classifier_free(classifier);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

static psld_sample_options few_steps(const char *sampler, const psld_labels *labels)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = sampler;
    options.nfe = 20;
    options.seed = 5;
    options.labels = labels;
    return options;
}

/* Sample i with label y has the same bits in every mixture of labels, batch and number of threads. */
static void bits_depend_on_seed_and_label_only(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    static const int32_t mixed[] = {0, 1, -1, 1};
    static const char *const samplers[] = {"em", "sscs", "ancestral", "dpm", "heun", "collapsed"};
    psld_mixture *mixture = labelled_mixture();
    psld_recipe *recipe = recipe_number(2);
    psld_source *base;
    double together[COUNT * DIM * 2], alone[COUNT * DIM * 2];
    must(psld_source_mixture(mixture, recipe, &base));
    for (size_t s = 0; s < sizeof samplers / sizeof *samplers; s++) {
        psld_labels labels = some_labels(mixed, 4, 2);
        psld_sample_options options = few_steps(samplers[s], &labels);
        must(psld_sample(recipe, base, &options, 0, COUNT, DIM, NULL, together, NULL));
        for (int threads = 1; threads <= 2; threads++)
            for (int batch_size = 1; batch_size <= COUNT; batch_size += 4)
                for (int32_t y = -1; y < CLASSES; y++) {
                    psld_labels one = some_labels(&y, 1, 2);
                    options.labels = &one;
                    options.batch = batch_size;
                    must(psld_threads_set(threads));
                    must(psld_sample(recipe, base, &options, 0, COUNT, DIM, NULL, alone, NULL));
                    for (size_t i = 0; i < COUNT; i++)
                        if (mixed[i % 4] == y)
                            assert_memory_equal(together + i * DIM * 2, alone + i * DIM * 2, DIM * 2 * sizeof *alone);
                }
    }
    must(psld_threads_set(0));
    psld_source_free(base);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

/* Data of one number: N(mean, deviation^2) with a label, and another law without. */
typedef struct gaussian_laws {
    const psld_recipe *recipe;
    double mean[2], deviation[2]; /* without label, with label */
} gaussian_laws;

/* C^-1 and mu of the law of z_t. */
static void gaussian_at(const psld_recipe *recipe, double t, double deviation, double *precision, double *mu)
{
    psld_gaussian kernel;
    double whiten[PSLD_MATRIX_SIZE], transposed[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, deviation * deviation, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, whiten);
    psld_matrix_transpose(k, whiten, transposed);
    psld_matrix_multiply(k, transposed, whiten, precision);
    for (int a = 0; a < k; a++) mu[a] = kernel.mean[a * k];
}

static psld_status gaussian_score(void *user, const psld_states *states, double *score)
{
    const gaussian_laws *laws = user;
    int k = laws->recipe->spec.k, predicted = laws->recipe->predicted;
    double precision_of[2][PSLD_MATRIX_SIZE], mu_of[2][PSLD_MAX_K];
    for (size_t i = 0; i < states->n; i++) {
        int law = states->label && states->label[i] == 0;
        for (int l = 0; l < 2 && (i == 0 || states->t[i] != states->t[i - 1]); l++)
            gaussian_at(laws->recipe, states->t[i], laws->deviation[l], precision_of[l], mu_of[l]);
        const double *precision = precision_of[law], *mu = mu_of[law];
        for (int p = 0; p < predicted; p++) {
            int a = laws->recipe->variable[p];
            double sum = 0;
            for (int b = 0; b < k; b++)
                sum += precision[a * k + b] * (mu[b] * laws->mean[law] - states->z[i * (size_t)k + (size_t)b]);
            score[i * (size_t)predicted + (size_t)p] = sum;
        }
    }
    return PSLD_OK;
}

/* The time derivative (backwards in t) of mean and covariance of the reverse process whose score is guided. */
static void reverse_moments(const gaussian_laws *laws, double scale, double t, const double *mean, const double *cov,
                            double *d_mean, double *d_cov)
{
    const psld_recipe_spec *r = &laws->recipe->spec;
    int k = r->k;
    double beta = r->beta_min + (r->beta_max - r->beta_min) * t, map[4], offset[2] = {0};
    double precision[2][PSLD_MATRIX_SIZE], mu[2][PSLD_MAX_K], part[2] = {1 - scale, scale};
    for (int law = 0; law < 2; law++) gaussian_at(laws->recipe, t, laws->deviation[law], precision[law], mu[law]);
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            map[a * k + b] = beta * (r->D[a * k + b] + r->Q[a * k + b]) / (b ? r->mass[b - 1] : 1);
            for (int law = 0; law < 2; law++)
                for (int c = 0; c < k; c++) {
                    double pull = 2 * beta * r->D[a * k + c] * part[law] * precision[law][c * k + b];
                    map[a * k + b] -= pull;
                    offset[a] += pull * mu[law][b] * laws->mean[law];
                }
        }
    for (int a = 0; a < k; a++) {
        d_mean[a] = offset[a];
        for (int b = 0; b < k; b++) d_mean[a] += map[a * k + b] * mean[b];
        for (int b = 0; b < k; b++) {
            d_cov[a * k + b] = 2 * beta * r->D[a * k + b];
            for (int c = 0; c < k; c++)
                d_cov[a * k + b] += map[a * k + c] * cov[c * k + b] + map[b * k + c] * cov[a * k + c];
        }
    }
}

/* Midpoint rule in log t: the score is large at small times. */
static void integrate_moments(const gaussian_laws *laws, double scale, double t_min, double *mean, double *cov)
{
    enum { STEPS = 4000 };
    int k = laws->recipe->spec.k;
    double ratio = pow(t_min, 1.0 / STEPS), t = 1, middle_mean[2], middle_cov[4], dm[2], dc[4];
    memset(mean, 0, 2 * sizeof *mean);
    memset(cov, 0, 4 * sizeof *cov);
    for (int a = 0; a < k; a++) cov[a * k + a] = a ? laws->recipe->spec.mass[a - 1] : 1;
    for (int i = 0; i < STEPS; i++) {
        double h = t * (1 - ratio);
        reverse_moments(laws, scale, t, mean, cov, dm, dc);
        for (int a = 0; a < k; a++) middle_mean[a] = mean[a] + h / 2 * dm[a];
        for (int a = 0; a < k * k; a++) middle_cov[a] = cov[a] + h / 2 * dc[a];
        reverse_moments(laws, scale, t - h / 2, middle_mean, middle_cov, dm, dc);
        for (int a = 0; a < k; a++) mean[a] += h * dm[a];
        for (int a = 0; a < k * k; a++) cov[a] += h * dc[a];
        t *= ratio;
    }
}

static void guided_samples_have_the_moments_of_the_reverse_equation(void **state)
{
    (void)state;
    enum { COUNT = 6000 };
    static const char *const lines[] = {"vp", "psld gamma=0.25"};
    static const int32_t label = 0;
    double *z = malloc(COUNT * 2 * sizeof *z), worst = 0;
    for (int p = 0; p < 2; p++) {
        psld_recipe *recipe;
        must(psld_recipe_open(lines[p], &recipe));
        gaussian_laws laws = {.recipe = recipe, .mean = {-0.2, 0.5}, .deviation = {0.8, 0.4}};
        psld_callback callback = PSLD_CALLBACK_DEFAULTS;
        callback.predicts = PSLD_PREDICTS_SCORE;
        callback.recipe = recipe;
        callback.predict = gaussian_score;
        callback.user = &laws;
        callback.classes = 1;
        psld_source *source;
        must(psld_source_callback(&callback, &source));
        static const double strengths[] = {0, 1, 3};
        for (size_t w = 0; w < sizeof strengths / sizeof *strengths; w++) {
            double scale = strengths[w];
            psld_labels labels = some_labels(&label, 1, scale);
            psld_sample_options options = few_steps("sscs", &labels);
            double mean[2], cov[4], found = 0, square = 0;
            size_t k = (size_t)recipe->spec.k;
            options.nfe = 400;
            options.denoise = 0;
            options.eps = 1e-3;
            options.grid = "quadratic";
            must(psld_sample(recipe, source, &options, 0, COUNT, 1, NULL, z, NULL));
            integrate_moments(&laws, scale, 1e-3, mean, cov);
            for (size_t i = 0; i < COUNT; i++) found += z[i * k] / COUNT;
            for (size_t i = 0; i < COUNT; i++) square += (z[i * k] - found) * (z[i * k] - found) / COUNT;
            double of_mean = (found - mean[0]) / sqrt(cov[0] / COUNT),
                   of_var = (square / cov[0] - 1) / sqrt(2.0 / COUNT);
            printf("%s, cfg %g: mean %.4f (%.4f), variance %.4f (%.4f)\n", lines[p], scale, found, mean[0], square,
                   cov[0]);
            worst = fmax(worst, fmax(fabs(of_mean), fabs(of_var)));
        }
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    free(z);
    printf("at most %.1f standard errors\n", worst);
    assert_true(worst <= 4);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void refuse(psld_source *base, const psld_recipe *recipe, psld_labels labels, const char *words)
{
    psld_source *source;
    assert_int_equal(psld_source_label(base, recipe, &labels, &source), PSLD_BAD_ARGUMENT);
    assert_null(source);
    if (!strstr(psld_error_text(), words)) fail_msg("\"%s\" does not say \"%s\"", psld_error_text(), words);
}

static psld_status no_score(void *user, const psld_states *states, double *out)
{
    (void)user;
    memset(out, 0, states->n * states->dim * sizeof *out);
    return PSLD_OK;
}

static void refusals(void **state)
{
    (void)state;
    static const int32_t good = 1, beyond = 2, negative = -2, none = -1;
    psld_mixture *mixture = labelled_mixture(), *plain = mixture_of_class(-1), *unused;
    psld_recipe *recipe = recipe_number(0);
    psld_source *base, *unlabelled, *needing;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    must(psld_source_mixture(mixture, recipe, &base));
    must(psld_source_mixture(plain, recipe, &unlabelled));
    callback.predict = no_score;
    callback.classes = 3;
    callback.needs_label = 1;
    must(psld_source_callback(&callback, &needing));
    refuse(unlabelled, recipe, some_labels(&good, 1, 1), "takes no labels");
    refuse(base, recipe, some_labels(&beyond, 1, 1), "0 to 1");
    refuse(base, recipe, some_labels(&negative, 1, 1), "-1 for none");
    refuse(base, recipe, some_labels(NULL, 0, 1), "at least one");
    refuse(base, recipe, some_labels(&good, 1, NAN), "finite");
    refuse(needing, recipe, some_labels(&good, 1, 2), "without a label");
    refuse(needing, recipe, some_labels(&none, 1, 1), "0 to 2");
    psld_labels range = some_labels(&good, 1, 2);
    range.sigma_min = 2;
    range.sigma_max = 1;
    refuse(base, recipe, range, "range");
    double z[DIM] = {0}, t = 0.5, eps[DIM];
    psld_states states = PSLD_STATES(1, DIM, z, &t);
    assert_int_equal(psld_source_predict(needing, &states, eps), PSLD_BAD_ARGUMENT);
    states.label = &beyond;
    assert_int_equal(psld_source_predict(base, &states, eps), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_source_predict(needing, &states, eps), PSLD_OK);
    static const int32_t gap[COMPONENTS] = {0, 2, 0, 2}, out[COMPONENTS] = {0, 1, 9, 0};
    assert_int_equal(psld_mixture_label(mixture, gap, &unused), PSLD_BAD_INPUT);
    assert_int_equal(psld_mixture_label(mixture, out, &unused), PSLD_BAD_INPUT);
    psld_source_free(needing);
    psld_source_free(unlabelled);
    psld_source_free(base);
    psld_recipe_free(recipe);
    psld_mixture_free(plain);
    psld_mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guidance_is_the_closed_form),
        cmocka_unit_test(guidance_acts_in_its_range_only),
        cmocka_unit_test(gradient_by_finite_differences),
        cmocka_unit_test(classifier_knows_the_labels),
        cmocka_unit_test(bits_depend_on_seed_and_label_only),
        cmocka_unit_test(guided_samples_have_the_moments_of_the_reverse_equation),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
