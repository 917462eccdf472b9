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

/* cov(h) = sum_j h^(j+1) / (j+1)! Lambda^j(S), Lambda(X) = A X + X A'. Entries that begin with h^(2k-1) need 2k - 2 more
 * terms than the others. */
static void small_cov(int k, const psld_wide *a, const psld_wide *s, psld_wide h, psld_wide *cov)
{
    psld_wide term[PSLD_WIDE_SIZE], left[PSLD_WIDE_SIZE];
    for (int i = 0; i < k * k; i++) cov[i] = term[i] = s[i] * h;
    for (int j = 1; j <= 30 + 2 * k; j++) {
        psld_wide_multiply(k, a, term, left);
        for (int row = 0; row < k; row++)
            for (int column = 0; column < k; column++)
                term[row * k + column] = (left[row * k + column] + left[column * k + row]) * (h / (j + 1));
        for (int i = 0; i < k * k; i++) cov[i] += term[i];
    }
}

enum { LEGENDRE_TERMS = PSLD_MAX_K + 24, LEGENDRE_BLOCKS = PSLD_MAX_K + 11 };

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

/* With exp(A h u) G = sum_i u^i V_i = sum_j p_j(u) W_j, p_j being orthonormal polynomials, cov(h) = h sum_j W_j W_j': the columns of all
 * sqrt(h) W_j are a factor of cov. They fade quickly with j. */
static void small_factor(int k, const psld_wide *a, const psld_wide *g, psld_wide h, psld_wide *lower)
{
    psld_wide wide[PSLD_MAX_K * LEGENDRE_BLOCKS * PSLD_MAX_K] = {0}, v[PSLD_WIDE_SIZE], next[PSLD_WIDE_SIZE];
    int terms = k + LEGENDRE_TERMS - PSLD_MAX_K, blocks = k + LEGENDRE_BLOCKS - PSLD_MAX_K, columns = blocks * k;
    pthread_once(&legendre_once, fill_legendre);
    for (int i = 0; i < k * k; i++) v[i] = g[i] * sqrtl(h);
    for (int i = 0; i < terms; i++) {
        for (int row = 0; row < k; row++)
            for (int l = 0; l < k; l++) {
                psld_wide entry = v[row * k + l], *out = wide + row * columns + l;
                if (entry == 0) continue;
                for (int j = 0; j <= i && j < blocks; j++) out[j * k] += legendre[i][j] * entry;
            }
        psld_wide_multiply(k, a, v, next);
        for (int l = 0; l < k * k; l++) v[l] = next[l] * (h / (i + 1));
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

/* A transition in whitened variables and extended precision. */
typedef struct transition {
    psld_wide mean[PSLD_WIDE_SIZE], cov[PSLD_WIDE_SIZE], lower[PSLD_WIDE_SIZE];
} transition;

/* From h to 2 h, so many times. */
static void double_up(int k, int times, transition *t)
{
    psld_wide product[PSLD_WIDE_SIZE], sum[PSLD_WIDE_SIZE];
    while (times-- > 0) {
        psld_wide_multiply(k, t->mean, t->cov, product);
        psld_wide_multiply_t(k, product, t->mean, sum);
        for (int i = 0; i < k; i++) /* the two halves of a symmetric matrix stay equal to the bit */
            for (int j = 0; j <= i; j++) t->cov[i * k + j] = t->cov[j * k + i] = t->cov[i * k + j] + sum[i * k + j];
        psld_wide_multiply(k, t->mean, t->lower, product);
        add_to_factor(k, product, t->lower);
        psld_wide_multiply(k, t->mean, t->mean, product);
        memcpy(t->mean, product, sizeof product);
    }
}

/* cov <- cov + sign * mean diag(d) mean'. */
static void add_spread(int k, int sign, const psld_wide *d, transition *t)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            psld_wide sum = 0;
            for (int l = 0; l < k; l++) sum += t->mean[i * k + l] * d[l] * t->mean[j * k + l];
            t->cov[i * k + j] += sign * sum;
            t->cov[j * k + i] = t->cov[i * k + j];
        }
}

static void whitened_transition(const psld_recipe *recipe, const psld_wide *a, psld_wide h, const psld_wide *start,
                                transition *t)
{
    int k = recipe->spec.k, doublings = 0;
    frexpl(psld_wide_norm(k, a) * h, &doublings); /* |A| h < 2^doublings */
    if (doublings < 0) doublings = 0;
    psld_wide small = ldexpl(h, -doublings);
    small_mean(k, a, small, t->mean);
    small_cov(k, a, recipe->wide_diffusion, small, t->cov);
    small_factor(k, a, recipe->wide_diffusion_root, small, t->lower);
    double_up(k, doublings, t);
    if (psld_wide_norm(k, t->mean) >= 0.5L) {
        psld_wide spread[PSLD_WIDE_SIZE];
        for (int i = 0; i < k * k; i++) spread[i] = t->mean[i] * sqrtl(start[i % k]);
        add_spread(k, 1, start, t);
        add_to_factor(k, spread, t->lower);
    } else {
        psld_wide lack[PSLD_MAX_K];
        for (int i = 0; i < k; i++) lack[i] = 1 - start[i];
        psld_wide_identity(k, t->cov);
        add_spread(k, -1, lack, t);
        psld_wide_cholesky(k, t->cov, t->lower);
    }
}

void psld_transition(const psld_recipe *recipe, psld_direction direction, psld_wide h, const double *start,
                     psld_gaussian *out)
{
    int k = recipe->spec.k;
    psld_wide drift[PSLD_WIDE_SIZE] = {0}, whitened_start[PSLD_MAX_K] = {0}, deviation[PSLD_MAX_K] = {1};
    transition t;
    for (int i = 1; i < k; i++) deviation[i] = sqrtl(recipe->spec.mass[i - 1]);
    for (int i = 0; start && i < k; i++) whitened_start[i] = start[i] / (deviation[i] * deviation[i]);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            drift[i * k + j] = recipe->wide_drift[direction == PSLD_FLIPPED ? j * k + i : i * k + j];
    whitened_transition(recipe, drift, h, whitened_start, &t);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            out->mean[i * k + j] = (double)(t.mean[i * k + j] * (deviation[i] / deviation[j]));
            out->cov[i * k + j] = (double)(t.cov[i * k + j] * (deviation[i] * deviation[j]));
            out->factor[i * k + j] = (double)(t.lower[i * k + j] * deviation[i]);
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
    psld_wide wide[2 * PSLD_WIDE_SIZE] = {0}, precise[PSLD_WIDE_SIZE];
    double lower[PSLD_MATRIX_SIZE], lower_inverse[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    const int *order = recipe->order;
    PSLD_TRY(check_time(t, 0));
    psld_kernel(recipe, t, mode, 0, &kernel);
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) wide[i * 2 * k + j] = kernel.factor[order[i] * k + j];
        wide[i * 2 * k + k + i] = sqrtl(recipe->spec.stabiliser);
    }
    psld_wide_triangularise(k, 2 * k, wide, precise);
    for (int i = 0; i < k * k; i++) lower[i] = (double)precise[i];
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
