/* Affine maps of states: what every step is made of.
 *
 * Everything a step does to a state is affine with the same k x k matrices for each coordinate, so there is one
 * primitive for it:
 *     z <- base + state z + eps e + noise n,
 * e being the predicted eps and n fresh normal numbers addressed by (seed, purpose, sample, step). */
#ifndef PSLD_SAMPLE_AFFINE_H
#define PSLD_SAMPLE_AFFINE_H

#include "base/random.h"
#include "process/recipe.h"

typedef struct psld_reverse psld_reverse; /* reverse.h */

/* Row a of `state` says how z_a depends on all z, and so on. Zero columns of `noise` draw nothing. */
typedef struct psld_affine {
    double state[PSLD_MATRIX_SIZE]; /* k x k */
    double eps[PSLD_MATRIX_SIZE];   /* k x predicted */
    double noise[PSLD_MATRIX_SIZE]; /* k x k */
} psld_affine;

/* out[i] = base[i] + state z[i] + eps reverse->eps[i] + noise n, for all states of the batch; out may be z or base;
 * base may be NULL. */
void psld_affine_apply(const psld_reverse *reverse, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                       const double *base, const double *z, double *out);

/* affine->eps for a drift that contains weight * score, weight k x k, at time t. */
psld_status psld_affine_score(const psld_recipe *recipe, double t, const double *weight, psld_affine *affine);
/* affine->state = I, all else 0. */
void psld_affine_identity(const psld_recipe *recipe, psld_affine *affine);
/* An Euler step of size dt of the reverse process from time t: its drift, with `score_part` = 2 (stochastic) or 1
 * (probability flow) times D before the score. No noise. */
psld_status psld_affine_euler(const psld_recipe *recipe, double t, double dt, double score_part, psld_affine *affine);
/* The slope -dz/dt = beta [(D + Q) P z + D score] of the probability flow at time t. */
psld_status psld_affine_flow(const psld_recipe *recipe, double t, psld_affine *affine);
/* The last step of samplers that predict data, from time t: the clean data as position and the mean of the auxiliary
 * variables at t = 0, given those and z. */
psld_status psld_affine_clean(const psld_recipe *recipe, int exact, double t, psld_affine *affine);

#endif
