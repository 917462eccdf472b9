#include "model/networks/network_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { MAX_CHANNELS = PSLD_MAX_CHANNELS, MAX_IMAGE = PSLD_MAX_IMAGE };

/* ---- The table of keys ------------------------------------------------------------------------------------------- */

typedef enum key_kind { WHOLE, NUMBER, FLAG, WORD, WHOLES, NUMBERS } key_kind;

typedef struct key_row {
    const char *name;
    int networks; /* bits of the kinds that it has an effect on */
    key_kind kind;
    size_t offset;
    size_t count;        /* lists: offset of their length; words: the value of the first one */
    double min, max;     /* of numbers; lists: max of each number */
    const char *initial; /* its default, as YAML; "": set by data and process */
    const char *words;   /* WORD: one of these, separated by '|', in any case */
    const char *help;
} key_row;

enum {
    UNET = 1 << PSLD_NET_UNET,
    CLASSIFIER = 1 << PSLD_NET_CLASSIFIER,
    MLP = 1 << PSLD_NET_MLP,
    SONG = 1 << PSLD_NET_SONGUNET,
    ADM = 1 << PSLD_NET_ADM,
    UNET2D = 1 << PSLD_NET_UNET2D,
    FOREIGN = SONG | ADM | UNET2D,
    IMAGES = UNET | CLASSIFIER,
    ALL = IMAGES | MLP
};

#define AT(field) offsetof(psld_network_config, field)

/* The name comes first: it decides what n_cls means. */
static const key_row network_table[] = {
    {"name", ALL | FOREIGN, WORD, AT(kind), 0, 0, 0, "ncsnpp", "ncsnpp|ncsnpp_clf|mlp|songunet|adm|unet2d",
     "U-Net (NCSN++, DDPM++), classifier on its encoder, network for vectors (mlp), or a network of another project"},
    {"in_ch", ALL | FOREIGN, WHOLE, AT(in_ch), 0, 1, MAX_CHANNELS, "", NULL,
     "channels of the state; set by data and process"},
    {"out_ch", UNET | MLP | FOREIGN, WHOLE, AT(out_ch), 0, 1, MAX_CHANNELS, "", NULL,
     "channels of the prediction; set by data and process"},
    {"n_cls", CLASSIFIER, WHOLE, AT(out_ch), 0, 2, MAX_CHANNELS, "", NULL, "number of classes of a classifier"},
    {"predicts", UNET | MLP, WORD, AT(predicts), 0, 0, 0, "eps", "eps|data",
     "eps, the noise, as published networks do; or the clean data"},
    {"data_deviation", UNET | MLP, NUMBER, AT(data_deviation), 0, 1e-3, 1e3, "0.5", NULL,
     "root mean square of the data, used with predicts: data; training measures it"},
    {"nf", ALL | FOREIGN, WHOLE, AT(nf), 0, 1, MAX_CHANNELS, "128", NULL,
     "level i has nf times ch_mult[i] channels; of an mlp, its width"},
    {"ch_mult", IMAGES | FOREIGN, WHOLES, AT(ch_mult), AT(levels), 1, 64, "[1]", NULL,
     "channels of each level in units of nf; every level halves the image"},
    {"num_res_blocks", ALL | FOREIGN, WHOLE, AT(num_res_blocks), 0, 1, PSLD_MAX_BLOCKS, "2", NULL,
     "residual blocks per level; of an mlp, blocks"},
    {"attn_resolutions", IMAGES | SONG | ADM, WHOLES, AT(attn_resolutions), AT(attn_count), 1, MAX_IMAGE, "[]", NULL,
     "heights of the levels that have attention"},
    {"patch", IMAGES, WHOLE, AT(patch), 0, 1, 64, "1", NULL,
     "the network works on squares of so many pixels per side: larger ones are cheaper"},
    {"augment", UNET, FLAG, AT(augment), 0, 0, 0, "false", NULL,
     "the network gets as an input how each image was augmented (see the keys of data)"},
    {"classes", UNET | MLP | FOREIGN, WHOLE, AT(classes), 0, 0, MAX_CHANNELS, "0", NULL,
     "the network gets the label of each sample, one of so many classes; 0: no labels; auto: those of the data"},
    {"dropout", ALL, NUMBER, AT(dropout), 0, 0, 0.99, "0", NULL, "fraction of the activations that training sets to 0"},
    {"nonlinearity", ALL | UNET2D, WORD, AT(nonlinearity), PSLD_SILU, 0, 0, "swish", "swish|relu|elu|lrelu",
     "activation function"},
    {"resblock_type", IMAGES, WORD, AT(resblock_type), 0, 0, 0, "biggan", "ddpm|biggan", "form of the residual blocks"},
    {"resamp_with_conv", IMAGES, FLAG, AT(resamp_with_conv), 0, 0, 0, "true", NULL,
     "ddpm blocks change the size of the image by a convolution"},
    {"noise_cond", ALL, FLAG, AT(noise_cond), 0, 0, 0, "true", NULL, "the time t is an input of the network"},
    {"embedding_type", ALL | SONG, WORD, AT(embedding_type), 0, 0, 0, "positional", "positional|fourier",
     "embedding of t"},
    {"fourier_scale", ALL, NUMBER, AT(fourier_scale), 0, 0, 1e6, "16", NULL,
     "standard deviation of the random Fourier frequencies"},
    {"fir", IMAGES, FLAG, AT(fir), 0, 0, 0, "false", NULL, "change the size of the image with the filter fir_kernel"},
    {"fir_kernel", IMAGES | SONG, NUMBERS, AT(fir_kernel), AT(fir_taps), 0, 0, "[1, 3, 3, 1]", NULL,
     "taps of the filter that fir turns on"},
    {"skip_rescale", IMAGES, FLAG, AT(skip_rescale), 0, 0, 0, "true", NULL, "divide sums of two branches by sqrt 2"},
    {"progressive", UNET | SONG, WORD, AT(progressive), 0, 0, 0, "none", "none|output_skip|residual",
     "how each level adds to the output"},
    {"progressive_input", IMAGES | SONG, WORD, AT(progressive_input), 0, 0, 0, "none", "none|input_skip|residual",
     "how the image reaches each level"},
    {"progressive_combine", IMAGES, WORD, AT(progressive_combine), 0, 0, 0, "sum", "sum|cat",
     "how the image of progressive_input is joined: added or concatenated"},
    {"init_scale", ALL, NUMBER, AT(init_scale), 0, 0, 1e6, "0", NULL,
     "scale of the initial weights of the last convolution of each branch; 0 means 1e-10"},
    {"embedding_channels", FOREIGN, WHOLE, AT(embedding_channels), 0, 2, MAX_CHANNELS, "128", NULL,
     "channels of the embedding of the time"},
    {"time_channels", FOREIGN, WHOLE, AT(time_channels), 0, 1, MAX_CHANNELS, "512", NULL,
     "channels of the embedding of the time after its two maps"},
    {"augment_inputs", SONG | ADM, WHOLE, AT(augment_inputs), 0, 0, MAX_CHANNELS, "0", NULL,
     "numbers that told the network in training how an image was augmented"},
    {"head_channels", ADM | UNET2D, WHOLE, AT(head_channels), 0, 0, MAX_CHANNELS, "0", NULL,
     "channels of each head of attention; 0: one head"},
    {"attn_down", UNET2D, WHOLES, AT(attn_down), AT(attn_down_count), 1, PSLD_MAX_LEVELS, "[]", NULL,
     "levels that have attention on the way down; the first level is 1"},
    {"attn_up", UNET2D, WHOLES, AT(attn_up), AT(attn_up_count), 1, PSLD_MAX_LEVELS, "[]", NULL,
     "levels that have attention on the way up"},
    {"block_down", UNET2D, WHOLES, AT(block_down), AT(block_down_count), 1, PSLD_MAX_LEVELS, "[]", NULL,
     "levels after which a residual block halves the image, not a convolution"},
    {"block_up", UNET2D, WHOLES, AT(block_up), AT(block_up_count), 1, PSLD_MAX_LEVELS, "[]", NULL,
     "levels after which a residual block doubles the image, not a convolution"},
    {"norm_groups", UNET2D, WHOLE, AT(norm_groups), 0, 1, MAX_CHANNELS, "32", NULL, "groups of each normalisation"},
    {"norm_eps", UNET2D, NUMBER, AT(norm_eps), 0, 0, 1, "1e-5", NULL, "what normalisations add to variances"},
    {"scale_shift", UNET2D, FLAG, AT(scale_shift), 0, 0, 0, "false", NULL,
     "the time scales and shifts channels, instead of being added to them"},
    {"down_pad", UNET2D, WHOLE, AT(down_pad), 0, 0, 1, "1", NULL,
     "padding of convolutions that halve the image: 1 on all sides, 0 on the right and below only"},
    {"freq_shift", UNET2D, NUMBER, AT(freq_shift), 0, -1e6, 1e6, "0", NULL,
     "frequency i of n of the embedding of the time is 10000^(-i / (n - freq_shift))"},
    {"cos_first", UNET2D, FLAG, AT(cos_first), 0, 0, 0, "true", NULL, "cosines stand before sines in that embedding"},
    {"centre_input", UNET2D, FLAG, AT(centre_input), 0, 0, 0, "false", NULL,
     "the network doubles its input and subtracts 1"},
    {"learned_variance", FOREIGN, FLAG, AT(learned_variance), 0, 0, 0, "false", NULL,
     "the network has twice as many output channels; the second half is not used"},
    {"without_middle", UNET2D, FLAG, AT(without_middle), 0, 0, 0, "false", NULL, "there are no blocks in the middle"},
    {"without_mid_attention", UNET2D, FLAG, AT(without_mid_attention), 0, 0, 0, "false", NULL,
     "there is no attention in the middle"},
    {"mid_attn_groups", UNET2D, WHOLE, AT(mid_attn_groups), 0, -1, MAX_CHANNELS, "0", NULL,
     "groups of the normalisation before that attention; 0: norm_groups; -1: there is none"},
    {"mid_scale", UNET2D, NUMBER, AT(mid_scale), 0, 0, 1e6, "1", NULL, "what sums in the middle are divided by"},
    {"class_embedding", UNET2D, WORD, AT(class_embedding), 0, 0, 0, "table", "table|timestep",
     "how labels are embedded: a vector for each, or like times"},
};
enum { ROWS = sizeof network_table / sizeof *network_table };

void psld_network_keys_default(psld_network_config *c)
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
    c->embedding_channels = 128;
    c->time_channels = 512;
    c->norm_groups = 32;
    c->norm_eps = 1e-5;
    c->down_pad = 1;
    c->cos_first = 1;
    c->mid_scale = 1;
}

int psld_network_key(int index, psld_key *key)
{
    static const char *const types[] = {"whole number",          "number",         "yes or no", "word",
                                        "list of whole numbers", "list of numbers"};
    if (index < 0 || index >= ROWS) return 0;
    const key_row *row = &network_table[index];
    if (!(row->networks & ALL)) return 0; /* of other projects alone: these are the last */
    *key = (psld_key){.name = row->name,
                      .type = types[row->kind],
                      .initial = row->initial,
                      .choices = row->words,
                      .min = row->min,
                      .max = row->max,
                      .help = row->help};
    return 1;
}

int psld_network_key_kinds(const char *key)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(network_table[i].name, key) == 0) return network_table[i].networks;
    return 0;
}

int psld_network_uses_key(psld_network_kind kind, const char *key)
{
    return psld_network_key_kinds(key) >> kind & 1;
}

psld_status psld_network_keys_check(const psld_node *map)
{
    const char *known[ROWS + 1];
    for (int i = 0; i < ROWS; i++) known[i] = network_table[i].name;
    known[ROWS] = NULL;
    return psld_node_check_keys(map, known);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* The value of a key. NULL if it is absent, empty, null or "???", which stands for a value to be given later. */
static const psld_node *given_node(const psld_node *map, const char *key)
{
    const psld_node *node = psld_node_get(map, key);
    const char *text = "";
    if (!node || psld_node_kind_of(node) != PSLD_NODE_SCALAR) return node;
    return psld_node_text(node, &text) == PSLD_OK && *text && strcmp(text, "???") != 0 && !psld_text_same(text, "null")
               ? node
               : NULL;
}

static psld_status read_whole(const psld_node *node, int min, int max, int *value)
{
    int64_t number = 0;
    PSLD_TRY(psld_node_integer(node, min, max, &number));
    *value = (int)number;
    return PSLD_OK;
}

psld_status psld_network_read_int(const psld_node *map, const char *key, int min, int max, int *value)
{
    const psld_node *node = given_node(map, key);
    return node ? read_whole(node, min, max, value) : PSLD_OK;
}

static psld_status read_network_number(const psld_node *node, const key_row *row, double *value)
{
    double number = 0;
    PSLD_TRY(psld_node_number(node, &number));
    if (!(number >= row->min && number <= row->max))
        return psld_node_fail(node, "expected a number from %g to %g, found %g", row->min, row->max, number);
    *value = number;
    return PSLD_OK;
}

static psld_status read_network_word(const psld_node *node, const key_row *row, int *value)
{
    int position = 0;
    PSLD_TRY(psld_node_choice(node, row->words, &position));
    *value = (int)row->count + position;
    return PSLD_OK;
}

/* Numbers in one text, "1,2,2,", as some published configurations write them. */
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

static psld_status read_number_list(const psld_node *node, int limit, double *numbers, int *count)
{
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return read_comma_list(node, limit, numbers, count);
    size_t size = psld_node_size(node);
    if (psld_node_kind_of(node) != PSLD_NODE_LIST || size > (size_t)limit)
        return psld_node_fail(node, "expected a list of at most %d numbers", limit);
    PSLD_TRY(psld_node_numbers(node, size, numbers));
    *count = (int)size;
    return PSLD_OK;
}

static psld_status read_whole_list(const psld_node *node, int max, int *values, int *count)
{
    double numbers[PSLD_MAX_LEVELS];
    int found = 0;
    PSLD_TRY(read_number_list(node, PSLD_MAX_LEVELS, numbers, &found));
    for (int i = 0; i < found; i++) {
        if (!(numbers[i] >= 1 && numbers[i] <= max && numbers[i] == (int)numbers[i]))
            return psld_node_fail(node, "expected whole numbers from 1 to %d, found %g", max, numbers[i]);
        values[i] = (int)numbers[i];
    }
    *count = found;
    return PSLD_OK;
}

static psld_status read_network_key(const psld_node *node, const key_row *row, psld_network_config *c)
{
    void *field = (char *)c + row->offset, *count = (char *)c + row->count;
    switch (row->kind) {
    case WHOLE:
        return read_whole(node, (int)row->min, (int)row->max, field);
    case NUMBER:
        return read_network_number(node, row, field);
    case FLAG:
        return psld_node_flag(node, field);
    case WORD:
        return read_network_word(node, row, field); /* enumerations have the size of an int */
    case WHOLES:
        return read_whole_list(node, (int)row->max, field, count);
    case NUMBERS:
        break;
    }
    return read_number_list(node, PSLD_MAX_TAPS, field, count);
}

psld_status psld_network_keys_kind(const psld_node *map, psld_network_kind *kind)
{
    psld_network_config config = {.kind = *kind};
    const psld_node *name = given_node(map, network_table[0].name);
    if (name) PSLD_TRY(read_network_key(name, &network_table[0], &config));
    *kind = config.kind;
    return PSLD_OK;
}

psld_status psld_network_keys_read(const psld_node *map, psld_network_config *config)
{
    _Static_assert(sizeof config->kind == sizeof(int) && sizeof config->nonlinearity == sizeof(int) &&
                       sizeof config->progressive == sizeof(int),
                   "words are read as ints");
    for (int i = 0; i < ROWS; i++) {
        const psld_node *node = given_node(map, network_table[i].name);
        int is_for_classifiers = strcmp(network_table[i].name, "n_cls") == 0;
        if (!node || (is_for_classifiers && config->kind != PSLD_NET_CLASSIFIER)) continue;
        PSLD_TRY(read_network_key(node, &network_table[i], config));
    }
    return PSLD_OK;
}
