/* States of a process in lanes, and the steps of its paths. */
#ifndef PSLD_PROCESS_PROCESS_RUN_H
#define PSLD_PROCESS_PROCESS_RUN_H

#include "base/random.h"
#include "process/process.h"

enum { PSLD_TERM_ARRAYS = 6 };

/* Memory of one thread for PSLD_TERM_LANES states; arrays are [variables][PSLD_TERM_LANES]. */
typedef struct psld_lane_work {
    const psld_process *process;
    double *scratch; /* of the formulas of the call */
    double *array[PSLD_TERM_ARRAYS];
} psld_lane_work;

/* States first ... first + count - 1, at most PSLD_TERM_LANES. Any failure counts as PSLD_NOT_FINITE. */
typedef psld_status (*psld_lanes_fn)(void *user, psld_lane_work *lanes, size_t first, size_t count);

/* Calls the body for all states, in parallel. Sets no error text. `formulas`: whose scratch memory is wanted, or NULL. */
psld_status psld_lanes_run(const psld_process *process, const psld_formulas *formulas, size_t count, psld_lanes_fn body,
                           void *user);

/* Between rows [count][n] and lanes [n][PSLD_TERM_LANES]. */
void psld_lanes_load(size_t n, size_t count, const double *z, double *lanes);
void psld_lanes_store(size_t n, size_t count, const double *lanes, double *z);

/* Time number `index` of a path of so many steps, which are even in the square root of t. */
double psld_path_time(double from, double to, int steps, int index);

/* Where the noise of a step comes from. */
typedef struct psld_path_noise {
    uint64_t seed, phase, sample[PSLD_TERM_LANES];
    enum psld_purpose purpose;
    const int *until; /* [PSLD_TERM_LANES]: steps that each lane takes; NULL: all */
} psld_path_noise;

/* An Euler-Maruyama step of states in lanes, scale = beta (u - t). Returns 0 if one of them is not finite. */
int psld_path_step(psld_lane_work *lanes, const psld_path_noise *noise, uint64_t step, size_t count, double scale,
                   double *z);

/* The error of paths that are not finite, or of memory. */
psld_status psld_process_fail_paths(const psld_process *process, psld_status status);

#endif
