/* What a network is trained to do: a row of a table. The training loop is the same for all. */
#ifndef PSLD_TRAIN_OBJECTIVE_H
#define PSLD_TRAIN_OBJECTIVE_H

#include "model/model.h"
#include "train/perturb.h"
#include "train/settings.h"
#include "train/trainer.h"

typedef struct psld_objective {
    const char *name;
    const char *prefix;  /* of its weights in checkpoints: the published names */
    int looks_at_output; /* judge is called in training, too, */
    int own_loss;        /* and its loss is the one that is reported */
    int has_base;        /* which has a part that the network has none in */
    /* Options of the trainer that follow from the objective. */
    void (*set_options)(const psld_settings *settings, const psld_model *model, psld_trainer_options *options);
    /* Numbers per sample in the target. */
    size_t (*target_size)(const psld_model *model);
    /* From x and label of a micro-batch to z, t, time, target and metric. */
    psld_status (*fill)(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch);
    /* NULL, or: fill has set other_z and other_time instead of the target, and this computes the target from the
     * network's prediction for them, `other`. */
    psld_status (*aim)(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch);
    /* Loss and hit of a micro-batch from out and target: for held-out data. */
    void (*judge)(const psld_settings *settings, const psld_model *model, psld_microbatch *batch);
} psld_objective;

extern const psld_objective psld_objective_score, psld_objective_classifier, psld_objective_path,
    psld_objective_consistency, psld_objective_elbo;

/* Of the bound: bits per dimension of a nat per sample; and the same times the length of the interval of times, which is
 * what the mean over uniform times of 1/2 |s_theta - s*|^2_G counts. */
double psld_elbo_unit(const psld_perturbation *how);
double psld_elbo_scale(const psld_perturbation *how);

/* The smaller noise of the other side of the consistency loss. */
double psld_consistency_less(const psld_consistency *how, int64_t stage, double sigma);

/* For all score networks: the number of predictions per coordinate; the labels of a micro-batch, without those that
 * training drops; and the mean of e' M e, or of |e|^power, of one sample, where e is the error of `out`. */
size_t psld_objective_variables(const psld_model *model);
void psld_objective_fill_labels(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch);
double psld_objective_error(const psld_microbatch *batch, size_t index, size_t dim, size_t variables, int power);

#endif
