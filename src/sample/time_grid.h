/* Time grids of the reverse process. */
#ifndef PSLD_SAMPLE_TIME_GRID_H
#define PSLD_SAMPLE_TIME_GRID_H

#include "process/recipe.h"

/* times[0] = 1 > times[1] > ... > times[steps] = t_min. `grid` is a name, a list of times, or
 * "sigma:" and a list of noise levels. With no steps there is times[0] alone. */
psld_status psld_grid_times(const psld_recipe *recipe, const char *grid, double rho, int steps, double t_min,
                            double *times);
/* Whether a grid is a list of times, and its number of steps; and its last time. */
int psld_grid_is_list(const char *grid, int *steps);
psld_status psld_grid_list_end(const psld_recipe *recipe, const char *grid, double *t_min);

#endif
