#include "sample/schedule.h"

#include "base/alloc.h"
#include "sample/corrector.h"
#include "sample/inverse/inpaint.h"
#include "sample/time_grid.h"

void psld_schedule_release(psld_schedule *schedule)
{
    psld_release(schedule->times);
    psld_release(schedule->tables);
    psld_release(schedule->correctors);
}

/* The number of steps for a budget of evaluations. A sampler of two evaluations per step may end with a step of one. */
static psld_status count_steps(const psld_sample_options *options, psld_schedule *schedule)
{
    int budget = options->nfe - (options->denoise != 0),
        cost = schedule->sampler->info.evaluations + options->corrector;
    schedule->repeats = options->inpainting ? options->inpainting->repeats : 1;
    schedule->steps = budget / cost;
    schedule->truncated = schedule->sampler->info.evaluations > 1 && schedule->repeats == 1 &&
                          budget - schedule->steps * cost >= cost - 1;
    schedule->steps += schedule->truncated;
    if (schedule->steps >= 1 || (schedule->sampler->info.consistency && options->denoise && budget == 0))
        return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "nfe: %s needs at least %d evaluations here, found %d",
                     schedule->sampler->info.name,
                     (options->denoise != 0) + cost - (schedule->sampler->info.evaluations > 1), options->nfe);
}

static void reverse_order(double *numbers, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        double first = numbers[i];
        numbers[i] = numbers[count - 1 - i];
        numbers[count - 1 - i] = first;
    }
}

static psld_status plan_schedule_steps(const psld_recipe *recipe, const psld_sample_options *options, int exact,
                                       psld_schedule *schedule)
{
    PSLD_TRY(count_steps(options, schedule));
    size_t steps = (size_t)schedule->steps;
    schedule->times = psld_alloc(steps + 1, sizeof *schedule->times);
    schedule->tables = schedule->times ? psld_alloc(steps, schedule->sampler->table_size) : NULL;
    schedule->correctors =
        schedule->tables ? psld_alloc(options->corrector ? steps : 0, sizeof *schedule->correctors) : NULL;
    if (!schedule->correctors) return PSLD_NO_MEMORY;
    PSLD_TRY(psld_grid_times(recipe, options->grid, options->rho, schedule->steps, options->eps, schedule->times));
    if (schedule->upward) reverse_order(schedule->times, steps + 1);
    for (size_t i = 0; options->corrector && i < steps; i++)
        PSLD_TRY(
            psld_corrector_plan(recipe, schedule->times[i + 1], options->corrector_size, &schedule->correctors[i]));
    if (schedule->sampler->plan_steps) {
        psld_discretisation grid = {recipe, options, exact, schedule->times, schedule->steps, schedule->truncated};
        return schedule->sampler->plan_steps(&grid, schedule->tables);
    }
    for (size_t i = 0; i < steps; i++)
        PSLD_TRY(schedule->sampler->plan_step(recipe, schedule->times[i], schedule->times[i + 1],
                                              schedule->truncated && i + 1 == steps,
                                              schedule->tables + i * schedule->sampler->table_size));
    return PSLD_OK;
}

psld_status psld_schedule_plan(const psld_recipe *recipe, const psld_sample_options *options, int exact,
                               psld_schedule *schedule)
{
    PSLD_TRY(psld_inpaint_check(options->inpainting, schedule->sampler));
    if (!schedule->sampler->info.adaptive) PSLD_TRY(plan_schedule_steps(recipe, options, exact, schedule));
    if (schedule->sampler->info.predicts_data) return psld_affine_denoise(recipe, exact, options->eps, &schedule->last);
    return psld_affine_euler(recipe, options->eps, options->eps, schedule->sampler->info.deterministic ? 1 : 2,
                             &schedule->last);
}
