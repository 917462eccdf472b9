/* A model is what `psld sample` and its relatives take: a score source with its process and the shape of its data. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/files/checkpoints.h"

void psld_model_defaults(psld_model_options *options)
{
    memset(options, 0, sizeof *options);
}

static psld_status open_exact(const char *path, const char *process, psld_model *model)
{
    psld_yaml *yaml;
    PSLD_TRY(psld_yaml_load(path, &yaml));
    psld_status status = psld_model_read_exact(psld_yaml_root(yaml), process, model);
    if (status == PSLD_OK) status = psld_yaml_text(yaml, &model->config);
    psld_yaml_free(yaml);
    return status;
}

/* Guides a model by its weak one, which it has taken over. */
static psld_status autoguide(psld_model *model)
{
    const psld_model *weak = model->weak;
    if (!model->source || !weak->source)
        return psld_fail(PSLD_BAD_INPUT, "a classifier neither guides so nor is guided");
    if (weak->rank != model->rank || memcmp(weak->shape, model->shape, (size_t)model->rank * sizeof *model->shape) != 0)
        return psld_fail(PSLD_BAD_INPUT, "is a model of data of another shape");
    if (!psld_recipe_same_eps(weak->recipe, model->recipe)) {
        char what[128];
        psld_recipe_difference(weak->recipe, model->recipe, what, sizeof what);
        return psld_fail(PSLD_BAD_INPUT, "is a model of recipe %s, not of %s as the model that it would guide: %s",
                         weak->recipe->spec.name, model->recipe->spec.name, what);
    }
    psld_source *guided;
    PSLD_TRY(psld_source_autoguide(model->source, weak->source, model->recipe, model->weak_scale, &guided));
    model->alone = model->source;
    model->source = guided;
    return PSLD_OK;
}

/* The weak model that is asked for or that the file brings along. */
static psld_status find_weak(const char *path, const psld_model_options *options, psld_model *model)
{
    psld_model_options its = {.process = options->process, .reference = options->reference, .weak = ""};
    if (options->weak && !*options->weak) return PSLD_OK;
    model->weak_scale = PSLD_WEAK_SCALE;
    if (options->weak)
        PSLD_TRY(psld_model_open(options->weak, &its, &model->weak));
    else if (model->file)
        PSLD_TRY(psld_model_read_weak(path, model->file, &its, &model->weak, &model->weak_scale));
    if (!model->weak) return PSLD_OK;
    if (options->weak_scale != 0) model->weak_scale = options->weak_scale;
    psld_status status = autoguide(model);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", options->weak ? options->weak : path) : status;
}

static psld_status open_or_create(const char *path, int exact, const psld_model_options *options, uint64_t seed,
                                  psld_model **model)
{
    psld_model *made = psld_alloc(1, sizeof *made);
    *model = NULL;
    if (!made) return PSLD_NO_MEMORY;
    psld_status status =
        exact ? open_exact(path, options->process, made) : psld_model_read_network(path, options, seed, made);
    if (status == PSLD_OK) status = find_weak(path, options, made);
    if (status != PSLD_OK)
        psld_model_free(made);
    else
        *model = made;
    return status;
}

static int is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static psld_status newest_checkpoint(const char *folder, char path[PSLD_CHECKPOINT_PATH])
{
    long *steps;
    size_t count;
    PSLD_TRY(psld_checkpoints_list(folder, &steps, &count));
    psld_status status = count
                             ? psld_checkpoints_path(folder, steps[0], path)
                             : psld_fail(PSLD_BAD_INPUT, "%s: has no checkpoint, where these weights would be", folder);
    psld_release(steps);
    return status;
}

/* The model of a training run: the averaged weights that it was last left with, or others, which only a checkpoint
 * has. */
static psld_status open_run(const char *folder, const psld_model_options *options, psld_model **model)
{
    char checkpoints[PSLD_CHECKPOINT_PATH], path[PSLD_CHECKPOINT_PATH + 32];
    *model = NULL;
    if (snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder) >= (int)sizeof checkpoints)
        return psld_fail(PSLD_BAD_INPUT, "%.200s...: the name is too long", folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (access(path, F_OK) != 0) {
        snprintf(path, sizeof path, "%s/config.yaml", folder);
        return psld_fail(PSLD_BAD_INPUT,
                         access(path, F_OK) == 0 ? "%s: a training run that has not come to its first checkpoint yet"
                                                 : "%s: is a folder without model.safetensors, so no training run",
                         folder);
    }
    if (options->raw || options->ema != 0) PSLD_TRY(newest_checkpoint(checkpoints, path));
    return open_or_create(path, 0, options, 0, model);
}

psld_status psld_model_open(const char *path, const psld_model_options *options, psld_model **model)
{
    psld_model_options defaults;
    psld_model_defaults(&defaults);
    int exact = psld_text_ends_in(path, ".yaml") || psld_text_ends_in(path, ".yml");
    if (!exact && is_folder(path)) return open_run(path, options ? options : &defaults, model);
    return open_or_create(path, exact, options ? options : &defaults, 0, model);
}

psld_status psld_model_create(const char *config_path, const psld_model_options *options, uint64_t seed,
                              psld_model **model)
{
    psld_model_options with_config;
    psld_model_defaults(&with_config);
    if (options) with_config = *options;
    with_config.config = config_path;
    return open_or_create(NULL, 0, &with_config, seed, model);
}

void psld_model_free(psld_model *model)
{
    if (!model) return;
    psld_source_free(model->source);
    psld_source_free(model->alone);
    psld_model_free(model->weak);
    psld_classifier_free(model->classifier);
    psld_mixture_free(model->mixture);
    psld_source_free(model->native);
    if (model->learned != model->recipe) psld_recipe_free(model->learned);
    psld_recipe_free(model->recipe);
    for (int i = 0; i < 2; i++) psld_runner_free(model->runners[i]);
    psld_network_free(model->network);
    psld_tensors_free(model->file);
    psld_release(model->config);
    psld_release(model->rows.z);
    psld_release(model->rows.t);
    psld_release(model->rows.eps);
    psld_release(model->rows.weight);
    psld_release(model->rows.grad_z);
    psld_release(model->rows.plans);
    psld_release(model);
}

psld_model_kind psld_model_kind_of(const psld_model *model)
{
    return model->kind;
}

const psld_recipe *psld_model_recipe(const psld_model *model)
{
    return model->recipe;
}

psld_source *psld_model_unguided_source(psld_model *model)
{
    return model->alone ? model->alone : model->source;
}

double psld_model_weak_scale(const psld_model *model)
{
    return model->weak ? model->weak_scale : 0;
}

psld_source *psld_model_source(psld_model *model)
{
    return model->source;
}

psld_classifier *psld_model_classifier(psld_model *model)
{
    return model->classifier;
}

const psld_mixture *psld_model_mixture(const psld_model *model)
{
    return model->mixture;
}

int psld_model_shape(const psld_model *model, size_t shape[PSLD_MAX_RANK])
{
    memcpy(shape, model->shape, sizeof model->shape);
    return model->rank;
}

size_t psld_model_size(const psld_model *model)
{
    size_t size = 1;
    for (int i = 0; i < model->rank; i++) size *= model->shape[i];
    return size;
}

void psld_model_channels(const psld_model *model, size_t *in, size_t *out)
{
    *in = model->network ? (size_t)model->network->config.in_ch : 0;
    *out = model->network ? (size_t)model->network->config.out_ch : 0;
}

size_t psld_model_parameters(const psld_model *model)
{
    return model->network ? psld_network_size(model->network->graph) : 0;
}

size_t psld_model_classes(const psld_model *model)
{
    return model->kind == PSLD_CLASSIFIER ? (size_t)model->network->config.out_ch : 0;
}
