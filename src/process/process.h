/* The recipe in full: dz = beta f dt + sqrt(2 beta D) dw with
 *     f = -(D + Q) grad H + tau,      tau_i = sum_j d_j (D + Q)_ij,
 * where H, D and Q are formulas of z. exp(-H) is then stationary. Instead of Q a file may give f itself.
 *
 * Whatever follows from the formulas is a formula, too: tau, f, div D, and the residual of the Fokker-Planck equation,
 *     r = [-sum_i d_i (f_i p) + sum_ij d_i d_j (D_ij p)] / p,      p = exp(-H),
 * which is 0 everywhere if and only if exp(-H) is stationary. */
#ifndef PSLD_PROCESS_PROCESS_H
#define PSLD_PROCESS_PROCESS_H

#include "io/yaml/yaml.h"
#include "process/recipe.h"
#include "process/terms.h"

enum {
    PSLD_PROCESS_NAME = 40,                                                 /* bytes of the name of a variable */
    PSLD_PROCESS_SQUARE = PSLD_MAX_VARIABLES * PSLD_MAX_VARIABLES,          /* entries of a matrix */
    PSLD_PROCESS_LOWER = PSLD_MAX_VARIABLES * (PSLD_MAX_VARIABLES + 1) / 2, /* of its lower triangle */
};

/* The contents of a file, with every variable in the requested number of copies; all copies of the first variable come
 * first. */
typedef struct psld_process_terms {
    psld_terms *graph;
    psld_term H, D[PSLD_PROCESS_SQUARE], Q[PSLD_PROCESS_SQUARE], drift[PSLD_MAX_VARIABLES];
    int has_drift; /* the file gives drift instead of Q */
} psld_process_terms;

struct psld_process {
    char name[PSLD_NAME_SIZE];
    int variables, data; /* the data come first */
    char variable[PSLD_MAX_VARIABLES][PSLD_PROCESS_NAME];
    double init[PSLD_MAX_VARIABLES]; /* variance at t = 0; 0 for data */
    double beta_min, beta_max;
    int steps; /* Euler steps of a path from t = 0 to 1 */
    int has_drift;
    int has_region;
    double region[PSLD_MAX_VARIABLES][2];
    int noisy_count, noisy[PSLD_MAX_VARIABLES]; /* variables with a row of D that is not 0 */
    psld_recipe *linear;                        /* it was written as one; else NULL */
    psld_formulas *motion;                      /* f [n], div D [n], lower triangle of D */
    psld_formulas *energy;                      /* H, gradient [n] */
    psld_formulas
        *checks; /* D [n^2], Q [n^2] (0 where f is given), residual, and the sum of the squares of its terms */
};

/* Outputs of process->motion from these on. */
#define PSLD_MOTION_DRIFT(process)      0
#define PSLD_MOTION_DIVERGENCE(process) ((size_t)(process)->variables)
#define PSLD_MOTION_DIFFUSION(process)  (2 * (size_t)(process)->variables)

/* From a map with H, or anything that psld_recipe_read takes; every variable in `copies`. */
psld_status psld_process_from_node(const psld_node *node, int copies, psld_process **process);
/* From formulas: fields above `linear` are set already. Takes nothing over. */
psld_status psld_process_build(const psld_process_terms *terms, psld_process *process);
/* Whether a map is a recipe with formulas: it has H. */
int psld_process_is_full(const psld_node *node);
/* The error for a recipe with formulas where only recipes of matrices are possible. */
psld_status psld_process_refuse(const psld_node *node);

/* Draws the auxiliary variables of a state at t = 0; its data are left alone. */
void psld_process_begin(const psld_process *process, uint64_t seed, uint64_t sample, uint64_t phase, double *z);
double psld_process_beta(const psld_process *process, double t);
/* The lower factor of `scale` D at one lane of a motion's scratch; columns of pivots that are 0 are 0. Returns 0 if D is
 * not finite or has a negative pivot there. */
int psld_process_factor(const psld_process *process, const double *scratch, size_t lane, double scale, double *lower);

#endif
