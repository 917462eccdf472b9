/* Makes a configuration with every key: from a file or nothing, overrides, choices for the data, and defaults. Compares
 * it with that of the run in the folder. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "data/data.h"
#include "model/files/process_read.h"
#include "process/process.h"
#include "train/choose.h"
#include "train/published.h"
#include "train/training.h"

/* The first form of the configuration: the file, otherwise that of the folder, otherwise empty. */
static psld_status config_begin(psld_training *t, const psld_training_options *options, const psld_yaml *before)
{
    char *text = NULL;
    if (options->tune) return psld_training_tune_config(options->tune, &t->yaml);
    if (options->config) return psld_yaml_load(options->config, &t->yaml);
    if (!before) return psld_yaml_parse("{}", 2, "data", &t->yaml);
    PSLD_TRY(psld_yaml_text(before, &text));
    psld_status status = psld_yaml_parse(text, strlen(text), psld_run_folder_path(t->run), &t->yaml);
    psld_release(text);
    return status;
}

static psld_status set_text(psld_yaml *yaml, const char *key, const char *text)
{
    char *assignment = psld_alloc(strlen(key) + 1 + PSLD_YAML_ROOM(text), 1);
    if (!assignment) return PSLD_NO_MEMORY;
    psld_yaml_put_scalar(text, assignment + sprintf(assignment, "%s=", key));
    psld_status status = psld_yaml_override(yaml, assignment);
    psld_release(assignment);
    return status;
}

static psld_status apply_options(psld_training *t, const psld_training_options *options)
{
    if (options->data) PSLD_TRY(set_text(t->yaml, "data.path", options->data));
    const char *init = options->tune ? options->tune : options->init;
    if (init) PSLD_TRY(set_text(t->yaml, "train.init", init));
    PSLD_TRY(psld_text_list_check("overrides", options->overrides, (size_t)options->override_count));
    for (int i = 0; i < options->override_count; i++)
        if ((!t->published || !psld_published_override(options->overrides[i])) &&
            !psld_training_is_learn_key(options->overrides[i]))
            PSLD_TRY(psld_yaml_override(t->yaml, options->overrides[i]));
    for (int i = 0; i < options->override_count; i++) /* of the process that the others have set */
        if (psld_training_is_learn_key(options->overrides[i]))
            PSLD_TRY(psld_training_set_learn(t->yaml, options->overrides[i]));
    return PSLD_OK;
}

/* ---- Published configurations ------------------------------------------------------------------------------------ */

/* Converts a published configuration into ours. Overrides in its own keys are applied first. */
static psld_status convert_published_config(psld_training *t, const psld_training_options *options)
{
    psld_published published;
    const char *theirs;
    if (!psld_published_matches(psld_yaml_root(t->yaml))) return PSLD_OK;
    t->published = 1;
    PSLD_TRY(psld_text_list_check("overrides", options->overrides, (size_t)options->override_count));
    for (int i = 0; i < options->override_count; i++)
        if ((theirs = psld_published_override(options->overrides[i]))) PSLD_TRY(psld_yaml_override(t->yaml, theirs));
    PSLD_TRY(psld_published_read(psld_yaml_root(t->yaml), options->config, options->classifier, &published));
    psld_status status = psld_process_set(published.ours, psld_recipe_get(published.recipe));
    t->epochs = published.epochs;
    if (status == PSLD_OK) {
        psld_yaml_free(t->yaml);
        t->yaml = published.ours;
        published.ours = NULL;
    }
    psld_published_clear(&published);
    return status;
}

/* Adds what a published configuration takes from the data: steps (epochs of whole batches) and the number of classes. */
static psld_status add_published_steps(psld_training *t, const psld_settings *s)
{
    char text[32];
    const psld_node *model = psld_node_get(psld_yaml_root(t->yaml), "model");
    const char *name = "";
    if (!t->published) return PSLD_OK;
    if (t->epochs && s->train.batch) {
        int64_t each = (int64_t)psld_data_count(t->data) / s->train.batch;
        snprintf(text, sizeof text, "%lld", (long long)(t->epochs * (each ? each : 1)));
        PSLD_TRY(psld_settings_default(t->yaml, "train.steps", text));
    }
    if (psld_node_get(model, "name")) PSLD_TRY(psld_node_text(psld_node_get(model, "name"), &name));
    if (!psld_text_same(name, "ncsnpp_clf") || psld_data_classes(t->data) < 2) return PSLD_OK;
    snprintf(text, sizeof text, "%zu", psld_data_classes(t->data));
    return psld_settings_default(t->yaml, "model.n_cls", text);
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* A whole number of the configuration that may be absent. */
static psld_status optional_number(const psld_yaml *yaml, const char *key, int64_t *number)
{
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(yaml), "data"), key);
    *number = 0;
    return node ? psld_node_integer(node, 0, 4096, number) : PSLD_OK;
}

static psld_status open_data(psld_training *t, const psld_settings *s, int64_t size, int64_t channels)
{
    psld_data_options options = PSLD_DATA_DEFAULTS;
    psld_data_free(t->data);
    t->data = NULL;
    options.image_size = (int)size;
    options.channels = channels == 1 || channels == 3 ? (int)channels : 0;
    options.stretch = s->data.stretch;
    options.resample = s->data.resample;
    options.classes = s->data.class_count ? s->data.classes : NULL;
    options.class_count = (int)s->data.class_count;
    options.strict = s->data.strict || s->data.skip_limit <= 0;
    options.skip_limit = s->data.skip_limit;
    if (s->data.memory) options.memory = s->data.memory;
    if (s->data.cache && *s->data.cache) options.cache_dir = s->data.cache;
    if (!s->data.path || !*s->data.path)
        return psld_fail(PSLD_BAD_INPUT, "data.path is missing: give the data to train on (--data)");
    return psld_data_open(s->data.path, &options, &t->data);
}

/* Opens the data with size and channels of the configuration, or with their own if these are not given. */
static psld_status inspect_training_data(psld_training *t, const psld_settings *s, int64_t size, int64_t channels)
{
    size_t shape[PSLD_MAX_RANK];
    PSLD_TRY(open_data(t, s, size, channels));
    if (psld_data_count(t->data) == 0) return psld_fail(PSLD_BAD_INPUT, "%s: has no data", s->data.path);
    int rank = psld_data_shape(t->data, shape);
    if (rank != 1 && rank != 3)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: expected images, vectors or arrays [channels, height, width], found rank %d",
                         s->data.path, rank);
    return PSLD_OK;
}

static psld_status set_data_shape(psld_training *t)
{
    size_t shape[PSLD_MAX_RANK];
    char text[32];
    int rank = psld_data_shape(t->data, shape);
    snprintf(text, sizeof text, "%zu", rank == 1 ? 1 : shape[1] < shape[2] ? shape[1] : shape[2]);
    PSLD_TRY(psld_settings_default(t->yaml, "data.size", text));
    snprintf(text, sizeof text, "%zu", shape[0]);
    return psld_settings_default(t->yaml, "data.channels", text);
}

/* model.classes: auto becomes the number of classes of the data. */
static psld_status set_class_count(psld_training *t, const char *path)
{
    const psld_node *model = psld_node_get(psld_yaml_root(t->yaml), "model");
    const psld_node *classes = model ? psld_node_get(model, "classes") : NULL;
    const char *text = "";
    char assignment[48];
    if (classes) PSLD_TRY(psld_node_text(classes, &text));
    if (!psld_text_same(text, "auto")) return PSLD_OK;
    if (psld_data_classes(t->data) < 2) return psld_node_fail(classes, "auto: %s has no classes", path);
    snprintf(assignment, sizeof assignment, "model.classes=%zu", psld_data_classes(t->data));
    return psld_yaml_override(t->yaml, assignment);
}

/* Whether the network of a configuration has classes: classifiers, and score networks with labels. */
static int knows_classes(const psld_node *model)
{
    const psld_node *labels = model ? psld_node_get(model, "classes") : NULL;
    const char *text = "0";
    if (model && psld_node_get(model, "n_cls")) return 1;
    return labels && psld_node_text(labels, &text) == PSLD_OK && strcmp(text, "0") != 0;
}

/* A model keeps the names of the classes of its data, so that labels can be given by name. */
static psld_status set_class_names(psld_training *t)
{
    const psld_node *root = psld_yaml_root(t->yaml), *data = psld_node_get(root, "data");
    size_t classes = psld_data_classes(t->data), room = sizeof "data.classes=[]";
    if (!knows_classes(psld_node_get(root, "model")) || classes < 2 || (data && psld_node_get(data, "classes")))
        return PSLD_OK;
    for (size_t i = 0; i < classes; i++) room += PSLD_YAML_ROOM(psld_data_class(t->data, i)) + sizeof ", ";
    char *text = psld_alloc(room, 1), *to = text;
    if (!text) return PSLD_NO_MEMORY;
    to += sprintf(to, "data.classes=[");
    for (size_t i = 0; i < classes; i++) {
        if (i) to += sprintf(to, ", ");
        to += psld_yaml_put_scalar(psld_data_class(t->data, i), to);
    }
    sprintf(to, "]");
    psld_status status = psld_yaml_override(t->yaml, text);
    psld_release(text);
    return status;
}

/* The root mean square of the data. */
static psld_status measure_deviation(const psld_training *t, double *deviation)
{
    enum { ENOUGH = 1000 };
    size_t shape[PSLD_MAX_RANK], size = 1;
    int rank = psld_data_shape(t->data, shape);
    for (int i = 0; i < rank; i++) size *= shape[i];
    float *x = psld_alloc(size, sizeof *x);
    if (!x) return PSLD_NO_MEMORY;
    uint64_t count = psld_data_count(t->data), taken = count < ENOUGH ? count : ENOUGH;
    double sum = 0;
    psld_status status = PSLD_OK;
    for (uint64_t i = 0; i < taken && status == PSLD_OK; i++) {
        uint64_t item = count / taken * i + count % taken * i / taken; /* i * count / taken, which may overflow */
        status = psld_data_read(t->data, 1, &item, x, NULL);
        for (size_t j = 0; j < size; j++) sum += (double)x[j] * (double)x[j];
    }
    psld_release(x);
    *deviation = fmax(sqrt(sum / ((double)taken * (double)size)), 1e-3);
    return status;
}

/* For networks of clean data, if the configuration does not give it. */
static psld_status set_data_deviation(psld_training *t)
{
    const psld_node *model = psld_node_get(psld_yaml_root(t->yaml), "model"), *predicts;
    const char *word = "";
    char text[32];
    double deviation;
    if (!model || !(predicts = psld_node_get(model, "predicts")) || psld_node_get(model, "data_deviation"))
        return PSLD_OK;
    PSLD_TRY(psld_node_text(predicts, &word));
    if (!psld_text_same(word, "data")) return PSLD_OK;
    PSLD_TRY(measure_deviation(t, &deviation));
    psld_text_print(text, sizeof text, "%.3g", deviation);
    return psld_settings_default(t->yaml, "model.data_deviation", text);
}

/* Noise levels in tuning follow from the deviation of the data. */
static psld_status set_tuning(psld_training *t, const psld_training_options *options)
{
    const psld_node *model = psld_node_get(psld_yaml_root(t->yaml), "model"), *own;
    double deviation;
    if (!options->tune) return PSLD_OK;
    if ((own = psld_node_get(model, "data_deviation")))
        PSLD_TRY(psld_node_number(own, &deviation));
    else
        PSLD_TRY(measure_deviation(t, &deviation));
    return psld_training_tune_noise(t, options, deviation);
}

/* Checks that the data have the shape of the network's input. */
static psld_status check_shape(const psld_training *t)
{
    size_t shape[PSLD_MAX_RANK], wanted = (size_t)t->settings.data.size, channels = (size_t)t->settings.data.channels;
    int rank = psld_data_shape(t->data, shape);
    if (shape[0] == channels && (rank == 1 || (shape[1] == wanted && shape[2] == wanted))) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: gives %zu channels of %zu x %zu, the configuration has %zu of %zu x %zu",
                     t->settings.data.path, shape[0], rank == 1 ? 1 : shape[1], rank == 1 ? 1 : shape[2], channels,
                     wanted, wanted);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

/* Chooses a network and settings for the data and the time. */
static psld_status config_choose(psld_training *t, const psld_training_options *options, const char *path)
{
    enum { TWO_HOURS = 2 * 60 * 60 };
    size_t shape[PSLD_MAX_RANK], classes = psld_data_classes(t->data);
    t->choice = (psld_choice){.rank = psld_data_shape(t->data, shape),
                              .shape = shape,
                              .items = psld_data_count(t->data),
                              .classes = options->classifier ? classes : 0,
                              .seconds = options->seconds > 0 ? options->seconds : TWO_HOURS,
                              .ranks = t->ranks->count};
    if (options->classifier && (t->choice.rank == 1 || classes < 2))
        return psld_fail(PSLD_BAD_INPUT, "%s: a classifier needs images with classes", path);
    psld_status status = psld_choose(t->yaml, &t->choice);
    t->choice.shape = NULL;
    const psld_node *model = psld_node_get(psld_yaml_root(t->yaml), "model");
    if (status == PSLD_OK && classes >= 2 && !knows_classes(model))
        psld_choice_add_reason(&t->choice,
                               "the data have %zu classes: with model.classes=auto the model can draw each of them\n",
                               classes);
    return status;
}

/* Chooses train.steps for a configuration with a time; a continued run keeps its steps. */
static psld_status fit_steps(psld_training *t, const psld_training_options *options, const psld_yaml *before)
{
    size_t shape[PSLD_MAX_RANK];
    const char *steps;
    char assignment[64];
    double share = options->tune ? 0.75 : 1; /* one evaluation more, a third of a step */
    if (before) {
        PSLD_TRY(psld_node_text(psld_node_get(psld_node_get(psld_yaml_root(before), "train"), "steps"), &steps));
        snprintf(assignment, sizeof assignment, "train.steps=%.40s", steps);
        return psld_yaml_override(t->yaml, assignment);
    }
    t->choice = (psld_choice){.rank = psld_data_shape(t->data, shape),
                              .shape = shape,
                              .items = psld_data_count(t->data),
                              .classes = 0,
                              .seconds = share * options->seconds,
                              .ranks = t->ranks->count};
    psld_status status = psld_choose_steps(t->yaml, &t->choice);
    t->choice.shape = NULL;
    return status;
}

static psld_status config_resolve(psld_training *t, const psld_training_options *options, const psld_yaml *before)
{
    psld_settings early;
    int64_t size = 0, channels = 0, final;
    size_t shape[PSLD_MAX_RANK];
    PSLD_TRY(psld_settings_fill(t->yaml, "data.skip_limit"));
    psld_status status = psld_settings_read(t->yaml, &early);
    if (status == PSLD_OK) status = optional_number(t->yaml, "size", &size);
    if (status == PSLD_OK) status = optional_number(t->yaml, "channels", &channels);
    if (status == PSLD_OK) status = inspect_training_data(t, &early, size, channels);
    int chosen = (!options->config && !options->tune && !before) || !psld_node_get(psld_yaml_root(t->yaml), "model");
    if (status == PSLD_OK) status = set_class_count(t, early.data.path);
    if (status == PSLD_OK && chosen) status = config_choose(t, options, early.data.path);
    if (status == PSLD_OK) status = add_published_steps(t, &early);
    if (status == PSLD_OK) status = set_data_shape(t);
    if (status == PSLD_OK) status = set_class_names(t);
    if (status == PSLD_OK) status = optional_number(t->yaml, "size", &final);
    if (status == PSLD_OK && psld_data_is_image(t->data) && final != size) {
        int rank = psld_data_shape(t->data, shape);
        int may_differ = psld_data_is_costly(t->data); /* files of images, of which only some were read */
        if (rank == 3 && (may_differ || (size_t) final != shape[1] || (size_t) final != shape[2]))
            status = open_data(t, &early, final, channels);
    }
    psld_settings_clear(&early);
    if (status == PSLD_OK) status = set_data_deviation(t);
    if (status == PSLD_OK) status = set_tuning(t, options);
    if (status == PSLD_OK) status = psld_training_expand_learned(t);
    if (status == PSLD_OK) status = psld_process_embed(t->yaml);
    if (status == PSLD_OK && !chosen && options->seconds > 0) status = fit_steps(t, options, before);
    if (status == PSLD_OK && psld_process_is_full(psld_node_get(psld_yaml_root(t->yaml), "process")))
        status = psld_settings_default(t->yaml, "train.sampler", "em");
    if (status == PSLD_OK) status = psld_settings_complete(t->yaml);
    if (status == PSLD_OK) status = psld_settings_read(t->yaml, &t->settings);
    return status == PSLD_OK ? check_shape(t) : status;
}

/* Refuses keys of a new run that would have no effect. Runs that began with them continue. */
static psld_status check_effects(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    int classifier = s->train.loss == PSLD_LOSS_ENTROPY;
    const struct {
        int set;
        const char *key, *on;
    } rows[] = {{s->data.flip && !psld_data_is_image(t->data), "data.flip", "data that are no images"},
                {s->train.clean && !classifier, "train.clean", "score networks"},
                {s->train.weighting && classifier, "train.weighting", "classifiers"},
                {s->train.l1 && classifier, "train.norm", "classifiers"},
                {s->train.sum && classifier, "train.reduce", "classifiers"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].set) return psld_fail(PSLD_BAD_INPUT, "%s: has no effect on %s", rows[i].key, rows[i].on);
    return psld_network_config_check(psld_yaml_root(t->yaml));
}

static psld_status config_make(psld_training *t, const psld_training_options *options, psld_yaml *before)
{
    if (options->tune && (options->config || options->init || options->classifier > 0))
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "tune: has the model's configuration and weights; expected no config, no init "
                         "and no classifier");
    if (!options->config && !options->tune && !options->data && !before)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "train: needs a configuration or data, or the folder of a run to go on with");
    PSLD_TRY(config_begin(t, options, before));
    if (options->config) PSLD_TRY(convert_published_config(t, options));
    PSLD_TRY(apply_options(t, options));
    if (before) PSLD_TRY(psld_settings_inherit(before, t->yaml));
    PSLD_TRY(config_resolve(t, options, before));
    if (options->classifier && !psld_node_get(psld_node_get(psld_yaml_root(t->yaml), "model"), "n_cls"))
        return psld_fail(PSLD_BAD_INPUT, "train: the configuration is that of a score network, not of a classifier");
    if (before) PSLD_TRY(psld_settings_compare(before, t->yaml, psld_run_folder_path(t->run)));
    if (!before) PSLD_TRY(check_effects(t));
    return psld_yaml_text(t->yaml, &t->config);
}

psld_status psld_training_configure(psld_training *t, const psld_training_options *options)
{
    psld_yaml *before = NULL;
    if (t->run) PSLD_TRY(psld_run_folder_config(t->run, &before));
    psld_status status = config_make(t, options, before);
    psld_yaml_free(before);
    return status;
}

psld_status psld_training_follow(psld_training *t)
{
    PSLD_TRY(psld_yaml_parse(t->config, strlen(t->config), "config.yaml", &t->yaml));
    PSLD_TRY(psld_settings_read(t->yaml, &t->settings));
    const psld_settings *s = &t->settings;
    PSLD_TRY(open_data(t, s, s->data.size, s->data.channels));
    return check_shape(t);
}
