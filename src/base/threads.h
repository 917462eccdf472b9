/* One pool of threads behind one call.
 *
 * psld_parallel splits 0 ... count-1 into ranges of at least `grain` and runs them, in no particular order, on the
 * pool and the calling thread; it returns when all are done. A body must not depend on how the range is cut. Calls
 * from inside a body, or while another thread uses the pool, run in the calling thread alone. */
#ifndef PSLD_BASE_THREADS_H
#define PSLD_BASE_THREADS_H

#include <stddef.h>

typedef void (*psld_range_fn)(void *context, size_t begin, size_t end);

void psld_parallel(size_t count, size_t grain, psld_range_fn body, void *context);

#endif
