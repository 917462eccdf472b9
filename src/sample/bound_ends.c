/* Both ends of the bound of data. For d coordinates, with p = mu' S^-1 mu = sigma^-2 and v = S^-1 mu at e:
 *
 *     -KL at 1:  -d/2 (tr PS - k + log det P^-1 - log det S) - |x|^2 / 2 sum mu_i^2 / mass_i
 *     at e:      d R(log sigma), whose slope R' moves mu and S by  -R' v / p  and  R' v v' / (2 p)
 *
 * R is -1/2 log(2 pi e sigma^2) for a density. For cells of half a width a sigma each it is
 *     E log (Phi(a - n) - Phi(-a - n)),
 * n being normal: the cells at the ends of the scale, which reach further, are taken to be like the others, and the bound
 * is a little lower for that. */
#include <math.h>

#include "sample/bound.h"

#define LOG_2_PI  1.8378770664093453
#define SQRT_HALF 0.70710678118654752440

/* The probability of a cell about 0 for a normal number of mean n >= 0, and its derivative by the half width a. */
static double cell_part(double a, double n, double *slope)
{
    const double scale = exp(-LOG_2_PI / 2);
    *slope = scale * (exp(-(n - a) * (n - a) / 2) + exp(-(n + a) * (n + a) / 2));
    return n > a ? 0.5 * (erfc((n - a) * SQRT_HALF) - erfc((n + a) * SQRT_HALF))
                 : 1 - 0.5 * (erfc((a - n) * SQRT_HALF) + erfc((n + a) * SQRT_HALF));
}

/* R and its derivative by log sigma. The trapezoid rule is exact to rounding for such integrands. */
static double decode_cell(double sigma, double cell, double *slope)
{
    enum { POINTS = 480 };
    const double step = 1.0 / 40, a = cell / (2 * sigma);
    double value = 0, by_a = 0;
    if (!(cell > 0)) {
        *slope = -1;
        return -(LOG_2_PI + 1) / 2 - log(sigma);
    }
    for (int i = 0; i <= POINTS; i++) {
        double n = i * step, by, part = cell_part(a, n, &by);
        double weight = (i ? 2 : 1) * step * exp(-(n * n + LOG_2_PI) / 2);
        if (!(part > 0)) continue;
        value += weight * log(part);
        by_a += weight * by / part;
    }
    *slope = -a * by_a;
    return value;
}

static psld_status add_last_end(const psld_recipe *recipe, const psld_bound_data *data, double *value,
                                psld_recipe_gradient *gradient)
{
    psld_bound_time at;
    double by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE] = {0}, d = data->dim;
    PSLD_TRY(psld_bound_time_plan(recipe, 1, &at));
    for (int i = 0, k = at.k; i < k; i++) {
        double mass = i ? recipe->spec.mass[i - 1] : 1, cov = at.cov[i * k + i];
        double mean = data->square * at.mu[i] * at.mu[i];
        *value -= d / 2 * (cov / mass - 1 + log(mass)) - d * log(at.factor[i * k + i]) + mean / (2 * mass);
        by_mu[i] = -data->square * at.mu[i] / mass;
        by_cov[i * k + i] -= d / (2 * mass);
        for (int j = 0; j < k; j++)
            for (int l = 0; l < k; l++) by_cov[i * k + j] += d / 2 * at.inverse[l * k + i] * at.inverse[l * k + j];
        if (i) gradient->mass[i - 1] += (d * cov / mass + mean / mass - d) / (2 * mass);
    }
    return psld_kernel_differentiate(recipe, 1, by_mu, by_cov, gradient);
}

static psld_status add_first_end(const psld_recipe *recipe, double e, const psld_bound_data *data, double *value,
                                 psld_recipe_gradient *gradient)
{
    psld_bound_time at;
    double white[PSLD_MAX_K] = {0}, v[PSLD_MAX_K] = {0}, by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE], p = 0, slope;
    PSLD_TRY(psld_bound_time_plan(recipe, e, &at));
    int k = at.k;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) white[i] += at.inverse[i * k + j] * at.mu[j];
    for (int i = 0; i < k; i++) p += white[i] * white[i];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) v[i] += at.inverse[j * k + i] * white[j];
    *value += data->dim * decode_cell(1 / sqrt(p), data->cell, &slope);
    slope *= data->dim;
    for (int i = 0; i < k; i++) by_mu[i] = -slope * v[i] / p;
    for (int i = 0; i < k * k; i++) by_cov[i] = slope * v[i / k] * v[i % k] / (2 * p);
    return psld_kernel_differentiate(recipe, e, by_mu, by_cov, gradient);
}

psld_status psld_bound_add_ends(const psld_recipe *recipe, double e, const psld_bound_data *data, double weight,
                                psld_bound *bound)
{
    psld_recipe_gradient gradient = {0};
    double value = 0;
    PSLD_TRY(add_last_end(recipe, data, &value, &gradient));
    PSLD_TRY(add_first_end(recipe, e, data, &value, &gradient));
    bound->value += weight * value;
    psld_recipe_gradient_add(&gradient, weight, &bound->gradient);
    return PSLD_OK;
}
