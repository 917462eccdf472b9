/* Restoration by gradients through the denoiser, with three forms of the covariance of x_0: see restore.c. */
#include <math.h>
#include <string.h>

#include "sample/inverse/restore.h"
#include "sample/sources/source.h"

/* ---- Gradients and residuals ------------------------------------------------------------------------------------- */

/* product = (dX/dz)' v, v [n][dim]. */
static psld_status jacobian_product(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                    const double *v)
{
    const psld_denoiser *d = &at->denoiser;
    size_t k = (size_t)d->k, predicted = (size_t)d->predicted, dim = r->op->dim, n = states->n;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < predicted; c++)
            for (size_t j = 0; j < dim; j++) r->weight[(i * predicted + c) * dim + j] = d->eps[c] * v[i * dim + j];
    PSLD_TRY(psld_source_gradient(r->base, states, r->weight, NULL, r->product));
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) r->product[(i * k + a) * dim + j] += d->state[a] * v[i * dim + j];
    return PSLD_OK;
}

/* residual = y - A X. */
static void find_residuals(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                           const double *eps)
{
    size_t dim = r->op->dim, size = r->op->size;
    psld_denoiser_apply(&at->denoiser, states->n, dim, states->z, eps, r->clean);
    for (size_t i = 0; i < states->n; i++) {
        double *rest = r->residual + i * size;
        psld_operator_forward(r->op, r->clean + i * dim, r->work, rest);
        for (size_t l = 0; l < size; l++) rest[l] = r->y[l] - rest[l];
    }
}

static double dot_product(size_t n, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The fraction of p = C^-1 (y - A X) that is used. p changes A X by A V A' p. The exact p satisfies
 * A V A' p + s^2 p = y - A X, so A X never passes y. A network's derivatives, and so its V, may be far larger than any
 * covariance of data, or not be a covariance at all, most of all near t = 1. A p computed for another V, or by iterations
 * that did not converge, then passes y, and further at each evaluation. So p is shortened to the exact length along its
 * own direction, which needs only the vector-Jacobian product that is known already. The exact p is not shortened, nor is
 * a p for a V larger than the network's. */
static double safe_fraction(const psld_restore_call *r, const psld_restore_constants *at, size_t i)
{
    size_t k = (size_t)r->recipe->spec.k, dim = r->op->dim, size = r->op->size;
    const double *p = r->solved + i * size, *spread = r->clean + i * dim; /* A' p */
    double wanted = dot_product(size, p, r->residual + i * size),
           found = r->options.noise * r->options.noise * dot_product(size, p, p);
    for (size_t a = 0; a < k; a++)
        found += at->sigma2 * at->mu[a] * dot_product(dim, spread, r->product + (i * k + a) * dim);
    return found > 0 ? fmax(0, fmin(1, wanted / found)) : 0;
}

/* gradient = (dX/dz)' A' solved, times its safe fraction. */
static psld_status gradient_through_denoiser(psld_restore_call *r, const psld_restore_constants *at,
                                             const psld_states *states)
{
    size_t n = states->n, dim = r->op->dim, state = (size_t)r->recipe->spec.k * dim;
    for (size_t i = 0; i < n; i++)
        psld_operator_adjoint(r->op, r->solved + i * r->op->size, r->work, r->clean + i * dim);
    PSLD_TRY(jacobian_product(r, at, states, r->clean));
    for (size_t i = 0; i < n; i++) {
        double part = safe_fraction(r, at, i);
        for (size_t j = 0; j < state; j++) r->gradient[i * state + j] = part * r->product[i * state + j];
    }
    return PSLD_OK;
}

psld_status psld_restore_reconstruction(psld_restore_call *r, const psld_restore_constants *at,
                                        const psld_states *states, const double *eps)
{
    double variance = r->options.noise * r->options.noise + at->isotropic;
    find_residuals(r, at, states, eps);
    for (size_t i = 0; i < states->n * r->op->size; i++) r->solved[i] = r->residual[i] / variance;
    return gradient_through_denoiser(r, at, states);
}

/* out = (s^2 + v A A')^-1 in, for one state. Directions that are not measured give 0. May be in place. */
static void solve_isotropic(const psld_restore_call *r, const psld_restore_constants *at, const double *in, double *out)
{
    size_t size = r->op->size;
    double noise2 = r->options.noise * r->options.noise, *rotated = r->work + r->op->dim, *work = rotated + size;
    psld_operator_rotate(r->op, 0, in, work, rotated);
    for (size_t l = 0; l < size; l++) {
        double variance = noise2 + at->isotropic * r->op->squares[l];
        rotated[l] = variance > 1e-14 * at->isotropic ? rotated[l] / variance : 0;
    }
    psld_operator_rotate(r->op, 1, rotated, work, out);
}

psld_status psld_restore_isotropic(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                   const double *eps)
{
    size_t size = r->op->size;
    find_residuals(r, at, states, eps);
    for (size_t i = 0; i < states->n; i++) solve_isotropic(r, at, r->residual + i * size, r->solved + i * size);
    return gradient_through_denoiser(r, at, states);
}

/* ---- With the posterior covariance ------------------------------------------------------------------------------- */

/* out = (s^2 + A V A') in, for all states. */
static psld_status multiply_covariance(psld_restore_call *r, const psld_restore_constants *at,
                                       const psld_states *states, const double *in, double *out)
{
    size_t k = (size_t)r->recipe->spec.k, dim = r->op->dim, size = r->op->size, n = states->n;
    double noise2 = r->options.noise * r->options.noise;
    for (size_t i = 0; i < n; i++) psld_operator_adjoint(r->op, in + i * size, r->work, r->clean + i * dim);
    PSLD_TRY(jacobian_product(r, at, states, r->clean));
    for (size_t i = 0; i < n; i++) {
        double *v = r->clean + i * dim;
        memset(v, 0, dim * sizeof *v);
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) v[j] += at->sigma2 * at->mu[a] * r->product[(i * k + a) * dim + j];
        psld_operator_forward(r->op, v, r->work, out + i * size);
        for (size_t l = 0; l < size; l++) out[i * size + l] += noise2 * in[i * size + l];
    }
    return PSLD_OK;
}

/* One iteration of conjugate gradients for one state: x += step p, rest -= step C p. A network's V is not exactly symmetric
 * and may not be a covariance; then the iterations may diverge. So `solved` keeps the x with the smallest residual. A
 * state is finished when its residual is small enough, or when the curvature is not positive. */
static void conjugate_gradient_step(const psld_restore_call *r, const psld_restore_constants *at, size_t i)
{
    size_t size = r->op->size;
    double *rest = r->cg[0] + i * size, *divided = r->cg[1] + i * size, *p = r->cg[2] + i * size;
    double *cp = r->cg[3] + i * size, *x = r->cg[4] + i * size, *goal = &r->goals[i];
    double before = dot_product(size, rest, divided), curvature = dot_product(size, p, cp);
    if (!(before > *goal && curvature > 0)) {
        *goal = -1;
        return;
    }
    for (size_t l = 0; l < size; l++) {
        x[l] += before / curvature * p[l];
        rest[l] -= before / curvature * cp[l];
    }
    solve_isotropic(r, at, rest, divided);
    double after = dot_product(size, rest, divided);
    for (size_t l = 0; l < size; l++) p[l] = divided[l] + after / before * p[l];
    if (after < r->least[i]) {
        r->least[i] = after;
        memcpy(r->solved + i * size, x, size * sizeof *x);
    }
    if (after <= *goal) *goal = -1;
}

/* solved = (s^2 + A V A')^-1 residual, for each state by itself, so that results do not depend on the batch. */
static psld_status solve_by_conjugate_gradients(psld_restore_call *r, const psld_restore_constants *at,
                                                const psld_states *states)
{
    size_t size = r->op->size, n = states->n;
    memcpy(r->cg[0], r->residual, n * size * sizeof(double));
    memset(r->solved, 0, n * size * sizeof(double));
    memset(r->cg[4], 0, n * size * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        solve_isotropic(r, at, r->cg[0] + i * size, r->cg[1] + i * size);
        r->least[i] = dot_product(size, r->cg[0] + i * size, r->cg[1] + i * size);
        r->goals[i] = r->options.tolerance * r->options.tolerance * r->least[i];
    }
    memcpy(r->cg[2], r->cg[1], n * size * sizeof(double));
    for (int iteration = 0; iteration < r->options.iterations; iteration++) {
        size_t open = 0;
        PSLD_TRY(multiply_covariance(r, at, states, r->cg[2], r->cg[3]));
        for (size_t i = 0; i < n; i++)
            if (r->goals[i] >= 0) {
                conjugate_gradient_step(r, at, i);
                open += r->goals[i] >= 0;
            }
        if (!open) break;
    }
    return PSLD_OK;
}

psld_status psld_restore_posterior(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                   const double *eps)
{
    find_residuals(r, at, states, eps);
    PSLD_TRY(solve_by_conjugate_gradients(r, at, states));
    return gradient_through_denoiser(r, at, states);
}
