/* The denoiser view of a score source: the clean data that a prediction stands for, and the way back.
 *
 * Given x_0, z_t is N(mu x_0, L L') in each coordinate, so an eps stands for the clean value X with
 *     eps = L^-1 (z - mu X)        (the predicted variables' part of it),
 * X = E[x_0 | z_t] when eps is ideal. One number X explains several numbers eps; it is their least-squares solution
 *     X = a . (white z - eps) / (a . a),    a = L^-1 mu,  white = L^-1,  rows of the predicted variables,
 * which with all variables predicted is mu' Sigma^-1 (z - L eps) / (mu' Sigma^-1 mu), and with the momentum alone is
 * (s_m + [Sigma^-1 z]_m) / [Sigma^-1 mu]_m: the same line of code serves both. Everything is linear with the same few
 * numbers for each coordinate; they depend on the recipe and on t alone.
 *
 * Which L: what a network predicts belongs to the stabilised kernel that it learned from, what an exact source says
 * to the kernel itself (psld_source.exact). They differ where the noise is no larger than the stabiliser.
 *
 * Which eps: a network may have learned the noise of the kernel given x_0 (HSM) or of that given all of z_0 (DSM),
 *     z_t = Phi z_0 + S e,   S S' = Sigma_dsm,      Sigma_hsm = Sigma_dsm + Phi diag(0, init mass) Phi' = L L'.
 * Integrated over the auxiliary part of z_0 both make the same p_t(z), and in both cases the score of it is the mean of
 * the kernel's own score given z_t: s = -S^-T E[e | z_t] = -L^-T E[eps | z_t]. So DSM's prediction becomes HSM's by the
 * score, eps = L' S^-T e, and clean data follow as above. Predictions of the last variables P of the order alone are
 * enough: L' and S^-T are upper triangular in it, so eps_P = (L' S^-T)[P, P] e_P contains no other. What must not be
 * done is to solve e = S^-1 (z - mu X) for X: given z_t the mean of e contains E[m_0 | z_t] as well, which is not 0. */
#ifndef PSLD_SAMPLE_DENOISER_H
#define PSLD_SAMPLE_DENOISER_H

#include "process/recipe.h"
#include "sample/sources/source.h"

typedef struct psld_denoiser {
    int k, predicted;
    double state[PSLD_MAX_K], eps[PSLD_MAX_K]; /* X = state . z + eps . e */
    double white[PSLD_MATRIX_SIZE];            /* predicted x k: e = white z - pull X */
    double pull[PSLD_MAX_K];                   /* [predicted] */
    /* Of what z says of x_0, the part that the predicted variables say, from 0 to 1: an error of eps is one of X in
     * units of sigma over this. */
    double certainty;
} psld_denoiser;

/* The numbers for time t in (0, 1]; `exact`: as psld_source.exact. Fails where the predicted variables say nothing of
 * x_0 (an underdamped process may pass through such times). */
psld_status psld_denoiser_plan(const psld_recipe *recipe, int exact, double t, psld_denoiser *denoiser);

/* x [n][dim] from states z [n][k * dim] and eps [n][predicted * dim], all at the denoiser's time. */
void psld_denoiser_apply(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *eps,
                         double *x);
/* The eps that stands for x: the inverse where eps was consistent, for wrappers that change x. */
void psld_denoiser_eps(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *x,
                       double *eps);

/* The kernel given x_0 that a source's predictions belong to: mean map and covariance, in the natural order. */
void psld_source_kernel(const psld_recipe *recipe, int exact, double t, psld_gaussian *kernel);

#endif
