/* Heun's method on the probability flow -dz/dt = f(z, t): an Euler step (predictor), then a step with the mean of the
 * slopes at both ends (corrector). Order 2, two evaluations per step. A truncated last step is the Euler step alone, so
 * that an odd number of evaluations can be used up. */
#include "sample/samplers/sampler.h"

typedef struct heun_table {
    double t, u;
    int truncated;
    psld_affine predictor;  /* z_1 = z + dt f(z, t) */
    psld_affine half_slope; /* z + dt/2 f(z, t) */
    psld_affine corrector;  /* dt/2 f(z_1, u), to be added to half_slope */
} heun_table;

static psld_status heun_plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    heun_table *step = table;
    step->t = t;
    step->u = u;
    step->truncated = truncated;
    PSLD_TRY(psld_affine_euler(recipe, t, t - u, 1, &step->predictor));
    PSLD_TRY(psld_affine_euler(recipe, t, 0.5 * (t - u), 1, &step->half_slope));
    PSLD_TRY(psld_affine_euler(recipe, u, 0.5 * (t - u), 1, &step->corrector));
    for (int i = 0; i < recipe->spec.k; i++) step->corrector.state[i * recipe->spec.k + i] -= 1;
    return PSLD_OK;
}

static psld_status heun_step(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const heun_table *step = table;
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    if (!step->truncated)
        psld_affine_apply(reverse, &step->half_slope, PSLD_FOR_STEP, visit, NULL, reverse->z, reverse->work);
    psld_affine_apply(reverse, &step->predictor, PSLD_FOR_STEP, visit, NULL, reverse->z, reverse->z);
    if (step->truncated) return PSLD_OK;
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->u));
    psld_affine_apply(reverse, &step->corrector, PSLD_FOR_STEP, visit, reverse->work, reverse->z, reverse->z);
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
    .plan_step = heun_plan,
    .step = heun_step,
};
