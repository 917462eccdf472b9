/* An open training run: the data that its parts share. The parts are in these files:
 *     training.c            the whole run
 *     training_config.c     the configuration, read or chosen
 *     training_tune.c       the configuration that tunes a model
 *     training_learn.c      a recipe that is learned
 *     training_open.c       networks, trainer and data
 *     training_check.c      whether these are compatible
 *     training_step.c       one step
 *     training_evaluate.c   the loss on held-out data
 *     training_log.c        a line of the log
 *     training_periodic.c   pictures and checkpoints
 *     training_save.c       saving and resuming
 *     metric.c, picture.c, run_page.c */
#ifndef PSLD_TRAIN_TRAINING_H
#define PSLD_TRAIN_TRAINING_H

#include "data/loader.h"
#include "psld_train.h"
#include "train/bins.h"
#include "train/choose.h"
#include "train/learner.h"
#include "train/objective.h"
#include "train/run_folder.h"
#include "train/tensorboard.h"

struct psld_training {
    const psld_distribution *ranks;
    psld_yaml *yaml; /* resolved: every key is there */
    char *config;    /* the same as text */
    psld_settings settings;
    int published;        /* the configuration was a published one */
    int64_t epochs;       /* epochs epochs that it asks for; 0: none */
    psld_choice choice;   /* the choices for data and time, and their reasons */
    psld_run_folder *run; /* NULL: nothing is written */
    psld_events *events;  /* for TensorBoard; NULL: none, or not yet */
    psld_data *data;
    psld_loader *loaders[2]; /* by psld_phase: training samples and held-out samples */
    uint64_t item_count[2];  /* of each */
    const psld_objective *objective;
    const char *isa, *device; /* from the options, borrowed while it is opened; NULL: the CPU, the fastest */
    psld_model *model;        /* has the weights for sampling: the average, or without one the trained weights */
    psld_network *network;    /* is trained; model->network if there is no average */
    psld_trainer *trainer;
    psld_perturbation perturbation;
    psld_learner *learner;   /* of the recipe; NULL: it is given */
    psld_perturbation bound; /* what it learns from, where the network has another loss: psld_training_bound */
    psld_microbatch microbatch;
    double scale;                /* of losses: 1, or the numbers per sample if they are summed */
    psld_bins bins;              /* losses since the last evaluation */
    psld_training_metric metric; /* the caller's, completed */
    int has_metric;              /* the metric is open: this rank measures */
    void *metric_state;
    int metric_has_data;   /* the metric has the data to compare with */
    double best_distance;  /* the smallest so far */
    long saved_step;       /* step of the last checkpoint, or at which the run began */
    double saved_seconds;  /* psld_seconds() at that moment */
    double looked_seconds; /* psld_seconds() when the folder was last looked at for a request to stop */
};

/* Reads the configuration, or chooses one; opens the data; compares with the run that the folder holds. */
psld_status psld_training_configure(psld_training *training, const psld_training_options *options);
/* The same from training->config, which another rank has resolved. */
psld_status psld_training_follow(psld_training *training);
/* The configuration of a run that tunes a model; then, once the deviation of the data is known, its noise levels. */
psld_status psld_training_tune_config(const char *path, psld_yaml **yaml);
psld_status psld_training_tune_noise(psld_training *training, const psld_training_options *options, double deviation);
psld_status psld_training_check_consistency(const psld_training *training);
/* process.learn as an override, of a process that may still be a line; an override that is one. And of a run with the
 * bound as its loss: the recipe in numbers, with its stabiliser 0, and by default times by importance that begin where the
 * noise is a quarter of the step between two values of a pixel. */
int psld_training_is_learn_key(const char *assignment);
psld_status psld_training_set_learn(psld_yaml *yaml, const char *assignment);
psld_status psld_training_expand_learned(psld_training *training);
/* The step between two values of a pixel, 0 for data that are no images. */
double psld_training_cell(const psld_training *training);
psld_status psld_training_check_learn(const psld_training *training);
/* The learner, where something is learned; after a step of the network, that of the recipe; after a checkpoint was read on
 * the first rank, its recipe on all. */
psld_status psld_training_begin_learn(psld_training *training);
psld_status psld_training_learn(psld_training *training);
psld_status psld_training_restore_learn(psld_training *training);
/* The perturbation whose objective is the bound. */
const psld_perturbation *psld_training_bound(const psld_training *training);
/* Tables of the law of times. */
psld_status psld_training_tabulate(psld_training *training);
/* Before the model is saved or handed out: its configuration gets the recipe that was learned. */
psld_status psld_training_name_recipe(psld_training *training);
/* Fails if settings, data and network are not compatible. */
psld_status psld_training_check(const psld_training *training);
/* Continues from the newest checkpoint of the folder; does nothing if there is none. */
psld_status psld_training_resume(psld_training *training);

/* The loss on held-out data, into the report; that of the averaged weights also by time. */
psld_status psld_training_evaluate(psld_training *training, psld_bins *averaged, psld_training_report *report);

/* Appends the line of a step; `held_out` is NULL where nothing was evaluated. */
psld_status psld_training_log_step(psld_training *training, const psld_training_report *report,
                                   const psld_bins *held_out);

/* Whether the last step is a multiple of `every` (0: never) or the last of the run. */
int psld_training_is_due(const psld_training *training, int64_t every);
/* Draws a picture and writes a checkpoint if they are due. `so_far` is the status of earlier measurements of this step:
 * if they or the picture failed, the run ends after a checkpoint. */
psld_status psld_training_after_step(psld_training *training, psld_status so_far);

/* Writes samples/step-N.png from the averaged weights (for data that can be shown: images, points in the plane), and
 * loss.png. */
psld_status psld_training_picture(psld_training *training);
/* Fails if train.sampler cannot be used with these settings; psld_training_check_picture checks only if there will be
 * pictures. */
psld_status psld_training_check_sampler(const psld_training *training);
psld_status psld_training_check_picture(const psld_training *training);
/* Draws the first `count` samples of the run's seed, float32 [count, ...], for pictures and metrics. */
psld_status psld_training_draw(psld_training *training, size_t count, psld_array **x);
psld_status psld_training_plot(psld_training *training);
#define PSLD_PICTURE_NAME "samples/step-%09llu.png"

/* Writes Writes index.html. `stopped`: why the run has ended early, or NULL. */
psld_status psld_training_page(psld_training *training, const char *stopped);

#endif
