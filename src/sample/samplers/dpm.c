/* Multistep data prediction on the probability flow: for k = 1 this is DPM-Solver++ (order 1: DDIM), here for every
 * recipe. */
#include "sample/samplers/multistep.h"

static psld_status plan_dpm_step(const psld_discretisation *grid, const psld_multistep_window *window,
                                 psld_multistep *table)
{
    return psld_propagator_plan(grid->recipe, 0, window, table);
}

static psld_status plan_dpm(const psld_discretisation *grid, void *tables)
{
    return psld_multistep_plan(grid, 1, plan_dpm_step, tables);
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
    .plan_steps = plan_dpm,
};
