/* Multistep data prediction on the probability flow, for every recipe. For k = 1 this is DPM-Solver++ (order 1: DDIM). The
 * derivation is in propagator.c. */
#include "sample/samplers/multistep.h"

static psld_status dpm_plan_step(const psld_discretisation *grid, const psld_multistep_window *window,
                                 psld_multistep *table)
{
    return psld_propagator_plan(grid->recipe, 0, window, table);
}

static psld_status dpm_plan(const psld_discretisation *grid, void *tables)
{
    return psld_multistep_plan(grid, 1, dpm_plan_step, tables);
}

const psld_sampler psld_sampler_dpm = {
    .info = {.name = "dpm",
             .summary = "probability flow by clean data, multistep of order 1 to 3",
             .grid = "sqrt",
             .detail = PSLD_DETAIL,
             .nfe = 50,
             .evaluations = 1,
             .order = 3,
             .max_order = PSLD_MAX_ORDER,
             .deterministic = 1,
             .reversible = 1,
             .predicts_data = 1,
             .uses_detail = 1},
    PSLD_MULTISTEP_ROW,
    .plan_steps = dpm_plan,
};
