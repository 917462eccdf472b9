/* The loss on held-out data, with the averaged weights and with the raw ones. */
#include "train/training.h"

/* Evaluates a micro-batch of held-out samples at times of one bin; x is filled already. */
static psld_status evaluate_bin(psld_training *t, int bin, psld_bins *bins)
{
    psld_microbatch *b = &t->microbatch;
    if (!(psld_perturbation_share(&t->perturbation, bin) > 0)) return PSLD_OK;
    psld_phase phase = (psld_phase)(PSLD_PHASE_HELD_OUT + bin);
    PSLD_TRY(t->objective->fill(&t->perturbation, phase, b));
    if (t->objective->aim) {
        PSLD_TRY(psld_model_run(t->model, b->n, b->other_z, b->other_time, b->one_hot, b->other));
        PSLD_TRY(t->objective->aim(&t->perturbation, phase, b));
    }
    PSLD_TRY(psld_model_run(t->model, b->n, b->z, b->time, b->one_hot, b->out));
    t->objective->judge(&t->settings, t->model, b);
    psld_bins_add(bins, b->n, b->t, b->loss, b->hit);
    return PSLD_OK;
}

/* Evaluates the share of this rank, with the present weights of the model. */
static psld_status evaluate_share(psld_training *t, psld_bins *bins)
{
    psld_microbatch *b = &t->microbatch;
    uint64_t held = t->item_count[PSLD_PHASE_HELD_OUT], count = (uint64_t)t->settings.train.evaluate_count;
    uint64_t done, end;
    psld_distribution_share(t->ranks, count < held ? count : held, &done, &end);
    psld_model_changed(t->model);
    while (psld_microbatch_next(b, 0, &done, end)) {
        PSLD_TRY(psld_loader_read(t->loaders[PSLD_PHASE_HELD_OUT], b->first, b->n, b->x, b->label));
        for (int bin = 0; bin < PSLD_BINS; bin++) PSLD_TRY(evaluate_bin(t, bin, bins));
    }
    return PSLD_OK;
}

/* All ranks fail if one does, so that they end the run together. */
static psld_status evaluate_model(psld_training *t, psld_bins *bins)
{
    psld_status status = evaluate_share(t, bins);
    double failed = status != PSLD_OK;
    t->ranks->sum(&failed, 1);
    if (failed > 0 && status == PSLD_OK) status = psld_fail(PSLD_IO, "another rank cannot evaluate its share");
    if (status != PSLD_OK) return status;
    t->ranks->sum((double *)bins, sizeof *bins / sizeof(double));
    for (int bin = 0; bin < PSLD_BINS; bin++)
        psld_bins_weigh(bins, bin, psld_perturbation_share(&t->perturbation, bin));
    return PSLD_OK;
}

/* Exchanges raw and averaged weights between model and trained network; a second call restores them. */
static void swap_weights(psld_training *t)
{
    float *a = t->network->weights, *b = t->model->network->weights;
    for (size_t i = 0; i < t->network->graph->parameter_elements; i++) {
        float swap = a[i];
        a[i] = b[i];
        b[i] = swap;
    }
}

static psld_status evaluate_raw(psld_training *t, psld_bins *bins)
{
    swap_weights(t);
    psld_status status = evaluate_model(t, bins);
    swap_weights(t);
    return status;
}

psld_status psld_training_evaluate(psld_training *t, psld_bins *averaged, psld_training_report *report)
{
    psld_bins raw = {0};
    if (t->item_count[PSLD_PHASE_HELD_OUT] == 0) return PSLD_OK;
    PSLD_TRY(psld_trainer_fetch(t->trainer));
    PSLD_TRY(evaluate_model(t, averaged));
    report->held_out = t->scale * psld_bins_loss(averaged);
    if (t->objective->looks_at_output) report->accuracy = psld_bins_accuracy(averaged);
    if (t->network == t->model->network) return PSLD_OK; /* no average is kept: the model has the raw weights */
    PSLD_TRY(evaluate_raw(t, &raw));
    report->held_out_raw = t->scale * psld_bins_loss(&raw);
    return PSLD_OK;
}
