/* The eps of a score to which a gradient has been added, as guidance and restoration do.
 *
 * By Bayes' rule a condition y adds grad log p(y | z_t) to the score s of p_t. A source does not say s but eps, with
 * s = -inverse' eps, inverse = factor^-1, both lower triangular in the recipe's order of variables; and it says eps of
 * the predicted variables alone, which are the last of that order. Column l of inverse has no entries above row l, so
 * the scores of the predicted variables P depend on their own eps only,
 *     s_P = -R' eps_P,   R = inverse[P, P] = factor[P, P]^-1   (a block at the end of a triangular matrix),
 * and adding w g to the score is
 *     eps_P <- eps_P - w factor[P, P]' g_P.
 * The gradient by the other variables has no effect: they get no noise, and the reverse process never asks for their
 * score (it is multiplied by their rows of D, which are zero). This holds for every order of the factor, for that of the
 * kernel given x_0 and of the kernel given z_0, and for the stabilised factor, which is what turns eps into a score
 * everywhere. */
#ifndef PSLD_SAMPLE_ADD_GRADIENT_H
#define PSLD_SAMPLE_ADD_GRADIENT_H

#include "process/recipe.h"
#include "sample/sources/states.h"

/* Changes eps [n][predicted * dim] to that of the score plus weight times gradient [n][k * dim]. */
psld_status psld_eps_add_gradient(const psld_recipe *recipe, const psld_states *states, double weight,
                                  const double *gradient, double *eps);

#endif
