/* Sampling: options are completed, the schedule is planned, and batch after batch goes along it. */
#ifndef PSLD_SAMPLE_SAMPLE_H
#define PSLD_SAMPLE_SAMPLE_H

#include "sample/schedule.h"

/* How many of `count` samples to take at once: about `batch`, and whole groups of `group`, so that these are the same
 * whatever the batch. However large or small what is asked for is, 1 to `count`. */
size_t psld_batch_size(size_t count, size_t batch, size_t group);

/* Evaluations so far, of groups of states that step together; the last denoising step is left out. */
typedef struct psld_sample_cost {
    uint64_t evaluations, groups;
} psld_sample_cost;
/* Evaluations per sample: the mean over groups, rounded up. */
uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost);

/* As psld_sample without its warning; adds what was evaluated to *cost: for callers that draw in several calls. */
psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                uint64_t first, size_t count, size_t dim, const double *start, double *z,
                                psld_sample_cost *cost);
/* Whether psld_sample_counted would begin: plans its schedule and takes none of its steps. */
psld_status psld_sample_check(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options);
/* Logs a warning where the reverse process starts too far from where the forward process ends. */
void psld_sample_warn(const psld_recipe *recipe);

/* The parts of a call, for psld_sample_counted and psld_encode: checks arguments; then, with complete options and a
 * schedule whose sampler and direction are set, plans it and samples along it. */
psld_status psld_sample_check_call(const psld_recipe *recipe, const psld_source *source,
                                   const psld_sample_options *options, size_t count, size_t dim);
psld_status psld_sample_along(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                              psld_schedule *schedule, uint64_t first, size_t count, size_t dim, const double *start,
                              double *z, psld_sample_cost *cost);

#endif
