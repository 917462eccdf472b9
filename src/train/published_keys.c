/* Keys of published configurations. A table says how each is converted: copied to one of ours, or by a function. Keys
 * that are not in the table and belong to neither network nor process are ignored; the log names them. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/networks/network.h"
#include "train/published_private.h"

#define OPEN \
    "?"      \
    "??" /* a value to be given later; in one piece it would hold a trigraph */

/* ---- Values ------------------------------------------------------------------------------------------------------ */

int psld_conversion_is_given(const psld_node *node)
{
    const char *text = "";
    if (!node) return 0;
    if (psld_node_kind_of(node) != PSLD_NODE_SCALAR) return 1;
    return psld_node_text(node, &text) == PSLD_OK && *text && strcmp(text, OPEN) != 0 && !psld_text_same(text, "null");
}

psld_status psld_conversion_set(conversion *a, const char *key, const char *value)
{
    char assignment[LONGEST];
    if (snprintf(assignment, sizeof assignment, "%s=%s", key, value) >= (int)sizeof assignment)
        return psld_fail(PSLD_BAD_INPUT, "%s: the value is too long", key);
    return psld_yaml_override(a->ours, assignment);
}

psld_status psld_conversion_copy(conversion *a, const psld_node *node, const char *key)
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
    return psld_conversion_set(a, key, value);
}

void psld_conversion_ignore(conversion *a, const char *path, const psld_node *node)
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
    return a->classifier ? PSLD_OK : psld_conversion_set(a, "train.reduce", mean ? "mean" : "sum");
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
        return psld_conversion_set(a, "train.optimizer", psld_text_same(text, "adam") ? "adam" : "adamw");
    return psld_node_fail(node, "expected Adam or AdamW, found \"%s\"", text);
}

static psld_status convert_epochs(conversion *a, const psld_node *node)
{
    return psld_node_integer(node, 1, 1000000000, &a->epochs);
}

/* Their batch is the batch of one device. Devices are given as a list or as a number. */
static psld_status convert_devices(conversion *a, const psld_node *node)
{
    a->devices = (int64_t)psld_node_size(node);
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) PSLD_TRY(psld_node_integer(node, 0, 1000000, &a->devices));
    if (a->devices > 1) return PSLD_OK;
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "%s%straining.devices", a->section, *a->section ? "." : "");
    psld_conversion_ignore(a, path, NULL);
    return PSLD_OK;
}

/* The name tells how their code read the data. We need only the order of AFHQv2's classes, which the data do not
 * show. */
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

enum { BOTH, SCORE }; /* whether the key has a meaning for classifiers, too */

static const struct {
    const char *theirs, *ours;
    int whose;
    psld_status (*take)(conversion *a, const psld_node *node); /* instead of copying to our key */
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

/* Copies a key of the network if we have the same key. Channels are left out: they follow from process and data. */
static psld_status convert_network_key(conversion *a, const char *path, const char *key, const psld_node *node)
{
    char ours[LONGEST_PATH];
    psld_network_kind kind = a->classifier ? PSLD_NET_CLASSIFIER : PSLD_NET_UNET;
    if (strcmp(key, "in_ch") == 0 || strcmp(key, "out_ch") == 0) return PSLD_OK;
    if (!psld_network_uses_key(kind, key) || !psld_conversion_is_given(node)) {
        if (!psld_network_uses_key(PSLD_NET_UNET, key) || !psld_conversion_is_given(node))
            psld_conversion_ignore(a, path, node);
        return PSLD_OK;
    }
    snprintf(ours, sizeof ours, "model.%s", key);
    return psld_conversion_copy(a, node, ours);
}

static psld_status convert_key(conversion *a, const char *path, const psld_node *node)
{
    const char *rest = *a->section ? path + strlen(a->section) + 1 : path, *key = strrchr(path, '.') + 1;
    if (strncmp(rest, "model.sde.", 10) == 0) {
        if (!is_process_key(key)) psld_conversion_ignore(a, path, node);
        return PSLD_OK;
    }
    if (strncmp(rest, "model.score_fn.", 15) == 0 || strncmp(rest, "model.clf_fn.", 13) == 0)
        return convert_network_key(a, path, key, node);
    for (int i = 0; i < CONVERSIONS; i++) {
        if (strcmp(conversions[i].theirs, rest) != 0 || (a->classifier && conversions[i].whose == SCORE)) continue;
        if (!psld_conversion_is_given(node)) break;
        return conversions[i].take ? conversions[i].take(a, node) : psld_conversion_copy(a, node, conversions[i].ours);
    }
    psld_conversion_ignore(a, path, node);
    return PSLD_OK;
}

psld_status psld_conversion_map(conversion *a, const char *path, const psld_node *map)
{
    for (size_t i = 0; i < psld_node_size(map); i++) {
        const psld_node *node = psld_node_at(map, i);
        char inside[LONGEST_PATH];
        snprintf(inside, sizeof inside, "%s.%s", path, psld_node_key_at(map, i));
        PSLD_TRY(psld_node_kind_of(node) == PSLD_NODE_MAP ? psld_conversion_map(a, inside, node)
                                                          : convert_key(a, inside, node));
    }
    return PSLD_OK;
}
