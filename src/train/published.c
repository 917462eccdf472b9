/* A table says how each of their keys is converted: copied to one of ours, or by a function. Keys that are not in the
 * table and belong to neither network nor process are ignored; the log names them.
 *
 * Their code does some things that no key says: images are stretched to their size by torchvision's filter, nothing is
 * held out, the average of weights has no warm-up, and classifiers have no average and no clipping. */
#include "train/published.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "model/files/process_read.h"
#include "model/networks/network.h"
#include "train/settings.h"

#define OPEN \
    "?"      \
    "??" /* a value to be given later; in one piece it would hold a trigraph */

enum { LONGEST = 1024, LONGEST_PATH = 256 };

typedef struct conversion {
    const char *name;             /* of the file */
    const psld_node *root, *part; /* part: the map with data, model and training */
    const char *section;          /* the name of that map: "diffusion", "clf", or "" for the root */
    int classifier;
    psld_yaml *ours;
    int64_t epochs, devices;
    int no_average, afhq;
    char passed[LONGEST]; /* names of ignored keys */
    size_t used;
} conversion;

/* ---- Sections ------------------------------------------------------------------------------------------------- */

static const char *const networks[] = {"score_fn", "clf_fn"};

/* The part of the file that has the network, and the name of its section. */
static const psld_node *find_network_section(const psld_node *root, int classifier, const char **section)
{
    static const char *const sections[] = {"diffusion", "clf", ""};
    for (int i = 0; i < 3; i++) {
        const psld_node *part = *sections[i] ? psld_node_get(root, sections[i]) : root;
        *section = sections[i];
        if (psld_node_get(psld_node_get(part, "model"), networks[classifier])) return part;
    }
    return NULL;
}

int psld_published_matches(const psld_node *root)
{
    const char *section;
    return find_network_section(root, 0, &section) || find_network_section(root, 1, &section);
}

const char *psld_published_override(const char *assignment)
{
    if (*assignment == '+') assignment++;
    if (strncmp(assignment, "dataset.", 8) == 0) assignment += 8;
    return strncmp(assignment, "diffusion.", 10) == 0 || strncmp(assignment, "clf.", 4) == 0 ? assignment : NULL;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Whether a key has a value: it is not empty, null or "???". */
static int is_given(const psld_node *node)
{
    const char *text = "";
    if (!node) return 0;
    if (psld_node_kind_of(node) != PSLD_NODE_SCALAR) return 1;
    return psld_node_text(node, &text) == PSLD_OK && *text && strcmp(text, OPEN) != 0 && !psld_text_same(text, "null");
}

static psld_status set_our_key(conversion *a, const char *key, const char *value)
{
    char assignment[LONGEST];
    if (snprintf(assignment, sizeof assignment, "%s=%s", key, value) >= (int)sizeof assignment)
        return psld_fail(PSLD_BAD_INPUT, "%s: the value is too long", key);
    return psld_yaml_override(a->ours, assignment);
}

/* Sets one of our keys to the same value: a scalar, or a list of scalars. */
static psld_status copy_value(conversion *a, const psld_node *node, const char *key)
{
    char value[LONGEST], *to = value;
    int list = psld_node_kind_of(node) == PSLD_NODE_LIST;
    size_t count = list ? psld_node_size(node) : 1;
    if (list) *to++ = '[';
    for (size_t i = 0; i < count; i++) {
        const char *text;
        PSLD_TRY(psld_node_text(list ? psld_node_at(node, i) : node, &text));
        if (PSLD_YAML_ROOM(text) + 4 > sizeof value - (size_t)(to - value))
            return psld_node_fail(node, "the value is too long");
        if (i) to += sprintf(to, ", ");
        /* numbers and words stay as they are; only file names may need quotes */
        to += strcmp(key, "data.path") == 0 ? (int)psld_yaml_put_scalar(text, to) : sprintf(to, "%s", text);
    }
    if (list) *to++ = ']';
    *to = 0;
    return set_our_key(a, key, value);
}

/* Adds a key to the list of ignored ones. */
static void note_ignored_key(conversion *a, const char *path, const psld_node *node)
{
    const char *text = "";
    int open = node && psld_node_kind_of(node) == PSLD_NODE_SCALAR && psld_node_text(node, &text) == PSLD_OK &&
               strcmp(text, OPEN) == 0;
    int length = snprintf(a->passed + a->used, sizeof a->passed - a->used, "%s%s%s", a->used ? ", " : "", path,
                          open ? " (" OPEN ")" : "");
    if (length > 0 && (size_t)length < sizeof a->passed - a->used)
        a->used += (size_t)length;
    else
        a->passed[a->used] = 0; /* the line is full */
}

/* ---- Keys that are not copied ------------------------------------------------------------------------------------ */

static psld_status require_true(conversion *a, const psld_node *node)
{
    int flag;
    (void)a;
    PSLD_TRY(psld_node_flag(node, &flag));
    return flag ? PSLD_OK : psld_node_fail(node, "expected true, found false, which is not supported");
}

static psld_status convert_reduction(conversion *a, const psld_node *node)
{
    int mean;
    PSLD_TRY(psld_node_flag(node, &mean));
    return a->classifier ? PSLD_OK : set_our_key(a, "train.reduce", mean ? "mean" : "sum");
}

static psld_status convert_use_ema(conversion *a, const psld_node *node)
{
    int flag;
    PSLD_TRY(psld_node_flag(node, &flag));
    a->no_average = !flag;
    return PSLD_OK;
}

static psld_status convert_optimizer(conversion *a, const psld_node *node)
{
    const char *text;
    PSLD_TRY(psld_node_text(node, &text));
    if (psld_text_same(text, "adam") || psld_text_same(text, "adamw"))
        return set_our_key(a, "train.optimizer", psld_text_same(text, "adam") ? "adam" : "adamw");
    return psld_node_fail(node, "expected Adam or AdamW, found \"%s\"", text);
}

static psld_status convert_epochs(conversion *a, const psld_node *node)
{
    return psld_node_integer(node, 1, 1000000000, &a->epochs);
}

/* Their batch is that of one device. A list names devices, a number counts them. */
static psld_status convert_devices(conversion *a, const psld_node *node)
{
    a->devices = (int64_t)psld_node_size(node);
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) PSLD_TRY(psld_node_integer(node, 0, 1000000, &a->devices));
    if (a->devices > 1) return PSLD_OK;
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "%s%straining.devices", a->section, *a->section ? "." : "");
    note_ignored_key(a, path, NULL);
    return PSLD_OK;
}

/* The name says how their code read the data; only the order of AFHQv2's classes cannot be seen from the data. */
static psld_status convert_data_name(conversion *a, const psld_node *node)
{
    const char *text;
    PSLD_TRY(psld_node_text(node, &text));
    a->afhq = psld_text_same(text, "afhqv2");
    return PSLD_OK;
}

static psld_status ignore_key(conversion *a, const psld_node *node)
{
    (void)a, (void)node;
    return PSLD_OK;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

enum { BOTH, SCORE }; /* whether a key means something to classifiers, too */

static const struct {
    const char *theirs, *ours;
    int whose;
    psld_status (*take)(conversion *a, const psld_node *node); /* instead of ours */
} conversions[] = {
    {"data.root", "data.path", BOTH, NULL},
    {"data.image_size", "data.size", BOTH, NULL},
    {"data.num_channels", "data.channels", BOTH, NULL},
    {"data.hflip", "data.flip", BOTH, NULL},
    {"data.norm", NULL, BOTH, require_true},
    {"data.name", NULL, BOTH, convert_data_name},
    {"training.seed", "seed", BOTH, NULL},
    {"training.continuous", NULL, BOTH, require_true},
    {"training.mode", "train.loss", SCORE, NULL},
    {"training.train_eps", "train.eps", BOTH, NULL},
    {"training.batch_size", "train.batch", BOTH, NULL},
    {"training.epochs", NULL, BOTH, convert_epochs},
    {"training.devices", NULL, BOTH, convert_devices},
    {"training.use_ema", NULL, SCORE, convert_use_ema},
    {"training.ema_decay", "train.ema", SCORE, NULL},
    {"training.loss.name", NULL, BOTH, ignore_key}, /* follows from the network and the process */
    {"training.loss.l_type", "train.norm", SCORE, NULL},
    {"training.loss.weighting", "train.weighting", SCORE, NULL},
    {"training.loss.reduce_mean", NULL, BOTH, convert_reduction},
    {"training.optimizer.name", NULL, BOTH, convert_optimizer},
    {"training.optimizer.lr", "train.lr", BOTH, NULL},
    {"training.optimizer.beta_1", "train.beta1", BOTH, NULL},
    {"training.optimizer.beta_2", "train.beta2", BOTH, NULL},
    {"training.optimizer.eps", "train.adam_eps", BOTH, NULL},
    {"training.optimizer.weight_decay", "train.weight_decay", BOTH, NULL},
    {"training.optimizer.warmup", "train.warmup", BOTH, NULL},
    {"training.optimizer.grad_clip", "train.clip", BOTH, NULL},
};
enum { CONVERSIONS = sizeof conversions / sizeof *conversions };

/* What psld_process_read reads. */
static int is_process_key(const char *key)
{
    static const char *const keys[] = {"name", "beta_min", "beta_max",    "gamma",
                                       "nu",   "kappa",    "decomp_mode", "numerical_eps"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return 1;
    return 0;
}

/* Copies a key of the network if ours has it. Channels are left out: they follow from process and data. */
static psld_status convert_network_key(conversion *a, const char *path, const char *key, const psld_node *node)
{
    char ours[LONGEST_PATH];
    psld_network_kind kind = a->classifier ? PSLD_NET_CLASSIFIER : PSLD_NET_UNET;
    if (strcmp(key, "in_ch") == 0 || strcmp(key, "out_ch") == 0) return PSLD_OK;
    if (!psld_network_uses_key(kind, key) || !is_given(node)) {
        if (!psld_network_uses_key(PSLD_NET_UNET, key) || !is_given(node)) note_ignored_key(a, path, node);
        return PSLD_OK;
    }
    snprintf(ours, sizeof ours, "model.%s", key);
    return copy_value(a, node, ours);
}

static psld_status convert_key(conversion *a, const char *path, const psld_node *node)
{
    const char *rest = *a->section ? path + strlen(a->section) + 1 : path, *key = strrchr(path, '.') + 1;
    if (strncmp(rest, "model.sde.", 10) == 0) {
        if (!is_process_key(key)) note_ignored_key(a, path, node);
        return PSLD_OK;
    }
    if (strncmp(rest, "model.score_fn.", 15) == 0 || strncmp(rest, "model.clf_fn.", 13) == 0)
        return convert_network_key(a, path, key, node);
    for (int i = 0; i < CONVERSIONS; i++) {
        if (strcmp(conversions[i].theirs, rest) != 0 || (a->classifier && conversions[i].whose == SCORE)) continue;
        if (!is_given(node)) break;
        return conversions[i].take ? conversions[i].take(a, node) : copy_value(a, node, conversions[i].ours);
    }
    note_ignored_key(a, path, node);
    return PSLD_OK;
}

static psld_status convert_map(conversion *a, const char *path, const psld_node *map)
{
    for (size_t i = 0; i < psld_node_size(map); i++) {
        const psld_node *node = psld_node_at(map, i);
        char inside[LONGEST_PATH];
        snprintf(inside, sizeof inside, "%s.%s", path, psld_node_key_at(map, i));
        PSLD_TRY(psld_node_kind_of(node) == PSLD_NODE_MAP ? convert_map(a, inside, node)
                                                          : convert_key(a, inside, node));
    }
    return PSLD_OK;
}

/* The sections data, model and training; of others only that they were passed over. */
static psld_status convert_sections(conversion *a)
{
    for (size_t i = 0; i < psld_node_size(a->part); i++) {
        const char *key = psld_node_key_at(a->part, i);
        char path[LONGEST_PATH];
        snprintf(path, sizeof path, "%s%s%s", a->section, *a->section ? "." : "", key);
        int ours = strcmp(key, "data") == 0 || strcmp(key, "model") == 0 || strcmp(key, "training") == 0;
        if (ours)
            PSLD_TRY(convert_map(a, path, psld_node_at(a->part, i)));
        else
            note_ignored_key(a, path, NULL);
    }
    for (size_t i = 0; a->part != a->root && i < psld_node_size(a->root); i++) {
        const psld_node *other = psld_node_at(a->root, i);
        int has_process = psld_node_get(psld_node_get(other, "model"), "sde") != NULL; /* that of a classifier, too */
        if (other != a->part && !(a->classifier && has_process))
            note_ignored_key(a, psld_node_key_at(a->root, i), NULL);
    }
    return PSLD_OK;
}

/* ---- What no key of theirs says ---------------------------------------------------------------------------------- */

static psld_status default_our_key(conversion *a, const char *key, const char *value)
{
    return psld_settings_default(a->ours, key, value);
}

/* The smallest time of classifiers is that of the score network. */
static psld_status convert_classifier_eps(conversion *a)
{
    const psld_node *training = psld_node_get(psld_node_get(a->root, "diffusion"), "training");
    const psld_node *eps = psld_node_get(training, "train_eps");
    return is_given(eps) && a->classifier ? copy_value(a, eps, "train.eps") : PSLD_OK;
}

static psld_status multiply_batch(conversion *a)
{
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(a->ours), "train"), "batch");
    int64_t batch;
    char text[32];
    if (!node || a->devices < 2) return PSLD_OK;
    PSLD_TRY(psld_node_integer(node, 1, 1000000, &batch));
    snprintf(text, sizeof text, "%lld", (long long)(batch * a->devices));
    return set_our_key(a, "train.batch", text);
}

/* Where the channels of the data are not said, they are those of the network by the variables of the process. */
static psld_status default_channels(conversion *a, int variables)
{
    const psld_node *network = psld_node_get(psld_node_get(a->part, "model"), networks[a->classifier]);
    const psld_node *node = psld_node_get(network, "in_ch");
    int64_t channels = 3L * variables;
    char text[32];
    if (is_given(node)) PSLD_TRY(psld_node_integer(node, 1, 1 << 16, &channels));
    snprintf(text, sizeof text, "%lld", channels % variables == 0 ? (long long)channels / variables : 3);
    return default_our_key(a, "data.channels", text);
}

static psld_status add_implied_keys(conversion *a, const psld_recipe_spec *process)
{
    PSLD_TRY(default_channels(a, process->k));
    PSLD_TRY(multiply_batch(a));
    PSLD_TRY(set_our_key(a, "data.fit", "stretch"));
    PSLD_TRY(set_our_key(a, "data.resample", "bilinear"));
    PSLD_TRY(set_our_key(a, "data.held_out", "0"));
    if (a->no_average || a->classifier) PSLD_TRY(set_our_key(a, "train.ema", "0"));
    if (!a->classifier) {
        PSLD_TRY(set_our_key(a, "train.ema_warmup", "false"));
        return default_our_key(a, "train.loss", process->k > 1 ? "hsm" : "dsm");
    }
    if (a->afhq) PSLD_TRY(set_our_key(a, "data.classes", "[dog, cat, wild]"));
    PSLD_TRY(convert_classifier_eps(a));
    PSLD_TRY(default_our_key(a, "train.clip", "0"));
    return set_our_key(a, "train.loss", "cross_entropy");
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static psld_status convert_published(conversion *a, psld_published *published)
{
    PSLD_TRY(psld_process_read(a->root, &published->recipe));
    PSLD_TRY(psld_yaml_parse("{}", 2, "published configuration", &published->ours));
    a->ours = published->ours;
    PSLD_TRY(convert_sections(a));
    PSLD_TRY(add_implied_keys(a, psld_recipe_get(published->recipe)));
    published->epochs = a->epochs;
    char devices[64] = "";
    if (a->devices > 1) snprintf(devices, sizeof devices, " for %lld devices together", (long long)a->devices);
    psld_log(PSLD_LOG_INFO, "%s: a published configuration%s; ignored keys: %s", a->name, devices,
             a->used ? a->passed : "none");
    return PSLD_OK;
}

psld_status psld_published_read(const psld_node *root, const char *name, int classifier, psld_published *published)
{
    conversion a = {.name = name, .root = root, .classifier = classifier};
    *published = (psld_published){0};
    a.part = find_network_section(root, classifier, &a.section);
    if (!a.part && !classifier) a.part = find_network_section(root, a.classifier = 1, &a.section);
    if (!a.part) return psld_node_fail(root, "no classifier: model.clf_fn is missing");
    psld_status status = convert_published(&a, published);
    if (status != PSLD_OK) psld_published_clear(published);
    return status;
}

void psld_published_clear(psld_published *published)
{
    psld_yaml_free(published->ours);
    psld_recipe_free(published->recipe);
    *published = (psld_published){0};
}
