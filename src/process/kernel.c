/* The perturbation kernel p(z_t | z_0), and every other exact transition of a recipe.
 *
 * The process. The forward SDE is linear, with the same k x k matrices for each coordinate of the data:
 *     dz = beta A z dt + sqrt(beta) G dw,     A = -(D + Q) P,   G G' = 2 D.
 * A beta that varies only changes the speed of time. So a transition from u to t depends on h = int_u^t beta alone:
 *     z_t | z_u ~ N(Phi z_u, Sigma),   Phi(h) = exp(A h),   Sigma(h) = int_0^h exp(A s) G G' exp(A' s) ds.
 * For PSLD this is App. B.3 of the paper; there the integral is written out for k = 2. Here k is any.
 *
 * Units. Variables are measured in their stationary deviations ("whitened": z_i / sqrt(mass_i)). Then P = I, the
 * stationary distribution is N(0, I), and A = -(D + Q).
 *
 * Accuracy. The entries of Sigma scale as h, h^2, ..., h^(2k-1) for small h. A formula that subtracts numbers of order 1
 * loses the small ones. The Cholesky factor cannot be computed from Sigma either: for the third-order process at
 * t = 1e-5, x and m_1 are correlated to 1 - 1e-10, and the differences in Cholesky's algorithm leave five digits. So the
 * factor L is computed first, and Sigma = L L' follows.
 *
 *   1. Short interval, |A| h <= 1: Phi and L by Taylor series, in which each entry starts at its own leading power.
 *   2. Doubling:  Phi(2h) = Phi(h)^2,   Sigma(2h) = Sigma(h) + Phi(h) Sigma(h) Phi(h)'.
 *      A sum X X' + Y Y' has the factor of the matrix [X Y]. Rotations of its columns make it triangular, and they keep
 *      small entries accurate.
 *   3. Near stationarity, Sigma tends to I and doubling would accumulate rounding errors. There Phi is small, and
 *          Sigma = I - Phi (I - Sigma_0) Phi'
 *      is accurate, with Sigma_0 the covariance at the start. The switch from 2 to 3 is at |Phi| = 1/2. */
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

/* Phi(h) = exp(A h) for |A| h <= 1, by its Taylor series. The mean eigenvalue, trace(A) / k, is split off: a critically
 * damped drift is then nilpotent, and its series ends. */
static void taylor_mean(int k, const psld_wide *a, psld_wide h, psld_wide *mean)
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

/* legendre[i][j]: coefficient of the orthonormal Legendre polynomial p_j on [0, 1] in u^i,
 *     sqrt(2 j + 1) (i!)^2 / ((i - j)! (i + j + 1)!). */
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

/* L(h) for |A| h <= 1. Taylor: exp(A h u) G = sum_i u^i V_i, with u in [0, 1]. Rewritten in orthonormal polynomials, the
 * sum is sum_j p_j(u) W_j. Then Sigma(h) = h int_0^1 (sum_j p_j W_j)(sum_j p_j W_j)' du = h sum_j W_j W_j', so the columns
 * of all sqrt(h) W_j are a factor of Sigma. They decrease quickly with j. */
static void taylor_factor(int k, const psld_wide *a, const psld_wide *g, psld_wide h, psld_wide *lower)
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
                psld_wide sum = 0; /* kept in a register: stores of long double are slow */
                for (int i = j; i < terms; i++) sum += legendre[i][j] * v[i][row * k + l];
                wide[row * columns + j * k + l] = sum;
            }
    psld_wide_triangularise(k, columns, wide, lower);
}

/* lower <- factor of lower lower' + y y', with y a k x k matrix. */
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

/* Phi <- Phi^(2^times): the interval is doubled so many times. */
static void double_mean(int k, int times, psld_wide *mean)
{
    psld_wide square[PSLD_WIDE_SIZE];
    while (times-- > 0) {
        psld_wide_multiply(k, mean, mean, square);
        memcpy(mean, square, sizeof square);
    }
}

/* Case 3: the factor of Sigma = I - Phi (I - Sigma_0) Phi', with Sigma_0 = diag(start). */
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

/* Cases 1 and 2: the factor after `doublings` of the interval h, whose Phi is `mean`. The covariance at the start,
 * diag(start), is carried by the Phi of the whole interval, `whole_mean`, and added. */
static void doubled_factor(const psld_recipe *recipe, const psld_wide *a, psld_wide h, int doublings, psld_wide *mean,
                           const psld_wide *whole_mean, const psld_wide *start, psld_wide *lower)
{
    int k = recipe->spec.k;
    psld_wide moved[PSLD_WIDE_SIZE];
    taylor_factor(k, a, recipe->wide_diffusion_root, h, lower);
    for (int i = 0; i < doublings; i++) {
        psld_wide_multiply(k, mean, lower, moved);
        add_to_factor(k, moved, lower);
        double_mean(k, 1, mean);
    }
    for (int i = 0; i < k * k; i++) moved[i] = whole_mean[i] * sqrtl(start[i % k]);
    add_to_factor(k, moved, lower);
}

/* Phi and L of an interval of any length, in whitened variables. */
static void whitened_transition(const psld_recipe *recipe, const psld_wide *a, psld_wide h, const psld_wide *start,
                                psld_wide *mean, psld_wide *lower)
{
    int k = recipe->spec.k, doublings = 0;
    psld_wide small[PSLD_WIDE_SIZE];
    frexpl(psld_wide_norm(k, a) * h, &doublings); /* |A| h < 2^doublings */
    if (doublings < 0) doublings = 0;
    h = ldexpl(h, -doublings);
    taylor_mean(k, a, h, small);
    memcpy(mean, small, sizeof small);
    double_mean(k, doublings, mean);
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
    return psld_fail(PSLD_BAD_ARGUMENT, "t: expected a time in %s0, 1], found %g", zero_allowed ? "[" : "(", t);
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
    return psld_fail(
        PSLD_NOT_FINITE,
        "recipe %s: the kernel covariance at t = %g is singular in double precision: use larger times or a "
        "larger stabiliser",
        recipe->spec.name, t);
}

/* With the stabiliser c the covariance is L L' + c I, and its factor is that of the matrix [L, sqrt(c) I]. Rows are taken
 * in recipe->order, in which the factor is lower triangular. */
psld_status psld_kernel_factor(const psld_recipe *recipe, const psld_gaussian *kernel, double t, double *factor,
                               double *inverse)
{
    psld_wide wide[2 * PSLD_WIDE_SIZE] = {0}, stabilised[PSLD_WIDE_SIZE];
    double lower[PSLD_MATRIX_SIZE], lower_inverse[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    const int *order = recipe->order;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) wide[i * 2 * k + j] = kernel->factor[order[i] * k + j];
        wide[i * 2 * k + k + i] = sqrtl(recipe->spec.stabiliser);
    }
    psld_wide_triangularise(k, 2 * k, wide, stabilised);
    for (int i = 0; i < k * k; i++) lower[i] = (double)stabilised[i];
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
