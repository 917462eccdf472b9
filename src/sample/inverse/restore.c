/* Restoration: the score of a base source plus grad log p(y | z_t), for a measurement y = A x_0 + noise.
 *
 * p(y | z_t) is the integral of p(y | x_0) p(x_0 | z_t) over x_0, which is not known. The methods differ in how they
 * approximate it. Let X = E[x_0 | z_t] (the denoiser), V the covariance of x_0 given z_t, s^2 the noise variance of y, and
 * z_t = mu x_0 + L n.
 *
 *   diffused        The general form of the paper. y is diffused like the data, y_t = mu y + noise, and p(y_t | z_t) is
 *                   N(A z_t, s^2 mu mu' + Sigma_t (x) A A'), as if A z_t were mu A x_0 itself. Its gradient is linear in
 *                   y_t, so its mean over y_t is obtained with mu y in place of y_t. Needs no derivatives.
 *   reconstruction  N(A X, s^2 + v): along the gradient of |y - A X|^2. v = S^2 / (1 + S^2), with S the effective noise of
 *                   z_t, is the posterior variance of data with variance 1.
 *   isotropic       N(A X, s^2 + v A A').
 *   posterior       N(A X, s^2 + A V A'). z_t is an observation of x_0 with noise of deviation S, so V = S^2 dX/dy for that
 *                   observation (the derivative of Tweedie's formula). X depends on z only through y = gain z, and
 *                   gain mu = 1. So V w = S^2 sum_a mu_a (dX/dz_a)' w, which is one vector-Jacobian product. Systems with
 *                   this matrix are solved by conjugate gradients, preconditioned with the isotropic one. For a Gaussian
 *                   prior this is exact: p(y | z_t) is that Gaussian, and V does not depend on z.
 *
 * The last three have the gradient (dX/dz)' A' C^-1 (y - A X), with C the covariance. It is shortened where a network's
 * derivatives make it too long (safe_fraction). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/table.h"
#include "base/workspace.h"
#include "sample/inverse/restore.h"
#include "sample/sources/add_gradient.h"
#include "sample/sources/source.h"

/* The source: what is the same in all calls. */
typedef struct restoration {
    psld_source *base;
    psld_recipe recipe; /* a copy of its own */
    const psld_operator *op;
    const psld_restore_method *method;
    psld_restore_options options;
    double *y; /* [size] */
    psld_workspaces workspaces;
} restoration;

/* ---- Constants and memory ---------------------------------------------------------------------------------------- */

static psld_status plan_restore_constants(const psld_restore_call *r, double t, psld_restore_constants *at)
{
    psld_gaussian kernel;
    double inverse[PSLD_MATRIX_SIZE], strength = 0;
    int k = r->recipe->spec.k;
    at->t = t;
    psld_source_kernel(r->recipe, r->base->exact, t, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    memcpy(at->cov, kernel.cov, sizeof at->cov);
    for (int a = 0; a < k; a++) at->mu[a] = kernel.mean[a * k];
    for (int a = 0; a < k; a++) {
        double white = 0;
        for (int b = 0; b <= a; b++) white += inverse[a * k + b] * at->mu[b];
        strength += white * white;
    }
    at->sigma2 = 1 / strength;
    at->isotropic = at->sigma2 / (1 + at->sigma2);
    if (!r->method->info.needs_gradient) return PSLD_OK;
    return psld_denoiser_plan(r->recipe, r->base->exact, t, &at->denoiser);
}

static psld_status allocate_restore_call(psld_restore_call *r, psld_workspace *memory, size_t n)
{
    size_t k = (size_t)r->recipe->spec.k, dim = r->op->dim, size = r->op->size;
    r->work_size = dim + (k + 1) * size;
    struct {
        double **array;
        size_t width;
    } const arrays[] = {
        {&r->gradient, k * dim}, {&r->clean, dim},        {&r->weight, (size_t)r->recipe->predicted * dim},
        {&r->product, k * dim},  {&r->residual, size},    {&r->solved, size},
        {&r->cg[0], size},       {&r->cg[1], size},       {&r->cg[2], size},
        {&r->cg[3], size},       {&r->cg[4], size},       {&r->least, 1},
        {&r->goals, 1},          {&r->work, r->work_size}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        PSLD_TRY(psld_workspace_room(memory, (int)i, n, arrays[i].width, sizeof(double), (void **)arrays[i].array));
    return PSLD_OK;
}

/* ---- The source -------------------------------------------------------------------------------------------------- */

static const psld_restore_method methods[] = {
    {{.name = "posterior",
      .summary = "with the covariance of x_0 given z_t: exact for a Gaussian prior",
      .needs_gradient = 1,
      .uses_iterations = 1},
     psld_restore_posterior},
    {{.name = "isotropic", .summary = "the same with one variance for all of it", .needs_gradient = 1},
     psld_restore_isotropic},
    {{.name = "reconstruction", .summary = "the gradient of |y - A x_0|^2 through the denoiser", .needs_gradient = 1},
     psld_restore_reconstruction},
    {{.name = "diffused", .summary = "the measurement diffused like the data (the paper's form): needs no derivatives"},
     psld_restore_diffused},
};

const psld_restore_method_info *psld_restore_method_at(int index)
{
    return PSLD_TABLE_AT(methods, index);
}

const psld_restore_method_info *psld_restore_method_find(const char *name)
{
    return PSLD_TABLE_FIND(methods, "method", name);
}

static psld_status predict_with_restoration(psld_restore_call *r, psld_workspace *memory, const psld_states *states,
                                            double *eps)
{
    size_t dim = states->dim, state = (size_t)r->recipe->spec.k * dim, predicted = (size_t)r->recipe->predicted * dim;
    PSLD_TRY(allocate_restore_call(r, memory, states->n));
    PSLD_TRY(psld_source_predict(r->base, states, eps));
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        psld_restore_constants at;
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        PSLD_TRY(plan_restore_constants(r, part.t[0], &at));
        PSLD_TRY(r->method->restore(r, &at, &part, eps + begin * predicted));
        PSLD_TRY(psld_eps_add_gradient(r->recipe, &part, r->options.scale, r->gradient, eps + begin * predicted));
    }
    return PSLD_OK;
}

static psld_status predict_restored(void *user, const psld_states *states, double *eps)
{
    restoration *all = user;
    if (states->dim != all->op->dim)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "restore: expected states with %zu numbers per variable as the task has, found %zu",
                         all->op->dim, states->dim);
    psld_workspace *memory = psld_workspace_take(&all->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_restore_call call = {.base = all->base,
                              .recipe = &all->recipe,
                              .op = all->op,
                              .method = all->method,
                              .options = all->options,
                              .y = all->y};
    psld_status status = predict_with_restoration(&call, memory, states, eps);
    psld_workspace_give(&all->workspaces, memory);
    return status;
}

static void release_restored(void *user)
{
    restoration *all = user;
    psld_workspaces_release(&all->workspaces);
    psld_release(all->y);
    psld_release(all);
}

static psld_status check_restore_options(const psld_source *base, const psld_restore_method *method,
                                         const psld_restore_options *options)
{
    if (!(options->noise >= 0) || !isfinite(options->noise))
        return psld_fail(PSLD_BAD_ARGUMENT, "noise: expected a number of at least 0, found %g", options->noise);
    if (!isfinite(options->scale))
        return psld_fail(PSLD_BAD_ARGUMENT, "scale: expected a finite number, found %g", options->scale);
    if (options->iterations < 1 || options->iterations > 1000)
        return psld_fail(PSLD_BAD_ARGUMENT, "iterations: expected 1 to 1000, found %d", options->iterations);
    if (!(options->tolerance >= 0 && options->tolerance < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "tolerance: expected a number in [0, 1), found %g", options->tolerance);
    if (method->info.needs_gradient && !base->gradient)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "restore: method %s needs the gradient of the score, which this source has not: apply "
                         "guidance after restoration, or use the method diffused",
                         method->info.name);
    return PSLD_OK;
}

static psld_status read_options(const psld_restore_options *options, psld_restore_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_restore_options, options, own, PSLD_RESTORE_DEFAULTS));
    if (!own->method) own->method = methods[0].info.name;
    PSLD_FILL_ZERO(own->iterations, 8);
    PSLD_FILL_UNSET(own->tolerance, 1e-4);
    return PSLD_OK;
}

psld_status psld_source_restore(psld_source *base, const psld_recipe *recipe, const psld_operator *op, const double *y,
                                const psld_restore_options *options, psld_source **source)
{
    psld_restore_options own;
    *source = NULL;
    PSLD_TRY(read_options(options, &own));
    const psld_restore_method *method = PSLD_TABLE_FIND(methods, "method", own.method);
    if (!method) return PSLD_BAD_ARGUMENT;
    PSLD_TRY(check_restore_options(base, method, &own));
    restoration *r = psld_alloc(1, sizeof *r);
    if (!r) return PSLD_NO_MEMORY;
    *r = (restoration){.base = base, .recipe = *recipe, .op = op, .method = method, .options = own};
    r->options.method = method->info.name;
    r->y = psld_copy_bytes(y, op->size * sizeof *y);
    if (!r->y) {
        release_restored(r);
        return PSLD_NO_MEMORY;
    }
    return psld_source_wrap(base, recipe, predict_restored, release_restored, r, source);
}
