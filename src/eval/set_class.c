/* The items of one class of a set as a set of its own. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/data.h"
#include "eval/set.h"

size_t psld_set_classes(const psld_set *set)
{
    if (set->whole) return 0;
    if (set->data) return psld_data_classes(set->data);
    return set->model ? psld_model_classes(set->model) : 0;
}

psld_status psld_set_class(const psld_set *set, size_t index, char *name, size_t size)
{
    if (index >= psld_set_classes(set))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no class %zu, only %zu", set->name, index,
                         psld_set_classes(set));
    if (set->model) return psld_model_class(set->model, index, name, size);
    psld_text_print(name, size, "%s", psld_data_class(set->data, index));
    return PSLD_OK;
}

/* The label that each sample of a model is drawn with. */
static psld_status sample_labels(const psld_set *set, int32_t *label)
{
    const psld_labels *asked = set->sampling.labels;
    if (!asked || !asked->label)
        return psld_model_draw_labels(set->model, set->sampling.seed, 0, (size_t)set->count, label);
    for (uint64_t i = 0; i < set->count; i++) label[i] = asked->label[(i - asked->first) % asked->count];
    return PSLD_OK;
}

static psld_status item_labels(const psld_set *set, int32_t *label)
{
    if (set->model) return sample_labels(set, label);
    for (uint64_t i = 0; i < set->count; i++) label[i] = psld_data_label(set->data, i);
    return PSLD_OK;
}

/* The numbers of the items of a class. */
static psld_status choose_items(const psld_set *set, size_t class, uint64_t *item, uint64_t *count)
{
    int32_t *label = psld_alloc((size_t)set->count, sizeof *label);
    if (!label) return PSLD_NO_MEMORY;
    psld_status status = item_labels(set, label);
    *count = 0;
    for (uint64_t i = 0; status == PSLD_OK && i < set->count; i++)
        if (label[i] >= 0 && (size_t)label[i] == class) item[(*count)++] = i;
    psld_release(label);
    return status;
}

static psld_status copy_part(psld_set *whole, size_t class, psld_set *part)
{
    char name[256];
    PSLD_TRY(psld_set_class(whole, class, name, sizeof name));
    part->whole = whole;
    part->kind = whole->kind;
    part->rank = whole->rank;
    part->size = whole->size;
    memcpy(part->shape, whole->shape, sizeof part->shape);
    part->name = psld_copy_text(name);
    part->item = part->name ? psld_alloc((size_t)whole->count, sizeof *part->item) : NULL;
    if (!part->item) return PSLD_NO_MEMORY;
    PSLD_TRY(choose_items(whole, class, part->item, &part->count));
    if (part->count > 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: has no items of class %s", whole->name, name);
}

psld_status psld_set_of_class(psld_set *set, size_t index, psld_set **part)
{
    *part = NULL;
    if (psld_set_classes(set) == 0) return psld_fail(PSLD_BAD_INPUT, "%s: has no classes", set->name);
    psld_set *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = copy_part(set, index, made);
    if (status == PSLD_OK)
        *part = made;
    else
        psld_set_free(made);
    return status;
}
