/* Running a plan.
 *
 * An exec is the memory of one plan on the device of its backend: its arena, and the buffers of parameters and gradients
 * that it was given. One thread runs it at a time; several may share a plan. On the CPU nothing but creating it can
 * fail; other devices may be lost at any time (device/device.h). */
#ifndef PSLD_NN_EXEC_H
#define PSLD_NN_EXEC_H

#include "device/device.h"
#include "nn/plan.h"

typedef struct psld_exec psld_exec;

/* `parameters` (only read) and `gradients` (NULL if the plan writes none) are borrowed arrays of the backend's
 * element type, as many elements as plan->parameters says. A device with memory of its own gets copies: of the parameters
 * before the first run and before the next after psld_exec_changed; gradients are copied back after each run.
 *
 * With `poison` the arena is filled with NaN at first, each region again after its last step, and after each step the
 * lanes that must be zero are checked. So a run shows every read of dead memory, and psld_exec_faults counts nonzero
 * lanes. */
psld_status psld_exec_create(const psld_plan *plan, void *parameters, void *gradients, int poison, psld_exec **exec);
/* The same with memory of the device, borrowed; nothing is copied. */
psld_status psld_exec_create_on(const psld_plan *plan, psld_memory *parameters, psld_memory *gradients,
                                psld_exec **exec);
/* The parameters are at the borrowed addresses `at`, by their number, instead of in one buffer: for mapped files.
 * Each begins at a multiple of 64 bytes and is followed by zeros up to the next multiple. */
psld_status psld_exec_create_spread(const psld_plan *plan, const void *const *at, void *gradients, int poison,
                                    psld_exec **exec);
void psld_exec_free(psld_exec *exec);

/* Writes an input for n samples: `data` is [n][c][h][w] of type PSLD_F32 or PSLD_F64. Inputs must be written again
 * before each run. */
psld_status psld_exec_set(psld_exec *exec, psld_id input, int n, psld_type type, const void *data);
/* Runs for n samples, 1 <= n <= the plan's batch. The device may still be computing when this returns. */
psld_status psld_exec_run(psld_exec *exec, int n, const psld_run *run);
/* Reads an output of the last run: [n][c][h][w], or a dense tensor as it is (n is ignored). */
psld_status psld_exec_get(const psld_exec *exec, psld_id output, int n, psld_type type, void *data);

/* From now on a run adds the time of each step to seconds[step], [plan->step_count]; NULL ends this. */
void psld_exec_time(psld_exec *exec, double *seconds);

/* Calls `after` with the number of each step when it is done, from the thread that runs the plan; NULL ends this. On
 * other devices than the CPU, the step may not be finished then. */
void psld_exec_watch(psld_exec *exec, void (*after)(void *user, size_t step), void *user);

/* Call this when the parameters have changed: packed weights and other kept results are computed again at the next
 * run. */
void psld_exec_changed(psld_exec *exec);

size_t psld_exec_faults(const psld_exec *exec);

#endif
