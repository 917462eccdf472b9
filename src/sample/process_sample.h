/* Sampling a process with formulas: its reverse, and its probability flow.
 *
 * In reverse time the drift is beta (-f + 2 div D + 2 D s) with the noise sqrt(2 beta D), and the flow is
 * dz/dt = beta (f - div D - D s), s being the score of the noisy variables. */
#ifndef PSLD_SAMPLE_PROCESS_SAMPLE_H
#define PSLD_SAMPLE_PROCESS_SAMPLE_H

#include "process/process.h"

/* Fails with options that have no meaning here, and fills in those that are unset. */
psld_status psld_process_options_complete(const psld_process *process, psld_sample_options *options);

/* psld_process_sample in batches, which go to `done`. Options are complete. `start` [count][variables] or NULL. */
typedef psld_status (*psld_process_batch_fn)(void *user, uint64_t first, size_t count, const double *z);
psld_status psld_process_sample_batches(const psld_process *process, psld_score_fn score, void *score_user,
                                        const psld_sample_options *options, uint64_t first, size_t count,
                                        const double *start, psld_process_batch_fn done, void *user, uint64_t *nfe);

#endif
