#include "sample/reverse.h"

#include "base/log.h"
#include "sample/samplers/sampler.h"

psld_status psld_reverse_predict_each(psld_reverse *reverse, size_t n, const double *z)
{
    psld_states states = PSLD_STATES(n, reverse->dim, z, reverse->t);
    states.sample = reverse->sample;
    return psld_source_predict(reverse->source, &states, reverse->eps);
}

psld_status psld_reverse_predict(psld_reverse *reverse, const double *z, double t)
{
    for (size_t i = 0; i < reverse->count; i++) {
        reverse->t[i] = t;
        reverse->sample[i] = reverse->first + i;
    }
    PSLD_TRY(psld_reverse_predict_each(reverse, reverse->count, z));
    return psld_reverse_watch(reverse, 0, reverse->count, z);
}

psld_status psld_reverse_watch(const psld_reverse *reverse, size_t begin, size_t count, const double *z)
{
    const psld_sample_options *o = reverse->options;
    uint64_t before = psld_fail_count();
    if (!o->watch) return PSLD_OK;
    psld_states states = PSLD_STATES(count, reverse->dim, z, reverse->t + begin);
    states.sample = reverse->sample + begin;
    psld_evaluation evaluation = {sizeof evaluation, &states, reverse->eps + begin * reverse->predicted * reverse->dim};
    return psld_fail_callback("watch", before, o->watch(o->watch_user, &evaluation));
}

psld_status psld_explicit_step_apply(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const psld_explicit_step *step = table;
    psld_affine_expect(reverse, &step->map, visit, 1);
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    psld_affine_apply(reverse, &step->map, PSLD_FOR_STEP, visit, NULL, reverse->z, reverse->z);
    return PSLD_OK;
}

psld_status psld_reverse_report(const psld_reverse *reverse, double fraction)
{
    enum { UNITS = 1000 }; /* per sample: fine enough for any display */
    uint64_t done = (uint64_t)(fraction * UNITS * (double)reverse->count);
    return psld_progress(reverse->options->progress, reverse->options->progress_user, UNITS * reverse->before + done,
                         UNITS * (uint64_t)reverse->samples);
}
