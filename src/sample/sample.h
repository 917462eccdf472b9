/* A sampling call: options are completed, the schedule is planned, and each batch of samples runs through it. Here, and
 * nowhere else, samples are divided into batches. (A network divides what it is given by its own plan: network_run.c.) */
#ifndef PSLD_SAMPLE_SAMPLE_H
#define PSLD_SAMPLE_SAMPLE_H

#include "sample/schedule.h"

/* Samples per batch: about `batch`, rounded up to whole groups of `group`, so that the groups do not depend on the batch.
 * Always from 1 to `count`. */
size_t psld_batch_size(size_t count, size_t batch, size_t group);

/* Evaluations so far, summed over groups of states that step together, without the last denoising step. */
typedef struct psld_sample_cost {
    uint64_t evaluations, groups;
} psld_sample_cost;
/* Evaluations per sample: the mean over groups, rounded up. */
uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost);

/* The samples of a call. */
typedef struct psld_sample_set {
    uint64_t first;      /* number of the first sample */
    size_t count, dim;   /* samples; coordinates of the data */
    const double *start; /* [count][k * dim]: initial states; NULL: draws of the stationary distribution */
    double *z;           /* [count][k * dim]: the results; NULL: they are only handed to `done` */
    /* NULL, or called after each batch with its states [count][k * dim]. */
    psld_status (*done)(void *user, uint64_t first, size_t count, const double *z);
    void *user;
} psld_sample_set;

/* As psld_sample, without its warning. Adds the evaluations to *cost, also when it fails. */
psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                const psld_sample_set *set, psld_sample_cost *cost);
/* Whether psld_sample_counted would start: plans the schedule, but takes no steps. */
psld_status psld_sample_check(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options);
/* Logs a warning if the forward process does not reach its stationary distribution, where the reverse process starts. */
void psld_sample_warn(const psld_recipe *recipe);

/* The parts of a call, for psld_sample_counted and psld_encode. The first checks arguments. The second is given complete
 * options and a schedule whose sampler and direction are set; it plans the schedule and samples. */
psld_status psld_sample_check_call(const psld_recipe *recipe, const psld_source *source,
                                   const psld_sample_options *options, size_t count, size_t dim);
psld_status psld_sample_along(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                              psld_schedule *schedule, const psld_sample_set *set, psld_sample_cost *cost);

#endif
