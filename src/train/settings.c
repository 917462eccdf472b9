#include "train/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/networks/network.h"
#include "process/recipe_read.h"
#include "psld_train.h"

/* ---- The table of keys ------------------------------------------------------------------------------------------- */

typedef enum key_kind { WHOLE, NUMBER, NUMBERS, FLAG, WORD, TEXT, NAMES } key_kind;

typedef struct key_row {
    const char *section, *name;
    key_kind kind;
    size_t offset;
    double min, max;     /* of numbers */
    const char *initial; /* its default, as YAML */
    const char *words;   /* WORD: one of these, separated by '|'; the field gets its position. NUMBER: may be this
                            word, too, for -1 */
    int may_change;      /* when a run is continued */
    const char *help;
} key_row;

#define DATA(field)  offsetof(psld_settings, data.field)
#define TRAIN(field) offsetof(psld_settings, train.field)

enum { FIXED = 0, FREE = 1 };

static const key_row table[] = {
    {"data", "path", TEXT, DATA(path), 0, 0, "\"\"", NULL, FREE, "images, vectors or toy:NAME to learn from"},
    {"data", "size", WHOLE, DATA(size), 1, 4096, "1", NULL, FIXED, "height and width that images are brought to"},
    {"data", "channels", WHOLE, DATA(channels), 1, 4096, "1", NULL, FIXED, "1 grey, 3 colour; length of vectors"},
    {"data", "fit", WORD, DATA(stretch), 0, 0, "crop", "crop|stretch", FIXED, "how images that are not square fit"},
    {"data", "resample", WORD, DATA(resample), 0, 0, "lanczos", "lanczos|bilinear|bicubic|box|nearest|bilinear_plain",
     FIXED, "filter by which images are brought to data.size"},
    {"data", "flip", FLAG, DATA(flip), 0, 0, "false", NULL, FIXED, "mirror half of the images"},
    {"data", "translate", NUMBER, DATA(augment.translate), 0, 0.5, "0", NULL, FIXED,
     "shift images: deviation in parts of their size"},
    {"data", "rotate", NUMBER, DATA(augment.rotate), 0, 180, "0", NULL, FIXED,
     "rotate them by up to so many degrees either way"},
    {"data", "scale", NUMBER, DATA(augment.scale), 0, 1, "0", NULL, FIXED,
     "magnify them: deviation of log2 of the factor"},
    {"data", "colour", NUMBER, DATA(augment.colour), 0, 1, "0", NULL, FIXED,
     "change colours: deviation of log2 of contrast and saturation, of hue in radians, twice that of brightness"},
    {"data", "augment_prob", NUMBER, DATA(augment.probability), 0, 1, "1", NULL, FIXED,
     "probability of each of translate, rotate, scale and colour for a sample"},
    {"data", "crop_padding", WHOLE, DATA(augment.crop_padding), 0, 4095, "0", NULL, FIXED,
     "pad images by so many pixels of their mirror image, and cut one of their size out"},
    {"data", "classes", NAMES, DATA(classes), 0, 0, "[]", NULL, FIXED, "names of classes in the order of their labels"},
    {"data", "held_out", NUMBER, DATA(held_out), 0, 0.5, "auto", "auto", FIXED,
     "part of the data that is not trained on, to measure the loss on; auto: 0.01, of less than 6400 items 64 of them, "
     "of less than 1280 0.05"},
    {"data", "strict", FLAG, DATA(strict), 0, 0, "false", NULL, FREE, "stop at a broken image instead of skipping it"},
    {"data", "skip_limit", NUMBER, DATA(skip_limit), 0, 1, "0.05", NULL, FREE,
     "largest part of the images that may be broken and skipped, rounded up; with more the run stops"},
    {"data", "memory", WHOLE, DATA(memory), 0, 1e15, "0", NULL, FREE,
     "bytes of decoded images kept in memory, the rest goes to the cache; 0: as the data layer likes"},
    {"data", "cache", TEXT, DATA(cache), 0, 0, "\"\"", NULL, FREE, "folder for decoded images beyond data.memory"},
    {"train", "loss", WORD, TRAIN(loss), 0, 0, "hsm", "hsm|dsm|cross_entropy", FIXED,
     "kernel given x_0 alone or all of z_0; cross_entropy for classifiers"},
    {"train", "weighting", WORD, TRAIN(weighting), 0, 0, "fid", "fid|nll|data", FIXED,
     "none; the likelihood weighting (s - s*)' 2 beta D (s - s*); or that of errors of clean data"},
    {"train", "norm", WORD, TRAIN(l1), 0, 0, "l2", "l2|l1", FIXED, "of the error of eps"},
    {"train", "reduce", WORD, TRAIN(sum), 0, 0, "mean", "mean|sum", FIXED, "over the elements of a sample"},
    {"train", "eps", NUMBER, TRAIN(eps), 1e-12, 0.5, "1e-5", NULL, FIXED, "times are uniform in [eps, 1]"},
    {"train", "times", WORD, TRAIN(by_noise), 0, 0, "uniform", "uniform|noise", FIXED,
     "uniform, or some of them about the effective noise at which the data take shape"},
    {"train", "noise_part", NUMBER, TRAIN(noise_part), 0, 1, "0.5", NULL, FIXED,
     "with times: noise, the part of the times that is drawn so; the rest is uniform"},
    {"train", "noise_middle", NUMBER, TRAIN(noise_middle), 1e-6, 1e6, "1", NULL, FIXED,
     "the effective noise that they are drawn about"},
    {"train", "noise_spread", NUMBER, TRAIN(noise_spread), 0, 10, "1.2", NULL, FIXED,
     "the deviation of its logarithm: 1.2 reaches from a tenth to ten times the middle"},
    {"train", "clean", FLAG, TRAIN(clean), 0, 0, "false", NULL, FIXED, "classifiers: train on data without noise"},
    {"train", "batch", WHOLE, TRAIN(batch), 1, 1e6, "128", NULL, FIXED, "samples a step, over all ranks"},
    {"train", "accumulate", WHOLE, TRAIN(accumulate), 1, 1e6, "1", NULL, FIXED,
     "micro-batches per step and rank, whose gradients are added up: more of them need less memory"},
    {"train", "steps", WHOLE, TRAIN(steps), 1, 1e12, "100000", NULL, FREE, "in all"},
    {"train", "lr", NUMBER, TRAIN(lr), 0, 1e3, "2e-4", NULL, FIXED, "learning rate"},
    {"train", "warmup", WHOLE, TRAIN(warmup), 0, 1e12, "5000", NULL, FIXED, "steps over which it rises from 0"},
    {"train", "schedule", WORD, TRAIN(schedule), 0, 0, "constant", "constant|cosine|linear|inverse_sqrt", FIXED,
     "of the rate after warm-up: constant, falling to 0 at train.steps, or as sqrt(warmup / step)"},
    {"train", "optimizer", WORD, TRAIN(adamw), 0, 0, "adam", "adam|adamw", FIXED,
     "adam adds weight_decay to the gradient, adamw shrinks the weights themselves"},
    {"train", "beta1", NUMBER, TRAIN(beta1), 0, 0.999999, "0.9", NULL, FIXED, "of Adam"},
    {"train", "beta2", NUMBER, TRAIN(beta2), 0, 0.9999999, "0.999", NULL, FIXED, "of Adam"},
    {"train", "adam_eps", NUMBER, TRAIN(adam_eps), 1e-30, 1, "1e-8", NULL, FIXED, "of Adam"},
    {"train", "weight_decay", NUMBER, TRAIN(weight_decay), 0, 10, "0", NULL, FIXED, "see optimizer"},
    {"train", "clip", NUMBER, TRAIN(clip), 0, 1e30, "1", NULL, FIXED, "largest norm of the gradient; 0: any"},
    {"train", "ema", NUMBERS, TRAIN(ema), 0, 0.9999999, "0.9999", NULL, FIXED,
     "decay of the moving average of the weights, or a list: the model has the first; 0: none is kept"},
    {"train", "ema_warmup", FLAG, TRAIN(ema_warmup), 0, 0, "true", NULL, FIXED,
     "at step k from 0 the average decays by min(ema, (1 + k) / (10 + k)); false: by ema from the beginning"},
    {"train", "checkpoint_every", WHOLE, TRAIN(checkpoint_every), 0, 1e12, "1000", NULL, FREE,
     "steps between checkpoints; 0: at the end alone"},
    {"train", "checkpoint_minutes", NUMBER, TRAIN(checkpoint_minutes), 0, 1e6, "10", NULL, FREE,
     "minutes after which there is a checkpoint, whatever the step; 0: by steps alone"},
    {"train", "keep", WHOLE, TRAIN(keep), 1, 1e6, "2", NULL, FREE, "checkpoints kept"},
    {"train", "evaluate_every", WHOLE, TRAIN(evaluate_every), 0, 1e12, "500", NULL, FREE,
     "steps between measurements of the loss on held-out data; 0: never"},
    {"train", "evaluate_count", WHOLE, TRAIN(evaluate_count), 1, 1e9, "64", NULL, FREE,
     "held-out samples of each, which are measured in each of ten bins of t"},
    {"train", "sample_every", WHOLE, TRAIN(sample_every), 0, 1e12, "5000", NULL, FREE,
     "steps between pictures of samples; 0: never"},
    {"train", "sample_count", WHOLE, TRAIN(sample_count), 1, 1e6, "36", NULL, FREE, "samples in a picture"},
    {"train", "sample_nfe", WHOLE, TRAIN(sample_nfe), 2, 1e6, "50", NULL, FREE, "evaluations for each of them"},
    {"train", "sampler", TEXT, TRAIN(sampler), 0, 0, "sscs", NULL, FREE, "that draws them"},
    {"train", "metric_every", WHOLE, TRAIN(metric_every), 0, 1e12, "0", NULL, FREE,
     "steps between measurements of the distance of samples from the data, by which the best model is kept; 0: never"},
    {"train", "metric_count", WHOLE, TRAIN(metric_count), 2, 1e6, "1000", NULL, FREE,
     "samples drawn for each, and items of the data, held-out ones first"},
    {"train", "metric_weights", TEXT, TRAIN(metric_weights), 0, 0, "\"\"", NULL, FREE,
     "a network of images, for the Frechet distance of its features; none: sliced distance of pixels or points"},
    {"train", "init", TEXT, TRAIN(init), 0, 0, "\"\"", NULL, FIXED, "a model whose weights to start from"},
    {NULL, "seed", WHOLE, offsetof(psld_settings, seed), 0, 9e18, "0", NULL, FIXED,
     "of initial weights, order of data, times, noise and dropout"},
};
enum { ROWS = sizeof table / sizeof *table, LONGEST_KEY = 64 };

static void full_name(const key_row *row, char name[LONGEST_KEY])
{
    snprintf(name, LONGEST_KEY, "%s%s%s", row->section ? row->section : "", row->section ? "." : "", row->name);
}

/* Rows of other tables get the name of their section: they are keys within a map. */
static int look_in(int (*row)(int, psld_key *), const char *section, int *index, psld_key *key)
{
    static _Thread_local char text[LONGEST_KEY];
    int found = row(*index, key), rows = 0;
    if (!found) {
        for (psld_key other; row(rows, &other);) rows++;
        *index -= rows;
        return 0;
    }
    snprintf(text, sizeof text, "%s%s%s", section, *section ? "." : "", key->name);
    key->name = text;
    return 1;
}

static int process_key(int index, psld_key *key)
{
    *key = (psld_key){.name = "process",
                      .type = "recipe",
                      .initial = "",
                      .help = "a preset with overrides (psld gamma=0.02), a file, or the keys below"};
    return index == 0;
}

static int settings_key(int index, psld_key *key)
{
    static const char *const types[] = {
        [WHOLE] = "whole number", [NUMBER] = "number", [NUMBERS] = "number or list", [FLAG] = "yes or no",
        [WORD] = "word",          [TEXT] = "text",     [NAMES] = "list of names"};
    static _Thread_local char name[LONGEST_KEY];
    if (index < 0 || index >= ROWS) return 0;
    const key_row *row = &table[index];
    full_name(row, name);
    *key = (psld_key){.name = name,
                      .type = types[row->kind],
                      .initial = row->initial,
                      .choices = row->words,
                      .min = row->min,
                      .max = row->max,
                      .may_change = row->may_change,
                      .help = row->help};
    return 1;
}

int psld_training_key_info(int index, psld_key *key)
{
    if (index < 0) return 0;
    return look_in(process_key, "", &index, key) || look_in(psld_recipe_key, "process", &index, key) ||
           look_in(psld_network_key, "model", &index, key) || settings_key(index, key);
}

/* ---- Defaults ---------------------------------------------------------------------------------------------------- */

static const psld_node *find_row(const psld_yaml *yaml, const key_row *row)
{
    const psld_node *map = psld_yaml_root(yaml);
    if (row->section) map = psld_node_get(map, row->section);
    return psld_node_get(map, row->name);
}

static int has_key(const psld_yaml *yaml, const char *key)
{
    char name[LONGEST_KEY];
    const psld_node *node = psld_yaml_root(yaml);
    while (node && *key) {
        size_t length = strcspn(key, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, key);
        node = psld_node_get(node, name);
        key += length + (key[length] == '.');
    }
    return node != NULL;
}

psld_status psld_settings_default(psld_yaml *yaml, const char *key, const char *value)
{
    char assignment[1024];
    if (has_key(yaml, key)) return PSLD_OK;
    snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return psld_yaml_override(yaml, assignment);
}

/* All keys, or the one named. */
static psld_status put_defaults(psld_yaml *yaml, const char *only)
{
    for (int i = 0; i < ROWS; i++) {
        char name[LONGEST_KEY];
        full_name(&table[i], name);
        if (!only || strcmp(only, name) == 0) PSLD_TRY(psld_settings_default(yaml, name, table[i].initial));
    }
    return PSLD_OK;
}

psld_status psld_settings_complete(psld_yaml *yaml)
{
    return put_defaults(yaml, NULL);
}

psld_status psld_settings_fill(psld_yaml *yaml, const char *key)
{
    return put_defaults(yaml, key);
}

/* What versions before the key train.ema_warmup did by default, where the defaults are others now. */
static const struct {
    const char *key, *value;
} earlier[] = {{"train.ema_warmup", "false"}, {"data.held_out", "0.01"}};

psld_status psld_settings_inherit(psld_yaml *before, psld_yaml *now)
{
    int is_earlier = !has_key(before, "train.ema_warmup");
    for (size_t i = 0; is_earlier && i < sizeof earlier / sizeof *earlier; i++) {
        PSLD_TRY(psld_settings_default(before, earlier[i].key, earlier[i].value));
        PSLD_TRY(psld_settings_default(now, earlier[i].key, earlier[i].value));
    }
    return psld_settings_complete(before);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static psld_status read_word(const psld_node *node, const key_row *row, int *position)
{
    const char *text, *word = row->words;
    PSLD_TRY(psld_node_text(node, &text));
    size_t length = strlen(text);
    for (*position = 0; word; (*position)++) {
        if (strncmp(word, text, length) == 0 && (word[length] == '|' || word[length] == 0)) return PSLD_OK;
        word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL;
    }
    char meant[PSLD_SUGGESTION_SIZE];
    return psld_node_fail(node, "expected %s, found \"%s\"%s", row->words, text,
                          psld_text_suggest_from(text, row->words, meant));
}

static psld_status read_number(const psld_node *node, const key_row *row, double *number)
{
    const char *text;
    *number = -1;
    if (row->words && psld_node_text(node, &text) == PSLD_OK && strcmp(text, row->words) == 0) return PSLD_OK;
    PSLD_TRY(psld_node_number(node, number));
    if (*number >= row->min && *number <= row->max) return PSLD_OK;
    char found[PSLD_NUMBER_SIZE];
    return psld_node_fail(node, "expected a number from %g to %g, found %s", row->min, row->max,
                          psld_text_shortest(*number, found));
}

/* A list has different numbers, none of them 0, which stands for none at all. */
static psld_status read_numbers(const psld_node *node, const key_row *row, psld_number_list *numbers)
{
    size_t most = sizeof numbers->value / sizeof *numbers->value;
    numbers->count = 1;
    if (psld_node_kind_of(node) != PSLD_NODE_LIST) return read_number(node, row, numbers->value);
    numbers->count = psld_node_size(node);
    if (numbers->count < 1 || numbers->count > most)
        return psld_node_fail(node, "expected a number or a list of 1 to %zu, found %zu", most, numbers->count);
    for (size_t i = 0; i < numbers->count; i++) {
        PSLD_TRY(read_number(psld_node_at(node, i), row, &numbers->value[i]));
        if (numbers->value[i] == 0 && numbers->count > 1)
            return psld_node_fail(node, "expected numbers above 0 in a list");
        for (size_t j = 0; j < i; j++)
            if (numbers->value[j] == numbers->value[i])
                return psld_node_fail(node, "%g stands there twice", numbers->value[i]);
    }
    return PSLD_OK;
}

static psld_status read_names(const psld_node *node, psld_settings *settings)
{
    if (psld_node_kind_of(node) != PSLD_NODE_LIST) return psld_node_fail(node, "expected a list of names");
    settings->data.class_count = psld_node_size(node);
    settings->data.classes = psld_alloc(settings->data.class_count, sizeof *settings->data.classes);
    if (!settings->data.classes) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < settings->data.class_count; i++)
        PSLD_TRY(psld_node_text(psld_node_at(node, i), &settings->data.classes[i]));
    return PSLD_OK;
}

static psld_status read_row(const psld_node *node, const key_row *row, psld_settings *settings)
{
    void *field = (char *)settings + row->offset;
    switch (row->kind) {
    case WHOLE:
        return psld_node_integer(node, (int64_t)row->min, (int64_t)row->max, field);
    case NUMBER:
        return read_number(node, row, field);
    case NUMBERS:
        return read_numbers(node, row, field);
    case FLAG:
        return psld_node_flag(node, field);
    case WORD:
        return read_word(node, row, field);
    case TEXT:
        return psld_node_text(node, field);
    case NAMES:
        break;
    }
    return read_names(node, settings);
}

static psld_status check_section(const psld_yaml *yaml, const char *section)
{
    const char *known[ROWS + 1];
    const psld_node *map = psld_node_get(psld_yaml_root(yaml), section);
    int count = 0;
    for (int i = 0; i < ROWS; i++)
        if (table[i].section && strcmp(table[i].section, section) == 0) known[count++] = table[i].name;
    known[count] = NULL;
    return psld_node_check_keys(map, known);
}

/* A key that stands at the top may be one of a section: `steps` is train.steps. */
static psld_status check_top(const psld_node *root)
{
    static const char *const top[] = {"process", "data", "model", "train", "seed", NULL};
    for (size_t i = 0; psld_node_kind_of(root) == PSLD_NODE_MAP && i < psld_node_size(root); i++) {
        const char *name = psld_node_key_at(root, i);
        psld_key key;
        size_t j = 0;
        while (top[j] && strcmp(top[j], name) != 0) j++;
        for (int k = 0; !top[j] && psld_training_key_info(k, &key); k++) {
            const char *dot = strchr(key.name, '.');
            if (dot && strcmp(dot + 1, name) == 0)
                return psld_fail(PSLD_BAD_INPUT, "unknown key \"%s\": did you mean \"%s\"?", name, key.name);
        }
    }
    return psld_node_check_keys(root, top);
}

psld_status psld_settings_read(const psld_yaml *yaml, psld_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    PSLD_TRY(check_top(psld_yaml_root(yaml)));
    if (psld_node_get(psld_yaml_root(yaml), "data")) PSLD_TRY(check_section(yaml, "data"));
    if (psld_node_get(psld_yaml_root(yaml), "train")) PSLD_TRY(check_section(yaml, "train"));
    for (int i = 0; i < ROWS; i++) {
        const psld_node *node = find_row(yaml, &table[i]);
        psld_status status = node ? read_row(node, &table[i], settings) : PSLD_OK;
        if (status == PSLD_OK) continue;
        psld_settings_clear(settings);
        return status;
    }
    return PSLD_OK;
}

void psld_settings_clear(psld_settings *settings)
{
    psld_release(settings->data.classes);
    settings->data.classes = NULL;
}

/* ---- Continuing a run -------------------------------------------------------------------------------------------- */

static int may_change(const char *key)
{
    for (int i = 0; i < ROWS; i++) {
        char name[LONGEST_KEY];
        full_name(&table[i], name);
        if (strcmp(name, key) == 0) return table[i].may_change;
    }
    return 0;
}

static int same_scalar(const char *a, const char *b)
{
    double x, y;
    if (psld_text_number(a, &x) && psld_text_number(b, &y)) return x == y;
    return strcmp(a, b) == 0;
}

/* Whether two trees say the same; in `key` the path to where they do not. */
static int same_tree(const psld_node *a, const psld_node *b, char *key, size_t room)
{
    size_t length = strlen(key);
    if (!a || !b || psld_node_kind_of(a) != psld_node_kind_of(b)) return may_change(key);
    if (psld_node_kind_of(a) == PSLD_NODE_SCALAR) {
        const char *left = "", *right = "";
        psld_node_text(a, &left);
        psld_node_text(b, &right);
        return same_scalar(left, right) || may_change(key);
    }
    if (psld_node_kind_of(a) == PSLD_NODE_LIST) {
        if (psld_node_size(a) != psld_node_size(b)) return may_change(key);
        for (size_t i = 0; i < psld_node_size(a); i++)
            if (!same_tree(psld_node_at(a, i), psld_node_at(b, i), key, room)) return 0;
        return 1;
    }
    for (int side = 0; side < 2; side++) {
        const psld_node *map = side ? b : a;
        for (size_t i = 0; i < psld_node_size(map); i++) {
            const char *name = psld_node_key_at(map, i);
            snprintf(key + length, room - length, "%s%s", length ? "." : "", name);
            if (!same_tree(psld_node_get(a, name), psld_node_get(b, name), key, room)) return 0;
        }
    }
    key[length] = 0;
    return 1;
}

static const psld_node *node_at(const psld_yaml *yaml, const char *key)
{
    const psld_node *node = psld_yaml_root(yaml);
    while (node && *key) {
        char name[256];
        size_t length = strcspn(key, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, key);
        node = psld_node_get(node, name);
        key += length + (key[length] == '.');
    }
    return node;
}

/* As it could be written: "[1, 2]", "{preset: vp}"; the beginning of what is long. */
static size_t show_node(const psld_node *node, char *text, size_t room)
{
    const char *value = "";
    size_t used = 0;
    psld_node_kind kind = psld_node_kind_of(node);
    if (kind == PSLD_NODE_SCALAR) {
        psld_node_text(node, &value);
        snprintf(text, room, "%s", *value ? value : "\"\"");
        return strlen(text);
    }
    used += (size_t)snprintf(text, room, kind == PSLD_NODE_LIST ? "[" : "{");
    for (size_t i = 0; i < psld_node_size(node) && used + 8 < room; i++) {
        const char *name = kind == PSLD_NODE_MAP ? psld_node_key_at(node, i) : "";
        snprintf(text + used, room - used, "%s%s%s", i ? ", " : "", name, *name ? ": " : "");
        used += strlen(text + used);
        used += show_node(psld_node_at(node, i), text + used, room - used);
    }
    snprintf(text + used, room - used, kind == PSLD_NODE_LIST ? "]" : "}");
    return strlen(text);
}

static void show_value(const psld_yaml *yaml, const char *key, char *text, size_t room)
{
    const psld_node *node = node_at(yaml, key);
    snprintf(text, room, "nothing");
    if (node && show_node(node, text, room) + 1 == room) memcpy(text + room - 4, "...", 3);
}

psld_status psld_settings_compare(const psld_yaml *before, const psld_yaml *now, const char *path)
{
    char key[512] = "", old[160], new[160];
    if (same_tree(psld_yaml_root(before), psld_yaml_root(now), key, sizeof key)) return PSLD_OK;
    show_value(before, key, old, sizeof old);
    show_value(now, key, new, sizeof new);
    return psld_fail(PSLD_BAD_INPUT,
                     "%s: is of another configuration: %s is %s there and %s now; leave it as it is, or give another "
                     "folder",
                     path, key, old, new);
}
