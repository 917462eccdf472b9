/* Seconds on a monotonic clock, for measuring. */
#ifndef PSLD_BASE_CLOCK_H
#define PSLD_BASE_CLOCK_H

#include <time.h>

static inline double psld_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
