/* What happens every so many steps or minutes: pictures, checkpoints, the page. */
#include "base/clock.h"
#include "train/training.h"

int psld_training_is_due(const psld_training *t, int64_t every)
{
    long step = psld_trainer_steps(t->trainer);
    return every > 0 && (step % every == 0 || step >= t->settings.train.steps);
}

/* There is always a checkpoint after the last step. */
static int checkpoint_is_due(const psld_training *t)
{
    double pause = 60 * t->settings.train.checkpoint_minutes;
    if (pause > 0 && psld_seconds() - t->saved_seconds >= pause) return 1;
    return psld_trainer_steps(t->trainer) >= t->settings.train.steps ||
           psld_training_is_due(t, t->settings.train.checkpoint_every);
}

/* The checkpoint comes last: if it exists, all else of its step exists, too. */
psld_status psld_training_after_step(psld_training *t, psld_status so_far)
{
    psld_status status = so_far;
    int draws = psld_training_is_due(t, t->settings.train.sample_every), saves;
    if (!t->run) return so_far;
    if (status == PSLD_OK && draws) status = psld_training_picture(t);
    if (status != PSLD_OK) {
        psld_training_save(t);
        return status;
    }
    saves = checkpoint_is_due(t);
    if (saves) {
        PSLD_TRY(psld_training_plot(t));
        PSLD_TRY(psld_training_save(t));
    }
    return saves || draws ? psld_training_page(t, NULL) : PSLD_OK;
}
