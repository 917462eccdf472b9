/* The table of presets, and how a preset with overrides becomes a recipe.
 *
 * Phase-space presets are PSLD of the paper (Sec. 3.1): D = diag(Gamma, M nu) / 2, Q = [[0, -1], [1, 0]] / 2. With gamma
 * alone, M^-1 = 4 and nu = gamma + 4, which is critical damping. With nu given, M^-1 = (gamma - nu)^2 / 4, which is
 * critical damping, too (App. B.1). m_inv overrides both, and damping is then not critical in general. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "base/text.h"
#include "process/recipe_read.h"

typedef psld_status (*build_fn)(const psld_node *overrides, double gamma, psld_recipe_spec *spec);

static psld_status build_vp(const psld_node *overrides, double gamma, psld_recipe_spec *spec);
static psld_status build_phase_space(const psld_node *overrides, double gamma, psld_recipe_spec *spec);
static psld_status build_third_order(const psld_node *overrides, double gamma, psld_recipe_spec *spec);
static psld_status build_hold(const psld_node *overrides, double gamma, psld_recipe_spec *spec);

enum { HOLD_VARIABLES = 4 }; /* unless n says otherwise */

#define BETA(text)                   \
    {                                \
        "beta", text, PSLD_HELP_BETA \
    }
#define INIT                           \
    {                                  \
        "init", "0.04", PSLD_HELP_INIT \
    }
#define END              \
    {                    \
        NULL, NULL, NULL \
    }

static const psld_preset_parameter vp_parameters[] = {BETA("[0.1, 20]"), END};
static const psld_preset_parameter third_parameters[] = {BETA("8"), INIT, END};
static const psld_preset_parameter hold_parameters[] = {{"n", "4", PSLD_HELP_N}, BETA(NULL), INIT, END};

/* A phase-space preset with this gamma. */
#define PHASE(text, gamma_value, about)                                                          \
    {                                                                                            \
        {.name = text,                                                                           \
         .summary = about,                                                                       \
         .k = 2,                                                                                 \
         .parameters = (const psld_preset_parameter[]){{"gamma", #gamma_value, PSLD_HELP_GAMMA}, \
                                                       {"nu", NULL, PSLD_HELP_NU},               \
                                                       {"m_inv", NULL, PSLD_HELP_M_INV},         \
                                                       BETA("8"),                                \
                                                       INIT,                                     \
                                                       END}},                                    \
            build_phase_space, PSLD_KEYS_PHASE, gamma_value, 8, 8                                \
    }

static const struct preset {
    psld_preset_info info;
    build_fn build;
    unsigned keys; /* the kind of recipe: which keys may be overridden */
    double gamma, beta_min, beta_max;
} table[] = {
    {{.name = "vp",
      .summary = "variance-preserving SDE (Song et al. 2021): no auxiliary variable",
      .k = 1,
      .parameters = vp_parameters},
     build_vp,
     PSLD_KEYS_VP,
     0,
     0.1,
     20},
    PHASE("cld", 0, "critically damped Langevin diffusion (Dockhorn et al. 2022): noise in the momentum alone"),
    PHASE("psld", 0.01, "phase-space Langevin diffusion with the paper's general choice Gamma = 0.01"),
    PHASE("psld-cifar10", 0.02, "PSLD as for CIFAR-10: Gamma = 0.02"),
    PHASE("psld-celeba64", 0.005, "PSLD as for CelebA-64: Gamma = 0.005"),
    PHASE("psld-afhqv2", 0.01, "PSLD as for AFHQv2-128: Gamma = 0.01"),
    {{.name = "told",
      .summary = "third-order Langevin dynamics, critically damped: noise enters two variables away from the data",
      .k = 3,
      .parameters = third_parameters},
     build_third_order,
     PSLD_KEYS_THIRD,
     0,
     8,
     8},
    {{.name = "hold",
      .summary = "Langevin dynamics of any order, critically damped: n variables in a chain, noise in the last one",
      .k = HOLD_VARIABLES,
      .parameters = hold_parameters},
     build_hold,
     PSLD_KEYS_HOLD,
     0,
     0,
     0},
};
enum { ROWS = sizeof table / sizeof *table };

/* Reads a number if the map has the key. */
static psld_status read_optional_number(const psld_node *map, const char *key, double *value, int *given)
{
    const psld_node *node = map ? psld_node_get(map, key) : NULL;
    *given = node != NULL;
    return node ? psld_node_number(node, value) : PSLD_OK;
}

static psld_status build_vp(const psld_node *overrides, double gamma, psld_recipe_spec *spec)
{
    (void)overrides, (void)gamma;
    spec->k = 1;
    spec->D[0] = 0.5;
    return PSLD_OK;
}

static psld_status build_phase_space(const psld_node *overrides, double gamma, psld_recipe_spec *spec)
{
    double nu = 0, m_inv = 0;
    int gamma_given, nu_given, m_inv_given;
    PSLD_TRY(read_optional_number(overrides, "gamma", &gamma, &gamma_given));
    PSLD_TRY(read_optional_number(overrides, "nu", &nu, &nu_given));
    PSLD_TRY(read_optional_number(overrides, "m_inv", &m_inv, &m_inv_given));
    if (!nu_given) nu = gamma + 4;
    if (!m_inv_given) m_inv = nu_given ? (gamma - nu) * (gamma - nu) / 4 : 4;
    if (gamma < 0 || nu < 0)
        return psld_fail(PSLD_BAD_INPUT, "gamma, nu: expected numbers of at least 0, found gamma = %g, nu = %g", gamma,
                         nu);
    if (gamma == nu && !m_inv_given)
        return psld_fail(PSLD_BAD_INPUT,
                         "gamma = nu = %g: no mass gives critical damping; set m_inv, or choose another nu", gamma);
    if (!(m_inv > 0)) return psld_fail(PSLD_BAD_INPUT, "m_inv: expected a positive number, found %g", m_inv);
    spec->k = 2;
    spec->mass[0] = 1 / m_inv;
    spec->D[0] = gamma / 2;
    spec->D[3] = nu * spec->mass[0] / 2;
    spec->Q[1] = -0.5;
    spec->Q[2] = 0.5;
    return PSLD_OK;
}

static psld_status build_third_order(const psld_node *overrides, double gamma, psld_recipe_spec *spec)
{
    (void)overrides, (void)gamma;
    spec->k = 3;
    spec->mass[0] = spec->mass[1] = 1;
    spec->D[8] = 1.5 * sqrt(3.0); /* with these numbers the drift has the triple eigenvalue -sqrt(3)/2 */
    spec->Q[1] = -0.5;
    spec->Q[3] = 0.5;
    spec->Q[5] = -sqrt(2.0);
    spec->Q[7] = sqrt(2.0);
    return PSLD_OK;
}

/* The chain with the characteristic polynomial (s + 1)^n: damping n in the last variable, and the exchange
 *     g_{n-j} = sqrt((n^2 - j^2) / (4 j^2 - 1))        between variables n - j and n - j + 1, counted from 1.
 * All eigenvalues being -1, a longer chain needs a larger beta for the same noise; with these it is sigma(1) = 100. */
static psld_status build_hold(const psld_node *overrides, double gamma, psld_recipe_spec *spec)
{
    static const double beta[PSLD_MAX_K + 1] = {0, 0, 6.9642, 8.8912, 10.645, 12.299, 13.884, 15.419, 16.917};
    const psld_node *node = overrides ? psld_node_get(overrides, "n") : NULL;
    int64_t n = HOLD_VARIABLES;
    (void)gamma;
    if (node) PSLD_TRY(psld_node_integer(node, 2, PSLD_MAX_K, &n));
    int k = (int)n;
    spec->k = k;
    spec->beta_min = spec->beta_max = beta[k];
    spec->D[k * k - 1] = k;
    for (int i = 0; i < k - 1; i++) spec->mass[i] = 1;
    for (int j = 1; j < k; j++) {
        int row = k - j - 1; /* of variable n - j */
        double g = sqrt((double)(k * k - j * j) / (4 * j * j - 1));
        spec->Q[row * k + row + 1] = -g;
        spec->Q[(row + 1) * k + row] = g;
    }
    return PSLD_OK;
}

static const struct preset *preset_row(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].info.name, name) == 0) return &table[i];
    return NULL;
}

static psld_status read_preset_spec(const struct preset *row, const psld_node *overrides, psld_recipe_spec *spec)
{
    *spec = (psld_recipe_spec)PSLD_RECIPE_SPEC_DEFAULTS;
    memset(spec->D, 0, sizeof spec->D);
    snprintf(spec->name, sizeof spec->name, "%s", row->info.name);
    spec->beta_min = row->beta_min;
    spec->beta_max = row->beta_max;
    if (overrides) PSLD_TRY(psld_recipe_check_keys(overrides, row->keys));
    PSLD_TRY(row->build(overrides, row->gamma, spec));
    return psld_recipe_read_common(overrides, spec);
}

static const char *suggest_preset(const char *name, char text[PSLD_SUGGESTION_SIZE])
{
    const char *names[ROWS];
    for (int i = 0; i < ROWS; i++) names[i] = table[i].info.name;
    return psld_text_suggest(name, names, ROWS, text);
}

psld_status psld_preset_unknown(const char *name)
{
    char text[PSLD_SUGGESTION_SIZE];
    return psld_fail(PSLD_BAD_INPUT, "%s: neither a preset (%s) nor a recipe file%s", name, psld_preset_names(),
                     suggest_preset(name, text));
}

psld_status psld_preset_read(const char *name, const psld_node *overrides, psld_recipe **recipe)
{
    psld_recipe_spec spec;
    char text[PSLD_SUGGESTION_SIZE];
    *recipe = NULL;
    const struct preset *row = preset_row(name);
    if (!row)
        return psld_fail(PSLD_BAD_INPUT, "%s: no such preset; there are %s%s", name, psld_preset_names(),
                         suggest_preset(name, text));
    psld_status status = read_preset_spec(row, overrides, &spec);
    if (status == PSLD_OK) status = psld_recipe_create(&spec, recipe);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "preset %s", name) : status;
}

int psld_preset_exists(const char *name)
{
    return preset_row(name) != NULL;
}

const char *psld_preset_names(void)
{
    static _Thread_local char names[ROWS * PSLD_NAME_SIZE];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", table[i].info.name);
    return names;
}

const psld_preset_info *psld_preset_at(int index)
{
    return PSLD_TABLE_AT(table, index);
}

const psld_preset_info *psld_preset_find(const char *name)
{
    return PSLD_TABLE_FIND(table, "preset", name);
}
