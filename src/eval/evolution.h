/* Minimisation without gradients: a (1+1) evolution strategy that adapts its step size and covariance (Igel, Suttorp and
 * Hansen 2006). One trial at a time; what is proposed depends on the seed and on what was told, and on nothing else. */
#ifndef PSLD_EVAL_EVOLUTION_H
#define PSLD_EVAL_EVOLUTION_H

#include <stdint.h>

#include "base/status.h"

typedef struct psld_evolution psld_evolution;

/* Begins at `start` [n], whose cost is known, with steps of about `step` in each coordinate. `number` tells searches of a
 * seed apart. */
psld_status psld_evolution_create(int n, const double *start, double cost, double step, uint64_t seed, uint64_t number,
                                  psld_evolution **evolution);
void psld_evolution_free(psld_evolution *evolution);
/* The next trial, the evolution's own until the next call. */
const double *psld_evolution_propose(psld_evolution *evolution);
/* Its cost, which may be infinite. */
void psld_evolution_tell(psld_evolution *evolution, double cost);

#endif
