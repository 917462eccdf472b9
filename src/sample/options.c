#include "sample/options.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "sample/inverse/inpaint.h"
#include "sample/time_grid.h"

#define DEFAULT_T_MIN 1e-3
#define DEFAULT_BATCH 1024

/* Fills in the numbers whose default is fixed. */
static void fill_fixed_defaults(psld_sample_options *o)
{
    PSLD_FILL_ZERO(o->rho, 7);
    PSLD_FILL_UNSET(o->nfe, 0);
    PSLD_FILL_UNSET(o->order, 0);
    PSLD_FILL_UNSET(o->eta, 1);
    PSLD_FILL_ZERO(o->tolerance, 1e-5);
    PSLD_FILL_UNSET(o->end_sigma, 0);
    PSLD_FILL_UNSET(o->clip, 0);
    PSLD_FILL_UNSET(o->threshold, 0);
    PSLD_FILL_UNSET(o->denoise, 1);
    PSLD_FILL_UNSET(o->corrector, 0);
    PSLD_FILL_ZERO(o->corrector_size, 0.05);
    PSLD_FILL_ZERO(o->ode_group, 16);
}

psld_status psld_sample_options_copy(const psld_sample_options *options, psld_sample_options *own)
{
    return PSLD_SIZED_READ(psld_sample_options, options, own, PSLD_SAMPLE_DEFAULTS);
}

psld_status psld_sample_options_read(const psld_sample_options *options, psld_sample_options *own)
{
    PSLD_TRY(psld_sample_options_copy(options, own));
    fill_fixed_defaults(own);
    return PSLD_OK;
}

psld_status psld_sample_t_min(const psld_recipe *recipe, const psld_sampler *sampler, double *t_min)
{
    double end_sigma = sampler->info.end_sigma, sigma;
    *t_min = DEFAULT_T_MIN;
    if (!(end_sigma > 0)) return PSLD_OK;
    PSLD_TRY(psld_recipe_sigma(recipe, DEFAULT_T_MIN, &sigma));
    if (sigma >= end_sigma) return PSLD_OK;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &sigma));
    return sigma > end_sigma ? psld_recipe_time(recipe, end_sigma, t_min) : PSLD_OK;
}

enum { MAX_EVALUATIONS = 1000000 }; /* the constants of all steps are kept */
#define MIN_DETAIL 1e-6
#define MAX_DETAIL 1e6

/* The state at t = 1 must still depend on the data, if only in the last digits. */
static psld_status check_recipe_mixes(const psld_recipe *recipe)
{
    double sigma;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &sigma));
    if (sigma < 1e150) return PSLD_OK; /* its square is finite */
    return psld_fail(PSLD_BAD_ARGUMENT, "recipe %s: beta is too large: states at t = 1 do not depend on the data",
                     recipe->spec.name);
}

static psld_status check_sample_numbers(const psld_sample_options *o)
{
    if (o->nfe < 0 || o->nfe > MAX_EVALUATIONS)
        return psld_fail(PSLD_BAD_ARGUMENT, "nfe: expected 1 to %d, found %d", MAX_EVALUATIONS, o->nfe);
    if (!(o->eps >= 0 && o->eps < 1) && o->eps != PSLD_UNSET && !(o->eps == 1 && o->nfe == 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eps: expected a number in (0, 1), found %g", o->eps);
    if (!(o->end_sigma >= 0) || !isfinite(o->end_sigma))
        return psld_fail(PSLD_BAD_ARGUMENT, "end_sigma: expected a positive number, found %g", o->end_sigma);
    if (!(o->rho >= 1 && o->rho <= 1000))
        return psld_fail(PSLD_BAD_ARGUMENT, "rho: expected a number from 1 to 1000, found %g", o->rho);
    if (!(o->eta >= 0 && o->eta <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eta: expected a number from 0 to 1, found %g", o->eta);
    if (!(o->detail == 0 || o->detail == PSLD_UNSET || (o->detail >= MIN_DETAIL && o->detail <= MAX_DETAIL)))
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
    if (o->batch < 1) return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected at least 1, found %d", o->batch);
    if (o->ode_group < 1) return psld_fail(PSLD_BAD_ARGUMENT, "ode_group: expected at least 1, found %d", o->ode_group);
    return PSLD_OK;
}

static psld_status resolve_order(const psld_sampler *sampler, psld_sample_options *o)
{
    if (o->order == 0) o->order = sampler->info.order;
    if (o->order >= (sampler->info.order ? 1 : 0) && o->order <= sampler->info.max_order) return PSLD_OK;
    if (sampler->info.max_order == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "order: the sampler %s has only one order: leave it unset",
                         sampler->info.name);
    return psld_fail(PSLD_BAD_ARGUMENT, "order: the sampler %s has orders 1 to %d, found %d", sampler->info.name,
                     sampler->info.max_order, o->order);
}

static psld_status resolve_detail(const psld_sampler *sampler, psld_sample_options *o)
{
    if (o->detail > 0 && sampler->info.max_order == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "detail: the sampler %s does not use it: leave it unset",
                         sampler->info.name);
    PSLD_FILL_UNSET(o->detail, sampler->info.detail);
    return PSLD_OK;
}

/* A grid that is a list of times sets the number of steps and the smallest time. */
static psld_status resolve_time_list(const psld_recipe *recipe, const psld_sampler *sampler, int steps,
                                     psld_sample_options *o)
{
    if (steps > MAX_EVALUATIONS)
        return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected at most %d times, found %d", MAX_EVALUATIONS, steps + 1);
    int evaluations = steps * (sampler->info.evaluations + o->corrector) + (o->denoise != 0);
    if (o->nfe && o->nfe != evaluations)
        return psld_fail(PSLD_BAD_ARGUMENT, "nfe: the times of the grid need %d evaluations, found %d: leave nfe unset",
                         evaluations, o->nfe);
    o->nfe = evaluations;
    return psld_grid_list_end(recipe, o->grid, &o->eps);
}

/* Only the denoising step, from t = 1. */
static psld_status resolve_one_evaluation(psld_sample_options *o)
{
    int steps;
    if (psld_grid_is_list(o->grid, &steps))
        return psld_fail(PSLD_BAD_ARGUMENT, "grid: one evaluation is made at t = 1: leave it unset, found \"%s\"",
                         o->grid);
    o->eps = 1;
    return PSLD_OK;
}

/* The smallest time, the time grid and the number of evaluations. */
static psld_status resolve_grid(const psld_recipe *recipe, const psld_sampler *sampler, psld_sample_options *o)
{
    int steps;
    if (!o->grid) o->grid = sampler->info.grid;
    if (sampler->info.consistency && o->nfe == 1 && o->denoise) return resolve_one_evaluation(o);
    if (o->eps == PSLD_UNSET || o->eps == 0) PSLD_TRY(psld_sample_t_min(recipe, sampler, &o->eps));
    if (o->end_sigma > 0) PSLD_TRY(psld_recipe_time(recipe, o->end_sigma, &o->eps));
    if (!(o->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "end_sigma: %g is the effective noise of recipe %s at t = 1: expected less",
                         o->end_sigma, recipe->spec.name);
    if (!sampler->info.adaptive && psld_grid_is_list(o->grid, &steps))
        PSLD_TRY(resolve_time_list(recipe, sampler, steps, o));
    if (o->nfe == 0) o->nfe = sampler->info.nfe;
    return PSLD_OK;
}

static psld_status resolve_inpainting(psld_sample_resolved *resolved)
{
    if (!resolved->options.inpainting) return PSLD_OK;
    PSLD_TRY(psld_inpainting_read(resolved->options.inpainting, &resolved->inpainting));
    resolved->options.inpainting = &resolved->inpainting;
    return PSLD_OK;
}

psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_resolved *resolved)
{
    psld_sample_options *o = &resolved->options;
    PSLD_TRY(psld_sample_options_read(options, o));
    PSLD_TRY(check_recipe_mixes(recipe));
    PSLD_FILL_ZERO(o->batch, DEFAULT_BATCH);
    PSLD_TRY(check_sample_numbers(o));
    if (!o->sampler) o->sampler = psld_quality_find("normal")->sampler;
    *sampler = psld_sampler_row(o->sampler);
    if (!*sampler) return PSLD_BAD_ARGUMENT;
    PSLD_TRY(resolve_order(*sampler, o));
    PSLD_TRY(resolve_detail(*sampler, o));
    if ((*sampler)->info.adaptive && o->corrector)
        return psld_fail(PSLD_BAD_ARGUMENT, "corrector: the sampler %s chooses its own steps: set 0",
                         (*sampler)->info.name);
    if ((*sampler)->info.consistency && o->corrector)
        return psld_fail(PSLD_BAD_ARGUMENT, "corrector: the sampler %s has no score to correct with: set 0",
                         (*sampler)->info.name);
    PSLD_TRY(resolve_grid(recipe, *sampler, o));
    return resolve_inpainting(resolved);
}

psld_status psld_sample_complete(const psld_recipe *recipe, psld_sample_options *options)
{
    const psld_sampler *sampler;
    psld_sample_resolved resolved;
    psld_sample_options asked;
    PSLD_TRY(psld_sized_check(options, sizeof *options, "PSLD_SAMPLE_DEFAULTS"));
    PSLD_TRY(psld_sample_options_copy(options, &asked));
    PSLD_TRY(psld_sample_resolve(recipe, &asked, &sampler, &resolved));
    resolved.options.batch = asked.batch;
    resolved.options.inpainting = asked.inpainting;
    psld_sized_write(options, &resolved.options);
    return PSLD_OK;
}
