/* Several processes that train one model together: sums over all of them.
 *
 * Each rank has a copy of everything and works on its share of every batch; gradients are summed, and since every rank
 * gets the same bits and takes the same step, the copies stay equal. There are two implementations: `none`, a process of
 * its own, and MPI where the program was built with it. */
#ifndef PSLD_TRAIN_RANKS_H
#define PSLD_TRAIN_RANKS_H

#include <stddef.h>

#include "base/status.h"

typedef struct psld_distribution {
    int rank, count;
    /* Begins to sum numbers over all ranks, in place; they must be left alone until `finish`. All ranks begin the same
     * sums in the same order. */
    void (*begin_sum)(float *numbers, size_t count);
    /* Gives sums that have begun a chance to move on. */
    void (*poke)(void);
    /* Waits for all that have begun. */
    void (*finish)(void);
    void (*sum)(double *numbers, size_t count);
    /* From rank 0 to all. */
    void (*broadcast)(void *bytes, size_t size);
    /* Bits of all ranks together. */
    void (*merge)(void *bytes, size_t size);
} psld_distribution;

/* That of this process: `none` unless psld_ranks_begin has found others. */
const psld_distribution *psld_distribution_now(void);

/* A share of `total` that belongs to a rank: [*begin, *end). */
void psld_distribution_share(const psld_distribution *ranks, uint64_t total, uint64_t *begin, uint64_t *end);

/* For implementations: begins, and gives its table; NULL when it is not built in. */
psld_status psld_mpi_begin(const psld_distribution **ranks);
void psld_mpi_end(int failed);

#endif
