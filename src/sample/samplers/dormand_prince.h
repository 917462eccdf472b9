/* The Dormand-Prince pair of orders 5(4) with adaptive steps, for many states at once.
 *
 * Consecutive states form groups, and each group has its own step size. Groups do not influence each other. Their slopes
 * are evaluated together, so that a network is given large batches. */
#ifndef PSLD_SAMPLE_DORMAND_PRINCE_H
#define PSLD_SAMPLE_DORMAND_PRINCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { PSLD_DP_WORK = 9 };

typedef struct psld_dp_group {
    size_t begin, count; /* states */
    size_t packed;       /* index of the first of them among the states of all unfinished groups */
    double t;            /* time at which slopes are evaluated */
    /* private to the solver: */
    double at, step, tried; /* time reached; step size to try next; step size of the current attempt */
    int rejected;           /* a step was rejected since the last accepted one */
} psld_dp_group;

/* Evaluates the slopes of the unfinished groups. `states` are their states, packed; the callback may change them first, as
 * inpainting does. Slopes are written unpacked, at g->begin. They are by the independent variable of the solver: dy/dt
 * if time rises, -dy/dt if it falls. */
typedef psld_status (*psld_dp_slopes_fn)(void *user, size_t count, const psld_dp_group *groups, double *states,
                                         double *slopes);

typedef struct psld_dp {
    const char *name;           /* of the caller, for messages */
    double from, to;            /* times, in either order */
    double tolerance;           /* relative and absolute */
    size_t count, width, group; /* states, numbers per state, states per group */
    double *y;                  /* [count][width]: on entry the states at `from`, on return at `to` */
    double *work;               /* [PSLD_DP_WORK][count][width] */
    psld_dp_slopes_fn slopes;
    psld_status (*report)(void *user, double fraction); /* after every step */
    void *user;
} psld_dp;

/* Number of groups. */
size_t psld_dp_groups(size_t count, size_t group);

/* Adds the evaluations, summed over groups, to *evaluations. */
psld_status psld_dp_solve(const psld_dp *problem, uint64_t *evaluations);

#endif
