/* Samples on their way through a training step, in one struct from the data to the loss.
 *
 * A rank works through its share of a batch in micro-batches. Each is filled in this order:
 *     data/loader.h        x, label, augment
 *     train/objective.h    one_hot; t, time, z, target, metric by train/perturb.h; of some also other_z, other_time
 *     train/trainer.h      other, and then train/objective.h the target made of it
 *     train/trainer.h      loss, out
 *     train/objective.h    loss and hit from out, where the objective looks at the output */
#ifndef PSLD_TRAIN_MICROBATCH_H
#define PSLD_TRAIN_MICROBATCH_H

#include <stdint.h>

#include "base/status.h"

/* Arrays have room for `capacity` samples; the first `n` are in use. */
typedef struct psld_microbatch {
    size_t capacity, n;
    uint64_t first;     /* number of the first sample since the run began: the address of its random numbers */
    uint64_t in_step;   /* number of the first sample within its step: the address of dropout */
    int last;           /* of this rank in the step: sums over ranks begin as soon as gradients are final */
    float *x;           /* [n][dim]: data */
    int32_t *label;     /* [n]; -1: none */
    float *augment;     /* [n][PSLD_AUGMENT_INPUTS]: what was done to the data; NULL: the network is not told */
    float *one_hot;     /* [n][classes]: labels for a score network, zeros: none; NULL: it has no labels */
    double *t;          /* [n]: times of the process, */
    float *time;        /* [n]: and as the network sees them */
    float *z;           /* [n][in_ch][size][size]: what the network is given */
    float *eps;         /* [n][in_ch][size][size]: the noise in z; NULL: not needed */
    float *by_z;        /* [n][in_ch][size][size]: gradient of sum(weight loss) by z; NULL: not wanted */
    float *target;      /* [n][out_ch][size][size], or labels [n]: what it should say */
    float *metric;      /* [n][p * p], see psld_nn_loss; NULL: the loss has none */
    float *soft;        /* [n]: how the root of the loss is rounded at 0, see psld_nn_root; NULL: no root is taken, */
    float *other_z;     /* and there are no other states: as z, */
    float *other_time;  /* [n]: their times as the network sees them, */
    float *other;       /* as target: what the network says of them, which the target is made of */
    float *weight;      /* [n]: what the loss of each sample counts in the sum */
    float *loss;        /* [n]: without its weight */
    float *base;        /* [n]: what belongs to the loss and the network has no part in; NULL: nothing does */
    float *out;         /* [n][numbers of the output]: output of the network; NULL: not needed */
    unsigned char *hit; /* [n]: classifiers: the label was the likeliest class */
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

/* Cuts samples [*done, end) of a step or of a set into micro-batches: sets n, in_step and last for the next one and moves
 * *done on; 0 when there is none left. `first` becomes origin + in_step. */
int psld_microbatch_next(psld_microbatch *batch, uint64_t origin, uint64_t *done, uint64_t end);

#endif
