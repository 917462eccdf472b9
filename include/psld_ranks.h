/* psld: training and sampling on several machines, by MPI. Needs the full library.
 */
#ifndef PSLD_RANKS_H
#define PSLD_RANKS_H

#include "psld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the processes that an MPI launcher (mpirun, srun) has started: training then shares each batch among them and
 * rank 0 writes. Call it once, before anything else, in a program that a launcher has started. psld_ranks_end leaves;
 * with `failed` other than 0 (an exit code) it ends all ranks. PSLD_BAD_ARGUMENT if the library was built without
 * MPI. */
PSLD_API psld_status psld_ranks_begin(void);
PSLD_API void psld_ranks_end(int failed);
/* The number of this process, and how many there are; 0 of 1 without other ranks. */
PSLD_API int psld_rank(void);
PSLD_API int psld_rank_count(void);

/* Combines memory of which each rank has filled a part and left the rest 0: all ranks get the whole. Also a barrier. */
PSLD_API void psld_ranks_merge(void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
