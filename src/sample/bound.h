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

/* ---- Of states, and a source ---------------------------------------------------------------------------------------- */

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

/* ---- Of data themselves --------------------------------------------------------------------------------------------- */

/* From z_e to x_0, and with the integral of the terms without the source, which is 1/2 log det S:
 *
 *     E log p(x_0) >= -KL(q(z_1 | x_0) | N(0, P^-1)) + E log p(x_0 | z_e) - int_e^1 1/2 E |s_theta - s*|^2_G dt.
 *
 * p(x_0 | z_e) is what y = x_0 + sigma n tells, the collapsed coordinate of z_e: N(y, sigma^2), or of data that are whole
 * multiples of `cell` the part of it in the cell about x_0, a probability. */
typedef struct psld_bound_data {
    double dim;    /* coordinates of a sample */
    double square; /* mean of |x_0|^2 */
    double cell;   /* 0: the data are any numbers, and the bound is of a density */
} psld_bound_data;

/* Adds weight times the first two terms, the expectations over eps done exactly, and their gradient. */
psld_status psld_bound_add_ends(const psld_recipe *recipe, double e, const psld_bound_data *data, double weight,
                                psld_bound *bound);

/* ---- The third term, of answers that the caller has ----------------------------------------------------------------- */

/* What a time needs: the stabilised factor in the order of the variables, as everywhere. */
typedef struct psld_bound_time {
    int k;
    double t, beta;
    double mu[PSLD_MAX_K], cov[PSLD_MATRIX_SIZE]; /* without the stabiliser */
    double factor[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
} psld_bound_time;

/* Fails for recipes of the kernel dsm, which have no bound. */
psld_status psld_bound_time_plan(const psld_recipe *recipe, double t, psld_bound_time *time);

/* Sums over coordinates of a time by what its kernel is made of. Begin with zeros. */
typedef struct psld_bound_sums {
    double value, by_beta;
    double by_d[PSLD_MATRIX_SIZE], by_factor[PSLD_MATRIX_SIZE], by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE];
} psld_bound_sums;

/* Coordinates of one sample; rows of different variables are `stride` apart. */
typedef struct psld_bound_part {
    size_t count, stride;
    const double *x, *eps; /* [count], [k][stride] */
    const double *out;     /* [predicted][stride]: eps that the source says */
} psld_bound_part;

/* Adds scale/2 |s_theta - s*|^2_G, and writes its gradient by `out` unless that is NULL. */
void psld_bound_add_square(const psld_recipe *recipe, const psld_bound_time *time, const psld_bound_part *part,
                           double scale, double *by_out, psld_bound_sums *sums);
/* Adds what comes through z: by_z [k][stride] is what the vector-Jacobian product has made of by_out. */
void psld_bound_add_states(const psld_bound_time *time, const psld_bound_part *part, const double *by_z,
                           psld_bound_sums *sums);
/* Adds weight times the gradient by the recipe. `sums` is used up. */
psld_status psld_bound_differentiate(const psld_recipe *recipe, const psld_bound_time *time, psld_bound_sums *sums,
                                     double weight, psld_recipe_gradient *gradient);

#endif
