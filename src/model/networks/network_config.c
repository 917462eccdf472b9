/* Configurations of networks, ours and those of published models.
 *
 * Ours:            model: {name: ncsnpp, nf: 128, ...}    data: {size: 32, channels: 3}    process: ...
 * Published:       model: {score_fn: {name: ncsnpp, in_ch: 6, ...}}    data: {image_size: 32}
 *                  or the same under `diffusion:`; classifiers have model.clf_fn, perhaps under `clf:`.
 * The keys inside are the same but for the MLP's. Ours may leave in_ch and out_ch to the process: it has k variables
 * of which some are predicted. */
#include <stdio.h>
#include <string.h>

#include "model/files/process_read.h"
#include "model/networks/network_keys.h"
#include "process/process.h"
#include "process/recipe_read.h"

/* The parts of a configuration: `model` has the network's keys. */
typedef struct config_nodes {
    const psld_node *root, *model, *data;
    int published, classifier;
} config_nodes;

/* A published network: `part` (score_fn, clf_fn) under model, at the top or where such files nest it. */
static void find_published(const psld_node *root, const char *part, config_nodes *nodes)
{
    const psld_node *places[] = {root, psld_node_get(root, "diffusion"), psld_node_get(root, "clf")};
    for (int i = 0; i < 3 && !nodes->model; i++) {
        nodes->model = psld_node_get(psld_node_get(places[i], "model"), part);
        nodes->data = psld_node_get(places[i], "data");
    }
    nodes->published = nodes->model != NULL;
    nodes->classifier = nodes->model && strcmp(part, "clf_fn") == 0;
}

static void find_nodes(const psld_node *root, const char *part, config_nodes *nodes)
{
    *nodes = (config_nodes){.root = root};
    find_published(root, part ? part : "score_fn", nodes);
    if (!nodes->model && !part) find_published(root, "clf_fn", nodes);
    if (nodes->model) return;
    nodes->model = psld_node_get(root, "model");
    nodes->data = psld_node_get(root, "data");
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

/* The same of a process with formulas: as many copies of its variables as give the channels of the data. */
static psld_status channels_from_formulas(const psld_node *node, int channels, psld_network_config *c)
{
    psld_process *process;
    PSLD_TRY(psld_process_from_node(node, 1, &process));
    int copies = channels % process->data == 0 ? channels / process->data : 0;
    int in = copies * process->variables, out = copies * process->noisy_count, data = process->data;
    psld_process_free(process);
    if (!copies || in > PSLD_MAX_VARIABLES || channels > PSLD_MAX_DATA_VARIABLES)
        return psld_node_fail(
            node,
            "the data have %d coordinates; expected a multiple of the recipe's %d, at most %d, and at most "
            "%d variables in all",
            channels, data, PSLD_MAX_DATA_VARIABLES, PSLD_MAX_VARIABLES);
    if (!c->in_ch) c->in_ch = in;
    if (!c->out_ch) c->out_ch = out;
    return PSLD_OK;
}

/* Channels of z and eps from the process: the input has all variables, the output eps of the noisy ones. Input and
 * output of a network of clean data have the channels of the data. */
static psld_status channels_from_process(const config_nodes *nodes, psld_network_config *c)
{
    psld_recipe *recipe = NULL;
    int channels = 0, order[PSLD_MAX_K];
    PSLD_TRY(psld_network_read_int(nodes->data, "channels", 1, 1 << 12, &channels));
    const psld_node *process = psld_node_get(nodes->root, "process");
    if (channels == 0 || !process) return PSLD_OK;
    if (c->predicts == PSLD_OUTPUT_DATA) {
        if (!c->in_ch) c->in_ch = channels;
        if (!c->out_ch) c->out_ch = channels;
        return PSLD_OK;
    }
    if (psld_process_is_full(process)) return channels_from_formulas(process, channels, c);
    PSLD_TRY(psld_recipe_read(process, &recipe));
    if (!c->in_ch) c->in_ch = psld_recipe_get(recipe)->k * channels;
    if (!c->out_ch) c->out_ch = psld_recipe_order(recipe, order) * channels;
    psld_recipe_free(recipe);
    return PSLD_OK;
}

/* Published configurations serve several processes; the authors' scripts set the channels. If the channels of the data
 * are given, those of z and eps follow from them and the process. */
static psld_status channels_of_published(const config_nodes *nodes, psld_network_config *c)
{
    psld_recipe *recipe = NULL;
    int channels = 0, order[PSLD_MAX_K];
    PSLD_TRY(psld_network_read_int(nodes->data, "num_channels", 1, 1 << 12, &channels));
    if (channels == 0 || !psld_process_named(nodes->root)) return PSLD_OK;
    PSLD_TRY(psld_process_read(nodes->root, &recipe));
    c->in_ch = psld_recipe_get(recipe)->k * channels;
    if (!nodes->classifier) c->out_ch = psld_recipe_order(recipe, order) * channels;
    psld_recipe_free(recipe);
    return PSLD_OK;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* Group normalisation has one group for four channels, at most 32 groups, of equal size. */
static int groups_of(int channels)
{
    return channels / 4 < 32 ? channels / 4 : 32;
}

static int groups_fit(int channels)
{
    return channels >= 4 && channels <= PSLD_MAX_CHANNELS && channels % groups_of(channels) == 0;
}

/* The first number of channels that a network of this width cannot normalise; 0: none. The decoder also gets the
 * channels of the encoder, last level first. */
static int misfit(const psld_network_config *c, int nf)
{
    int skips[PSLD_MAX_LEVELS * (PSLD_MAX_BLOCKS + 1) + 1], count = 0;
    skips[count++] = nf;
    for (int i = 0; i < c->levels; i++) {
        int channels = nf * c->ch_mult[i], pieces = c->num_res_blocks + (i + 1 < c->levels);
        if (!groups_fit(channels)) return channels;
        for (int j = 0; j < pieces; j++) skips[count++] = channels;
    }
    if (!groups_fit(nf)) return nf;
    int h = nf * c->ch_mult[c->levels - 1];
    for (int i = c->levels - 1; c->kind == PSLD_NET_UNET && i >= 0; i--)
        for (int j = 0; j <= c->num_res_blocks; j++) {
            int channels = h + skips[--count];
            if (!groups_fit(channels)) return channels;
            h = nf * c->ch_mult[i];
        }
    return 0;
}

static psld_status check_groups(const psld_node *map, const psld_network_config *c)
{
    int channels = misfit(c, c->nf), below = c->nf - 1, above = c->nf + 1;
    if (channels == 0) return PSLD_OK;
    while (below >= 4 && misfit(c, below)) below--;
    while (above <= 2 * c->nf + 64 && misfit(c, above)) above++;
    char better[64] = "another nf or ch_mult";
    if (below >= 4 && above <= 2 * c->nf + 64) snprintf(better, sizeof better, "%d or %d", below, above);
    const psld_node *nf = psld_node_get(map, "nf");
    return psld_node_fail(nf ? nf : map, "%s%d makes %d channels, which cannot be divided into %d equal groups; use %s",
                          nf ? "" : "nf: ", c->nf, channels, groups_of(channels), better);
}

static psld_status check_levels(const psld_node *map, const psld_network_config *c)
{
    if (c->levels < 1) return psld_node_fail(map, "ch_mult: expected at least one level");
    if (c->image_size % c->patch != 0)
        return psld_node_fail(map, "images of %d x %d cannot be cut into patches of %d x %d", c->image_size,
                              c->image_size, c->patch, c->patch);
    if (c->patch > 1 && (c->progressive || c->progressive_input))
        return psld_node_fail(map, "patch: does not go with progressive or progressive_input");
    int size = c->image_size / c->patch;
    if (size % (1 << (c->levels - 1)) != 0)
        return psld_node_fail(map, "%s of %d x %d cannot be halved %d times",
                              c->patch > 1 ? "grids of patches" : "images", size, size, c->levels - 1);
    double sum = 0;
    for (int i = 0; i < c->fir_taps; i++) sum += c->fir_kernel[i];
    if (c->fir && (c->fir_taps < 1 || !(sum != 0)))
        return psld_node_fail(map, "fir_kernel: expected numbers with a sum");
    return check_groups(map, c);
}

static int is_foreign(const psld_network_config *c)
{
    return c->kind == PSLD_NET_SONGUNET || c->kind == PSLD_NET_ADM || c->kind == PSLD_NET_UNET2D;
}

/* The values of NCSN++'s keys for networks of other projects, which do not have these keys. */
static void settle_foreign(psld_network_config *c)
{
    c->predicts = PSLD_OUTPUT_DATA;
    c->resblock_type = c->kind == PSLD_NET_UNET2D ? PSLD_BLOCK_DDPM : PSLD_BLOCK_BIGGAN;
    c->fir = c->kind == PSLD_NET_SONGUNET;
    c->nonlinearity = c->kind == PSLD_NET_UNET2D ? c->nonlinearity : PSLD_SILU;
    if (c->kind != PSLD_NET_UNET2D) c->mid_scale = 1;
}

/* The first number of channels that groups of a fixed number do not divide; 0: there is none. */
static int foreign_misfit(const psld_network_config *c)
{
    for (int i = 0; i < c->levels; i++)
        if (c->nf * c->ch_mult[i] % c->norm_groups != 0) return c->nf * c->ch_mult[i];
    return 0;
}

static psld_status check_foreign(const psld_node *map, const psld_network_config *c)
{
    if (c->image_size % (1 << (c->levels - 1)) != 0)
        return psld_node_fail(map, "images of %d x %d cannot be halved %d times", c->image_size, c->image_size,
                              c->levels - 1);
    for (int i = 0; i < c->levels; i++)
        if (c->nf > PSLD_MAX_CHANNELS / c->ch_mult[i])
            return psld_node_fail(map, "nf: %d times %d channels, expected at most %d", c->nf, c->ch_mult[i],
                                  PSLD_MAX_CHANNELS);
    if (c->kind != PSLD_NET_UNET2D || !foreign_misfit(c)) return PSLD_OK;
    return psld_node_fail(map, "norm_groups: %d channels cannot be divided into %d equal groups", foreign_misfit(c),
                          c->norm_groups);
}

static psld_status check_config(const config_nodes *nodes, psld_network_config *c)
{
    const psld_node *map = nodes->model;
    if (c->kind == PSLD_NET_MLP) c->image_size = 1;
    if (c->image_size == 0) return psld_node_fail(nodes->root, "data.image_size is missing");
    if (c->in_ch == 0)
        return psld_node_fail(
            map, "in_ch is missing; it follows from data.channels and process, of which one is missing, too");
    if (c->kind == PSLD_NET_CLASSIFIER && c->predicts == PSLD_OUTPUT_DATA)
        return psld_node_fail(map, "predicts: a classifier predicts classes");
    if (c->augment && (c->kind != PSLD_NET_UNET || !c->noise_cond))
        return psld_node_fail(map,
                              "augment: expected false but for ncsnpp with noise_cond, whose embedding of the time "
                              "it joins");
    if (c->classes && !c->noise_cond)
        return psld_node_fail(map, "classes: needs noise_cond, since labels join the embedding of the time");
    if (c->out_ch == 0)
        return psld_node_fail(map, "%s is missing", c->kind == PSLD_NET_CLASSIFIER ? "n_cls" : "out_ch");
    if (is_foreign(c)) return check_foreign(map, c);
    return c->kind == PSLD_NET_MLP ? PSLD_OK : check_levels(map, c);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

psld_status psld_network_config_check(const psld_node *root)
{
    static const char *const kinds[] = {
        "score networks of images (ncsnpp)", "classifiers (ncsnpp_clf)", "score networks of vectors (mlp)",
        "networks named songunet",           "networks named adm",       "networks named unet2d"};
    config_nodes nodes;
    psld_network_kind kind = PSLD_NET_UNET;
    find_nodes(root, NULL, &nodes);
    if (!nodes.model || nodes.published) return PSLD_OK;
    PSLD_TRY(psld_network_keys_kind(nodes.model, &kind));
    for (size_t i = 0; i < psld_node_size(nodes.model); i++) {
        int heeding = psld_network_key_kinds(psld_node_key_at(nodes.model, i)); /* the reader refuses unknown keys */
        if (heeding && !(heeding >> kind & 1))
            return psld_node_fail(psld_node_at(nodes.model, i), "has no effect on %s", kinds[kind]);
    }
    return PSLD_OK;
}

psld_status psld_network_config_read(const psld_node *root, const char *part, psld_network_config *config)
{
    config_nodes nodes;
    find_nodes(root, part, &nodes);
    psld_network_keys_default(config);
    if (!nodes.model)
        return psld_node_fail(root, "the network is missing: expected model (or model.score_fn, model.clf_fn)");
    if (!nodes.published) PSLD_TRY(psld_network_keys_check(nodes.model));
    if (nodes.classifier) config->kind = PSLD_NET_CLASSIFIER;
    PSLD_TRY(psld_network_keys_read(nodes.model, config));
    if (is_foreign(config))
        settle_foreign(config);
    else
        PSLD_TRY(psld_network_read_int(nodes.model, "nf", 4, PSLD_MAX_CHANNELS, &config->nf));
    PSLD_TRY(psld_network_read_int(nodes.data, "image_size", 1, PSLD_MAX_IMAGE, &config->image_size));
    PSLD_TRY(psld_network_read_int(nodes.data, "size", 1, PSLD_MAX_IMAGE, &config->image_size));
    if (nodes.published) PSLD_TRY(channels_of_published(&nodes, config));
    if (!config->in_ch || !config->out_ch) PSLD_TRY(channels_from_process(&nodes, config));
    return check_config(&nodes, config);
}
