/* Checks before a run begins that settings, data and network are compatible. */
#include "data/data.h"
#include "train/training.h"

static psld_status check_augmentation(const psld_training *t)
{
    const psld_augmentation *a = &t->settings.data.augment;
    int any = psld_augmentation_any(a);
    if (any && !psld_data_is_image(t->data))
        return psld_fail(PSLD_BAD_INPUT,
                         "data.translate, rotate, scale, colour, crop_padding: %s has no images; expected 0",
                         t->settings.data.path);
    if (a->crop_padding >= t->settings.data.size && a->crop_padding > 0)
        return psld_fail(PSLD_BAD_INPUT, "data.crop_padding: expected less than data.size = %lld, found %lld",
                         (long long)t->settings.data.size, (long long)a->crop_padding);
    if (t->network->config.augment && !any)
        return psld_fail(PSLD_BAD_INPUT, "model.augment: no image is changed; expected data.translate, rotate, scale, "
                                         "colour or crop_padding above 0");
    return PSLD_OK;
}

/* Samples come in pairs of the same path, which must stay in one micro-batch. */
static psld_status check_formulas(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    int64_t parts = 2 * (int64_t)t->ranks->count * s->train.accumulate;
    if (s->train.batch % parts != 0)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.batch: expected a multiple of %lld for a recipe with formulas, found %lld",
                         (long long)parts, (long long)s->train.batch);
    PSLD_TRY(psld_training_check_learn(t));
    if (s->train.loss != PSLD_LOSS_HSM || s->train.weighting != PSLD_WEIGH_EPS || s->train.l1 || s->train.times)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.loss, weighting, norm and times: expected their defaults for a recipe with "
                         "formulas, which has a loss of its own");
    return PSLD_OK;
}

static psld_status check_loss(const psld_training *t)
{
    int classifier = t->model->kind == PSLD_CLASSIFIER;
    const psld_settings *s = &t->settings;
    if (classifier != (s->train.loss == PSLD_LOSS_ENTROPY))
        return psld_fail(PSLD_BAD_INPUT, "train.loss: expected %s for a %s",
                         classifier ? "cross_entropy" : "hsm, dsm or elbo", t->objective->name);
    if (t->model->process) return check_formulas(t);
    if (!t->model->recipe) return psld_fail(PSLD_BAD_INPUT, "process is missing: the recipe of the forward process");
    PSLD_TRY(psld_training_check_learn(t));
    if (s->train.loss == PSLD_LOSS_CONSISTENCY) return psld_training_check_consistency(t);
    if (s->train.l1 && s->train.weighting != PSLD_WEIGH_EPS)
        return psld_fail(PSLD_BAD_INPUT, "train.norm: l1 works with train.weighting = fid only; expected l2");
    return PSLD_OK;
}

static psld_status check_training(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    const psld_network_config *config = &t->network->config;
    if (s->train.clean && config->noise_cond && config->embedding_type == PSLD_EMBED_FOURIER)
        return psld_fail(PSLD_BAD_INPUT, "model.embedding_type: fourier cannot embed time 0, the time of clean data; "
                                         "expected positional");
    if (s->train.schedule == PSLD_SCHEDULE_INVERSE_SQRT && s->train.warmup == 0)
        return psld_fail(PSLD_BAD_INPUT, "train.warmup: expected more than 0 for train.schedule = inverse_sqrt, "
                                         "which falls as sqrt(warmup / step)");
    if (s->train.accumulate * t->ranks->count > s->train.batch)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.accumulate: %lld micro-batches on each of %d ranks are more than train.batch = %lld",
                         (long long)s->train.accumulate, t->ranks->count, (long long)s->train.batch);
    return PSLD_OK;
}

static psld_status check_classes(const psld_training *t)
{
    uint64_t count = psld_data_count(t->data);
    if (psld_data_classes(t->data) != psld_model_classes(t->model))
        return psld_fail(PSLD_BAD_INPUT, "model.n_cls: the data have %zu classes, the classifier %zu",
                         psld_data_classes(t->data), psld_model_classes(t->model));
    for (uint64_t i = 0; i < count; i++)
        if (psld_data_label(t->data, i) < 0)
            return psld_fail(PSLD_BAD_INPUT, "%s: item %llu of %llu has no class; expected all in folders of classes",
                             t->settings.data.path, (unsigned long long)i + 1, (unsigned long long)count);
    return PSLD_OK;
}

/* Labels for a score network. Items without a label are allowed: the network learns from them without one. */
static psld_status check_labels(const psld_training *t)
{
    size_t classes = (size_t)t->network->config.classes, found = psld_data_classes(t->data);
    if (classes == 0 && t->settings.train.label_dropout != 0.1)
        return psld_fail(PSLD_BAD_INPUT, "train.label_dropout: has no effect without model.classes");
    if (classes == 0 || (found >= 2 && found == classes)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "model.classes: the data have %zu classes, the network %zu; expected %s", found,
                     classes, found >= 2 ? "the same, or auto" : "data with classes, or 0");
}

psld_status psld_training_check(const psld_training *t)
{
    PSLD_TRY(check_loss(t));
    PSLD_TRY(check_training(t));
    if (t->model->kind == PSLD_CLASSIFIER) PSLD_TRY(check_classes(t));
    if (t->model->kind == PSLD_SCORE_MODEL) PSLD_TRY(check_labels(t));
    PSLD_TRY(check_augmentation(t));
    return psld_training_check_picture(t);
}
