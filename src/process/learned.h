/* Recipes as free numbers, so that they can be learned or searched: every value of the parameters is a valid process.
 *
 *     D = A A'                    A lower triangular, which leaves out its rotations
 *     Q = B - B'                  B strictly lower triangular
 *     mass_i = exp(.)
 *     beta(0), beta(1)            their mean is exp(.), their ratio exp(.): beta(t) is positive and monotone
 *
 * What would change nothing is left out. If D and Q are both learned, m -> c m changes the masses to c^2 mass and D and Q
 * with them, and a factor of beta goes into D and Q: the masses and the mean of beta are then fixed. */
#ifndef PSLD_PROCESS_LEARNED_H
#define PSLD_PROCESS_LEARNED_H

#include "process/kernel_gradient.h"

enum { PSLD_LEARN_D = 1, PSLD_LEARN_Q = 2, PSLD_LEARN_MASS = 4, PSLD_LEARN_BETA = 8 };

enum { PSLD_LEARNED_SIZE = PSLD_MAX_K * PSLD_MAX_K + PSLD_MAX_K + 1 };

typedef struct psld_learned {
    psld_recipe_spec spec; /* where it began */
    unsigned what;
    int count;             /* of the parameters */
    int keeps_zeros;       /* variables without noise stay without it, so that eps keeps its channels */
    double unit_a, unit_b; /* what a parameter of A or B of 1 means */
} psld_learned;

/* "D, Q" as bits; an empty text is refused. `what` names the option in messages. */
psld_status psld_learn_parse(const char *what, const char *keys, unsigned *bits);

/* Takes a recipe as the beginning, and writes its parameters. Fails if there is nothing to be learned of it. */
psld_status psld_learned_begin(const psld_recipe *recipe, unsigned what, int keeps_zeros, psld_learned *learned,
                               double parameters[PSLD_LEARNED_SIZE]);
/* The recipe of parameters; psld_recipe_create checks that they are not too large. */
void psld_learned_spec(const psld_learned *learned, const double *parameters, psld_recipe_spec *spec);
/* The gradient by the parameters, given the gradient by the recipe at them. */
void psld_learned_differentiate(const psld_learned *learned, const double *parameters,
                                const psld_recipe_gradient *gradient, double *by_parameters);

#endif
