#include "sample/options.h"

#include <math.h>
#include <string.h>

#include "sample/time_grid.h"

void psld_sample_defaults(psld_sample_options *options)
{
    memset(options, 0, sizeof *options);
    options->sampler = "em";
    options->tolerance = 1e-5;
    options->eps = 1e-3;
    options->denoise = 1;
    options->rho = 7;
    options->eta = -1;
    options->detail = -1;
    options->corrector_size = 0.05;
    options->ode_group = 16;
    options->batch = 1024;
}

enum { MAX_EVALUATIONS = 1000000 }; /* the constants of all steps are kept */
#define MIN_DETAIL 1e-6
#define MAX_DETAIL 1e6

/* At t = 1 something must be left of the data, if only in the last digits. */
static psld_status check_recipe(const psld_recipe *recipe)
{
    double sigma;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &sigma));
    if (sigma < 1e150) return PSLD_OK; /* whose square is a number */
    return psld_fail(PSLD_BAD_ARGUMENT, "recipe %s: nothing is left of the data at t = 1: its beta is too large",
                     recipe->spec.name);
}

static psld_status check_numbers(const psld_sample_options *o)
{
    if (o->nfe < 0 || o->nfe > MAX_EVALUATIONS)
        return psld_fail(PSLD_BAD_ARGUMENT, "nfe: expected 1 to %d, found %d", MAX_EVALUATIONS, o->nfe);
    if (!(o->eps > 0 && o->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eps: expected a number in (0, 1), found %g", o->eps);
    if (!(o->end_sigma >= 0) || !isfinite(o->end_sigma))
        return psld_fail(PSLD_BAD_ARGUMENT, "end_sigma: expected a positive number, found %g", o->end_sigma);
    if (!(o->rho >= 1 && o->rho <= 1000))
        return psld_fail(PSLD_BAD_ARGUMENT, "rho: expected a number from 1 to 1000, found %g", o->rho);
    if (!(o->eta <= 1)) return psld_fail(PSLD_BAD_ARGUMENT, "eta: expected a number from 0 to 1, found %g", o->eta);
    if (!(o->detail <= 0 || (o->detail >= MIN_DETAIL && o->detail <= MAX_DETAIL)))
        return psld_fail(PSLD_BAD_ARGUMENT, "detail: expected 0, or a number from %g to %g, found %g", MIN_DETAIL,
                         MAX_DETAIL, o->detail);
    if (!(o->clip >= 0) || !isfinite(o->clip))
        return psld_fail(PSLD_BAD_ARGUMENT, "clip: expected a positive number, found %g", o->clip);
    if (!(o->threshold >= 0 && o->threshold <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "threshold: expected a number from 0 to 1, found %g", o->threshold);
    if (!(o->tolerance > 0 && o->tolerance <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "tolerance: expected a number in (0, 1], found %g", o->tolerance);
    if (o->corrector < 0 || o->corrector > 1000)
        return psld_fail(PSLD_BAD_ARGUMENT, "corrector: expected 0 to 1000 steps, found %d", o->corrector);
    if (!(o->corrector_size > 0 && o->corrector_size <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "corrector_size: expected a number in (0, 1], found %g", o->corrector_size);
    if (o->batch < 1) return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected at least 1, found 0");
    if (o->ode_group < 1) return psld_fail(PSLD_BAD_ARGUMENT, "ode_group: expected at least 1, found 0");
    return PSLD_OK;
}

static psld_status resolve_order(const psld_sampler *sampler, psld_sample_options *o)
{
    if (o->order == 0) o->order = sampler->info.order;
    if (o->order >= (sampler->info.order ? 1 : 0) && o->order <= sampler->info.max_order) return PSLD_OK;
    if (sampler->info.max_order == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "order: %s has no choice of it", sampler->info.name);
    return psld_fail(PSLD_BAD_ARGUMENT, "order: %s has 1 to %d, found %d", sampler->info.name, sampler->info.max_order,
                     o->order);
}

static psld_status resolve_detail(const psld_sampler *sampler, psld_sample_options *o)
{
    if (o->detail > 0 && sampler->info.max_order == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "detail: %s does not extrapolate clean data", sampler->info.name);
    if (o->detail < 0) o->detail = sampler->info.detail;
    return PSLD_OK;
}

/* Times given one by one say how many steps there are, and where they end. */
static psld_status resolve_list(const psld_sampler *sampler, int steps, psld_sample_options *o)
{
    if (steps > MAX_EVALUATIONS) return psld_fail(PSLD_BAD_ARGUMENT, "grid: has too many times");
    int evaluations = steps * (sampler->info.evaluations + o->corrector) + (o->denoise != 0);
    if (o->nfe && o->nfe != evaluations)
        return psld_fail(PSLD_BAD_ARGUMENT, "nfe: the times of the grid make %d evaluations, found %d", evaluations,
                         o->nfe);
    o->nfe = evaluations;
    return psld_grid_list_end(o->grid, &o->eps);
}

psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_options *resolved)
{
    int steps;
    *resolved = *options;
    PSLD_TRY(check_recipe(recipe));
    PSLD_TRY(check_numbers(options));
    *sampler = psld_sampler_row(options->sampler);
    if (!*sampler) return PSLD_BAD_ARGUMENT;
    PSLD_TRY(resolve_order(*sampler, resolved));
    PSLD_TRY(resolve_detail(*sampler, resolved));
    if (resolved->eta < 0) resolved->eta = 1;
    if ((*sampler)->info.adaptive && options->corrector)
        return psld_fail(PSLD_BAD_ARGUMENT, "corrector: %s chooses its own steps and takes none",
                         (*sampler)->info.name);
    if (options->end_sigma > 0) PSLD_TRY(psld_recipe_time(recipe, options->end_sigma, &resolved->eps));
    if (!(resolved->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "end_sigma: %g is where recipe %s begins", options->end_sigma,
                         recipe->spec.name);
    if (!resolved->grid) resolved->grid = (*sampler)->info.grid;
    if (!(*sampler)->info.adaptive && psld_grid_is_list(resolved->grid, &steps))
        PSLD_TRY(resolve_list(*sampler, steps, resolved));
    if (resolved->nfe == 0) resolved->nfe = (*sampler)->info.nfe;
    return PSLD_OK;
}

psld_status psld_sample_complete(const psld_recipe *recipe, psld_sample_options *options)
{
    const psld_sampler *sampler;
    psld_sample_options resolved;
    PSLD_TRY(psld_sample_resolve(recipe, options, &sampler, &resolved));
    *options = resolved;
    return PSLD_OK;
}
