#include "sample/sample.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "sample/inverse/inpaint.h"
#include "sample/options.h"

/* ---- The steps of one batch -------------------------------------------------------------------------------------- */

/* Reverse step i of the schedule. `visit` counts all steps of a sample so far, repeated ones included. */
static psld_status reverse_step(psld_reverse *reverse, const psld_schedule *schedule, int i, uint64_t visit)
{
    uint64_t correctors = (uint64_t)reverse->options->corrector, draw = 1 + visit * (1 + correctors);
    double from = schedule->times[i], t = schedule->times[i + 1];
    PSLD_TRY(schedule->sampler->step(reverse, visit, schedule->tables + (size_t)i * schedule->sampler->table_size));
    psld_inpaint_apply(reverse, 0, reverse->count, from, t, draw, reverse->z);
    for (uint64_t c = 0; c < correctors; c++) {
        PSLD_TRY(psld_reverse_predict(reverse, reverse->z, t));
        psld_affine_apply(reverse, &schedule->correctors[i], PSLD_FOR_CORRECTOR, visit * correctors + c, NULL,
                          reverse->z, reverse->z);
        psld_inpaint_apply(reverse, 0, reverse->count, from, t, draw + 1 + c, reverse->z);
    }
    return PSLD_OK;
}

static psld_status reverse_steps(psld_reverse *reverse, const psld_schedule *schedule)
{
    int jump = schedule->repeats > 1 ? reverse->options->inpainting->jump : schedule->steps,
        all = schedule->steps * schedule->repeats;
    uint64_t visit = 0, jumps = 0;
    for (int begin = 0, end; begin < schedule->steps; begin = end) {
        end = schedule->steps - begin < jump ? schedule->steps : begin + jump;
        for (int pass = 0; pass < schedule->repeats; pass++) {
            if (pass > 0)
                PSLD_TRY(psld_inpaint_diffuse(reverse, schedule->times[end], schedule->times[begin], jumps++));
            for (int i = begin; i < end; i++) {
                PSLD_TRY(reverse_step(reverse, schedule, i, visit++));
                PSLD_TRY(psld_reverse_report(reverse, (double)visit / all));
            }
        }
    }
    reverse->evaluations +=
        (uint64_t)(all * (schedule->sampler->info.evaluations + reverse->options->corrector) - schedule->truncated);
    reverse->groups++;
    return PSLD_OK;
}

static psld_status check_states_finite(const psld_reverse *reverse)
{
    for (size_t i = 0; i < reverse->count * reverse->k * reverse->dim; i++)
        if (!isfinite(reverse->z[i]))
            return psld_fail(PSLD_NOT_FINITE, "sample %llu is not finite: try more steps or another sampler",
                             (unsigned long long)(reverse->first + i / (reverse->k * reverse->dim)));
    return PSLD_OK;
}

static psld_status sample_batch(psld_reverse *reverse, const psld_schedule *schedule)
{
    double t_min = reverse->options->eps; /* where the steps end */
    psld_inpaint_apply(reverse, 0, reverse->count, 1, 1, 0, reverse->z);
    PSLD_TRY(schedule->sampler->info.adaptive ? schedule->sampler->integrate(reverse)
                                              : reverse_steps(reverse, schedule));
    if (schedule->sampler->info.adaptive) psld_inpaint_apply(reverse, 0, reverse->count, t_min, t_min, 0, reverse->z);
    if (reverse->options->denoise) {
        PSLD_TRY(psld_reverse_predict(reverse, reverse->z, t_min));
        psld_affine_apply(reverse, &schedule->last, PSLD_FOR_STEP, 0, NULL, reverse->z, reverse->z);
        psld_inpaint_apply(reverse, 0, reverse->count, t_min, 0, 0, reverse->z);
    }
    return check_states_finite(reverse);
}

/* Draws from the stationary distribution N(0, P^-1). */
static void draw_initial_states(const psld_reverse *reverse)
{
    for (size_t i = 0; i < reverse->count; i++) {
        double *z = reverse->z + i * reverse->k * reverse->dim;
        psld_random_normal(reverse->options->seed, PSLD_FOR_START, reverse->first + i, 0, 0, reverse->k * reverse->dim,
                           z);
        for (size_t a = 1; a < reverse->k; a++)
            for (size_t j = 0; j < reverse->dim; j++) z[a * reverse->dim + j] *= reverse->recipe->deviation[a];
    }
}

size_t psld_batch_size(size_t count, size_t batch, size_t group)
{
    if (batch >= count || group >= count) return count; /* before any sum, which could overflow */
    if (group < 1) group = 1;
    batch = ((batch - (batch > 0)) / group + 1) * group;
    return batch < count ? batch : count;
}

static psld_status allocate_batch(psld_reverse *reverse, size_t batch, const psld_sampler *sampler)
{
    size_t state = reverse->k * reverse->dim;
    reverse->eps = psld_alloc(batch, reverse->predicted * reverse->dim * sizeof(double));
    reverse->t = reverse->eps ? psld_alloc(batch, sizeof(double)) : NULL;
    reverse->sample = reverse->t ? psld_alloc(batch, sizeof(uint64_t)) : NULL;
    reverse->work = reverse->sample ? psld_alloc(batch * (size_t)sampler->work_states, state * sizeof(double)) : NULL;
    return reverse->work ? psld_ahead_open(reverse, batch * state, &reverse->ahead) : PSLD_NO_MEMORY;
}

static psld_status sample_batches(psld_reverse *reverse, const psld_schedule *schedule, const psld_sample_set *set,
                                  size_t batch, double *own)
{
    size_t state = reverse->k * reverse->dim;
    PSLD_TRY(allocate_batch(reverse, batch, schedule->sampler));
    reverse->samples = set->count;
    PSLD_TRY(psld_reverse_report(reverse, 0));
    for (size_t begin = 0; begin < set->count; begin += batch) {
        reverse->before = begin;
        reverse->first = set->first + begin;
        reverse->count = set->count - begin < batch ? set->count - begin : batch;
        reverse->z = set->z ? set->z + begin * state : own;
        if (set->start)
            memmove(reverse->z, set->start + begin * state, reverse->count * state * sizeof(double));
        else
            draw_initial_states(reverse);
        PSLD_TRY(sample_batch(reverse, schedule));
        PSLD_TRY(psld_reverse_report(reverse, 1));
        if (set->done) PSLD_TRY(set->done(set->user, reverse->first, reverse->count, reverse->z));
    }
    return PSLD_OK;
}

/* With a batch of states of its own if the caller has no array for all. */
static psld_status sample_set(psld_reverse *reverse, const psld_schedule *schedule, const psld_sample_set *set)
{
    size_t group = schedule->sampler->info.adaptive ? (size_t)reverse->options->ode_group : 1;
    size_t batch = psld_batch_size(set->count, (size_t)reverse->options->batch, group);
    double *own = set->z ? NULL : psld_alloc(batch, reverse->k * reverse->dim * sizeof(double));
    psld_status status = set->z || own ? sample_batches(reverse, schedule, set, batch, own) : PSLD_NO_MEMORY;
    psld_release(own);
    return status;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

void psld_sample_warn(const psld_recipe *recipe)
{
    double distance;
    if (psld_recipe_distance(recipe, 1, &distance) != PSLD_OK || distance <= PSLD_DISTANCE_LIMIT) return;
    psld_log(
        PSLD_LOG_WARNING,
        "recipe %s is still %.2g nats per coordinate from its stationary distribution at t = 1, where sampling starts: "
        "raise beta",
        recipe->spec.name, distance);
}

/* A sampler of consistency needs a source that is tuned for it. The others can be used with one, to see what they make. */
static psld_status check_kind(const psld_source *source, const psld_sample_options *options)
{
    int consistency = psld_sampler_row(options->sampler)->info.consistency;
    if (consistency && source->kind == PSLD_SOURCE_MEAN)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "sampler %s: the model is not tuned for it; psld tune MODEL --consistency makes one that is",
                         options->sampler);
    if (!consistency && source->kind == PSLD_SOURCE_SAMPLE)
        psld_log(PSLD_LOG_WARNING,
                 "sampler %s: the model is tuned for the sampler consistency, and is no score any more: expect wrong "
                 "samples",
                 options->sampler);
    return PSLD_OK;
}

/* Whether this source can be evaluated with these complete options. */
static psld_status check_source(const psld_recipe *recipe, const psld_source *source,
                                const psld_sample_options *options)
{
    PSLD_TRY(check_kind(source, options));
    if (options->eps < source->earliest)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "eps: for recipe %s the model is valid at times from %.4g on, found %.4g: set a larger eps or "
                         "end_sigma",
                         recipe->spec.name, source->earliest, options->eps);
    return psld_source_check(source, recipe);
}

psld_status psld_sample_check(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options)
{
    psld_sample_resolved resolved;
    psld_schedule schedule = {0};
    PSLD_TRY(psld_sample_resolve(recipe, options, &schedule.sampler, &resolved));
    PSLD_TRY(check_source(recipe, source, &resolved.options));
    psld_status status = psld_schedule_plan(recipe, &resolved.options, source->exact, &schedule);
    psld_schedule_release(&schedule);
    return status;
}

psld_status psld_sample_check_call(const psld_recipe *recipe, const psld_source *source,
                                   const psld_sample_options *options, size_t count, size_t dim)
{
    if (count < 1 || dim < 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample of at least one number");
    PSLD_TRY(psld_check_doubles("samples", count, (size_t)recipe->spec.k, dim));
    return check_source(recipe, source, options);
}

/* Draws of the stationary distribution, and data that are encoded, belong to t = 1; states that are given, to any time. */
static psld_status check_first_time(const psld_schedule *schedule, const psld_sample_set *set)
{
    if (!schedule->times || (set->start && !schedule->upward)) return PSLD_OK;
    double first = schedule->times[schedule->upward ? schedule->steps : 0];
    if (first == 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected to begin with 1, found %g", first);
}

psld_status psld_sample_along(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                              psld_schedule *schedule, const psld_sample_set *set, psld_sample_cost *cost)
{
    psld_reverse reverse = {.recipe = recipe, .source = source, .options = options, .dim = set->dim};
    reverse.k = (size_t)recipe->spec.k;
    reverse.predicted = (size_t)recipe->predicted;
    psld_status status = psld_schedule_plan(recipe, options, source->exact, schedule);
    if (status == PSLD_OK) status = check_first_time(schedule, set);
    if (status == PSLD_OK) status = sample_set(&reverse, schedule, set);
    cost->evaluations += reverse.evaluations;
    cost->groups += reverse.groups;
    psld_ahead_free(reverse.ahead);
    psld_release(reverse.eps);
    psld_release(reverse.t);
    psld_release(reverse.sample);
    psld_release(reverse.work);
    psld_schedule_release(schedule);
    return status;
}

psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                const psld_sample_set *set, psld_sample_cost *cost)
{
    psld_sample_resolved resolved;
    const psld_sample_options *o = &resolved.options;
    psld_source *labelled = NULL, *clipped = NULL;
    psld_schedule schedule = {0};
    PSLD_TRY(psld_sample_resolve(recipe, options, &schedule.sampler, &resolved));
    PSLD_TRY(psld_sample_check_call(recipe, source, o, set->count, set->dim));
    psld_status status = o->labels ? psld_source_label(source, recipe, o->labels, &labelled) : PSLD_OK;
    if (labelled) source = labelled;
    if (status == PSLD_OK && (o->clip > 0 || o->threshold > 0))
        status = psld_source_clip(source, recipe, o->clip > 0 ? o->clip : 1, o->threshold, &clipped);
    if (clipped) source = clipped;
    if (status == PSLD_OK) status = psld_sample_along(recipe, source, o, &schedule, set, cost);
    psld_source_free(clipped);
    psld_source_free(labelled);
    return status;
}

uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost)
{
    return (cost->evaluations + cost->groups - 1) / cost->groups + (options->denoise != 0);
}

psld_status psld_sample(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                        uint64_t first, size_t count, size_t dim, const double *start, double *z, uint64_t *nfe)
{
    psld_sample_cost cost = {0};
    psld_sample_options own;
    psld_sample_set set = {.first = first, .count = count, .dim = dim, .start = start, .z = z};
    PSLD_TRY(psld_sample_options_read(options, &own));
    if (!start) psld_sample_warn(recipe);
    PSLD_TRY(psld_sample_counted(recipe, source, &own, &set, &cost));
    if (nfe) *nfe = psld_sample_nfe(&own, &cost);
    return PSLD_OK;
}
