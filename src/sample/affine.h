/* Affine maps of states. Every reverse step is made of them.
 *
 * The processes are linear with the same k x k matrices for each coordinate. So whatever a step does to a state is
 *     z <- base + state z + eps e + noise n,
 * where e is the predicted noise and n are standard normal numbers, addressed by (seed, purpose, sample, step). */
#ifndef PSLD_SAMPLE_AFFINE_H
#define PSLD_SAMPLE_AFFINE_H

#include "base/random.h"
#include "process/recipe.h"

typedef struct psld_reverse psld_reverse; /* reverse.h */

/* Row a of each matrix gives variable a of the result. For zero columns of `noise` nothing is drawn. */
typedef struct psld_affine {
    double state[PSLD_MATRIX_SIZE]; /* k x k */
    double eps[PSLD_MATRIX_SIZE];   /* k x predicted */
    double noise[PSLD_MATRIX_SIZE]; /* k x k */
} psld_affine;

/* out[i] = base[i] + state z[i] + eps reverse->eps[i] + noise n, for all states of the batch; out may be z or base;
 * base may be NULL. */
void psld_affine_apply(const psld_reverse *reverse, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                       const double *base, const double *z, double *out);

/* Says before an evaluation that such maps follow it, with the noise PSLD_FOR_STEP of `steps` steps from `step` on: a
 * part of it, or all, may be drawn meanwhile. */
void psld_affine_expect(const psld_reverse *reverse, const psld_affine *affine, uint64_t step, size_t steps);

/* Sets affine->eps so that the map adds weight * score at time t, weight being k x k. */
psld_status psld_affine_score(const psld_recipe *recipe, double t, const double *weight, psld_affine *affine);
/* affine->state = I, all else 0. */
void psld_affine_identity(const psld_recipe *recipe, psld_affine *affine);
/* An Euler step of size dt from time t, without noise: z + dt beta [(D + Q) P z + score_part D s]. score_part is 2 for the
 * reverse SDE and 1 for the probability flow. */
psld_status psld_affine_euler(const psld_recipe *recipe, double t, double dt, double score_part, psld_affine *affine);
/* The slope -dz/dt = beta [(D + Q) P z + D score] of the probability flow at time t. */
psld_status psld_affine_flow(const psld_recipe *recipe, double t, psld_affine *affine);
/* The last step of samplers that predict data, from time t: the position becomes X = E[x_0 | z_t], and the auxiliary
 * variables become their mean at t = 0 given x_0 = X and z_t. */
psld_status psld_affine_denoise(const psld_recipe *recipe, int exact, double t, psld_affine *affine);

#endif
