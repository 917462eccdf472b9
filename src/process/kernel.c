/* Exact transitions of the linear process, with every entry accurate relative to itself.
 *
 * Over an interval h (in the integral of beta), with A the drift matrix and S = 2 D = G G':
 *     mean(h) = exp(A h),      cov(h) = int_0^h exp(A s) S exp(A' s) ds = factor(h) factor(h)'.
 * For small h the entries of cov scale as h, h^2, ..., h^(2k-1), and any formula that takes differences of quantities
 * of order 1 loses them. Nor can the factor be had from cov: at t = 1e-5 the third-order process has x and m_1
 * correlated to 1 - 1e-10, and Cholesky's differences leave five digits. So the factor itself is computed, and cov is
 * its square. For |A| h <= 1 it comes from Taylor series, where each entry begins with its own leading power; then it
 * is doubled:
 *     cov(2h) = cov(h) + mean(h) cov(h) mean(h)',   mean(2h) = mean(h)^2.
 * A sum X X' + Y Y' has the factor of the matrix [X Y], made triangular by rotations of columns, which keep small
 * entries accurate. Near stationarity cov approaches the identity (whitened) and doubling would accumulate rounding;
 * there
 *     cov = I - mean (I - start) mean'
 * is accurate, since mean is small. The switch is at |mean| = 1/2. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "process/recipe.h"

double psld_beta(const psld_recipe *recipe, double t)
{
    return recipe->spec.beta_min + (recipe->spec.beta_max - recipe->spec.beta_min) * t;
}

psld_wide psld_beta_integral(const psld_recipe *recipe, double u, double t)
{
    psld_wide low = recipe->spec.beta_min, slope = recipe->spec.beta_max - low, from = u, to = t;
    return (to - from) * (low + slope * (to + from) / 2);
}

/* exp(A h) for |A| h <= 1. The trace is taken out: what remains of a critically damped drift is nilpotent. */
static void small_mean(int k, const psld_wide *a, psld_wide h, psld_wide *mean)
{
    psld_wide shifted[PSLD_WIDE_SIZE], term[PSLD_WIDE_SIZE], next[PSLD_WIDE_SIZE], trace = 0;
    memcpy(shifted, a, sizeof shifted);
    for (int i = 0; i < k; i++) trace += a[i * k + i] / k;
    for (int i = 0; i < k; i++) shifted[i * k + i] -= trace;
    psld_wide_identity(k, mean);
    psld_wide_identity(k, term);
    for (int j = 1; j <= 22 + k; j++) {
        psld_wide_multiply(k, shifted, term, next);
        for (int i = 0; i < k * k; i++) mean[i] += term[i] = next[i] * (h / j);
    }
    psld_wide decay = expl(trace * h);
    for (int i = 0; i < k * k; i++) mean[i] *= decay;
}

enum { LEGENDRE_TERMS = PSLD_MAX_K + 21, LEGENDRE_BLOCKS = PSLD_MAX_K + 8 };

static psld_wide legendre[LEGENDRE_TERMS][LEGENDRE_BLOCKS];
static pthread_once_t legendre_once = PTHREAD_ONCE_INIT;

/* Coefficients of u^i in orthonormal Legendre polynomials on [0, 1]: sqrt(2 j + 1) (i!)^2 / ((i - j)! (i + j + 1)!). */
static void fill_legendre(void)
{
    for (int i = 0; i < LEGENDRE_TERMS; i++) {
        psld_wide c = 1 / (psld_wide)(i + 1);
        for (int j = 0; j <= i && j < LEGENDRE_BLOCKS; j++) {
            legendre[i][j] = c * sqrtl((psld_wide)(2 * j + 1));
            c *= (psld_wide)(i - j) / (i + j + 2);
        }
    }
}

/* With exp(A h u) G = sum_i u^i V_i = sum_j p_j(u) W_j, p_j being orthonormal polynomials, cov(h) = h sum_j W_j
 * W_j': the columns of all sqrt(h) W_j are a factor of cov. They fade quickly with j. */
static void small_factor(int k, const psld_wide *a, const psld_wide *g, psld_wide h, psld_wide *lower)
{
    psld_wide wide[PSLD_MAX_K * LEGENDRE_BLOCKS * PSLD_MAX_K], v[LEGENDRE_TERMS + 1][PSLD_WIDE_SIZE];
    int terms = k + LEGENDRE_TERMS - PSLD_MAX_K, blocks = k + LEGENDRE_BLOCKS - PSLD_MAX_K, columns = blocks * k;
    pthread_once(&legendre_once, fill_legendre);
    for (int i = 0; i < k * k; i++) v[0][i] = g[i] * sqrtl(h);
    for (int i = 0; i < terms; i++) {
        psld_wide_multiply(k, a, v[i], v[i + 1]);
        for (int l = 0; l < k * k; l++) v[i + 1][l] *= h / (i + 1);
    }
    for (int row = 0; row < k; row++)
        for (int j = 0; j < blocks; j++)
            for (int l = 0; l < k; l++) {
                psld_wide sum = 0; /* in a register: storing extended numbers is slow */
                for (int i = j; i < terms; i++) sum += legendre[i][j] * v[i][row * k + l];
                wide[row * columns + j * k + l] = sum;
            }
    psld_wide_triangularise(k, columns, wide, lower);
}

/* lower <- factor of lower lower' + y y', y being k x k. */
static void add_to_factor(int k, const psld_wide *y, psld_wide *lower)
{
    psld_wide wide[2 * PSLD_WIDE_SIZE];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            wide[i * 2 * k + j] = y[i * k + j];
            wide[i * 2 * k + k + j] = lower[i * k + j];
        }
    psld_wide_triangularise(k, 2 * k, wide, lower);
}

/* mean <- mean^(2^times). */
static void square_mean(int k, int times, psld_wide *mean)
{
    psld_wide square[PSLD_WIDE_SIZE];
    while (times-- > 0) {
        psld_wide_multiply(k, mean, mean, square);
        memcpy(mean, square, sizeof square);
    }
}

/* The factor near stationarity: of cov = I - mean (I - start) mean'. */
static void stationary_factor(int k, const psld_wide *mean, const psld_wide *start, psld_wide *lower)
{
    psld_wide cov[PSLD_WIDE_SIZE];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide sum = 0;
            for (int l = 0; l < k; l++) sum += mean[i * k + l] * (1 - start[l]) * mean[j * k + l];
            cov[i * k + j] = (i == j) - sum;
        }
    psld_wide_cholesky(k, cov, lower);
}

/* The factor after `doublings` of the interval h, `mean` belonging to h, with the start variances spread by
 * `whole_mean`. */
static void doubled_factor(const psld_recipe *recipe, const psld_wide *a, psld_wide h, int doublings, psld_wide *mean,
                           const psld_wide *whole_mean, const psld_wide *start, psld_wide *lower)
{
    int k = recipe->spec.k;
    psld_wide moved[PSLD_WIDE_SIZE];
    small_factor(k, a, recipe->wide_diffusion_root, h, lower);
    for (int i = 0; i < doublings; i++) {
        psld_wide_multiply(k, mean, lower, moved);
        add_to_factor(k, moved, lower);
        square_mean(k, 1, mean);
    }
    for (int i = 0; i < k * k; i++) moved[i] = whole_mean[i] * sqrtl(start[i % k]);
    add_to_factor(k, moved, lower);
}

static void whitened_transition(const psld_recipe *recipe, const psld_wide *a, psld_wide h, const psld_wide *start,
                                psld_wide *mean, psld_wide *lower)
{
    int k = recipe->spec.k, doublings = 0;
    psld_wide small[PSLD_WIDE_SIZE];
    frexpl(psld_wide_norm(k, a) * h, &doublings); /* |A| h < 2^doublings */
    if (doublings < 0) doublings = 0;
    h = ldexpl(h, -doublings);
    small_mean(k, a, h, small);
    memcpy(mean, small, sizeof small);
    square_mean(k, doublings, mean);
    if (psld_wide_norm(k, mean) < 0.5L)
        stationary_factor(k, mean, start, lower);
    else
        doubled_factor(recipe, a, h, doublings, small, mean, start, lower);
}

void psld_transition(const psld_recipe *recipe, psld_direction direction, psld_wide h, const double *start,
                     psld_gaussian *out)
{
    int k = recipe->spec.k;
    psld_wide drift[PSLD_WIDE_SIZE] = {0}, whitened_start[PSLD_MAX_K] = {0}, deviation[PSLD_MAX_K] = {1};
    psld_wide mean[PSLD_WIDE_SIZE], lower[PSLD_WIDE_SIZE], cov[PSLD_WIDE_SIZE];
    for (int i = 1; i < k; i++) deviation[i] = sqrtl(recipe->spec.mass[i - 1]);
    for (int i = 0; start && i < k; i++) whitened_start[i] = start[i] / (deviation[i] * deviation[i]);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            drift[i * k + j] = recipe->wide_drift[direction == PSLD_FLIPPED ? j * k + i : i * k + j];
    whitened_transition(recipe, drift, h, whitened_start, mean, lower);
    psld_wide_multiply_t(k, lower, lower, cov);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            out->mean[i * k + j] = (double)(mean[i * k + j] * (deviation[i] / deviation[j]));
            out->cov[i * k + j] = (double)(cov[i * k + j] * (deviation[i] * deviation[j]));
            out->factor[i * k + j] = (double)(lower[i * k + j] * deviation[i]);
        }
}

void psld_kernel(const psld_recipe *recipe, double t, psld_mode mode, double x_variance, psld_gaussian *out)
{
    double start[PSLD_MAX_K] = {x_variance};
    const psld_recipe_spec *spec = &recipe->spec;
    for (int i = 1; mode == PSLD_HSM && i < spec->k; i++) start[i] = spec->init[i - 1] * spec->mass[i - 1];
    psld_transition(recipe, PSLD_FORWARD, psld_beta_integral(recipe, 0, t), start, out);
}

void psld_recipe_reverse_drift(const psld_recipe *recipe, double *linear)
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

static psld_status check_mode(psld_mode mode)
{
    if (mode == PSLD_HSM || mode == PSLD_DSM) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "mode: expected PSLD_HSM or PSLD_DSM, found %d", (int)mode);
}

psld_status psld_recipe_kernel(const psld_recipe *recipe, double t, psld_mode mode, double *mean, double *cov,
                               double *chol)
{
    psld_gaussian kernel;
    PSLD_TRY(check_time(t, 1));
    PSLD_TRY(check_mode(mode));
    psld_kernel(recipe, t, mode, 0, &kernel);
    if (mean) psld_matrix_copy(recipe->spec.k, kernel.mean, mean);
    if (cov) psld_matrix_copy(recipe->spec.k, kernel.cov, cov);
    if (chol) psld_matrix_copy(recipe->spec.k, kernel.factor, chol);
    return PSLD_OK;
}

psld_status psld_fail_singular(const psld_recipe *recipe, double t)
{
    return psld_fail(PSLD_NOT_FINITE, "recipe %s: the kernel covariance at t = %g is singular to working precision",
                     recipe->spec.name, t);
}

/* The stabiliser e makes the covariance L L' + e I, whose factor is that of [L, sqrt(e) I]; rows go into the order
 * wanted. */
psld_status psld_kernel_factor(const psld_recipe *recipe, const psld_gaussian *kernel, double t, double *factor,
                               double *inverse)
{
    psld_wide wide[2 * PSLD_WIDE_SIZE] = {0}, precise[PSLD_WIDE_SIZE];
    double lower[PSLD_MATRIX_SIZE], lower_inverse[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    const int *order = recipe->order;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) wide[i * 2 * k + j] = kernel->factor[order[i] * k + j];
        wide[i * 2 * k + k + i] = sqrtl(recipe->spec.stabiliser);
    }
    psld_wide_triangularise(k, 2 * k, wide, precise);
    for (int i = 0; i < k * k; i++) lower[i] = (double)precise[i];
    psld_matrix_invert_lower(k, lower, lower_inverse);
    for (int i = 0; i < k; i++)
        if (!(lower[i * k + i] > 0) || !isfinite(lower_inverse[i * k + i])) return psld_fail_singular(recipe, t);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            if (factor) factor[order[i] * k + order[j]] = lower[i * k + j];
            if (inverse) inverse[order[i] * k + order[j]] = lower_inverse[i * k + j];
        }
    return PSLD_OK;
}

psld_status psld_recipe_factor(const psld_recipe *recipe, double t, psld_mode mode, double *factor, double *inverse)
{
    psld_gaussian kernel;
    PSLD_TRY(check_time(t, 0));
    PSLD_TRY(check_mode(mode));
    psld_kernel(recipe, t, mode, 0, &kernel);
    return psld_kernel_factor(recipe, &kernel, t, factor, inverse);
}
