/* The process that a model's configuration names.
 *
 * Ours: `process`, a recipe. Published: model.sde at the top or under `diffusion` or `clf`, with the authors' keys:
 * name (psld, cld, vpsde), beta_min, beta_max, gamma, nu, kappa, decomp_mode (lower, upper), numerical_eps; other
 * keys there say nothing about the process. */
#include "model/process_read.h"

#include <string.h>

#include "base/text.h"

static const psld_node *find_sde(const psld_node *root)
{
    const psld_node *places[] = {root, psld_node_get(root, "diffusion"), psld_node_get(root, "clf")};
    for (int i = 0; i < 3; i++) {
        const psld_node *sde = psld_node_get(psld_node_get(places[i], "model"), "sde");
        if (sde) return sde;
    }
    return NULL;
}

/* Sets *value if the key is there and not left open ("???"). */
static psld_status read_given(const psld_node *sde, const char *key, double *value)
{
    const psld_node *node = psld_node_get(sde, key);
    const char *text = "";
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    return strcmp(text, "???") == 0 || psld_text_same(text, "null") ? PSLD_OK : psld_node_number(node, value);
}

static psld_status read_vp(const psld_node *sde, psld_recipe_spec *spec)
{
    spec->beta_min = 0.1;
    spec->beta_max = 20;
    PSLD_TRY(read_given(sde, "beta_min", &spec->beta_min));
    return read_given(sde, "beta_max", &spec->beta_max);
}

static psld_status read_phase_space(const psld_node *sde, psld_recipe_spec *spec)
{
    double gamma = 0, nu = 4, kappa = 0.04;
    const psld_node *mode = psld_node_get(sde, "decomp_mode");
    const char *text = "lower";
    spec->k = 2;
    spec->stabiliser = 1e-9;
    PSLD_TRY(read_given(sde, "beta_min", &spec->beta_min));
    spec->beta_max = spec->beta_min;
    PSLD_TRY(read_given(sde, "beta_max", &spec->beta_max));
    PSLD_TRY(read_given(sde, "gamma", &gamma));
    PSLD_TRY(read_given(sde, "nu", &nu));
    PSLD_TRY(read_given(sde, "kappa", &kappa));
    PSLD_TRY(read_given(sde, "numerical_eps", &spec->stabiliser));
    if (mode) PSLD_TRY(psld_node_text(mode, &text));
    if (strcmp(text, "lower") != 0 && strcmp(text, "upper") != 0)
        return psld_node_fail(mode, "expected lower or upper, found \"%s\"", text);
    if (gamma == nu) return psld_node_fail(sde, "gamma = nu = %g leaves no critical mass", gamma);
    spec->upper = strcmp(text, "upper") == 0;
    spec->mass[0] = 4 / ((gamma - nu) * (gamma - nu));
    spec->init[0] = kappa;
    const double D[4] = {gamma / 2, 0, 0, nu * spec->mass[0] / 2}, Q[4] = {0, -0.5, 0.5, 0};
    memcpy(spec->D, D, sizeof D);
    memcpy(spec->Q, Q, sizeof Q);
    return PSLD_OK;
}

static psld_status read_sde(const psld_node *sde, psld_recipe **recipe)
{
    psld_recipe_spec spec;
    const psld_node *name = psld_node_get(sde, "name");
    const char *text = "psld";
    if (name) PSLD_TRY(psld_node_text(name, &text));
    int is_vp = strcmp(text, "vpsde") == 0 || strcmp(text, "vp") == 0;
    if (!is_vp && strcmp(text, "psld") != 0 && strcmp(text, "cld") != 0)
        return psld_node_fail(name, "expected psld, cld or vpsde, found \"%s\"", text);
    psld_recipe_spec_defaults(&spec);
    strcpy(spec.name, is_vp ? "vp" : strcmp(text, "cld") == 0 ? "cld" : "psld");
    PSLD_TRY(is_vp ? read_vp(sde, &spec) : read_phase_space(sde, &spec));
    psld_status status = psld_recipe_create(&spec, recipe);
    return status == PSLD_BAD_INPUT ? psld_node_fail(sde, "%s", psld_error_text()) : status;
}

int psld_process_named(const psld_node *root)
{
    return psld_node_get(root, "process") != NULL || find_sde(root) != NULL;
}

psld_status psld_process_read(const psld_node *root, psld_recipe **recipe)
{
    const psld_node *process = psld_node_get(root, "process"), *sde = find_sde(root);
    *recipe = NULL;
    if (process) return psld_recipe_read(process, recipe);
    if (sde) return read_sde(sde, recipe);
    return psld_node_fail(root, "process is missing: the recipe that the model was trained for");
}
