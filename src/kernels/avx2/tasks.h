/* Tasks with scratch of their own, on top of psld_parallel.
 *
 * Whoever calls a kernel decides how many slots of scratch it has, commonly one for each thread. Each slot has a share
 * of the tasks that follow one another, so that the same part of an array stays in the same cache from call to call;
 * done with it, it takes what others have left, so a slot that starts late or runs slowly does less. At most one thread
 * is in a slot at any time. Which slot does a task must not change its result. */
#ifndef PSLD_KERNELS_AVX2_TASKS_H
#define PSLD_KERNELS_AVX2_TASKS_H

#include <stddef.h>

typedef void (*psld_task_fn)(void *context, int slot, ptrdiff_t task);

/* Runs tasks 0 ... count - 1 and returns when all are done. */
void psld_tasks_avx2(int slots, ptrdiff_t count, psld_task_fn body, void *context);

/* Sizes that all kernels round to: lanes of a vector, outputs of a panel, and floats of an odd number of cache lines
 * (strides that are powers of two would put everything into the same few sets of the cache). */
static inline ptrdiff_t psld_round8(ptrdiff_t n)
{
    return (n + 7) & ~(ptrdiff_t)7;
}

static inline ptrdiff_t psld_round16(ptrdiff_t n)
{
    return (n + 15) & ~(ptrdiff_t)15;
}

static inline ptrdiff_t psld_odd_lines(ptrdiff_t n)
{
    return psld_round16(n) | 16;
}

static inline ptrdiff_t psld_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static inline ptrdiff_t psld_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

#endif
