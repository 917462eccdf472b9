/* Euler's method on the probability flow, the simplest deterministic sampler, for comparison with others:
 *     z <- z + beta dt [(D + Q) P z + D s]. */
#include "sample/samplers/sampler.h"

static psld_status euler_ode_plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    psld_explicit_step *step = table;
    (void)truncated;
    step->t = t;
    return psld_affine_euler(recipe, t, t - u, 1, &step->map);
}

const psld_sampler psld_sampler_euler_ode = {
    .info = {.name = "euler-ode",
             .summary = "probability flow with Euler steps",
             .grid = "quadratic",
             .nfe = 250,
             .evaluations = 1,
             .deterministic = 1,
             .reversible = 1},
    .table_size = sizeof(psld_explicit_step),
    .plan_step = euler_ode_plan,
    .step = psld_explicit_step_apply,
};
