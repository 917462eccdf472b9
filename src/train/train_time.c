#include "train/train_time.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "psld_train.h"
#include "train/trainer.h"

/* Artificial samples: one label each for classifiers, a target of the size of the output for score networks. */
static psld_status time_steps(psld_trainer *trainer, const psld_model *model, int batch, int repetitions,
                              double *seconds)
{
    const psld_network_config *config = &model->network->config;
    size_t pixels = (size_t)config->image_size * (size_t)config->image_size, n = (size_t)batch;
    size_t in = (size_t)config->in_ch * pixels * n;
    size_t target_size = model->kind == PSLD_CLASSIFIER ? n : (size_t)config->out_ch * pixels * n;
    float *z = psld_alloc(in + target_size + n, sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    float *target = z + in, *t = target + target_size;
    double loss, norm;
    for (size_t i = 0; i < in; i++) z[i] = (float)sin((double)i);
    for (size_t i = 0; i < target_size; i++) target[i] = model->kind == PSLD_CLASSIFIER ? 0 : (float)cos((double)i);
    for (size_t i = 0; i < n; i++) t[i] = 0.5f;
    psld_status status = psld_trainer_step(trainer, batch, 0, z, t, target, &loss, &norm);
    *seconds = (double)INFINITY;
    for (int r = 0; r < repetitions && status == PSLD_OK; r++) {
        double began = psld_seconds();
        status = psld_trainer_step(trainer, batch, 0, z, t, target, &loss, &norm);
        *seconds = fmin(*seconds, psld_seconds() - began);
    }
    psld_release(z);
    return status;
}

psld_status psld_time_training_step(psld_model *model, size_t batch, int repetitions, const psld_distribution *ranks,
                                    double *seconds, size_t *bytes)
{
    psld_trainer_options options;
    psld_trainer *trainer;
    psld_trainer_defaults(&options);
    options.backend = model->backend;
    options.batch = (int)batch;
    options.entropy = model->kind == PSLD_CLASSIFIER;
    options.ranks = ranks;
    PSLD_TRY(psld_model_own(model));
    PSLD_TRY(psld_trainer_create(model->network, &options, &trainer));
    psld_status status = time_steps(trainer, model, (int)batch, repetitions, seconds);
    *bytes = psld_trainer_bytes(trainer);
    psld_trainer_free(trainer);
    psld_model_changed(model);
    return status;
}

/* Steps change the weights, so they are saved before and restored. */
static psld_status time_and_restore(psld_model *model, size_t batch, int repetitions, double *seconds, size_t *bytes)
{
    PSLD_TRY(psld_model_own(model));
    size_t size = model->network->graph->parameter_elements * sizeof *model->network->weights;
    void *kept = psld_copy_bytes(model->network->weights, size);
    if (!kept) return PSLD_NO_MEMORY;
    psld_status status = psld_time_training_step(model, batch, repetitions, psld_distribution_now(), seconds, bytes);
    memcpy(model->network->weights, kept, size);
    psld_model_changed(model);
    psld_release(kept);
    return status;
}

psld_status psld_model_time_training(psld_model *model, size_t batch, int repetitions, double *seconds, size_t *bytes)
{
    if (model->kind != PSLD_SCORE_MODEL) return psld_fail(PSLD_BAD_ARGUMENT, "time: this model is not a score network");
    if (batch < 1 || batch > 4096) return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected 1 to 4096, found %zu", batch);
    if (repetitions < 1) return psld_fail(PSLD_BAD_ARGUMENT, "repetitions: expected at least 1, found %d", repetitions);
    return time_and_restore(model, batch, repetitions, seconds, bytes);
}
