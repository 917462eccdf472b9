/* Writes recipes into configurations as numbers, so that the configuration needs no other file. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/files/process_read.h"
#include "process/process.h"
#include "process/recipe_read.h"

enum { NUMBER_ROOM = PSLD_NUMBER_SIZE + 2 }; /* for a number and the separator */

/* "[1, 2]"; returns what follows. */
static char *write_numbers(char *to, size_t count, const double *numbers)
{
    to += sprintf(to, "[");
    char text[PSLD_NUMBER_SIZE];
    for (size_t i = 0; i < count; i++) to += sprintf(to, "%s%s", i ? ", " : "", psld_text_shortest(numbers[i], text));
    return to + sprintf(to, "]");
}

static char *write_matrix(char *to, size_t k, const double *matrix)
{
    to += sprintf(to, "[");
    for (size_t row = 0; row < k; row++) {
        if (row) to += sprintf(to, ", ");
        to = write_numbers(to, k, matrix + row * k);
    }
    return to + sprintf(to, "]");
}

psld_status psld_process_set(psld_yaml *yaml, const psld_recipe_spec *s)
{
    enum { NUMBERS = 2 * PSLD_MATRIX_SIZE + 2 * PSLD_MAX_K + 3, WORDS = 256 };
    char assignment[NUMBERS * NUMBER_ROOM + 4 * PSLD_NAME_SIZE + WORDS], *to = assignment;
    const double beta[2] = {s->beta_min, s->beta_max};
    size_t k = (size_t)s->k;
    to += sprintf(to, "process={name: ");
    to += psld_yaml_put_scalar(s->name, to);
    to = write_matrix(to + sprintf(to, ", D: "), k, s->D);
    to = write_matrix(to + sprintf(to, ", Q: "), k, s->Q);
    to = write_numbers(to + sprintf(to, ", mass: "), k - 1, s->mass);
    to = write_numbers(to + sprintf(to, ", init: "), k - 1, s->init);
    to = write_numbers(to + sprintf(to, ", beta: "), 2, beta);
    char number[PSLD_NUMBER_SIZE];
    to += sprintf(to, ", stabiliser: %s", psld_text_shortest(s->stabiliser, number));
    to += sprintf(to, ", factor: %s", s->upper ? "upper" : s->natural ? "natural" : "lower");
    sprintf(to, "%s}", s->mode == PSLD_DSM ? ", kernel: dsm" : "");
    return psld_yaml_override(yaml, assignment);
}

psld_status psld_process_set_text(psld_yaml *yaml, const char *text)
{
    static const char key[] = "process=\n"; /* in lines of their own */
    char *assignment = psld_alloc(sizeof key + strlen(text), 1);
    if (!assignment) return PSLD_NO_MEMORY;
    sprintf(assignment, "%s%s", key, text);
    psld_status status = psld_yaml_override(yaml, assignment);
    psld_release(assignment);
    return status;
}

static psld_status set_document(psld_yaml *yaml, const psld_yaml *document)
{
    char *text;
    PSLD_TRY(psld_yaml_text(document, &text));
    psld_status status = psld_process_set_text(yaml, text);
    psld_release(text);
    return status;
}

/* A recipe with formulas is written as in its file, with the overrides. */
static psld_status embed_formulas(psld_yaml *yaml, const char *line, int *is_full)
{
    psld_yaml *document;
    PSLD_TRY(psld_recipe_open_document(line, &document));
    *is_full = psld_process_is_full(psld_yaml_root(document));
    psld_status status = *is_full ? set_document(yaml, document) : PSLD_OK;
    psld_yaml_free(document);
    return status;
}

static psld_status spread_line(psld_yaml *yaml, const char *line)
{
    psld_yaml *document;
    char name[PSLD_NAME_SIZE], assignment[PSLD_NAME_SIZE + 32];
    line += strspn(line, " \t");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(line, " \t"), line);
    PSLD_TRY(psld_recipe_open_document(line, &document));
    psld_status status = set_document(yaml, document);
    psld_yaml_free(document);
    if (status != PSLD_OK || !psld_preset_exists(name)) return status;
    snprintf(assignment, sizeof assignment, "process.preset=%s", name);
    return psld_yaml_override(yaml, assignment);
}

psld_status psld_process_spread(psld_yaml *yaml)
{
    const psld_node *node = psld_node_get(psld_yaml_root(yaml), "process");
    const char *text;
    if (!node || psld_node_kind_of(node) != PSLD_NODE_SCALAR) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    char *line = psld_copy_text(text); /* the node is replaced */
    if (!line) return PSLD_NO_MEMORY;
    psld_recipe *recipe;
    psld_status status = PSLD_OK;
    if (!psld_node_may_name_files(node)) { /* then it must be a preset, which this says */
        status = psld_recipe_read(node, &recipe);
        if (status == PSLD_OK) psld_recipe_free(recipe);
    }
    if (status == PSLD_OK) status = spread_line(yaml, line);
    psld_release(line);
    return status;
}

psld_status psld_process_embed(psld_yaml *yaml)
{
    const psld_node *node = psld_node_get(psld_yaml_root(yaml), "process");
    const char *text;
    psld_recipe *recipe;
    char name[PSLD_NAME_SIZE];
    if (!node || psld_node_kind_of(node) != PSLD_NODE_SCALAR) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " \t"), text);
    if (psld_preset_exists(name)) return PSLD_OK;
    if (psld_node_may_name_files(node)) {
        int is_full;
        PSLD_TRY(embed_formulas(yaml, text, &is_full));
        if (is_full) return PSLD_OK;
    }
    PSLD_TRY(psld_recipe_read(node, &recipe));
    psld_status status = psld_process_set(yaml, &recipe->spec);
    psld_recipe_free(recipe);
    return status;
}
