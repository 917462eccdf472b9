/* The reverse process of one batch of samples: the states, and what a sampler needs to advance them. Samplers use only
 * states, times and a source. */
#ifndef PSLD_SAMPLE_REVERSE_H
#define PSLD_SAMPLE_REVERSE_H

#include "sample/affine.h"
#include "sample/ahead.h"
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
    double *t;                    /* [count]: times of the states of one evaluation */
    uint64_t *sample;             /* [count]: the samples that these states belong to */
    double *work;                 /* [count][k * dim] times the sampler's work_states */
    psld_ahead *ahead;            /* draws noise while the score is computed, or NULL */
    int last_step;                /* multistep samplers: number of the last step */
    int consecutive;              /* multistep samplers: steps since the last jump */
    uint64_t evaluations, groups; /* evaluations summed over groups of samples that step together, and these groups */
    size_t before, samples;       /* progress: samples of earlier batches, and of all batches */
};

/* Fills reverse->eps for the states `z` of the batch, all at time t. */
psld_status psld_reverse_predict(psld_reverse *reverse, const double *z, double t);
/* The same for n states whose times are in reverse->t and whose samples are in reverse->sample. */
psld_status psld_reverse_predict_each(psld_reverse *reverse, size_t n, const double *z);

/* Calls options->watch with the evaluation of `count` states z, all at the same time. Their times, samples and eps begin
 * at index `begin` of the arrays of `reverse`. */
psld_status psld_reverse_watch(const psld_reverse *reverse, size_t begin, size_t count, const double *z);

/* Reports progress of the whole call, of which `fraction` of this batch is done. */
psld_status psld_reverse_report(const psld_reverse *reverse, double fraction);

#endif
