/* Calls that are wrong are refused in one line, and what fails without a word gets one. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "psld.h"
#include "psld_eval.h"

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

static psld_mixture *two_points(void)
{
    const double weights[2] = {0.5, 0.5}, means[4] = {-1, 0, 1, 0}, scales[2] = {0.1, 0.1};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 2, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

static psld_source *exact_source(const char *line)
{
    psld_recipe *recipe = open_recipe(line);
    psld_mixture *mixture = two_points();
    psld_source *source;
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    return source;
}

static psld_sample_options few_steps(void)
{
    psld_sample_options options = em_options();
    options.nfe = 4;
    return options;
}

/* The call must have failed with `status` and a line that has all of the words, separated by '|'. */
static void check_refused(psld_status found, psld_status status, const char *words)
{
    char list[256];
    if (found != status) fail_msg("status %d instead of %d: %s", (int)found, (int)status, psld_error_text());
    strncpy(list, words, sizeof list - 1);
    list[sizeof list - 1] = 0;
    for (char *word = strtok(list, "|"); word; word = strtok(NULL, "|"))
        if (!strstr(psld_error_text(), word)) fail_msg("said: %s\nwithout: %s", psld_error_text(), word);
}

/* ---- Sources of other recipes ------------------------------------------------------------------------------------ */

/* Every call that takes a recipe and a source, with a source of a recipe that has other states. */
static void check_other_source(const char *asked, const char *made, const char *words)
{
    enum { SAMPLES = 8, ROOM = SAMPLES * 3 * 2 }; /* for states of any of these recipes */
    psld_recipe *recipe = open_recipe(asked), *other = open_recipe(made);
    psld_source *source = exact_source(made), *own = exact_source(asked), *wrapped = (psld_source *)8;
    psld_sample_options options = few_steps(), upwards = options;
    psld_classifier *classifier;
    psld_mixture *mixture = two_points();
    double z[ROOM] = {0}, x[2 * SAMPLES] = {0}, log_p[SAMPLES], t[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) t[i] = 0.5;
    upwards.sampler = "heun";
    assert_int_equal(psld_classifier_mixture(mixture, recipe, &classifier), PSLD_OK);
    check_refused(psld_sample(recipe, source, &options, 0, SAMPLES, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT, words);
    options.clip = 1;
    check_refused(psld_sample(recipe, source, &options, 0, SAMPLES, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_encode(recipe, source, &upwards, 0, SAMPLES, 2, x, z, NULL), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_likelihood(recipe, source, NULL, 0, SAMPLES, 2, x, log_p, NULL), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_source_denoise(source, recipe, &PSLD_STATES(SAMPLES, 2, z, t), x), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_source_clip(source, recipe, 1, 0, &wrapped), PSLD_BAD_ARGUMENT, words);
    assert_null(wrapped);
    check_refused(psld_source_guide(source, recipe, classifier, 0, 1, &wrapped), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_source_autoguide(own, source, recipe, 2, &wrapped), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_source_autoguide(source, own, recipe, 2, &wrapped), PSLD_BAD_ARGUMENT, words);
    check_refused(psld_source_translate(source, recipe, other, &wrapped), PSLD_BAD_ARGUMENT, words);
    psld_classifier_free(classifier);
    psld_mixture_free(mixture);
    psld_source_free(source);
    psld_source_free(own);
    psld_recipe_free(recipe);
    psld_recipe_free(other);
}

static void sources_of_other_recipes(void **state)
{
    (void)state;
    check_other_source("vp", "psld", "score source|recipe psld with k = 2|recipe vp with k = 1");
    check_other_source("psld", "vp", "recipe vp with k = 1|recipe psld with k = 2");
    check_other_source("cld", "psld", "recipe psld|of 2|recipe cld|1 predicted");
    check_other_source("told", "cld", "recipe cld with k = 2|recipe told with k = 3");
}

static void restoration_with_another_recipe(void **state)
{
    (void)state;
    static const double row[2] = {1, 1};
    const double y = 1;
    psld_recipe *recipe = open_recipe("vp");
    psld_source *source = exact_source("psld"), *restored = (psld_source *)8;
    psld_operator *op;
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    psld_task task = PSLD_TASK_DEFAULTS;
    task.name = "linear";
    task.rank = 1;
    task.shape[0] = 2;
    task.matrix = row;
    task.rows = 1;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_OK);
    check_refused(psld_source_restore(source, recipe, op, &y, &options, &restored), PSLD_BAD_ARGUMENT,
                  "recipe psld|recipe vp");
    assert_null(restored);
    psld_operator_free(op);
    psld_source_free(source);
    psld_recipe_free(recipe);
}

/* Its gradient has the variables of its own recipe. */
static void classifier_of_another_recipe(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("vp"), *other = open_recipe("psld"), *alike = open_recipe("cld");
    psld_source *source = exact_source("vp"), *like = exact_source("cld"), *guided = (psld_source *)8;
    psld_mixture *mixture = two_points();
    psld_classifier *classifier;
    assert_int_equal(psld_classifier_mixture(mixture, other, &classifier), PSLD_OK);
    check_refused(psld_source_guide(source, recipe, classifier, 0, 1, &guided), PSLD_BAD_ARGUMENT,
                  "classifier|recipe psld with k = 2|recipe vp with k = 1");
    assert_null(guided);
    assert_int_equal(psld_source_guide(like, alike, classifier, 0, 1, &guided), PSLD_OK); /* whatever is predicted */
    psld_source_free(guided);
    psld_classifier_free(classifier);
    psld_mixture_free(mixture);
    psld_source_free(source);
    psld_source_free(like);
    psld_recipe_free(recipe);
    psld_recipe_free(other);
    psld_recipe_free(alike);
}

/* ---- Statistics -------------------------------------------------------------------------------------------------- */

static psld_statistics *count_rows(size_t rows, int finish)
{
    const float features[6] = {1, 2, 3, 5, 8, 13};
    psld_statistics *statistics;
    assert_int_equal(psld_statistics_create(2, &statistics), PSLD_OK);
    assert_int_equal(psld_statistics_add(statistics, rows, features), PSLD_OK);
    if (finish) assert_int_equal(psld_statistics_finish(statistics), PSLD_OK);
    return statistics;
}

static void statistics_out_of_order(void **state)
{
    (void)state;
    const float more[2] = {0, 0};
    psld_statistics *finished = count_rows(3, 1), *open = count_rows(3, 0);
    double distance = -1;
    check_refused(psld_frechet_distance(finished, open, &distance), PSLD_BAD_ARGUMENT, "statistics|finished|3 rows");
    check_refused(psld_frechet_distance(open, finished, &distance), PSLD_BAD_ARGUMENT, "statistics|finished");
    assert_true(distance == -1);
    check_refused(psld_statistics_save(open, "open.npz"), PSLD_BAD_ARGUMENT, "statistics|finished");
    assert_null(psld_statistics_mean(open));
    assert_null(psld_statistics_cov(open));
    check_refused(psld_statistics_add(finished, 1, more), PSLD_BAD_ARGUMENT, "statistics: finished|1 more");
    assert_int_equal(psld_statistics_finish(open), PSLD_OK);
    assert_int_equal(psld_frechet_distance(finished, open, &distance), PSLD_OK);
    assert_true(fabs(distance) < 1e-10);
    psld_statistics_free(finished);
    psld_statistics_free(open);
}

/* ---- Callbacks that fail ----------------------------------------------------------------------------------------- */

static psld_status fail_to_predict(void *user, const psld_states *states, double *eps)
{
    (void)eps, (void)states;
    return *(const psld_status *)user;
}

static psld_status fail_with_a_text(void *user, const psld_states *states, double *eps)
{
    (void)user, (void)eps, (void)states;
    psld_array *array;
    return psld_array_load("no-such-file.npy", &array);
}

static psld_status predict_nothing(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    (void)user;
    memset(eps, 0, n * dim * sizeof *eps);
    return PSLD_OK;
}

static psld_status fail_to_differentiate(void *user, const psld_states *states, const double *weight, double *eps,
                                         double *grad_z)
{
    (void)user, (void)weight, (void)eps, (void)grad_z, (void)states;
    return PSLD_NOT_FINITE;
}

static psld_status fail_to_classify(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                    double *grad_z)
{
    (void)user, (void)label, (void)log_p, (void)grad_z, (void)states;
    return PSLD_NO_MEMORY;
}

static psld_status fail_to_watch(void *user, const psld_evaluation *evaluation)
{
    (void)user, (void)evaluation;
    return PSLD_IO;
}

static int stop(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return 1;
}

static psld_status fail_to_take(void *user, uint64_t first, const psld_array *x)
{
    (void)user, (void)first, (void)x;
    return PSLD_CANCELLED;
}

/* Leaves the text of a failure that none of the others may show. */
static void fail_before(void)
{
    psld_recipe *recipe;
    assert_int_equal(psld_recipe_open("stale", &recipe), PSLD_BAD_INPUT);
}

static psld_status sample_with(psld_score_fn predict, void *user, const psld_sample_options *options)
{
    psld_recipe *recipe = open_recipe("vp");
    psld_source *source;
    double z[2];
    assert_int_equal(psld_source_callback(
                         &(psld_callback){.size = sizeof(psld_callback), .predict = predict, .user = user}, &source),
                     PSLD_OK);
    fail_before();
    psld_status status = psld_sample(recipe, source, options, 0, 1, 2, NULL, z, NULL);
    psld_source_free(source);
    psld_recipe_free(recipe);
    return status;
}

static void callbacks_that_fail(void **state)
{
    (void)state;
    psld_sample_options options = few_steps();
    psld_status returned = PSLD_IO;
    check_refused(sample_with(fail_to_predict, &returned, &options), PSLD_IO,
                  "the score callback returned status 4 (input or output)");
    returned = (psld_status)77;
    check_refused(sample_with(fail_to_predict, &returned, &options), (psld_status)77, "score callback|status 77 (");
    check_refused(sample_with(fail_with_a_text, NULL, &options), PSLD_IO, "no-such-file.npy");
    options.watch = fail_to_watch;
    check_refused(sample_with(predict_nothing, NULL, &options), PSLD_IO, "the watch callback returned status 4");
    options = few_steps();
    options.progress = stop;
    check_refused(sample_with(predict_nothing, NULL, &options), PSLD_CANCELLED, "cancelled");
    options = few_steps();
    options.clip = 1; /* the text comes through a wrapper as it is */
    returned = PSLD_IO;
    check_refused(sample_with(fail_to_predict, &returned, &options), PSLD_IO, "the score callback returned status 4");
}

static void gradients_and_classifiers_that_fail(void **state)
{
    (void)state;
    const double z[2] = {0}, t = 0.5, weight[2] = {1, 1};
    const int32_t label = 0;
    double gradient[2];
    psld_source *source;
    psld_classifier *classifier;
    assert_int_equal(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback),
                                                           .predict = predict_nothing,
                                                           .gradient = fail_to_differentiate},
                                          &source),
                     PSLD_OK);
    assert_int_equal(psld_classifier_callback(fail_to_classify, NULL, 2, &classifier), PSLD_OK);
    fail_before();
    check_refused(psld_source_gradient(source, &PSLD_STATES(1, 2, z, &t), weight, NULL, gradient), PSLD_NOT_FINITE,
                  "the gradient callback returned status 6 (not finite)");
    fail_before();
    check_refused(psld_classifier_evaluate(classifier, &PSLD_STATES(1, 2, z, &t), &label, NULL, gradient),
                  PSLD_NO_MEMORY, "the classifier callback returned status 1 (no memory)");
    psld_source_free(source);
    psld_classifier_free(classifier);
}

static psld_model *open_exact_model(void)
{
    static const char yaml[] = "process: vp\nmixture: {weights: [1], means: [[0, 0]], scales: [1]}\n";
    psld_model *model;
    FILE *file = fopen("exact.yaml", "w");
    assert_non_null(file);
    assert_true(fputs(yaml, file) >= 0 && fclose(file) == 0);
    if (psld_model_open("exact.yaml", NULL, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    return model;
}

static void samples_that_are_not_taken(void **state)
{
    (void)state;
    psld_model *model = open_exact_model();
    psld_sample_options options = few_steps();
    fail_before();
    check_refused(psld_model_draw(model, &options, 0, 2, NULL, 0, fail_to_take, NULL, NULL), PSLD_CANCELLED,
                  "the samples callback returned status 5 (cancelled)");
    psld_model_free(model);
}

/* ---- Arguments that are missing or mean nothing ------------------------------------------------------------------ */

static void names_that_are_missing(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("vp");
    psld_source *source = exact_source("vp"), *restored;
    psld_model *model = open_exact_model();
    psld_sample_options options = few_steps();
    psld_restore_options restore = PSLD_RESTORE_DEFAULTS;
    psld_operator *op;
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_array *x;
    double z[2] = {0}, y[2] = {0};
    options.size = 0;
    check_refused(psld_sample(recipe, source, &options, 0, 1, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT,
                  "size|PSLD_SAMPLE_DEFAULTS");
    options.size = sizeof options + 8;
    check_refused(psld_sample_complete(recipe, &options), PSLD_BAD_ARGUMENT, "size|PSLD_SAMPLE_DEFAULTS");
    options.size = sizeof options;
    options.sampler = "";
    check_refused(psld_sample(recipe, source, &options, 0, 1, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT, "sampler|sscs");
    check_refused(psld_encode(recipe, source, &options, 0, 1, 2, y, z, NULL), PSLD_BAD_ARGUMENT, "sampler");
    check_refused(psld_sample_complete(recipe, &options), PSLD_BAD_ARGUMENT, "sampler");
    check_refused(psld_model_sample(model, &options, 0, 1, NULL, 0, &x, NULL), PSLD_BAD_ARGUMENT, "sampler");
    assert_null(psld_sampler_find(NULL));
    check_refused(psld_sample_quality(recipe, NULL, &options), PSLD_BAD_ARGUMENT, "quality|draft");
    task.rank = 1;
    task.shape[0] = 2;
    task.factor = 2;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_OK);
    restore.method = "";
    check_refused(psld_source_restore(source, recipe, op, y, &restore, &restored), PSLD_BAD_ARGUMENT, "method");
    restore.size = 0;
    check_refused(psld_source_restore(source, recipe, op, y, &restore, &restored), PSLD_BAD_ARGUMENT,
                  "size|PSLD_RESTORE_DEFAULTS");
    psld_operator_free(op);
    task.name = "";
    check_refused(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT, "task");
    task.size = sizeof task + 8;
    check_refused(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT, "size|PSLD_TASK_DEFAULTS");
    psld_model_free(model);
    psld_source_free(source);
    psld_recipe_free(recipe);
}

static void callbacks_that_are_missing(void **state)
{
    (void)state;
    psld_source *source = (psld_source *)8;
    psld_classifier *classifier = (psld_classifier *)8;
    psld_model *model = open_exact_model();
    psld_sample_options options = few_steps();
    check_refused(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback)}, &source), PSLD_BAD_ARGUMENT,
                  "callback");
    assert_null(source);
    check_refused(psld_source_callback(
                      &(psld_callback){.size = sizeof(psld_callback), .gradient = fail_to_differentiate}, &source),
                  PSLD_BAD_ARGUMENT, "callback");
    check_refused(psld_classifier_callback(NULL, NULL, 2, &classifier), PSLD_BAD_ARGUMENT, "classifier|callback");
    assert_null(classifier);
    check_refused(psld_model_draw(model, &options, 0, 1, NULL, 0, NULL, NULL, NULL), PSLD_BAD_ARGUMENT, "callback");
    psld_model_free(model);
}

static void inpainting_without_data(void **state)
{
    (void)state;
    const double x[2] = {0};
    const unsigned char known[2] = {1, 0};
    psld_recipe *recipe = open_recipe("vp");
    psld_source *source = exact_source("vp");
    psld_sample_options options = few_steps();
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    double z[2];
    options.inpainting = &inpainting;
    inpainting.known = known;
    check_refused(psld_sample(recipe, source, &options, 0, 1, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT, "inpainting: x");
    inpainting.known = NULL;
    inpainting.x = x;
    check_refused(psld_sample(recipe, source, &options, 0, 1, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT,
                  "inpainting: known");
    psld_source_free(source);
    psld_recipe_free(recipe);
}

static void overrides_that_are_missing(void **state)
{
    (void)state;
    static const char *const holes[2] = {"seed=1", NULL};
    psld_training_options training_options = PSLD_TRAINING_DEFAULTS;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_training *training = (psld_training *)8;
    psld_model *model = (psld_model *)8;
    psld_sweep *sweep = (psld_sweep *)8;
    FILE *file = fopen("net.yaml", "w");
    assert_true(file && fputs("process: vp\nmodel: {type: mlp, in_ch: 2, out_ch: 2}\n", file) >= 0 &&
                fclose(file) == 0);
    options.override_count = 1;
    check_refused(psld_model_create("net.yaml", &options, 0, &model), PSLD_BAD_ARGUMENT, "overrides|NULL at index 0");
    assert_null(model);
    options.override_count = -2;
    check_refused(psld_model_create("net.yaml", &options, 0, &model), PSLD_BAD_ARGUMENT, "override_count|-2");
    assert_null(model);
    training_options.data = "toy:moons";
    training_options.overrides = holes;
    training_options.override_count = 2;
    check_refused(psld_training_open(NULL, &training_options, &training), PSLD_BAD_ARGUMENT,
                  "overrides|NULL at index 1");
    assert_null(training);
    check_refused(psld_sweep_open("net.yaml", NULL, 3, &sweep), PSLD_BAD_ARGUMENT, "overrides|expected 3");
    assert_null(sweep);
}

/* Structs that were not initialised with their macro, or that a later library knows. */
static void refuse_data_structs(size_t size)
{
    psld_data_options data_options = PSLD_DATA_DEFAULTS;
    psld_training_options training_options = PSLD_TRAINING_DEFAULTS;
    psld_run_info run = PSLD_RUN_INFO_EMPTY;
    psld_data *data;
    psld_set *set;
    psld_training *training;
    data_options.size = training_options.size = run.size = size;
    check_refused(psld_data_open("toy:moons", &data_options, &data), PSLD_BAD_ARGUMENT, "size|PSLD_DATA_DEFAULTS");
    check_refused(psld_set_open_as("toy:moons", 0, &data_options, &set), PSLD_BAD_ARGUMENT, "PSLD_DATA_DEFAULTS");
    check_refused(psld_training_open(NULL, &training_options, &training), PSLD_BAD_ARGUMENT, "PSLD_TRAINING_DEFAULTS");
    check_refused(psld_run_inspect("run", &run), PSLD_BAD_ARGUMENT, "size|PSLD_RUN_INFO_EMPTY");
}

static void refuse_evaluation_structs(size_t size)
{
    psld_kid_options kid = PSLD_KID_DEFAULTS;
    psld_compare_options compare = PSLD_COMPARE_DEFAULTS;
    psld_comparison comparison = PSLD_COMPARISON_EMPTY;
    psld_likelihood_options likelihood = PSLD_LIKELIHOOD_DEFAULTS;
    psld_nll nll = PSLD_NLL_EMPTY;
    psld_model *model = open_exact_model();
    psld_array *rows;
    psld_set *set;
    double mean, deviation;
    assert_int_equal(psld_set_open("toy:moons", 4, &set), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F32, 2, (const size_t[]){4, 2}, &rows), PSLD_OK);
    kid.size = compare.size = likelihood.size = size;
    check_refused(psld_kid(rows, rows, &kid, &mean, &deviation), PSLD_BAD_ARGUMENT, "size|PSLD_KID_DEFAULTS");
    check_refused(psld_compare(set, set, NULL, &compare, &comparison), PSLD_BAD_ARGUMENT, "PSLD_COMPARE_DEFAULTS");
    check_refused(psld_model_nll(model, set, &likelihood, &nll), PSLD_BAD_ARGUMENT, "size|PSLD_LIKELIHOOD_DEFAULTS");
    comparison.size = nll.size = size;
    check_refused(psld_compare(set, set, NULL, NULL, &comparison), PSLD_BAD_ARGUMENT, "size|PSLD_COMPARISON_EMPTY");
    check_refused(psld_model_nll(model, set, NULL, &nll), PSLD_BAD_ARGUMENT, "size|PSLD_NLL_EMPTY");
    psld_array_free(rows);
    psld_set_free(set);
    psld_model_free(model);
}

static void structs_of_other_sizes(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 4096; size += 4096) {
        refuse_data_structs(size);
        refuse_evaluation_structs(size);
    }
}

/* A batch of no samples, and measuring no times. */
static void batches_of_nothing(void **state)
{
    (void)state;
    psld_model *model;
    double seconds;
    size_t bytes;
    char *text = (char *)8;
    FILE *file = fopen("small.yaml", "w");
    assert_true(file &&
                fputs("process: vp\ndata: {channels: 2}\nmodel: {name: mlp, nf: 4, num_res_blocks: 1}\n", file) &&
                fclose(file) == 0);
    assert_int_equal(psld_model_create("small.yaml", NULL, 0, &model), PSLD_OK);
    for (size_t batch = 0; batch <= 4097; batch += 4097) {
        check_refused(psld_model_plan(model, batch, &text), PSLD_BAD_ARGUMENT, "batch|1 to 4096");
        assert_null(text);
        check_refused(psld_model_time(model, batch, 1, &seconds, &bytes), PSLD_BAD_ARGUMENT, "batch|1 to 4096");
        check_refused(psld_model_time_training(model, batch, 1, &seconds, &bytes), PSLD_BAD_ARGUMENT,
                      "batch|1 to 4096");
    }
    check_refused(psld_model_profile(model, 0, 1, NULL, NULL, &text), PSLD_BAD_ARGUMENT, "batch|1 to 4096");
    check_refused(psld_model_profile(model, 1, 0, NULL, NULL, &text), PSLD_BAD_ARGUMENT, "repetitions");
    check_refused(psld_model_time(model, 1, 0, &seconds, &bytes), PSLD_BAD_ARGUMENT, "repetitions");
    check_refused(psld_model_time_training(model, 1, -1, &seconds, &bytes), PSLD_BAD_ARGUMENT, "repetitions");
    psld_model_free(model);
}

/* A table of the library: rows have names and summaries, are found by their names, and end. */
#define CHECK_TABLE(info, at, find)                                                \
    do {                                                                           \
        const info *row;                                                           \
        int count = 0;                                                             \
        for (; (row = at(count)); count++) {                                       \
            assert_true(strlen(row->name) > 0 && strlen(row->summary) > 5);        \
            assert_ptr_equal(find(row->name), row);                                \
        }                                                                          \
        assert_in_range(count, 1, 1000);                                           \
        assert_null(at(-1));                                                       \
        assert_null(at(INT_MIN));                                                  \
        assert_null(at(INT_MAX));                                                  \
        assert_null(find(NULL));                                                   \
        assert_null(find("no such name"));                                         \
        for (int i = 0; (row = at(i)); i++) {                                      \
            if (!strstr(psld_error_text(), row->name))                             \
                fail_msg(#find ": no %s in \"%s\"", row->name, psld_error_text()); \
        }                                                                          \
    } while (0)

static void tables(void **state)
{
    (void)state;
    CHECK_TABLE(psld_sampler_info, psld_sampler_at, psld_sampler_find);
    CHECK_TABLE(psld_grid_info, psld_grid_at, psld_grid_find);
    CHECK_TABLE(psld_quality_info, psld_quality_at, psld_quality_find);
    CHECK_TABLE(psld_preset_info, psld_preset_at, psld_preset_find);
    CHECK_TABLE(psld_task_info, psld_task_at, psld_task_find);
    CHECK_TABLE(psld_restore_method_info, psld_restore_method_at, psld_restore_method_find);
    CHECK_TABLE(psld_metric_info, psld_metric_at, psld_metric_find);
    CHECK_TABLE(psld_resample_info, psld_resample_at, psld_resample_find);
    CHECK_TABLE(psld_toy_info, psld_toy_at, psld_toy_find);
}

/* What rows say of others is there, too. */
static void tables_agree(void **state)
{
    (void)state;
    const psld_sampler_info *sampler;
    const psld_quality_info *quality;
    const psld_metric_info *metric;
    const psld_resample_info *filter;
    unsigned bits = 0;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++)
        assert_true(sampler->adaptive ? sampler->uses_tolerance : psld_grid_find(sampler->grid) != NULL);
    for (int i = 0; (quality = psld_quality_at(i)); i++)
        assert_true(psld_sampler_find(quality->sampler) && psld_grid_find(quality->grid) && quality->nfe > 0);
    for (int i = 0; (metric = psld_metric_at(i)); i++) {
        assert_true(metric->bit && !(bits & metric->bit));
        bits |= metric->bit;
    }
    for (int i = 0; (filter = psld_resample_at(i)); i++) assert_int_equal(filter->filter, i);
}

/* The parameters of presets are those that recipes take, with the defaults that they have. */
static void parameters_of_presets(void **state)
{
    (void)state;
    const psld_preset_info *preset;
    for (int i = 0; (preset = psld_preset_at(i)); i++) {
        psld_recipe *plain, *said;
        assert_int_equal(psld_recipe_open(preset->name, &plain), PSLD_OK);
        assert_int_equal(psld_recipe_get(plain)->k, preset->k);
        for (const psld_preset_parameter *p = preset->parameters; p->name; p++) {
            char text[128];
            assert_true(strlen(p->help) > 5);
            if (!p->initial) continue;
            snprintf(text, sizeof text, "%s %s=%s", preset->name, p->name, p->initial);
            assert_int_equal(psld_recipe_open(text, &said), PSLD_OK);
            assert_true(psld_recipe_same(plain, said));
            psld_recipe_free(said);
        }
        psld_recipe_free(plain);
    }
}

static void names_past_the_last(void **state)
{
    (void)state;
    assert_null(psld_damping_name((psld_damping)3));
    assert_null(psld_damping_name((psld_damping)-1));
}

static void items_past_the_last(void **state)
{
    (void)state;
    psld_data *data;
    psld_array *images;
    const size_t shape[4] = {2, 1, 4, 4};
    uint64_t past = 2;
    float x[16];
    assert_int_equal(psld_array_create(PSLD_U8, 4, shape, &images), PSLD_OK);
    assert_int_equal(psld_array_save(images, "two.npy"), PSLD_OK);
    psld_array_free(images);
    assert_int_equal(psld_data_open("two.npy", NULL, &data), PSLD_OK);
    assert_int_equal(psld_data_classes(data), 0);
    assert_null(psld_data_class(data, 0));
    assert_null(psld_data_class(data, SIZE_MAX));
    assert_int_equal(psld_data_class_count(data, 0), 0);
    assert_int_equal(psld_data_class_count(data, SIZE_MAX), 0);
    check_refused(psld_data_read(data, 1, &past, x, NULL), PSLD_BAD_ARGUMENT, "two.npy|no item 2");
    psld_data_free(data);
}

static void cells_past_the_last(void **state)
{
    (void)state;
    psld_sweep *sweep;
    psld_sweep_cell cell = PSLD_SWEEP_CELL_EMPTY;
    psld_sweep_result result = PSLD_SWEEP_RESULT_EMPTY;
    char key[512] = "before";
    double seconds;
    FILE *file = fopen("exact.yaml", "w");
    assert_true(file && fputs("process: vp\nmixture: {weights: [1], means: [[0, 0]], scales: [1]}\n", file) >= 0 &&
                fclose(file) == 0);
    file = fopen("sweep.yaml", "w");
    assert_true(file &&
                fputs("models: {a: exact.yaml}\nsamplers: [em]\nnfe: [4]\nmetrics: swd\nnumber: 8\n", file) >= 0 &&
                fclose(file) == 0);
    if (psld_sweep_open("sweep.yaml", NULL, 0, &sweep) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_sweep_count(sweep), 1);
    for (size_t index = 1; index != 0; index = index == 1 ? SIZE_MAX : 0) {
        check_refused(psld_sweep_key(sweep, index, key, sizeof key), PSLD_BAD_ARGUMENT, "sweep.yaml|no cell");
        assert_string_equal(key, "");
        check_refused(psld_sweep_run(sweep, index, NULL, NULL, &result), PSLD_BAD_ARGUMENT, "sweep.yaml|no cell");
        check_refused(psld_sweep_estimate(sweep, index, &seconds), PSLD_BAD_ARGUMENT, "sweep.yaml|no cell");
        check_refused(psld_sweep_cell_at(sweep, index, &cell), PSLD_BAD_ARGUMENT, "sweep.yaml|no cell");
        assert_null(cell.model);
        assert_null(cell.sampler);
    }
    psld_sweep_free(sweep);
}

/* Labels that a classifier does not have. */
static void classes_past_the_last(void **state)
{
    (void)state;
    psld_model *model;
    psld_array *z, *t, *label, *out, *grad_z;
    const size_t shape[4] = {1, 1, 8, 8}, one = 1;
    FILE *file = fopen("clf.yaml", "w");
    assert_true(
        file &&
        fputs("process: vp\ndata: {channels: 1, size: 8}\nmodel: {name: ncsnpp_clf, n_cls: 3, nf: 32, ch_mult: [1], "
              "num_res_blocks: 1, attn_resolutions: []}\n",
              file) >= 0 &&
        fclose(file) == 0);
    if (psld_model_create("clf.yaml", NULL, 0, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_array_create(PSLD_F32, 4, shape, &z), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F32, 1, &one, &t), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_I32, 1, &one, &label), PSLD_OK);
    *(float *)t->data = 0.5f;
    static const int32_t wrong[] = {-1, 3, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        *(int32_t *)label->data = wrong[i];
        check_refused(psld_model_evaluate(model, z, t, NULL, label, &out, &grad_z), PSLD_BAD_ARGUMENT, "label|0 to 2");
    }
    *(int32_t *)label->data = 2;
    assert_int_equal(psld_model_evaluate(model, z, t, NULL, label, &out, &grad_z), PSLD_OK);
    psld_array *const arrays[] = {z, t, label, out, grad_z};
    for (int i = 0; i < 5; i++) psld_array_free(arrays[i]);
    psld_model_free(model);
}

static void values_that_are_none(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("cld");
    double a[4], b[4];
    assert_null(psld_damping_name((psld_damping)9));
    assert_null(psld_damping_name((psld_damping)-1));
    check_refused(psld_recipe_kernel(recipe, 0.5, (psld_mode)7, a, b, NULL), PSLD_BAD_ARGUMENT, "mode|7");
    check_refused(psld_recipe_factor(recipe, 0.5, (psld_mode)7, a, b), PSLD_BAD_ARGUMENT, "mode|7");
    psld_recipe_free(recipe);
}

/* 2^62 numbers: products of such sizes would come round to small ones. */
static void sizes_beyond_memory(void **state)
{
    (void)state;
    const size_t huge = (size_t)1 << 62;
    const double one = 1, t = 0.5;
    psld_recipe *recipe = open_recipe("psld");
    psld_source *source = exact_source("psld"), *callback;
    psld_sample_options options = few_steps(), upwards = few_steps();
    psld_mixture *mixture = (psld_mixture *)8;
    psld_operator *op;
    psld_task task = PSLD_TASK_DEFAULTS;
    double z[8] = {0}, x[2] = {0}, value;
    upwards.sampler = "heun";
    assert_int_equal(
        psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict_nothing}, &callback),
        PSLD_OK);
    check_refused(psld_sample(recipe, callback, &options, 0, 4, huge, NULL, z, NULL), PSLD_BAD_ARGUMENT,
                  "samples|memory");
    check_refused(psld_sample(recipe, callback, &options, 0, huge, 4, NULL, z, NULL), PSLD_BAD_ARGUMENT, "memory");
    check_refused(psld_encode(recipe, callback, &upwards, 0, 4, huge, x, z, NULL), PSLD_BAD_ARGUMENT, "memory");
    check_refused(psld_source_denoise(callback, recipe, &PSLD_STATES(4, huge, z, &t), x), PSLD_BAD_ARGUMENT, "memory");
    check_refused(psld_likelihood(recipe, source, NULL, 0, 4, huge, x, &value, NULL), PSLD_BAD_ARGUMENT, "memory");
    check_refused(psld_mixture_create(1, huge, &one, x, &one, &mixture), PSLD_BAD_ARGUMENT, "mixture|memory");
    assert_null(mixture);
    check_refused(psld_sliced_wasserstein(huge, 4, x, 4, x, 2, 0, &value), PSLD_BAD_ARGUMENT, "memory");
    task.rank = 3;
    task.shape[0] = task.shape[1] = task.shape[2] = (size_t)1 << 32;
    check_refused(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT, "restore|memory");
    options.sampler = "ode";
    options.batch = INT_MAX; /* as many as there are */
    assert_int_equal(psld_sample(recipe, source, &options, 0, 2, 2, NULL, z, NULL), PSLD_OK);
    psld_source_free(source);
    psld_source_free(callback);
    psld_recipe_free(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_of_other_recipes),
        cmocka_unit_test(restoration_with_another_recipe),
        cmocka_unit_test(classifier_of_another_recipe),
        cmocka_unit_test(statistics_out_of_order),
        cmocka_unit_test(callbacks_that_fail),
        cmocka_unit_test(gradients_and_classifiers_that_fail),
        cmocka_unit_test(samples_that_are_not_taken),
        cmocka_unit_test(names_that_are_missing),
        cmocka_unit_test(callbacks_that_are_missing),
        cmocka_unit_test(inpainting_without_data),
        cmocka_unit_test(overrides_that_are_missing),
        cmocka_unit_test(structs_of_other_sizes),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(sizes_beyond_memory),
        cmocka_unit_test(batches_of_nothing),
        cmocka_unit_test(tables),
        cmocka_unit_test(tables_agree),
        cmocka_unit_test(parameters_of_presets),
        cmocka_unit_test(names_past_the_last),
        cmocka_unit_test(items_past_the_last),
        cmocka_unit_test(cells_past_the_last),
        cmocka_unit_test(classes_past_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
