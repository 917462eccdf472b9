/* Builds a tree from libyaml's events.
 *
 * Invariants
 *   1. A node is linked to its parent when it is made, so freeing the root frees everything built before a failure.
 *   2. A node owns its key, its text and its items. `origin` is borrowed from the document, which keeps the file's
 *      name and the text of every override.
 *   3. An alias becomes a copy of its anchor's value. Copies count against the same budget as other nodes, so a text
 *      of a few lines cannot ask for more than MAX_NODES of them ("billion laughs").
 *   4. No node is deeper than MAX_DEPTH, so recursion over a tree is safe. */
#include "io/yaml/yaml.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/files/file.h"

enum {
    MAX_TEXT = 1 << 20,
    MAX_NODES = 100000,
    MAX_DEPTH = 64,
    MAX_KEYS = MAX_DEPTH - 1, /* of an override: the root is above them */
    MAX_ANCHORS = 1000,       /* they are searched one by one */
    MAX_DIRECTIVES = 100,
    ORIGIN_SHOWN = 160, /* bytes of an override that a message quotes */
    VALUE_SHOWN = 60,   /* bytes of a value that a message quotes */
};

struct psld_node {
    psld_node_kind kind;
    const char *origin;
    size_t line; /* from 1; 0: set by an override */
    psld_node *parent;
    size_t index;      /* position in the parent */
    char *key;         /* in a map; else NULL */
    size_t key_line;   /* as line */
    char *text;        /* of a scalar; else NULL */
    psld_node **items; /* of a list or map */
    size_t size, capacity;
    int may_name_files; /* on a root: the user named the file */
};

struct psld_yaml {
    psld_node *root;
    char **origins;
    size_t origin_count, origin_capacity;
};

/* ---- Nodes and messages ------------------------------------------------------------------------------------------ */

static void node_free(psld_node *node)
{
    if (!node) return;
    for (size_t i = 0; i < node->size; i++) node_free(node->items[i]);
    psld_release(node->items);
    psld_release(node->key);
    psld_release(node->text);
    psld_release(node);
}

/* Makes room for one more item. */
static psld_status grow_items(psld_node *node)
{
    void *items = node->items;
    PSLD_TRY(psld_grow(&items, &node->capacity, node->size + 1, sizeof *node->items));
    node->items = items;
    return PSLD_OK;
}

/* The length of the longest beginning of `text` that has at most `limit` bytes and does not end inside a UTF-8
 * character. */
static int shown_length(const char *text, size_t limit)
{
    size_t length = strnlen(text, limit + 1);
    if (length <= limit) return (int)length;
    for (length = limit; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;) length--;
    return (int)length;
}

/* "mixture.weights[2]"; "" for the root. Returns the length. */
static size_t write_path(const psld_node *node, char *path, size_t size)
{
    path[0] = '\0';
    if (!node->parent) return 0;
    size_t used = write_path(node->parent, path, size);
    int length = node->key ? snprintf(path + used, size - used, "%s%s", used ? "." : "", node->key)
                           : snprintf(path + used, size - used, "[%zu]", node->index);
    used += length > 0 ? (size_t)length : 0;
    return used < size ? used : size - 1;
}

/* Fails with "<origin>:<line>: <path of node>: <message>"; empty parts, and the path if an override names it, are
 * left out. */
static psld_status fail_at(const char *origin, size_t line, const psld_node *node, const char *message)
{
    char where[24] = "", path[256] = "";
    if (line) snprintf(where, sizeof where, ":%zu", line);
    size_t length = node ? write_path(node, path, sizeof path) : 0;
    if (!line && strncmp(origin, path, length) == 0 && origin[length] == '=') length = 0;
    return psld_fail(PSLD_BAD_INPUT, "%s%s: %s%s%s", origin, where, length ? path : "", length ? ": " : "", message);
}

psld_status psld_node_fail(const psld_node *node, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return fail_at(node->origin, node->line, node, message);
}

static psld_status fail_expected(const psld_node *node, const char *expected)
{
    if (node->kind != PSLD_NODE_SCALAR)
        return psld_node_fail(node, "expected %s, found a %s", expected, node->kind == PSLD_NODE_LIST ? "list" : "map");
    int shown = shown_length(node->text, VALUE_SHOWN);
    return psld_node_fail(node, "expected %s, found \"%.*s%s\"", expected, shown, node->text,
                          node->text[shown] ? "..." : "");
}

/* ---- Building the tree from events ------------------------------------------------------------------------------- */

typedef struct anchor {
    char *name;
    psld_node *node;
} anchor;

typedef struct builder {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    const char *input;
    const char *origin;
    int is_override; /* no lines in messages */
    size_t node_count;
    anchor *anchors;
    size_t anchor_count, anchor_capacity;
} builder;

static size_t line_of(const builder *b)
{
    return b->is_override ? 0 : b->event.start_mark.line + 1;
}

/* Makes a node under `parent` (NULL: a root). Takes over `key`, also on failure. */
static psld_status add_node(builder *b, psld_node *parent, char *key, psld_node_kind kind, psld_node **node)
{
    *node = NULL;
    psld_status status = PSLD_OK;
    psld_node *n = NULL;
    if (++b->node_count > MAX_NODES)
        status = psld_fail(PSLD_BAD_INPUT, "%s: more than %d values after expanding its aliases", b->origin, MAX_NODES);
    else if (parent)
        status = grow_items(parent);
    if (status == PSLD_OK && !(n = psld_alloc(1, sizeof *n))) status = PSLD_NO_MEMORY;
    if (status != PSLD_OK) {
        psld_release(key);
        return status;
    }
    *n = (psld_node){.kind = kind, .origin = b->origin, .line = line_of(b), .parent = parent, .key = key};
    if (parent) {
        n->index = parent->size;
        parent->items[parent->size++] = n;
    }
    *node = n;
    return PSLD_OK;
}

/* For a parser error libyaml gives line and column; for a reader error only the byte offset. */
static psld_status fail_parser(const builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR) return psld_fail(PSLD_NO_MEMORY, "%s: out of memory", b->origin);
    size_t line = p->problem_mark.line + 1, column = p->problem_mark.column + 1;
    if (p->error == YAML_READER_ERROR) {
        line = column = 1;
        for (size_t i = 0; i < p->problem_offset; i++, column++) {
            if (b->input[i] != '\n') continue;
            line++;
            column = 0;
        }
    }
    char where[64];
    if (!b->is_override)
        snprintf(where, sizeof where, "%zu:%zu", line, column);
    else if (line > 1 && !strchr(b->input, '\n')) /* libyaml puts a line of its own behind the last one */
        snprintf(where, sizeof where, " at the end of the value");
    else
        snprintf(where, sizeof where, " at column %zu of the value", column);
    return psld_fail(PSLD_BAD_INPUT, "%s:%s: %s%s%s", b->origin, where, p->context ? p->context : "",
                     p->context ? ", " : "", p->problem ? p->problem : "not YAML");
}

static psld_status next_event(builder *b)
{
    yaml_event_delete(&b->event);
    return yaml_parser_parse(&b->parser, &b->event) ? PSLD_OK : fail_parser(b);
}

/* A copy of the current scalar. A C string cannot hold the NUL that "\0" in quotes means. */
static psld_status copy_scalar(builder *b, const psld_node *parent, char **text)
{
    const yaml_char_t *value = b->event.data.scalar.value;
    *text = NULL;
    if (memchr(value, '\0', b->event.data.scalar.length))
        return fail_at(b->origin, line_of(b), parent, "the character NUL is not allowed in text");
    *text = psld_copy_text((const char *)value);
    return *text ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status add_anchor(builder *b, const yaml_char_t *name, psld_node *node)
{
    if (!name) return PSLD_OK;
    if (b->anchor_count == MAX_ANCHORS)
        return psld_fail(PSLD_BAD_INPUT, "%s: more than %d anchors", b->origin, MAX_ANCHORS);
    void *anchors = b->anchors;
    PSLD_TRY(psld_grow(&anchors, &b->anchor_capacity, b->anchor_count + 1, sizeof *b->anchors));
    b->anchors = anchors;
    char *copy = psld_copy_text((const char *)name);
    if (!copy) return PSLD_NO_MEMORY;
    b->anchors[b->anchor_count++] = (anchor){copy, node};
    return PSLD_OK;
}

static psld_status fail_depth(builder *b, size_t line)
{
    char message[64];
    snprintf(message, sizeof message, "nested deeper than %d levels", MAX_DEPTH);
    return fail_at(b->origin, line, NULL, message);
}

static psld_status copy_tree(builder *b, const psld_node *source, psld_node *parent, char *key, int depth)
{
    psld_node *node = NULL;
    PSLD_TRY(add_node(b, parent, key, source->kind, &node));
    node->line = source->line;
    node->key_line = source->key_line;
    if (depth > MAX_DEPTH) return fail_depth(b, line_of(b));
    if (source->text && !(node->text = psld_copy_text(source->text))) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < source->size; i++) {
        const psld_node *item = source->items[i];
        char *item_key = item->key ? psld_copy_text(item->key) : NULL;
        if (item->key && !item_key) return PSLD_NO_MEMORY;
        PSLD_TRY(copy_tree(b, item, node, item_key, depth + 1));
    }
    return PSLD_OK;
}

/* Takes over `key`. An anchor may be redefined; an alias means the last definition before it. */
static psld_status build_alias(builder *b, psld_node *parent, char *key, int depth)
{
    const char *name = (const char *)b->event.data.alias.anchor, *problem = "has no anchor before it";
    const psld_node *source = NULL;
    for (size_t i = b->anchor_count; i > 0 && !source; i--)
        if (strcmp(b->anchors[i - 1].name, name) == 0) source = b->anchors[i - 1].node;
    for (const psld_node *n = parent; n && source; n = n->parent) {
        if (n != source) continue;
        problem = "stands inside the value that it names";
        source = NULL;
    }
    if (source) return copy_tree(b, source, parent, key, depth);
    char message[VALUE_SHOWN + 64];
    snprintf(message, sizeof message, "alias *%.*s %s", shown_length(name, VALUE_SHOWN), name, problem);
    psld_release(key);
    return fail_at(b->origin, line_of(b), parent, message);
}

static int compare_node_keys(const void *a, const void *b)
{
    const psld_node *x = *(psld_node *const *)a, *y = *(psld_node *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->index < y->index ? -1 : 1;
}

/* Sorts the keys, because a map may have as many keys as there may be nodes. */
static psld_status check_duplicates(builder *b, const psld_node *map)
{
    if (map->size < 2) return PSLD_OK;
    psld_node **sorted = psld_copy_bytes(map->items, map->size * sizeof *sorted);
    if (!sorted) return PSLD_NO_MEMORY;
    qsort(sorted, map->size, sizeof *sorted, compare_node_keys);
    const psld_node *first = NULL, *second = NULL;
    for (size_t i = 1; i < map->size && !second; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) != 0) continue;
        first = sorted[i - 1];
        second = sorted[i];
    }
    psld_release(sorted);
    if (!second) return PSLD_OK;
    char message[VALUE_SHOWN + 64];
    int length = snprintf(message, sizeof message, "key \"%.*s\" stands twice", shown_length(second->key, VALUE_SHOWN),
                          second->key);
    if (first->key_line && length > 0)
        snprintf(message + length, sizeof message - (size_t)length, ", first on line %zu", first->key_line);
    return fail_at(b->origin, second->key_line, map, message);
}

static psld_status build_node(builder *b, psld_node *parent, char *key, size_t key_line, int depth, psld_node **node);

static psld_status build_list(builder *b, psld_node *list, int depth)
{
    psld_node *item = NULL;
    PSLD_TRY(next_event(b));
    while (b->event.type != YAML_SEQUENCE_END_EVENT) {
        PSLD_TRY(build_node(b, list, NULL, 0, depth + 1, &item));
        PSLD_TRY(next_event(b));
    }
    return PSLD_OK;
}

static psld_status build_map(builder *b, psld_node *map, int depth)
{
    psld_node *value = NULL;
    PSLD_TRY(next_event(b));
    while (b->event.type != YAML_MAPPING_END_EVENT) {
        size_t key_line = line_of(b);
        char *key = NULL;
        if (b->event.type != YAML_SCALAR_EVENT || b->event.data.scalar.anchor)
            return fail_at(b->origin, key_line, map, "a key must be plain text (no list, map, alias or anchor)");
        PSLD_TRY(copy_scalar(b, map, &key));
        psld_status status = next_event(b);
        if (status != PSLD_OK) {
            psld_release(key);
            return status;
        }
        PSLD_TRY(build_node(b, map, key, key_line, depth + 1, &value));
        PSLD_TRY(next_event(b));
    }
    return check_duplicates(b, map);
}

/* Builds the node that begins with the current event; afterwards the current event is the node's last. Takes over
 * `key`. */
static psld_status build_node(builder *b, psld_node *parent, char *key, size_t key_line, int depth, psld_node **node)
{
    const yaml_event_t *event = &b->event;
    *node = NULL;
    if (event->type == YAML_ALIAS_EVENT) {
        PSLD_TRY(build_alias(b, parent, key, depth));
        if (parent) parent->items[parent->size - 1]->key_line = key_line;
        return PSLD_OK;
    }
    int is_list = event->type == YAML_SEQUENCE_START_EVENT, is_map = event->type == YAML_MAPPING_START_EVENT;
    psld_node_kind kind = is_list ? PSLD_NODE_LIST : is_map ? PSLD_NODE_MAP : PSLD_NODE_SCALAR;
    PSLD_TRY(add_node(b, parent, key, kind, node));
    (*node)->key_line = key_line;
    if (depth > MAX_DEPTH) return fail_depth(b, line_of(b));
    if (is_list) {
        PSLD_TRY(add_anchor(b, event->data.sequence_start.anchor, *node));
        return build_list(b, *node, depth);
    }
    if (is_map) {
        PSLD_TRY(add_anchor(b, event->data.mapping_start.anchor, *node));
        return build_map(b, *node, depth);
    }
    PSLD_TRY(add_anchor(b, event->data.scalar.anchor, *node));
    return copy_scalar(b, *node, &(*node)->text);
}

/* Text without a value: an empty map for a configuration, an empty scalar for an assignment. */
static psld_status build_empty(builder *b, psld_node **root)
{
    PSLD_TRY(add_node(b, NULL, NULL, b->is_override ? PSLD_NODE_SCALAR : PSLD_NODE_MAP, root));
    if (b->is_override && !((*root)->text = psld_copy_text(""))) return PSLD_NO_MEMORY;
    return PSLD_OK;
}

static psld_status build_document(builder *b, int depth, psld_node **root)
{
    PSLD_TRY(next_event(b)); /* the start of the stream */
    PSLD_TRY(next_event(b));
    if (b->event.type == YAML_STREAM_END_EVENT) return build_empty(b, root);
    PSLD_TRY(next_event(b));
    PSLD_TRY(build_node(b, NULL, NULL, 0, depth, root));
    PSLD_TRY(next_event(b)); /* the end of the document */
    PSLD_TRY(next_event(b));
    if (b->event.type == YAML_STREAM_END_EVENT) return PSLD_OK;
    return fail_at(b->origin, line_of(b), NULL, "a second document begins here, expected one");
}

/* Refuses what libyaml cannot handle: a NUL byte, which it takes for the end, and thousands of %TAG directives,
 * which take it quadratic time. */
static psld_status check_text(const char *text, size_t size, const char *origin, int is_override)
{
    size_t line = 1, directives = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') line++;
        if (!text[i]) return fail_at(origin, is_override ? 0 : line, NULL, "the byte NUL is not allowed");
        directives += text[i] == '%' && size - i > 4 && memcmp(text + i, "%TAG", 4) == 0;
    }
    if (directives <= MAX_DIRECTIVES) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: more than %d times %%TAG", origin, MAX_DIRECTIVES);
}

/* Parses `text` into a tree whose root is at `depth`. */
static psld_status build_tree(const char *text, size_t size, const char *origin, int is_override, int depth,
                              psld_node **root)
{
    *root = NULL;
    if (size > MAX_TEXT)
        return psld_fail(PSLD_BAD_INPUT, "%s: longer than the %d bytes that it may have", origin, MAX_TEXT);
    PSLD_TRY(check_text(text, size, origin, is_override));
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* libyaml would count the byte order mark as a column */
        text += 3;
        size -= 3;
    }
    builder b = {.input = text, .origin = origin, .is_override = is_override};
    if (!yaml_parser_initialize(&b.parser)) return psld_fail(PSLD_NO_MEMORY, "%s: out of memory", origin);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, size);
    psld_status status = build_document(&b, depth, root);
    if (status != PSLD_OK) {
        node_free(*root);
        *root = NULL;
    }
    for (size_t i = 0; i < b.anchor_count; i++) psld_release(b.anchors[i].name);
    psld_release(b.anchors);
    yaml_event_delete(&b.event);
    yaml_parser_delete(&b.parser);
    return status;
}

/* ---- Documents --------------------------------------------------------------------------------------------------- */

/* Keeps a copy of an override's text, at most ORIGIN_SHOWN bytes, or of a whole file name. */
static psld_status add_origin(psld_yaml *yaml, const char *text, int is_override, const char **origin)
{
    size_t length = strlen(text), shown = is_override ? (size_t)shown_length(text, ORIGIN_SHOWN) : length;
    void *origins = yaml->origins;
    PSLD_TRY(psld_grow(&origins, &yaml->origin_capacity, yaml->origin_count + 1, sizeof *yaml->origins));
    yaml->origins = origins;
    char *copy = psld_alloc(shown + sizeof "...", 1);
    if (!copy) return PSLD_NO_MEMORY;
    memcpy(copy, text, shown);
    if (shown < length) memcpy(copy + shown, "...", sizeof "...");
    *origin = yaml->origins[yaml->origin_count++] = copy;
    return PSLD_OK;
}

psld_status psld_yaml_parse(const char *text, size_t size, const char *origin, psld_yaml **yaml)
{
    *yaml = NULL;
    psld_yaml *y = psld_alloc(1, sizeof *y);
    if (!y) return PSLD_NO_MEMORY;
    const char *kept = NULL;
    psld_status status = add_origin(y, origin, 0, &kept);
    if (status == PSLD_OK) status = build_tree(text, size, kept, 0, 1, &y->root);
    if (status != PSLD_OK) {
        psld_yaml_free(y);
        return status;
    }
    *yaml = y;
    return PSLD_OK;
}

psld_status psld_yaml_load_found(const char *path, psld_yaml **yaml)
{
    *yaml = NULL;
    char *text = NULL;
    size_t size = 0;
    PSLD_TRY(psld_file_read(path, MAX_TEXT, &text, &size));
    psld_status status = psld_yaml_parse(text, size, path, yaml);
    psld_release(text);
    return status;
}

psld_status psld_yaml_load(const char *path, psld_yaml **yaml)
{
    PSLD_TRY(psld_yaml_load_found(path, yaml));
    (*yaml)->root->may_name_files = 1;
    return PSLD_OK;
}

int psld_node_may_name_files(const psld_node *node)
{
    if (node->line == 0) return 1; /* an override */
    while (node->parent) node = node->parent;
    return node->may_name_files;
}

void psld_yaml_free(psld_yaml *yaml)
{
    if (!yaml) return;
    node_free(yaml->root);
    for (size_t i = 0; i < yaml->origin_count; i++) psld_release(yaml->origins[i]);
    psld_release(yaml->origins);
    psld_release(yaml);
}

const psld_node *psld_yaml_root(const psld_yaml *yaml)
{
    return yaml->root;
}

/* ---- Overrides --------------------------------------------------------------------------------------------------- */

/* Splits "a.b.c" into its keys, in place. Returns their number; 0 if a key is empty or there are too many. */
static size_t split_keys(char *path, char *keys[MAX_KEYS])
{
    size_t count = 0;
    for (char *s = path; s; count++) {
        char *dot = strchr(s, '.');
        if (dot == s || !*s || count == MAX_KEYS) return 0;
        keys[count] = s;
        if (dot) *dot++ = '\0';
        s = dot;
    }
    return count;
}

static psld_node *find_entry(const psld_node *map, const char *key)
{
    for (size_t i = 0; i < map->size; i++)
        if (strcmp(map->items[i]->key, key) == 0) return map->items[i];
    return NULL;
}

static int is_null(const psld_node *node)
{
    return node->kind == PSLD_NODE_SCALAR &&
           (!*node->text || strcmp(node->text, "~") == 0 || psld_text_same(node->text, "null"));
}

/* Sets the value of a key in the map, replacing the old one. */
static psld_status set_entry(psld_node *map, const char *key, psld_node *value)
{
    psld_node *old = find_entry(map, key);
    if (!old) PSLD_TRY(grow_items(map));
    value->key = psld_copy_text(key);
    if (!value->key) return PSLD_NO_MEMORY;
    value->parent = map;
    value->index = old ? old->index : map->size++;
    map->items[value->index] = value;
    node_free(old);
    return PSLD_OK;
}

/* Replaces *value by a map that has it as its only entry. */
static psld_status wrap_in_map(const char *key, psld_node **value)
{
    psld_node *map = psld_alloc(1, sizeof *map);
    if (!map) return PSLD_NO_MEMORY;
    map->kind = PSLD_NODE_MAP;
    map->origin = (*value)->origin;
    psld_status status = set_entry(map, key, *value);
    if (status != PSLD_OK)
        node_free(map);
    else
        *value = map;
    return status;
}

/* Stores the value in the tree. The tree is changed only in the last step, after everything that can fail. */
static psld_status assign_value(psld_yaml *yaml, char *const *keys, size_t count, psld_node **value)
{
    psld_node *map = yaml->root;
    const char *origin = (*value)->origin;
    size_t at = 0;
    for (; at + 1 < count && map->kind == PSLD_NODE_MAP; at++) {
        psld_node *next = find_entry(map, keys[at]);
        if (!next || is_null(next)) break;
        map = next;
    }
    if (map->kind != PSLD_NODE_MAP) {
        char path[256];
        if (write_path(map, path, sizeof path) == 0)
            return psld_fail(PSLD_BAD_INPUT, "%s: %s holds no map of keys", origin, map->origin);
        return psld_fail(PSLD_BAD_INPUT, "%s: %s is no map of keys", origin, path);
    }
    for (size_t i = count - 1; i > at; i--) PSLD_TRY(wrap_in_map(keys[i], value));
    PSLD_TRY(set_entry(map, keys[at], *value));
    *value = NULL;
    return PSLD_OK;
}

psld_status psld_yaml_override(psld_yaml *yaml, const char *assignment)
{
    const char *equals = strchr(assignment, '='), *origin = NULL;
    char *keys[MAX_KEYS];
    psld_node *value = NULL;
    PSLD_TRY(add_origin(yaml, assignment, 1, &origin));
    if (!equals || equals == assignment) return psld_fail(PSLD_BAD_INPUT, "%s: expected KEY=VALUE", origin);
    char *path = psld_alloc((size_t)(equals - assignment) + 1, 1);
    if (!path) return PSLD_NO_MEMORY;
    memcpy(path, assignment, (size_t)(equals - assignment));
    size_t count = split_keys(path, keys);
    psld_status status = PSLD_OK;
    if (count == 0)
        status =
            psld_fail(PSLD_BAD_INPUT, "%s: expected 1 to %d keys with '.' between them before '='", origin, MAX_KEYS);
    else
        status = build_tree(equals + 1, strlen(equals + 1), origin, 1, (int)count + 1, &value);
    if (status == PSLD_OK) status = assign_value(yaml, keys, count, &value);
    node_free(value);
    psld_release(path);
    return status;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

psld_node_kind psld_node_kind_of(const psld_node *node)
{
    return node->kind;
}

size_t psld_node_size(const psld_node *node)
{
    return node->size;
}

const psld_node *psld_node_at(const psld_node *node, size_t index)
{
    assert(index < node->size);
    return node->items[index];
}

const char *psld_node_key_at(const psld_node *map, size_t index)
{
    assert(map->kind == PSLD_NODE_MAP && index < map->size);
    return map->items[index]->key;
}

const psld_node *psld_node_get(const psld_node *map, const char *key)
{
    return map && map->kind == PSLD_NODE_MAP ? find_entry(map, key) : NULL;
}

static psld_status fail_unknown(const psld_node *map, const psld_node *item, const char *const *known)
{
    char message[900], meant[PSLD_SUGGESTION_SIZE];
    int shown = shown_length(item->key, VALUE_SHOWN);
    size_t count = 0;
    while (known[count]) count++;
    psld_text_suggest(item->key, known, count, meant);
    int length = snprintf(message, sizeof message, "unknown key \"%.*s%s\"%s known are", shown, item->key,
                          item->key[shown] ? "..." : "", *meant ? meant : ",");
    for (size_t i = 0; known[i] && length > 0 && (size_t)length < sizeof message; i++)
        length += snprintf(message + length, sizeof message - (size_t)length, "%s %s", i ? "," : "", known[i]);
    return fail_at(item->origin, item->key_line, map, message);
}

psld_status psld_node_check_keys(const psld_node *node, const char *const *known)
{
    if (node->kind != PSLD_NODE_MAP) return fail_expected(node, "a map of keys");
    for (size_t i = 0; i < node->size; i++) {
        size_t j = 0;
        while (known[j] && strcmp(known[j], node->items[i]->key) != 0) j++;
        if (!known[j]) return fail_unknown(node, node->items[i], known);
    }
    return PSLD_OK;
}

psld_status psld_node_text(const psld_node *node, const char **text)
{
    if (node->kind != PSLD_NODE_SCALAR) return fail_expected(node, "text");
    *text = node->text;
    return PSLD_OK;
}

psld_status psld_node_number(const psld_node *node, double *number)
{
    double value = 0;
    if (node->kind != PSLD_NODE_SCALAR || !psld_text_number(node->text, &value)) return fail_expected(node, "a number");
    if (!isfinite(value)) return fail_expected(node, "a finite number");
    *number = value;
    return PSLD_OK;
}

/* Also accepts 1e6 and 3.0, up to the largest number below which float64 has every integer. */
static int read_integer(const psld_node *node, int64_t *value)
{
    double number = 0;
    if (node->kind != PSLD_NODE_SCALAR) return 0;
    if (psld_text_integer(node->text, value)) return 1;
    if (!psld_text_number(node->text, &number) || !(fabs(number) <= 0x1p53) || floor(number) != number) return 0;
    *value = (int64_t)number;
    return 1;
}

psld_status psld_node_integer(const psld_node *node, int64_t min, int64_t max, int64_t *integer)
{
    int64_t value = 0;
    if (read_integer(node, &value) && value >= min && value <= max) {
        *integer = value;
        return PSLD_OK;
    }
    char expected[128] = "a whole number";
    if (min != INT64_MIN && max != INT64_MAX)
        snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, min, max);
    else if (min != INT64_MIN)
        snprintf(expected, sizeof expected, "a whole number of at least %" PRId64, min);
    else if (max != INT64_MAX)
        snprintf(expected, sizeof expected, "a whole number of at most %" PRId64, max);
    return fail_expected(node, expected);
}

psld_status psld_node_flag(const psld_node *node, int *flag)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; node->kind == PSLD_NODE_SCALAR && i < 6; i++) {
        if (!psld_text_same(node->text, words[i])) continue;
        *flag = i % 2;
        return PSLD_OK;
    }
    return fail_expected(node, "true or false");
}

/* Fails unless the node is a list of `count` items, which `what` describes in the message. */
static psld_status check_list(const psld_node *node, size_t count, const char *what)
{
    char expected[96];
    snprintf(expected, sizeof expected, "a list of %zu %s", count, what);
    if (node->kind != PSLD_NODE_LIST) return fail_expected(node, expected);
    if (node->size != count) return psld_node_fail(node, "expected %s, found %zu", expected, node->size);
    return PSLD_OK;
}

psld_status psld_node_numbers(const psld_node *node, size_t count, double *numbers)
{
    PSLD_TRY(check_list(node, count, count == 1 ? "number" : "numbers"));
    for (size_t i = 0; i < count; i++) PSLD_TRY(psld_node_number(node->items[i], &numbers[i]));
    return PSLD_OK;
}

psld_status psld_node_matrix(const psld_node *node, size_t rows, size_t columns, double *numbers)
{
    char what[64];
    snprintf(what, sizeof what, "row%s of %zu number%s", rows == 1 ? "" : "s", columns, columns == 1 ? "" : "s");
    PSLD_TRY(check_list(node, rows, what));
    for (size_t i = 0; i < rows; i++) PSLD_TRY(psld_node_numbers(node->items[i], columns, numbers + i * columns));
    return PSLD_OK;
}

psld_status psld_node_choice(const psld_node *node, const char *words, int *position)
{
    const char *text = "";
    char expected[PSLD_CHOICES_SIZE], suggestion[PSLD_SUGGESTION_SIZE];
    PSLD_TRY(psld_node_text(node, &text));
    int found = psld_text_choice(text, words);
    if (found < 0)
        return psld_node_fail(node, "expected %s, found \"%s\"%s", psld_text_choices(words, expected), text,
                              psld_text_suggest_from(text, words, suggestion));
    *position = found;
    return PSLD_OK;
}
