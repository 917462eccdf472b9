/* The clean data that a model predicts along trajectories, at a few moments of the reverse process.
 *
 * Moments are even in sqrt(t), like the steps of the quadratic grid. Each moment keeps the prediction of the nearest
 * evaluation, for every sampler and every order of evaluations. */
#include <math.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "model/model.h"
#include "sample/options.h"
#include "sample/sources/denoiser.h"

struct psld_trajectory {
    const psld_model *model;
    uint64_t first;
    size_t count, frames, dim;
    double end;       /* time of the last moment */
    double *gap;      /* [count][frames]: distance in sqrt(t) of the kept prediction from its moment */
    double *clean;    /* [dim]: scratch */
    psld_array *kept; /* [count, frames, channels, ...] */
};

psld_status psld_trajectory_create(const psld_model *model, uint64_t first, size_t count, size_t frames,
                                   psld_trajectory **trajectory)
{
    *trajectory = NULL;
    if (!model->source) return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    if (count < 1 || frames < 2) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample and two frames");
    psld_trajectory *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    *made = (psld_trajectory){.model = model, .first = first, .count = count, .frames = frames};
    made->dim = psld_model_size(model);
    size_t shape[PSLD_MAX_RANK] = {count, frames};
    for (int i = 0; i < model->rank; i++) shape[i + 2] = model->shape[i];
    psld_status status = psld_array_create(PSLD_F32, model->rank + 2, shape, &made->kept);
    if (status == PSLD_OK) {
        made->gap = psld_alloc(count, frames * sizeof(double));
        made->clean = made->gap ? psld_alloc(made->dim, sizeof(double)) : NULL;
        if (!made->clean) status = PSLD_NO_MEMORY;
    }
    if (status != PSLD_OK) {
        psld_trajectory_free(made);
        return status;
    }
    for (size_t i = 0; i < count * frames; i++) made->gap[i] = (double)INFINITY;
    *trajectory = made;
    return PSLD_OK;
}

void psld_trajectory_free(psld_trajectory *trajectory)
{
    if (!trajectory) return;
    psld_array_free(trajectory->kept);
    psld_release(trajectory->gap);
    psld_release(trajectory->clean);
    psld_release(trajectory);
}

/* Stores the clean data of one state in the moments of its sample that it is nearer to than the stored ones. */
static void keep_state(psld_trajectory *path, const psld_denoiser *denoiser, size_t sample, double t, const double *z,
                       const double *eps)
{
    double last = (double)(path->frames - 1), end = sqrt(path->end);
    int computed = 0;
    for (size_t f = 0; f < path->frames; f++) {
        double moment = 1 + (end - 1) * (double)f / last, *gap = &path->gap[sample * path->frames + f];
        if (!(fabs(sqrt(t) - moment) < *gap)) continue;
        *gap = fabs(sqrt(t) - moment);
        if (!computed) psld_denoiser_apply(denoiser, 1, path->dim, z, eps, path->clean);
        computed = 1;
        float *out = (float *)path->kept->data + (sample * path->frames + f) * path->dim;
        for (size_t j = 0; j < path->dim; j++) out[j] = (float)path->clean[j];
    }
}

static psld_status keep_evaluation(void *user, const psld_evaluation *evaluation)
{
    psld_trajectory *path = user;
    const psld_recipe *recipe = path->model->recipe;
    const psld_states *states = evaluation->states;
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted, count = states->n, dim = states->dim;
    uint64_t first = states->sample[0];
    double t = states->t[0];
    psld_denoiser denoiser;
    if (first + count <= path->first || first >= path->first + path->count) return PSLD_OK;
    /* At some times of an underdamped process the prediction does not depend on x_0: a neighbouring evaluation is kept
     * instead. */
    if (psld_denoiser_plan(recipe, path->model->source->exact, t, &denoiser) != PSLD_OK) return PSLD_OK;
    for (size_t i = 0; i < count; i++) {
        uint64_t sample = first + i - path->first; /* wraps to something large before path->first */
        if (sample >= path->count) continue;
        keep_state(path, &denoiser, (size_t)sample, t, states->z + i * k * dim, evaluation->eps + i * predicted * dim);
    }
    return PSLD_OK;
}

/* The time at which sampling ends: eps, unless end_sigma or a list of times is given. Sampling itself refuses invalid
 * options. */
static double end_of(const psld_recipe *recipe, const psld_sample_options *options)
{
    psld_sample_options complete = *options;
    return psld_sample_complete(recipe, &complete) == PSLD_OK ? complete.eps : options->eps;
}

void psld_trajectory_watch(psld_trajectory *trajectory, psld_sample_options *options)
{
    psld_sample_options own;
    if (psld_sample_options_copy(options, &own) != PSLD_OK) return; /* sampling will refuse them */
    trajectory->end = end_of(trajectory->model->recipe, &own);
    own.watch = keep_evaluation;
    own.watch_user = trajectory;
    psld_sized_write(options, &own);
}

const psld_array *psld_trajectory_frames(const psld_trajectory *trajectory)
{
    return trajectory->kept;
}
