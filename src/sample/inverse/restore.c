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
#include "base/threads.h"
#include "base/workspace.h"
#include "sample/inverse/operator.h"
#include "sample/sources/add_gradient.h"
#include "sample/sources/denoiser.h"
#include "sample/sources/source.h"

/* Constants of one time. */
typedef struct restore_constants {
    double t;
    double mu[PSLD_MAX_K], cov[PSLD_MATRIX_SIZE];
    double sigma2;    /* of the effective observation of x_0 */
    double isotropic; /* v */
    psld_denoiser denoiser;
} restore_constants;

struct restore_call;
typedef psld_status (*restore_fn)(struct restore_call *r, const restore_constants *at, const psld_states *states,
                                  const double *eps);

typedef struct method_row {
    psld_restore_method_info info;
    restore_fn restore;
} method_row;

/* The source: what is the same in all calls. */
typedef struct restoration {
    psld_source *base;
    psld_recipe recipe; /* a copy of its own */
    const psld_operator *op;
    const method_row *method;
    psld_restore_options options;
    double *y; /* [size] */
    psld_workspaces workspaces;
} restoration;

/* One call. */
typedef struct restore_call {
    psld_source *base;
    const psld_recipe *recipe;
    const psld_operator *op;
    const method_row *method;
    psld_restore_options options;
    const double *y;
    double *gradient; /* [n][k * dim]: the result */
    double *clean;    /* [n][dim]: X, then A' p */
    double *weight;   /* [n][predicted * dim] */
    double *product;  /* [n][k * dim]: a vector-Jacobian product */
    double *residual; /* [n][size]: y - A X */
    double *solved;   /* [n][size]: C^-1 (y - A X) */
    double *cg[5];    /* [n][size] each: residual, residual divided, direction, product with it, solution */
    double *least;    /* [n]: smallest squared residual so far */
    double *goals;    /* [n]: squared residual to reach; below 0 when the state is finished */
    double *work;     /* [n][work_size] */
    size_t work_size;
} restore_call;

/* ---- Constants and memory ---------------------------------------------------------------------------------------- */

static psld_status plan_restore_constants(const restore_call *r, double t, restore_constants *at)
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

static psld_status allocate_restore_call(restore_call *r, psld_workspace *memory, size_t n)
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

/* ---- The diffused measurement ------------------------------------------------------------------------------------ */

typedef struct diffused_job {
    const restore_call *r;
    const restore_constants *at;
    const double *z;
    double *precision; /* [size][k x k]: inverses of s^2 mu mu' + square cov; 0 where nothing is measured */
} diffused_job;

static void diffused_precision(const restore_call *r, const restore_constants *at, double square, double *out)
{
    double cov[PSLD_MATRIX_SIZE], lower[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE], transposed[PSLD_MATRIX_SIZE];
    int k = r->recipe->spec.k;
    memset(out, 0, (size_t)(k * k) * sizeof *out);
    if (square < 1e-14) return;
    for (int i = 0; i < k * k; i++)
        cov[i] = r->options.noise * r->options.noise * at->mu[i / k] * at->mu[i % k] + square * at->cov[i];
    if (psld_matrix_cholesky(k, cov, lower)) return; /* singular in double precision: carries no information */
    psld_matrix_invert_lower(k, lower, inverse);
    psld_matrix_transpose(k, inverse, transposed);
    psld_matrix_multiply(k, transposed, inverse, out);
}

static void diffused_state(const diffused_job *job, size_t i)
{
    const restore_call *r = job->r;
    const psld_operator *op = r->op;
    size_t k = (size_t)r->recipe->spec.k, dim = op->dim, size = op->size;
    double *work = r->work + i * r->work_size, *rest = work + dim, *spare = rest + k * size;
    double *gradient = r->gradient + i * k * dim;
    for (size_t a = 0; a < k; a++) {
        psld_operator_forward(op, job->z + (i * k + a) * dim, work, spare);
        for (size_t l = 0; l < size; l++) spare[l] = job->at->mu[a] * r->y[l] - spare[l];
        psld_operator_rotate(op, 0, spare, work, rest + a * size);
    }
    for (size_t a = 0; a < k; a++) {
        double *out = r->cg[0] + i * size;
        for (size_t l = 0; l < size; l++) {
            out[l] = 0;
            for (size_t b = 0; b < k; b++) out[l] += job->precision[l * k * k + a * k + b] * rest[b * size + l];
        }
        psld_operator_rotate(op, 1, out, work, spare);
        psld_operator_adjoint(op, spare, work, gradient + a * dim);
    }
}

static void diffused_range(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) diffused_state(context, i);
}

static psld_status restore_diffused(restore_call *r, const restore_constants *at, const psld_states *states,
                                    const double *eps)
{
    size_t k = (size_t)r->recipe->spec.k, size = r->op->size;
    (void)eps;
    diffused_job job = {r, at, states->z, psld_alloc(size, k * k * sizeof(double))};
    if (!job.precision) return PSLD_NO_MEMORY;
    for (size_t l = 0; l < size; l++) {
        int as_before = l > 0 && r->op->squares[l] == r->op->squares[l - 1];
        double *out = job.precision + l * k * k;
        if (as_before)
            memcpy(out, out - k * k, k * k * sizeof *out);
        else
            diffused_precision(r, at, r->op->squares[l], out);
    }
    psld_parallel(states->n, 1, diffused_range, &job);
    psld_release(job.precision);
    return PSLD_OK;
}

/* ---- Through the denoiser ---------------------------------------------------------------------------------------- */

/* product = (dX/dz)' v, v [n][dim]. */
static psld_status jacobian_product(restore_call *r, const restore_constants *at, const psld_states *states,
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
static void find_residuals(restore_call *r, const restore_constants *at, const psld_states *states, const double *eps)
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
static double safe_fraction(const restore_call *r, const restore_constants *at, size_t i)
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
static psld_status gradient_through_denoiser(restore_call *r, const restore_constants *at, const psld_states *states)
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

static psld_status restore_reconstruction(restore_call *r, const restore_constants *at, const psld_states *states,
                                          const double *eps)
{
    double variance = r->options.noise * r->options.noise + at->isotropic;
    find_residuals(r, at, states, eps);
    for (size_t i = 0; i < states->n * r->op->size; i++) r->solved[i] = r->residual[i] / variance;
    return gradient_through_denoiser(r, at, states);
}

/* out = (s^2 + v A A')^-1 in, for one state. Directions that are not measured give 0. May be in place. */
static void solve_isotropic(const restore_call *r, const restore_constants *at, const double *in, double *out)
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

static psld_status restore_isotropic(restore_call *r, const restore_constants *at, const psld_states *states,
                                     const double *eps)
{
    size_t size = r->op->size;
    find_residuals(r, at, states, eps);
    for (size_t i = 0; i < states->n; i++) solve_isotropic(r, at, r->residual + i * size, r->solved + i * size);
    return gradient_through_denoiser(r, at, states);
}

/* ---- With the posterior covariance ------------------------------------------------------------------------------- */

/* out = (s^2 + A V A') in, for all states. */
static psld_status multiply_covariance(restore_call *r, const restore_constants *at, const psld_states *states,
                                       const double *in, double *out)
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
static void conjugate_gradient_step(const restore_call *r, const restore_constants *at, size_t i)
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
static psld_status solve_by_conjugate_gradients(restore_call *r, const restore_constants *at, const psld_states *states)
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

static psld_status restore_posterior(restore_call *r, const restore_constants *at, const psld_states *states,
                                     const double *eps)
{
    find_residuals(r, at, states, eps);
    PSLD_TRY(solve_by_conjugate_gradients(r, at, states));
    return gradient_through_denoiser(r, at, states);
}

/* ---- The source -------------------------------------------------------------------------------------------------- */

static const method_row methods[] = {
    {{.name = "posterior",
      .summary = "with the covariance of x_0 given z_t: exact for a Gaussian prior",
      .needs_gradient = 1,
      .uses_iterations = 1},
     restore_posterior},
    {{.name = "isotropic", .summary = "the same with one variance for all of it", .needs_gradient = 1},
     restore_isotropic},
    {{.name = "reconstruction", .summary = "the gradient of |y - A x_0|^2 through the denoiser", .needs_gradient = 1},
     restore_reconstruction},
    {{.name = "diffused", .summary = "the measurement diffused like the data (the paper's form): needs no derivatives"},
     restore_diffused},
};

const psld_restore_method_info *psld_restore_method_at(int index)
{
    return PSLD_TABLE_AT(methods, index);
}

const psld_restore_method_info *psld_restore_method_find(const char *name)
{
    return PSLD_TABLE_FIND(methods, "method", name);
}

static psld_status predict_with_restoration(restore_call *r, psld_workspace *memory, const psld_states *states,
                                            double *eps)
{
    size_t dim = states->dim, state = (size_t)r->recipe->spec.k * dim, predicted = (size_t)r->recipe->predicted * dim;
    PSLD_TRY(allocate_restore_call(r, memory, states->n));
    PSLD_TRY(psld_source_predict(r->base, states, eps));
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        restore_constants at;
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
    restore_call call = {.base = all->base,
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

static psld_status check_restore_options(const psld_source *base, const method_row *method,
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
    const method_row *method = PSLD_TABLE_FIND(methods, "method", own.method);
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
