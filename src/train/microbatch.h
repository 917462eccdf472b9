/* The samples of a training step, in one struct from the data to the loss.
 *
 * A rank works through its share of a batch in micro-batches. Each is filled in this order:
 *     data/loader.h        x, label, augment
 *     train/objective.h    one_hot; t, time, z, target, metric by train/perturb.h; perhaps other_z, other_time
 *     train/trainer.h      other; then train/objective.h computes the target from it
 *     train/trainer.h      loss, out
 *     train/objective.h    loss and hit from out, if the objective needs the output */
#ifndef PSLD_TRAIN_MICROBATCH_H
#define PSLD_TRAIN_MICROBATCH_H

#include <stdint.h>

#include "base/status.h"

/* Arrays have room for `capacity` samples; the first `n` are in use. */
typedef struct psld_microbatch {
    size_t capacity, n;
    uint64_t first;   /* number of the first sample since the run began: the address of its random numbers */
    uint64_t in_step; /* number of the first sample within its step: the address of dropout */
    int last; /* the last the last of this rank in the step: sums over ranks begin as soon as gradients are final */
    float *x; /* [n][dim]: data */
    int32_t *label;     /* [n]; -1: none */
    float *augment;     /* [n][PSLD_AUGMENT_INPUTS]: how the image was augmented; NULL: the network has no such input */
    float *one_hot;     /* [n][classes]: labels of a score network, zeros: none; NULL: it has no labels */
    double *t;          /* [n]: times of the process */
    float *time;        /* [n]: the same as the network's input */
    float *z;           /* [n][in_ch][size][size]: input of the network */
    float *eps;         /* [n][in_ch][size][size]: the noise in z; NULL: not needed */
    float *by_z;        /* [n][in_ch][size][size]: gradient of sum(weight loss) by z; NULL: not wanted */
    float *target;      /* [n][out_ch][size][size], or labels [n]: what it should predict */
    float *metric;      /* [n][p * p], see psld_nn_loss; NULL: the loss has none */
    float *soft;        /* [n]: scale of psld_nn_root, the smoothed root of the loss; NULL: no root, no other state */
    float *other_z;     /* other states, as z */
    float *other_time;  /* [n]: their times, as the network's input */
    float *other;       /* as target: the network's prediction for them, from which the target is computed */
    float *weight;      /* [n]: weight of each sample's loss in the sum */
    float *loss;        /* [n]: without its weight */
    float *base;        /* [n]: what belongs to the loss and the network has no part in; NULL: nothing does */
    float *out;         /* [n][numbers of the output]: output of the network; NULL: not needed */
    unsigned char *hit; /* [n]: classifiers: whether the label was the most probable class */
} psld_microbatch;

/* Numbers per sample; 0: no such array. */
typedef struct psld_microbatch_sizes {
    size_t x, z, target, metric, augment, one_hot, out;
    int other; /* whether there are other states, */
    int base;  /* a part of the loss that the network has none in, */
    int moves; /* and the gradient by z and its noise are wanted */
} psld_microbatch_sizes;

/* Allocates all arrays; free with psld_microbatch_clear, after failure too. */
psld_status psld_microbatch_allocate(psld_microbatch *batch, size_t capacity, const psld_microbatch_sizes *sizes);
void psld_microbatch_clear(psld_microbatch *batch);

/* Divides samples [*done, end) of a step or of a set into micro-batches: sets n, in_step and last for the next one and
 * advances *done; returns 0 if there is none left. `first` becomes origin + in_step. */
int psld_microbatch_next(psld_microbatch *batch, uint64_t origin, uint64_t *done, uint64_t end);

#endif
