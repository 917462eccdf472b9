/* Encoding: states at t = 1 from which a reversible sampler returns to given data.
 *
 * A state at the smallest time has collapsed coordinates y / sigma and xi (collapsed_frame.h). For y the data x are taken,
 * as if they had been observed with the effective noise sigma of that time. xi is independent of the data and is drawn by
 * sample number. The sampler integrates this state up to t = 1. Integrating down again returns to y = x. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "sample/collapsed_frame.h"
#include "sample/options.h"
#include "sample/sample.h"

/* States z at time t whose sufficient statistic is the data x. */
static psld_status draw_states_of_data(const psld_recipe *recipe, int exact, double t, uint64_t seed, uint64_t first,
                                       size_t count, size_t dim, const double *x, double *z)
{
    psld_collapsed_frame frame;
    size_t k = (size_t)recipe->spec.k;
    PSLD_TRY(psld_collapsed_frame_plan(recipe, exact, t, &frame));
    double *xi = psld_alloc(k * dim, sizeof *xi);
    if (!xi) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        double *state = z + i * k * dim;
        psld_random_normal(seed, PSLD_FOR_REST, first + i, 1, 0, k * dim, xi);
        for (size_t j = 0; j < dim; j++) xi[j] = x[i * dim + j] / frame.sigma;
        memset(state, 0, k * dim * sizeof *state);
        for (size_t a = 0; a < k; a++)
            for (size_t b = 0; b < k; b++)
                for (size_t j = 0; j < dim; j++) state[a * dim + j] += frame.frame[a * k + b] * xi[b * dim + j];
    }
    psld_release(xi);
    return PSLD_OK;
}

psld_status psld_encode(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                        uint64_t first, size_t count, size_t dim, const double *x, double *z, uint64_t *nfe)
{
    psld_sample_options upwards;
    psld_sample_resolved resolved;
    psld_sample_cost cost = {0};
    psld_schedule schedule = {.upward = 1};
    psld_sample_set set = {.first = first, .count = count, .dim = dim, .start = z, .z = z};
    PSLD_TRY(psld_sample_options_read(options, &upwards));
    upwards.denoise = 0;
    upwards.corrector = 0;
    upwards.inpainting = NULL;
    PSLD_TRY(psld_sample_resolve(recipe, &upwards, &schedule.sampler, &resolved));
    if (!schedule.sampler->info.reversible)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "sampler: %s cannot encode data: use a reversible sampler such as dpm or heun",
                         schedule.sampler->info.name);
    PSLD_TRY(psld_sample_check_call(recipe, source, &resolved.options, count, dim));
    PSLD_TRY(draw_states_of_data(recipe, source->exact, resolved.options.eps, resolved.options.seed, first, count, dim,
                                 x, z));
    psld_source *labelled = NULL;
    if (upwards.labels) PSLD_TRY(psld_source_label(source, recipe, upwards.labels, &labelled));
    psld_status status =
        psld_sample_along(recipe, labelled ? labelled : source, &resolved.options, &schedule, &set, &cost);
    psld_source_free(labelled);
    if (status != PSLD_OK) return status;
    if (nfe) *nfe = psld_sample_nfe(&resolved.options, &cost);
    return PSLD_OK;
}
