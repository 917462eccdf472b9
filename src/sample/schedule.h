/* The schedule of a sampling call: the times of its reverse steps, and the constants of each step. It is computed once for
 * all batches. */
#ifndef PSLD_SAMPLE_SCHEDULE_H
#define PSLD_SAMPLE_SCHEDULE_H

#include "sample/samplers/sampler.h"

typedef struct psld_schedule {
    const psld_sampler *sampler;
    int upward; /* from data to noise: psld_encode */
    int steps, repeats;
    int truncated;           /* the last step has one evaluation fewer: see psld_sampler */
    double *times;           /* [steps + 1] */
    char *tables;            /* [steps][sampler->table_size] */
    psld_affine *correctors; /* [steps]: corrector at the end time of each step */
    psld_affine last;        /* the denoising step */
} psld_schedule;

/* Fills all fields but sampler and upward, which the caller sets. Release it even if this fails. */
psld_status psld_schedule_plan(const psld_recipe *recipe, const psld_sample_options *options, int exact,
                               psld_schedule *schedule);
void psld_schedule_release(psld_schedule *schedule);

#endif
