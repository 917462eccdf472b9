/* Adds a gradient to the score that an eps stands for, as guidance and restoration do.
 *
 * By Bayes' rule a condition y adds grad log p(y | z_t) to the score s of p_t. Sources predict eps, with s = -L^-T eps and
 * L lower triangular in recipe->order. They predict it for the last variables P of that order only. L^-T is upper
 * triangular, so the scores of P depend on the eps of P only:
 *     s_P = -L[P, P]^-T eps_P.
 * Adding w g to the score is therefore
 *     eps_P <- eps_P - w L[P, P]' g_P.
 * The gradient by the other variables has no effect: they get no noise, and the reverse process multiplies their score by
 * zero rows of D. This holds for every order of the factor, for the kernels given x_0 and given z_0, and for the
 * stabilised factor, which is used wherever eps becomes a score. */
#ifndef PSLD_SAMPLE_ADD_GRADIENT_H
#define PSLD_SAMPLE_ADD_GRADIENT_H

#include "process/recipe.h"
#include "sample/sources/states.h"

/* Adds weight * gradient [n][k * dim] to the score of eps [n][predicted * dim]. */
psld_status psld_eps_add_gradient(const psld_recipe *recipe, const psld_states *states, double weight,
                                  const double *gradient, double *eps);

#endif
