/* The reverse process of one batch of samples: the states, and what a sampler needs to move them. Samplers see states,
 * times and a source, and nothing else. */
#ifndef PSLD_SAMPLE_REVERSE_H
#define PSLD_SAMPLE_REVERSE_H

#include "sample/affine.h"
#include "sample/sources/source.h"

struct psld_reverse {
    const psld_recipe *recipe;
    psld_source *source;
    const psld_sample_options *options;
    size_t k, predicted, dim;
    uint64_t first;               /* number of the first sample of the batch */
    size_t count;                 /* samples in the batch */
    double *z;                    /* [count][k * dim] */
    double *eps;                  /* [count][predicted * dim]: the last prediction of the source */
    double *t;                    /* [count]: times of the states of one evaluation, */
    uint64_t *sample;             /* [count]: and the samples that they belong to */
    double *work;                 /* [count][k * dim] times the sampler's work_states */
    int last_step;                /* multistep samplers: the last step taken, */
    int consecutive;              /* and how many steps have followed each other without a jump */
    uint64_t evaluations, groups; /* summed over groups of samples that step together, to report their mean */
    uint64_t done_before, total;  /* progress: of the batches before, of all */
};

/* Fills reverse->eps for states `z` at time t, in calls of at most options->batch states. */
psld_status psld_reverse_predict(psld_reverse *reverse, const double *z, double t);
/* The same for n states whose times are in reverse->t and whose samples are in reverse->sample. */
psld_status psld_reverse_predict_each(psld_reverse *reverse, size_t n, const double *z);

/* Shows options->watch the evaluation of `count` states z, all at the same time: those whose time, sample and eps are
 * at `begin` in the arrays of `reverse`. */
psld_status psld_reverse_watch(const psld_reverse *reverse, size_t begin, size_t count, const double *z);

/* Reports progress within a batch: `fraction` of it is done. */
psld_status psld_reverse_report(const psld_reverse *reverse, double fraction);

#endif
