/* Multistep data prediction on the probability flow: for k = 1 this is DPM-Solver++ (order 1: DDIM), here for every
 * recipe. */
#include "sample/multistep.h"

static psld_status plan(const psld_path *path, const psld_stretch *stretch, psld_multistep *table)
{
    return psld_passage_plan(path->recipe, 0, stretch, table);
}

static psld_status prepare(const psld_path *path, void *tables)
{
    return psld_multistep_prepare(path, 1, plan, tables);
}

const psld_sampler psld_sampler_dpm = {
    .name = "dpm",
    .summary = "probability flow by clean data, multistep of order 1 to 3",
    .prepare = prepare,
    PSLD_MULTISTEP_FLOW_ROW,
    .grid = "sqrt",
    .detail = PSLD_DETAIL,
};
