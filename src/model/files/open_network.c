/* Models whose score is a network: opening them.
 *
 * A configuration comes with the weights (note PSLD_CONFIG_NOTE of a safetensors file) or from a file of its own, and
 * overrides are applied to it. Names of weights may begin with the prefixes of published checkpoints; the kind of
 * network, options->raw and options->ema decide which prefix is used. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/files/checkpoints.h"
#include "model/files/checksum.h"
#include "model/files/format_version.h"
#include "model/files/process_read.h"
#include "model/foreign/foreign.h"
#include "model/model.h"

enum { AVERAGE_PREFIX = 64 };

static psld_status read_config(const char *path, const psld_model_options *options, const psld_tensors *tensors,
                               psld_yaml **yaml)
{
    PSLD_TRY(psld_text_list_check("overrides", options->overrides, (size_t)options->override_count));
    const char *own = tensors ? psld_tensors_note(tensors, PSLD_CONFIG_NOTE) : NULL;
    if (options->config)
        PSLD_TRY(psld_yaml_load(options->config, yaml));
    else if (own)
        PSLD_TRY(psld_yaml_parse(own, strlen(own), path, yaml));
    else
        return psld_fail(PSLD_BAD_INPUT, "%s: has no configuration of its own; give one with --config", path);
    const char *learned = tensors && !options->config ? psld_tensors_note(tensors, PSLD_CHECKPOINT_RECIPE) : NULL;
    psld_status status = learned ? psld_process_set_text(*yaml, learned) : PSLD_OK;
    for (int i = 0; status == PSLD_OK && i < options->override_count; i++)
        status = psld_yaml_override(*yaml, options->overrides[i]);
    if (status == PSLD_OK && options->config) status = psld_network_config_check(psld_yaml_root(*yaml));
    if (status != PSLD_OK) {
        psld_yaml_free(*yaml);
        *yaml = NULL;
    }
    return status;
}

static int has_prefix(const psld_tensors *tensors, const char *prefix)
{
    for (size_t i = 0; i < tensors->count; i++)
        if (strncmp(tensors->items[i].name, prefix, strlen(prefix)) == 0) return 1;
    return 0;
}

/* The first of the prefixes, in order of preference, that the file has; "" if it has none of them. */
static const char *choose_prefix(const psld_tensors *tensors, psld_network_kind kind, int raw)
{
    static const char *const score[2][2] = {{"ema_score_fn.", "score_fn."}, {"score_fn.", "ema_score_fn."}};
    static const char *const classifier[2][2] = {{"ema_clf_fn.", "clf_fn."}, {"clf_fn.", "ema_clf_fn."}};
    const char *const *wanted = kind == PSLD_NET_CLASSIFIER ? classifier[raw != 0] : score[raw != 0];
    for (int i = 0; i < 2; i++)
        if (has_prefix(tensors, wanted[i])) return wanted[i];
    return "";
}

/* The index in train.ema of the average with this decay. */
static psld_status find_average(const char *path, const psld_node *root, double ema, size_t *place)
{
    const psld_node *train = psld_node_get(root, "train"), *node = train ? psld_node_get(train, "ema") : NULL;
    int is_list = node && psld_node_kind_of(node) == PSLD_NODE_LIST;
    for (*place = 0; node && *place < (is_list ? psld_node_size(node) : 1); (*place)++) {
        double decay;
        PSLD_TRY(psld_node_number(is_list ? psld_node_at(node, *place) : node, &decay));
        if (decay == ema) return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: train.ema has no average of decay %g", path, ema);
}

/* Averages after the first have a number before the published prefix: ema2_score_fn. */
static psld_status choose_average(const char *path, const psld_tensors *tensors, const psld_node *root,
                                  psld_network_kind kind, double ema, char prefix[AVERAGE_PREFIX])
{
    const char *published = kind == PSLD_NET_CLASSIFIER ? "clf_fn." : "score_fn.";
    size_t place;
    PSLD_TRY(find_average(path, root, ema, &place));
    if (place == 0)
        snprintf(prefix, AVERAGE_PREFIX, "ema_%s", published);
    else
        snprintf(prefix, AVERAGE_PREFIX, PSLD_AVERAGE_FORMAT "%s", place + 1, published);
    if (has_prefix(tensors, prefix)) return PSLD_OK;
    if (place > 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: has no average of decay %g; the checkpoints of its run have all of them",
                         path, ema);
    *prefix = 0; /* a model file has the first average, with plain names */
    return PSLD_OK;
}

static psld_status load_weights(const char *path, const psld_tensors *tensors, const psld_node *root,
                                const psld_model_options *options, psld_network *network)
{
    psld_tensors *selected;
    char average[AVERAGE_PREFIX];
    const char *prefix = choose_prefix(tensors, network->config.kind, options->raw);
    if (options->ema != 0 && options->raw)
        return psld_fail(PSLD_BAD_ARGUMENT, "ema: raw weights are no average; give one of the two");
    if (options->ema != 0) {
        PSLD_TRY(choose_average(path, tensors, root, network->config.kind, options->ema, average));
        prefix = average;
    }
    PSLD_TRY(psld_foreign_select(tensors, &selected));
    if (!selected) PSLD_TRY(psld_tensors_select(tensors, prefix, &selected));
    psld_tensors_expect(tensors, 1); /* small tensors are copied now; large ones are read when needed */
    psld_status status = psld_network_borrow(network, selected, "");
    psld_tensors_expect(tensors, 0);
    psld_tensors_free(selected);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", path) : status;
}

/* Reads `denoiser`: how a network of another project is given states, and what its output means. */
static int is_foreign(const psld_node *root)
{
    return psld_node_get(root, "denoiser") != NULL;
}

static psld_status read_conditioning(const psld_node *root, const psld_network_config *config, psld_model *model)
{
    const psld_node *denoiser = psld_node_get(root, "denoiser");
    int is_ours = config->kind == PSLD_NET_UNET || config->kind == PSLD_NET_CLASSIFIER || config->kind == PSLD_NET_MLP;
    model->conditioning = psld_conditioning_ours(config->data_deviation);
    if (is_ours && !denoiser) return PSLD_OK;
    if (is_ours) return psld_node_fail(denoiser, "goes with model.name: songunet, adm or unet2d");
    if (!denoiser) return psld_node_fail(root, "denoiser is missing, and model.name is that of another project");
    PSLD_TRY(psld_conditioning_read(denoiser, &model->conditioning));
    return psld_foreign_check_range(model->recipe, &model->conditioning);
}

/* The process that a network was trained for. Published configurations of classifiers may name none; then it is the
 * process of the options. */
static psld_status read_process(const psld_node *root, const psld_model_options *options, psld_model *model)
{
    int named = psld_process_named(root);
    int any = is_foreign(root); /* a network that predicts clean data serves every process */
    if (options->process && (!named || any || model->kind == PSLD_CLASSIFIER))
        return psld_recipe_open(options->process, &model->recipe);
    if (model->kind == PSLD_CLASSIFIER && !named) return PSLD_OK;
    return psld_process_read(root, &model->recipe);
}

/* Translates a score network to another process, if the options ask for one. */
static psld_status change_process(const psld_model_options *options, psld_model *model)
{
    psld_recipe *wanted;
    psld_source *translated;
    if (!options->process) return PSLD_OK;
    PSLD_TRY(psld_recipe_open(options->process, &wanted));
    /* the network decides which eps is predicted, not the process of the options */
    int same = psld_recipe_same(wanted, model->recipe) && wanted->spec.stabiliser == model->recipe->spec.stabiliser;
    psld_status status = same ? PSLD_OK : psld_source_translate(model->source, model->recipe, wanted, &translated);
    if (status != PSLD_OK || same) {
        psld_recipe_free(wanted);
        return status;
    }
    model->native = model->source;
    model->source = translated;
    model->recipe = wanted;
    return PSLD_OK;
}

/* The number of variables in the network's input. Each has the channels of the data. */
static int input_variables(const psld_model *model)
{
    return model->recipe && model->network->config.predicts == PSLD_OUTPUT_EPS ? model->recipe->spec.k : 1;
}

/* z has variables times channels of the data; eps has predicted variables times channels. */
static psld_status check_channels(const psld_model *model)
{
    const psld_network_config *config = &model->network->config;
    if (!model->recipe) return PSLD_OK;
    if (config->predicts == PSLD_OUTPUT_DATA && config->in_ch != config->out_ch)
        return psld_fail(PSLD_BAD_INPUT,
                         "the network has %d channels in and %d out; one that predicts data has as many of both",
                         config->in_ch, config->out_ch);
    if (config->predicts == PSLD_OUTPUT_DATA) return PSLD_OK;
    int k = model->recipe->spec.k, predicted = model->recipe->predicted, channels = config->in_ch / k;
    if (config->in_ch % k != 0 || (model->kind == PSLD_SCORE_MODEL && config->out_ch != predicted * channels))
        return psld_fail(PSLD_BAD_INPUT,
                         "the network has %d channels in and %d out; recipe %s with %d variables, %d of them "
                         "predicted, needs %d and %d",
                         config->in_ch, config->out_ch, model->recipe->spec.name, k, predicted, channels * k,
                         channels * predicted);
    return PSLD_OK;
}

/* A network that was trained without label dropout has never seen samples without labels. */
static int learns_without_label(const psld_node *root)
{
    const psld_node *dropout = psld_node_get(psld_node_get(root, "train"), "label_dropout");
    double rate = 1;
    return !dropout || psld_node_number(dropout, &rate) != PSLD_OK || rate > 0;
}

/* Reads whether the network was tuned, and for data of which deviation. */
static void read_tuning(const psld_node *root, psld_model *model)
{
    const psld_node *train = psld_node_get(root, "train"), *loss = train ? psld_node_get(train, "loss") : NULL;
    const psld_node *deviation = train ? psld_node_get(train, "deviation") : NULL;
    const char *text = "";
    if (!loss || psld_node_text(loss, &text) != PSLD_OK || !psld_text_same(text, "consistency")) return;
    if (!deviation || psld_node_number(deviation, &model->tuned) != PSLD_OK || !(model->tuned > 0)) model->tuned = 0.5;
}

static psld_status network_build(const char *path, const psld_tensors *tensors, const psld_yaml *yaml,
                                 const psld_model_options *options, uint64_t seed, psld_model *model)
{
    psld_network_config config;
    const psld_node *root = psld_yaml_root(yaml);
    PSLD_TRY(psld_network_config_read(root, NULL, &config));
    model->cfg = 1;
    model->kind = config.kind == PSLD_NET_CLASSIFIER ? PSLD_CLASSIFIER : PSLD_SCORE_MODEL;
    PSLD_TRY(psld_model_choose_backend(options, &model->device, &model->backend));
    const psld_node *formulas = psld_node_get(root, "process");
    if (formulas && psld_process_is_full(formulas)) {
        if (options->process)
            return psld_fail(PSLD_BAD_ARGUMENT, "process: a model of a recipe with formulas has no other");
        PSLD_TRY(psld_model_read_process(formulas, &config, model));
    } else {
        PSLD_TRY(read_process(root, options, model));
    }
    PSLD_TRY(read_conditioning(root, &config, model));
    /* clean data are the same under both kernels; eps is computed from them with the kernel given x_0 */
    if (model->recipe && config.predicts == PSLD_OUTPUT_DATA) psld_recipe_set_mode(model->recipe, PSLD_HSM);
    model->learned = model->recipe;
    PSLD_TRY(psld_network_create(&config, &model->network));
    PSLD_TRY(check_channels(model));
    if (tensors)
        PSLD_TRY(load_weights(path, tensors, root, options, model->network));
    else if (!options->blank)
        psld_network_initialise(model->network, seed);
    PSLD_TRY(psld_yaml_text(yaml, &model->config));
    model->rank = config.kind == PSLD_NET_MLP ? 1 : 3;
    model->shape[0] = model->process ? (size_t)model->process->data : (size_t)(config.in_ch / input_variables(model));
    if (model->rank == 3) model->shape[1] = model->shape[2] = (size_t)config.image_size;
    if (model->kind == PSLD_CLASSIFIER)
        return psld_classifier_create(model->recipe, psld_model_classify, NULL, model, (size_t)config.out_ch,
                                      &model->classifier);
    if (model->process) return PSLD_OK;
    read_tuning(root, model);
    PSLD_TRY(psld_source_create(model->recipe, psld_model_predict, NULL, model, &model->source));
    model->source->gradient = psld_model_differentiate;
    model->source->kind = model->tuned > 0 ? PSLD_SOURCE_SAMPLE : PSLD_SOURCE_MEAN;
    model->source->classes = (size_t)config.classes;
    model->source->needs_label = config.classes && (config.kind == PSLD_NET_UNET2D || !learns_without_label(root));
    return is_foreign(root) ? PSLD_OK : change_process(options, model);
}

psld_status psld_model_from_config(const psld_yaml *yaml, uint64_t seed, psld_model **model)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    *model = NULL;
    psld_model *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = network_build(NULL, NULL, yaml, &options, seed, made);
    if (status != PSLD_OK) {
        psld_model_free(made);
        return status;
    }
    *model = made;
    return PSLD_OK;
}

static psld_status build_weak(const char *path, const psld_tensors *tensors, const char *config,
                              const psld_model_options *options, psld_model *weak)
{
    psld_yaml *yaml;
    PSLD_TRY(psld_yaml_parse(config, strlen(config), path, &yaml));
    psld_status status = network_build(path, tensors, yaml, options, 0, weak);
    psld_yaml_free(yaml);
    return status;
}

psld_status psld_model_read_weak(const char *path, const psld_tensors *file, const psld_model_options *options,
                                 psld_model **weak, double *scale)
{
    const char *config = psld_tensors_note(file, PSLD_WEAK_NOTE), *by = psld_tensors_note(file, PSLD_WEAK_SCALE_NOTE);
    psld_tensors *tensors;
    psld_model_options plain = *options;
    plain.ema = 0; /* the checksum covers both networks */
    *weak = NULL;
    if (!config) return PSLD_OK;
    if (by && !psld_text_number(by, scale))
        return psld_fail(PSLD_BAD_INPUT, "%s: " PSLD_WEAK_SCALE_NOTE ": expected a number, found \"%.40s\"", path, by);
    PSLD_TRY(psld_tensors_select(file, PSLD_WEAK_PREFIX, &tensors));
    psld_model *made = psld_alloc(1, sizeof *made);
    psld_status status = made ? build_weak(path, tensors, config, &plain, made) : PSLD_NO_MEMORY;
    psld_tensors_free(tensors);
    if (status != PSLD_OK) {
        psld_model_free(made);
        return status;
    }
    *weak = made;
    return PSLD_OK;
}

psld_status psld_model_own(psld_model *model)
{
    PSLD_TRY(psld_network_own(model->network));
    if (model->weak && model->weak->network) PSLD_TRY(psld_network_own(model->weak->network));
    psld_tensors_free(model->file);
    model->file = NULL;
    return PSLD_OK;
}

/* Files saved from this model have only this average. */
static psld_status keep_average(psld_yaml *yaml, double ema, psld_model *model)
{
    char assignment[64], number[PSLD_NUMBER_SIZE];
    snprintf(assignment, sizeof assignment, "train.ema=%s", psld_text_shortest(ema, number));
    PSLD_TRY(psld_yaml_override(yaml, assignment));
    psld_release(model->config);
    model->config = NULL;
    return psld_yaml_text(yaml, &model->config);
}

psld_status psld_model_read_network(const char *path, const psld_model_options *options, uint64_t seed,
                                    psld_model *model)
{
    psld_yaml *yaml = NULL;
    if (path) PSLD_TRY(psld_foreign_open(path, &model->file));
    if (path) PSLD_TRY(psld_format_check(model->file, path));
    if (path) PSLD_TRY(psld_checksum_verify(model->file, path));
    psld_status status = read_config(path, options, model->file, &yaml);
    if (status == PSLD_OK) status = psld_process_embed(yaml);
    if (status == PSLD_OK) status = network_build(path, model->file, yaml, options, seed, model);
    if (status == PSLD_OK && options->ema != 0) status = keep_average(yaml, options->ema, model);
    if (model->file) model->steps = psld_model_read_steps(model->file);
    if (status == PSLD_OK && model->file) status = psld_model_read_labels(path, model->file, model);
    psld_yaml_free(yaml);
    return status;
}
