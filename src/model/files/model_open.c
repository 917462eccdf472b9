/* Opening a model: a run folder, a file of weights, an exact model, or a configuration. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/text.h"
#include "model/files/checkpoints.h"
#include "model/foreign/foreign.h"
#include "model/model.h"

psld_status psld_model_choose_backend(const psld_model_options *options, psld_device **device,
                                      const psld_backend **backend)
{
    psld_device_wish wish = {options->device, options->reference ? "reference" : options->isa, options->precision};
    return psld_device_choose(&wish, device, backend);
}

/* Wrong names are refused for exact models, too. */
static psld_status check_names(const psld_model_options *options)
{
    psld_device *device;
    const psld_backend *backend;
    PSLD_TRY(psld_model_choose_backend(options, &device, &backend));
    psld_device_close(device);
    return PSLD_OK;
}

/* Copies the caller's options into a struct of this version. */
static psld_status read_options(const psld_model_options *options, psld_model_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_model_options, options, own, PSLD_MODEL_DEFAULTS));
    PSLD_FILL_UNSET(own->override_count, 0);
    PSLD_FILL_UNSET(own->raw, 0);
    PSLD_FILL_UNSET(own->reference, 0);
    PSLD_FILL_UNSET(own->blank, 0);
    PSLD_FILL_UNSET(own->weak_scale, 0);
    PSLD_FILL_UNSET(own->ema, 0);
    PSLD_TRY(check_names(own));
    if (own->reference && own->isa && strcmp(own->isa, "reference") != 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "isa: expected reference or nothing with the reference kernels, found '%s'",
                         own->isa);
    if (!isfinite(own->cfg)) return psld_fail(PSLD_BAD_ARGUMENT, "cfg: expected a finite number, found %g", own->cfg);
    if (own->override_count >= 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "override_count: expected at least 0, found %d", own->override_count);
}

static psld_status read_exact(const psld_yaml *yaml, const char *process, psld_model *model)
{
    PSLD_TRY(psld_model_read_exact(psld_yaml_root(yaml), process, model));
    return psld_yaml_text(yaml, &model->config);
}

static psld_status read_exact_file(const char *path, const char *process, psld_model *model)
{
    psld_yaml *yaml;
    PSLD_TRY(psld_yaml_load(path, &yaml));
    psld_status status = read_exact(yaml, process, model);
    psld_yaml_free(yaml);
    return status;
}

/* Guides a model by its weak model, which it owns. */
static psld_status guide_by_weak(psld_model *model)
{
    const psld_model *weak = model->weak;
    if (!model->source || !weak->source)
        return psld_fail(PSLD_BAD_INPUT, "autoguidance needs two score models, found a classifier");
    if (weak->rank != model->rank || memcmp(weak->shape, model->shape, (size_t)model->rank * sizeof *model->shape) != 0)
        return psld_fail(PSLD_BAD_INPUT, "the weak model and the model have data of different shapes");
    if (!psld_recipe_same_eps(weak->recipe, model->recipe)) {
        char what[128];
        psld_recipe_difference(weak->recipe, model->recipe, what, sizeof what);
        return psld_fail(PSLD_BAD_INPUT, "the weak model has recipe %s, the model that it guides has %s: %s",
                         weak->recipe->spec.name, model->recipe->spec.name, what);
    }
    psld_source *guided;
    PSLD_TRY(psld_source_autoguide(model->source, weak->source, model->recipe, model->weak_scale, &guided));
    model->alone = model->source;
    model->source = guided;
    return PSLD_OK;
}

/* Opens the weak model: that of the options, or that in the file. */
static psld_status open_weak(const char *path, const psld_model_options *options, psld_model *model)
{
    psld_model_options its = PSLD_MODEL_DEFAULTS;
    its.process = options->process;
    its.reference = options->reference;
    its.isa = options->isa;
    its.precision = options->precision;
    its.device = options->device;
    its.weak = "";
    if (options->weak && !*options->weak) return PSLD_OK;
    model->weak_scale = PSLD_WEAK_SCALE;
    if (options->weak)
        PSLD_TRY(psld_model_open(options->weak, &its, &model->weak));
    else if (model->file)
        PSLD_TRY(psld_model_read_weak(path, model->file, &its, &model->weak, &model->weak_scale));
    if (!model->weak) return PSLD_OK;
    if (options->weak_scale != 0) model->weak_scale = options->weak_scale;
    psld_status status = guide_by_weak(model);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", options->weak ? options->weak : path) : status;
}

/* Sets the default of classifier-free guidance, if it is given. */
static psld_status set_cfg(double cfg, psld_model *model)
{
    if (cfg == PSLD_UNSET) return PSLD_OK;
    if (!model->source || psld_source_classes(model->source) == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "cfg: this model takes no labels");
    if (psld_source_needs_label(model->source) && cfg != 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "cfg: this model cannot predict without a label, so there is no "
                                            "classifier-free guidance");
    model->cfg = cfg;
    return PSLD_OK;
}

/* Where a model is read from: a file with weights or with the YAML of an exact model, that YAML itself, or, without a
 * path, only the configuration in the options. */
typedef struct model_origin {
    const char *path;
    int is_exact;
    const psld_yaml *yaml;
} model_origin;

static psld_status model_open(const model_origin *from, const psld_model_options *options, uint64_t seed,
                              psld_model **model)
{
    psld_model *made = psld_alloc(1, sizeof *made);
    *model = NULL;
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = from->yaml       ? read_exact(from->yaml, options->process, made)
                         : from->is_exact ? read_exact_file(from->path, options->process, made)
                                          : psld_model_read_network(from->path, options, seed, made);
    if (status == PSLD_OK) status = set_cfg(options->cfg, made);
    if (status == PSLD_OK) status = open_weak(from->path, options, made);
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

static psld_status newest_checkpoint_path(const char *folder, char path[PSLD_CHECKPOINT_PATH])
{
    long *steps;
    size_t count;
    PSLD_TRY(psld_checkpoints_list(folder, &steps, &count));
    psld_status status =
        count ? psld_checkpoints_path(folder, steps[0], path)
              : psld_fail(PSLD_BAD_INPUT,
                          "%s: has no checkpoint; only checkpoints have raw weights and further averages", folder);
    psld_release(steps);
    return status;
}

/* The model of a training run: its averaged weights; other weights are taken from a checkpoint. */
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
                         access(path, F_OK) == 0
                             ? "%s: the training run has no checkpoint yet"
                             : "%s: expected a training run, found a folder without model.safetensors",
                         folder);
    }
    if (options->raw || options->ema != 0) PSLD_TRY(newest_checkpoint_path(checkpoints, path));
    return model_open(&(model_origin){.path = path}, options, 0, model);
}

psld_status psld_model_open_any(const char *path, const psld_model_options *options, psld_model **model)
{
    psld_model_options own;
    *model = NULL;
    PSLD_TRY(read_options(options, &own));
    int exact = psld_text_ends_in(path, ".yaml") || psld_text_ends_in(path, ".yml");
    if (!exact && is_folder(path) && !psld_foreign_is_folder(path)) return open_run(path, &own, model);
    return model_open(&(model_origin){.path = path, .is_exact = exact}, &own, 0, model);
}

psld_status psld_model_parse(const char *text, const char *origin, const psld_model_options *options,
                             psld_model **model)
{
    psld_model_options own;
    psld_yaml *yaml;
    *model = NULL;
    PSLD_TRY(read_options(options, &own));
    PSLD_TRY(psld_yaml_parse(text, strlen(text), origin, &yaml));
    psld_status status = model_open(&(model_origin){.path = origin, .yaml = yaml}, &own, 0, model);
    psld_yaml_free(yaml);
    return status;
}

/* Frees a model that failed, so that the caller gets none. */
static psld_status refuse_formulas(psld_status status, const char *path, psld_model **model)
{
    if (status != PSLD_OK) return status;
    status = psld_model_need_recipe(*model, path);
    if (status == PSLD_OK) return PSLD_OK;
    psld_model_free(*model);
    *model = NULL;
    return status;
}

psld_status psld_model_open(const char *path, const psld_model_options *options, psld_model **model)
{
    return refuse_formulas(psld_model_open_any(path, options, model), path, model);
}

psld_status psld_model_create(const char *config_path, const psld_model_options *options, uint64_t seed,
                              psld_model **model)
{
    psld_model_options own;
    *model = NULL;
    PSLD_TRY(read_options(options, &own));
    own.config = config_path;
    psld_status status = model_open(&(model_origin){0}, &own, seed, model);
    return own.blank ? status : refuse_formulas(status, config_path, model);
}
