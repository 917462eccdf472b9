/* Time grids of the reverse process. */
#ifndef PSLD_SAMPLE_TIME_GRID_H
#define PSLD_SAMPLE_TIME_GRID_H

#include "process/recipe.h"

/* times[0] = 1 > times[1] > ... > times[steps] = end, by the name of a grid or as the list of times that `grid` is. */
psld_status psld_grid_times(const psld_recipe *recipe, const char *grid, double rho, int steps, double end,
                            double *times);
/* Whether a grid is a list, and then its steps and where it ends. */
int psld_grid_is_list(const char *grid, int *steps);
psld_status psld_grid_list_end(const char *grid, double *end);

#endif
