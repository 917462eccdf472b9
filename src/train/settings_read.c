/* Reading a configuration: every key is checked by its row of the table. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "psld_train.h"
#include "train/settings_table.h"

static psld_status read_setting_number(const psld_node *node, const setting_row *row, double *number)
{
    const char *text;
    *number = -1;
    if (row->words && psld_node_text(node, &text) == PSLD_OK && strcmp(text, row->words) == 0) return PSLD_OK;
    PSLD_TRY(psld_node_number(node, number));
    if (*number >= row->min && *number <= row->max) return PSLD_OK;
    char found[PSLD_NUMBER_SIZE];
    return psld_node_fail(node, "expected a number from %g to %g, found %s", row->min, row->max,
                          psld_text_shortest(*number, found));
}

/* Numbers of a list must differ and not be 0; a single 0 means no average. */
static psld_status read_setting_numbers(const psld_node *node, const setting_row *row, psld_number_list *numbers)
{
    size_t most = sizeof numbers->value / sizeof *numbers->value;
    numbers->count = 1;
    if (psld_node_kind_of(node) != PSLD_NODE_LIST) return read_setting_number(node, row, numbers->value);
    numbers->count = psld_node_size(node);
    if (numbers->count < 1 || numbers->count > most)
        return psld_node_fail(node, "expected a number or a list of 1 to %zu, found %zu", most, numbers->count);
    for (size_t i = 0; i < numbers->count; i++) {
        PSLD_TRY(read_setting_number(psld_node_at(node, i), row, &numbers->value[i]));
        if (numbers->value[i] == 0 && numbers->count > 1)
            return psld_node_fail(node, "expected numbers above 0 in a list, found 0");
        for (size_t j = 0; j < i; j++)
            if (numbers->value[j] == numbers->value[i])
                return psld_node_fail(node, "expected different numbers, found %g twice", numbers->value[i]);
    }
    return PSLD_OK;
}

static psld_status read_class_names(const psld_node *node, psld_settings *settings)
{
    if (psld_node_kind_of(node) != PSLD_NODE_LIST)
        return psld_node_fail(node, "expected a list of names, such as [cat, dog]");
    settings->data.class_count = psld_node_size(node);
    settings->data.classes = psld_alloc(settings->data.class_count, sizeof *settings->data.classes);
    if (!settings->data.classes) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < settings->data.class_count; i++)
        PSLD_TRY(psld_node_text(psld_node_at(node, i), &settings->data.classes[i]));
    return PSLD_OK;
}

static psld_status read_setting(const psld_node *node, const setting_row *row, psld_settings *settings)
{
    void *field = (char *)settings + row->offset;
    switch (row->kind) {
    case SETTING_WHOLE:
        return psld_node_integer(node, (int64_t)row->min, (int64_t)row->max, field);
    case SETTING_NUMBER:
        return read_setting_number(node, row, field);
    case SETTING_NUMBERS:
        return read_setting_numbers(node, row, field);
    case SETTING_FLAG:
        return psld_node_flag(node, field);
    case SETTING_WORD:
        return psld_node_choice(node, row->words, field);
    case SETTING_TEXT:
        return psld_node_text(node, field);
    case SETTING_NAMES:
        break;
    }
    return read_class_names(node, settings);
}

static psld_status check_section_keys(const psld_yaml *yaml, const char *section)
{
    enum { MAX_KEYS = 128 };
    const char *known[MAX_KEYS];
    const setting_row *row;
    int count = 0;
    for (int i = 0; (row = psld_settings_row(i)); i++) {
        assert(count < MAX_KEYS - 1);
        if (row->section && strcmp(row->section, section) == 0) known[count++] = row->name;
    }
    known[count] = NULL;
    const psld_node *map = psld_node_get(psld_yaml_root(yaml), section);
    return map ? psld_node_check_keys(map, known) : PSLD_OK;
}

/* The number of the key with this name in a section, or -1: `steps` is train.steps. Keys of a process with the same
 * name come last, as they are rarely meant. */
static int find_section_key(const char *name)
{
    psld_key key = PSLD_KEY_EMPTY;
    int found = -1, of_process = 0;
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        const char *dot = strchr(key.name, '.');
        if (!dot || strcmp(dot + 1, name) != 0 || (found >= 0 && !of_process)) continue;
        of_process = strncmp(key.name, "process.", sizeof "process." - 1) == 0;
        found = i;
    }
    return found;
}

/* Suggests the section of a key that was given at the top. */
static psld_status check_top_keys(const psld_node *root)
{
    static const char *const top[] = {"process", "data", "model", "train", "seed", NULL};
    for (size_t i = 0; psld_node_kind_of(root) == PSLD_NODE_MAP && i < psld_node_size(root); i++) {
        const char *name = psld_node_key_at(root, i);
        psld_key key = PSLD_KEY_EMPTY;
        size_t j = 0;
        while (top[j] && strcmp(top[j], name) != 0) j++;
        int meant = top[j] ? -1 : find_section_key(name);
        if (meant >= 0 && psld_training_key_info(meant, &key))
            return psld_fail(PSLD_BAD_INPUT, "unknown key \"%s\": did you mean \"%s\"?", name, key.name);
    }
    return psld_node_check_keys(root, top);
}

psld_status psld_settings_read(const psld_yaml *yaml, psld_settings *settings)
{
    const setting_row *row;
    memset(settings, 0, sizeof *settings);
    PSLD_TRY(check_top_keys(psld_yaml_root(yaml)));
    PSLD_TRY(check_section_keys(yaml, "data"));
    PSLD_TRY(check_section_keys(yaml, "train"));
    for (int i = 0; (row = psld_settings_row(i)); i++) {
        char name[SETTING_NAME_SIZE];
        psld_settings_row_name(row, name);
        const psld_node *node = psld_settings_node(yaml, name);
        psld_status status = node ? read_setting(node, row, settings) : PSLD_OK;
        if (status == PSLD_OK) continue;
        psld_settings_clear(settings);
        return status;
    }
    return PSLD_OK;
}

void psld_settings_clear(psld_settings *settings)
{
    psld_release(settings->data.classes);
    settings->data.classes = NULL;
}
