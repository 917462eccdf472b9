/* Minimisation without gradients: a (1+1) evolution strategy that adapts its step size and covariance (Igel, Suttorp
 * and Hansen 2006). One trial at a time. A proposal depends only on the seed and on the reported costs. */
#ifndef PSLD_EVAL_EVOLUTION_H
#define PSLD_EVAL_EVOLUTION_H

#include <stdint.h>

#include "base/status.h"

typedef struct psld_evolution psld_evolution;

/* Begins at `start` [n], whose cost is known, with steps of about `step` in each coordinate. `number` distinguishes
 * searches with the same seed. */
psld_status psld_evolution_create(int n, const double *start, double cost, double step, uint64_t seed, uint64_t number,
                                  psld_evolution **evolution);
void psld_evolution_free(psld_evolution *evolution);
/* The next trial. It belongs to the evolution and is valid until the next call. */
const double *psld_evolution_propose(psld_evolution *evolution);
/* Reports the cost of the last trial, which may be infinite. */
void psld_evolution_tell(psld_evolution *evolution, double cost);

#endif
