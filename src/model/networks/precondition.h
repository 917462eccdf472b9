/* Networks of clean data: what is between a state and such a network's input, and between its output and eps.
 *
 * All that a state z_t tells of x_0 is y = x_0 + sigma n, one number a coordinate, whatever the recipe (split.c). Were
 * the data N(0, d^2), the best guess of x_0 would be y d^2 / (sigma^2 + d^2), wrong by sigma d / sqrt(sigma^2 + d^2). So
 * the network is given y in units of its deviation, and says in units of that error what the guess lacks:
 *     u = y / sqrt(sigma^2 + d^2),     X = (d^2 u + sigma d F(u, time)) / sqrt(sigma^2 + d^2),
 * which keeps input, output and target at variance 1 for every amount of noise (Karras et al. 2022, for one process; here
 * for all of them). eps follows from X as in denoiser.h:
 *     eps = white z - pull X = linear z + gain F.
 * An error of F moves X by at most d of it, while one of a predicted eps moves X by sigma as much: that is what networks
 * of eps find hard where there is much noise, and the shape of a picture is decided there. */
#ifndef PSLD_MODEL_PRECONDITION_H
#define PSLD_MODEL_PRECONDITION_H

#include "model/networks/conditioning.h"
#include "process/recipe.h"

typedef struct psld_precondition {
    int k, predicted;
    double time;                     /* what the network sees of sigma, the same for every recipe */
    double input[PSLD_MAX_K];        /* u = input . z */
    double keep, scale;              /* X = keep u + scale F */
    double linear[PSLD_MATRIX_SIZE]; /* predicted x k */
    double gain[PSLD_MAX_K];         /* [predicted] */
} psld_precondition;

/* For time t in (0, 1] and data of the given deviation; or for what else lies between a state and a network. */
psld_status psld_precondition_plan(const psld_recipe *recipe, double deviation, double t, psld_precondition *p);
psld_status psld_precondition_plan_as(const psld_recipe *recipe, const psld_conditioning *how, double t,
                                      psld_precondition *p);

/* One sample of `dim` coordinates: z [k][dim], u and f [dim], eps [predicted][dim]. */
void psld_precondition_input(const psld_precondition *p, size_t dim, const double *z, float *u);
void psld_precondition_eps(const psld_precondition *p, size_t dim, const double *z, const float *f, double *eps);
/* For the gradient of sum(weight eps) by z: weights of f, and, from the gradient of their sum by u, all of it. */
void psld_precondition_weight(const psld_precondition *p, size_t dim, const double *weight, float *of_f);
void psld_precondition_gradient(const psld_precondition *p, size_t dim, const double *weight, const float *by_u,
                                double *by_z);

#endif
