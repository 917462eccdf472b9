/* Adds the defaults of keys to a configuration. */
#include "train/settings.h"

#include <stdio.h>
#include <string.h>

#include "train/settings_table.h"

const psld_node *psld_settings_node(const psld_yaml *yaml, const char *key)
{
    const psld_node *node = psld_yaml_root(yaml);
    while (node && *key) {
        char name[256];
        size_t length = strcspn(key, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, key);
        node = psld_node_get(node, name);
        key += length + (key[length] == '.');
    }
    return node;
}

psld_status psld_settings_default(psld_yaml *yaml, const char *key, const char *value)
{
    char assignment[1024];
    if (psld_settings_node(yaml, key)) return PSLD_OK;
    snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return psld_yaml_override(yaml, assignment);
}

/* All keys, or the one named. */
static psld_status set_defaults(psld_yaml *yaml, const char *only)
{
    const setting_row *row;
    for (int i = 0; (row = psld_settings_row(i)); i++) {
        char name[SETTING_NAME_SIZE];
        psld_settings_row_name(row, name);
        if (!only || strcmp(only, name) == 0) PSLD_TRY(psld_settings_default(yaml, name, row->initial));
    }
    return PSLD_OK;
}

psld_status psld_settings_complete(psld_yaml *yaml)
{
    return set_defaults(yaml, NULL);
}

psld_status psld_settings_fill(psld_yaml *yaml, const char *key)
{
    return set_defaults(yaml, key);
}

/* Defaults of versions before the key train.ema_warmup that differ from the present ones. */
static const struct {
    const char *key, *value;
} earlier_defaults[] = {{"train.ema_warmup", "false"}, {"data.held_out", "0.01"}};

psld_status psld_settings_inherit(psld_yaml *before, psld_yaml *now)
{
    int is_earlier = !psld_settings_node(before, "train.ema_warmup");
    for (size_t i = 0; is_earlier && i < sizeof earlier_defaults / sizeof *earlier_defaults; i++) {
        PSLD_TRY(psld_settings_default(before, earlier_defaults[i].key, earlier_defaults[i].value));
        PSLD_TRY(psld_settings_default(now, earlier_defaults[i].key, earlier_defaults[i].value));
    }
    return psld_settings_complete(before);
}
