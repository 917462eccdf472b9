/* The input is a YAML text; what follows its first 0xfe byte, which UTF-8 never has, is an override. Whatever comes out
 * is walked with every reader. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(psld_status status)
{
    const char *text = psld_error_text();
    if (status == PSLD_OK) return;
    if (status != PSLD_BAD_INPUT || !*text || strchr(text, '\n')) abort();
}

static void read_node(const psld_node *node)
{
    static const char *const known[] = {"a", "D", NULL};
    const char *text = NULL;
    double numbers[4];
    int64_t integer = 0;
    int flag = 0;
    check_failure(psld_node_text(node, &text));
    check_failure(psld_node_number(node, numbers));
    check_failure(psld_node_integer(node, -3, 1000, &integer));
    check_failure(psld_node_integer(node, -3, INT64_MAX, &integer));
    check_failure(psld_node_integer(node, INT64_MIN, 1000, &integer));
    check_failure(psld_node_flag(node, &flag));
    check_failure(psld_node_numbers(node, 2, numbers));
    check_failure(psld_node_matrix(node, 2, 2, numbers));
    check_failure(psld_node_check_keys(node, known));
    check_failure(psld_node_fail(node, "wrong"));
}

/* Aliases make thousands of nodes of a few bytes, and every reader that fails writes a message with the node's whole
 * path: the first few tell all that there is to tell, and the others took two fifths of the time. */
enum { NODES_READ = 40 };

static void walk(const psld_node *node, int depth, int *walked)
{
    if (depth > 64) abort();
    if ((*walked)++ < NODES_READ) read_node(node);
    for (size_t i = 0; i < psld_node_size(node); i++) {
        const psld_node *item = psld_node_at(node, i);
        if (psld_node_kind_of(node) == PSLD_NODE_MAP && psld_node_get(node, psld_node_key_at(node, i)) != item) abort();
        walk(item, depth + 1, walked);
    }
}

/* A copy of its own that ends where the bytes end, so that reading beyond them shows. */
static char *copy(const uint8_t *bytes, size_t size, int as_string)
{
    char *text = malloc(size + (as_string ? 1 : 0) + (size == 0));
    if (!text) abort();
    if (size) memcpy(text, bytes, size);
    if (as_string) text[size] = '\0';
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *mark = size ? memchr(data, 0xfe, size) : NULL;
    size_t length = mark ? (size_t)(mark - data) : size;
    char *text = copy(data, length, 0);
    psld_yaml *yaml = NULL;
    psld_status status = psld_yaml_parse(text, length, "fuzz", &yaml);
    check_failure(status);
    if ((status == PSLD_OK) != (yaml != NULL)) abort();
    if (yaml) walk(psld_yaml_root(yaml), 1, &(int){0});
    if (yaml && mark) {
        char *assignment = copy(mark + 1, size - length - 1, 1);
        check_failure(psld_yaml_override(yaml, assignment));
        walk(psld_yaml_root(yaml), 1, &(int){0});
        free(assignment);
    }
    psld_yaml_free(yaml);
    free(text);
    if (psld_alloc_live() != 0) abort();
    return 0;
}
