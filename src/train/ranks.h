/* Several processes that train one model together: sums over all of them.
 *
 * Each rank has a copy of everything and works on its share of every batch; gradients are summed, and since every rank
 * gets the same bits and takes the same step, the copies stay equal. There are two implementations: `none`, a process of
 * its own, and MPI where the program was built with it. */
#ifndef PSLD_TRAIN_RANKS_H
#define PSLD_TRAIN_RANKS_H

#include <stddef.h>

#include "base/status.h"

/* How numbers are sent; they are added as floats either way. */
typedef enum psld_sum_format { PSLD_SUM_FP32, PSLD_SUM_BF16 } psld_sum_format;

/* Arrays whose sums over all ranks are made in the background. */
typedef struct psld_sums psld_sums;

typedef struct psld_distribution {
    int rank, count;
    /* Allocates memory for the sums of `arrays` arrays; array i has counts[i] numbers. */
    psld_status (*create_sums)(const size_t *counts, size_t arrays, psld_sum_format format, psld_sums **sums);
    /* NULL is harmless. */
    void (*free_sums)(psld_sums *sums);
    /* Begins to sum array i in place; its numbers must be left alone until `finish_sums`. All ranks begin the same arrays
     * in the same order, and get the same bits. */
    void (*begin_sum)(psld_sums *sums, size_t i, float *numbers);
    /* Lets sums that have begun make progress. */
    void (*poke_sums)(psld_sums *sums);
    /* Waits for all sums that have begun. */
    void (*finish_sums)(psld_sums *sums);
    /* Sums an array and waits. */
    void (*sum)(double *numbers, size_t count);
    /* Sends bytes from rank 0 to all ranks. */
    void (*broadcast)(void *bytes, size_t size);
    /* The bitwise or over all ranks. */
    void (*merge)(void *bytes, size_t size);
} psld_distribution;

/* The implementation of this process: `none` unless psld_ranks_begin has found other ranks. */
const psld_distribution *psld_distribution_now(void);

/* A share of `total` that belongs to a rank: [*begin, *end). */
void psld_distribution_share(const psld_distribution *ranks, uint64_t total, uint64_t *begin, uint64_t *end);

/* Starts MPI and returns its table; NULL if the program was built without MPI. */
psld_status psld_mpi_begin(const psld_distribution **ranks);
void psld_mpi_end(int failed);
/* The part of that table in ranks_sums.c. */
psld_status psld_mpi_create_sums(const size_t *counts, size_t arrays, psld_sum_format format, psld_sums **sums);
void psld_mpi_free_sums(psld_sums *sums);
void psld_mpi_begin_sum(psld_sums *sums, size_t i, float *numbers);
void psld_mpi_poke_sums(psld_sums *sums);
void psld_mpi_finish_sums(psld_sums *sums);

#endif
