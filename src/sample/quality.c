/* Budgets by name. The sampler is the one whose samples of networks are best for their cost
 * (docs/measurements/samplers.md): fresh noise reduces earlier errors, which the probability flow keeps. With few steps
 * half the noise is better, because fresh noise needs several steps to average out. */
#include "base/sized.h"
#include "base/table.h"
#include "sample/options.h"
#include "sample/time_grid.h"

static const psld_quality_info table[] = {
    {.name = "draft", .summary = "right at first sight", .sampler = "ancestral", .grid = "log", .nfe = 12, .eta = 0.5},
    {.name = "normal",
     .summary = "what more evaluations improve little",
     .sampler = "ancestral",
     .grid = "log",
     .nfe = 30,
     .eta = 1},
    {.name = "best", .summary = "what a network can do", .sampler = "ancestral", .grid = "log", .nfe = 100, .eta = 1},
};

const psld_quality_info *psld_quality_at(int index)
{
    return PSLD_TABLE_AT(table, index);
}

const psld_quality_info *psld_quality_find(const char *name)
{
    return PSLD_TABLE_FIND(table, "quality", name);
}

/* Sets what is unset to the values of the quality. The smallest time is that of the sampler. */
static psld_status apply_quality(const psld_recipe *recipe, const psld_quality_info *q, psld_sample_options *options)
{
    int steps, list = options->grid && psld_grid_is_list(options->grid, &steps);
    const psld_sampler *sampler = psld_sampler_row(q->sampler);
    options->sampler = q->sampler;
    if (!options->grid) options->grid = q->grid;
    if (!list) PSLD_FILL_ZERO(options->nfe, q->nfe);
    PSLD_FILL_UNSET(options->eta, q->eta);
    if (options->eps != PSLD_UNSET && options->eps != 0) return PSLD_OK;
    return psld_sample_t_min(recipe, sampler, &options->eps);
}

psld_status psld_sample_quality(const psld_recipe *recipe, const char *quality, psld_sample_options *options)
{
    const psld_quality_info *q = psld_quality_find(quality);
    psld_sample_options own;
    if (!q) return PSLD_BAD_ARGUMENT;
    PSLD_TRY(psld_sized_check(options, sizeof *options, "PSLD_SAMPLE_DEFAULTS"));
    PSLD_TRY(psld_sample_options_copy(options, &own));
    PSLD_TRY(apply_quality(recipe, q, &own));
    psld_sized_write(options, &own);
    return PSLD_OK;
}
