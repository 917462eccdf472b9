/* The collapsed frame: coordinates of a state in which one number holds all that it says of the data.
 *
 * With S = frame, S S' = Sigma and S^-1 mu = e_1 / sigma. The coordinates S^-1 z are y / sigma, where y = x_0 + sigma n
 * is the sufficient statistic of z for x_0, and k - 1 standard normal numbers xi that say nothing of x_0. */
#ifndef PSLD_SAMPLE_COLLAPSED_FRAME_H
#define PSLD_SAMPLE_COLLAPSED_FRAME_H

#include "process/recipe.h"

typedef struct psld_collapsed_frame {
    double sigma;
    double frame[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
} psld_collapsed_frame;

/* Of the kernel at time t that the predictions of a source belong to; `exact`: as psld_source.exact. */
psld_status psld_collapsed_frame_plan(const psld_recipe *recipe, int exact, double t, psld_collapsed_frame *frame);

#endif
