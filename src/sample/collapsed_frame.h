/* Collapsed coordinates: the sufficient statistic of a state, and the rest.
 *
 * For each coordinate of the data, z ~ N(mu x_0, Sigma). Its sufficient statistic for x_0 is
 *     y = sigma^2 mu' Sigma^-1 z = x_0 + sigma n,     sigma^2 = 1 / (mu' Sigma^-1 mu).
 * The frame is a matrix S with S S' = Sigma and S^-1 mu = e_1 / sigma. So the first of the coordinates S^-1 z is
 * y / sigma. The other k - 1 are standard normal numbers xi, independent of x_0 and of y. */
#ifndef PSLD_SAMPLE_COLLAPSED_FRAME_H
#define PSLD_SAMPLE_COLLAPSED_FRAME_H

#include "process/recipe.h"

typedef struct psld_collapsed_frame {
    double sigma;
    double frame[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
} psld_collapsed_frame;

/* For the kernel at time t that the predictions of a source belong to; `exact`: as psld_source.exact. */
psld_status psld_collapsed_frame_plan(const psld_recipe *recipe, int exact, double t, psld_collapsed_frame *frame);

#endif
