/* One training step. docs/explanation/design.md lists the files that it goes through. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/sized.h"
#include "train/metric.h"
#include "train/training.h"

/* Sums of a step, on this rank and then on all. */
typedef struct step_sums {
    double loss;
    double bits;   /* the bound, where it is a loss beside the network's */
    double failed; /* ranks that could not read their data */
    psld_bins bins;
} step_sums;

/* From sample numbers to the network's input and target. */
static psld_status fill_microbatch(psld_training *t, const psld_objective *objective, psld_microbatch *b)
{
    const psld_loader *loader = t->loaders[PSLD_PHASE_TRAIN];
    PSLD_TRY(psld_loader_read(t->loaders[PSLD_PHASE_TRAIN], b->first, b->n, b->x, b->label));
    if (b->augment) psld_loader_augmentation(loader, b->first, b->n, b->augment);
    PSLD_TRY(objective->fill(objective == t->objective ? &t->perturbation : &t->bound, PSLD_PHASE_TRAIN, b));
    if (!t->objective->aim) return PSLD_OK;
    PSLD_TRY(psld_trainer_look(t->trainer, b));
    return t->objective->aim(&t->perturbation, PSLD_PHASE_TRAIN, b);
}

/* Adds the losses of a micro-batch to those of the step. */
static void count_losses(psld_training *t, psld_microbatch *b, step_sums *sums)
{
    double batch = (double)t->settings.train.batch;
    if (t->objective->own_loss) t->objective->judge(&t->settings, t->model, b);
    for (size_t i = 0; i < b->n; i++) sums->loss += t->scale * (double)b->loss[i] / batch;
    if (t->objective->looks_at_output) t->objective->judge(&t->settings, t->model, b);
    psld_bins_add(&sums->bins, b->n, b->t, b->loss, b->hit);
}

/* A sample's gradient by the recipe is 0 on all ranks but one, so that sums are exact. */
static void sum_learner(psld_training *t)
{
    size_t count;
    double *gradients = psld_learner_gradients(t->learner, &count);
    t->ranks->sum(gradients, count);
}

/* The same of the bound, whose gradients the learner has. */
static void count_bits(psld_training *t, psld_microbatch *b, step_sums *sums)
{
    psld_objective_elbo.judge(&t->settings, t->model, b);
    for (size_t i = 0; i < b->n; i++) sums->bits += (double)b->loss[i] / (double)t->settings.train.batch;
}

/* Gradients by one objective of this rank's share of a step, whose samples are step * batch + 0 ... batch - 1. A rank
 * that cannot read its data still goes through the step, with the data of an earlier one, since the others wait for its
 * sums. Then no rank updates its weights. */
static psld_status add_share(psld_training *t, const psld_objective *objective, uint64_t step, psld_status status,
                             step_sums *sums)
{
    psld_microbatch *b = &t->microbatch;
    uint64_t batch = (uint64_t)t->settings.train.batch, done, end;
    psld_distribution_share(t->ranks, batch, &done, &end);
    while ((status == PSLD_OK || t->ranks->count > 1) && psld_microbatch_next(b, step * batch, &done, end)) {
        if (status == PSLD_OK) status = fill_microbatch(t, objective, b);
        psld_status added = psld_trainer_add(t->trainer, b);
        if (status == PSLD_OK) status = added;
        if (status == PSLD_OK && t->learner && objective == &psld_objective_elbo)
            status = psld_learner_add(t->learner, psld_training_bound(t), b);
        if (objective == t->objective)
            count_losses(t, b, sums);
        else
            count_bits(t, b, sums);
    }
    return status;
}

/* A recipe beside a network with another loss has a pass of its own, whose gradients of the network are dropped. */
static psld_status add_gradients(psld_training *t, uint64_t step, step_sums *sums)
{
    psld_status status = PSLD_OK;
    if (t->learner) psld_learner_begin(t->learner);
    if (t->learner && t->objective != &psld_objective_elbo) {
        status = add_share(t, &psld_objective_elbo, step, status, sums);
        psld_trainer_drop(t->trainer);
    }
    status = add_share(t, t->objective, step, status, sums);
    sums->failed = status != PSLD_OK;
    t->ranks->sum(&sums->loss, sizeof *sums / sizeof(double));
    if (t->learner) sum_learner(t);
    if (sums->failed > 0) psld_trainer_drop(t->trainer);
    if (sums->failed > 0 && status == PSLD_OK) status = psld_fail(PSLD_IO, "another rank has failed");
    return status;
}

/* If data cannot be read the run ends, but nothing is lost: a checkpoint of its last step is written, and a line of the
 * log if the step was taken (`report` not NULL). */
static psld_status stop_with_checkpoint(psld_training *t, psld_status status, const psld_training_report *report)
{
    enum { TEXT = 800 };
    char why[TEXT];
    double all_are_here = 0;
    long step = psld_trainer_steps(t->trainer);
    snprintf(why, sizeof why, "%s", psld_error_text());
    int is_saved = t->run && (!report || psld_training_log_step(t, report, NULL) == PSLD_OK) &&
                   (t->saved_step == step || psld_training_save(t) == PSLD_OK);
    t->ranks->sum(&all_are_here, 1); /* a rank that fails ends the others: not before the checkpoint is written */
    if (!is_saved) return psld_fail(status, "%s", why);
    return psld_fail(status, "%s; stopped after step %ld, with a checkpoint", why, step);
}

/* Gradients and the update. */
static psld_status training_step_once(psld_training *t, psld_training_report *report)
{
    step_sums sums = {0};
    double began = psld_seconds();
    psld_status status = add_gradients(t, (uint64_t)psld_trainer_steps(t->trainer), &sums);
    if (status != PSLD_OK) return stop_with_checkpoint(t, status, NULL);
    report->loss = sums.loss;
    if (t->objective == &psld_objective_elbo) report->bits = sums.loss;
    if (t->learner && t->objective != &psld_objective_elbo) report->bits = sums.bits;
    report->rate = psld_trainer_rate_now(t->trainer);
    PSLD_TRY(psld_trainer_update(t->trainer, report->loss, &report->norm));
    PSLD_TRY(psld_training_learn(t));
    psld_bins_merge(&t->bins, &sums.bins);
    report->seconds = psld_seconds() - began;
    return PSLD_OK;
}

static psld_status step_and_report(psld_training *t, psld_training_report *report)
{
    *report = (psld_training_report){.size = sizeof *report,
                                     .step = (uint64_t)psld_trainer_steps(t->trainer) + 1,
                                     .steps = (uint64_t)t->settings.train.steps,
                                     .samples = (uint64_t)t->settings.train.batch,
                                     .held_out = (double)NAN,
                                     .accuracy = (double)NAN,
                                     .held_out_raw = (double)NAN,
                                     .metric = (double)NAN,
                                     .bits = (double)NAN};
    PSLD_TRY(training_step_once(t, report));
    psld_bins held_out = {0};
    psld_status status = PSLD_OK, metric = PSLD_OK;
    int evaluates = psld_training_is_due(t, t->settings.train.evaluate_every);
    if (evaluates) status = psld_training_evaluate(t, &held_out, report);
    if (status != PSLD_OK) return stop_with_checkpoint(t, status, report);
    if (psld_training_is_due(t, t->settings.train.metric_every))
        metric = psld_training_metric_measure(t, &report->metric);
    PSLD_TRY(psld_training_log_step(t, report, evaluates ? &held_out : NULL));
    if (evaluates) t->bins = (psld_bins){0};
    return psld_training_after_step(t, metric);
}

psld_status psld_training_step(psld_training *t, psld_training_report *report)
{
    psld_training_report own;
    PSLD_TRY(psld_sized_check(report, sizeof own, "PSLD_TRAINING_REPORT_EMPTY"));
    psld_status status = step_and_report(t, &own);
    psld_sized_write(report, &own);
    return status;
}
