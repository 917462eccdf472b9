/* psld: training networks. Needs the full library.
 */
#ifndef PSLD_TRAIN_H
#define PSLD_TRAIN_H

#include "psld.h"
#include "psld_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Training ---------------------------------------------------------------------------------------------------- */

typedef struct psld_training psld_training;

/* A metric that compares samples of a model with data during training (train.metric_every). psld_training_distance is
 * the one of the library. Samples and data are float32 [n, channels, ...], images in [-1, 1]. */

/* `weights` is train.metric_weights ("": none), `rank` the number of sizes of a sample of the data. */
typedef psld_status (*psld_metric_open_fn)(const char *weights, int rank, void **state);
/* Called once, before the first measurement. */
typedef psld_status (*psld_metric_reference_fn)(void *state, const psld_array *data);
typedef psld_status (*psld_metric_measure_fn)(void *state, const psld_array *samples, double *distance);
typedef void (*psld_metric_close_fn)(void *state);

typedef struct psld_training_metric {
    size_t size;
    psld_metric_open_fn open;
    psld_metric_reference_fn set_reference;
    psld_metric_measure_fn measure;
    psld_metric_close_fn close; /* or NULL */
} psld_training_metric;

#define PSLD_TRAINING_METRIC_DEFAULTS                        \
    {                                                        \
        sizeof(psld_training_metric), NULL, NULL, NULL, NULL \
    }

typedef struct psld_training_options {
    size_t size;
    const char *config;           /* YAML (docs/reference/training.md has the keys); NULL: chosen for the data */
    const char *data;             /* data to train on; NULL: data.path of the configuration */
    const char *const *overrides; /* "key.key=value" each */
    int override_count;           /* of `overrides`; unset: none */
    int classifier;               /* without a configuration: 1 chooses a classifier of noisy data; unset: 0 */
    const char *init;             /* a model with the initial weights; NULL: none */
    double seconds; /* time for training on this machine; unset: two hours if a network is chosen, otherwise as
                       train.steps says. A continued run keeps its steps */
    const psld_training_metric *metric; /* for train.metric_every; NULL: that key must be 0 */
    const char *isa;                    /* instruction set (psld_model_options); NULL: the best of this processor */
    const char *tune;   /* a model to tune for the sampler consistency, in place of config: the run begins with its
                         configuration and weights; NULL: none */
    const char *device; /* device of the training (psld_model_options); not part of the configuration: a run can
                           continue on any device. NULL: cpu */
} psld_training_options;

#define PSLD_TRAINING_DEFAULTS                                                                                       \
    {                                                                                                                \
        sizeof(psld_training_options), NULL, NULL, NULL, PSLD_UNSET, PSLD_UNSET, NULL, PSLD_UNSET, NULL, NULL, NULL, \
            NULL                                                                                                     \
    }

/* Opens a run in a folder, which is created if it does not exist. A run that is already in the folder is continued,
 * with the same bits as without the interruption; it needs neither config nor data, and another configuration is
 * refused. NULL: a run that writes nothing. NULL options are the defaults. One process and one thread at a time. */
PSLD_API psld_status psld_training_open(const char *folder, const psld_training_options *options,
                                        psld_training **training);
/* Steps that were not saved are lost. */
PSLD_API void psld_training_free(psld_training *training);

typedef struct psld_training_report {
    size_t size;
    uint64_t step, steps; /* steps so far, and in all */
    uint64_t samples;     /* per step */
    double loss;          /* mean over the step */
    double norm;          /* norm of its gradient, before clipping */
    double rate;          /* learning rate */
    double seconds;       /* duration of the step */
    double held_out;      /* loss of the averaged weights on held-out data; NaN if it was not measured */
    double accuracy;      /* for classifiers: the fraction of correct labels, measured likewise */
    double held_out_raw;  /* the loss of the raw weights on the same data; NaN also if there is no average */
    double metric;        /* the distance of samples from the data; NaN if it was not measured */
    double bits; /* per dimension, an upper bound: mean over the step; NaN: no loss is it (train.loss = elbo) */
} psld_training_report;

#define PSLD_TRAINING_REPORT_EMPTY                                       \
    {                                                                    \
        sizeof(psld_training_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Takes one step, writes its line of the log, and what is due after it: pictures, the plot, a checkpoint.
 * PSLD_NOT_FINITE if the loss is not finite; the last checkpoint is kept. If data cannot be read, this is tried again
 * for some seconds; then the call fails, and there is a checkpoint of the previous step. */
PSLD_API psld_status psld_training_step(psld_training *training, psld_training_report *report);
/* Writes a checkpoint and model.safetensors. */
PSLD_API psld_status psld_training_save(psld_training *training);

/* Takes steps until the end and calls `watch` (or NULL) after each. If it returns a value other than 0, or
 * psld_run_stop was called, a checkpoint is written and the call returns PSLD_CANCELLED. */
typedef int (*psld_training_fn)(void *user, const psld_training_report *report);
PSLD_API psld_status psld_training_run(psld_training *training, psld_training_fn watch, void *user);

PSLD_API uint64_t psld_training_steps(const psld_training *training);
/* The present model, with averaged weights: borrowed, and changed by steps. */
PSLD_API psld_model *psld_training_model(psld_training *training);
/* The data; the configuration with every key, as YAML. Borrowed. */
PSLD_API const psld_data *psld_training_data(const psld_training *training);
PSLD_API const char *psld_training_config(const psld_training *training);
/* The reasons for the choice of network and steps, one per line; "" if nothing was chosen. Borrowed. */
PSLD_API const char *psld_training_reasons(const psld_training *training);
/* Bytes of working memory, without the data. */
PSLD_API size_t psld_training_bytes(const psld_training *training);

/* Seconds of one step of training with `batch` samples (forward, backward, clipping, Adam, moving average; best of
 * `repetitions`), and the bytes of its working memory, as psld_model_time does for an evaluation. The weights are not
 * changed. */
PSLD_API psld_status psld_model_time_training(psld_model *model, size_t batch, int repetitions, double *seconds,
                                              size_t *bytes);

/* The state of a run from its folder, without opening it; the run may be training. */
typedef struct psld_run_info {
    size_t size;
    uint64_t step, steps; /* last step in the log, and steps in all */
    uint64_t saved;       /* step of the newest checkpoint */
    size_t checkpoints;
    double loss;     /* mean over the last steps, at most 100 */
    double held_out; /* last measurement; NaN: none */
    double seconds;  /* of all steps */
    int running;     /* a process is training in the folder */
    int classifier;  /* it trains a classifier, not a score network */
    double accuracy; /* of a classifier on held-out data, last measurement; NaN: none */
    double bits;     /* per dimension, an upper bound, of runs with that loss or a recipe that is learned; NaN: none */
} psld_run_info;

#define PSLD_RUN_INFO_EMPTY                                    \
    {                                                          \
        sizeof(psld_run_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }
PSLD_API psld_status psld_run_inspect(const char *folder, psld_run_info *info);
/* Asks the process in psld_training_run of this folder, on any machine and with any number of ranks, to stop after its
 * step with a checkpoint. Returns at once; psld_run_inspect tells when the run has stopped. PSLD_BAD_INPUT if no
 * process trains there. */
PSLD_API psld_status psld_run_stop(const char *folder);

/* All keys, 0 <= index; 0 past the last, and for a key whose size is not set: psld_error_text() says so. */
PSLD_API int psld_training_key_info(int index, psld_key *key);

#ifdef __cplusplus
}
#endif

#endif
