/* A recipe that is learned with its network: its parameters (process/learned.h), their gradient of the training loss, and
 * their steps of Adam.
 *
 * The loss is that of objective_elbo.c. Its gradient by the recipe needs the network's error and its gradient by z, which
 * the trainer has after each micro-batch. Each sample's gradient has a place of its own, and the sum over them is made in
 * their order: threads, micro-batches and ranks change none of its bits. */
#ifndef PSLD_TRAIN_LEARNER_H
#define PSLD_TRAIN_LEARNER_H

#include "process/learned.h"
#include "train/perturb.h"

typedef struct psld_learner psld_learner;

/* `recipe` is changed in place from now on, and called learned; `batch` is of all ranks. */
psld_status psld_learner_create(psld_recipe *recipe, unsigned what, uint64_t batch, psld_learner **learner);
void psld_learner_free(psld_learner *learner);

/* What a step has added up is forgotten. */
void psld_learner_begin(psld_learner *learner);
/* Adds the gradients of a micro-batch, whose x, eps, t, out and by_z are set. */
psld_status psld_learner_add(psld_learner *learner, const psld_perturbation *how, const psld_microbatch *batch);
/* The gradients of the step as one array, to be added up over ranks. */
double *psld_learner_gradients(psld_learner *learner, size_t *count);

/* The gradient of the loss by the parameters, and its norm, once those of all samples are there. */
psld_status psld_learner_finish(psld_learner *learner, const psld_perturbation *how, double *gradient, double *norm);

/* Adam's numbers for a step. */
typedef struct psld_learner_step {
    double rate, beta1, beta2, epsilon, clip;
    long step; /* from 1 */
} psld_learner_step;

/* Moves the parameters and the recipe. If that would be none, or the gradient is not finite, it fails, and nothing is
 * changed. */
psld_status psld_learner_update(psld_learner *learner, const psld_perturbation *how, const psld_learner_step *step,
                                double *norm);

/* The parameters and Adam's means, [3][parameters]: to be saved, and restored with psld_learner_restored. */
double *psld_learner_state(psld_learner *learner, size_t *count);
psld_status psld_learner_restored(psld_learner *learner);

#endif
