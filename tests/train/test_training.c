/* Training runs: losses against direct formulas, resuming bit for bit, configurations, broken checkpoints, full disks. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "io/yaml/yaml.h"
#include "train/checkpoint.h"
#include "train/perturb.h"
#include "train/training.h"

/* ---- Noise ------------------------------------------------------------------------------------------------------- */

static const char *const recipe_lines[] = {"vp", "cld", "psld gamma=0.02", "psld gamma=0.25 factor=upper", "told"};
enum { RECIPES = sizeof recipe_lines / sizeof *recipe_lines, DIM = 700, SAMPLES = 3 };

/* z_t and eps by the public functions of recipes, number by number. */
static void check_sample(const psld_recipe *recipe, const psld_perturbation *how, uint64_t sample, const float *x,
                         const float *z, const float *eps, double t)
{
    int k = psld_recipe_get(recipe)->k, variable[PSLD_MAX_K], noisy = psld_recipe_predicted(recipe, variable);
    double mean[64], factor[64], u, *noise = malloc((size_t)k * DIM * sizeof *noise),
                                    *start = calloc((size_t)k * DIM, sizeof *start);
    psld_random_uniform(how->seed, PSLD_FOR_TIME, sample, 0, 0, 1, &u);
    assert_true(t == how->t_min + (1 - how->t_min) * u);
    assert_int_equal(psld_recipe_kernel(recipe, t, how->mode, mean, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_recipe_factor(recipe, t, how->mode, factor, NULL), PSLD_OK);
    psld_random_normal(how->seed, PSLD_FOR_NOISE, sample, 0, 0, (size_t)k * DIM, noise);
    if (how->mode == PSLD_DSM) psld_random_normal(how->seed, PSLD_FOR_MOMENTUM, sample, 0, 0, (size_t)k * DIM, start);
    for (int b = 0; b < k; b++)
        for (int j = 0; j < DIM; j++) {
            const psld_recipe_spec *s = psld_recipe_get(recipe);
            start[b * DIM + j] = b ? start[b * DIM + j] * sqrt(s->init[b - 1] * s->mass[b - 1]) : (double)x[j];
        }
    for (int a = 0; a < k; a++)
        for (int j = 0; j < DIM; j++) {
            double sum = 0;
            for (int b = 0; b < k; b++)
                sum += mean[a * k + b] * start[b * DIM + j] + factor[a * k + b] * noise[b * DIM + j];
            assert_true(fabs(sum - (double)z[a * DIM + j]) <= 1e-6 * (1 + fabs(sum)));
        }
    for (int i = 0; i < noisy; i++)
        for (int j = 0; j < DIM; j++) assert_true(eps[i * DIM + j] == (float)noise[variable[i] * DIM + j]);
    free(noise);
    free(start);
}

/* e' M e against (s - s*)' 2 beta D (s - s*), s = -L^-T eps, for the errors e of some eps. */
static void check_metric(const psld_recipe *recipe, psld_mode mode, double t, const float *metric)
{
    const psld_recipe_spec *s = psld_recipe_get(recipe);
    int k = s->k, variable[PSLD_MAX_K], noisy = psld_recipe_predicted(recipe, variable);
    double inverse[64], e[PSLD_MAX_K] = {0}, score[PSLD_MAX_K] = {0}, direct = 0, found = 0;
    assert_int_equal(psld_recipe_factor(recipe, t, mode, NULL, inverse), PSLD_OK);
    for (int i = 0; i < noisy; i++) e[variable[i]] = sin(3.0 * i + 1);
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) score[a] -= inverse[b * k + a] * e[b];
    double beta = s->beta_min + (s->beta_max - s->beta_min) * t;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) direct += 2 * beta * score[a] * s->D[a * k + b] * score[b];
    for (int i = 0; i < noisy; i++)
        for (int j = 0; j < noisy; j++) found += (double)metric[i * noisy + j] * e[variable[i]] * e[variable[j]];
    if (!(fabs(found - direct) <= 1e-5 * direct)) fail_msg("%s at %g: %g, not %g", s->name, t, found, direct);
}

static void noise_and_metric(void **state)
{
    (void)state;
    for (int r = 0; r < RECIPES * 2; r++) {
        psld_recipe *recipe;
        assert_int_equal(psld_recipe_open(recipe_lines[r / 2], &recipe), PSLD_OK);
        size_t k = (size_t)recipe->spec.k, noisy = (size_t)recipe->predicted;
        psld_perturbation how = {.recipe = recipe,
                                 .mode = r % 2 ? PSLD_DSM : PSLD_HSM,
                                 .dim = DIM,
                                 .t_min = 1e-3,
                                 .weighting = PSLD_WEIGH_LIKELIHOOD,
                                 .seed = 5};
        float *x = malloc(SAMPLES * DIM * sizeof *x), *z = malloc(SAMPLES * k * DIM * sizeof *z),
              *eps = malloc(SAMPLES * noisy * DIM * sizeof *eps), metric[SAMPLES * 64], time[SAMPLES];
        double t[SAMPLES];
        for (int i = 0; i < SAMPLES * DIM; i++) x[i] = (float)cos(i);
        psld_microbatch batch = {.x = x, .z = z, .target = eps, .metric = metric, .time = time, .t = t};
        batch.first = 40, batch.n = SAMPLES;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        for (size_t i = 0; i < SAMPLES; i++) {
            check_sample(recipe, &how, 40 + i, x + i * DIM, z + i * k * DIM, eps + i * noisy * DIM, t[i]);
            check_metric(recipe, how.mode, t[i], metric + i * noisy * noisy);
        }
        free(x), free(z), free(eps);
        psld_recipe_free(recipe);
    }
}

/* weighting: data. 1 + (2 min(sigma, 2.5))^2 on the diagonal, sigma = 1 / |L^-1 mean e_1| by the kernel's factor. */
static void weights_of_data(void **state)
{
    (void)state;
    for (int r = 0; r < RECIPES; r++) {
        psld_recipe *recipe;
        assert_int_equal(psld_recipe_open(recipe_lines[r], &recipe), PSLD_OK);
        int k = recipe->spec.k, noisy = recipe->predicted;
        static float x[SAMPLES], z[SAMPLES * PSLD_MAX_K], metric[SAMPLES * 64], time[SAMPLES];
        double t[SAMPLES], mean[64], inverse[64];
        psld_perturbation how = {
            .recipe = recipe, .mode = PSLD_HSM, .dim = 1, .t_min = 1e-2, .weighting = PSLD_WEIGH_DATA, .seed = 5};
        psld_microbatch batch = {.x = x, .z = z, .metric = metric, .time = time, .t = t};
        batch.first = 0, batch.n = SAMPLES;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        for (int i = 0; i < SAMPLES; i++) {
            double square = 0;
            assert_int_equal(psld_recipe_kernel(recipe, t[i], PSLD_HSM, mean, NULL, NULL), PSLD_OK);
            assert_int_equal(psld_recipe_factor(recipe, t[i], PSLD_HSM, NULL, inverse), PSLD_OK);
            for (int a = 0; a < k; a++) {
                double sum = 0;
                for (int b = 0; b < k; b++) sum += inverse[a * k + b] * mean[b * k];
                square += sum * sum;
            }
            double sigma = fmin(1 / sqrt(square), 2.5), weight = 1 + 4 * sigma * sigma;
            for (int j = 0; j < noisy * noisy; j++) {
                double expected = j % (noisy + 1) == 0 ? weight : 0;
                if (!(fabs((double)metric[i * noisy * noisy + j] - expected) <= 1e-5 * weight))
                    fail_msg("%s at %g: %g, not %g", recipe_lines[r], t[i], (double)metric[i * noisy * noisy + j],
                             expected);
            }
        }
        psld_recipe_free(recipe);
    }
}

/* weighting: nll with times: noise. Of vp with constant beta M = beta / (1 - exp(-beta t)), whose mean over uniform times
 * in [eps, 1] is log((e^beta - 1) / (e^(beta eps) - 1)) / (1 - eps): so must it be for every law of the times. The rows
 * are plain, mostly by noise, with atoms at t = eps and at t = 1, without a spread. */
static void likelihood_is_a_mean_over_uniform_times(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    static const double rows[][3] = {{0, 1, 1}, {0.5, 1, 1.2}, {0.9, 0.5, 1}, {0.5, 0.1, 1}, {0.5, 30, 1}, {0.5, 1, 0}};
    const double eps = 1e-2, beta = 4, exact = log(expm1(beta) / expm1(beta * eps)) / (1 - eps);
    psld_recipe *recipe;
    assert_int_equal(psld_recipe_open("vp beta=4", &recipe), PSLD_OK);
    float *x = calloc(MANY, sizeof *x), *z = calloc(MANY, sizeof *z), *metric = calloc(MANY, sizeof *metric),
          *time = calloc(MANY, sizeof *time);
    double *t = calloc(MANY, sizeof *t);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        psld_perturbation how = {.recipe = recipe,
                                 .dim = 1,
                                 .t_min = eps,
                                 .by_noise = rows[r][0],
                                 .noise_middle = rows[r][1],
                                 .noise_spread = rows[r][2],
                                 .weighting = PSLD_WEIGH_LIKELIHOOD,
                                 .seed = 8};
        psld_microbatch batch = {.x = x, .z = z, .metric = metric, .time = time, .t = t};
        assert_int_equal(psld_perturbation_tabulate(&how), PSLD_OK);
        batch.first = 0, batch.n = MANY;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        double sum = 0, squares = 0;
        for (int i = 0; i < MANY; i++) {
            sum += (double)metric[i] / MANY;
            squares += (double)metric[i] * (double)metric[i] / MANY;
        }
        double error = sqrt((squares - sum * sum) / MANY);
        printf("times: noise %g about %g: %.4f +- %.4f, exact %.4f\n", rows[r][0], rows[r][1], sum, error, exact);
        if (!(fabs(sum - exact) < 4 * error)) fail_msg("row %zu: %g instead of %g", r, sum, exact);
    }
    free(x), free(z), free(metric), free(time), free(t);
    psld_recipe_free(recipe);
}

/* times: noise. Of the half that goes by noise 0.6827 lie within one deviation of log sigma, of the uniform half what
 * the recipe's own sigma says; four standard deviations of a count. */
static void times_by_noise(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    psld_recipe *recipe;
    static float x[MANY], z[2 * MANY], time[MANY];
    static double t[MANY];
    double low, high;
    size_t within = 0;
    assert_int_equal(psld_recipe_open("psld gamma=0.02", &recipe), PSLD_OK);
    psld_perturbation how = {
        .recipe = recipe, .dim = 1, .t_min = 1e-5, .by_noise = 0.5, .noise_middle = 1, .noise_spread = 1.2, .seed = 5};
    psld_microbatch batch = {.x = x, .z = z, .time = time, .t = t};
    assert_int_equal(psld_perturbation_tabulate(&how), PSLD_OK);
    batch.first = 0, batch.n = MANY;
    assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
    assert_int_equal(psld_recipe_time(recipe, exp(-1.2), &low), PSLD_OK);
    assert_int_equal(psld_recipe_time(recipe, exp(1.2), &high), PSLD_OK);
    for (int i = 0; i < MANY; i++) {
        assert_true(t[i] >= 1e-5 && t[i] <= 1);
        within += t[i] >= low && t[i] <= high;
    }
    double part = 0.5 * 0.6827 + 0.5 * (high - low);
    assert_true(fabs((double)within - part * MANY) < 4 * sqrt(MANY * part * (1 - part)));
    psld_recipe_free(recipe);
}

/* With no spread every time drawn by noise is that of the middle; beyond what the recipe has, the nearest it has. */
static void times_of_one_noise(void **state)
{
    (void)state;
    static const double middles[] = {1e-9, 0.01, 0.5, 3, 40, 1e9};
    psld_recipe *recipe;
    float x = 0, z[2], time;
    double t, expected, least, most;
    assert_int_equal(psld_recipe_open("psld gamma=0.02", &recipe), PSLD_OK);
    psld_perturbation how = {.recipe = recipe, .dim = 1, .t_min = 1e-5, .by_noise = 1};
    psld_microbatch batch = {.x = &x, .z = z, .time = &time, .t = &t};
    assert_int_equal(psld_perturbation_tabulate(&how), PSLD_OK);
    assert_int_equal(psld_recipe_sigma(recipe, how.t_min, &least), PSLD_OK);
    assert_int_equal(psld_recipe_sigma(recipe, 1, &most), PSLD_OK);
    for (size_t i = 0; i < sizeof middles / sizeof *middles; i++) {
        how.noise_middle = middles[i];
        batch.first = i, batch.n = 1;
        assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
        assert_int_equal(psld_recipe_time(recipe, fmin(fmax(middles[i], least), most), &expected), PSLD_OK);
        if (!(fabs(t / expected - 1) < 1e-3)) fail_msg("sigma %g: %.9g, not %.9g", middles[i], t, expected);
    }
    psld_recipe_free(recipe);
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static const char small_config[] = "process: psld gamma=0.25\n"
                                   "data: {path: \"toy:moons\", channels: 2}\n"
                                   "model: {name: mlp, nf: 16, num_res_blocks: 1, dropout: 0.1}\n"
                                   "train: {batch: 24, steps: 12, lr: 1e-2, warmup: 3, ema: 0.9, checkpoint_every: 4,\n"
                                   "  sample_every: 0, evaluate_every: 5, evaluate_count: 32}\n";

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void fresh(const char *folder)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static psld_status open_small(const char *folder, const char *const *overrides, size_t count, psld_training **training)
{
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    write_text("small.yaml", small_config);
    options.config = "small.yaml";
    options.overrides = overrides;
    options.override_count = (int)count;
    return psld_training_open(folder, &options, training);
}

/* Takes steps up to `last`; the losses go to `losses` by the number of their step, unless it is NULL. */
static void run_until(const char *folder, const char *const *overrides, size_t count, uint64_t last, double *losses)
{
    psld_training *training;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    if (open_small(folder, overrides, count, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
    while (psld_training_steps(training) < last) {
        if (psld_training_step(training, &report) != PSLD_OK) fail_msg("%s", psld_error_text());
        if (losses) losses[report.step - 1] = report.loss;
    }
    psld_training_free(training);
}

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

static void expect_same_file(const char *a, const char *b)
{
    size_t n, m;
    char *left = read_all(a, &n), *right = read_all(b, &m);
    if (n != m || memcmp(left, right, n) != 0) fail_msg("%s and %s differ", a, b);
    free(left), free(right);
}

/* A run that is dropped at every step in turn, at steps that have a checkpoint and at others, against one that is not.
 * Settings: plain; in pieces; with decay, L1, DSM; the likelihood weighting of a recipe with two predicted variables. */
static void resume_bit_for_bit(void **state)
{
    (void)state;
    static const char *const settings[][4] = {
        {"seed=1", "seed=1", "seed=1", "seed=1"},
        {"train.accumulate=5", "train.schedule=cosine", "seed=2", "train.ema=0"},
        {"train.loss=dsm", "train.norm=l1", "train.optimizer=adamw", "train.weight_decay=0.1"},
        {"train.weighting=nll", "train.reduce=sum", "train.clip=0.1", "process=told"},
    };
    for (int c = 0; c < 4; c++) {
        fresh("whole");
        fresh("cut");
        run_until("whole", settings[c], 4, 12, NULL);
        for (uint64_t at = 1; at <= 12; at++) run_until("cut", settings[c], 4, at, NULL);
        expect_same_file("whole/model.safetensors", "cut/model.safetensors");
        expect_same_file("whole/checkpoints/step-000000012.safetensors", "cut/checkpoints/step-000000012.safetensors");
        expect_same_file("whole/config.yaml", "cut/config.yaml");
    }
}

/* The average of step k, from 0, decays by min(ema, (1 + k) / (10 + k)), or without warm-up by ema. */
static void average_warms_up(void **state)
{
    (void)state;
    for (int warm = 0; warm < 2; warm++) {
        const char *overrides[] = {"train.ema=0.6", warm ? "train.ema_warmup=true" : "train.ema_warmup=false"};
        psld_training *training;
        psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
        if (open_small(NULL, overrides, 2, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
        size_t count = training->network->graph->parameter_elements;
        const float *weights = training->network->weights, *average = training->model->network->weights;
        double *expected = malloc(count * sizeof *expected);
        for (size_t i = 0; i < count; i++) expected[i] = (double)weights[i];
        for (int k = 0; k < 12; k++) {
            double decay = warm ? fmin(0.6, (1.0 + k) / (10.0 + k)) : 0.6;
            assert_int_equal(psld_training_step(training, &report), PSLD_OK);
            for (size_t i = 0; i < count; i++) {
                expected[i] = decay * expected[i] + (1 - decay) * (double)weights[i];
                assert_true(fabs(expected[i] - (double)average[i]) <= 1e-6);
            }
        }
        free(expected);
        psld_training_free(training);
    }
}

/* The averaged weights: models differ in the order of the keys of their configurations. */
static void expect_same_weights(const char *a, const char *b)
{
    psld_training *left, *right;
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    assert_int_equal(psld_training_open(a, &options, &left), PSLD_OK);
    assert_int_equal(psld_training_open(b, &options, &right), PSLD_OK);
    assert_int_equal(psld_training_steps(left), psld_training_steps(right));
    assert_memory_equal(left->model->network->weights, right->model->network->weights,
                        left->network->graph->parameter_elements * sizeof(float));
    psld_training_free(left);
    psld_training_free(right);
}

/* Takes the line of a key out of a run's configuration, as if an earlier version had written it. */
static void forget_key(const char *path, const char *key)
{
    size_t size;
    char *text = read_all(path, &size), *at = strstr(text, key), *end = at ? strchr(at, '\n') : NULL;
    if (!end) fail_msg("%s has no %s", path, key);
    while (at > text && at[-1] == ' ') at--;
    memmove(at, end + 1, strlen(end));
    write_text(path, text);
    free(text);
}

/* A run whose configuration does not have the key has no warm-up, whether the command has a configuration or not. */
static void runs_without_warmup(void **state)
{
    (void)state;
    static const char *const constant[] = {"train.ema_warmup=false", "data.held_out=0.01"};
    static const char *const other[] = {"train.ema_warmup=true"};
    psld_training *training;
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    fresh("whole");
    fresh("cut");
    run_until("whole", constant, 2, 12, NULL);
    run_until("cut", constant, 2, 4, NULL);
    forget_key("cut/config.yaml", "ema_warmup:");
    run_until("cut", NULL, 0, 8, NULL);
    forget_key("cut/config.yaml", "ema_warmup:");
    assert_int_equal(open_small("cut", other, 1, &training), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "train.ema_warmup is false there and true now"));
    if (psld_training_open("cut", &options, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_training_run(training, NULL, NULL), PSLD_OK);
    psld_training_free(training);
    expect_same_weights("whole", "cut");
}

/* Of several averages all are kept and go on bit for bit; each is that of a run that keeps it alone. */
static void several_averages(void **state)
{
    (void)state;
    static const char *const several[] = {"train.ema=[0.9, 0.5, 0.99]"};
    static const char *const alone[] = {"train.ema=0.9", "train.ema=0.5", "train.ema=0.99"};
    static const double decays[] = {0.9, 0.5, 0.99};
    fresh("whole");
    fresh("cut");
    run_until("whole", several, 1, 12, NULL);
    for (uint64_t at = 1; at <= 12; at += 3) run_until("cut", several, 1, at, NULL);
    run_until("cut", several, 1, 12, NULL);
    expect_same_file("whole/checkpoints/step-000000012.safetensors", "cut/checkpoints/step-000000012.safetensors");
    for (int i = 0; i < 3; i++) {
        psld_model *left, *right;
        psld_model_options options = PSLD_MODEL_DEFAULTS;
        fresh("one");
        run_until("one", &alone[i], 1, 12, NULL);
        assert_int_equal(psld_model_open("one", NULL, &right), PSLD_OK);
        options.ema = decays[i];
        if (psld_model_open("cut", &options, &left) != PSLD_OK) fail_msg("%s", psld_error_text());
        for (size_t p = 0; p < left->network->graph->parameter_count; p++)
            for (size_t j = 0; j < left->network->graph->parameters[p].count; j++)
                if (!(fabsf(left->network->at[p][j] - right->network->at[p][j]) <= 1e-6f)) /* another order of terms */
                    fail_msg("average %g: %g, not %g", decays[i], (double)left->network->at[p][j],
                             (double)right->network->at[p][j]);
        psld_model_free(left);
        psld_model_free(right);
    }
}

/* Which averages can be asked for, and what is no list of them. */
static void averages_that_are_not_there(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"train.ema=[]", "a list of 1 to 8"},
        {"train.ema=[0.9, 0]", "above 0"},
        {"train.ema=[0.9, 0.99, 0.9]", "expected different numbers, found 0.9 twice"},
        {"train.ema=[0.9, 2]", "from 0 to"}};
    static const char *const several[] = {"train.ema=[0.9, 0.5]"};
    psld_training *training;
    psld_model *model;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(open_small(NULL, wrong[i], 1, &training), PSLD_BAD_INPUT);
        if (!strstr(psld_error_text(), wrong[i][1])) fail_msg("%s: %s", wrong[i][0], psld_error_text());
    }
    fresh("cut");
    run_until("cut", several, 1, 4, NULL);
    options.ema = 0.7;
    assert_int_equal(psld_model_open("cut", &options, &model), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "train.ema has no average of decay 0.7"));
    options.ema = 0.5;
    assert_int_equal(psld_model_open("cut/model.safetensors", &options, &model), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "the checkpoints of its run have all of them"));
    options.raw = 1;
    assert_int_equal(psld_model_open("cut", &options, &model), PSLD_BAD_ARGUMENT);
    options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    options.ema = 0.9;
    assert_int_equal(psld_model_open("cut/model.safetensors", &options, &model), PSLD_OK);
    psld_model_free(model);
}

/* How many items are held out: by default 1 %, 64 of small sets, 5 % of the smallest; a number means what it says. */
static void held_out_parts(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        size_t items;
        uint64_t held;
    } rows[] = {{"auto", 1, 0},     {"auto", 30, 2},    {"auto", 1300, 64}, {"auto", 6400, 64},
                {"auto", 6401, 65}, {"0.01", 1300, 13}, {"0", 1300, 0},     {"0.5", 30, 15}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_training *training;
        size_t shape[] = {rows[i].items, 2};
        char part[64];
        snprintf(part, sizeof part, "data.held_out=%s", rows[i].part);
        const char *overrides[] = {"data.path=items.npy", part};
        psld_array *array;
        assert_int_equal(psld_array_create(PSLD_F32, 2, shape, &array), PSLD_OK);
        assert_int_equal(psld_array_save(array, "items.npy"), PSLD_OK);
        psld_array_free(array);
        if (open_small(NULL, overrides, 2, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
        if (training->item_count[PSLD_PHASE_HELD_OUT] != rows[i].held)
            fail_msg("%s of %zu: %llu held out, not %llu", rows[i].part, rows[i].items,
                     (unsigned long long)training->item_count[PSLD_PHASE_HELD_OUT], (unsigned long long)rows[i].held);
        psld_training_free(training);
    }
}

/* Few held-out samples are measured in every bin of t, each time at the same times with the same noise. */
static void held_out_in_every_bin(void **state)
{
    (void)state;
    static const char *const laws[][2] = {{"train.times=uniform", "train.evaluate_count=3"},
                                          {"train.times=noise", "train.evaluate_count=3"},
                                          {"train.eps=0.25", "train.evaluate_count=3"}};
    for (int l = 0; l < 3; l++) {
        psld_training *training;
        psld_bins first = {0}, again = {0};
        psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
        double all = 0;
        if (open_small(NULL, laws[l], 2, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
        assert_int_equal(psld_training_evaluate(training, &first, &report), PSLD_OK);
        assert_int_equal(psld_training_evaluate(training, &again, &report), PSLD_OK);
        assert_memory_equal(&first, &again, sizeof first);
        for (int b = 0; b < PSLD_BINS; b++) {
            double share = psld_perturbation_share(&training->perturbation, b);
            assert_true(fabs(first.count[b] - 3 * share) < 1e-9);
            assert_int_equal(share > 0, l < 2 || b >= 2);
            all += share;
        }
        assert_true(fabs(all - 1) < 1e-12);
        psld_training_free(training);
    }
}

/* Times of training fall into bins by the parts that weigh the means of held-out data; four standard deviations. */
static void shares_of_bins(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    static float x[MANY], z[2 * MANY], time[MANY];
    static double t[MANY];
    psld_recipe *recipe;
    assert_int_equal(psld_recipe_open("psld gamma=0.02", &recipe), PSLD_OK);
    psld_perturbation how = {
        .recipe = recipe, .dim = 1, .t_min = 1e-5, .by_noise = 0.7, .noise_middle = 0.5, .noise_spread = 1, .seed = 5};
    psld_microbatch batch = {.x = x, .z = z, .time = time, .t = t};
    double found[PSLD_BINS] = {0};
    assert_int_equal(psld_perturbation_tabulate(&how), PSLD_OK);
    batch.first = 0, batch.n = MANY;
    assert_int_equal(psld_perturb(&how, PSLD_PHASE_TRAIN, &batch), PSLD_OK);
    for (int i = 0; i < MANY; i++) found[(int)fmin(t[i] * PSLD_BINS, PSLD_BINS - 1)]++;
    for (int b = 0; b < PSLD_BINS; b++) {
        double share = psld_perturbation_share(&how, b);
        assert_true(fabs(found[b] - MANY * share) < 4 * sqrt(MANY * share * (1 - share)));
        batch.first = 0, batch.n = 100;
        assert_int_equal(psld_perturb(&how, (psld_phase)(PSLD_PHASE_HELD_OUT + b), &batch), PSLD_OK);
        for (int i = 0; i < 100; i++) assert_true(t[i] * PSLD_BINS >= b && t[i] * PSLD_BINS <= b + 1);
    }
    psld_recipe_free(recipe);
}

/* ---- A metric while training ------------------------------------------------------------------------------------- */

static struct {
    const double *distances;
    int open, refers, measured;
    size_t samples, items;
} told;

static psld_status told_open(const char *weights, int rank, void **state)
{
    assert_string_equal(weights, "w");
    assert_int_equal(rank, 1);
    *state = &told;
    told.open++;
    return PSLD_OK;
}

static psld_status told_refer(void *state, const psld_array *data)
{
    assert_ptr_equal(state, &told);
    told.refers++;
    told.items = data->shape[0];
    return PSLD_OK;
}

static psld_status told_measure(void *state, const psld_array *samples, double *distance)
{
    assert_ptr_equal(state, &told);
    told.samples = samples->shape[0];
    *distance = told.distances[told.measured++];
    return PSLD_OK;
}

static void told_close(void *state)
{
    assert_ptr_equal(state, &told);
    told.open--;
}

static const psld_training_metric told_metric = {sizeof told_metric, told_open, told_refer, told_measure, told_close};

static void run_with_metric(const char *folder, uint64_t last)
{
    static const char *const overrides[] = {"train.metric_every=2", "train.metric_count=7", "train.metric_weights=w",
                                            "train.sample_nfe=2"};
    psld_training *training;
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    write_text("small.yaml", small_config);
    options.config = "small.yaml";
    options.overrides = overrides;
    options.override_count = 4;
    options.metric = &told_metric;
    if (psld_training_open(folder, &options, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
    while (psld_training_steps(training) < last) {
        assert_int_equal(psld_training_step(training, &report), PSLD_OK);
        assert_int_equal(isnan(report.metric), report.step % 2 == 1);
    }
    psld_training_free(training);
}

/* The model with the smallest distance is kept, also when the run was stopped between two measurements. */
static void best_model(void **state)
{
    (void)state;
    static const double distances[] = {5, 3, 4, 3.5, 7, 6};
    fresh("cut");
    fresh("four");
    told.distances = distances;
    run_with_metric("cut", 4);
    assert_true(told.measured == 2 && told.refers == 1 && told.samples == 7 && told.items == 7 && told.open == 0);
    run_with_metric("cut", 12);
    assert_int_equal(told.measured, 6);
    assert_int_equal(told.open, 0);
    told.measured = 0;
    run_with_metric("four", 4);
    expect_same_file("cut/best.safetensors", "four/model.safetensors");
    psld_training *training;
    static const char *const wanted[] = {"train.metric_every=2"};
    assert_int_equal(open_small(NULL, wanted, 1, &training), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "train.metric_every: expected 0"));
}

/* Schedules at the end of warm-up, in the middle and at the end of 100 steps. */
static void schedules(void **state)
{
    (void)state;
    static const struct {
        psld_rate_schedule schedule;
        double middle, end;
    } rows[] = {
        {PSLD_SCHEDULE_CONSTANT, 1, 1},
        {PSLD_SCHEDULE_COSINE, 0.5, 0},
        {PSLD_SCHEDULE_LINEAR, 0.5, 0},
        {PSLD_SCHEDULE_INVERSE_SQRT, 0.6030226891555273, 0.4472135954999579}}; /* sqrt(20 / 55), sqrt(20 / 100) */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_trainer_options o = {.rate = 2, .warmup = 20, .total = 100, .schedule = rows[i].schedule};
        long middle = rows[i].schedule == PSLD_SCHEDULE_INVERSE_SQRT ? 55 : 60;
        assert_true(psld_trainer_rate(&o, 0) == 0 && psld_trainer_rate(&o, 10) == 1 && psld_trainer_rate(&o, 20) == 2);
        assert_true(fabs(psld_trainer_rate(&o, middle) - 2 * rows[i].middle) < 1e-12);
        assert_true(fabs(psld_trainer_rate(&o, 100) - 2 * rows[i].end) < 1e-12);
    }
    static const char *const without[] = {"train.schedule=inverse_sqrt", "train.warmup=0"};
    psld_training *training;
    assert_int_equal(open_small(NULL, without, 2, &training), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "train.warmup: expected more than 0"));
}

/* Raw and averaged weights are measured on the same data; without an average there is nothing to tell apart. */
static void raw_weights_beside_averaged(void **state)
{
    (void)state;
    static const char *const lazy[] = {"train.ema=0.999", "train.ema_warmup=false"}, *const none[] = {"train.ema=0"};
    for (int averaged = 0; averaged < 2; averaged++) {
        size_t size;
        fresh("raw");
        run_until("raw", averaged ? lazy : none, averaged ? 2 : 1, 12, NULL);
        char *text = read_all("raw/log.jsonl", &size), *last = strstr(text, "{\"step\": 12");
        json_t *line = json_loads(last, 0, NULL), *raw = json_object_get(line, "held_out_raw");
        assert_true(json_is_number(json_object_get(line, "held_out")));
        assert_int_equal(json_is_number(raw), averaged);
        if (averaged) assert_true(json_number_value(raw) < json_number_value(json_object_get(line, "held_out")));
        json_decref(line);
        free(text);
    }
}

/* Each step once, in order, whatever was dropped in between. */
static void log_has_every_step_once(void **state)
{
    (void)state;
    size_t size;
    fresh("cut");
    for (uint64_t at = 1; at <= 12; at += 3) run_until("cut", NULL, 0, at, NULL);
    FILE *file = fopen("cut/log.jsonl", "a");
    fputs("{\"step\": 11, \"lo", file); /* what a crash may leave */
    fclose(file);
    run_until("cut", NULL, 0, 12, NULL);
    char *text = read_all("cut/log.jsonl", &size), *line = text;
    for (int step = 1; step <= 12; step++) {
        char expected[32];
        snprintf(expected, sizeof expected, "{\"step\": %d, \"loss\": ", step);
        if (strncmp(line, expected, strlen(expected)) != 0) fail_msg("line %d of the log: %.60s", step, line);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(*line, 0);
    assert_non_null(strstr(text, "\"held_out\": "));
    assert_non_null(strstr(text, "\"loss_by_t\": ["));
    free(text);
}

/* Pieces change nothing but rounding. */
static void pieces_add_up(void **state)
{
    (void)state;
    const char *five[] = {"train.accumulate=5"};
    double whole[12], parts[12];
    run_until(NULL, NULL, 0, 12, whole);
    run_until(NULL, five, 1, 12, parts);
    for (int i = 0; i < 12; i++)
        if (!(fabs(parts[i] / whole[i] - 1) < 1e-4))
            fail_msg("step %d: %.9g in pieces, %.9g at once", i + 1, parts[i], whole[i]);
}

/* ---- What goes wrong --------------------------------------------------------------------------------------------- */

static void expect_refusal(const char *folder, const char *override, const char *words)
{
    psld_training *training;
    assert_int_not_equal(open_small(folder, &override, 1, &training), PSLD_OK);
    assert_null(training);
    if (!strstr(psld_error_text(), words)) fail_msg("%s: expected \"%s\" in: %s", override, words, psld_error_text());
}

static void configurations(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"train.stepps=3", "unknown key \"stepps\""},
        {"nonsense=3", "unknown key \"nonsense\""},
        {"data.nonsense=3", "unknown key \"nonsense\""},
        {"model.nonsense=3", "unknown key \"nonsense\""},
        {"train.batch=0", "expected a whole number from 1 to"},
        {"train.batch=many", "train.batch"},
        {"train.lr=-1", "expected a number from 0"},
        {"train.loss=mse", "expected hsm, dsm, cross_entropy, consistency or elbo"},
        {"train.loss=cross_entropy", "train.loss: expected hsm, dsm or elbo"},
        {"train.norm=l3", "expected l2 or l1"},
        {"train.accumulate=25", "train.accumulate"},
        {"train.eps=0", "train.eps"},
        {"data.path=\"\"", "data.path is missing"},
        {"data.path=absent", "absent"},
        {"data.channels=3", "gives 2 channels"},
        {"process=nonsense", "nonsense"},
        {"train.init=absent.safetensors", "absent.safetensors"},
        {"data.classes=3", "expected a list of names"},
        {"train.sampler=foo", "train.sampler, train.sample_nfe: sampler: expected one of em"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect_refusal(NULL, wrong[i][0], wrong[i][1]);
}

static void another_configuration(void **state)
{
    (void)state;
    fresh("cut");
    run_until("cut", NULL, 0, 4, NULL);
    expect_refusal("cut", "train.lr=0.5", "train.lr is 1e-2 there and 0.5 now");
    expect_refusal("cut", "model.nf=8", "model.nf");
    expect_refusal("cut", "process=cld", "process");
    const char *allowed[] = {"train.steps=20", "train.keep=1", "train.checkpoint_every=2"};
    run_until("cut", allowed, 3, 6, NULL);
    assert_int_not_equal(access("cut/checkpoints/step-000000004.safetensors", F_OK), 0); /* one is kept */
}

static void one_process_at_a_time(void **state)
{
    (void)state;
    psld_training *first;
    fresh("cut");
    assert_int_equal(open_small("cut", NULL, 0, &first), PSLD_OK);
    expect_refusal("cut", "seed=0", "another process");
    psld_training_free(first);
    run_until("cut", NULL, 0, 1, NULL);
}

static void flip_byte(const char *path, long from_end)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -from_end, SEEK_END);
    int byte = fgetc(file);
    fseek(file, -from_end, SEEK_END);
    fputc(byte ^ 16, file);
    fclose(file);
}

/* A checkpoint with a changed byte, or cut short, is not used: the one before it is, and the end is the same. */
static void broken_checkpoints(void **state)
{
    (void)state;
    fresh("whole");
    run_until("whole", NULL, 0, 12, NULL);
    for (int how = 0; how < 3; how++) {
        fresh("cut");
        run_until("cut", NULL, 0, 8, NULL);
        if (how == 0) flip_byte("cut/checkpoints/step-000000008.safetensors", 1000);
        if (how == 1) assert_int_equal(truncate("cut/checkpoints/step-000000008.safetensors", 500), 0);
        if (how == 2) assert_int_equal(truncate("cut/checkpoints/step-000000008.safetensors", 0), 0);
        run_until("cut", NULL, 0, 12, NULL);
        expect_same_file("whole/model.safetensors", "cut/model.safetensors");
    }
    fresh("cut");
    run_until("cut", NULL, 0, 4, NULL);
    flip_byte("cut/checkpoints/step-000000004.safetensors", 1000);
    expect_refusal("cut", "seed=0", "damaged");
}

static void another_version(void **state)
{
    (void)state;
    size_t size;
    fresh("cut");
    run_until("cut", NULL, 0, 8, NULL);
    char *bytes = read_all("cut/checkpoints/step-000000008.safetensors", &size);
    char *note = NULL;
    for (size_t i = 0; i + 24 < size && !note; i++)
        if (memcmp(bytes + i, "\"psld.checkpoint\":\"1\"", 21) == 0) note = bytes + i;
    assert_non_null(note);
    note[19] = '7';
    FILE *file = fopen("cut/checkpoints/step-000000008.safetensors", "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
    expect_refusal("cut", "seed=0", "format 7");
}

/* No room for the next checkpoint: an error that says so, and the last one is whole. */
static void full_disk(void **state)
{
    (void)state;
    psld_training *training;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    psld_status status = PSLD_OK;
    struct rlimit before, small;
    fresh("cut");
    fresh("whole");
    run_until("whole", NULL, 0, 12, NULL);
    run_until("cut", NULL, 0, 4, NULL);
    assert_int_equal(open_small("cut", NULL, 0, &training), PSLD_OK);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 6000;
    setrlimit(RLIMIT_FSIZE, &small);
    while (status == PSLD_OK && psld_training_steps(training) < 12) status = psld_training_step(training, &report);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, PSLD_IO);
    assert_non_null(strstr(psld_error_text(), "cannot write"));
    psld_training_free(training);
    assert_int_equal(access("cut/checkpoints/step-000000004.safetensors", F_OK), 0);
    run_until("cut", NULL, 0, 12, NULL);
    expect_same_file("whole/model.safetensors", "cut/model.safetensors");
}

static void not_finite(void **state)
{
    (void)state;
    psld_training *training;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    const char *wild[] = {"train.lr=1000",   "train.clip=0",          "train.warmup=0",
                          "train.steps=500", "train.optimizer=adamw", "train.weight_decay=10"};
    psld_status status = PSLD_OK;
    fresh("cut");
    assert_int_equal(open_small("cut", wild, 6, &training), PSLD_OK);
    while (status == PSLD_OK && psld_training_steps(training) < 500) status = psld_training_step(training, &report);
    assert_int_equal(status, PSLD_NOT_FINITE);
    uint64_t steps = psld_training_steps(training);
    psld_training_free(training);
    assert_int_equal(open_small("cut", wild, 6, &training), PSLD_OK); /* from the last good checkpoint */
    assert_true(psld_training_steps(training) <= steps && psld_training_steps(training) % 4 == 0);
    psld_training_free(training);
}

/* ---- What goes into a configuration ------------------------------------------------------------------------------ */

/* The value of a key of cut/config.yaml, `parent` being the part it stands in. */
static void expect_config(const char *parent, const char *key, const char *expected)
{
    psld_yaml *yaml;
    const char *text;
    if (psld_yaml_load("cut/config.yaml", &yaml) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_node_text(psld_node_get(psld_node_get(psld_yaml_root(yaml), parent), key), &text), PSLD_OK);
    assert_string_equal(text, expected);
    psld_yaml_free(yaml);
}

/* A recipe may have any name: it must not end the text that it stands in, nor bring keys along. */
static void names_of_recipes(void **state)
{
    (void)state;
    static const char *const written[][2] = {
        {"'my \"best\"'", "my \"best\""},
        {"'a\", beta: [1, 1], x: \"'", "a\", beta: [1, 1], x: \""},
        {"\"two\\nlines \\\\\"", "two\nlines \\"},
        {"\"...\"", "..."},
    };
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        char recipe[256];
        const char *overrides[] = {"process=q.yaml"};
        snprintf(recipe, sizeof recipe, "{name: %s, D: [[0.5]], Q: [[0]], beta: [0.1, 20]}\n", written[i][0]);
        write_text("q.yaml", recipe);
        fresh("cut");
        run_until("cut", overrides, 1, 1, NULL);
        expect_config("process", "name", written[i][1]);
    }
}

/* Data that are sorted: a sample of them must come from all of them, also where it is more than half. */
static void deviation_of_sorted_data(void **state)
{
    (void)state;
    psld_array *x;
    enum { COUNT = 1600, ONES = 800 };
    const char *overrides[] = {"data.path=sorted.npy", "model.predicts=data"};
    assert_int_equal(psld_array_create(PSLD_F32, 2, (const size_t[]){COUNT, 2}, &x), PSLD_OK);
    for (int i = 0; i < 2 * ONES; i++) ((float *)x->data)[i] = 1;
    assert_int_equal(psld_array_save(x, "sorted.npy"), PSLD_OK);
    psld_array_free(x);
    fresh("cut");
    run_until("cut", overrides, 2, 1, NULL);
    expect_config("model", "data_deviation", "0.707"); /* sqrt(1 / 2) */
}

/* ---- The log of what is not finite ------------------------------------------------------------------------------- */

/* One step with data whose item `wild` is far beyond the others; returns the loss of those held out. */
static double held_out_with(int wild)
{
    enum { COUNT = 64 };
    static const char *const overrides[] = {"data.path=wild.npy", "data.held_out=0.5", "train.evaluate_every=1"};
    psld_array *x;
    psld_training *training;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    assert_int_equal(psld_array_create(PSLD_F32, 2, (const size_t[]){COUNT, 2}, &x), PSLD_OK);
    for (int i = 0; i < 2 * COUNT; i++) ((float *)x->data)[i] = i / 2 == wild ? 1e25F : 1;
    assert_int_equal(psld_array_save(x, "wild.npy"), PSLD_OK);
    psld_array_free(x);
    fresh("cut");
    assert_int_equal(open_small("cut", overrides, 3, &training), PSLD_OK);
    psld_status status = psld_training_step(training, &report);
    psld_training_free(training);
    return status == PSLD_OK ? report.held_out : 0; /* an item to train on, it stops the run instead */
}

/* JSON has no infinity: every line must stay one that others can read. */
static void infinite_loss(void **state)
{
    (void)state;
    int wild = 0;
    while (wild < 64 && !isinf(held_out_with(wild))) wild++;
    assert_int_not_equal(wild, 64);
    size_t size;
    char *log = read_all("cut/log.jsonl", &size);
    json_t *entry = json_loadb(log, size, 0, NULL);
    assert_true(json_is_null(json_object_get(entry, "held_out")));
    assert_true(json_is_real(json_object_get(entry, "loss")));
    json_decref(entry);
    free(log);
}

/* ---- Folders that cannot be read --------------------------------------------------------------------------------- */

/* Only a folder that is not there has no checkpoints: one that cannot be looked into may have many. */
static void unreadable_checkpoints(void **state)
{
    (void)state;
    size_t count = 7;
    long newest = 7;
    fresh("absent");
    assert_int_equal(psld_checkpoint_count("absent", &count, &newest), PSLD_OK);
    assert_true(count == 0 && newest == 0);
    fresh("loop");
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(psld_checkpoint_count("loop", &count, &newest), PSLD_IO);
    assert_non_null(strstr(psld_error_text(), "loop: cannot read"));
    write_text("no-folder", "");
    assert_int_equal(psld_checkpoint_count("no-folder", &count, &newest), PSLD_IO);
}

/* A log that cannot be read to its end is not cut where reading ended. */
static void unreadable_log(void **state)
{
    (void)state;
    psld_run_folder *run;
    fresh("cut");
    assert_int_equal(psld_run_folder_open("cut", &run), PSLD_OK);
    assert_int_equal(symlink("/proc/self/mem", "cut/log.jsonl"), 0);
    assert_int_equal(psld_run_folder_log_from(run, 4), PSLD_IO);
    assert_non_null(strstr(psld_error_text(), "cut/log.jsonl: cannot read"));
    psld_run_folder_close(run);
    fresh("cut");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_and_metric),
        cmocka_unit_test(weights_of_data),
        cmocka_unit_test(times_by_noise),
        cmocka_unit_test(likelihood_is_a_mean_over_uniform_times),
        cmocka_unit_test(times_of_one_noise),
        cmocka_unit_test(resume_bit_for_bit),
        cmocka_unit_test(average_warms_up),
        cmocka_unit_test(runs_without_warmup),
        cmocka_unit_test(several_averages),
        cmocka_unit_test(averages_that_are_not_there),
        cmocka_unit_test(held_out_parts),
        cmocka_unit_test(held_out_in_every_bin),
        cmocka_unit_test(shares_of_bins),
        cmocka_unit_test(best_model),
        cmocka_unit_test(schedules),
        cmocka_unit_test(raw_weights_beside_averaged),
        cmocka_unit_test(log_has_every_step_once),
        cmocka_unit_test(pieces_add_up),
        cmocka_unit_test(configurations),
        cmocka_unit_test(another_configuration),
        cmocka_unit_test(one_process_at_a_time),
        cmocka_unit_test(broken_checkpoints),
        cmocka_unit_test(another_version),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(names_of_recipes),
        cmocka_unit_test(deviation_of_sorted_data),
        cmocka_unit_test(infinite_loss),
        cmocka_unit_test(unreadable_checkpoints),
        cmocka_unit_test(unreadable_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
