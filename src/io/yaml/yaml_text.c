/* Writes a tree as YAML: maps in block style, one key per line; lists in flow style, "[1, 2, 2]"; text is quoted if
 * it could be taken for anything else. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml/yaml.h"

typedef struct writer {
    char *text;
    size_t size, capacity;
    psld_status status; /* the first failure; nothing is written after it */
} writer;

static void put_yaml_bytes(writer *w, const char *bytes, size_t count)
{
    if (w->status != PSLD_OK) return;
    w->status = psld_grow((void **)&w->text, &w->capacity, w->size + count + 1, 1);
    if (w->status != PSLD_OK) return;
    memcpy(w->text + w->size, bytes, count);
    w->size += count;
    w->text[w->size] = 0;
}

static void put_yaml_text(writer *w, const char *text)
{
    put_yaml_bytes(w, text, strlen(text));
}

/* Letters, digits and a few signs need no quotes, unless the text begins like a list item or the end of a document. */
static int is_plain(const char *text)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+./ =";
    static const char *const marks[] = {"- ", "---", "..."};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strncmp(text, marks[i], strlen(marks[i])) == 0) return 0;
    return length > 0 && strspn(text, alphabet) == length && text[0] != ' ' && text[length - 1] != ' ' &&
           strcmp(text, "-") != 0;
}

size_t psld_yaml_put_scalar(const char *text, char *to)
{
    char *begin = to;
    if (is_plain(text)) return (size_t)sprintf(to, "%s", text);
    *to++ = '"';
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7f) {
            to += sprintf(to, "\\x%02x", byte);
            continue;
        }
        if (byte == '"' || byte == '\\') *to++ = '\\';
        *to++ = *text;
    }
    strcpy(to, "\"");
    return (size_t)(to + 1 - begin);
}

static void put_yaml_scalar(writer *w, const char *text)
{
    if (w->status != PSLD_OK) return;
    w->status = psld_grow((void **)&w->text, &w->capacity, w->size + PSLD_YAML_ROOM(text), 1);
    if (w->status == PSLD_OK) w->size += psld_yaml_put_scalar(text, w->text + w->size);
}

static void put_yaml_flow(writer *w, const psld_node *node)
{
    const char *text = "";
    psld_node_kind kind = psld_node_kind_of(node);
    if (kind == PSLD_NODE_SCALAR) {
        psld_node_text(node, &text);
        put_yaml_scalar(w, text);
        return;
    }
    put_yaml_text(w, kind == PSLD_NODE_LIST ? "[" : "{");
    for (size_t i = 0; i < psld_node_size(node); i++) {
        if (i) put_yaml_text(w, ", ");
        if (kind == PSLD_NODE_MAP) {
            put_yaml_scalar(w, psld_node_key_at(node, i));
            put_yaml_text(w, ": ");
        }
        put_yaml_flow(w, psld_node_at(node, i));
    }
    put_yaml_text(w, kind == PSLD_NODE_LIST ? "]" : "}");
}

static void put_yaml_block(writer *w, const psld_node *map, int depth)
{
    for (size_t i = 0; i < psld_node_size(map); i++) {
        const psld_node *value = psld_node_at(map, i);
        for (int d = 0; d < depth; d++) put_yaml_text(w, "  ");
        put_yaml_scalar(w, psld_node_key_at(map, i));
        if (psld_node_kind_of(value) == PSLD_NODE_MAP && psld_node_size(value) > 0) {
            put_yaml_text(w, ":\n");
            put_yaml_block(w, value, depth + 1);
        } else {
            put_yaml_text(w, ": ");
            put_yaml_flow(w, value);
            put_yaml_text(w, "\n");
        }
    }
}

psld_status psld_yaml_text(const psld_yaml *yaml, char **text)
{
    writer w = {0};
    const psld_node *root = psld_yaml_root(yaml);
    if (psld_node_kind_of(root) == PSLD_NODE_MAP && psld_node_size(root) > 0) {
        put_yaml_block(&w, root, 0);
    } else {
        put_yaml_flow(&w, root);
        put_yaml_text(&w, "\n");
    }
    if (w.status != PSLD_OK) {
        psld_release(w.text);
        w.text = NULL;
    }
    *text = w.text;
    return w.status;
}
