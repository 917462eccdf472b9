/* Compares two configurations: whether a run may be continued with the new one. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/settings_table.h"

static int may_change(const char *key)
{
    const setting_row *row;
    for (int i = 0; (row = psld_settings_row(i)); i++) {
        char name[SETTING_NAME_SIZE];
        psld_settings_row_name(row, name);
        if (strcmp(name, key) == 0) return row->may_change;
    }
    return 0;
}

static int same_scalar(const char *a, const char *b)
{
    double x, y;
    if (psld_text_number(a, &x) && psld_text_number(b, &y)) return x == y;
    return strcmp(a, b) == 0;
}

/* Whether two trees are equal, except for keys that may change. If not, `key` gets the path of the difference. */
static int same_tree(const psld_node *a, const psld_node *b, char *key, size_t room)
{
    size_t length = strlen(key);
    if (!a || !b || psld_node_kind_of(a) != psld_node_kind_of(b)) return may_change(key);
    if (psld_node_kind_of(a) == PSLD_NODE_SCALAR) {
        const char *left = "", *right = "";
        psld_node_text(a, &left);
        psld_node_text(b, &right);
        return same_scalar(left, right) || may_change(key);
    }
    if (psld_node_kind_of(a) == PSLD_NODE_LIST) {
        if (psld_node_size(a) != psld_node_size(b)) return may_change(key);
        for (size_t i = 0; i < psld_node_size(a); i++)
            if (!same_tree(psld_node_at(a, i), psld_node_at(b, i), key, room)) return 0;
        return 1;
    }
    for (int side = 0; side < 2; side++) {
        const psld_node *map = side ? b : a;
        for (size_t i = 0; i < psld_node_size(map); i++) {
            const char *name = psld_node_key_at(map, i);
            snprintf(key + length, room - length, "%s%s", length ? "." : "", name);
            if (!same_tree(psld_node_get(a, name), psld_node_get(b, name), key, room)) return 0;
        }
    }
    key[length] = 0;
    return 1;
}

/* Writes a node as YAML, "[1, 2]" or "{preset: vp}"; of a long one only the beginning. */
static size_t print_node(const psld_node *node, char *text, size_t room)
{
    const char *value = "";
    size_t used = 0;
    psld_node_kind kind = psld_node_kind_of(node);
    if (kind == PSLD_NODE_SCALAR) {
        psld_node_text(node, &value);
        snprintf(text, room, "%s", *value ? value : "\"\"");
        return strlen(text);
    }
    used += (size_t)snprintf(text, room, kind == PSLD_NODE_LIST ? "[" : "{");
    for (size_t i = 0; i < psld_node_size(node) && used + 8 < room; i++) {
        const char *name = kind == PSLD_NODE_MAP ? psld_node_key_at(node, i) : "";
        snprintf(text + used, room - used, "%s%s%s", i ? ", " : "", name, *name ? ": " : "");
        used += strlen(text + used);
        used += print_node(psld_node_at(node, i), text + used, room - used);
    }
    snprintf(text + used, room - used, kind == PSLD_NODE_LIST ? "]" : "}");
    return strlen(text);
}

static void print_value(const psld_yaml *yaml, const char *key, char *text, size_t room)
{
    const psld_node *node = psld_settings_node(yaml, key);
    snprintf(text, room, "nothing");
    if (node && print_node(node, text, room) + 1 == room) memcpy(text + room - 4, "...", 3);
}

psld_status psld_settings_compare(const psld_yaml *before, const psld_yaml *now, const char *path)
{
    char key[512] = "", old[160], new[160];
    if (same_tree(psld_yaml_root(before), psld_yaml_root(now), key, sizeof key)) return PSLD_OK;
    print_value(before, key, old, sizeof old);
    print_value(now, key, new, sizeof new);
    return psld_fail(PSLD_BAD_INPUT,
                     "%s: belongs to another configuration: %s is %s there and %s now; keep its value, or give another "
                     "folder",
                     path, key, old, new);
}
