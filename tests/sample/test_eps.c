/* What eps means: for every factor and both kernels an ideal source says the same score, so everything that is made of it
 * is the same. Checked against the plain recipe (lower factor, kernel given x_0), against the exact covariance of Gaussian
 * data, and, where the golden files are at hand, against steps of the original code. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "em_options.h"
#include "golden_network.h"
#include "psld_eval.h"
#include "recipes.h"
#include "sample/corrector.h"
#include "sample/options.h"
#include "sample/sample.h"
#include "train/perturb.h"

static const char *const lines[] = {"cld", "psld gamma=0.02", "psld gamma=4 nu=0", "told"};
static const char *const meanings[] = {"factor=upper", "factor=natural", "kernel=dsm", "kernel=dsm factor=upper",
                                       "kernel=dsm factor=natural"};
enum { LINES = sizeof lines / sizeof *lines, MEANINGS = sizeof meanings / sizeof *meanings, DIM = 2, COUNT = 16 };

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static psld_recipe *open_recipe(const char *line, const char *meaning)
{
    char text[128];
    psld_recipe *recipe;
    snprintf(text, sizeof text, "%s %s", line, meaning);
    must(psld_recipe_open(text, &recipe));
    return recipe;
}

static psld_mixture *pair(void)
{
    const double weights[2] = {0.3, 0.7}, means[4] = {-0.8, 0.5, 0.6, -0.2}, scales[2] = {0.3, 0.15};
    psld_mixture *mixture;
    must(psld_mixture_create(2, DIM, weights, means, scales, &mixture));
    return mixture;
}

static double difference(size_t count, const double *a, const double *b)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
        if (!(fabs(a[i]) < 1e300)) return INFINITY;
    }
    return worst / largest;
}

/* ---- Which eps there are, in which order ------------------------------------------------------------------------- */

static void check_channels(const char *line, const char *order, const char *variables)
{
    psld_recipe *recipe = open_recipe(line, "");
    int ordered[PSLD_MAX_K], found[PSLD_MAX_K];
    char text[2][PSLD_MAX_K + 1] = {{0}};
    int count = psld_recipe_predicted(recipe, found);
    assert_int_equal(psld_recipe_order(recipe, ordered), count);
    for (int i = 0; i < recipe->spec.k; i++) text[0][i] = (char)('0' + ordered[i]);
    for (int i = 0; i < count; i++) text[1][i] = (char)('0' + found[i]);
    if (strcmp(text[0], order) != 0 || strcmp(text[1], variables) != 0)
        fail_msg("%s: order %s, predicted %s; expected %s and %s", line, text[0], text[1], order, variables);
    psld_recipe_free(recipe);
}

static void channels_come_in_the_natural_order(void **state)
{
    (void)state;
    check_channels("vp", "0", "0");
    check_channels("cld", "01", "1");
    check_channels("cld factor=upper", "10", "01");
    check_channels("psld gamma=0.25", "01", "01");
    check_channels("psld gamma=0.25 factor=upper", "10", "01");
    check_channels("psld gamma=4 nu=0", "10", "0");
    check_channels("psld gamma=4 nu=0 factor=upper", "10", "0");
    check_channels("psld gamma=4 nu=0 factor=natural", "01", "01");
    check_channels("told", "012", "2");
    check_channels("told factor=upper", "210", "012");
}

/* ---- Everything that is made of an exact score ------------------------------------------------------------------- */

typedef struct subject {
    const psld_mixture *mixture;
    psld_recipe *recipe;
    psld_source *source;
} subject;

static subject make_subject(const psld_mixture *mixture, const char *line, const char *meaning)
{
    subject s = {.mixture = mixture, .recipe = open_recipe(line, meaning)};
    must(psld_source_mixture(mixture, s.recipe, &s.source));
    return s;
}

static void free_subject(subject *s)
{
    psld_source_free(s->source);
    psld_recipe_free(s->recipe);
}

/* Higher orders are chosen for how sure the predicted variables are, which depends on which of them there are. */
static int lowest_order(const char *sampler)
{
    return psld_sampler_find(sampler)->max_order > 0;
}

static void draw_with(const subject *s, psld_source *source, const char *sampler, const psld_inpainting *known,
                      double *out)
{
    psld_sample_options options = em_options();
    options.sampler = sampler;
    options.nfe = 30;
    options.tolerance = 1e-6;
    options.inpainting = known;
    options.order = lowest_order(sampler);
    must(psld_sample(s->recipe, source, &options, 0, COUNT, DIM, NULL, out, NULL));
}

/* Each fills up to COUNT * k * DIM numbers and says how many. */
typedef size_t (*use_fn)(const subject *s, const char *sampler, double *out);

static size_t use_score(const subject *s, const char *sampler, double *out)
{
    size_t k = (size_t)s->recipe->spec.k;
    double z[COUNT * PSLD_MAX_K * DIM], t[COUNT], eps[COUNT * PSLD_MAX_K * DIM];
    (void)sampler;
    must(psld_mixture_draw(s->mixture, s->recipe, 0.3, 7, 0, COUNT, z));
    for (size_t i = 0; i < COUNT; i++) t[i] = 0.3;
    must(psld_source_predict(s->source, &PSLD_STATES(COUNT, DIM, z, t), eps));
    psld_affine affine;
    must(psld_affine_score(s->recipe, 0.3, s->recipe->spec.D, &affine));
    size_t predicted = (size_t)s->recipe->predicted;
    for (size_t i = 0; i < COUNT * k * DIM; i++) {
        size_t sample = i / (k * DIM), a = i / DIM % k, j = i % DIM;
        out[i] = 0;
        for (size_t c = 0; c < predicted; c++)
            out[i] += affine.eps[a * predicted + c] * eps[(sample * predicted + c) * DIM + j];
    }
    return COUNT * k * DIM;
}

static size_t use_denoiser(const subject *s, const char *sampler, double *out)
{
    double z[COUNT * PSLD_MAX_K * DIM], t[COUNT];
    (void)sampler;
    must(psld_mixture_draw(s->mixture, s->recipe, 0.3, 7, 0, COUNT, z));
    for (size_t i = 0; i < COUNT; i++) t[i] = 0.3;
    must(psld_source_denoise(s->source, s->recipe, &PSLD_STATES(COUNT, DIM, z, t), out));
    return COUNT * DIM;
}

static size_t use_sampler(const subject *s, const char *sampler, double *out)
{
    draw_with(s, s->source, sampler, NULL, out);
    return COUNT * (size_t)s->recipe->spec.k * DIM;
}

static size_t use_guidance(const subject *s, const char *sampler, double *out)
{
    psld_classifier *classifier;
    psld_source *guided;
    must(psld_classifier_mixture(s->mixture, s->recipe, &classifier));
    must(psld_source_guide(s->source, s->recipe, classifier, 1, 1.5, &guided));
    draw_with(s, guided, sampler, NULL, out);
    psld_source_free(guided);
    psld_classifier_free(classifier);
    return COUNT * (size_t)s->recipe->spec.k * DIM;
}

static size_t use_inpainting(const subject *s, const char *sampler, double *out)
{
    const double x[DIM] = {0.5, 0};
    const unsigned char known[DIM] = {1, 0};
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    inpainting.x = x;
    inpainting.known = known;
    draw_with(s, s->source, sampler, &inpainting, out);
    return COUNT * (size_t)s->recipe->spec.k * DIM;
}

static size_t use_restoration(const subject *s, const char *sampler, double *out)
{
    const double y[1] = {0.2};
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_operator *op;
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    psld_source *restored;
    task.rank = 1;
    task.shape[0] = DIM;
    task.factor = DIM;
    options.noise = 0.1;
    must(psld_operator_create(&task, &op));
    must(psld_source_restore(s->source, s->recipe, op, y, &options, &restored));
    draw_with(s, restored, sampler, NULL, out);
    psld_source_free(restored);
    psld_operator_free(op);
    return COUNT * (size_t)s->recipe->spec.k * DIM;
}

static size_t use_clipping(const subject *s, const char *sampler, double *out)
{
    psld_source *clipped;
    must(psld_source_clip(s->source, s->recipe, 0.6, 0, &clipped));
    draw_with(s, clipped, sampler, NULL, out);
    psld_source_free(clipped);
    return COUNT * (size_t)s->recipe->spec.k * DIM;
}

/* A source of vp made of this one. */
static size_t use_translation(const subject *s, const char *sampler, double *out)
{
    subject other = {.mixture = s->mixture, .recipe = open_recipe("vp", "beta=[0.1, 8]")};
    must(psld_source_translate(s->source, s->recipe, other.recipe, &other.source));
    psld_sample_options options = em_options();
    options.sampler = sampler;
    options.nfe = 30;
    options.order = lowest_order(sampler);
    options.end_sigma = 0.05;
    must(psld_sample(other.recipe, other.source, &options, 0, COUNT, DIM, NULL, out, NULL));
    free_subject(&other);
    return COUNT * DIM;
}

static size_t use_encoding(const subject *s, const char *sampler, double *out)
{
    double z[COUNT * PSLD_MAX_K * DIM], x[COUNT * DIM];
    psld_sample_options options = em_options();
    size_t k = (size_t)s->recipe->spec.k;
    options.sampler = sampler;
    options.nfe = 30;
    options.order = lowest_order(sampler);
    must(psld_mixture_draw(s->mixture, s->recipe, 0, 7, 0, COUNT, z));
    for (size_t i = 0; i < COUNT * DIM; i++) x[i] = z[i / DIM * k * DIM + i % DIM];
    must(psld_encode(s->recipe, s->source, &options, 0, COUNT, DIM, x, out, NULL));
    return COUNT * k * DIM;
}

static size_t use_likelihood(const subject *s, const char *sampler, double *out)
{
    const double x[4 * DIM] = {-0.8, 0.5, 0.6, -0.2, 0, 0, 0.4, -0.3};
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    (void)sampler;
    options.tolerance = 1e-8;
    options.exact = 1;
    must(psld_likelihood(s->recipe, s->source, &options, 0, 4, DIM, x, out, NULL));
    return 4;
}

static const struct {
    const char *what;
    use_fn use;
    const char *sampler;
} uses[] = {
    {"score", use_score, ""},
    {"clean data", use_denoiser, ""},
    {"guidance", use_guidance, "sscs"},
    {"guidance, ancestral", use_guidance, "ancestral"},
    {"inpainting", use_inpainting, "sscs"},
    {"inpainting, collapsed", use_inpainting, "collapsed"},
    {"restoration", use_restoration, "ancestral"},
    {"clipping", use_clipping, "collapsed"},
    {"translation", use_translation, "collapsed"},
    {"encoding", use_encoding, "collapsed"},
    {"likelihood", use_likelihood, ""},
};
enum { USES = sizeof uses / sizeof *uses };

/* Rounding is amplified by the condition of the factors: the worst is told's, at the end of a reverse. */
#define ROUNDING 2e-6

static void check_use(const psld_mixture *mixture, const char *line, const char *what, use_fn use, const char *sampler)
{
    static double plain[COUNT * PSLD_MAX_K * DIM], found[COUNT * PSLD_MAX_K * DIM];
    subject base = make_subject(mixture, line, "");
    size_t count = use(&base, sampler, plain);
    for (int m = 0; m < MEANINGS; m++) {
        subject other = make_subject(mixture, line, meanings[m]);
        assert_int_equal(use(&other, sampler, found), count);
        double error = difference(count, found, plain);
        if (!(error < ROUNDING)) fail_msg("%s %s, %s: off by %g", line, meanings[m], what, error);
        free_subject(&other);
    }
    free_subject(&base);
}

static void the_score_does_not_depend_on_what_eps_means(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    const psld_sampler_info *sampler;
    for (int l = 0; l < LINES; l++) {
        for (int s = 0; (sampler = psld_sampler_at(s)); s++)
            check_use(mixture, lines[l], sampler->name, use_sampler, sampler->name);
        for (int u = 0; u < USES; u++) check_use(mixture, lines[l], uses[u].what, uses[u].use, uses[u].sampler);
    }
    psld_mixture_free(mixture);
}

/* ---- An ideal network on Gaussian data --------------------------------------------------------------------------- */

/* Data N(0, scale^2) in each coordinate. With noise e of the kernel, z = ... + S e and Cov(e, z) = S', so that the best
 * prediction is E[e | z] = S' C^-1 z, C the covariance of z with the stabiliser. */
typedef struct ideal {
    const psld_recipe *recipe;
    double scale;
} ideal;

static psld_status predict_ideally(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    const double *z = states->z, *t = states->t;
    const ideal *i = user;
    const psld_recipe *recipe = i->recipe;
    int k = recipe->spec.k, predicted = recipe->predicted;
    double factor[PSLD_MATRIX_SIZE], whole[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
    psld_gaussian kernel;
    psld_kernel(recipe, t[0], PSLD_HSM, i->scale * i->scale, &kernel);
    if (psld_kernel_factor(recipe, &kernel, t[0], whole, inverse) != PSLD_OK) return PSLD_NOT_FINITE;
    if (psld_recipe_factor(recipe, t[0], recipe->spec.mode, factor, NULL) != PSLD_OK) return PSLD_NOT_FINITE;
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < dim; j++) {
            double white[PSLD_MAX_K] = {0}, precise[PSLD_MAX_K] = {0};
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) white[a] += inverse[a * k + b] * z[(row * (size_t)k + (size_t)b) * dim + j];
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) precise[a] += inverse[b * k + a] * white[b];
            for (int c = 0; c < predicted; c++) {
                double sum = 0;
                for (int b = 0; b < k; b++) sum += factor[b * k + recipe->variable[c]] * precise[b];
                eps[(row * (size_t)predicted + (size_t)c) * dim + j] = sum;
            }
        }
    return PSLD_OK;
}

/* One coordinate for each number that a walk is made of: k of the start and k of each draw of noise. So the reverse, which
 * is linear, shows its whole matrix, and the covariance of its end is exact. */
static void excite(void *user, uint64_t sample, uint64_t draw, size_t first, size_t count, double *noise)
{
    size_t k = ((const size_t *)user)[0], dim = ((const size_t *)user)[1];
    (void)sample;
    for (size_t i = first; i < first + count; i++) noise[i - first] = i % dim == k * (1 + (size_t)draw) + i / dim;
}

static void end_covariance(const psld_recipe *recipe, psld_source *source, const char *sampler, double scale, int nfe,
                           double *cov)
{
    size_t k = (size_t)recipe->spec.k, dim = k * (1 + 2 * (size_t)nfe), shape[2] = {k, dim};
    double *z = calloc(k * dim, sizeof *z);
    psld_gaussian start;
    psld_sample_options options = em_options();
    options.sampler = sampler;
    options.nfe = nfe;
    options.tolerance = 1e-7;
    options.denoise = 0;
    options.noise = excite;
    options.noise_user = shape;
    psld_kernel(recipe, 1, PSLD_HSM, scale * scale, &start);
    for (size_t a = 0; a < k; a++)
        for (size_t b = 0; b < k; b++) z[a * dim + b] = start.factor[a * k + b];
    must(psld_sample(recipe, source, &options, 0, 1, dim, z, z, NULL));
    for (size_t a = 0; a < k; a++)
        for (size_t b = 0; b < k; b++) {
            cov[a * k + b] = 0;
            for (size_t j = 0; j < dim; j++) cov[a * k + b] += z[a * dim + j] * z[b * dim + j];
        }
    free(z);
}

/* What each sampler leaves of error with so many steps, for the exact score itself: the DSM network must do as well. */
static const struct {
    const char *sampler;
    int nfe;
    double tolerance;
} budgets[] = {
    {"em", 1200, 0.05},       {"sscs", 600, 0.05},           {"ode", 1, 2e-3},
    {"euler-ode", 1200, 0.3}, {"heun", 600, 0.02},           {"dpm", 200, 0.15},
    {"collapsed", 100, 0.02}, {"collapsed-heun", 200, 0.02}, {"ancestral", 200, 0.05},
};

static void check_law(const char *line, const char *meaning, const char *sampler, int nfe, double tolerance)
{
    double exact[PSLD_MATRIX_SIZE], hsm[PSLD_MATRIX_SIZE], dsm[PSLD_MATRIX_SIZE];
    ideal plain = {open_recipe(line, ""), 0.4}, other = {open_recipe(line, meaning), 0.4};
    psld_source *of_plain, *of_other;
    psld_gaussian kernel;
    int k = plain.recipe->spec.k;
    must(psld_source_callback(
        &(psld_callback){.size = sizeof(psld_callback), .predict = predict_ideally, .user = &plain}, &of_plain));
    must(psld_source_callback(
        &(psld_callback){.size = sizeof(psld_callback), .predict = predict_ideally, .user = &other}, &of_other));
    end_covariance(plain.recipe, of_plain, sampler, plain.scale, nfe, hsm);
    end_covariance(other.recipe, of_other, sampler, other.scale, nfe, dsm);
    psld_kernel(plain.recipe, 1e-3, PSLD_HSM, plain.scale * plain.scale, &kernel);
    psld_matrix_copy(k, kernel.cov, exact);
    for (int a = 0; a < k; a++) {
        double ratio = dsm[a * k + a] / exact[a * k + a];
        if (!(fabs(ratio - 1) < tolerance))
            fail_msg("%s %s, %s: variance of variable %d is %g times the exact one", line, meaning, sampler, a, ratio);
        if (!(fabs(dsm[a * k + a] / hsm[a * k + a] - 1) < 1e-4))
            fail_msg("%s %s, %s: variance of variable %d is %g, with the plain eps %g", line, meaning, sampler, a,
                     dsm[a * k + a], hsm[a * k + a]);
    }
    psld_source_free(of_plain);
    psld_source_free(of_other);
    psld_recipe_free((psld_recipe *)(uintptr_t)plain.recipe);
    psld_recipe_free((psld_recipe *)(uintptr_t)other.recipe);
}

static void an_ideal_network_has_the_exact_law(void **state)
{
    (void)state;
    static const char *const processes[] = {"cld", "psld gamma=0.02", "told"};
    for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
        for (int p = 0; p < 3; p++)
            check_law(processes[p], "kernel=dsm", budgets[b].sampler, budgets[b].nfe, budgets[b].tolerance);
    check_law("psld gamma=0.25", "factor=upper", "sscs", 600, 0.05);
    check_law("psld gamma=0.25", "factor=upper kernel=dsm", "ancestral", 200, 0.05);
}

/* A Langevin corrector keeps the law for every meaning: where noise dominates it is exact at any size. */
static void the_corrector_keeps_the_law(void **state)
{
    (void)state;
    for (int l = 0; l < LINES; l++)
        for (int m = 0; m < MEANINGS; m++) {
            psld_recipe *recipe = open_recipe(lines[l], meanings[m]);
            int k = recipe->spec.k, predicted = recipe->predicted;
            double factor[PSLD_MATRIX_SIZE], move[PSLD_MATRIX_SIZE], cov[PSLD_MATRIX_SIZE] = {0};
            psld_affine affine;
            psld_gaussian kernel;
            psld_kernel(recipe, 0.9, PSLD_HSM, 0, &kernel);
            must(psld_recipe_factor(recipe, 0.9, recipe->spec.mode, factor, NULL));
            must(psld_corrector_plan(recipe, 0.9, 0.3, &affine));
            /* data at 0: z is N(0, Sigma) and eps = S' Sigma^-1 z; the step is z <- move z + noise n */
            double inverse[PSLD_MATRIX_SIZE], precision[PSLD_MATRIX_SIZE] = {0};
            psld_matrix_invert_lower(k, kernel.factor, inverse);
            for (int i = 0; i < k * k; i++)
                for (int b = 0; b < k; b++) precision[i] += inverse[b * k + i / k] * inverse[b * k + i % k];
            for (int a = 0; a < k; a++)
                for (int j = 0; j < k; j++) {
                    move[a * k + j] = affine.state[a * k + j];
                    for (int c = 0; c < predicted; c++)
                        for (int b = 0; b < k; b++)
                            move[a * k + j] += affine.eps[a * predicted + c] * factor[b * k + recipe->variable[c]] *
                                               precision[b * k + j];
                }
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++)
                    for (int i = 0; i < k; i++) {
                        cov[a * k + b] += affine.noise[a * k + i] * affine.noise[b * k + i];
                        for (int j = 0; j < k; j++)
                            cov[a * k + b] += move[a * k + i] * kernel.cov[i * k + j] * move[b * k + j];
                    }
            for (int i = 0; i < k * k; i++)
                if (!(fabs(cov[i] - kernel.cov[i]) < 1e-6))
                    fail_msg("%s %s: %g instead of %g at %d", lines[l], meanings[m], cov[i], kernel.cov[i], i);
            psld_recipe_free(recipe);
        }
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

/* Where all variables are predicted, a state is mean x_0 + factor target, channel by channel. */
static void targets_come_in_the_order_of_channels(void **state)
{
    (void)state;
    static const char *const all[] = {"psld gamma=0.25 factor=upper", "psld gamma=4 nu=0 factor=natural",
                                      "told factor=upper", "cld factor=upper"};
    for (int l = 0; l < 4; l++) {
        psld_recipe *recipe = open_recipe(all[l], "");
        size_t k = (size_t)recipe->spec.k;
        float x[COUNT], z[COUNT * PSLD_MAX_K], target[COUNT * PSLD_MAX_K], time[COUNT];
        double t[COUNT], mean[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE];
        psld_perturbation how = {.recipe = recipe, .dim = 1, .t_min = 0.05, .seed = 3};
        psld_microbatch batch = {.x = x, .z = z, .target = target, .time = time, .t = t};
        assert_int_equal(recipe->predicted, recipe->spec.k);
        for (int i = 0; i < COUNT; i++) x[i] = (float)sin(i);
        batch.first = 0, batch.n = COUNT;
        must(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch));
        for (size_t i = 0; i < COUNT; i++) {
            must(psld_recipe_kernel(recipe, t[i], PSLD_HSM, mean, NULL, NULL));
            must(psld_recipe_factor(recipe, t[i], PSLD_HSM, factor, NULL));
            for (size_t a = 0; a < k; a++) {
                double sum = mean[a * k] * (double)x[i];
                for (size_t c = 0; c < k; c++) sum += factor[a * k + c] * (double)target[i * k + c];
                assert_true(fabs(sum - (double)z[i * k + a]) < 1e-5);
            }
        }
        psld_recipe_free(recipe);
    }
}

/* ---- Models carry what their eps means --------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static psld_mode mode_of(const char *text, const char *override)
{
    psld_model *model;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.overrides = &override;
    options.override_count = override != NULL;
    write_text("model.yaml", text);
    must(psld_model_create("model.yaml", &options, 0, &model));
    psld_mode mode = psld_recipe_get(psld_model_recipe(model))->mode;
    psld_model_free(model);
    return mode;
}

#define OURS "process: cld\nmodel: {name: mlp, nf: 8, num_res_blocks: 1}\ndata: {channels: 2}\n"
#define THEIRS                                                                                               \
    "diffusion:\n  data: {image_size: 8, num_channels: 3}\n"                                                 \
    "  model:\n    score_fn: {name: ncsnpp, nf: 8, ch_mult: [1], num_res_blocks: 1, in_ch: 6, out_ch: %d}\n" \
    "    sde: {name: psld, gamma: %s, nu: %s, decomp_mode: %s, beta_min: 8, beta_max: 8, kappa: 0.04}\n"     \
    "  training: {mode: %s}\n"

static void models_carry_the_kernel_of_their_loss(void **state)
{
    (void)state;
    char text[1024];
    assert_int_equal(mode_of(OURS, NULL), PSLD_HSM);
    assert_int_equal(mode_of(OURS "train: {loss: hsm}\n", NULL), PSLD_HSM);
    assert_int_equal(mode_of(OURS "train: {loss: dsm}\n", NULL), PSLD_DSM);
    assert_int_equal(mode_of(OURS, "train.loss=dsm"), PSLD_DSM);
    assert_int_equal(mode_of(OURS "train: {loss: dsm}\n", "process=vp"), PSLD_HSM); /* one variable: the same */
    assert_int_equal(mode_of(OURS "train: {loss: dsm}\n", "model.predicts=data"), PSLD_HSM); /* x_0 is x_0 */
    snprintf(text, sizeof text, THEIRS, 6, "0.25", "4.25", "lower", "dsm");
    assert_int_equal(mode_of(text, NULL), PSLD_DSM);
    assert_int_equal(mode_of(text, "train.loss=hsm"), PSLD_HSM);
    snprintf(text, sizeof text, THEIRS, 6, "0.25", "4.25", "lower", "hsm");
    assert_int_equal(mode_of(text, NULL), PSLD_HSM);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    psld_model *model;
    psld_recipe *recipe;
    write_text("model.yaml", "process: cld kernel=dsm\nmodel: {name: mlp}\ndata: {channels: 2}\ntrain: {loss: hsm}\n");
    assert_int_equal(psld_model_create("model.yaml", NULL, 0, &model), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "train.loss"));
    assert_non_null(strstr(psld_error_text(), "kernel: dsm"));
    assert_int_equal(psld_recipe_open("cld kernel=both", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "expected hsm or dsm, found \"both\""));
    assert_int_equal(psld_recipe_open("cld factor=diagonal", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "expected lower, upper or natural, found \"diagonal\""));
}

/* The originals' lower factor is so in the order x, m: with nu = 0 their networks have both eps. */
static void published_orders(void **state)
{
    (void)state;
    static const struct {
        int out;
        const char *gamma, *nu, *mode;
        int first, predicted; /* of the order */
    } rows[] = {{6, "4", "0", "lower", 0, 2},       {3, "4", "0", "lower", 1, 1}, {3, "4", "0", "upper", 1, 1},
                {6, "0.25", "4.25", "upper", 1, 2}, {3, "0", "4", "lower", 0, 1}, {6, "0", "4", "upper", 1, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char text[1024];
        psld_model *model;
        int order[PSLD_MAX_K];
        snprintf(text, sizeof text, THEIRS, rows[r].out, rows[r].gamma, rows[r].nu, rows[r].mode, "hsm");
        write_text("model.yaml", text);
        must(psld_model_create("model.yaml", NULL, 0, &model));
        assert_int_equal(psld_recipe_order(psld_model_recipe(model), order), rows[r].predicted);
        assert_int_equal(order[0], rows[r].first);
        psld_model_free(model);
    }
}

/* ---- Differences in words ---------------------------------------------------------------------------------------- */

static void differences_are_named(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"psld gamma=0.01", "psld gamma=0.02", "gamma is 0.01, not 0.02"},
        {"psld gamma=0.01 nu=4", "psld gamma=0.01", "nu is 4, not 4.01"},
        {"psld m_inv=5", "psld", "m_inv is 5, not 4"},
        {"psld init=0.1", "psld", "init is 0.1, not 0.04"},
        {"psld beta=4", "psld", "beta is 4, not 8"},
        {"vp beta=[0.1, 20.0001]", "vp", "beta_max is 20.0001, not 20"},
        {"vp beta=[0.1, 20.0000001]", "vp", "beta_max is 20.0000001, not 20"},
        {"told init=[0.04, 0.1]", "told", "init[1] is 0.1, not 0.04"},
        {"psld stabiliser=0", "psld", "stabiliser is 0, not 1e-09"},
        {"psld kernel=dsm", "psld", "kernel (the loss of training) is dsm, not hsm"},
        {"psld factor=upper", "psld", "factor is upper, not lower"},
        {"vp", "psld", "k, the number of variables, is 1, not 2"},
        {"psld", "psld-afhqv2", ""},
        {"psld", "psld factor=natural", ""},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        psld_recipe *a = open_recipe(rows[r][0], ""), *b = open_recipe(rows[r][1], "");
        char text[128];
        psld_recipe_difference(a, b, text, sizeof text);
        assert_string_equal(text, rows[r][2]);
        assert_int_equal(psld_recipe_same_eps(a, b), !*text);
        psld_recipe_free(a);
        psld_recipe_free(b);
    }
}

/* ---- Steps of the original code ---------------------------------------------------------------------------------- */

#define GOLDEN_TOLERANCE 2e-6 /* of the largest number: networks are in float32 */

/* z0 -> euler2: Euler steps of the probability flow along t = 1, 0.7, 0.2. */
static void check_euler(const char *folder, const psld_array *z0, const psld_array *expected)
{
    char weights[GOLDEN_PATH], config[GOLDEN_PATH];
    psld_model *model;
    psld_model_options how = PSLD_MODEL_DEFAULTS;
    psld_sample_options options = em_options();
    options = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    golden_weights(folder, weights);
    golden_path(folder, "config.yaml", config);
    how.config = config;
    must(psld_model_open(weights, &how, &model));
    options.sampler = "euler-ode";
    options.grid = "1,0.7,0.2";
    options.denoise = 0;
    double *z = malloc(z0->count * sizeof *z);
    size_t k = (size_t)psld_recipe_get(psld_model_recipe(model))->k;
    must(psld_sample(psld_model_recipe(model), psld_model_source(model), &options, 0, z0->shape[0],
                     z0->count / z0->shape[0] / k, z0->data, z, NULL));
    golden_report(folder, "two Euler steps of the flow", difference(z0->count, z, expected->data), GOLDEN_TOLERANCE);
    free(z);
    psld_model_free(model);
}

static void golden_steps(void **state)
{
    (void)state;
    const golden_list *list = golden_find("euler2.npy");
    for (size_t i = 0; i < list->count; i++) {
        psld_array *z0 = golden_array(list->folders[i], "z0.npy", PSLD_F64),
                   *end = golden_array(list->folders[i], "euler2.npy", PSLD_F64);
        check_euler(list->folders[i], z0, end);
        psld_array_free(z0);
        psld_array_free(end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_come_in_the_natural_order),
        cmocka_unit_test(the_score_does_not_depend_on_what_eps_means),
        cmocka_unit_test(an_ideal_network_has_the_exact_law),
        cmocka_unit_test(the_corrector_keeps_the_law),
        cmocka_unit_test(targets_come_in_the_order_of_channels),
        cmocka_unit_test(models_carry_the_kernel_of_their_loss),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(published_orders),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(golden_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
