/* Euler steps of the probability flow: the plainest deterministic sampler, to compare others with. */
#include "sample/samplers/sampler.h"

static psld_status plan_euler(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    psld_explicit_step *step = table;
    (void)truncated;
    step->t = t;
    return psld_affine_euler(recipe, t, t - u, 1, &step->move);
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
    .plan_step = plan_euler,
    .step = psld_explicit_step_take,
};
