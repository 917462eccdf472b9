/* One optimisation step after another on a network: loss, gradient, clipping, Adam, moving average.
 *
 * The caller draws data, times and noise and forms z_t; the trainer knows neither files nor processes. Weights are
 * updated in the network itself. A step is any number of micro-batches, whose gradients add up, and an update. */
#ifndef PSLD_TRAIN_TRAINER_H
#define PSLD_TRAIN_TRAINER_H

#include "model/networks/network.h"
#include "train/microbatch.h"
#include "train/ranks.h"

/* The learning rate after warm-up: constant, falling to 0 on a cosine or a line, or as 1 / sqrt(step). */
typedef enum psld_rate_schedule {
    PSLD_SCHEDULE_CONSTANT,
    PSLD_SCHEDULE_COSINE,
    PSLD_SCHEDULE_LINEAR,
    PSLD_SCHEDULE_INVERSE_SQRT
} psld_rate_schedule;

enum { PSLD_MAX_AVERAGES = 8 }; /* of the weights, with different decays */

typedef struct psld_trainer_options {
    const psld_backend *backend;
    int batch;                                 /* most samples per micro-batch */
    int microbatches;                          /* per step: their gradients are added */
    int entropy;                               /* the target is a label, the loss -log p(label) */
    int power;                                 /* else the target is eps, and this is the power of the loss, 2 or 1 */
    int metric;                                /* power 2: the error is measured by a matrix for each sample */
    int root;                                  /* power 2: the loss is a smoothed root (psld_nn_root), and
                                                  psld_trainer_look is called */
    int by_z;                                  /* its gradient by z is wanted, too */
    double rate, beta1, beta2, epsilon, decay; /* Adam; decay of weights */
    int adamw;                                 /* decay shrinks the weights instead of joining the gradient */
    long warmup;                               /* steps over which the rate rises from 0 */
    psld_rate_schedule schedule;               /* of the rate after that */
    long total;                                /* steps in all, at which cosine and linear reach 0 */
    double clip;                               /* largest norm of the gradient; 0: any */
    double ema;                                /* of the moving average; 0: none is kept */
    int ema_warmup;                            /* the average forgets faster at the beginning: see ema_decay */
    float *average;                            /* where it is kept (borrowed), or NULL: in memory of its own */
    const double *more;                        /* decays of further averages (borrowed while it is created) */
    size_t more_count;
    uint64_t seed;                  /* of dropout */
    const psld_distribution *ranks; /* ranks ranks whose gradients are summed; NULL: this process is alone */
    psld_sum_format format;         /* the format the format in which they are sent */
} psld_trainer_options;

/* Adam 2e-4, warm-up 5000, clipping 1, average 0.9999: App. C of the paper. */
void psld_trainer_defaults(psld_trainer_options *options);

typedef struct psld_trainer psld_trainer;

/* The network is borrowed; the average starts as a copy of its weights. */
psld_status psld_trainer_create(psld_network *network, const psld_trainer_options *options, psld_trainer **trainer);
void psld_trainer_free(psld_trainer *trainer);

/* Adds the gradient of sum(weight loss) over a micro-batch to that of the step so far. Fills `loss` and, where they are
 * not NULL, `out` and, with the option of that name, `by_z`. With several ranks a failure must be followed by psld_trainer_drop on all. */
psld_status psld_trainer_add(psld_trainer *trainer, const psld_microbatch *batch);
/* Evaluates the network with its present weights on the states `other_z` at `other_time`, into `other`, with the same
 * labels and the same dropout as psld_trainer_add uses for `z`. No gradient. */
psld_status psld_trainer_look(psld_trainer *trainer, const psld_microbatch *batch);
/* Updates the weights, and returns the norm of the gradient before clipping. If `loss` or the norm is not finite,
 * nothing is changed: PSLD_NOT_FINITE. */
psld_status psld_trainer_update(psld_trainer *trainer, double loss, double *norm);
/* Forgets the micro-batches since the last update. With several ranks: on all of them, after the last micro-batch. */
void psld_trainer_drop(psld_trainer *trainer);

/* A step of one micro-batch with equal weights, of the same size on every rank. Gives its mean loss and the norm of the
 * gradient over all ranks. */
psld_status psld_trainer_step(psld_trainer *trainer, int n, uint64_t first, float *z, float *t, float *target,
                              double *loss, double *norm);

/* Copies the state and the network's weights from the device, if they have changed since the last copy: call this
 * before reading them. The other copies them to the device: call it after writing them. On the CPU both do nothing. */
psld_status psld_trainer_fetch(psld_trainer *trainer);
psld_status psld_trainer_store(psld_trainer *trainer);

/* The state of a trainer between two steps, without the network's weights: to be saved and restored. The
 * arrays have `count` numbers at the offsets of the weights; average is NULL where there is none. */
typedef struct psld_trainer_state {
    size_t count;
    float *m, *v, *average;
    float *more[PSLD_MAX_AVERAGES]; /* further averages; NULL behind the last */
    long *steps;
} psld_trainer_state;
psld_trainer_state psld_trainer_state_of(psld_trainer *trainer);

/* The learning rate of step k, from 0: rises linearly over warm-up, then follows the schedule. */
double psld_trainer_rate(const psld_trainer_options *options, long step);
/* The same of a trainer's own; of the step to come. */
double psld_trainer_rate_at(const psld_trainer *trainer, long step);
double psld_trainer_rate_now(const psld_trainer *trainer);

/* Steps taken; the moving average (NULL: none), at the offsets of the network's weights; bytes of all buffers. */
long psld_trainer_steps(const psld_trainer *trainer);
const float *psld_trainer_average(const psld_trainer *trainer);
size_t psld_trainer_bytes(const psld_trainer *trainer);

#endif
