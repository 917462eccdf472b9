/* A training run as a whole: steps until the last one, or until somebody asks it to stop. */
#include "train/training.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

psld_model *psld_training_model(psld_training *t)
{
    (void)psld_trainer_fetch(t->trainer); /* after a lost device: the last weights that were copied from it */
    psld_model_changed(t->model);
    (void)psld_training_name_recipe(t);
    return t->model;
}

const char *psld_training_config(const psld_training *t)
{
    return t->config;
}

const char *psld_training_reasons(const psld_training *t)
{
    return t->choice.reasons;
}

const psld_data *psld_training_data(const psld_training *t)
{
    return t->data;
}

size_t psld_training_bytes(const psld_training *t)
{
    return psld_trainer_bytes(t->trainer);
}

uint64_t psld_training_steps(const psld_training *t)
{
    return (uint64_t)psld_trainer_steps(t->trainer);
}

/* Whether to stop now; the same on all ranks. `stop` is the answer of this rank's callback. */
static int is_to_stop(psld_training *t, double stop)
{
    const double pause = 0.2; /* over a network, reading the folder may cost more than a step */
    double now = psld_seconds();
    if (t->run && now - t->looked_seconds >= pause) {
        t->looked_seconds = now;
        if (psld_run_folder_asked_to_stop(t->run)) stop = 1;
    }
    t->ranks->sum(&stop, 1); /* any rank may have been asked to stop */
    return stop != 0;
}

static psld_status run_steps(psld_training *t, psld_training_fn watch, void *user)
{
    while (psld_trainer_steps(t->trainer) < t->settings.train.steps) {
        psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
        PSLD_TRY(psld_training_step(t, &report));
        if (!is_to_stop(t, watch && watch(user, &report))) continue;
        if (t->saved_step != psld_trainer_steps(t->trainer)) PSLD_TRY(psld_training_save(t));
        return psld_fail(PSLD_CANCELLED, "stopped after step %llu", (unsigned long long)report.step);
    }
    return PSLD_OK;
}

/* The page tells why a run ended early. If it cannot be written, the reason itself is still reported. */
psld_status psld_training_run(psld_training *t, psld_training_fn watch, void *user)
{
    char why[1024];
    psld_status status = run_steps(t, watch, user);
    if (status == PSLD_OK || !t->run) return status;
    snprintf(why, sizeof why, "%s", psld_error_text());
    (void)psld_training_page(t, why);
    return psld_fail(status, "%s", why);
}
