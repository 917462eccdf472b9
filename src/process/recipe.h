/* The forward process dz = -beta (D + Q) P z dt + sqrt(2 beta D) dw as the rest of the library sees it (Sec. 2.2 of the
 * paper, for the Hamiltonian H = z' P z / 2), and its exact Gaussian transitions.
 *
 * Whitened variables are measured in units of their stationary deviation, z_i / sqrt(mass_i). Their stationary
 * distribution is N(0, I), their drift matrix A = -(D + Q), and A with the sign of Q flipped is A'. */
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
    double noise[PSLD_MATRIX_SIZE]; /* G, the lower factor of 2 D, not whitened: the noise of an Euler step */
    int order[PSLD_MAX_K];          /* the order of variables in which the kernel's factor is lower triangular */
    int predicted;                  /* eps is predicted for the last `predicted` variables of `order` */
    int variable[PSLD_MAX_K];       /* [predicted]: these variables in the natural order; eps has a channel for each */
    int channel[PSLD_MAX_K];        /* [predicted]: the channel of each of them, in the order of `order` */
};

/* Whether eps means the same in both recipes: same process, kernel, stabiliser and order of the factor. */
int psld_recipe_same_eps(const psld_recipe *a, const psld_recipe *b);
/* Sets which kernel eps belongs to. Only while nobody else uses the recipe. With k = 1 both kernels are the same. */
void psld_recipe_set_mode(psld_recipe *recipe, psld_mode mode);

/* beta at t, and its integral from u to t. */
double psld_beta(const psld_recipe *recipe, double t);
psld_wide psld_beta_integral(const psld_recipe *recipe, double u, double t);

/* FORWARD: the process itself. FLIPPED: the process with -Q in place of Q, which is the linear part of the reverse
 * process (samplers/sscs.c). */
typedef enum psld_direction { PSLD_FORWARD, PSLD_FLIPPED } psld_direction;

/* A linear Gaussian transition z -> N(mean z, cov), with cov = factor factor' and factor lower triangular, diagonal
 * >= 0. */
typedef struct psld_gaussian {
    double mean[PSLD_MATRIX_SIZE], cov[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE];
} psld_gaussian;

/* The exact transition over an interval, h = int beta dt >= 0. Not whitened. `start` [k]: the variances of the variables
 * at the beginning of the interval, which are carried into cov (NULL: none). */
void psld_transition(const psld_recipe *recipe, psld_direction direction, psld_wide h, const double *start,
                     psld_gaussian *out);

/* The perturbation kernel at t, without the stabiliser. `x_variance`: the variance of x_0 about its mean. */
void psld_kernel(const psld_recipe *recipe, double t, psld_mode mode, double x_variance, psld_gaussian *out);

/* The stabilised factor of a kernel and its inverse, as psld_recipe_factor gives them. t appears in messages only. */
psld_status psld_kernel_factor(const psld_recipe *recipe, const psld_gaussian *kernel, double t, double *factor,
                               double *inverse);

/* The error of a kernel at t that cannot be inverted in double precision. */
psld_status psld_fail_singular(const psld_recipe *recipe, double t);

/* linear = (D + Q) P. The reverse process, in time that runs backwards, has the drift beta (linear z + w D s), with w = 2
 * for the SDE and w = 1 for the probability flow. */
void psld_recipe_reverse_drift(const psld_recipe *recipe, double *linear);

#endif
