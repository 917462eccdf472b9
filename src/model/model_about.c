/* Facts about a model: what it predicts, how long it was trained, names of its classes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/model.h"

const char *psld_model_predicts(const psld_model *model)
{
    if (!model->network) return "score";
    if (model->kind == PSLD_CLASSIFIER) return "classes";
    if (model->conditioning.kind != PSLD_CONDITION_OURS) return psld_conditioning_predicts(&model->conditioning);
    return model->network->config.predicts == PSLD_OUTPUT_DATA ? "data" : "eps";
}

const char *psld_model_isa(const psld_model *model)
{
    return model->network ? model->backend->isa : "";
}

const char *psld_model_precision(const psld_model *model)
{
    return model->network ? model->backend->precision : "";
}

const char *psld_model_device(const psld_model *model)
{
    return model->network ? psld_device_of(model->backend)->facts.id : "";
}

/* ---- Steps of training ------------------------------------------------------------------------------------------- */

/* PyTorch Lightning's checkpoints call it global_step. */
uint64_t psld_model_read_steps(const psld_tensors *file)
{
    static const char *const keys[] = {PSLD_STEP_NOTE, "global_step"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t steps;
        const char *note = psld_tensors_note(file, keys[i]);
        if (note && psld_text_integer(note, &steps) && steps > 0) return (uint64_t)steps;
    }
    return 0;
}

/* Calls `use` with the value of two nested keys of a model's configuration, if it is there. The configuration was read
 * before, when the model was made, so the only possible failure is lack of memory. */
static psld_status with_config(const psld_model *model, const char *part, const char *key,
                               void (*use)(const psld_node *node, void *user), void *user)
{
    psld_yaml *yaml;
    if (!model->network) return PSLD_OK;
    PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), "configuration", &yaml));
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(yaml), part), key);
    if (node) use(node, user);
    psld_yaml_free(yaml);
    return PSLD_OK;
}

static void read_steps(const psld_node *node, void *user)
{
    int64_t steps;
    if (psld_node_integer(node, 1, INT64_MAX, &steps) == PSLD_OK) *(uint64_t *)user = (uint64_t)steps;
}

psld_status psld_model_trained(const psld_model *model, uint64_t *steps, uint64_t *planned)
{
    *steps = model->steps;
    *planned = 0;
    return with_config(model, "train", "steps", read_steps, planned);
}

/* ---- Names of classes -------------------------------------------------------------------------------------------- */

typedef struct class_name {
    size_t index;
    char *name;
    size_t size;
} class_name;

static void read_class_name(const psld_node *node, void *user)
{
    const class_name *c = user;
    const char *text;
    if (psld_node_kind_of(node) != PSLD_NODE_LIST || c->index >= psld_node_size(node)) return;
    if (psld_node_text(psld_node_at(node, c->index), &text) == PSLD_OK) snprintf(c->name, c->size, "%s", text);
}

psld_status psld_model_class(const psld_model *model, size_t index, char *name, size_t size)
{
    class_name c = {index, name, size};
    size_t classes = psld_model_all_classes(model);
    if (index >= classes) return psld_fail(PSLD_BAD_ARGUMENT, "class %zu: the model has %zu classes", index, classes);
    snprintf(name, size, "%zu", index);
    return with_config(model, "data", "classes", read_class_name, &c);
}
