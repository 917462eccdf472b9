/* Exact transitions of the linear process, with every entry accurate relative to itself.
 *
 * Over an interval h (in the integral of beta), with A the drift matrix and S = 2 D = G G':
 *     mean(h) = exp(A h),      cov(h) = int_0^h exp(A s) S exp(A' s) ds = factor(h) factor(h)'.
 * For small h the entries of cov scale as h, h^2, ..., h^(2k-1), and any formula that takes differences of quantities
 * of order 1 loses them. So all three are Taylor series for |A| h <= 1, where each entry begins with its own
 * leading power, and then they are doubled, which only adds positive semidefinite matrices:
 *     cov(2h) = cov(h) + mean(h) cov(h) mean(h)',   mean(2h) = mean(h)^2.
 * Near stationarity cov approaches the identity (whitened) and doubling would accumulate rounding; there
 *     cov = I - mean (I - start) mean'
 * is accurate, since mean is small. The switch is at |mean| = 1/2.
 *
 * The factor cannot be had from cov: at t = 1e-5 the third-order process has x and m_1 correlated to 1 - 1e-10, and
 * Cholesky's differences would leave five digits. It is computed beside cov instead: a sum X X' + Y Y' has the factor
 * of the matrix [X Y], made triangular by rotations of columns, which keep small entries accurate. */
#include <math.h>
#include <string.h>

#include "process/recipe.h"

double psld_beta(const psld_recipe *recipe, double t)
{
    return recipe->spec.beta_min + (recipe->spec.beta_max - recipe->spec.beta_min) * t;
}

double psld_beta_integral(const psld_recipe *recipe, double u, double t)
{
    double slope = recipe->spec.beta_max - recipe->spec.beta_min;
    return (t - u) * (recipe->spec.beta_min + slope * (0.5 * (t + u)));
}

/* exp(A h) for |A| h <= 1. The trace is taken out: what remains of a critically damped drift is nilpotent. */
static void small_mean(int k, const double *a, double h, double *mean)
{
    double shifted[PSLD_MATRIX_SIZE], term[PSLD_MATRIX_SIZE], next[PSLD_MATRIX_SIZE], trace = 0;
    psld_matrix_copy(k, a, shifted);
    for (int i = 0; i < k; i++) trace += a[i * k + i] / k;
    for (int i = 0; i < k; i++) shifted[i * k + i] -= trace;
    psld_matrix_identity(k, mean);
    psld_matrix_identity(k, term);
    for (int j = 1; j <= 20 + k; j++) {
        psld_matrix_multiply(k, shifted, term, next);
        for (int i = 0; i < k * k; i++) term[i] = next[i] * (h / j);
        psld_matrix_add(k, 1, term, mean);
    }
    double decay = exp(trace * h);
    for (int i = 0; i < k * k; i++) mean[i] *= decay;
}

/* cov(h) = sum_j h^(j+1) / (j+1)! Lambda^j(S), Lambda(X) = A X + X A'. Entries that begin with h^(2k-1) need 2k - 2 more terms
 * than the others. */
static void small_cov(int k, const double *a, const double *s, double h, double *cov)
{
    double term[PSLD_MATRIX_SIZE], left[PSLD_MATRIX_SIZE];
    for (int i = 0; i < k * k; i++) cov[i] = term[i] = s[i] * h;
    for (int j = 1; j <= 26 + 2 * k; j++) {
        psld_matrix_multiply(k, a, term, left);
        for (int row = 0; row < k; row++)
            for (int column = 0; column < k; column++)
                term[row * k + column] = (left[row * k + column] + left[column * k + row]) * (h / (j + 1));
        psld_matrix_add(k, 1, term, cov);
    }
}

/* With exp(A h u) G = sum_i u^i V_i, cov(h) = h sum_ij V_i V_j' / (i + j + 1): a Hilbert matrix, whose lower factor is known,
 *     c_ij = sqrt(2 j + 1) (i!)^2 / ((i - j)! (i + j + 1)!)      (expand u^i in Legendre polynomials),
 * so the columns of sqrt(h) sum_i c_ij V_i, all j, are a factor of cov. They fade quickly with j. */
static void small_factor(int k, const double *a, const double *g, double h, double *lower)
{
    enum { MAX_BLOCKS = PSLD_MAX_K + 10 };
    double wide[PSLD_MAX_K * MAX_BLOCKS * PSLD_MAX_K] = {0}, v[PSLD_MATRIX_SIZE], next[PSLD_MATRIX_SIZE];
    int blocks = k + 10, columns = blocks * k;
    for (int i = 0; i < k * k; i++) v[i] = g[i] * sqrt(h);
    for (int i = 0; i < k + 22; i++) {
        double c = 1.0 / (i + 1);
        for (int j = 0; j <= i && j < blocks; j++) {
            double f = c * sqrt(2.0 * j + 1);
            for (int row = 0; row < k; row++)
                for (int l = 0; l < k; l++) wide[row * columns + j * k + l] += f * v[row * k + l];
            c *= (double)(i - j) / (i + j + 2);
        }
        psld_matrix_multiply(k, a, v, next);
        for (int l = 0; l < k * k; l++) v[l] = next[l] * (h / (i + 1));
    }
    psld_matrix_triangularise(k, columns, wide, lower);
}

/* lower <- factor of lower lower' + y y', y being k x k. */
static void add_to_factor(int k, const double *y, double *lower)
{
    double wide[2 * PSLD_MATRIX_SIZE];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            wide[i * 2 * k + j] = y[i * k + j];
            wide[i * 2 * k + k + j] = lower[i * k + j];
        }
    psld_matrix_triangularise(k, 2 * k, wide, lower);
}

/* From h to 2 h, so many times. */
static void double_up(int k, int times, double *mean, double *cov, double *lower)
{
    double product[PSLD_MATRIX_SIZE], sum[PSLD_MATRIX_SIZE];
    while (times-- > 0) {
        psld_matrix_multiply(k, mean, cov, product);
        psld_matrix_multiply_t(k, product, mean, sum);
        for (int i = 0; i < k; i++) /* the two halves of a symmetric matrix stay equal to the bit */
            for (int j = 0; j <= i; j++) cov[i * k + j] = cov[j * k + i] = cov[i * k + j] + sum[i * k + j];
        psld_matrix_multiply(k, mean, lower, product);
        add_to_factor(k, product, lower);
        psld_matrix_multiply(k, mean, mean, product);
        psld_matrix_copy(k, product, mean);
    }
}

/* X <- X + sign * mean diag(d) mean'. */
static void add_spread(int k, double sign, const double *mean, const double *d, double *x)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += mean[i * k + l] * d[l] * mean[j * k + l];
            x[i * k + j] += sign * sum;
            x[j * k + i] = x[i * k + j];
        }
}

static void whitened_transition(const psld_recipe *recipe, const double *a, double h, const double *start, double *mean,
                                double *cov, double *lower)
{
    int k = recipe->spec.k, doublings = 0;
    frexp(psld_matrix_norm(k, a) * h, &doublings); /* |A| h < 2^doublings */
    if (doublings < 0) doublings = 0;
    double small = ldexp(h, -doublings);
    small_mean(k, a, small, mean);
    small_cov(k, a, recipe->diffusion, small, cov);
    small_factor(k, a, recipe->diffusion_root, small, lower);
    double_up(k, doublings, mean, cov, lower);
    if (psld_matrix_norm(k, mean) >= 0.5) {
        double spread[PSLD_MATRIX_SIZE];
        for (int i = 0; i < k * k; i++) spread[i] = mean[i] * sqrt(start[i % k]);
        add_spread(k, 1, mean, start, cov);
        add_to_factor(k, spread, lower);
    } else {
        double lack[PSLD_MAX_K];
        for (int i = 0; i < k; i++) lack[i] = 1 - start[i];
        psld_matrix_identity(k, cov);
        add_spread(k, -1, mean, lack, cov);
        psld_matrix_cholesky(k, cov, lower);
    }
}

void psld_transition(const psld_recipe *recipe, psld_direction direction, double h, const double *start,
                     psld_gaussian *out)
{
    int k = recipe->spec.k;
    const double *deviation = recipe->deviation, *drift = recipe->drift;
    double flipped[PSLD_MATRIX_SIZE], whitened_start[PSLD_MAX_K] = {0};
    if (direction == PSLD_FLIPPED) {
        psld_matrix_transpose(k, recipe->drift, flipped);
        drift = flipped;
    }
    for (int i = 0; start && i < k; i++) whitened_start[i] = start[i] / (deviation[i] * deviation[i]);
    whitened_transition(recipe, drift, h, whitened_start, out->mean, out->cov, out->factor);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            out->mean[i * k + j] *= deviation[i] / deviation[j];
            out->cov[i * k + j] *= deviation[i] * deviation[j];
            out->factor[i * k + j] *= deviation[i];
        }
}

void psld_kernel(const psld_recipe *recipe, double t, psld_mode mode, double x_variance, psld_gaussian *out)
{
    double start[PSLD_MAX_K] = {x_variance};
    const psld_recipe_spec *spec = &recipe->spec;
    for (int i = 1; mode == PSLD_HSM && i < spec->k; i++) start[i] = spec->init[i - 1] * spec->mass[i - 1];
    psld_transition(recipe, PSLD_FORWARD, psld_beta_integral(recipe, 0, t), start, out);
}

void psld_reverse_linear(const psld_recipe *recipe, double *linear)
{
    const psld_recipe_spec *spec = &recipe->spec;
    for (int i = 0; i < spec->k; i++)
        for (int j = 0; j < spec->k; j++)
            linear[i * spec->k + j] =
                (spec->D[i * spec->k + j] + spec->Q[i * spec->k + j]) / (j ? spec->mass[j - 1] : 1);
}

static psld_status check_time(double t, int zero_allowed)
{
    if (t >= 0 && t <= 1 && (t > 0 || zero_allowed)) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "time: expected a number in %s0, 1], found %g", zero_allowed ? "[" : "(", t);
}

psld_status psld_recipe_kernel(const psld_recipe *recipe, double t, psld_mode mode, double *mean, double *cov,
                               double *chol)
{
    psld_gaussian kernel;
    PSLD_TRY(check_time(t, 1));
    psld_kernel(recipe, t, mode, 0, &kernel);
    if (mean) psld_matrix_copy(recipe->spec.k, kernel.mean, mean);
    if (cov) psld_matrix_copy(recipe->spec.k, kernel.cov, cov);
    if (chol) psld_matrix_copy(recipe->spec.k, kernel.factor, chol);
    return PSLD_OK;
}

/* The stabiliser e makes the covariance L L' + e I, whose factor is that of [L, sqrt(e) I]; rows go into the order wanted. */
psld_status psld_recipe_factor(const psld_recipe *recipe, double t, psld_mode mode, double *factor, double *inverse)
{
    psld_gaussian kernel;
    double wide[2 * PSLD_MATRIX_SIZE] = {0}, lower[PSLD_MATRIX_SIZE], lower_inverse[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    const int *order = recipe->order;
    PSLD_TRY(check_time(t, 0));
    psld_kernel(recipe, t, mode, 0, &kernel);
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) wide[i * 2 * k + j] = kernel.factor[order[i] * k + j];
        wide[i * 2 * k + k + i] = sqrt(recipe->spec.stabiliser);
    }
    psld_matrix_triangularise(k, 2 * k, wide, lower);
    psld_matrix_invert_lower(k, lower, lower_inverse);
    for (int i = 0; i < k; i++)
        if (!(lower[i * k + i] > 0) || !isfinite(lower_inverse[i * k + i]))
            return psld_fail(PSLD_NOT_FINITE,
                             "recipe %s: the kernel covariance at t = %g is singular to working precision",
                             recipe->spec.name, t);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            if (factor) factor[order[i] * k + order[j]] = lower[i * k + j];
            if (inverse) inverse[order[i] * k + order[j]] = lower_inverse[i * k + j];
        }
    return PSLD_OK;
}
