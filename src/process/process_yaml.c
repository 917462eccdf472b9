/* Recipes with formulas, read from YAML. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "process/process.h"
#include "process/recipe_read.h"

enum { MAX_CONSTANTS = 64, MAX_STEPS = 100000, DEFAULT_STEPS = 400 };

/* The names that formulas of one copy can use: its own variables and the constants. */
typedef struct reader {
    const psld_node *map;
    psld_process *process;
    psld_process_terms *terms;
    int own, copies; /* variables of the file; copies of each */
    char variable[PSLD_MAX_VARIABLES][PSLD_PROCESS_NAME];
    const char *names[PSLD_MAX_VARIABLES], *constants[MAX_CONSTANTS];
    int indices[PSLD_MAX_VARIABLES];
    double values[MAX_CONSTANTS];
    psld_term_names known;
} reader;

int psld_process_is_full(const psld_node *node)
{
    return psld_node_get(node, "H") != NULL;
}

psld_status psld_process_refuse(const psld_node *node)
{
    return psld_node_fail(
        psld_node_get(node, "H"),
        "the recipe depends on the state; here only recipes of matrices are possible (psld recipe, and "
        "psld train and sample of vectors, take both kinds)");
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static psld_status add_variable(reader *r, const psld_node *node, const char *name)
{
    if (!psld_term_may_be_named(name))
        return psld_node_fail(node, "expected a name of letters, digits and _, not that of a function, found \"%.40s\"",
                              name);
    for (int i = 0; i < r->own; i++)
        if (strcmp(r->variable[i], name) == 0) return psld_node_fail(node, "%s is the name of two variables", name);
    if ((r->own + 1) * r->copies > PSLD_MAX_VARIABLES)
        return psld_node_fail(node, "expected at most %d variables in all, copies included", PSLD_MAX_VARIABLES);
    snprintf(r->variable[r->own], PSLD_PROCESS_NAME, "%s", name);
    r->own++;
    return PSLD_OK;
}

static psld_status read_names(reader *r, const char *key)
{
    const psld_node *list = psld_node_get(r->map, key);
    const char *name;
    if (!list) return PSLD_OK;
    if (psld_node_kind_of(list) != PSLD_NODE_LIST) return psld_node_fail(list, "expected a list of names");
    for (size_t i = 0; i < psld_node_size(list); i++) {
        PSLD_TRY(psld_node_text(psld_node_at(list, i), &name));
        PSLD_TRY(add_variable(r, psld_node_at(list, i), name));
    }
    return PSLD_OK;
}

/* Without names: x, m or x, m1, m2, ... by the size of D, as those of matrices. */
static psld_status name_variables(reader *r)
{
    const psld_node *D = psld_node_get(r->map, "D");
    char name[16];
    size_t count = D && psld_node_kind_of(D) == PSLD_NODE_LIST ? psld_node_size(D) : 0;
    if (!psld_node_get(r->map, "data")) {
        PSLD_TRY(add_variable(r, r->map, "x"));
        for (size_t i = 1; !psld_node_get(r->map, "auxiliary") && i < count && i < PSLD_MAX_VARIABLES; i++) {
            snprintf(name, sizeof name, count == 2 ? "m" : "m%zu", i);
            PSLD_TRY(add_variable(r, r->map, name));
        }
    }
    PSLD_TRY(read_names(r, "data"));
    if (r->own < 1) return psld_node_fail(r->map, "data: expected the name of at least one variable");
    r->process->data = psld_node_get(r->map, "data") ? r->own : 1;
    if (r->process->data * r->copies > PSLD_MAX_DATA_VARIABLES)
        return psld_node_fail(r->map, "data: expected at most %d variables of data, found %d", PSLD_MAX_DATA_VARIABLES,
                              r->process->data * r->copies);
    return read_names(r, "auxiliary");
}

static psld_status read_constants(reader *r)
{
    const psld_node *map = psld_node_get(r->map, "constants");
    size_t count = map ? psld_node_size(map) : 0;
    if (map && psld_node_kind_of(map) != PSLD_NODE_MAP) return psld_node_fail(map, "expected names with numbers");
    if (count > MAX_CONSTANTS) return psld_node_fail(map, "expected at most %d constants", MAX_CONSTANTS);
    for (size_t i = 0; i < count; i++) {
        r->constants[i] = psld_node_key_at(map, i);
        PSLD_TRY(psld_node_number(psld_node_at(map, i), &r->values[i]));
        if (!psld_term_may_be_named(r->constants[i]))
            return psld_node_fail(map,
                                  "expected names of letters, digits and _, not that of a function, found \"%.40s\"",
                                  r->constants[i]);
        for (int v = 0; v < r->own; v++)
            if (strcmp(r->variable[v], r->constants[i]) == 0)
                return psld_node_fail(map, "%s is the name of a variable, too", r->constants[i]);
    }
    r->known.constant_count = count;
    return PSLD_OK;
}

/* ---- Formulas ---------------------------------------------------------------------------------------------------- */

static psld_status read_formula(const reader *r, const psld_node *node, psld_term *term)
{
    const char *text;
    PSLD_TRY(psld_node_text(node, &text));
    psld_status status = psld_terms_parse(r->terms->graph, text, &r->known, term);
    return status == PSLD_BAD_INPUT ? psld_node_fail(node, "%s", psld_error_text()) : status;
}

static psld_status read_row(const reader *r, const psld_node *list, psld_term *terms)
{
    if (psld_node_kind_of(list) != PSLD_NODE_LIST || psld_node_size(list) != (size_t)r->own)
        return psld_node_fail(list, "expected a list of %d formulas, one for each variable", r->own);
    for (int i = 0; i < r->own; i++) PSLD_TRY(read_formula(r, psld_node_at(list, (size_t)i), &terms[i]));
    return PSLD_OK;
}

static psld_status require_key(const reader *r, const char *key, const psld_node **node)
{
    *node = psld_node_get(r->map, key);
    return *node ? PSLD_OK : psld_node_fail(r->map, "%s is missing", key);
}

/* Rows of a matrix go to where the copy has them: variable i of copy c is number i copies + c. */
static psld_status read_formula_matrix(const reader *r, const char *key, int copy, psld_term *matrix)
{
    const psld_node *list;
    psld_term row[PSLD_MAX_VARIABLES];
    int n = r->own * r->copies;
    PSLD_TRY(require_key(r, key, &list));
    if (psld_node_kind_of(list) != PSLD_NODE_LIST || psld_node_size(list) != (size_t)r->own)
        return psld_node_fail(list, "expected %d rows of %d formulas, one for each variable", r->own, r->own);
    for (int i = 0; i < r->own; i++) {
        PSLD_TRY(read_row(r, psld_node_at(list, (size_t)i), row));
        for (int j = 0; j < r->own; j++) matrix[(i * r->copies + copy) * n + j * r->copies + copy] = row[j];
    }
    return PSLD_OK;
}

static psld_status read_copy(reader *r, int copy)
{
    const psld_node *node;
    psld_term H, drift[PSLD_MAX_VARIABLES];
    psld_process_terms *t = r->terms;
    for (int i = 0; i < r->own; i++) r->indices[i] = i * r->copies + copy;
    PSLD_TRY(require_key(r, "H", &node));
    PSLD_TRY(read_formula(r, node, &H));
    t->H = psld_term_add(t->graph, t->H, H);
    PSLD_TRY(read_formula_matrix(r, "D", copy, t->D));
    if (!t->has_drift) return read_formula_matrix(r, "Q", copy, t->Q);
    PSLD_TRY(require_key(r, "drift", &node));
    PSLD_TRY(read_row(r, node, drift));
    for (int i = 0; i < r->own; i++) t->drift[i * r->copies + copy] = drift[i];
    return PSLD_OK;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static psld_status read_start(reader *r)
{
    const psld_node *node = psld_node_get(r->map, "init");
    psld_process *p = r->process;
    double values[PSLD_MAX_VARIABLES];
    int auxiliary = r->own - p->data;
    for (int i = 0; i < auxiliary; i++) values[i] = 0.04;
    if (node && psld_node_kind_of(node) == PSLD_NODE_LIST)
        PSLD_TRY(psld_node_numbers(node, (size_t)auxiliary, values));
    else if (node)
        PSLD_TRY(psld_node_number(node, &values[0]));
    for (int i = 0; i < auxiliary; i++) {
        if (node && psld_node_kind_of(node) != PSLD_NODE_LIST) values[i] = values[0];
        if (!(values[i] >= 0)) return psld_node_fail(node, "expected variances of at least 0, found %g", values[i]);
        for (int c = 0; c < r->copies; c++) p->init[(p->data + i) * r->copies + c] = values[i];
    }
    return PSLD_OK;
}

/* [low, high] for all variables, or a list of such pairs. */
static psld_status read_region(reader *r)
{
    const psld_node *node = psld_node_get(r->map, "region");
    psld_process *p = r->process;
    if (!node) return PSLD_OK;
    int each = psld_node_kind_of(node) == PSLD_NODE_LIST && psld_node_size(node) > 0 &&
               psld_node_kind_of(psld_node_at(node, 0)) == PSLD_NODE_LIST;
    if (each && psld_node_size(node) != (size_t)r->own)
        return psld_node_fail(node, "expected [low, high], or such a pair for each of the %d variables", r->own);
    for (int i = 0; i < r->own; i++) {
        double pair[2];
        PSLD_TRY(psld_node_numbers(each ? psld_node_at(node, (size_t)i) : node, 2, pair));
        if (!(pair[0] < pair[1]))
            return psld_node_fail(node, "expected low below high, found %g and %g", pair[0], pair[1]);
        for (int c = 0; c < r->copies; c++) memcpy(p->region[i * r->copies + c], pair, sizeof pair);
    }
    p->has_region = 1;
    return PSLD_OK;
}

static psld_status read_settings(reader *r)
{
    psld_recipe_spec spec = PSLD_RECIPE_SPEC_DEFAULTS; /* of one variable: for name and beta */
    const psld_node *steps = psld_node_get(r->map, "steps");
    int64_t count = DEFAULT_STEPS;
    psld_process *p = r->process;
    PSLD_TRY(psld_recipe_read_named(r->map, &spec));
    snprintf(p->name, sizeof p->name, "%s", spec.name);
    p->beta_min = spec.beta_min;
    p->beta_max = spec.beta_max;
    if (!(p->beta_min >= 0 && p->beta_max >= 0 && p->beta_min + p->beta_max > 0))
        return psld_node_fail(r->map, "beta: expected numbers of at least 0, and not both 0, found %g and %g",
                              p->beta_min, p->beta_max);
    if (steps) PSLD_TRY(psld_node_integer(steps, 10, MAX_STEPS, &count));
    p->steps = (int)count;
    PSLD_TRY(read_start(r));
    return read_region(r);
}

/* Names of the variables of all copies: x, or x_1, x_2, ... */
static void spread_names(const reader *r)
{
    psld_process *p = r->process;
    for (int i = 0; i < r->own; i++)
        for (int c = 0; c < r->copies; c++)
            snprintf(p->variable[i * r->copies + c], PSLD_PROCESS_NAME, r->copies > 1 ? "%s_%d" : "%s", r->variable[i],
                     c + 1);
    p->variables = r->own * r->copies;
    p->data *= r->copies;
}

static psld_status read_full(reader *r)
{
    PSLD_TRY(psld_recipe_check_keys(r->map, PSLD_KEYS_FORMULAS));
    PSLD_TRY(name_variables(r));
    PSLD_TRY(read_constants(r));
    for (int i = 0; i < r->own; i++) r->names[i] = r->variable[i];
    r->known =
        (psld_term_names){(size_t)r->own, r->known.constant_count, r->names, r->indices, r->constants, r->values};
    r->terms->has_drift = psld_node_get(r->map, "drift") != NULL;
    if (r->terms->has_drift && psld_node_get(r->map, "Q"))
        return psld_node_fail(r->map, "expected Q or drift, not both");
    for (int c = 0; c < r->copies; c++) PSLD_TRY(read_copy(r, c));
    PSLD_TRY(read_settings(r));
    spread_names(r);
    return psld_process_build(r->terms, r->process);
}

/* ---- From matrices ----------------------------------------------------------------------------------------------- */

static psld_status fail_size(const psld_recipe_spec *s, int copies)
{
    return psld_fail(PSLD_BAD_INPUT, "recipe %s: %d copies of %d variables are more than %d (%d of them data)", s->name,
                     copies, s->k, PSLD_MAX_VARIABLES, PSLD_MAX_DATA_VARIABLES);
}

/* H = sum z_i^2 / (2 mass_i), and the constants as they are. */
static psld_status from_matrices(const psld_recipe *recipe, int copies, psld_process_terms *t, psld_process *p)
{
    const psld_recipe_spec *s = &recipe->spec;
    int n = s->k * copies;
    if (n > PSLD_MAX_VARIABLES || copies > PSLD_MAX_DATA_VARIABLES) return fail_size(s, copies);
    snprintf(p->name, sizeof p->name, "%s", s->name);
    p->variables = n;
    p->data = copies;
    p->beta_min = s->beta_min;
    p->beta_max = s->beta_max;
    p->steps = DEFAULT_STEPS;
    for (int i = 0; i < n; i++) {
        int a = i / copies;
        double mass = a ? s->mass[a - 1] : 1;
        psld_term z = psld_term_variable(t->graph, i), square = psld_term_multiply(t->graph, z, z);
        t->H =
            psld_term_add(t->graph, t->H, psld_term_multiply(t->graph, psld_term_number(t->graph, 0.5 / mass), square));
        for (int j = i % copies; j < n; j += copies) {
            t->D[i * n + j] = psld_term_number(t->graph, s->D[a * s->k + j / copies]);
            t->Q[i * n + j] = psld_term_number(t->graph, s->Q[a * s->k + j / copies]);
        }
        p->init[i] = a ? s->init[a - 1] * mass : 0;
        const char *form = a == 0 ? "x" : s->k == 2 ? "m" : "m%d";
        char name[16];
        if (a && s->k > 2)
            snprintf(name, sizeof name, "m%d", a);
        else
            snprintf(name, sizeof name, "%s", form);
        snprintf(p->variable[i], PSLD_PROCESS_NAME, copies > 1 ? "%s_%d" : "%s", name, i % copies + 1);
    }
    return psld_process_build(t, p);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static psld_status process_create(const psld_node *map, psld_recipe *recipe, int copies, psld_process **process)
{
    psld_status status = PSLD_NO_MEMORY;
    reader *r = psld_alloc(1, sizeof *r);
    psld_process_terms *terms = r ? psld_alloc(1, sizeof *terms) : NULL;
    psld_process *made = terms ? psld_alloc(1, sizeof *made) : NULL;
    if (made) {
        made->linear = recipe;
        recipe = NULL;
        status = psld_terms_create(&terms->graph);
    }
    if (status == PSLD_OK && made->linear) {
        status = from_matrices(made->linear, copies, terms, made);
    } else if (status == PSLD_OK) {
        *r = (reader){.map = map, .process = made, .terms = terms, .copies = copies};
        status = read_full(r);
    }
    if (terms) psld_terms_free(terms->graph);
    psld_release(terms);
    psld_release(r);
    psld_recipe_free(recipe);
    if (status == PSLD_OK)
        *process = made;
    else
        psld_process_free(made);
    return status;
}

psld_status psld_process_from_node(const psld_node *node, int copies, psld_process **process)
{
    psld_recipe *recipe = NULL;
    *process = NULL;
    if (copies < 1 || copies > PSLD_MAX_DATA_VARIABLES)
        return psld_fail(PSLD_BAD_ARGUMENT, "copies: expected 1 to %d, found %d", PSLD_MAX_DATA_VARIABLES, copies);
    if (!psld_process_is_full(node)) PSLD_TRY(psld_recipe_read(node, &recipe));
    return process_create(node, recipe, copies, process);
}

psld_status psld_process_parse(const char *yaml, const char *origin, int copies, psld_process **process)
{
    psld_yaml *document = NULL;
    *process = NULL;
    PSLD_TRY(psld_yaml_parse(yaml, strlen(yaml), origin, &document));
    psld_status status = psld_process_from_node(psld_yaml_root(document), copies, process);
    psld_yaml_free(document);
    return status;
}

psld_status psld_process_open(const char *text, int copies, psld_process **process)
{
    psld_yaml *document = NULL;
    psld_recipe *recipe = NULL;
    *process = NULL;
    if (copies < 1 || copies > PSLD_MAX_DATA_VARIABLES)
        return psld_fail(PSLD_BAD_ARGUMENT, "copies: expected 1 to %d, found %d", PSLD_MAX_DATA_VARIABLES, copies);
    PSLD_TRY(psld_recipe_open_document(text, &document));
    if (psld_process_is_full(psld_yaml_root(document))) {
        psld_status status = psld_process_from_node(psld_yaml_root(document), copies, process);
        psld_yaml_free(document);
        return status;
    }
    psld_yaml_free(document);
    PSLD_TRY(psld_recipe_open(text, &recipe));
    return process_create(NULL, recipe, copies, process);
}

void psld_process_free(psld_process *process)
{
    if (!process) return;
    psld_recipe_free(process->linear);
    psld_formulas_free(process->motion);
    psld_formulas_free(process->energy);
    psld_formulas_free(process->checks);
    psld_release(process);
}

const char *psld_process_name(const psld_process *process)
{
    return process->name;
}

int psld_process_variables(const psld_process *process)
{
    return process->variables;
}

int psld_process_data(const psld_process *process)
{
    return process->data;
}

const char *psld_process_variable(const psld_process *process, int index)
{
    return index >= 0 && index < process->variables ? process->variable[index] : NULL;
}

const psld_recipe *psld_process_recipe(const psld_process *process)
{
    return process->linear;
}

int psld_process_noisy(const psld_process *process, int variables[PSLD_MAX_VARIABLES])
{
    memcpy(variables, process->noisy, sizeof process->noisy);
    return process->noisy_count;
}
