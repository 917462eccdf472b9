/* Properties of a recipe that follow from its kernel, without simulation. Derivations: docs/explanation/recipe.md. */
#include <math.h>

#include "base/sized.h"
#include "process/recipe.h"

const char *psld_damping_name(psld_damping damping)
{
    static const char *const names[] = {"over", "critical", "under"};
    size_t index = (size_t)damping;
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

/* root^2 - 1 - log root^2. Near root = 1 the terms cancel, so there it is summed as the series of the logarithm. */
static double divergence_of_root(double root)
{
    double deficit = (1 - root) * (1 + root), sum = 0;
    if (fabs(deficit) > 0.1) return -deficit - 2 * log(root);
    for (int n = 18; n >= 2; n--) sum = deficit * (1.0 / n + sum);
    return deficit * sum;
}

static psld_status check_positive_time(double t)
{
    if (t > 0 && t <= 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "t: expected a time in (0, 1], found %g", t);
}

/* The kernel at t. Fails where its factor is singular. */
static psld_status invertible_kernel(const psld_recipe *recipe, double t, psld_gaussian *kernel)
{
    int k = recipe->spec.k;
    PSLD_TRY(check_positive_time(t));
    psld_kernel(recipe, t, PSLD_HSM, 0, kernel);
    for (int i = 0; i < k; i++)
        if (!(kernel->factor[i * k + i] > 0)) return psld_fail_singular(recipe, t);
    return PSLD_OK;
}

/* The Kullback-Leibler divergence from the stationary distribution, per coordinate, for x_0 = 1. Whitened,
 *     2 KL = |mean|^2 + tr cov - k - log det cov.
 * With cov = L L' this is a sum of terms that are all >= 0, so nothing cancels for small t or near stationarity. */
psld_status psld_recipe_distance(const psld_recipe *recipe, double t, double *distance)
{
    psld_gaussian kernel;
    double sum = 0;
    int k = recipe->spec.k;
    PSLD_TRY(invertible_kernel(recipe, t, &kernel));
    for (int i = 0; i < k; i++) {
        double deviation = recipe->deviation[i], mean = kernel.mean[i * k] / deviation;
        sum += mean * mean + divergence_of_root(kernel.factor[i * k + i] / deviation);
        for (int j = 0; j < i; j++) {
            double l = kernel.factor[i * k + j] / deviation;
            sum += l * l;
        }
    }
    *distance = sum / 2;
    return PSLD_OK;
}

/* white = L^-1 v. In long double for its range: a number beyond double may still be multiplied by 0. */
static void divide_by_factor(int k, const double *lower, const psld_wide *v, psld_wide *white)
{
    for (int i = 0; i < k; i++) {
        psld_wide sum = v[i];
        for (int j = 0; j < i; j++) sum -= lower[i * k + j] * white[j];
        white[i] = sum / lower[i * k + i];
    }
}

psld_status psld_recipe_sigma(const psld_recipe *recipe, double t, double *sigma)
{
    psld_gaussian kernel;
    psld_wide column[PSLD_MAX_K] = {0}, white[PSLD_MAX_K], sum = 0;
    int k = recipe->spec.k;
    PSLD_TRY(invertible_kernel(recipe, t, &kernel));
    for (int i = 0; i < k; i++) column[i] = kernel.mean[i * k];
    divide_by_factor(k, kernel.factor, column, white);
    for (int i = 0; i < k; i++) sum += white[i] * white[i];
    *sigma = (double)(1 / sqrtl(sum));
    return PSLD_OK;
}

enum { MAX_SECANTS = 200 };

/* Inverts sigma(t). log sigma is increasing and nearly linear in log t, so a secant between two bounds converges quickly.
 * A bound that is kept twice has its value halved (the Illinois rule), which makes convergence certain. */
psld_status psld_recipe_time(const psld_recipe *recipe, double sigma, double *t)
{
    double top, value, low = -27.6, high = 0, f_low, f_high; /* of log t; the smallest time is 1e-12 */
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &top));
    PSLD_TRY(psld_recipe_sigma(recipe, exp(low), &value));
    if (!(sigma >= value && sigma <= top))
        return psld_fail(PSLD_BAD_ARGUMENT, "sigma: recipe %s has effective noise from %.4g to %.4g, found %g",
                         recipe->spec.name, value, top, sigma);
    f_low = log(value / sigma);
    f_high = log(top / sigma);
    *t = 1;
    if (f_high == 0) return PSLD_OK;
    for (int side = 0, i = 0; i < MAX_SECANTS && high - low > 1e-15; i++) {
        double middle = (f_high * low - f_low * high) / (f_high - f_low);
        PSLD_TRY(psld_recipe_sigma(recipe, exp(middle), &value));
        double f = log(value / sigma);
        *t = exp(middle);
        if (f == 0 || middle == low || middle == high) return PSLD_OK;
        if (f > 0) {
            high = middle;
            f_high = f;
            if (side == 1) f_low /= 2;
            side = 1;
        } else {
            low = middle;
            f_low = f;
            if (side == -1) f_high /= 2;
            side = -1;
        }
        if (fabs(f) < 1e-15) return PSLD_OK;
    }
    return PSLD_OK;
}

/* How an error of eps enters x over two Euler steps of the reverse process (App. D.1 of the paper, for any recipe). Each
 * step has b = beta dt / 2. The scores s and s' of both steps contribute
 *     2 b (2 D)[x] (s + s') + 2 b^2 (4 (D + Q) P D)[x] s
 * to x, where [x] is the row of the position. With s = -L^-T eps both rows become factors of eps. */
psld_status psld_recipe_error_factors(const psld_recipe *recipe, double t, double *first, double *second)
{
    psld_gaussian kernel;
    psld_wide linear_row[PSLD_MAX_K] = {0}, square_row[PSLD_MAX_K] = {0}, white[PSLD_MAX_K];
    double linear[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    PSLD_TRY(invertible_kernel(recipe, t, &kernel));
    psld_recipe_reverse_drift(recipe, linear);
    for (int a = 0; a < k; a++) {
        linear_row[a] = 2 * (psld_wide)recipe->spec.D[a];
        for (int b = 0; b < k; b++) square_row[a] += 4 * (psld_wide)linear[b] * recipe->spec.D[b * k + a];
    }
    divide_by_factor(k, kernel.factor, linear_row, white);
    for (int b = 0; b < k; b++) first[b] = (double)white[b];
    divide_by_factor(k, kernel.factor, square_row, white);
    for (int b = 0; b < k; b++) second[b] = (double)white[b];
    return PSLD_OK;
}

static psld_status analyse_recipe(const psld_recipe *recipe, psld_analysis *analysis)
{
    int k = recipe->spec.k, underdamped = 0;
    int defective = psld_matrix_eigenvalues(k, recipe->drift, analysis->eigenvalue_re, analysis->eigenvalue_im);
    for (int i = 0; i < k; i++) underdamped |= analysis->eigenvalue_im[i] != 0;
    analysis->damping = underdamped ? PSLD_UNDERDAMPED : defective ? PSLD_CRITICAL : PSLD_OVERDAMPED;
    analysis->rate = -analysis->eigenvalue_re[k - 1];
    PSLD_TRY(psld_recipe_distance(recipe, 1, &analysis->distance));
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &analysis->sigma_max));
    analysis->long_enough = analysis->distance <= PSLD_DISTANCE_LIMIT;
    return PSLD_OK;
}

psld_status psld_recipe_analyse(const psld_recipe *recipe, psld_analysis *analysis)
{
    psld_analysis own = PSLD_ANALYSIS_EMPTY;
    PSLD_TRY(psld_sized_check(analysis, sizeof own, "PSLD_ANALYSIS_EMPTY"));
    PSLD_TRY(analyse_recipe(recipe, &own));
    psld_sized_write(analysis, &own);
    return PSLD_OK;
}
