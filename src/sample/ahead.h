/* Noise drawn ahead: while a user's function computes a score, a thread of its own draws the normal numbers of the step
 * that follows. They have addresses, so it does not matter which thread draws them, or when.
 *
 * The thread is not one of the pool (base/threads.h): the function may use that itself. */
#ifndef PSLD_SAMPLE_AHEAD_H
#define PSLD_SAMPLE_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "psld.h"

typedef struct psld_reverse psld_reverse; /* reverse.h */
typedef struct psld_ahead psld_ahead;

/* For batches of `numbers` = count k dim, if it is worth it: *ahead stays NULL for scores of the library, with one thread,
 * and for small batches. */
psld_status psld_ahead_open(const psld_reverse *reverse, size_t numbers, psld_ahead **ahead);
void psld_ahead_free(psld_ahead *ahead);

/* Begins to draw the noise PSLD_FOR_STEP of `steps` steps from `step` on, at most PSLD_AHEAD_STEPS, for the batch as it
 * is. Call it before the score. */
enum { PSLD_AHEAD_STEPS = 2 };
void psld_ahead_begin(const psld_reverse *reverse, uint64_t step, size_t steps);
/* The numbers [count][k dim] of this step, valid until the next begin; NULL: they were not drawn ahead. Draws the
 * rest. */
const double *psld_ahead_take(const psld_reverse *reverse, uint64_t step);

#endif
