/* Ancestral sampling: z_u is drawn from p(z_u | z_t, x_0) with the predicted clean data for x_0, for every recipe (for k
 * = 1 and order 1: DDPM). eta takes noise away, down to none at 0, where it is the sampler dpm. Of order 2 and 3 the
 * clean data change over the step. */
#include "sample/multistep.h"

static psld_status plan(const psld_path *path, const psld_stretch *stretch, psld_multistep *table)
{
    return psld_passage_plan(path->recipe, path->options->eta, stretch, table);
}

static psld_status prepare(const psld_path *path, void *tables)
{
    return psld_multistep_prepare(path, 1, plan, tables);
}

const psld_sampler psld_sampler_ancestral = {
    .name = "ancestral",
    .summary = "reverse process by clean data, multistep; noise by eta",
    .prepare = prepare,
    PSLD_MULTISTEP_ROW,
    .grid = "log",
    .nfe = 30,
    .order = 2,
    .detail = PSLD_DETAIL,
};
