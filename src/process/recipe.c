/* The conditions on a recipe. They are checked once, when it is created; everything after relies on them.
 *   1. All numbers are finite; 1 <= k <= PSLD_MAX_K; masses > 0; init >= 0; stabiliser >= 0; beta >= 0 and not 0
 *      everywhere. Entries of D + Q are at most LARGEST in units of the masses, so that products of a few stay finite.
 *   2. D is symmetric positive semidefinite and Q is skew-symmetric. Then N(0, P^-1) is stationary (App. A.1 of the paper).
 *   3. Noise reaches every variable (Kalman rank condition on drift and noise). Then the kernel covariance is positive
 *      definite for every t > 0, and all eigenvalues of the drift have negative real part.
 * Deviations from symmetry up to TOLERANCE times the largest entry are taken for rounding and removed. */
#include "process/recipe.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"

#define TOLERANCE 1e-10
#define LARGEST   1e100

static psld_status check_finite(const char *what, const double *values, int count, double least)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]) || values[i] < least)
            return psld_fail(PSLD_BAD_INPUT, "%s: expected finite numbers%s, found %g as number %d", what,
                             least == 0 ? " of at least 0" : "", values[i], i + 1);
    return PSLD_OK;
}

static psld_status check_recipe_numbers(const psld_recipe_spec *spec)
{
    if (spec->k < 1 || spec->k > PSLD_MAX_K)
        return psld_fail(PSLD_BAD_INPUT, "k: expected 1 to %d variables, found %d", PSLD_MAX_K, spec->k);
    int aux = spec->k - 1;
    double beta[2] = {spec->beta_min, spec->beta_max};
    PSLD_TRY(check_finite("D", spec->D, spec->k * spec->k, -INFINITY));
    PSLD_TRY(check_finite("Q", spec->Q, spec->k * spec->k, -INFINITY));
    PSLD_TRY(check_finite("mass", spec->mass, aux, -INFINITY));
    PSLD_TRY(check_finite("init", spec->init, aux, 0));
    PSLD_TRY(check_finite("beta", beta, 2, 0));
    PSLD_TRY(check_finite("stabiliser", &spec->stabiliser, 1, 0));
    for (int i = 0; i < aux; i++)
        if (!(spec->mass[i] > 0))
            return psld_fail(PSLD_BAD_INPUT, "mass: expected positive numbers, found %g as number %d", spec->mass[i],
                             i + 1);
    if (beta[0] + beta[1] == 0)
        return psld_fail(PSLD_BAD_INPUT, "beta: expected a positive number, found 0: data would never become noise");
    if (spec->mode != PSLD_HSM && spec->mode != PSLD_DSM)
        return psld_fail(PSLD_BAD_INPUT, "mode: expected PSLD_HSM or PSLD_DSM, found %d", (int)spec->mode);
    return PSLD_OK;
}

/* sign = 1: a must be symmetric; sign = -1: skew-symmetric. Deviations within rounding are removed. */
static psld_status symmetrise(const char *what, const char *kind, int k, double sign, double *a)
{
    double limit = TOLERANCE * psld_matrix_largest(k, a);
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double x = a[i * k + j], y = sign * a[j * k + i];
            if (fabs(x - y) > limit)
                return psld_fail(PSLD_BAD_INPUT, "%s is not %s: %s[%d][%d] = %g and %s[%d][%d] = %g, off by %g", what,
                                 kind, what, i, j, x, what, j, i, a[j * k + i], fabs(x - y));
            a[i * k + j] = 0.5 * (x + y) + 0.0; /* no minus zeros */
            a[j * k + i] = sign * a[i * k + j] + 0.0;
        }
    return PSLD_OK;
}

static psld_status check_semidefinite(const psld_recipe_spec *spec)
{
    double values[PSLD_MAX_K];
    psld_matrix_symmetric_eigenvalues(spec->k, spec->D, values);
    if (values[0] < -TOLERANCE * fabs(values[spec->k - 1]))
        return psld_fail(PSLD_BAD_INPUT, "D is not positive semidefinite: its smallest eigenvalue is %g", values[0]);
    return PSLD_OK;
}

/* Orthogonalises the vector c against the first n vectors of `basis`, [n][k]. Returns its remaining length. */
static double orthogonalise(int k, double *basis, int n, double *c)
{
    for (int pass = 0; pass < 2; pass++) /* twice is enough (Kahan and Parlett) */
        for (int b = 0; b < n; b++) {
            double dot = 0;
            for (int i = 0; i < k; i++) dot += basis[b * k + i] * c[i];
            for (int i = 0; i < k; i++) c[i] -= dot * basis[b * k + i];
        }
    double length = 0;
    for (int i = 0; i < k; i++) length += c[i] * c[i];
    return sqrt(length);
}

/* Adds the direction of `column` to the orthonormal basis, unless the basis spans it already. */
static void extend_basis(int k, double *basis, int *reached, double *column)
{
    double length = orthogonalise(k, basis, *reached, column);
    if (length <= TOLERANCE) return;
    for (int i = 0; i < k; i++) basis[*reached * k + i] = column[i] / length;
    ++*reached;
}

/* Condition 3. Builds an orthonormal basis of the space that noise enters, and adds the directions into which the drift
 * carries it, until there are no new ones. */
static psld_status check_kalman_rank(const psld_recipe *recipe)
{
    int k = recipe->spec.k, reached = 0, next = 0;
    double basis[PSLD_MATRIX_SIZE], column[PSLD_MAX_K], scale = psld_matrix_largest(k, recipe->drift);
    double noise = psld_matrix_largest(k, recipe->diffusion);
    for (int j = 0; j < k && noise > 0; j++) {
        for (int i = 0; i < k; i++) column[i] = recipe->diffusion[i * k + j] / noise;
        extend_basis(k, basis, &reached, column);
    }
    for (; next < reached && reached < k; next++) {
        for (int i = 0; i < k; i++) {
            column[i] = 0;
            for (int j = 0; j < k; j++) column[i] += recipe->drift[i * k + j] * basis[next * k + j] / scale;
        }
        extend_basis(k, basis, &reached, column);
    }
    if (reached == k) return PSLD_OK;
    int worst = 0;
    double least = 2;
    for (int i = 0; i < k; i++) { /* the variable with the smallest component in the reached space */
        double part = 0;
        for (int b = 0; b < reached; b++) part += basis[b * k + i] * basis[b * k + i];
        if (part < least) least = part, worst = i;
    }
    return psld_fail(
        PSLD_BAD_INPUT,
        "noise does not reach every variable: it spans %d of %d directions and variable %d gets %.3g of it "
        "(Kalman rank condition on (D + Q) P and D)",
        reached, k, worst, sqrt(least));
}

/* The order of variables in which the factor is lower triangular. Default: variables without noise (zero rows of D)
 * first. Others: the natural order, or the natural order reversed, which is an upper factor in the natural order. */
static void find_order(psld_recipe *recipe, const int *has_noise)
{
    int k = recipe->spec.k, used = 0, already_sorted = 1;
    for (int i = 1; i < k; i++) already_sorted &= has_noise[i] || !has_noise[i - 1];
    if (recipe->spec.upper || already_sorted) recipe->spec.natural = 0; /* it makes no difference then */
    for (int i = 0; i < k; i++)
        if (!has_noise[i]) recipe->order[used++] = i;
    for (int i = 0; i < k; i++)
        if (has_noise[i]) recipe->order[used++] = i;
    for (int i = 0; i < k; i++) {
        if (recipe->spec.natural) recipe->order[i] = i;
        if (recipe->spec.upper) recipe->order[i] = k - 1 - i;
    }
}

/* Which variables' eps is predicted. The score is s = -L^-T eps, and L^-T is upper triangular in `order`. So the scores of
 * all variables from the first one with noise on depend on the eps of these variables only. For CLD (Gamma = 0) this is
 * the momentum alone, as in App. B.2 of the paper. */
static void find_predicted(psld_recipe *recipe)
{
    int k = recipe->spec.k, has_noise[PSLD_MAX_K] = {0}, rank[PSLD_MAX_K], channels = 0;
    for (int i = 0; i < k; i++) has_noise[i] = recipe->diffusion[i * k + i] > 0;
    find_order(recipe, has_noise);
    recipe->predicted = k;
    while (!has_noise[recipe->order[k - recipe->predicted]]) recipe->predicted--;
    for (int i = 0; i < k; i++) rank[recipe->order[i]] = i - (k - recipe->predicted); /* below 0: not predicted */
    for (int i = 0; i < k; i++) {
        if (rank[i] < 0) continue;
        recipe->channel[rank[i]] = channels;
        recipe->variable[channels++] = i;
    }
}

/* Drift and diffusion in units of the stationary deviations, and the factors of the diffusion. */
static void whiten_recipe(psld_recipe *recipe)
{
    const psld_recipe_spec *spec = &recipe->spec;
    int k = spec->k;
    double doubled[PSLD_MATRIX_SIZE];
    psld_wide diffusion[PSLD_WIDE_SIZE], deviation[PSLD_MAX_K] = {1};
    for (int i = 1; i < k; i++) deviation[i] = sqrtl(spec->mass[i - 1]);
    for (int i = 0; i < k; i++) recipe->deviation[i] = (double)deviation[i];
    for (int i = 0; i < k * k; i++) {
        psld_wide scale = deviation[i / k] * deviation[i % k];
        doubled[i] = 2 * spec->D[i];
        diffusion[i] = doubled[i] / scale;
        recipe->wide_drift[i] = -((psld_wide)spec->D[i] + spec->Q[i]) / scale;
        recipe->diffusion[i] = (double)diffusion[i];
        recipe->drift[i] = (double)recipe->wide_drift[i];
    }
    psld_matrix_cholesky(k, doubled, recipe->noise);
    psld_wide_cholesky(k, diffusion, recipe->wide_diffusion_root);
}

/* Eigenvalues and error factors multiply several of these numbers. */
static psld_status check_magnitude(const psld_recipe *recipe)
{
    int k = recipe->spec.k;
    for (int i = 0; i < k * k; i++)
        if (!(fabs(recipe->drift[i]) <= LARGEST))
            return psld_fail(PSLD_BAD_INPUT,
                             "D + Q: expected numbers up to %g in units of the masses, found %g in row %d, column %d: "
                             "make beta larger instead",
                             LARGEST, fabs(recipe->drift[i]), i / k, i % k);
    return PSLD_OK;
}

static psld_status check_and_derive(psld_recipe *recipe)
{
    psld_recipe_spec *spec = &recipe->spec;
    int k = spec->k;
    PSLD_TRY(check_recipe_numbers(spec));
    PSLD_TRY(symmetrise("D", "symmetric", k, 1, spec->D));
    PSLD_TRY(symmetrise("Q", "skew-symmetric", k, -1, spec->Q));
    PSLD_TRY(check_semidefinite(spec));
    whiten_recipe(recipe);
    PSLD_TRY(check_magnitude(recipe));
    PSLD_TRY(check_kalman_rank(recipe));
    find_predicted(recipe);
    psld_recipe_set_mode(recipe, spec->mode);
    return PSLD_OK;
}

psld_status psld_recipe_create(const psld_recipe_spec *spec, psld_recipe **recipe)
{
    *recipe = NULL;
    psld_recipe *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = PSLD_SIZED_READ(psld_recipe_spec, spec, &made->spec, PSLD_RECIPE_SPEC_DEFAULTS);
    made->spec.size = 0; /* a caller's copy must not pass for as long as ours */
    made->spec.name[PSLD_NAME_SIZE - 1] = 0;
    if (status == PSLD_OK) status = check_and_derive(made);
    if (status != PSLD_OK) {
        psld_recipe_free(made);
        return status;
    }
    *recipe = made;
    return PSLD_OK;
}

void psld_recipe_free(psld_recipe *recipe)
{
    psld_release(recipe);
}

const psld_recipe_spec *psld_recipe_get(const psld_recipe *recipe)
{
    return &recipe->spec;
}

int psld_recipe_order(const psld_recipe *recipe, int order[PSLD_MAX_K])
{
    memcpy(order, recipe->order, (size_t)recipe->spec.k * sizeof *order);
    return recipe->predicted;
}

int psld_recipe_predicted(const psld_recipe *recipe, int variables[PSLD_MAX_K])
{
    memcpy(variables, recipe->variable, (size_t)recipe->predicted * sizeof *variables);
    return recipe->predicted;
}

void psld_recipe_set_mode(psld_recipe *recipe, psld_mode mode)
{
    recipe->spec.mode = recipe->spec.k > 1 ? mode : PSLD_HSM;
}
