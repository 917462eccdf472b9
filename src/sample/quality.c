/* Budgets by name. The walk is the one that draws best from networks for its cost (docs/explanation/samplers.md): fresh noise
 * forgets their errors, which a flow carries to the end; in few steps only half of it is forgotten in turn. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sample/options.h"
#include "sample/time_grid.h"

static const struct quality {
    const char *name, *summary;
    int nfe;
    double eta;
} table[] = {
    {"draft", "right at a glance", 12, 0.5},
    {"normal", "what more evaluations improve little", 30, 1},
    {"best", "what a network can do", 100, 1},
};
enum { ROWS = sizeof table / sizeof *table };

#define SAMPLER   "ancestral"
#define GRID      "log"
#define MIN_SIGMA 0.01
#define LAST_TIME 1e-3

const char *psld_quality_name(int index)
{
    return index >= 0 && index < ROWS ? table[index].name : NULL;
}

const char *psld_quality_summary(int index)
{
    return index >= 0 && index < ROWS ? table[index].summary : NULL;
}

const char *psld_quality_sampler(void)
{
    return SAMPLER;
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
    char names[64] = "", meant[PSLD_SUGGESTION_SIZE];
    const char *all[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const struct quality *q = &table[i];
        all[i] = q->name;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", q->name);
        if (!psld_text_is(quality, q->name)) continue;
        int steps, list = options->grid && psld_grid_is_list(options->grid, &steps);
        options->sampler = SAMPLER;
        if (!options->grid) options->grid = GRID;
        if (options->nfe == 0 && !list) options->nfe = q->nfe;
        if (options->eta < 0) options->eta = q->eta;
        return options->eps == 0 ? choose_end(recipe, &options->eps) : PSLD_OK;
    }
    if (!quality) quality = "";
    return psld_fail(PSLD_BAD_ARGUMENT, "quality: expected one of %s, found \"%s\"%s", names, quality,
                     psld_text_suggest(quality, all, ROWS, meant));
}
