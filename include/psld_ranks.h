/* psld: training and sampling on several machines, by MPI. Needs the full library.
 */
#ifndef PSLD_RANKS_H
#define PSLD_RANKS_H

#include "psld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the processes that an MPI launcher (mpirun, srun) has started: training then shares each batch among them and
 * rank 0 writes. Once, before anything else, from a program that was started so; psld_ranks_end leaves, and with `failed`
 * other than 0 (an exit code) ends them all. Without MPI in the library: PSLD_BAD_ARGUMENT. */
PSLD_API psld_status psld_ranks_begin(void);
PSLD_API void psld_ranks_end(int failed);
/* This process's number, and how many there are: 0 of 1 when it is alone. */
PSLD_API int psld_rank(void);
PSLD_API int psld_rank_count(void);

/* Memory of which each rank has filled a part, the rest being 0: all ranks get the whole. Also a barrier. */
PSLD_API void psld_ranks_merge(void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
