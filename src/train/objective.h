/* What a network is trained to do: a row of a table. The loop around it is the same for all. */
#ifndef PSLD_TRAIN_OBJECTIVE_H
#define PSLD_TRAIN_OBJECTIVE_H

#include "model/model.h"
#include "train/perturb.h"
#include "train/settings.h"
#include "train/trainer.h"

/* Room for samples on their way through a step, [capacity] of each. */
typedef struct psld_minibatch {
    size_t capacity;
    float *x;             /* data */
    int32_t *label;       /* -1: none */
    double *t;            /* times ... */
    float *time;          /* ... as the network sees them */
    float *z, *target;    /* see psld_microbatch */
    float *metric;        /* NULL where the loss has none */
    float *augment;       /* see psld_microbatch; NULL where the network is not told */
    float *weight, *loss; /* see psld_microbatch */
    float *out;           /* what the network says; NULL where nobody looks */
    unsigned char *hit;   /* classifiers: the label was the likeliest */
} psld_minibatch;

typedef struct psld_objective {
    const char *name;
    const char *prefix;  /* of its weights in checkpoints: the published names */
    int looks_at_output; /* judge is wanted in training, too */
    /* Options of the trainer that follow from the objective. */
    void (*set_up)(const psld_settings *settings, const psld_model *model, psld_trainer_options *options);
    /* Numbers of the target of one sample. */
    size_t (*target_size)(const psld_model *model);
    /* From x and label of n samples with numbers first, ... to z, t, target and metric. */
    psld_status (*fill)(const psld_perturbation *how, psld_phase phase, uint64_t first, size_t n,
                        psld_minibatch *batch);
    /* Loss and hit of n samples from out and target: on data that is not trained on. */
    void (*judge)(const psld_settings *settings, const psld_model *model, size_t n, psld_minibatch *batch);
} psld_objective;

extern const psld_objective psld_objective_score, psld_objective_classifier;

#endif
