/* The size of the noise of a process at each time: the unit of the predictions of its networks.
 *
 * deviation_i(t) is the deviation of variable i at t given the data: the root of half the mean square difference of two
 * simulated paths from the same data. The mean is over data of N(0, 1). For a recipe of matrices it is the root of the
 * diagonal of the kernel's covariance. */
#ifndef PSLD_PROCESS_PROCESS_SCALES_H
#define PSLD_PROCESS_PROCESS_SCALES_H

#include "process/process.h"

typedef struct psld_process_scales {
    int steps, noisy;
    double *variance; /* [steps + 1][noisy]: at the times of a path */
    double *rate;     /* [steps + 1][noisy]: mean of 2 beta D_ii there */
} psld_process_scales;

psld_status psld_process_scales_create(const psld_process *process, psld_process_scales **scales);
void psld_process_scales_free(psld_process_scales *scales);
/* The deviations of the noisy variables at t. Returns the weight of a loss there,
 *     noisy / sum_i (2 beta D_ii / deviation_i^2). */
double psld_process_scales_at(const psld_process_scales *scales, double t, double *deviation);

#endif
