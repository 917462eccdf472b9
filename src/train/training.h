/* A training run, opened: what its parts share. */
#ifndef PSLD_TRAIN_TRAINING_H
#define PSLD_TRAIN_TRAINING_H

#include "data/feed.h"
#include "psld_train.h"
#include "train/bins.h"
#include "train/choose.h"
#include "train/objective.h"
#include "train/run_folder.h"

struct psld_training {
    const psld_distribution *ranks;
    psld_yaml *yaml; /* resolved: every key is there */
    char *config;    /* the same as text */
    psld_settings settings;
    int published;        /* the configuration was one of the paper's authors */
    int64_t epochs;       /* that it asks for; 0: none */
    psld_choice choice;   /* what was chosen for the data and the time, and why */
    psld_run_folder *run; /* NULL: nothing is written */
    psld_data *data;
    psld_feed *feeds[2];    /* by psld_phase: samples to train on, and those held out */
    uint64_t feed_count[2]; /* items of each */
    const psld_objective *objective;
    psld_model *model;     /* has the weights to use: the average, or without one those that are trained */
    psld_network *network; /* what is trained; model->network where there is no average */
    psld_trainer *trainer;
    psld_perturbation how;
    psld_minibatch batch;               /* of one piece */
    double scale;                       /* of losses: 1, or the numbers of a sample if they are summed */
    psld_bins bins;                     /* since the last measurement */
    const psld_training_metric *metric; /* NULL: not measured, or not by this rank */
    void *metric_state;
    int metric_refers; /* it has been shown the data */
    double best;       /* the smallest distance so far */
    long saved;        /* step of the last checkpoint, or of what the run began with */
    double saved_at;   /* when that was */
    double looked_at;  /* when it was looked whether to stop */
};

/* Reads the configuration, or chooses one; opens the data; compares with the run that the folder holds. */
psld_status psld_training_configure(psld_training *training, const psld_training_options *options);

/* The same from training->config, which another rank has resolved. */
psld_status psld_training_follow(psld_training *training);

/* The loss of the averaged weights, or of the raw ones, on held-out data, by time. */
psld_status psld_training_evaluate(psld_training *training, int raw, psld_bins *bins);

/* samples/step-N.png from the averaged weights (data that can be looked at: images, points), and loss.png. */
psld_status psld_training_picture(psld_training *training);
/* Whether its sampler can do what it will be asked, before the steps that lead to it; psld_training_check_sampler also
 * asks where there is nothing to be seen. */
psld_status psld_training_check_picture(const psld_training *training);
psld_status psld_training_check_sampler(const psld_training *training);
/* The first samples that pictures are made of, float32 [count, ...]. */
psld_status psld_training_draw(psld_training *training, size_t count, psld_array **x);
psld_status psld_training_plot(psld_training *training);
#define PSLD_PICTURE_NAME "samples/step-%09llu.png"

/* index.html. `stopped`: why the run goes on no more, or NULL. */
psld_status psld_training_page(psld_training *training, const char *stopped);

#endif
