/* The kernel differentiated backwards: from the gradient by its moments to that by D, Q, masses and beta.
 *
 * With A = -(D + Q) P, S = 2 D and h the integral of beta, the kernel is
 *     Phi = exp(A h),     Sigma = W + Phi diag(start) Phi',     W = int_0^h exp(A s) S exp(A' s) ds.
 * Forwards, for a short interval (Van Loan):
 *     exp X = [[Phi, N], [0, V]],   X = h [[A, S], [0, -A']],   W = N Phi'.
 * Then the interval is doubled: W <- W + Phi W Phi', Phi <- Phi^2. Both lose nothing near stationarity, where the block
 * exponential of the whole interval would. Backwards, the same steps are taken in reverse order. The gradient of
 * <E, exp X> by X is the derivative of exp at X' in the direction E.
 *
 * Extended precision, because entries of W scale as h, h^2, ... and their gradients as the inverse of that. */
#include "process/kernel_gradient.h"

#include <math.h>
#include <string.h>

enum { MAX_DOUBLINGS = 64, BLOCK = 2 * PSLD_MAX_K, BLOCK_SIZE = BLOCK * BLOCK, TERMS = 26 };

typedef struct moments {
    psld_wide mean[PSLD_WIDE_SIZE], noise[PSLD_WIDE_SIZE]; /* Phi and W */
} moments;

typedef struct doubled_kernel {
    int k, doublings;
    psld_wide h;                 /* of the whole interval */
    psld_wide block[BLOCK_SIZE]; /* X of the short interval */
    psld_wide exp_n[PSLD_WIDE_SIZE];
    moments at[MAX_DOUBLINGS + 1]; /* after so many doublings */
} doubled_kernel;

/* ---- Products of n x n matrices: out += a b, a b', a' b ---------------------------------------------------------- */

static void add_product(int n, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    for (int i = 0; i < n; i++)
        for (int l = 0; l < n; l++)
            for (int j = 0; a[i * n + l] != 0 && j < n; j++) out[i * n + j] += a[i * n + l] * b[l * n + j];
}

static void add_product_t(int n, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < n; l++) out[i * n + j] += a[i * n + l] * b[j * n + l];
}

static void add_t_product(int n, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    for (int l = 0; l < n; l++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) out[i * n + j] += a[l * n + i] * b[l * n + j];
}

/* ---- The exponential of a block and its derivative --------------------------------------------------------------- */

/* power = exp X and, unless `direction` is NULL, derivative = d/ds exp(X + s direction) at s = 0; by their series. */
static void exponential(int n, const psld_wide *x, const psld_wide *direction, psld_wide *power, psld_wide *derivative)
{
    psld_wide term[BLOCK_SIZE] = {0}, d_term[BLOCK_SIZE] = {0}, next[BLOCK_SIZE], d_next[BLOCK_SIZE];
    size_t bytes = (size_t)(n * n) * sizeof *x;
    memset(power, 0, bytes);
    if (direction) memset(derivative, 0, bytes);
    for (int i = 0; i < n; i++) term[i * n + i] = power[i * n + i] = 1;
    for (int j = 1; j <= TERMS; j++) {
        memset(next, 0, bytes);
        add_product(n, term, x, next);
        if (direction) {
            memset(d_next, 0, bytes);
            add_product(n, d_term, x, d_next);
            add_product(n, term, direction, d_next);
        }
        for (int i = 0; i < n * n; i++) power[i] += term[i] = next[i] / j;
        for (int i = 0; direction && i < n * n; i++) derivative[i] += d_term[i] = d_next[i] / j;
    }
}

/* ---- Forwards ---------------------------------------------------------------------------------------------------- */

static void fill_block(const psld_recipe *recipe, psld_wide h, psld_wide *block)
{
    const psld_recipe_spec *spec = &recipe->spec;
    int k = spec->k, n = 2 * k;
    memset(block, 0, (size_t)(n * n) * sizeof *block);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide drift = -((psld_wide)spec->D[i * k + j] + spec->Q[i * k + j]) / (j ? spec->mass[j - 1] : 1);
            block[i * n + j] = h * drift;
            block[(k + j) * n + k + i] = -h * drift;
            block[i * n + k + j] = h * 2 * spec->D[i * k + j];
        }
}

/* How often h has to be halved for a drift of norm at most 1/2. */
static int count_doublings(const psld_recipe *recipe, psld_wide h)
{
    int k = recipe->spec.k, doublings = 0;
    psld_wide block[BLOCK_SIZE], drift[PSLD_WIDE_SIZE];
    fill_block(recipe, h, block);
    for (int i = 0; i < k * k; i++) drift[i] = block[i / k * 2 * k + i % k];
    frexpl(psld_wide_norm(k, drift), &doublings);
    return doublings + 1 > 0 ? doublings + 1 : 0;
}

static void kernel_forwards(const psld_recipe *recipe, psld_wide h, int doublings, doubled_kernel *out)
{
    int k = out->k = recipe->spec.k, n = 2 * k;
    psld_wide power[BLOCK_SIZE], moved[PSLD_WIDE_SIZE];
    size_t bytes = (size_t)(k * k) * sizeof *moved;
    out->h = h;
    out->doublings = doublings;
    memset(out->at, 0, (size_t)(doublings + 1) * sizeof *out->at);
    fill_block(recipe, ldexpl(h, -doublings), out->block);
    exponential(n, out->block, NULL, power, NULL);
    for (int i = 0; i < k * k; i++) {
        out->at[0].mean[i] = power[i / k * n + i % k];
        out->exp_n[i] = power[i / k * n + k + i % k];
    }
    add_product_t(k, out->exp_n, out->at[0].mean, out->at[0].noise);
    for (int d = 0; d < doublings; d++) {
        const moments *now = &out->at[d];
        moments *next = &out->at[d + 1];
        memset(moved, 0, bytes);
        add_product(k, now->mean, now->noise, moved);
        memcpy(next->noise, now->noise, bytes);
        add_product_t(k, moved, now->mean, next->noise);
        add_product(k, now->mean, now->mean, next->mean);
    }
}

/* ---- Backwards --------------------------------------------------------------------------------------------------- */

/* From the gradient by the moments after a doubling to that by those before it:
 *     by W:    V + Phi' V Phi
 *     by Phi:  2 V Phi W + M Phi' + Phi' M         V, M: the gradients by W and Phi of the doubled interval. */
static void undo_doubling(int k, const moments *now, moments *by)
{
    psld_wide right[PSLD_WIDE_SIZE] = {0}, mean[PSLD_WIDE_SIZE] = {0};
    add_product(k, by->noise, now->mean, right);
    add_product(k, right, now->noise, mean);
    for (int i = 0; i < k * k; i++) mean[i] *= 2;
    add_product_t(k, by->mean, now->mean, mean);
    add_t_product(k, now->mean, by->mean, mean);
    add_t_product(k, now->mean, right, by->noise);
    memcpy(by->mean, mean, sizeof mean);
}

/* From the gradient by the moments of the short interval to that by its block. */
static void undo_exponential(const doubled_kernel *kernel, const moments *by, psld_wide *by_block)
{
    int k = kernel->k, n = 2 * k;
    psld_wide mean[PSLD_WIDE_SIZE], exp_n[PSLD_WIDE_SIZE] = {0}, direction[BLOCK_SIZE] = {0};
    psld_wide transposed[BLOCK_SIZE] = {0}, power[BLOCK_SIZE];
    memcpy(mean, by->mean, sizeof mean);
    add_product(k, by->noise, kernel->at[0].mean, exp_n); /* W = N Phi' */
    add_t_product(k, by->noise, kernel->exp_n, mean);
    for (int i = 0; i < k * k; i++) {
        direction[i / k * n + i % k] = mean[i];
        direction[i / k * n + k + i % k] = exp_n[i];
    }
    for (int i = 0; i < n * n; i++) transposed[i] = kernel->block[i % n * n + i / n];
    exponential(n, transposed, direction, power, by_block);
}

/* From the gradient by the drift matrix and S, of length h, to that by D, Q and masses. */
static void add_drift_gradient(const psld_recipe *recipe, const psld_wide *by_drift, const psld_wide *by_s,
                               psld_recipe_gradient *gradient)
{
    const psld_recipe_spec *spec = &recipe->spec;
    int k = spec->k;
    psld_wide sum[PSLD_WIDE_SIZE]; /* by D + Q */
    for (int j = 0; j < k; j++) {
        psld_wide p = j ? 1 / (psld_wide)spec->mass[j - 1] : 1, by_p = 0;
        for (int i = 0; i < k; i++) {
            sum[i * k + j] = -by_drift[i * k + j] * p;
            by_p -= by_drift[i * k + j] * ((psld_wide)spec->D[i * k + j] + spec->Q[i * k + j]);
        }
        if (j) gradient->mass[j - 1] -= (double)(by_p * p * p);
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide a = sum[i * k + j], b = sum[j * k + i];
            gradient->D[i * k + j] += (double)((a + b) / 2 + by_s[i * k + j] + by_s[j * k + i]);
            gradient->Q[i * k + j] += (double)((a - b) / 2);
        }
}

static void kernel_backwards(const psld_recipe *recipe, const doubled_kernel *kernel, double t, moments *by,
                             psld_recipe_gradient *gradient)
{
    int k = kernel->k, n = 2 * k;
    psld_wide by_block[BLOCK_SIZE], by_drift[PSLD_WIDE_SIZE], by_s[PSLD_WIDE_SIZE], by_h = 0;
    psld_wide h = ldexpl(kernel->h, -kernel->doublings);
    for (int d = kernel->doublings - 1; d >= 0; d--) undo_doubling(k, &kernel->at[d], by);
    undo_exponential(kernel, by, by_block);
    for (int i = 0; i < n * n; i++) by_h += by_block[i] * kernel->block[i] / kernel->h;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            by_drift[i * k + j] = h * (by_block[i * n + j] - by_block[(k + j) * n + k + i]);
            by_s[i * k + j] = h * by_block[i * n + k + j];
        }
    add_drift_gradient(recipe, by_drift, by_s, gradient);
    gradient->beta[0] += (double)(by_h * (t - (psld_wide)t * t / 2));
    gradient->beta[1] += (double)(by_h * ((psld_wide)t * t / 2));
}

/* Sigma = W + Phi diag(start) Phi' with start = init mass: the gradient by Phi and W, and by the masses in start. */
static void begin_backwards(const psld_recipe *recipe, const psld_wide *mean, const double *by_mu, const double *by_cov,
                            moments *by, psld_recipe_gradient *gradient)
{
    const psld_recipe_spec *spec = &recipe->spec;
    int k = spec->k;
    psld_wide right[PSLD_WIDE_SIZE] = {0};
    memset(by, 0, sizeof *by);
    for (int i = 0; i < k * k; i++) by->noise[i] = by_cov[i];
    add_product(k, by->noise, mean, right);
    for (int j = 0; j < k; j++) {
        psld_wide by_start = 0;
        for (int i = 0; i < k; i++) {
            by_start += mean[i * k + j] * right[i * k + j];
            by->mean[i * k + j] = j ? 2 * right[i * k + j] * (spec->init[j - 1] * spec->mass[j - 1]) : by_mu[i];
        }
        if (j) gradient->mass[j - 1] += (double)(by_start * spec->init[j - 1]);
    }
}

psld_status psld_kernel_differentiate(const psld_recipe *recipe, double t, const double *by_mu, const double *by_cov,
                                      psld_recipe_gradient *gradient)
{
    doubled_kernel kernel;
    moments by;
    psld_wide h = psld_beta_integral(recipe, 0, t);
    int doublings = count_doublings(recipe, h);
    if (doublings > MAX_DOUBLINGS)
        return psld_fail(PSLD_NOT_FINITE, "recipe %s: its drift is too fast for a derivative at t = %g",
                         recipe->spec.name, t);
    kernel_forwards(recipe, h, doublings, &kernel);
    begin_backwards(recipe, kernel.at[doublings].mean, by_mu, by_cov, &by, gradient);
    kernel_backwards(recipe, &kernel, t, &by, gradient);
    return PSLD_OK;
}

void psld_recipe_gradient_add(const psld_recipe_gradient *from, double weight, psld_recipe_gradient *to)
{
    for (int i = 0; i < PSLD_MATRIX_SIZE; i++) {
        to->D[i] += weight * from->D[i];
        to->Q[i] += weight * from->Q[i];
    }
    for (int i = 0; i < PSLD_MAX_K - 1; i++) to->mass[i] += weight * from->mass[i];
    for (int i = 0; i < 2; i++) to->beta[i] += weight * from->beta[i];
}

void psld_beta_differentiate(double t, double by_beta, psld_recipe_gradient *gradient)
{
    gradient->beta[0] += by_beta * (1 - t);
    gradient->beta[1] += by_beta * t;
}

/* by_cov = the symmetric part of L^-T T(L' by_lower) L^-1. */
void psld_factor_differentiate(int k, const double *lower, const double *inverse, const double *by_lower,
                               double *by_cov)
{
    double middle[PSLD_MATRIX_SIZE] = {0}, left[PSLD_MATRIX_SIZE] = {0}, whole[PSLD_MATRIX_SIZE] = {0};
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            for (int l = i; l < k; l++) middle[i * k + j] += lower[l * k + i] * by_lower[l * k + j];
            if (i == j) middle[i * k + j] /= 2;
        }
    for (int i = 0; i < k; i++)
        for (int l = i; l < k; l++)
            for (int j = 0; j <= l; j++) left[i * k + j] += inverse[l * k + i] * middle[l * k + j];
    for (int i = 0; i < k; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j <= l; j++) whole[i * k + j] += left[i * k + l] * inverse[l * k + j];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) by_cov[i * k + j] = (whole[i * k + j] + whole[j * k + i]) / 2;
}
