/* What a network is trained to do: a row of a table. The loop around it is the same for all. */
#ifndef PSLD_TRAIN_OBJECTIVE_H
#define PSLD_TRAIN_OBJECTIVE_H

#include "model/model.h"
#include "train/perturb.h"
#include "train/settings.h"
#include "train/trainer.h"

typedef struct psld_objective {
    const char *name;
    const char *prefix;  /* of its weights in checkpoints: the published names */
    int looks_at_output; /* judge is wanted in training, too, */
    int own_loss;        /* and gives the loss that is reported */
    /* Options of the trainer that follow from the objective. */
    void (*set_options)(const psld_settings *settings, const psld_model *model, psld_trainer_options *options);
    /* Numbers per sample in the target. */
    size_t (*target_size)(const psld_model *model);
    /* From x and label of a micro-batch to z, t, time, target and metric. */
    psld_status (*fill)(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch);
    /* Loss and hit of a micro-batch from out and target: for data that are not trained on. */
    void (*judge)(const psld_settings *settings, const psld_model *model, psld_microbatch *batch);
} psld_objective;

extern const psld_objective psld_objective_score, psld_objective_classifier, psld_objective_path;

#endif
