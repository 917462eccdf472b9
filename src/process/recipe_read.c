/* Recipes as users write them: a line ("psld gamma=0.02", "mine.yaml beta=4"), or YAML with D and Q, or with drift
 * and noise. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "process/process.h"
#include "process/recipe_read.h"

#define DEFAULT_STABILISER 1e-9 /* "numerical_eps" of the paper, for processes with auxiliary variables */
#define DEFAULT_INIT       0.04

static psld_status read_beta(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *beta = psld_node_get(map, "beta"), *node;
    if (beta && psld_node_kind_of(beta) == PSLD_NODE_LIST) {
        double ends[2];
        PSLD_TRY(psld_node_numbers(beta, 2, ends));
        spec->beta_min = ends[0];
        spec->beta_max = ends[1];
    } else if (beta) {
        PSLD_TRY(psld_node_number(beta, &spec->beta_min));
        spec->beta_max = spec->beta_min;
    }
    if ((node = psld_node_get(map, "beta_min"))) PSLD_TRY(psld_node_number(node, &spec->beta_min));
    if ((node = psld_node_get(map, "beta_max"))) PSLD_TRY(psld_node_number(node, &spec->beta_max));
    return PSLD_OK;
}

/* One number for all auxiliary variables (`mass: 0.25`), or a list with one number per variable. */
static psld_status read_per_auxiliary(const psld_node *node, const psld_recipe_spec *spec, double *numbers)
{
    double all = 0;
    if (psld_node_kind_of(node) == PSLD_NODE_LIST) return psld_node_numbers(node, (size_t)(spec->k - 1), numbers);
    PSLD_TRY(psld_node_number(node, &all));
    for (int i = 0; i < spec->k - 1; i++) numbers[i] = all;
    return PSLD_OK;
}

static psld_status read_init(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *node = psld_node_get(map, "init");
    if (!node) node = psld_node_get(map, "kappa");
    return node ? read_per_auxiliary(node, spec, spec->init) : PSLD_OK;
}

static psld_status read_factor(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *node = psld_node_get(map, "factor");
    const char *text;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    spec->upper = strcmp(text, "upper") == 0;
    spec->natural = strcmp(text, "natural") == 0;
    if (spec->upper || spec->natural || strcmp(text, "lower") == 0) return PSLD_OK;
    return psld_node_fail(node, "expected lower, upper or natural, found \"%s\"", text);
}

static psld_status read_kernel(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *node = psld_node_get(map, "kernel");
    const char *text;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    spec->mode = strcmp(text, "dsm") == 0 ? PSLD_DSM : PSLD_HSM;
    if (spec->mode == PSLD_DSM || strcmp(text, "hsm") == 0) return PSLD_OK;
    return psld_node_fail(node, "expected hsm or dsm, found \"%s\"", text);
}

psld_status psld_recipe_read_named(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *name = psld_node_get(map, "name");
    const char *text;
    if (name) {
        PSLD_TRY(psld_node_text(name, &text));
        snprintf(spec->name, sizeof spec->name, "%s", text);
    }
    return read_beta(map, spec);
}

psld_status psld_recipe_read_common(const psld_node *map, psld_recipe_spec *spec)
{
    spec->stabiliser = spec->k > 1 ? DEFAULT_STABILISER : 0;
    for (int i = 0; i < spec->k - 1; i++) spec->init[i] = DEFAULT_INIT;
    if (!map) return PSLD_OK;
    const psld_node *stabiliser = psld_node_get(map, "stabiliser");
    PSLD_TRY(psld_recipe_read_named(map, spec));
    if (stabiliser) PSLD_TRY(psld_node_number(stabiliser, &spec->stabiliser));
    PSLD_TRY(read_init(map, spec));
    PSLD_TRY(read_kernel(map, spec));
    return read_factor(map, spec);
}

/* A process dz = beta F z dt + sqrt(beta) G dw has the stationary distribution N(0, P^-1), and so is a member of the
 * complete recipe, if and only if Q = -F P^-1 - D with D = G G' / 2 is skew-symmetric. */
static psld_status from_drift_and_noise(const psld_node *map, const double *drift, const double *noise,
                                        psld_recipe_spec *spec)
{
    int k = spec->k, worst = 0;
    psld_matrix_multiply_t(k, noise, noise, spec->D);
    for (int i = 0; i < k * k; i++) {
        int column = i % k;
        spec->D[i] /= 2;
        spec->Q[i] = -drift[i] * (column ? spec->mass[column - 1] : 1) - spec->D[i];
    }
    double off = 0;
    for (int i = 0; i < k * k; i++) {
        double skew = fabs(spec->Q[i] + spec->Q[i % k * k + i / k]);
        if (skew > off) off = skew, worst = i;
    }
    double scale = fmax(psld_matrix_largest(k, spec->Q), psld_matrix_largest(k, spec->D));
    if (off > 1e-10 * scale)
        return psld_node_fail(
            map,
            "this drift and noise do not keep N(0, diag(1, mass)) stationary: Q = -F P^-1 - G G'/2 is "
            "not skew-symmetric, off by %g at [%d][%d]",
            off, worst / k, worst % k);
    for (int i = 0; i < k; i++) /* remove rounding */
        for (int j = 0; j <= i; j++) {
            spec->Q[i * k + j] = 0.5 * (spec->Q[i * k + j] - spec->Q[j * k + i]);
            spec->Q[j * k + i] = -spec->Q[i * k + j];
        }
    return PSLD_OK;
}

static psld_status read_variable_count(const psld_node *matrix, psld_recipe_spec *spec)
{
    size_t k = psld_node_size(matrix);
    if (psld_node_kind_of(matrix) != PSLD_NODE_LIST || k < 1 || k > PSLD_MAX_K)
        return psld_node_fail(matrix, "expected a k x k matrix as a list of rows, k from 1 to %d", PSLD_MAX_K);
    spec->k = (int)k;
    return PSLD_OK;
}

static psld_status read_masses(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *mass = psld_node_get(map, "mass");
    for (int i = 0; i < spec->k - 1; i++) spec->mass[i] = 1;
    return mass ? read_per_auxiliary(mass, spec, spec->mass) : PSLD_OK;
}

static psld_status read_matrices(const psld_node *map, psld_recipe_spec *spec)
{
    const psld_node *D = psld_node_get(map, "D"), *Q = psld_node_get(map, "Q");
    const psld_node *drift = psld_node_get(map, "drift"), *noise = psld_node_get(map, "noise");
    if ((D || Q) ? (!D || !Q || drift || noise) : (!drift || !noise))
        return psld_node_fail(map, "expected D and Q, or drift and noise, and not keys of both pairs");
    const psld_node *first = D ? D : drift, *second = D ? Q : noise;
    double a[PSLD_MATRIX_SIZE], b[PSLD_MATRIX_SIZE];
    PSLD_TRY(read_variable_count(first, spec));
    PSLD_TRY(psld_node_matrix(first, (size_t)spec->k, (size_t)spec->k, a));
    PSLD_TRY(psld_node_matrix(second, (size_t)spec->k, (size_t)spec->k, b));
    PSLD_TRY(read_masses(map, spec));
    if (!D) return from_drift_and_noise(map, a, b, spec);
    psld_matrix_copy(spec->k, a, spec->D);
    psld_matrix_copy(spec->k, b, spec->Q);
    return PSLD_OK;
}

static psld_status read_matrix_recipe(const psld_node *map, psld_recipe **recipe)
{
    psld_recipe_spec spec = PSLD_RECIPE_SPEC_DEFAULTS;
    if (psld_process_is_full(map)) return psld_process_refuse(map);
    PSLD_TRY(psld_recipe_check_keys(map, PSLD_KEYS_MATRICES));
    PSLD_TRY(read_matrices(map, &spec));
    PSLD_TRY(psld_recipe_read_common(map, &spec));
    psld_status status = psld_recipe_create(&spec, recipe);
    return status == PSLD_BAD_INPUT ? psld_node_fail(map, "%s", psld_error_text()) : status;
}

/* A line of text is not accepted here: a recipe file that names a file could name itself. */
static psld_status read_map_or_preset(const psld_node *node, psld_recipe **recipe)
{
    const psld_node *preset = psld_node_get(node, "preset");
    const char *text;
    if (!preset) return read_matrix_recipe(node, recipe);
    PSLD_TRY(psld_node_text(preset, &text));
    psld_status status = psld_preset_read(text, node, recipe);
    return status == PSLD_BAD_INPUT ? psld_node_fail(node, "%s", psld_error_text()) : status;
}

/* Whether a line begins with the name of a preset. */
static int names_preset(const char *line)
{
    char name[PSLD_NAME_SIZE];
    line += strspn(line, " \t");
    int length = (int)strcspn(line, " \t");
    return snprintf(name, sizeof name, "%.*s", length, line) < (int)sizeof name && psld_preset_exists(name);
}

psld_status psld_recipe_read(const psld_node *node, psld_recipe **recipe)
{
    const char *text;
    *recipe = NULL;
    if (psld_node_kind_of(node) != PSLD_NODE_SCALAR) return read_map_or_preset(node, recipe);
    PSLD_TRY(psld_node_text(node, &text));
    if (!psld_node_may_name_files(node) && !names_preset(text))
        return psld_node_fail(node,
                              "expected a preset (%s) or a recipe as a map, found \"%.60s\": a file must not refer to "
                              "another file",
                              psld_preset_names(), text);
    psld_status status = psld_recipe_open(text, recipe);
    return status == PSLD_BAD_INPUT ? psld_node_fail(node, "%s", psld_error_text()) : status;
}

psld_status psld_recipe_parse(const char *yaml, const char *origin, psld_recipe **recipe)
{
    psld_yaml *document = NULL;
    *recipe = NULL;
    PSLD_TRY(psld_yaml_parse(yaml, strlen(yaml), origin, &document));
    psld_status status = read_map_or_preset(psld_yaml_root(document), recipe);
    psld_yaml_free(document);
    return status;
}

/* ---- "NAME key=value key=value" ---------------------------------------------------------------------------------- */

/* Terminates the word that begins at `text` and returns the start of the next assignment. Values may contain spaces
 * ("beta=[0.1, 20]"), so only a space before "key=" is a separator. */
static char *cut_word(char *text)
{
    for (char *space = text; (space = strpbrk(space, " \t")); space++) {
        char *next = space + strspn(space, " \t");
        size_t key = strspn(next, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
        if (*next && !(key > 0 && next[key] == '=')) continue;
        *space = 0;
        return next;
    }
    return text + strlen(text);
}

/* Cuts the name off a line and gives the document: of the file, or empty for a preset, with the overrides. */
static psld_status open_line(char *line, psld_yaml **document)
{
    psld_status status = PSLD_OK;
    char *next = cut_word(line);
    if (psld_preset_exists(line))
        PSLD_TRY(psld_yaml_parse("{}", 2, line, document));
    else if (!strpbrk(line, "./") && access(line, F_OK) != 0)
        return psld_preset_unknown(line);
    else
        PSLD_TRY(psld_yaml_load(line, document));
    while (*next && status == PSLD_OK) {
        char *assignment = next;
        next = cut_word(assignment);
        status = psld_yaml_override(*document, assignment);
    }
    if (status == PSLD_OK) return PSLD_OK;
    psld_yaml_free(*document);
    *document = NULL;
    return status;
}

static psld_status read_line(char *line, psld_recipe **recipe)
{
    psld_yaml *document = NULL;
    PSLD_TRY(open_line(line, &document));
    const psld_node *root = psld_yaml_root(document);
    psld_status status =
        psld_preset_exists(line) ? psld_preset_read(line, root, recipe) : read_map_or_preset(root, recipe);
    psld_yaml_free(document);
    return status;
}

psld_status psld_recipe_open_document(const char *text, psld_yaml **document)
{
    *document = NULL;
    char *line = psld_copy_text(text + strspn(text, " \t"));
    if (!line) return PSLD_NO_MEMORY;
    psld_status status = open_line(line, document);
    psld_release(line);
    return status;
}

psld_status psld_recipe_open(const char *text, psld_recipe **recipe)
{
    *recipe = NULL;
    text += strspn(text, " \t");
    char *line = psld_copy_text(text);
    if (!line) return PSLD_NO_MEMORY;
    psld_status status = read_line(line, recipe);
    psld_release(line);
    return status;
}
