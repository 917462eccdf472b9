/* Ancestral sampling, for every recipe: z_u is drawn from p(z_u | z_t, x_0), with the predicted clean data in place of
 * x_0. For k = 1 and order 1 this is DDPM. eta scales the noise; eta = 0 is the sampler dpm. Orders 2 and 3 let the clean
 * data change over the step. The derivation is in propagator.c. */
#include "sample/samplers/multistep.h"

static psld_status ancestral_plan_step(const psld_discretisation *grid, const psld_multistep_window *window,
                                       psld_multistep *table)
{
    return psld_propagator_plan(grid->recipe, grid->options->eta, window, table);
}

static psld_status ancestral_plan(const psld_discretisation *grid, void *tables)
{
    return psld_multistep_plan(grid, 1, ancestral_plan_step, tables);
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
    .plan_steps = ancestral_plan,
};
