/* The variational bound of a recipe and a score source, with exact gradients by the recipe. For data x_0 of d coordinates
 * and z_e, the state at a small time e, whose auxiliary variables are part of it:
 *
 *     E log p(z_e) >= E log N(z_1; 0, P^-1) - int_e^1 rate(t) dt,
 *     rate(t) = 1/2 E |s_theta - s*|^2_G - d/2 tr(G S^-1) + d beta tr(D P),        G = 2 beta D.
 *
 * z_t = mu x_0 + L eps is a draw of the kernel given x_0 (HSM), S = L L', s* = -L^-T eps its score, and
 * s_theta = -L^-T eps_theta the score of the source. Tight where the source has the score of the process's own p_t.
 *
 * S has the stabiliser in it, as eps has: the bound is exact for a recipe with stabiliser 0, and off by about the
 * stabiliser over the smallest variance otherwise.
 *
 * The caller adds up terms with weights of its own, and so chooses between quadrature and random times. Gradients hold
 * x_0, eps, t and the weights of the source; they go through z_t into the source by its vector-Jacobian product. */
#ifndef PSLD_SAMPLE_BOUND_H
#define PSLD_SAMPLE_BOUND_H

#include "process/kernel_gradient.h"
#include "sample/sources/source.h"

typedef struct psld_bound {
    double value; /* nats per sample */
    psld_recipe_gradient gradient;
} psld_bound;

/* Data x [n][dim] and standard normal numbers eps [n][k * dim] for it. */
typedef struct psld_bound_batch {
    size_t n, dim;
    const double *x, *eps;
} psld_bound_batch;

/* Adds weight E log N(z_1; 0, P^-1), the expectation over eps done exactly. The gradient is added, too. */
psld_status psld_bound_add_end(const psld_recipe *recipe, const psld_bound_batch *batch, double weight,
                               psld_bound *bound);

/* Adds -weight rate(t). Without `with_gradient` the value alone; otherwise the source must have a gradient. */
psld_status psld_bound_add_rate(const psld_recipe *recipe, psld_source *source, double t, const psld_bound_batch *batch,
                                double weight, int with_gradient, psld_bound *bound);

#endif
