/* Budgets by name. The sampler is the one with the best samples of networks for its cost
 * (docs/measurements/samplers.md): fresh noise removes their errors, which a flow carries to the end. Few steps take half
 * the noise, since fresh noise needs steps to average out. */
#include "base/table.h"
#include "sample/options.h"
#include "sample/time_grid.h"

static const psld_quality_info table[] = {
    {.name = "draft", .summary = "right at a glance", .sampler = "ancestral", .grid = "log", .nfe = 12, .eta = 0.5},
    {.name = "normal",
     .summary = "what more evaluations improve little",
     .sampler = "ancestral",
     .grid = "log",
     .nfe = 30,
     .eta = 1},
    {.name = "best", .summary = "what a network can do", .sampler = "ancestral", .grid = "log", .nfe = 100, .eta = 1},
};

#define MIN_SIGMA 0.01
#define LAST_TIME 1e-3

const psld_quality_info *psld_quality_at(int index)
{
    return PSLD_TABLE_AT(table, index);
}

const psld_quality_info *psld_quality_find(const char *name)
{
    return PSLD_TABLE_FIND(table, "quality", name);
}

/* The earlier end, as the walk meets them: t = LAST_TIME, or the noise MIN_SIGMA. */
static psld_status choose_end(const psld_recipe *recipe, double *eps)
{
    double sigma;
    *eps = LAST_TIME;
    PSLD_TRY(psld_recipe_sigma(recipe, LAST_TIME, &sigma));
    if (sigma >= MIN_SIGMA) return PSLD_OK;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &sigma));
    return sigma > MIN_SIGMA ? psld_recipe_time(recipe, MIN_SIGMA, eps) : PSLD_OK;
}

psld_status psld_sample_quality(const psld_recipe *recipe, const char *quality, psld_sample_options *options)
{
    const psld_quality_info *q = psld_quality_find(quality);
    if (!q) return PSLD_BAD_ARGUMENT;
    int steps, list = options->grid && psld_grid_is_list(options->grid, &steps);
    options->sampler = q->sampler;
    if (!options->grid) options->grid = q->grid;
    if (options->nfe == 0 && !list) options->nfe = q->nfe;
    if (options->eta < 0) options->eta = q->eta;
    return options->eps == 0 ? choose_end(recipe, &options->eps) : PSLD_OK;
}
