/* The denoiser view of a score source: from eps to clean data X = E[x_0 | z_t], and back.
 *
 * Given x_0, each coordinate of z_t is N(mu x_0, L L'). So eps corresponds to the clean value X with
 *     eps = L^-1 (z - mu X)        (rows of the predicted variables).
 * One number X explains several numbers eps. It is their least-squares solution,
 *     X = a . (white z - eps) / (a . a),    white = L^-1,  a = L^-1 mu,  rows of the predicted variables.
 * With all variables predicted this is mu' Sigma^-1 (z - L eps) / (mu' Sigma^-1 mu). With the momentum alone it is
 * (s_m + [Sigma^-1 z]_m) / [Sigma^-1 mu]_m. The constants depend on the recipe and on t only.
 *
 * Which L. A network's eps belongs to the stabilised kernel that it was trained with. The eps of an exact source belongs
 * to the kernel itself (psld_source.exact). They differ where the noise is not larger than the stabiliser.
 *
 * Which eps. A network may predict the noise of the kernel given x_0 (HSM) or given all of z_0 (DSM; Sec. 3.2 of the
 * paper),
 *     z_t = Phi z_0 + S e,   S S' = Sigma_dsm,      Sigma_hsm = Sigma_dsm + Phi diag(0, init mass) Phi' = L L'.
 * Both kernels have the same marginal p_t(z), and in both cases its score is the posterior mean of the kernel's score:
 * s = -S^-T E[e | z_t] = -L^-T E[eps | z_t]. So eps = L' S^-T e converts DSM to HSM. The predicted variables P alone are
 * enough: L' and S^-T are upper triangular in recipe->order, so eps_P = (L' S^-T)[P, P] e_P. It would be wrong to solve
 * e = S^-1 (z - mu X) for X, since the mean of e given z_t also contains E[m_0 | z_t], which is not 0. */
#ifndef PSLD_SAMPLE_DENOISER_H
#define PSLD_SAMPLE_DENOISER_H

#include "process/recipe.h"
#include "sample/sources/source.h"

typedef struct psld_denoiser {
    int k, predicted;
    double state[PSLD_MAX_K], eps[PSLD_MAX_K]; /* X = state . z + eps . e */
    double white[PSLD_MATRIX_SIZE];            /* predicted x k: e = white z - gain X */
    double gain[PSLD_MAX_K];                   /* [predicted] */
    /* From 0 to 1: the part of the information on x_0 that is in the predicted variables. An error of 1 in eps is an
     * error of sigma / certainty in X. */
    double certainty;
} psld_denoiser;

/* The constants for time t in (0, 1]; `exact`: as psld_source.exact. Fails where the predicted variables do not depend on
 * x_0. An underdamped process has such times. */
psld_status psld_denoiser_plan(const psld_recipe *recipe, int exact, double t, psld_denoiser *denoiser);

/* x [n][dim] from states z [n][k * dim] and eps [n][predicted * dim], all at the denoiser's time. */
void psld_denoiser_apply(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *eps,
                         double *x);
/* The eps that corresponds to clean data x, for wrappers that change x. */
void psld_denoiser_eps(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *x,
                       double *eps);

/* The kernel given x_0 that a source's predictions belong to, in the natural order of variables. */
void psld_source_kernel(const psld_recipe *recipe, int exact, double t, psld_gaussian *kernel);

#endif
