/* How long a step of training takes, on made-up data, with the sums over ranks where there are several: for `psld bench`. */
#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "model/model.h"
#include "train/distribution.h"
#include "train/trainer.h"

static psld_status time_steps(psld_trainer *trainer, const psld_network_config *config, int batch, int repetitions,
                              double *seconds)
{
    size_t pixels = (size_t)config->image_size * (size_t)config->image_size;
    size_t in = (size_t)config->in_ch * pixels * (size_t)batch, out = (size_t)config->out_ch * pixels * (size_t)batch;
    float *room = psld_alloc(in + out + (size_t)batch, sizeof *room);
    if (!room) return PSLD_NO_MEMORY;
    float *z = room, *eps = z + in, *t = eps + out;
    double loss, norm;
    for (size_t i = 0; i < in + out; i++) room[i] = (float)sin((double)i);
    for (int i = 0; i < batch; i++) t[i] = 0.5f;
    psld_status status = psld_trainer_step(trainer, batch, 0, z, t, eps, &loss, &norm);
    *seconds = (double)INFINITY;
    for (int r = 0; r < repetitions && status == PSLD_OK; r++) {
        double began = psld_seconds();
        status = psld_trainer_step(trainer, batch, 0, z, t, eps, &loss, &norm);
        *seconds = fmin(*seconds, psld_seconds() - began);
    }
    psld_release(room);
    return status;
}

psld_status psld_model_time_training(psld_model *model, size_t batch, int repetitions, double *seconds, size_t *bytes)
{
    psld_trainer_options options;
    psld_trainer *trainer;
    if (model->kind != PSLD_SCORE_MODEL) return psld_fail(PSLD_BAD_ARGUMENT, "time: this model is no score network");
    if (batch < 1 || batch > 4096) return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected 1 to 4096, found %zu", batch);
    psld_trainer_defaults(&options);
    options.backend = model->backend;
    options.batch = (int)batch;
    options.ranks = psld_distribution_now();
    PSLD_TRY(psld_model_own(model));
    PSLD_TRY(psld_trainer_create(model->network, &options, &trainer));
    psld_status status = time_steps(trainer, &model->network->config, (int)batch, repetitions, seconds);
    *bytes = psld_trainer_bytes(trainer);
    psld_trainer_free(trainer);
    psld_model_changed(model);
    return status;
}
