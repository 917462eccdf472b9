/* Writing a tree as YAML: maps in block style, one key a line; lists in flow style, "[1, 2, 2]"; text is quoted
 * wherever it could be taken for anything else. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml.h"

typedef struct writer {
    char *text;
    size_t size, capacity;
    psld_status status; /* the first failure; nothing is written after it */
} writer;

static void put(writer *w, const char *bytes, size_t count)
{
    if (w->status != PSLD_OK) return;
    w->status = psld_grow((void **)&w->text, &w->capacity, w->size + count + 1, 1);
    if (w->status != PSLD_OK) return;
    memcpy(w->text + w->size, bytes, count);
    w->size += count;
    w->text[w->size] = 0;
}

static void put_text(writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* Letters, digits and a few signs can stand alone; everything else goes between quotes. */
static void put_scalar(writer *w, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+./ =";
    size_t length = strlen(text);
    int is_plain =
        length > 0 && strspn(text, "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+./ =") == length;
    if (is_plain && text[0] != ' ' && text[length - 1] != ' ' && strcmp(text, "-") != 0 &&
        strncmp(text, "- ", 2) != 0 && strspn(text, "-") < 3 && (strchr(plain, text[0]) || text[0] == '-')) {
        put_text(w, text);
        return;
    }
    put_text(w, "\"");
    for (; *text; text++) {
        char escaped[8];
        if (*text == '"' || *text == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned)*text);
        else
            snprintf(escaped, sizeof escaped, "%c", *text);
        put_text(w, escaped);
    }
    put_text(w, "\"");
}

static void put_flow(writer *w, const psld_node *node)
{
    const char *text = "";
    psld_node_kind kind = psld_node_kind_of(node);
    if (kind == PSLD_NODE_SCALAR) {
        psld_node_text(node, &text);
        put_scalar(w, text);
        return;
    }
    put_text(w, kind == PSLD_NODE_LIST ? "[" : "{");
    for (size_t i = 0; i < psld_node_size(node); i++) {
        if (i) put_text(w, ", ");
        if (kind == PSLD_NODE_MAP) {
            put_scalar(w, psld_node_key_at(node, i));
            put_text(w, ": ");
        }
        put_flow(w, psld_node_at(node, i));
    }
    put_text(w, kind == PSLD_NODE_LIST ? "]" : "}");
}

static void put_block(writer *w, const psld_node *map, int depth)
{
    for (size_t i = 0; i < psld_node_size(map); i++) {
        const psld_node *value = psld_node_at(map, i);
        for (int d = 0; d < depth; d++) put_text(w, "  ");
        put_scalar(w, psld_node_key_at(map, i));
        if (psld_node_kind_of(value) == PSLD_NODE_MAP && psld_node_size(value) > 0) {
            put_text(w, ":\n");
            put_block(w, value, depth + 1);
        } else {
            put_text(w, ": ");
            put_flow(w, value);
            put_text(w, "\n");
        }
    }
}

psld_status psld_yaml_text(const psld_yaml *yaml, char **text)
{
    writer w = {0};
    const psld_node *root = psld_yaml_root(yaml);
    if (psld_node_kind_of(root) == PSLD_NODE_MAP && psld_node_size(root) > 0) {
        put_block(&w, root, 0);
    } else {
        put_flow(&w, root);
        put_text(&w, "\n");
    }
    if (w.status != PSLD_OK) {
        psld_release(w.text);
        w.text = NULL;
    }
    *text = w.text;
    return w.status;
}
