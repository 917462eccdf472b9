/* Classes by number, or by the names that the configuration of a model lists. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"
#include "model/model.h"

/* The names, or NULL. */
static const psld_node *class_names(const psld_yaml *yaml)
{
    const psld_node *data = psld_node_get(psld_yaml_root(yaml), "data");
    const psld_node *names = data && psld_node_kind_of(data) == PSLD_NODE_MAP ? psld_node_get(data, "classes") : NULL;
    return names && psld_node_kind_of(names) == PSLD_NODE_LIST && psld_node_size(names) ? names : NULL;
}

/* The class of this name; SIZE_MAX: there is none. */
static psld_status find_name(const psld_node *names, const char *text, size_t classes, size_t *label)
{
    *label = SIZE_MAX;
    for (size_t i = 0; names && i < psld_node_size(names) && i < classes; i++) {
        const char *name;
        PSLD_TRY(psld_node_text(psld_node_at(names, i), &name));
        if (strcmp(name, text) == 0) *label = i;
    }
    return PSLD_OK;
}

/* Lists all names, as many as fit into a message, and suggests the one that was probably meant. */
static psld_status fail_name(const psld_node *names, size_t classes, const char *text)
{
    enum { LISTED = 400 };
    char list[LISTED + 64] = "", meant[PSLD_SUGGESTION_SIZE];
    size_t count = psld_node_size(names) < classes ? psld_node_size(names) : classes, used = 0;
    const char **all = psld_alloc(count ? count : 1, sizeof *all);
    if (!all) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        all[i] = "";
        psld_node_text(psld_node_at(names, i), &all[i]);
        if (used < LISTED)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", i ? ", " : "", all[i]);
        else if (used < sizeof list - 8 && list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, ", ...");
    }
    psld_text_suggest(text, all, count, meant);
    psld_release(all);
    return psld_fail(PSLD_BAD_ARGUMENT, "label: there is no class named \"%.64s\"%s there are %s", text,
                     *meant ? meant : ";", list);
}

/* A number is a class unless it is a name: folders may be called 0, 1, ... in another order. */
static psld_status read_number(const char *text, size_t classes, const psld_node *names, size_t *label)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    int is_number = *text >= '0' && *text <= '9' && *end == 0;
    if (!is_number && names) return fail_name(names, classes, text);
    if (!is_number)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "label: there is no class named \"%.64s\": the model knows its classes by number only, 0 to "
                         "%zu",
                         text, classes - 1);
    if (number >= classes) return psld_fail(PSLD_BAD_ARGUMENT, "label: expected 0 to %zu, found %s", classes - 1, text);
    *label = (size_t)number;
    return PSLD_OK;
}

size_t psld_model_all_classes(const psld_model *model)
{
    return model->classifier ? model->classifier->classes : psld_model_classes(model);
}

/* ---- Items per class --------------------------------------------------------------------------------------------- */

/* "5923,6742,...": one number for each class. */
static psld_status parse_class_counts(const char *text, size_t classes, double *counts)
{
    double sum = 0;
    for (size_t y = 0; y < classes; y++) {
        char word[32];
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 0, text);
        if (!psld_text_number(word, &counts[y]) || !(counts[y] >= 0) || !isfinite(counts[y]) ||
            (text[length] == ',') != (y + 1 < classes))
            return psld_fail(PSLD_BAD_INPUT, PSLD_COUNTS_NOTE ": expected %zu numbers of at least 0", classes);
        sum += counts[y];
        text += length + (text[length] == ',');
    }
    if (sum > 0 && isfinite(sum)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, PSLD_COUNTS_NOTE ": expected a positive sum");
}

psld_status psld_model_read_labels(const char *path, const psld_tensors *file, psld_model *model)
{
    const char *counts = psld_tensors_note(file, PSLD_COUNTS_NOTE), *cfg = psld_tensors_note(file, PSLD_CFG_NOTE);
    size_t classes = psld_model_classes(model);
    if (classes == 0 || model->kind == PSLD_CLASSIFIER) return PSLD_OK;
    if (cfg && (!psld_text_number(cfg, &model->cfg) || !isfinite(model->cfg)))
        return psld_fail(PSLD_BAD_INPUT, "%s: " PSLD_CFG_NOTE ": expected a number, found \"%.40s\"", path, cfg);
    if (!counts) return PSLD_OK;
    model->class_counts = psld_alloc(classes, sizeof *model->class_counts);
    if (!model->class_counts) return PSLD_NO_MEMORY;
    psld_status status = parse_class_counts(counts, classes, model->class_counts);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", path) : status;
}

double psld_model_cfg(const psld_model *model)
{
    return model->cfg;
}

psld_status psld_model_draw_labels(const psld_model *model, uint64_t seed, uint64_t first, size_t count, int32_t *label)
{
    size_t classes = psld_model_classes(model);
    const double *counts = model->class_counts;
    double sum = 0;
    if (classes == 0 || model->kind == PSLD_CLASSIFIER)
        return psld_fail(PSLD_BAD_ARGUMENT, "label: this model takes no labels");
    for (size_t y = 0; y < classes; y++) sum += counts ? counts[y] : 1;
    for (size_t i = 0; i < count; i++) {
        double u;
        size_t y = 0;
        psld_random_uniform(seed, PSLD_FOR_LABEL, first + i, 0, 0, 1, &u);
        for (u *= sum; y + 1 < classes; y++) {
            u -= counts ? counts[y] : 1;
            if (u < 0) break;
        }
        label[i] = (int32_t)y;
    }
    return PSLD_OK;
}

/* ---- By name ----------------------------------------------------------------------------------------------------- */

psld_status psld_model_label(const psld_model *model, const char *text, size_t *label)
{
    psld_yaml *yaml = NULL;
    size_t classes = psld_model_all_classes(model);
    if (classes == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: this model has no classes");
    if (model->network) PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), "configuration", &yaml));
    const psld_node *names = yaml ? class_names(yaml) : NULL;
    psld_status status = find_name(names, text, classes, label);
    if (status == PSLD_OK && *label == SIZE_MAX) status = read_number(text, classes, names, label);
    psld_yaml_free(yaml);
    return status;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

typedef struct label_list {
    int32_t *label; /* NULL: they are counted only */
    size_t count;
} label_list;

static void append_label(label_list *list, int32_t label)
{
    if (list->label) list->label[list->count] = label;
    list->count++;
}

/* One name, number, or "all". A class may also be called "all": names come first. */
static psld_status append_word(const psld_model *model, const char *word, label_list *list)
{
    size_t number = 0, classes = psld_model_classes(model);
    psld_status status = psld_model_label(model, word, &number);
    if (status == PSLD_OK) {
        append_label(list, (int32_t)number);
        return PSLD_OK;
    }
    int none = strcmp(word, "none") == 0, all = strcmp(word, "all") == 0;
    if (none) append_label(list, -1);
    for (size_t y = 0; all && y < classes; y++) append_label(list, (int32_t)y);
    return none || all ? PSLD_OK : status;
}

/* Names may contain commas, so the whole text is tried first. */
static psld_status read_label_list(const psld_model *model, const char *text, label_list *list)
{
    size_t number;
    if (!strchr(text, ',') || psld_model_label(model, text, &number) == PSLD_OK) return append_word(model, text, list);
    for (const char *rest = text, *comma; rest; rest = comma ? comma + 1 : NULL) {
        char word[256];
        rest += strspn(rest, " ");
        comma = strchr(rest, ',');
        size_t length = comma ? (size_t)(comma - rest) : strlen(rest);
        if (length >= sizeof word) return psld_fail(PSLD_BAD_ARGUMENT, "label: \"%.40s...\" is too long", rest);
        if (length == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: a class is missing in \"%.40s\"", text);
        snprintf(word, sizeof word, "%.*s", (int)length, rest);
        PSLD_TRY(append_word(model, word, list));
    }
    return PSLD_OK;
}

psld_status psld_model_labels(const psld_model *model, const char *text, psld_array **labels)
{
    label_list list = {0};
    psld_array *made;
    *labels = NULL;
    if (psld_model_classes(model) == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: this model takes no labels");
    PSLD_TRY(read_label_list(model, text, &list));
    PSLD_TRY(psld_array_create(PSLD_I32, 1, &list.count, &made));
    list = (label_list){.label = made->data};
    psld_status status = read_label_list(model, text, &list);
    if (status == PSLD_OK)
        *labels = made;
    else
        psld_array_free(made);
    return status;
}
