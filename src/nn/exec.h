/* Running a plan.
 *
 * An exec is the memory of one plan: its arena, and the buffers of parameters and gradients that it was given. One
 * thread runs it at a time; several may share a plan. */
#ifndef PSLD_NN_EXEC_H
#define PSLD_NN_EXEC_H

#include "nn/plan.h"

typedef struct psld_exec psld_exec;

/* `parameters`, which are only read (and `gradients`, NULL if the plan writes none) are elements of the backend's
 * type, borrowed, as many as plan->parameters says. `poison`: fill the arena with NaN at first, each region with NaN
 * when its last step is done, and look after each step whether the lanes that must be zero are: a run then shows
 * every read of something dead, and psld_exec_faults counts the rest. */
psld_status psld_exec_create(const psld_plan *plan, void *parameters, void *gradients, int poison, psld_exec **exec);
void psld_exec_free(psld_exec *exec);

/* Parameters lie where `at` says, by their number, borrowed like them, instead of in one buffer: in a mapped file. As
 * there, each begins at a multiple of 64 bytes and is followed by zeros up to the next. */
void psld_exec_spread(psld_exec *exec, const void *const *at);

/* Writes an input for n samples: `data` is [n][c][h][w] of type PSLD_F32 or PSLD_F64. Inputs do not outlive a run. */
void psld_exec_set(psld_exec *exec, psld_id input, int n, psld_type type, const void *data);
/* Runs for n samples, 1 <= n <= the plan's batch. */
void psld_exec_run(psld_exec *exec, int n, const psld_run *run);
/* Reads an output of the last run: [n][c][h][w], or a dense tensor as it is (n is then not looked at). */
void psld_exec_get(const psld_exec *exec, psld_id output, int n, psld_type type, void *data);

/* From now on a run adds the seconds of each step to seconds[step], [plan->step_count]; NULL: no more. */
void psld_exec_time(psld_exec *exec, double *seconds);

/* Has `after` called when each step of the plan is done, by its number, from the thread that runs it; NULL ends that. */
void psld_exec_watch(psld_exec *exec, void (*after)(void *user, size_t step), void *user);

/* The parameters have changed: what the plan keeps, packed weights above all, is made again at the next run. */
void psld_exec_changed(psld_exec *exec);

size_t psld_exec_faults(const psld_exec *exec);

#endif
