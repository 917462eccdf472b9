/* Euler steps of the probability flow: the plainest deterministic sampler, to compare others with. */
#include "sample/walk.h"

typedef struct euler_table {
    double t;
    psld_affine move;
} euler_table;

static psld_status plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    euler_table *step = table;
    (void)truncated;
    step->t = t;
    return psld_affine_euler(recipe, t, t - u, 1, &step->move);
}

static psld_status take(psld_walk *walk, uint64_t index, const void *table)
{
    const euler_table *step = table;
    PSLD_TRY(psld_walk_predict(walk, walk->z, step->t));
    psld_walk_affine(walk, &step->move, PSLD_FOR_STEP, index, NULL, walk->z, walk->z);
    return PSLD_OK;
}

const psld_sampler psld_sampler_euler_ode = {.name = "euler-ode",
                                             .summary = "probability flow with Euler steps",
                                             .evaluations = 1,
                                             .deterministic = 1,
                                             .table_size = sizeof(euler_table),
                                             .plan = plan,
                                             .step = take};
