/* The order of trials: first all starts; then searches one after the other, each from another of the best starts; then
 * the best recipe and the starts again, with more samples and other random numbers. Everything follows from the options
 * and the reported costs, so an interrupted design is continued by reporting the same costs again. */
#include "eval/design.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"

#define FIRST_STEP 0.2

void psld_design_free(psld_design *design)
{
    if (!design) return;
    for (size_t i = 0; i < design->start_count; i++) psld_recipe_free(design->starts[i].recipe);
    psld_release(design->starts);
    psld_release(design->fresh[0]);
    psld_release(design->fresh[1]);
    psld_recipe_free(design->proposed);
    psld_recipe_free(design->best);
    psld_evolution_free(design->evolution);
    psld_mixture_free(design->mixture);
    psld_release(design);
}

psld_status psld_design_create(const char *path, const psld_design_options *options, psld_design **design)
{
    *design = NULL;
    psld_design *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = psld_design_read(options, made);
    if (status == PSLD_OK) status = psld_design_open_starts(made);
    if (status == PSLD_OK) status = psld_design_open_mixture(path, made);
    if (status != PSLD_OK) {
        psld_design_free(made);
        return status;
    }
    made->best_cost = INFINITY;
    if ((size_t)made->options.searches > made->start_count) made->options.searches = (int)made->start_count;
    *design = made;
    return PSLD_OK;
}

/* ---- Where a trial belongs --------------------------------------------------------------------------------------- */

static uint64_t search_begin(const psld_design *design)
{
    return design->start_count;
}

static uint64_t search_end(const psld_design *design)
{
    return design->start_count + (uint64_t)design->options.trials;
}

/* The final stage compares errors. Without that criterion there is no final stage. */
static uint64_t trial_total(const psld_design *design)
{
    return search_end(design) + (design->weight[0] > 0 ? 1 + design->start_count : 0);
}

static psld_design_stage stage_of(const psld_design *design)
{
    if (design->number < search_begin(design)) return PSLD_DESIGN_START;
    return design->number < search_end(design) ? PSLD_DESIGN_SEARCH : PSLD_DESIGN_FINAL;
}

static const psld_recipe *trial_recipe(const psld_design *design)
{
    switch (stage_of(design)) {
    case PSLD_DESIGN_START:
        return design->starts[design->number].recipe;
    case PSLD_DESIGN_SEARCH:
        return design->proposed;
    default:
        break;
    }
    uint64_t place = design->number - search_end(design);
    return place ? design->starts[place - 1].recipe : design->best;
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

static int compare_starts(const void *x, const void *y)
{
    const psld_design_start *a = x, *b = y;
    return (a->cost > b->cost) - (a->cost < b->cost);
}

/* The number of the search whose first trial this is; -1 if it is no first trial. */
static int search_that_begins(const psld_design *design)
{
    uint64_t searches = (uint64_t)design->options.searches, trials = (uint64_t)design->options.trials;
    uint64_t place = design->number - search_begin(design);
    for (uint64_t s = 0; s < searches; s++)
        if (s * trials / searches == place && (s + 1) * trials / searches > place) return (int)s;
    return -1;
}

static psld_status begin_search(psld_design *design, int search)
{
    const psld_design_start *start = &design->starts[search];
    double parameters[PSLD_LEARNED_SIZE];
    psld_evolution_free(design->evolution);
    design->evolution = NULL;
    PSLD_TRY(psld_learned_begin(start->recipe, design->learn, 0, &design->learned, parameters));
    return psld_evolution_create(design->learned.count, parameters, start->cost, FIRST_STEP, design->options.seed,
                                 (uint64_t)search, &design->evolution);
}

/* A recipe that cannot be made because its numbers are too large costs infinity. */
static psld_status propose_trial(psld_design *design)
{
    psld_recipe_spec spec;
    int search = search_that_begins(design);
    if (design->number == search_begin(design)) {
        qsort(design->starts, design->start_count, sizeof *design->starts, compare_starts);
        if (isinf(design->starts[0].cost))
            return psld_fail(PSLD_BAD_INPUT, "design: none of the %zu recipes to begin from can be sampled%s%s",
                             design->start_count, *psld_error_text() ? ": " : "", psld_error_text());
    }
    if (search >= 0) PSLD_TRY(begin_search(design, search));
    psld_recipe_free(design->proposed);
    design->proposed = NULL;
    psld_learned_spec(&design->learned, psld_evolution_propose(design->evolution), &spec);
    snprintf(spec.name, sizeof spec.name, "design-%" PRIu64, design->number);
    psld_status status = psld_recipe_create(&spec, &design->proposed);
    return status == PSLD_NO_MEMORY ? status : PSLD_OK;
}

static void tell_cost(psld_design *design, double cost)
{
    if (stage_of(design) == PSLD_DESIGN_START) design->starts[design->number].cost = cost;
    if (stage_of(design) == PSLD_DESIGN_SEARCH) psld_evolution_tell(design->evolution, cost);
}

psld_status psld_design_next(psld_design *design, psld_design_trial *trial)
{
    psld_design_trial own = PSLD_DESIGN_TRIAL_EMPTY;
    PSLD_TRY(psld_sized_check(trial, sizeof own, "PSLD_DESIGN_TRIAL_EMPTY"));
    while (!design->asked && stage_of(design) == PSLD_DESIGN_SEARCH) {
        PSLD_TRY(propose_trial(design));
        if (design->proposed) break;
        tell_cost(design, INFINITY);
        design->number++;
    }
    design->asked = 1;
    own.number = design->number;
    own.total = trial_total(design);
    if (own.number < own.total) {
        own.stage = stage_of(design);
        own.recipe = trial_recipe(design);
        own.is_best = own.stage == PSLD_DESIGN_FINAL && own.number == search_end(design);
    }
    psld_sized_write(trial, &own);
    return PSLD_OK;
}

static psld_status check_asked(const psld_design *design)
{
    if (design->asked && design->number < trial_total(design)) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "design: no trial was asked for");
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

static uint64_t recipe_hash(const psld_recipe *recipe)
{
    const psld_recipe_spec *r = &recipe->spec;
    size_t k = (size_t)r->k;
    const double rest[4] = {r->beta_min, r->beta_max, r->stabiliser, (double)r->k};
    uint64_t hash = psld_hash_words(PSLD_HASH_START, r->D, k * k * sizeof *r->D);
    hash = psld_hash_words(hash, r->Q, k * k * sizeof *r->Q);
    hash = psld_hash_words(hash, r->mass, (k - 1) * sizeof *r->mass);
    hash = psld_hash_words(hash, r->init, (k - 1) * sizeof *r->init);
    hash = psld_hash_words(hash, recipe->order, k * sizeof *recipe->order);
    return psld_hash_words(hash, rest, sizeof rest);
}

/* Weights and limits are not part of the key: they change only the total. */
psld_status psld_design_key(const psld_design *design, char *key, size_t size)
{
    PSLD_TRY(check_asked(design));
    const psld_design_options *o = &design->options;
    int final = stage_of(design) == PSLD_DESIGN_FINAL, error = design->weight[0] > 0 || !isinf(design->limit[0]);
    int length = snprintf(key, size, "%016" PRIx64 "|%016" PRIx64 "|%s|%d|%s|%d|%d|%" PRIu64, design->fingerprint,
                          recipe_hash(trial_recipe(design)), design->sampler, design->sampling.nfe,
                          error ? (final ? "final" : "trial") : "none", final ? o->final_number : o->number,
                          o->directions, o->seed);
    if (length >= 0 && (size_t)length < size) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "design: a key needs %d bytes, found %zu", length + 1, size);
}

psld_status psld_design_measure(psld_design *design, psld_progress_fn progress, void *user, psld_design_costs *costs)
{
    psld_design_costs own;
    PSLD_TRY(check_asked(design));
    PSLD_TRY(psld_sized_check(costs, sizeof own, "PSLD_DESIGN_COSTS_EMPTY"));
    PSLD_TRY(psld_design_measure_recipe(design, trial_recipe(design), stage_of(design) == PSLD_DESIGN_FINAL, progress,
                                        user, &own));
    psld_sized_write(costs, &own);
    return PSLD_OK;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

static psld_status keep_best(psld_design *design, double cost)
{
    psld_recipe *copy;
    psld_recipe_spec spec = trial_recipe(design)->spec;
    spec.size = sizeof spec;
    if (stage_of(design) == PSLD_DESIGN_FINAL || (design->best && !(cost < design->best_cost))) return PSLD_OK;
    PSLD_TRY(psld_recipe_create(&spec, &copy));
    psld_recipe_free(design->best);
    design->best = copy;
    design->best_cost = cost;
    return PSLD_OK;
}

psld_status psld_design_tell(psld_design *design, psld_design_costs *costs)
{
    psld_design_costs own;
    PSLD_TRY(check_asked(design));
    PSLD_TRY(PSLD_SIZED_READ(psld_design_costs, costs, &own, PSLD_DESIGN_COSTS_EMPTY));
    psld_design_add_up(design, &own); /* costs of an earlier run may be totals with other weights */
    PSLD_TRY(keep_best(design, own.total));
    tell_cost(design, own.total);
    design->number++;
    design->asked = 0;
    psld_sized_write(costs, &own);
    return PSLD_OK;
}
