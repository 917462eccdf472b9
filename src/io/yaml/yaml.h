/* YAML as a tree of scalars, lists and maps, with typed readers that report file, line and key.
 *
 * Every psld_node_* reader fails with one line such as
 *     my.yaml:3: D[1][0]: expected a number, found "abc"
 * so callers only pass the status on. For a value set by an override, the override's text is reported instead of file
 * and line. Aliases are expanded within a budget of nodes; nesting is bounded; a key may occur only once in a map; a
 * file has one document. Tags are ignored; merge keys ("<<") are ordinary keys. */
#ifndef PSLD_IO_YAML_H
#define PSLD_IO_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct psld_yaml psld_yaml; /* a document; owns its nodes */
typedef struct psld_node psld_node;

typedef enum psld_node_kind { PSLD_NODE_SCALAR, PSLD_NODE_LIST, PSLD_NODE_MAP } psld_node_kind;

/* `origin` names the text in messages. Text without a value (empty, or comments alone) is an empty map. */
psld_status psld_yaml_parse(const char *text, size_t size, const char *origin, psld_yaml **yaml);
/* A file that the user named: it may name other files to be opened. Other YAML texts may not, except overrides,
 * which the user wrote, too. */
psld_status psld_yaml_load(const char *path, psld_yaml **yaml);
/* A file that was found in a folder: it may not name other files. */
psld_status psld_yaml_load_found(const char *path, psld_yaml **yaml);
void psld_yaml_free(psld_yaml *yaml);

/* Sets one value: "a.b.c=VALUE", where VALUE is YAML ("[0.1, 20]"). Missing maps on the path are created; it is an
 * error if a value on the path is not a map. Pointers to nodes that it replaces become invalid. */
psld_status psld_yaml_override(psld_yaml *yaml, const char *assignment);

const psld_node *psld_yaml_root(const psld_yaml *yaml);

/* The document as YAML text that reads back as the same tree, including overrides. Release with psld_release. */
psld_status psld_yaml_text(const psld_yaml *yaml, char **text);

/* Writes a text as a scalar that reads back the same, in quotes if it could be taken for anything else; also for
 * values in overrides. Returns the length. `to` has at least PSLD_YAML_ROOM(text) bytes, including the 0 byte. */
#define PSLD_YAML_ROOM(text) (4 * strlen(text) + 3)
size_t psld_yaml_put_scalar(const char *text, char *to);

psld_node_kind psld_node_kind_of(const psld_node *node);
/* Number of list items or map entries; 0 for scalars. */
size_t psld_node_size(const psld_node *node);
/* Item of a list, value of a map entry by position; index < size. */
const psld_node *psld_node_at(const psld_node *node, size_t index);
/* Key of a map entry by position. */
const char *psld_node_key_at(const psld_node *map, size_t index);
/* Value under a key; NULL if the node is NULL, is not a map, or has no such key. */
const psld_node *psld_node_get(const psld_node *map, const char *key);

/* Fails unless `node` is a map whose keys are all in the NULL-terminated list. The message names the unknown key,
 * its line, and the known keys. */
psld_status psld_node_check_keys(const psld_node *node, const char *const *known);

/* Whether the node's text may be used as the name of a file to open. */
int psld_node_may_name_files(const psld_node *node);

/* Any scalar, as it is written: "" or "null" for one without a value. */
psld_status psld_node_text(const psld_node *node, const char **text);
/* A finite number. */
psld_status psld_node_number(const psld_node *node, double *number);
/* An integer from min to max; 1e6 is accepted. */
psld_status psld_node_integer(const psld_node *node, int64_t min, int64_t max, int64_t *integer);
/* true, yes, on: 1; false, no, off: 0. In any case. */
psld_status psld_node_flag(const psld_node *node, int *flag);
/* A list of exactly `count` numbers; a matrix as a list of `rows` lists of `columns` numbers, stored row by row. */
psld_status psld_node_numbers(const psld_node *node, size_t count, double *numbers);
psld_status psld_node_matrix(const psld_node *node, size_t rows, size_t columns, double *numbers);

/* Fails with "<origin>:<line>: <path of keys>: <format>". */
psld_status psld_node_fail(const psld_node *node, const char *format, ...) PSLD_PRINTF(2, 3);
/* The position of a scalar among words separated by '|', in any case of letters; fails with the list of them. */
psld_status psld_node_choice(const psld_node *node, const char *words, int *position);

#endif
