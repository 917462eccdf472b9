/* Tuning a trained model for sampling with few evaluations: the configuration of a run that begins with its weights and
 * has the loss of consistency (objective_consistency.c). All other settings stay as in the model's training. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/files/process_read.h"
#include "process/process.h"
#include "train/published.h"
#include "train/training.h"

/* The law of the noise in published runs: its median and the deviation of its logarithm, for data of deviation 0.5. */
#define MIDDLE_PER_DEVIATION (2 * 0.33287108)

/* Settings of tuning, in the order in which they are set. `vectors`: the value for data that are not images; NULL: the
 * same. */
static const struct {
    const char *key, *value, *vectors;
} tuning_keys[] = {
    {"train.loss", "consistency", NULL},
    {"train.weighting", "fid", NULL},
    {"train.norm", "l2", NULL},
    {"train.reduce", "mean", NULL},
    {"train.times", "noise", NULL},
    {"train.noise_part", "1", NULL},
    {"train.noise_spread", "2", NULL},
    {"train.batch", "64", "256"},
    {"train.lr", "1e-3", NULL},
    {"train.steps", "9000", "12000"},
    {"train.warmup", "100", NULL},
    {"train.schedule", "cosine", NULL},
    {"train.ema", "0.999", NULL},
    {"train.ema_warmup", "true", NULL},
    {"train.sampler", "consistency", NULL},
    {"train.sample_nfe", "2", NULL},
    {"train.sample_every", "1000", "3000"},
    {"train.evaluate_every", "500", NULL},
    {"train.checkpoint_every", "500", "1000"},
    {"train.metric_every", "0", NULL},
};

static psld_status check_model(const psld_model *model, const char *path)
{
    if (model->kind == PSLD_CLASSIFIER)
        return psld_fail(PSLD_BAD_INPUT, "%s: is a classifier; expected a model that draws samples", path);
    if (!model->network)
        return psld_fail(PSLD_BAD_INPUT, "%s: is an exact model, without a network that could be tuned", path);
    if (model->conditioning.kind != PSLD_CONDITION_OURS)
        return psld_fail(PSLD_BAD_INPUT, "%s: is a network of another project (%s); expected one that psld has trained",
                         path, psld_conditioning_name(&model->conditioning));
    return PSLD_OK;
}

/* A network that was trained with a smaller rate keeps it. */
static psld_status set_rate(psld_yaml *yaml, double own)
{
    char assignment[64], number[PSLD_NUMBER_SIZE];
    if (!(own > 0 && own / 2 < 1e-3)) return PSLD_OK;
    snprintf(assignment, sizeof assignment, "train.lr=%s", psld_text_shortest(own / 2, number));
    return psld_yaml_override(yaml, assignment);
}

/* Until now the loss decided whether eps is given x_0 or all of z_0; from now on the process does. */
static psld_status keep_kernel(const psld_model *model, psld_yaml *yaml)
{
    if (model->recipe->spec.mode != PSLD_DSM || psld_model_predicts_data(model)) return PSLD_OK;
    PSLD_TRY(psld_process_embed(yaml));
    return psld_yaml_override(yaml, "process.kernel=dsm");
}

static psld_status set_keys(const psld_model *model, psld_yaml *yaml)
{
    char assignment[64];
    double rate = 0;
    const psld_node *train = psld_node_get(psld_yaml_root(yaml), "train"),
                    *lr = train ? psld_node_get(train, "lr") : NULL;
    if (lr) PSLD_TRY(psld_node_number(lr, &rate));
    for (size_t i = 0; i < sizeof tuning_keys / sizeof *tuning_keys; i++) {
        const char *vectors = model->rank == 1 ? tuning_keys[i].vectors : NULL;
        snprintf(assignment, sizeof assignment, "%s=%s", tuning_keys[i].key, vectors ? vectors : tuning_keys[i].value);
        PSLD_TRY(psld_yaml_override(yaml, assignment));
    }
    PSLD_TRY(set_rate(yaml, rate));
    return keep_kernel(model, yaml);
}

static psld_status configure_from(const psld_model *model, const char *path, psld_yaml **yaml)
{
    PSLD_TRY(check_model(model, path));
    PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), path, yaml));
    if (psld_published_matches(psld_yaml_root(*yaml)))
        return psld_fail(PSLD_BAD_INPUT, "%s: has a published configuration; expected a model that psld has trained",
                         path);
    return set_keys(model, *yaml);
}

psld_status psld_training_tune_config(const char *path, psld_yaml **yaml)
{
    psld_model *model;
    *yaml = NULL;
    PSLD_TRY(psld_model_open(path, NULL, &model));
    psld_status status = configure_from(model, path, yaml);
    psld_model_free(model);
    return status;
}

/* Whether a key is given. */
static int is_said(const psld_training_options *options, const char *key)
{
    size_t length = strlen(key);
    for (int i = 0; i < options->override_count; i++)
        if (strncmp(options->overrides[i], key, length) == 0 && options->overrides[i][length] == '=') return 1;
    return 0;
}

static psld_status set_number(psld_yaml *yaml, const char *key, double value)
{
    char assignment[64];
    psld_text_print(assignment, sizeof assignment, "%s=%.4g", key, value);
    return psld_yaml_override(yaml, assignment);
}

static psld_status check_loss(const psld_yaml *yaml)
{
    const char *loss;
    PSLD_TRY(psld_node_text(psld_node_get(psld_node_get(psld_yaml_root(yaml), "train"), "loss"), &loss));
    if (psld_text_same(loss, "consistency")) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "train.loss: a model is tuned with consistency, found %s", loss);
}

psld_status psld_training_tune_noise(psld_training *t, const psld_training_options *options, double deviation)
{
    PSLD_TRY(check_loss(t->yaml));
    if (!is_said(options, "train.deviation")) PSLD_TRY(set_number(t->yaml, "train.deviation", deviation));
    if (is_said(options, "train.noise_middle")) return PSLD_OK;
    const psld_node *train = psld_node_get(psld_yaml_root(t->yaml), "train");
    PSLD_TRY(psld_node_number(psld_node_get(train, "deviation"), &deviation));
    return set_number(t->yaml, "train.noise_middle", MIDDLE_PER_DEVIATION * deviation);
}

psld_status psld_training_check_consistency(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    double least, most, d = s->train.deviation;
    if (s->train.l1 || s->train.weighting != PSLD_WEIGH_EPS)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.norm, train.weighting: expected their defaults with train.loss = consistency");
    PSLD_TRY(psld_recipe_sigma(t->model->recipe, s->train.eps, &least));
    PSLD_TRY(psld_recipe_sigma(t->model->recipe, 1, &most));
    if (least <= 0.1 * d && most >= 10 * d) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT,
                     "process: the noise of recipe %s is %.3g to %.3g; consistency needs %.3g to %.3g, a tenth of the "
                     "deviation of the data to ten times it",
                     t->model->recipe->spec.name, least, most, 0.1 * d, 10 * d);
}
