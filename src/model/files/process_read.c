/* The process that a model's configuration names.
 *
 * Ours: `process`, a recipe. Published: model.sde at the top or under `diffusion` or `clf`, with the authors' keys:
 * name (psld, cld, vpsde), beta_min, beta_max, gamma, nu, kappa, decomp_mode (lower, upper), numerical_eps; other keys
 * there do not concern the process.
 *
 * The loss decides which kernel the network's eps belongs to: `train.loss` of ours (which may be added to any
 * configuration), or `training.mode` of published ones. */
#include "model/files/process_read.h"

#include <string.h>

#include "base/text.h"
#include "process/recipe_read.h"

/* The part of a published configuration that has model.sde; NULL: there is none. */
static const psld_node *find_published(const psld_node *root)
{
    const psld_node *places[] = {root, psld_node_get(root, "diffusion"), psld_node_get(root, "clf")};
    for (int i = 0; i < 3; i++)
        if (psld_node_get(psld_node_get(places[i], "model"), "sde")) return places[i];
    return NULL;
}

/* Sets *value if the key is given, and is not "???". */
static psld_status read_given(const psld_node *sde, const char *key, double *value)
{
    const psld_node *node = psld_node_get(sde, key);
    const char *text = "";
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    return strcmp(text, "???") == 0 || psld_text_same(text, "null") ? PSLD_OK : psld_node_number(node, value);
}

/* Their lower factor has the order x, m. With Gamma > 0 and nu = 0 it needs the eps of both, twice the channels of the
 * data. A network with as many output channels as the data predicts eps of x alone, which belongs to the factor with m
 * first. */
static psld_status read_factor(const psld_node *model, const psld_node *sde, psld_recipe_spec *spec)
{
    const psld_node *mode = psld_node_get(sde, "decomp_mode"), *network = psld_node_get(model, "score_fn");
    const char *text = "lower";
    double in = 0, out = 0;
    if (mode) PSLD_TRY(psld_node_text(mode, &text));
    if (strcmp(text, "lower") != 0 && strcmp(text, "upper") != 0)
        return psld_node_fail(mode, "expected lower or upper, found \"%s\"", text);
    if (network) PSLD_TRY(read_given(network, "in_ch", &in));
    if (network) PSLD_TRY(read_given(network, "out_ch", &out));
    spec->upper = strcmp(text, "upper") == 0;
    spec->natural = !(out > 0 && in == 2 * out);
    return PSLD_OK;
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
    spec->k = 2;
    spec->stabiliser = 1e-9;
    PSLD_TRY(read_given(sde, "beta_min", &spec->beta_min));
    spec->beta_max = spec->beta_min;
    PSLD_TRY(read_given(sde, "beta_max", &spec->beta_max));
    PSLD_TRY(read_given(sde, "gamma", &gamma));
    PSLD_TRY(read_given(sde, "nu", &nu));
    PSLD_TRY(read_given(sde, "kappa", &kappa));
    PSLD_TRY(read_given(sde, "numerical_eps", &spec->stabiliser));
    if (gamma == nu) return psld_node_fail(sde, "gamma = nu = %g: there is no mass with critical damping", gamma);
    spec->mass[0] = 4 / ((gamma - nu) * (gamma - nu));
    spec->init[0] = kappa;
    const double D[4] = {gamma / 2, 0, 0, nu * spec->mass[0] / 2}, Q[4] = {0, -0.5, 0.5, 0};
    memcpy(spec->D, D, sizeof D);
    memcpy(spec->Q, Q, sizeof Q);
    return PSLD_OK;
}

static psld_status read_sde(const psld_node *model, psld_recipe **recipe)
{
    psld_recipe_spec spec = PSLD_RECIPE_SPEC_DEFAULTS;
    const psld_node *sde = psld_node_get(model, "sde"), *name = psld_node_get(sde, "name");
    const char *text = "psld";
    if (name) PSLD_TRY(psld_node_text(name, &text));
    int is_vp = strcmp(text, "vpsde") == 0 || strcmp(text, "vp") == 0;
    if (!is_vp && strcmp(text, "psld") != 0 && strcmp(text, "cld") != 0)
        return psld_node_fail(name, "expected psld, cld or vpsde, found \"%s\"", text);
    strcpy(spec.name, is_vp ? "vp" : strcmp(text, "cld") == 0 ? "cld" : "psld");
    PSLD_TRY(is_vp ? read_vp(sde, &spec) : read_phase_space(sde, &spec));
    if (!is_vp) PSLD_TRY(read_factor(model, sde, &spec));
    psld_status status = psld_recipe_create(&spec, recipe);
    return status == PSLD_BAD_INPUT ? psld_node_fail(sde, "%s", psld_error_text()) : status;
}

int psld_process_named(const psld_node *root)
{
    return psld_node_get(root, "process") != NULL || find_published(root) != NULL;
}

/* Sets the kernel that eps belongs to, if the configuration says with which loss the network was trained. */
static psld_status read_loss(const psld_node *root, const psld_node *published, psld_recipe *recipe)
{
    const psld_node *loss = psld_node_get(psld_node_get(root, "train"), "loss");
    const char *text = "";
    if (!loss && published) loss = psld_node_get(psld_node_get(published, "training"), "mode");
    if (!loss || psld_node_kind_of(loss) != PSLD_NODE_SCALAR) return PSLD_OK;
    PSLD_TRY(psld_node_text(loss, &text));
    int is_dsm = psld_text_same(text, "dsm"), is_hsm = psld_text_same(text, "hsm");
    if (is_hsm && recipe->spec.mode == PSLD_DSM)
        return psld_node_fail(loss, "is hsm, but the process says kernel: dsm; expected the same in both");
    if (is_dsm) psld_recipe_set_mode(recipe, PSLD_DSM);
    return PSLD_OK;
}

psld_status psld_process_read(const psld_node *root, psld_recipe **recipe)
{
    const psld_node *process = psld_node_get(root, "process"), *published = find_published(root);
    *recipe = NULL;
    if (!process && !published)
        return psld_node_fail(root, "process is missing: the recipe that the model was trained for");
    PSLD_TRY(process ? psld_recipe_read(process, recipe) : read_sde(psld_node_get(published, "model"), recipe));
    psld_status status = read_loss(root, published, *recipe);
    if (status == PSLD_OK) return PSLD_OK;
    psld_recipe_free(*recipe);
    *recipe = NULL;
    return status;
}
