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

/* What measures samples of a model against data while a run trains (train.metric_every). psld_training_distance is the
 * library's own. Samples and data are float32 [n, channels, ...], images in [-1, 1]. */

/* `weights` is train.metric_weights ("": none), `rank` that of a sample of the data. */
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
    psld_metric_close_fn close; /* NULL: there is nothing to close */
} psld_training_metric;

#define PSLD_TRAINING_METRIC_DEFAULTS                        \
    {                                                        \
        sizeof(psld_training_metric), NULL, NULL, NULL, NULL \
    }

typedef struct psld_training_options {
    size_t size;
    const char *config;           /* YAML (docs/reference/training.md has the keys); NULL: chosen for the data */
    const char *data;             /* what to train on; NULL: data.path of the configuration */
    const char *const *overrides; /* "key.key=value" each */
    int override_count;           /* of `overrides`; unset: none */
    int classifier;               /* without a configuration: 1 chooses a classifier of noisy data; unset: 0 */
    const char *init;             /* a model whose weights to start from; NULL: none */
    double seconds; /* that training may take on this machine; unset: two hours where a network is chosen, and
                       train.steps of a configuration counts. A run that goes on keeps its steps */
    const psld_training_metric *metric; /* for train.metric_every; NULL: that key must be 0 */
    const char *isa;  /* instruction set to compute with (psld_model_options); NULL: the best of this processor */
    const char *tune; /* a model that is tuned for the sampler consistency, instead of config: its configuration and its
                         weights are begun with; NULL: none */
    const char *device; /* where the network is computed and trained (psld_model_options); not part of the
                           configuration: a run goes on on any device. NULL: cpu */
} psld_training_options;

#define PSLD_TRAINING_DEFAULTS                                                                                       \
    {                                                                                                                \
        sizeof(psld_training_options), NULL, NULL, NULL, PSLD_UNSET, PSLD_UNSET, NULL, PSLD_UNSET, NULL, NULL, NULL, \
            NULL                                                                                                     \
    }

/* Opens a run in a folder, which is made if it is not there. A folder that has a run already goes on with it, bit for
 * bit as if it had never stopped, and needs neither config nor data; another configuration is refused. NULL: a run that
 * writes nothing. NULL options are the defaults. One process and one thread at a time. */
PSLD_API psld_status psld_training_open(const char *folder, const psld_training_options *options,
                                        psld_training **training);
/* What was not saved is lost. */
PSLD_API void psld_training_free(psld_training *training);

typedef struct psld_training_report {
    size_t size;
    uint64_t step, steps; /* taken, and to be taken in all */
    uint64_t samples;     /* of a step */
    double loss;          /* mean over the step */
    double norm;          /* of its gradient, before clipping */
    double rate;          /* learning rate */
    double seconds;       /* that it took */
    double held_out;      /* loss of the averaged weights on held-out data; NaN when it was not measured */
    double accuracy;      /* the same for classifiers: part of labels that were right */
    double held_out_raw;  /* the loss of the raw weights on the same data; NaN also where no average is kept */
    double metric;        /* the distance of samples from the data; NaN when it was not measured */
    double bits; /* per dimension, an upper bound: mean over the step; NaN: no loss is it (train.loss = elbo) */
} psld_training_report;

#define PSLD_TRAINING_REPORT_EMPTY                                       \
    {                                                                    \
        sizeof(psld_training_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* One step, its line in the log, and what is due after it: pictures, the plot, a checkpoint. PSLD_NOT_FINITE when the
 * loss is not finite; the last checkpoint is then still there. Data that cannot be read are tried again for some
 * seconds; then the step is not taken, and there is a checkpoint of the one before it. */
PSLD_API psld_status psld_training_step(psld_training *training, psld_training_report *report);
/* A checkpoint, and model.safetensors. */
PSLD_API psld_status psld_training_save(psld_training *training);

/* Steps until the end, telling `watch` (or NULL) of each. When it returns other than 0, or psld_run_stop asks for it, a
 * checkpoint is written and the call returns PSLD_CANCELLED. */
typedef int (*psld_training_fn)(void *user, const psld_training_report *report);
PSLD_API psld_status psld_training_run(psld_training *training, psld_training_fn watch, void *user);

PSLD_API uint64_t psld_training_steps(const psld_training *training);
/* The model as it is now, with averaged weights: borrowed, and changed by steps. */
PSLD_API psld_model *psld_training_model(psld_training *training);
/* The data; the configuration with every key, as YAML. Borrowed. */
PSLD_API const psld_data *psld_training_data(const psld_training *training);
PSLD_API const char *psld_training_config(const psld_training *training);
/* Why a network and its steps were chosen so, a line each; "" where nothing was chosen. Borrowed. */
PSLD_API const char *psld_training_reasons(const psld_training *training);
/* Bytes of working memory, the data's not counted. */
PSLD_API size_t psld_training_bytes(const psld_training *training);

/* Seconds of one step of training with `batch` samples (forward, backward, clipping, Adam, moving average; best of
 * `repetitions`), and the bytes of its working memory, as psld_model_time does for an evaluation. The weights stay as they are. */
PSLD_API psld_status psld_model_time_training(psld_model *model, size_t batch, int repetitions, double *seconds,
                                              size_t *bytes);

/* What the folder of a run says, without opening it; one that is being trained in may be looked at. */
typedef struct psld_run_info {
    size_t size;
    uint64_t step, steps; /* logged last, and to be taken in all */
    uint64_t saved;       /* step of the newest checkpoint */
    size_t checkpoints;
    double loss;     /* mean over the last steps, at most 100 */
    double held_out; /* the last that was measured; NaN: none */
    double seconds;  /* of all steps */
    int running;     /* a process is training in it */
    int classifier;  /* it trains a classifier, not a score network */
    double accuracy; /* of a classifier on held-out data, the last that was measured; NaN: none */
    double bits;     /* per dimension, an upper bound, of runs with that loss or a recipe that is learned; NaN: none */
} psld_run_info;

#define PSLD_RUN_INFO_EMPTY                                    \
    {                                                          \
        sizeof(psld_run_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }
PSLD_API psld_status psld_run_inspect(const char *folder, psld_run_info *info);
/* Asks the process that is in psld_training_run in this folder, on whatever machine and with however many ranks, to stop
 * after its step with a checkpoint. Returns at once: psld_run_inspect says when nothing runs any more. PSLD_BAD_INPUT where
 * nothing trains. */
PSLD_API psld_status psld_run_stop(const char *folder);

/* All keys, 0 <= index; 0 past the last, and for a key whose size is not set: psld_error_text() says so. */
PSLD_API int psld_training_key_info(int index, psld_key *key);

#ifdef __cplusplus
}
#endif

#endif
