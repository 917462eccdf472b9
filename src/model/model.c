/* A model: a score source or a classifier, with its process and the shape of its data. files/ opens and saves it. */
#include "model/model.h"

#include <string.h>

#include "base/alloc.h"

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
    psld_process_free(model->process);
    psld_process_scales_free(model->scales);
    for (int i = 0; i < 2; i++) psld_runner_free(model->runners[i]);
    psld_network_free(model->network);
    if (model->device) psld_device_close(model->device);
    psld_conditioning_clear(&model->conditioning);
    psld_tensors_free(model->file);
    psld_release(model->config);
    psld_release(model->class_counts);
    psld_release(model->rows.z);
    psld_release(model->rows.t);
    psld_release(model->rows.eps);
    psld_release(model->rows.one_hot);
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

const psld_process *psld_model_process(const psld_model *model)
{
    return model->process;
}

const char *psld_model_process_name(const psld_model *model)
{
    return model->process ? model->process->name : model->recipe ? model->recipe->spec.name : NULL;
}

psld_status psld_model_need_recipe(const psld_model *model, const char *path)
{
    if (!model->process) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT,
                     "%s: the model's recipe %s has formulas; such models work with psld sample and psld info only",
                     path, model->process->name);
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
    if (model->kind == PSLD_CLASSIFIER) return (size_t)model->network->config.out_ch;
    return model->source ? psld_source_classes(model->source) : 0;
}
