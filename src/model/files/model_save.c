/* Saving a model. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/files/checksum.h"
#include "model/files/format_version.h"
#include "model/files/tensors_files.h"
#include "model/model.h"

static psld_status collect_parameters(const psld_network *network, const char *prefix, psld_tensors *tensors)
{
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        size_t shape[4];
        char name[sizeof PSLD_STRONG_PREFIX + PSLD_PARAMETER_NAME];
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        for (int d = 0; d < p->rank; d++) shape[d] = (size_t)p->shape[d];
        PSLD_TRY(psld_tensors_add(tensors, name, PSLD_ELEMENT_F32, p->rank, shape, network->at[i]));
    }
    return PSLD_OK;
}

static psld_status collect_weak_tensors(const psld_model *model, psld_tensors *tensors)
{
    char scale[PSLD_NUMBER_SIZE];
    psld_text_shortest(model->weak_scale, scale);
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_WEAK_NOTE, model->weak->config));
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_WEAK_SCALE_NOTE, scale));
    return collect_parameters(model->weak->network, PSLD_WEAK_PREFIX, tensors);
}

static psld_status note_steps(const psld_model *model, psld_tensors *tensors)
{
    char steps[32];
    if (model->steps == 0) return PSLD_OK;
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)model->steps);
    return psld_tensors_set_note(tensors, PSLD_STEP_NOTE, steps);
}

static psld_status note_class_counts(const psld_model *model, psld_tensors *tensors)
{
    size_t classes = psld_model_classes(model), used = 0, room = classes * (PSLD_NUMBER_SIZE + 1) + 1;
    char number[PSLD_NUMBER_SIZE], *text = psld_alloc(room, 1);
    if (!text) return PSLD_NO_MEMORY;
    for (size_t y = 0; y < classes; y++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", y ? "," : "",
                                 psld_text_shortest(model->class_counts[y], number));
    psld_status status = psld_tensors_set_note(tensors, PSLD_COUNTS_NOTE, text);
    psld_release(text);
    return status;
}

static psld_status note_labels(const psld_model *model, psld_tensors *tensors)
{
    char number[PSLD_NUMBER_SIZE];
    if (model->class_counts) PSLD_TRY(note_class_counts(model, tensors));
    if (model->cfg == 1) return PSLD_OK;
    return psld_tensors_set_note(tensors, PSLD_CFG_NOTE, psld_text_shortest(model->cfg, number));
}

/* A model with a weak network needs notes, which only safetensors files have, to distinguish the tensors of both. */
static psld_status collect_model_tensors(const psld_model *model, psld_tensor_format format, psld_tensors *tensors)
{
    int with_weak = model->weak && model->weak->network && format == PSLD_SAFETENSORS;
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CONFIG_NOTE, model->config));
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_FORMAT_NOTE, PSLD_FORMAT_VERSION));
    PSLD_TRY(note_steps(model, tensors));
    PSLD_TRY(note_labels(model, tensors));
    PSLD_TRY(collect_parameters(model->network, with_weak ? PSLD_STRONG_PREFIX : "", tensors));
    return with_weak ? collect_weak_tensors(model, tensors) : PSLD_OK;
}

psld_status psld_model_save(const psld_model *model, const char *path)
{
    psld_tensors *tensors;
    psld_tensor_format format;
    if (!model->network)
        return psld_fail(PSLD_BAD_ARGUMENT, "save: this model is not a network; only networks can be saved");
    PSLD_TRY(psld_tensors_format_of(path, &format));
    PSLD_TRY(psld_tensors_create(&tensors));
    psld_status status = collect_model_tensors(model, format, tensors);
    if (status == PSLD_OK && format == PSLD_SAFETENSORS) status = psld_checksum_note(tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, format, path);
    psld_tensors_free(tensors);
    return status;
}
