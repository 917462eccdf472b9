/* Values of a process at points and on grids of up to three variables. */
#ifndef PSLD_PROCESS_PROCESS_GRID_H
#define PSLD_PROCESS_PROCESS_GRID_H

#include "process/process.h"

enum { PSLD_GRID_AXES = 3 };

/* A box outside of which exp(-H) is below 1e-16 of its maximum, for up to three variables; for more, five deviations to
 * each side. Fails where exp(-H) does not fall off. */
psld_status psld_process_box(const psld_process *process, uint64_t seed, double *low, double *high);

/* A grid of `points` for each variable, the first at low, steps of (high - low) / points, so that the last is a step before
 * high. The last variable changes fastest. */
typedef struct psld_process_grid {
    const psld_process *process;
    size_t points, total;
    double low[PSLD_GRID_AXES], step[PSLD_GRID_AXES];
    double *p;          /* [total]: exp(-H) over its maximum */
    double *drift;      /* [n][total]: f */
    double *divergence; /* [n][total]: div D */
    double *D;          /* [n (n + 1) / 2][total]: the lower triangle */
    double *gradient;   /* [n][total]: of H */
} psld_process_grid;

psld_status psld_process_grid_create(const psld_process *process, const double *low, const double *high, size_t points,
                                     psld_process_grid *grid);
void psld_process_grid_clear(psld_process_grid *grid);
/* The coordinates of a point. */
void psld_process_grid_place(const psld_process_grid *grid, size_t index, double *z);

/* "x = 1, m = -0.5" */
enum { PSLD_PLACE_SIZE = PSLD_MAX_VARIABLES * (PSLD_PROCESS_NAME + PSLD_NUMBER_SIZE) };
const char *psld_process_place(const psld_process *process, const double *z, char text[PSLD_PLACE_SIZE]);

#endif
