/* One pool of threads behind two calls. Both return when all work is done; calls from inside a body, or while another
 * thread uses the pool, run in the calling thread alone. */
#ifndef PSLD_BASE_THREADS_H
#define PSLD_BASE_THREADS_H

#include <stddef.h>

typedef void (*psld_range_fn)(void *context, size_t begin, size_t end);

/* Divides 0 ... count - 1 into ranges of at least `grain` and runs them in no particular order. The result of a body must
 * not depend on where the ranges are cut. */
void psld_parallel(size_t count, size_t grain, psld_range_fn body, void *context);

typedef void (*psld_task_fn)(void *context, int slot, ptrdiff_t task);

/* Runs tasks 0 ... count - 1, for bodies that need scratch memory of their own. The caller decides how many slots of
 * scratch there are, usually one per thread. At most one thread uses a slot at any time. The result of a task must not
 * depend on its slot. */
void psld_parallel_tasks(int slots, ptrdiff_t count, psld_task_fn body, void *context);

/* Lets waiting threads sleep at once: before work of somebody else, which may need the processors for long. */
void psld_threads_rest(void);

#endif
