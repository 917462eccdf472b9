/* Heun's method on the probability flow: an Euler step to look ahead, then the mean of both slopes. Order 2, two
 * evaluations per step; a truncated last step is an Euler step, so that an odd budget is spent to the last evaluation. */
#include "sample/samplers/sampler.h"

typedef struct heun_table {
    double t, u;
    int truncated;
    psld_affine ahead;  /* z1 = z + dt f(z, t) */
    psld_affine half;   /* z + dt/2 f(z, t) */
    psld_affine settle; /* dt/2 f(z1, u), to be added to that */
} heun_table;

static psld_status plan_heun(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    heun_table *step = table;
    step->t = t;
    step->u = u;
    step->truncated = truncated;
    PSLD_TRY(psld_affine_euler(recipe, t, t - u, 1, &step->ahead));
    PSLD_TRY(psld_affine_euler(recipe, t, 0.5 * (t - u), 1, &step->half));
    PSLD_TRY(psld_affine_euler(recipe, u, 0.5 * (t - u), 1, &step->settle));
    for (int i = 0; i < recipe->spec.k; i++) step->settle.state[i * recipe->spec.k + i] -= 1;
    return PSLD_OK;
}

static psld_status step_heun(psld_reverse *reverse, uint64_t index, const void *table)
{
    const heun_table *step = table;
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    if (!step->truncated)
        psld_affine_apply(reverse, &step->half, PSLD_FOR_STEP, index, NULL, reverse->z, reverse->work);
    psld_affine_apply(reverse, &step->ahead, PSLD_FOR_STEP, index, NULL, reverse->z, reverse->z);
    if (step->truncated) return PSLD_OK;
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->u));
    psld_affine_apply(reverse, &step->settle, PSLD_FOR_STEP, index, reverse->work, reverse->z, reverse->z);
    return PSLD_OK;
}

const psld_sampler psld_sampler_heun = {
    .info = {.name = "heun",
             .summary = "probability flow with Heun's method (two evaluations per step)",
             .grid = "quadratic",
             .nfe = 250,
             .evaluations = 2,
             .deterministic = 1,
             .reversible = 1},
    .work_states = 1,
    .table_size = sizeof(heun_table),
    .plan_step = plan_heun,
    .step = step_heun,
};
