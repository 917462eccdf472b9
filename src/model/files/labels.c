/* Classes by number, or by the names that the configuration of a model lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/model.h"

/* The names, or NULL. */
static const psld_node *class_names(const psld_yaml *yaml)
{
    const psld_node *data = psld_node_get(psld_yaml_root(yaml), "data");
    const psld_node *names = data && psld_node_kind_of(data) == PSLD_NODE_MAP ? psld_node_get(data, "classes") : NULL;
    return names && psld_node_kind_of(names) == PSLD_NODE_LIST && psld_node_size(names) ? names : NULL;
}

/* SIZE_MAX: none has this name. */
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

/* All names, as far as a message has room, and the one that was perhaps meant. */
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

/* What is a number, when it is no name: folders may be called 0, 1, ... in an order of their own. */
static psld_status read_number(const char *text, size_t classes, const psld_node *names, size_t *label)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    int is_number = *text >= '0' && *text <= '9' && *end == 0;
    if (!is_number && names) return fail_name(names, classes, text);
    if (!is_number)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "label: there is no class named \"%.64s\": the classifier knows its classes by number only, 0 "
                         "to %zu",
                         text, classes - 1);
    if (number >= classes) return psld_fail(PSLD_BAD_ARGUMENT, "label: expected 0 to %zu, found %s", classes - 1, text);
    *label = (size_t)number;
    return PSLD_OK;
}

psld_status psld_model_label(const psld_model *model, const char *text, size_t *label)
{
    psld_yaml *yaml = NULL;
    size_t classes = model->classifier ? model->classifier->classes : 0;
    if (classes == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: a score network has no classes");
    if (model->kind == PSLD_CLASSIFIER)
        PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), "configuration", &yaml));
    const psld_node *names = yaml ? class_names(yaml) : NULL;
    psld_status status = find_name(names, text, classes, label);
    if (status == PSLD_OK && *label == SIZE_MAX) status = read_number(text, classes, names, label);
    psld_yaml_free(yaml);
    return status;
}
