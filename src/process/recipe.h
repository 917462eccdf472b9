/* The forward process as the rest of the library sees it, and its exact Gaussian transitions.
 *
 * Inside, variables are measured in units of their stationary deviation (z_i / sqrt(mass_i), "whitened"): the
 * stationary law is then N(0, I), the drift matrix A = -(D + Q) and flipping the sign of Q is transposing A. */
#ifndef PSLD_PROCESS_RECIPE_H
#define PSLD_PROCESS_RECIPE_H

#include "base/status.h"
#include "process/matrix.h"
#include "process/wide.h"

struct psld_recipe {
    psld_recipe_spec spec;
    double deviation[PSLD_MAX_K];       /* stationary deviation of each variable: 1, sqrt(mass_1), ... */
    double drift[PSLD_MATRIX_SIZE];     /* A = -(D + Q), whitened */
    double diffusion[PSLD_MATRIX_SIZE]; /* 2 D, whitened */
    psld_wide wide_drift[PSLD_WIDE_SIZE], wide_diffusion_root[PSLD_WIDE_SIZE]; /* A, and the lower factor of 2 D */
    double noise[PSLD_MATRIX_SIZE]; /* lower factor of 2 D, not whitened: the noise of an Euler step */
    int order[PSLD_MAX_K];          /* variables in the order of the factor */
    int predicted;                  /* the last so many of `order` have their eps predicted, */
    int variable[PSLD_MAX_K];       /* which are these, in the natural order: eps has a channel for each */
    int channel[PSLD_MAX_K];        /* the channel of each of the last of `order` */
};

/* Whether eps of one recipe is eps of the other: the same process, kernel and factors. */
int psld_recipe_same_eps(const psld_recipe *a, const psld_recipe *b);
/* Says that the eps of a recipe not yet shared belongs to this kernel. With one variable both are the same. */
void psld_recipe_set_mode(psld_recipe *recipe, psld_mode mode);

/* beta at t, and its integral from u to t. */
double psld_beta(const psld_recipe *recipe, double t);
psld_wide psld_beta_integral(const psld_recipe *recipe, double u, double t);

/* FORWARD: dz = A z + noise, the process itself. FLIPPED: the same with -Q for Q, the linear part of the reverse
 * process. */
typedef enum psld_direction { PSLD_FORWARD, PSLD_FLIPPED } psld_direction;

/* A Gaussian that depends linearly on where it starts: N(mean z, cov), cov = factor factor', factor lower with
 * diagonal >= 0. */
typedef struct psld_gaussian {
    double mean[PSLD_MATRIX_SIZE], cov[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE];
} psld_gaussian;

/* The exact transition over an interval with integral of beta `h` >= 0, with variances `start` [k] of the variables at
 * its beginning added in (NULL: none). Not whitened. */
void psld_transition(const psld_recipe *recipe, psld_direction direction, psld_wide h, const double *start,
                     psld_gaussian *out);

/* Kernel at t when x_0 itself has variance `x_variance` about its mean, without the stabiliser. */
void psld_kernel(const psld_recipe *recipe, double t, psld_mode mode, double x_variance, psld_gaussian *out);

/* The stabilised factor of a kernel, and its inverse, as psld_recipe_factor gives them; t is for messages. */
psld_status psld_kernel_factor(const psld_recipe *recipe, const psld_gaussian *kernel, double t, double *factor,
                               double *inverse);

/* Fails because a kernel at t cannot be inverted in doubles. */
psld_status psld_fail_singular(const psld_recipe *recipe, double t);

/* Reverse process: drift of z is beta (linear z + score_weight s). linear = (D + Q) P; stochastic: score_weight = 2
 * D, flow: D. */
void psld_recipe_reverse_drift(const psld_recipe *recipe, double *linear);

#endif
