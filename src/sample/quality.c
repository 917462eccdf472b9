/* Budgets by name: what costs least for a quality. Measured on exact mixtures, docs/samplers.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sample/walk.h"

static const struct quality {
    const char *name, *summary, *sampler, *grid;
    int order, nfe;
} table[] = {
    {"draft", "right at a glance", "collapsed", "log", 3, 12},
    {"normal", "what more evaluations improve little", "collapsed", "log", 3, 30},
    {"best", "the flow to three digits", "collapsed", "log", 3, 100},
};
enum { ROWS = sizeof table / sizeof *table };

#define LEAST_SIGMA 0.01
#define LAST_TIME   1e-3

const char *psld_quality_name(int index)
{
    return index >= 0 && index < ROWS ? table[index].name : NULL;
}

const char *psld_quality_summary(int index)
{
    return index >= 0 && index < ROWS ? table[index].summary : NULL;
}

/* The earlier end, as the walk meets them: t = LAST_TIME, or the noise LEAST_SIGMA. */
static psld_status choose_end(const psld_recipe *recipe, double *eps)
{
    double sigma;
    *eps = LAST_TIME;
    PSLD_TRY(psld_recipe_sigma(recipe, LAST_TIME, &sigma));
    if (sigma >= LEAST_SIGMA) return PSLD_OK;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &sigma));
    return sigma > LEAST_SIGMA ? psld_recipe_time(recipe, LEAST_SIGMA, eps) : PSLD_OK;
}

psld_status psld_sample_quality(const psld_recipe *recipe, const char *quality, psld_sample_options *options)
{
    char names[64] = "";
    for (int i = 0; i < ROWS; i++) {
        const struct quality *q = &table[i];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", q->name);
        if (strcmp(q->name, quality) != 0) continue;
        int steps, list = options->grid && psld_grid_is_list(options->grid, &steps);
        options->sampler = q->sampler;
        if (!options->grid) options->grid = q->grid;
        if (options->order == 0) options->order = q->order;
        if (options->nfe == 0 && !list) options->nfe = q->nfe;
        return options->eps == 0 ? choose_end(recipe, &options->eps) : PSLD_OK;
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "quality: expected one of %s, found \"%s\"", names, quality);
}
