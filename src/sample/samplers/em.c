/* Euler-Maruyama on the reverse SDE (App. B.4.1 of the paper): drift and noise are frozen at the start of the step,
 *     z <- z + beta dt [(D + Q) P z + 2 D s] + sqrt(2 beta dt D) n.
 * Weak order 1. */
#include <math.h>

#include "sample/samplers/sampler.h"

static psld_status em_plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    psld_explicit_step *step = table;
    (void)truncated;
    step->t = t;
    PSLD_TRY(psld_affine_euler(recipe, t, t - u, 2, &step->map));
    double root = sqrt(psld_beta(recipe, t) * (t - u));
    for (int i = 0; i < recipe->spec.k * recipe->spec.k; i++) step->map.noise[i] = root * recipe->noise[i];
    return PSLD_OK;
}

const psld_sampler psld_sampler_em = {
    .info = {.name = "em",
             .summary = "Euler-Maruyama on the reverse SDE",
             .grid = "quadratic",
             .nfe = 250,
             .evaluations = 1},
    .table_size = sizeof(psld_explicit_step),
    .plan_step = em_plan,
    .step = psld_explicit_step_apply,
};
