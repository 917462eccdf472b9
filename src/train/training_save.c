/* Saving a run, and resuming it from what was saved. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/metric.h"
#include "train/training.h"

static psld_snapshot snapshot_of(psld_training *t)
{
    size_t learned = 0;
    if (t->learner) (void)psld_learner_state(t->learner, &learned);
    return (psld_snapshot){.network = t->network,
                           .state = psld_trainer_state_of(t->trainer),
                           .config = t->config,
                           .prefix = t->objective->prefix,
                           .sums = (double *)&t->bins,
                           .sum_count = sizeof t->bins / sizeof(double),
                           .learned = t->learner ? psld_learner_state(t->learner, &learned) : NULL,
                           .learned_count = learned,
                           .recipe = t->model->recipe,
                           .items = psld_data_count(t->data)};
}

psld_status psld_training_save(psld_training *t)
{
    char folder[4096];
    if (!t->run) return PSLD_OK;
    PSLD_TRY(psld_trainer_fetch(t->trainer));
    psld_snapshot snapshot = snapshot_of(t);
    t->model->steps = psld_training_steps(t);
    PSLD_TRY(psld_run_folder_sync(t->run));
    snprintf(folder, sizeof folder, "%s", psld_run_folder_file(t->run, "checkpoints"));
    PSLD_TRY(psld_checkpoint_save(&snapshot, folder, (int)t->settings.train.keep));
    t->saved_step = psld_trainer_steps(t->trainer);
    t->saved_seconds = psld_seconds();
    PSLD_TRY(psld_training_name_recipe(t));
    return psld_model_save(t->model, psld_run_folder_file(t->run, "model.safetensors"));
}

/* The order of the data and the choice of held-out items depend on the number of items. */
static void compare_items(const psld_training *t, const psld_snapshot *before)
{
    unsigned long long now = psld_data_count(t->data);
    if (before->items != 0 && before->items != now)
        psld_log(PSLD_LOG_WARNING,
                 "%s: has %llu items now and had %llu when the run was stopped: other items are held out from now on",
                 t->settings.data.path, now, (unsigned long long)before->items);
}

/* A run writes a checkpoint before its model. So a model without a checkpoint is not that of an unfinished run, and a
 * run from step 0 must not replace it. */
static psld_status load_newest_checkpoint(psld_training *t)
{
    char folder[4096];
    int found = 0;
    psld_snapshot snapshot = snapshot_of(t);
    snprintf(folder, sizeof folder, "%s", psld_run_folder_file(t->run, "checkpoints"));
    PSLD_TRY(psld_checkpoint_load(&snapshot, folder, &found));
    const char *model = psld_run_folder_file(t->run, "model.safetensors");
    if (!found && access(model, F_OK) == 0)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: has no checkpoint to go on from, and a run from step 0 would replace %s; give a new "
                         "folder",
                         folder, model);
    if (!found) return PSLD_OK;
    compare_items(t, &snapshot);
    if (t->learner) PSLD_TRY(psld_learner_restored(t->learner));
    PSLD_TRY(psld_training_name_recipe(t));
    t->model->steps = psld_training_steps(t);
    return psld_model_save(t->model, model); /* the run may have been stopped between the checkpoint and this */
}

psld_status psld_training_resume(psld_training *t)
{
    PSLD_TRY(load_newest_checkpoint(t));
    PSLD_TRY(psld_run_folder_set_config(t->run, t->config));
    long step = psld_trainer_steps(t->trainer);
    PSLD_TRY(psld_run_folder_log_from(t->run, step));
    if (t->settings.train.tensorboard && step < t->settings.train.steps)
        PSLD_TRY(psld_events_open(psld_run_folder_file(t->run, "tensorboard"), step, &t->events));
    return psld_training_metric_resume(t);
}
