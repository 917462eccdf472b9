/* A trainer from the inside, for the files trainer*.c. */
#ifndef PSLD_TRAIN_TRAINER_PRIVATE_H
#define PSLD_TRAIN_TRAINER_PRIVATE_H

#include "device/mirror.h"
#include "model/networks/network_plan.h"
#include "nn/exec.h"
#include "train/trainer.h"

/* Trained parameters that are adjacent in memory. */
typedef struct parameter_range {
    size_t first, count;
} parameter_range;

/* Neighbouring parameters whose gradients are summed over ranks together, and the step of the plan after which all of
 * them are final. Gradients become final from the last parameters to the first, roughly. So while one bucket is being
 * summed, the gradients of earlier parameters are still being computed. */
typedef struct bucket {
    size_t first, count, ready;
} bucket;

/* Places in psld_trainer.state. */
enum {
    TRAINER_WEIGHTS,
    TRAINER_M,
    TRAINER_V,
    TRAINER_AVERAGE,
    TRAINER_MORE,
    TRAINER_STATE_ARRAYS = TRAINER_MORE + PSLD_MAX_AVERAGES
};

struct psld_trainer {
    psld_trainer_options options;
    psld_network *network;
    psld_network_plan network_plan;
    const psld_plan *plan; /* memory of the plan */
    psld_id target, metric, soft, loss;
    psld_id loss_weight; /* weight of each sample's loss in the sum */
    psld_exec *exec;
    psld_network_plan look_plan; /* of the network alone, with dropout; look_exec NULL: not made */
    psld_exec *look_exec;
    psld_device *device;
    /* All of them [parameter_elements]. Saved state has an array of the host. On the CPU this is also the device's; on
     * other devices psld_trainer_fetch and psld_trainer_store copy. */
    psld_memory *gradients;
    psld_memory *sum; /* of the gradients of micro-batches; NULL: there is one per step */
    float *m, *v, *average, *own_average;
    double more_decays[PSLD_MAX_AVERAGES];
    float *more[PSLD_MAX_AVERAGES];          /* further averages; NULL behind the last */
    psld_mirror state[TRAINER_STATE_ARRAYS]; /* of the weights, m, v, average, and these; empty where there is none */
    int stale;                               /* the host's arrays are of an earlier step */
    int half_updated;                        /* the device's arrays are invalid: it failed in an update */
    parameter_range *ranges;
    size_t range_count;
    bucket *buckets; /* the last parameters first; NULL: this process is alone */
    size_t bucket_count;
    psld_sums *sums;      /* sums of the buckets over the ranks */
    float *exchange;      /* gradients for other ranks, if the CPU cannot read them on the device */
    psld_memory *squares; /* the sum of squares of the gradient, being computed */
    int squares_begun;
    float *weights, *losses; /* [batch] */
    float *zeros;            /* [batch] times the widest of augment and label; NULL: the network has neither */
    int pending;             /* micro-batches since the last update */
    long steps;
};

/* The inputs that all plans of a trainer have. */
psld_status psld_trainer_tell(const psld_trainer *trainer, psld_exec *exec, const psld_network_inputs *inputs,
                              const psld_microbatch *batch, const float *z, const float *time);
/* Makes the plan of psld_trainer_look. */
psld_status psld_trainer_plan_look(psld_trainer *trainer);

#endif
