/* Dormand and Prince's pair of orders 5(4) with adaptive steps, for many rows of numbers at once.
 *
 * Rows are cut into groups of consecutive ones, each of which shares its steps. Groups know nothing of each other; only
 * their slopes are asked for together, so that a network is given large batches. */
#ifndef PSLD_SAMPLE_DORMAND_PRINCE_H
#define PSLD_SAMPLE_DORMAND_PRINCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { PSLD_DP_WORK = 9 };

typedef struct psld_dp_group {
    size_t begin, count; /* rows */
    size_t packed;       /* where they lie among those of all groups on their way */
    double t;            /* where slopes are asked for */
    /* for the stepper alone: */
    double at, step, tried; /* how far it is, the size of step to try next, and of the one under way */
    int rejected;           /* since the last accepted step */
} psld_dp_group;

/* Slopes of the groups that are still on their way. `states` are their rows, packed; the caller may change them before
 * it takes slopes, as inpainting does. Slopes go to the places of the rows themselves, and are by the way gone: dy/dt
 * where time rises, -dy/dt where it falls. */
typedef psld_status (*psld_dp_slopes_fn)(void *user, size_t count, const psld_dp_group *groups, double *states,
                                         double *slopes);

typedef struct psld_dp {
    const char *name; /* of who asks, for messages */
    double from, to;  /* times, in either order */
    double tolerance; /* relative and absolute */
    size_t rows, width, group;
    double *y;    /* [rows][width]: at `from`, and in the end at `to` */
    double *work; /* [PSLD_DP_WORK][rows][width] */
    psld_dp_slopes_fn slopes;
    psld_status (*report)(void *user, double fraction); /* after every step */
    void *user;
} psld_dp;

size_t psld_dp_groups(size_t rows, size_t each);

/* Adds the evaluations, summed over groups, to *evaluations. */
psld_status psld_dp_solve(const psld_dp *problem, uint64_t *evaluations);

#endif
