/* Networks of clean data: the maps from a state to the network's input, and from its output to eps.
 *
 * For every recipe, all information on x_0 in a state z_t is y = x_0 + sigma n, one number per coordinate
 * (collapsed_frame.h). For data with N(0, d^2), the best estimate of x_0 is y d^2 / (sigma^2 + d^2), with the error
 * sigma d / sqrt(sigma^2 + d^2). So the input of the network is y in units of its deviation, and its output is the
 * correction of this estimate, in units of that error:
 *     u = y / sqrt(sigma^2 + d^2),     X = (d^2 u + sigma d F(u, time)) / sqrt(sigma^2 + d^2),
 * which keeps input, output and target at variance 1 for every amount of noise (Karras et al. 2022, for one process;
 * here for all of them). eps follows from X as in denoiser.h:
 *     eps = white z - pull X = linear z + gain F.
 * An error of F changes X by at most d times as much, but an error of a predicted eps by sigma times as much: this
 * makes networks of eps inaccurate at much noise, where the large shapes of a picture are decided. */
#ifndef PSLD_MODEL_PRECONDITION_H
#define PSLD_MODEL_PRECONDITION_H

#include "model/networks/conditioning.h"
#include "process/recipe.h"

typedef struct psld_precondition {
    int k, predicted;
    double time;                     /* the network's input for sigma, the same for every recipe */
    double input[PSLD_MAX_K];        /* u = input . z */
    double keep, scale;              /* X = keep u + scale F */
    double linear[PSLD_MATRIX_SIZE]; /* predicted x k */
    double gain[PSLD_MAX_K];         /* [predicted] */
} psld_precondition;

/* For time t in (0, 1] and data of the given deviation; or for another conditioning. */
psld_status psld_precondition_plan(const psld_recipe *recipe, double deviation, double t, psld_precondition *p);
psld_status psld_precondition_plan_as(const psld_recipe *recipe, const psld_conditioning *how, double t,
                                      psld_precondition *p);

/* One sample of `dim` coordinates: z [k][dim], u and f [dim], eps [predicted][dim]. */
void psld_precondition_input(const psld_precondition *p, size_t dim, const double *z, float *u);
void psld_precondition_eps(const psld_precondition *p, size_t dim, const double *z, const float *f, double *eps);
/* For the gradient of sum(weight eps) by z: the weights of f; then the whole gradient from that by u. */
void psld_precondition_weight(const psld_precondition *p, size_t dim, const double *weight, float *of_f);
void psld_precondition_gradient(const psld_precondition *p, size_t dim, const double *weight, const float *by_u,
                                double *by_z);

#endif
