/* Euler steps of the probability flow: the plainest deterministic sampler, to compare others with. */
#include "sample/walk.h"

static psld_status plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    psld_single *step = table;
    (void)truncated;
    step->t = t;
    return psld_affine_euler(recipe, t, t - u, 1, &step->move);
}

const psld_sampler psld_sampler_euler_ode = {.name = "euler-ode",
                                             .summary = "probability flow with Euler steps",
                                             .grid = "quadratic",
                                             .nfe = 250,
                                             .reversible = 1,
                                             .evaluations = 1,
                                             .deterministic = 1,
                                             .table_size = sizeof(psld_single),
                                             .plan = plan,
                                             .step = psld_single_take};
