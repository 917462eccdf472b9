/* Ancestral sampling: z_u is drawn from p(z_u | z_t, x_0) with the predicted clean data for x_0, for every recipe (for k
 * = 1 and order 1: DDPM). eta takes noise away, down to none at 0, where it is the sampler dpm. Of order 2 and 3 the
 * clean data change over the step. */
#include "sample/samplers/multistep.h"

static psld_status plan_ancestral_step(const psld_discretisation *grid, const psld_multistep_window *window,
                                       psld_multistep *table)
{
    return psld_propagator_plan(grid->recipe, grid->options->eta, window, table);
}

static psld_status plan_ancestral(const psld_discretisation *grid, void *tables)
{
    return psld_multistep_plan(grid, 1, plan_ancestral_step, tables);
}

const psld_sampler psld_sampler_ancestral = {
    .info = {.name = "ancestral",
             .summary = "reverse process by clean data, multistep; noise by eta",
             .grid = "log",
             .nfe = 30,
             .evaluations = 1,
             .order = 2,
             .max_order = PSLD_MAX_ORDER,
             .detail = PSLD_DETAIL,
             .end_sigma = 0.01,
             .predicts_data = 1,
             .uses_eta = 1,
             .uses_detail = 1},
    PSLD_MULTISTEP_ROW,
    .plan_steps = plan_ancestral,
};
