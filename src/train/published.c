/* The parts of a published configuration, and settings that none of its keys gives: images are stretched to their size
 * by torchvision's filter, nothing is held out, the average of weights has no warm-up, and classifiers have no average
 * and no clipping. */
#include "train/published.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "model/files/process_read.h"
#include "train/published_private.h"
#include "train/settings.h"

/* ---- Sections ---------------------------------------------------------------------------------------------------- */

static const char *const networks[] = {"score_fn", "clf_fn"};

/* Finds the part of the file that has the network, and the name of its section. */
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

/* Reads the sections data, model and training; others are only listed as ignored. */
static psld_status convert_sections(conversion *a)
{
    for (size_t i = 0; i < psld_node_size(a->part); i++) {
        const char *key = psld_node_key_at(a->part, i);
        char path[LONGEST_PATH];
        snprintf(path, sizeof path, "%s%s%s", a->section, *a->section ? "." : "", key);
        int ours = strcmp(key, "data") == 0 || strcmp(key, "model") == 0 || strcmp(key, "training") == 0;
        if (ours)
            PSLD_TRY(psld_conversion_map(a, path, psld_node_at(a->part, i)));
        else
            psld_conversion_ignore(a, path, NULL);
    }
    for (size_t i = 0; a->part != a->root && i < psld_node_size(a->root); i++) {
        const psld_node *other = psld_node_at(a->root, i);
        int has_process = psld_node_get(psld_node_get(other, "model"), "sde") != NULL; /* that of a classifier, too */
        if (other != a->part && !(a->classifier && has_process))
            psld_conversion_ignore(a, psld_node_key_at(a->root, i), NULL);
    }
    return PSLD_OK;
}

/* ---- Settings without a published key ---------------------------------------------------------------------------- */

static psld_status default_our_key(conversion *a, const char *key, const char *value)
{
    return psld_settings_default(a->ours, key, value);
}

/* The smallest time of classifiers is that of the score network. */
static psld_status convert_classifier_eps(conversion *a)
{
    const psld_node *training = psld_node_get(psld_node_get(a->root, "diffusion"), "training");
    const psld_node *eps = psld_node_get(training, "train_eps");
    return psld_conversion_is_given(eps) && a->classifier ? psld_conversion_copy(a, eps, "train.eps") : PSLD_OK;
}

static psld_status multiply_batch(conversion *a)
{
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(a->ours), "train"), "batch");
    int64_t batch;
    char text[32];
    if (!node || a->devices < 2) return PSLD_OK;
    PSLD_TRY(psld_node_integer(node, 1, 1000000, &batch));
    snprintf(text, sizeof text, "%lld", (long long)(batch * a->devices));
    return psld_conversion_set(a, "train.batch", text);
}

/* If the channels of the data are not given, they are those of the network divided by the variables of the process. */
static psld_status default_channels(conversion *a, int variables)
{
    const psld_node *network = psld_node_get(psld_node_get(a->part, "model"), networks[a->classifier]);
    const psld_node *node = psld_node_get(network, "in_ch");
    int64_t channels = 3L * variables;
    char text[32];
    if (psld_conversion_is_given(node)) PSLD_TRY(psld_node_integer(node, 1, 1 << 16, &channels));
    snprintf(text, sizeof text, "%lld", channels % variables == 0 ? (long long)channels / variables : 3);
    return default_our_key(a, "data.channels", text);
}

static psld_status add_implied_keys(conversion *a, const psld_recipe_spec *process)
{
    PSLD_TRY(default_channels(a, process->k));
    PSLD_TRY(multiply_batch(a));
    PSLD_TRY(psld_conversion_set(a, "data.fit", "stretch"));
    PSLD_TRY(psld_conversion_set(a, "data.resample", "bilinear"));
    PSLD_TRY(psld_conversion_set(a, "data.held_out", "0"));
    if (a->no_average || a->classifier) PSLD_TRY(psld_conversion_set(a, "train.ema", "0"));
    if (!a->classifier) {
        PSLD_TRY(psld_conversion_set(a, "train.ema_warmup", "false"));
        return default_our_key(a, "train.loss", process->k > 1 ? "hsm" : "dsm");
    }
    if (a->afhq) PSLD_TRY(psld_conversion_set(a, "data.classes", "[dog, cat, wild]"));
    PSLD_TRY(convert_classifier_eps(a));
    PSLD_TRY(default_our_key(a, "train.clip", "0"));
    return psld_conversion_set(a, "train.loss", "cross_entropy");
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
