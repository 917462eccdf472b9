/* Configurations of networks, ours and those of published models.
 *
 * Ours:            model: {name: ncsnpp, nf: 128, ...}    data: {size: 32, channels: 3}    process: ...
 * Published:       model: {score_fn: {name: ncsnpp, in_ch: 6, ...}}    data: {image_size: 32}
 *                  or the same under `diffusion:`; classifiers have model.clf_fn, perhaps under `clf:`.
 * The keys inside are the same but for the MLP's. Ours may leave in_ch and out_ch to the process: it has k variables
 * of which some are predicted. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/network.h"
#include "model/process_read.h"
#include "process/recipe.h"

enum { MAX_CHANNELS = 1 << 16, MAX_IMAGE = 1 << 12 };

/* What a configuration is read from: `model` has the network's keys. */
typedef struct config_nodes {
    const psld_node *root, *model, *data;
    int published, classifier;
} config_nodes;

/* NULL where there is nothing, or "???": a value to be given later. */
static const psld_node *present(const psld_node *map, const char *key)
{
    const psld_node *node = psld_node_get(map, key);
    const char *text = "";
    if (!node || psld_node_kind_of(node) != PSLD_NODE_SCALAR) return node;
    return psld_node_text(node, &text) == PSLD_OK && *text && strcmp(text, "???") != 0 && !psld_text_same(text, "null")
               ? node
               : NULL;
}

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

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static psld_status read_int(const psld_node *map, const char *key, int min, int max, int *value)
{
    const psld_node *node = present(map, key);
    int64_t number = 0;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_integer(node, min, max, &number));
    *value = (int)number;
    return PSLD_OK;
}

static psld_status read_number(const psld_node *map, const char *key, double min, double max, double *value)
{
    const psld_node *node = present(map, key);
    double number = 0;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_number(node, &number));
    if (!(number >= min && number <= max))
        return psld_node_fail(node, "expected a number from %g to %g, found %g", min, max, number);
    *value = number;
    return PSLD_OK;
}

static psld_status read_flag(const psld_node *map, const char *key, int *flag)
{
    const psld_node *node = present(map, key);
    return node ? psld_node_flag(node, flag) : PSLD_OK;
}

/* One of a list of words, in any case; its position. */
static psld_status read_word(const psld_node *map, const char *key, const char *const *words, int *which)
{
    const psld_node *node = present(map, key);
    const char *text;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    for (int i = 0; words[i]; i++)
        if (psld_text_same(text, words[i])) {
            *which = i;
            return PSLD_OK;
        }
    char expected[128] = "";
    for (int i = 0; words[i]; i++) {
        if (i) strncat(expected, words[i + 1] ? ", " : " or ", sizeof expected - strlen(expected) - 1);
        strncat(expected, words[i], sizeof expected - strlen(expected) - 1);
    }
    return psld_node_fail(node, "expected %s, found \"%s\"", expected, text);
}

/* Numbers written as text with commas, "1,2,2,", as some published configurations have them. */
static psld_status read_comma_list(const psld_node *node, int limit, double *numbers, int *count)
{
    const char *text;
    PSLD_TRY(psld_node_text(node, &text));
    *count = 0;
    while (*text) {
        char word[32];
        size_t length = strcspn(text, ", ");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, text);
        if (*count == limit || !psld_text_number(word, &numbers[*count]))
            return psld_node_fail(node, "expected a list of at most %d numbers", limit);
        (*count)++;
        text += length;
        text += strspn(text, ", ");
    }
    return PSLD_OK;
}

static psld_status read_list(const psld_node *map, const char *key, int limit, double *numbers, int *count)
{
    const psld_node *node = present(map, key);
    if (!node) return PSLD_OK;
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return read_comma_list(node, limit, numbers, count);
    size_t size = psld_node_size(node);
    if (psld_node_kind_of(node) != PSLD_NODE_LIST || size > (size_t)limit)
        return psld_node_fail(node, "expected a list of at most %d numbers", limit);
    PSLD_TRY(psld_node_numbers(node, size, numbers));
    *count = (int)size;
    return PSLD_OK;
}

static psld_status read_int_list(const psld_node *map, const char *key, int max, int *values, int *count)
{
    double numbers[PSLD_MAX_LEVELS];
    int found = -1;
    PSLD_TRY(read_list(map, key, PSLD_MAX_LEVELS, numbers, &found));
    for (int i = 0; i < found; i++) {
        if (!(numbers[i] >= 1 && numbers[i] <= max && numbers[i] == (int)numbers[i]))
            return psld_node_fail(present(map, key), "expected whole numbers from 1 to %d, found %g", max, numbers[i]);
        values[i] = (int)numbers[i];
    }
    if (found >= 0) *count = found;
    return PSLD_OK;
}

/* ---- The parts of a configuration -------------------------------------------------------------------------------- */

static void set_defaults(psld_network_config *c)
{
    static const double fir[4] = {1, 3, 3, 1};
    memset(c, 0, sizeof *c);
    c->nonlinearity = PSLD_SILU;
    c->nf = 128;
    c->patch = 1;
    c->levels = 1;
    c->ch_mult[0] = 1;
    c->num_res_blocks = 2;
    c->resamp_with_conv = c->noise_cond = c->skip_rescale = 1;
    c->fir_taps = 4;
    memcpy(c->fir_kernel, fir, sizeof fir);
    c->resblock_type = PSLD_BLOCK_BIGGAN;
    c->fourier_scale = 16;
    c->data_deviation = 0.5;
}

static psld_status read_words(const psld_node *map, psld_network_config *c)
{
    static const char *const kinds[] = {"ncsnpp", "ncsnpp_clf", "mlp", NULL};
    static const char *const activations[] = {"swish", "relu", "elu", "lrelu", NULL};
    static const char *const blocks[] = {"ddpm", "biggan", NULL};
    static const char *const outputs[] = {"none", "output_skip", "residual", NULL};
    static const char *const inputs[] = {"none", "input_skip", "residual", NULL};
    static const char *const combines[] = {"sum", "cat", NULL};
    static const char *const embeddings[] = {"positional", "fourier", NULL};
    static const char *const predictions[] = {"eps", "data", NULL};
    int kind = (int)c->kind, activation = (int)c->nonlinearity - 1, block = (int)c->resblock_type, output = 0,
        input = 0, combine = 0, embedding = 0, prediction = 0;
    PSLD_TRY(read_word(map, "name", kinds, &kind));
    PSLD_TRY(read_word(map, "nonlinearity", activations, &activation));
    PSLD_TRY(read_word(map, "resblock_type", blocks, &block));
    PSLD_TRY(read_word(map, "progressive", outputs, &output));
    PSLD_TRY(read_word(map, "progressive_input", inputs, &input));
    PSLD_TRY(read_word(map, "progressive_combine", combines, &combine));
    PSLD_TRY(read_word(map, "embedding_type", embeddings, &embedding));
    PSLD_TRY(read_word(map, "predicts", predictions, &prediction));
    c->kind = (psld_network_kind)kind;
    c->nonlinearity = (psld_activation)(activation + 1);
    c->resblock_type = (psld_block)block;
    c->progressive = (psld_progressive)output;
    c->progressive_input = (psld_progressive)input;
    c->progressive_combine = (psld_combine)combine;
    c->embedding_type = (psld_embedding)embedding;
    c->predicts = (psld_prediction)prediction;
    return PSLD_OK;
}

static psld_status read_numbers(const psld_node *map, psld_network_config *c)
{
    PSLD_TRY(read_int(map, "in_ch", 1, MAX_CHANNELS, &c->in_ch));
    PSLD_TRY(read_int(map, "out_ch", 1, MAX_CHANNELS, &c->out_ch));
    if (c->kind == PSLD_NET_CLASSIFIER) PSLD_TRY(read_int(map, "n_cls", 2, MAX_CHANNELS, &c->out_ch));
    PSLD_TRY(read_int(map, "nf", 4, MAX_CHANNELS, &c->nf));
    PSLD_TRY(read_int(map, "patch", 1, 64, &c->patch));
    PSLD_TRY(read_int(map, "num_res_blocks", 1, PSLD_MAX_BLOCKS, &c->num_res_blocks));
    PSLD_TRY(read_int_list(map, "ch_mult", 64, c->ch_mult, &c->levels));
    PSLD_TRY(read_int_list(map, "attn_resolutions", MAX_IMAGE, c->attn_resolutions, &c->attn_count));
    PSLD_TRY(read_number(map, "dropout", 0, 0.99, &c->dropout));
    PSLD_TRY(read_number(map, "init_scale", 0, 1e6, &c->init_scale));
    PSLD_TRY(read_number(map, "fourier_scale", 0, 1e6, &c->fourier_scale));
    PSLD_TRY(read_number(map, "data_deviation", 1e-3, 1e3, &c->data_deviation));
    PSLD_TRY(read_flag(map, "resamp_with_conv", &c->resamp_with_conv));
    PSLD_TRY(read_flag(map, "noise_cond", &c->noise_cond));
    PSLD_TRY(read_flag(map, "fir", &c->fir));
    PSLD_TRY(read_flag(map, "skip_rescale", &c->skip_rescale));
    PSLD_TRY(read_flag(map, "augment", &c->augment));
    return read_list(map, "fir_kernel", PSLD_MAX_TAPS, c->fir_kernel, &c->fir_taps);
}

/* Channels of z and eps from the process: all variables go in, eps of the noisy ones comes out. What a network of clean
 * data sees and says is as wide as these. */
static psld_status channels_from_process(const config_nodes *nodes, psld_network_config *c)
{
    psld_recipe *recipe = NULL;
    int channels = 0, order[PSLD_MAX_K];
    PSLD_TRY(read_int(nodes->data, "channels", 1, 1 << 12, &channels));
    const psld_node *process = psld_node_get(nodes->root, "process");
    if (channels == 0 || !process) return PSLD_OK;
    if (c->predicts == PSLD_PREDICTS_DATA) {
        if (!c->in_ch) c->in_ch = channels;
        if (!c->out_ch) c->out_ch = channels;
        return PSLD_OK;
    }
    PSLD_TRY(psld_recipe_read(process, &recipe));
    if (!c->in_ch) c->in_ch = psld_recipe_get(recipe)->k * channels;
    if (!c->out_ch) c->out_ch = psld_recipe_order(recipe, order) * channels;
    psld_recipe_free(recipe);
    return PSLD_OK;
}

/* Published configurations are written for several processes, with channels that the authors' scripts set. Where the
 * channels of the data are said, those of z and eps follow from them and the process. */
static psld_status channels_of_published(const config_nodes *nodes, psld_network_config *c)
{
    psld_recipe *recipe = NULL;
    int channels = 0, order[PSLD_MAX_K];
    PSLD_TRY(read_int(nodes->data, "num_channels", 1, 1 << 12, &channels));
    if (channels == 0 || !psld_process_named(nodes->root)) return PSLD_OK;
    PSLD_TRY(psld_process_read(nodes->root, &recipe));
    c->in_ch = psld_recipe_get(recipe)->k * channels;
    if (!nodes->classifier) c->out_ch = psld_recipe_order(recipe, order) * channels;
    psld_recipe_free(recipe);
    return PSLD_OK;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

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
    for (int i = 0; i <= c->levels; i++) { /* groups of group normalisation must divide the channels */
        int channels = i < c->levels ? c->nf * c->ch_mult[i] : c->nf, groups = channels / 4 < 32 ? channels / 4 : 32;
        if (channels > MAX_CHANNELS || channels % groups != 0)
            return psld_node_fail(map, "%d channels cannot be normalised in %d groups", channels, groups);
    }
    return PSLD_OK;
}

static psld_status check(const config_nodes *nodes, psld_network_config *c)
{
    const psld_node *map = nodes->model;
    if (c->kind == PSLD_NET_MLP) c->image_size = 1;
    if (c->image_size == 0) return psld_node_fail(nodes->root, "data.image_size is missing");
    if (c->in_ch == 0)
        return psld_node_fail(map, "in_ch is missing, and so is data.channels or process, from which it would follow");
    if (c->kind == PSLD_NET_CLASSIFIER && c->predicts == PSLD_PREDICTS_DATA)
        return psld_node_fail(map, "predicts: a classifier predicts classes");
    if (c->augment && (c->kind != PSLD_NET_UNET || !c->noise_cond))
        return psld_node_fail(map,
                              "augment: expected false but for ncsnpp with noise_cond, whose embedding of the time "
                              "it joins");
    if (c->out_ch == 0)
        return psld_node_fail(map, "%s is missing", c->kind == PSLD_NET_CLASSIFIER ? "n_cls" : "out_ch");
    return c->kind == PSLD_NET_MLP ? PSLD_OK : check_levels(map, c);
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

enum { UNET = 1 << PSLD_NET_UNET, CLASSIFIER = 1 << PSLD_NET_CLASSIFIER, MLP = 1 << PSLD_NET_MLP };

/* Every key of `model`, and the kinds of networks on which it has an effect. */
static const struct {
    const char *name;
    int kinds;
} keys[] = {
    {"name", UNET | CLASSIFIER | MLP},
    {"in_ch", UNET | CLASSIFIER | MLP},
    {"out_ch", UNET | MLP},
    {"n_cls", CLASSIFIER},
    {"predicts", UNET | MLP},
    {"data_deviation", UNET | MLP},
    {"nonlinearity", UNET | CLASSIFIER | MLP},
    {"nf", UNET | CLASSIFIER | MLP},
    {"num_res_blocks", UNET | CLASSIFIER | MLP},
    {"dropout", UNET | CLASSIFIER | MLP},
    {"noise_cond", UNET | CLASSIFIER | MLP},
    {"embedding_type", UNET | CLASSIFIER | MLP},
    {"fourier_scale", UNET | CLASSIFIER | MLP},
    {"init_scale", UNET | CLASSIFIER | MLP},
    {"augment", UNET},
    {"patch", UNET | CLASSIFIER},
    {"ch_mult", UNET | CLASSIFIER},
    {"attn_resolutions", UNET | CLASSIFIER},
    {"resamp_with_conv", UNET | CLASSIFIER},
    {"fir", UNET | CLASSIFIER},
    {"fir_kernel", UNET | CLASSIFIER},
    {"skip_rescale", UNET | CLASSIFIER},
    {"resblock_type", UNET | CLASSIFIER},
    {"progressive", UNET},
    {"progressive_input", UNET | CLASSIFIER},
    {"progressive_combine", UNET | CLASSIFIER},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* The kinds that heed a key; 0 for what is no key. */
static int kinds_of(const char *key)
{
    int i = 0;
    while (i < KEYS && strcmp(keys[i].name, key) != 0) i++;
    return i < KEYS ? keys[i].kinds : 0;
}

int psld_network_heeds(psld_network_kind kind, const char *key)
{
    return kinds_of(key) >> kind & 1;
}

psld_status psld_network_config_check(const psld_node *root)
{
    static const char *const kinds[] = {"score networks of images (ncsnpp)", "classifiers (ncsnpp_clf)",
                                        "score networks of vectors (mlp)"};
    config_nodes nodes;
    psld_network_config config;
    find_nodes(root, NULL, &nodes);
    if (!nodes.model || nodes.published) return PSLD_OK;
    set_defaults(&config);
    PSLD_TRY(read_words(nodes.model, &config));
    for (size_t i = 0; i < psld_node_size(nodes.model); i++) {
        int heeding = kinds_of(psld_node_key_at(nodes.model, i)); /* unknown keys are the reader's to refuse */
        if (heeding && !(heeding >> config.kind & 1))
            return psld_node_fail(psld_node_at(nodes.model, i), "has no effect on %s", kinds[config.kind]);
    }
    return PSLD_OK;
}

psld_status psld_network_config_read(const psld_node *root, const char *part, psld_network_config *config)
{
    const char *known[KEYS + 1] = {NULL};
    config_nodes nodes;
    find_nodes(root, part, &nodes);
    set_defaults(config);
    if (!nodes.model) return psld_node_fail(root, "no network: model (or model.score_fn, model.clf_fn) is missing");
    for (int i = 0; i < KEYS; i++) known[i] = keys[i].name;
    if (!nodes.published) PSLD_TRY(psld_node_check_keys(nodes.model, known));
    if (nodes.classifier) config->kind = PSLD_NET_CLASSIFIER;
    PSLD_TRY(read_words(nodes.model, config));
    PSLD_TRY(read_numbers(nodes.model, config));
    PSLD_TRY(read_int(nodes.data, "image_size", 1, MAX_IMAGE, &config->image_size));
    PSLD_TRY(read_int(nodes.data, "size", 1, MAX_IMAGE, &config->image_size));
    if (nodes.published) PSLD_TRY(channels_of_published(&nodes, config));
    if (!config->in_ch || !config->out_ch) PSLD_TRY(channels_from_process(&nodes, config));
    return check(&nodes, config);
}
