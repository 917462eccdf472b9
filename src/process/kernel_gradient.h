/* Derivatives of the perturbation kernel by what defines a recipe. */
#ifndef PSLD_PROCESS_KERNEL_GRADIENT_H
#define PSLD_PROCESS_KERNEL_GRADIENT_H

#include "process/recipe.h"

/* The gradient of a number c: dc = <D, dD> + <Q, dQ> + mass . dmass + beta . dbeta. D is symmetric and Q skew-symmetric,
 * as their changes are. `beta` is by beta(0) and beta(1). Initial variances in units of the masses stay what they are. */
typedef struct psld_recipe_gradient {
    double D[PSLD_MATRIX_SIZE], Q[PSLD_MATRIX_SIZE];
    double mass[PSLD_MAX_K - 1];
    double beta[2];
} psld_recipe_gradient;

/* to += weight from. */
void psld_recipe_gradient_add(const psld_recipe_gradient *from, double weight, psld_recipe_gradient *to);

/* Adds the gradient of a number of the kernel at t (HSM, without the stabiliser). Given is its gradient by mu [k], the
 * first column of the mean map, and by the covariance, symmetric. Fails where the interval is too long for the drift:
 * more than 2^64 of its time constants. */
psld_status psld_kernel_differentiate(const psld_recipe *recipe, double t, const double *by_mu, const double *by_cov,
                                      psld_recipe_gradient *gradient);

/* Adds the gradient that comes with a change of beta(t) itself. */
void psld_beta_differentiate(double t, double by_beta, psld_recipe_gradient *gradient);

/* The gradient by the covariance L L', symmetric, given the gradient by its lower triangular factor L:
 *     dL = L T(L^-1 dS L^-T),  T: lower triangle with half the diagonal.
 * What `by_lower` has above the diagonal does not count. */
void psld_factor_differentiate(int k, const double *lower, const double *inverse, const double *by_lower,
                               double *by_cov);

#endif
