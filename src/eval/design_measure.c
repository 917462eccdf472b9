/* What a recipe costs.
 *
 * All trials use the same random numbers and are compared with the same samples of the data, so that few samples show
 * the differences between recipes. The search may fit these numbers, so the final stage uses others. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/design.h"
#include "eval/empirical.h"
#include "sample/sample.h"

enum { PIECE = 500, TIMES = 33 }; /* samples at once; times at which error factors are looked at */

#define FIRST_TIME 1e-3

static uint64_t seed_of(const psld_design *design, int final)
{
    return design->options.seed + (final ? 0x9E3779B97F4A7C15u : 0);
}

static size_t sample_count(const psld_design *design, int final)
{
    return (size_t)(final ? design->options.final_number : design->options.number);
}

/* Twice as many as the samples of a trial; in the final stage as many. */
static size_t fresh_count(const psld_design *design, int final)
{
    return sample_count(design, final) * (final ? 1 : 2);
}

/* ---- Error ------------------------------------------------------------------------------------------------------- */

/* Samples of the data: numbers first ... first + count - 1 of a seed, x [count][dim]. */
static psld_status draw_data(const psld_design *design, uint64_t seed, uint64_t first, size_t count, double *x)
{
    psld_recipe *any;
    PSLD_TRY(psld_recipe_open("vp", &any)); /* at t = 0 all recipes with one variable are equal */
    psld_status status = psld_mixture_draw(design->mixture, any, 0, seed, first, count, x);
    psld_recipe_free(any);
    return status;
}

static psld_status need_fresh(psld_design *design, int final)
{
    size_t count = fresh_count(design, final);
    if (design->fresh[final]) return PSLD_OK;
    double *x = psld_alloc(count, design->mixture->dim * sizeof *x);
    if (!x) return PSLD_NO_MEMORY;
    psld_status status = draw_data(design, seed_of(design, final), 0, count, x);
    if (status != PSLD_OK) {
        psld_release(x);
        return status;
    }
    design->fresh[final] = x;
    return PSLD_OK;
}

static psld_status draw_samples(const psld_design *design, const psld_recipe *recipe, psld_source *source, int final,
                                psld_progress_fn progress, void *user, double *x)
{
    size_t dim = design->mixture->dim, state = (size_t)recipe->spec.k * dim, count = sample_count(design, final);
    psld_sample_options options = design->sampling;
    double *z = psld_alloc(PIECE, state * sizeof *z);
    psld_status status = z ? PSLD_OK : PSLD_NO_MEMORY;
    options.seed = seed_of(design, final);
    for (size_t first = 0; status == PSLD_OK && first < count; first += PIECE) {
        size_t n = count - first < PIECE ? count - first : PIECE;
        psld_sample_cost cost = {0};
        psld_sample_set set = {.first = first, .count = n, .dim = dim, .z = z};
        status = psld_sample_counted(recipe, source, &options, &set, &cost); /* trials give no warnings */
        for (size_t i = 0; status == PSLD_OK && i < n; i++)
            memcpy(x + (first + i) * dim, z + i * state, dim * sizeof *x);
        if (status == PSLD_OK && progress && progress(user, first + n, count))
            status = psld_fail(PSLD_CANCELLED, "cancelled");
    }
    psld_release(z);
    return status;
}

static int all_finite(const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

static psld_status compare_samples(psld_design *design, const psld_recipe *recipe, psld_source *source, int final,
                                   psld_progress_fn progress, void *user, double *x, double *error)
{
    size_t dim = design->mixture->dim, count = sample_count(design, final);
    size_t directions = (size_t)design->options.directions * (final ? 4 : 1);
    *error = INFINITY;
    PSLD_TRY(draw_samples(design, recipe, source, final, progress, user, x));
    if (!all_finite(x, count * dim)) return PSLD_OK;
    return psld_sliced_wasserstein(dim, count, x, fresh_count(design, final), design->fresh[final], directions,
                                   seed_of(design, final), error);
}

static psld_status measure_error(psld_design *design, const psld_recipe *recipe, int final, psld_progress_fn progress,
                                 void *user, double *error)
{
    psld_source *source = NULL;
    PSLD_TRY(need_fresh(design, final));
    double *x = psld_alloc(sample_count(design, final), design->mixture->dim * sizeof *x);
    psld_status status = x ? psld_empirical_source(design->mixture, recipe, &source) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) status = compare_samples(design, recipe, source, final, progress, user, x, error);
    psld_source_free(source);
    psld_release(x);
    return status;
}

psld_status psld_design_floor(psld_design *design, double *error)
{
    size_t dim = design->mixture->dim, count = fresh_count(design, 1);
    PSLD_TRY(need_fresh(design, 1));
    double *x = psld_alloc(count, dim * sizeof *x);
    psld_status status = x ? draw_data(design, seed_of(design, 1), count, count, x) : PSLD_NO_MEMORY;
    if (status == PSLD_OK)
        status = psld_sliced_wasserstein(dim, count, x, count, design->fresh[1], (size_t)design->options.directions * 4,
                                         seed_of(design, 1), error);
    psld_release(x);
    return status;
}

/* ---- Error factors ----------------------------------------------------------------------------------------------- */

/* Two Euler steps of 1 / nfe multiply an error of eps, on its way into x, by at most 4 b |first| + 2 b^2 |second|, b =
 * beta / (2 nfe) (src/process/analysis.c). This is the largest over times and variables. Unlike the factors alone, it
 * does not change if a part of D is moved into beta. */
static psld_status measure_factors(const psld_design *design, const psld_recipe *recipe, double *factors)
{
    *factors = 0;
    for (int i = 0; i < TIMES; i++) {
        double first[PSLD_MAX_K], second[PSLD_MAX_K], t = pow(FIRST_TIME, 1 - i / (TIMES - 1.0));
        double b = psld_beta(recipe, t) / (2.0 * design->sampling.nfe);
        PSLD_TRY(psld_recipe_error_factors(recipe, t, first, second));
        for (int a = 0; a < recipe->spec.k; a++)
            *factors = fmax(*factors, 4 * b * fabs(first[a]) + 2 * b * b * fabs(second[a]));
    }
    return PSLD_OK;
}

/* ---- Together ---------------------------------------------------------------------------------------------------- */

void psld_design_add_up(const psld_design *design, psld_design_costs *costs)
{
    const double value[PSLD_DESIGN_CRITERIA] = {costs->error, costs->distance, costs->factors};
    double excess = 0;
    costs->total = 0;
    for (int i = 0; i < PSLD_DESIGN_CRITERIA; i++) {
        if (design->weight[i] > 0) costs->total += design->weight[i] * value[i];
        if (value[i] > design->limit[i]) excess += value[i] / design->limit[i];
    }
    if (excess > 0) costs->total = 1e6 * excess;
    if (isnan(costs->total)) costs->total = INFINITY;
}

psld_status psld_design_measure_recipe(psld_design *design, const psld_recipe *recipe, int final,
                                       psld_progress_fn progress, void *user, psld_design_costs *costs)
{
    int needs_error = design->weight[0] > 0 || !isinf(design->limit[0]);
    *costs = (psld_design_costs)PSLD_DESIGN_COSTS_EMPTY;
    psld_status status = psld_recipe_distance(recipe, 1, &costs->distance);
    if (status == PSLD_OK) status = measure_factors(design, recipe, &costs->factors);
    if (status == PSLD_OK && needs_error) status = measure_error(design, recipe, final, progress, user, &costs->error);
    if (status == PSLD_NO_MEMORY || status == PSLD_CANCELLED) return status;
    if (status != PSLD_OK) costs->error = costs->distance = costs->factors = INFINITY;
    psld_design_add_up(design, costs);
    return PSLD_OK;
}
