/* A source whose clean data stay within the range of the data. The clean data of a base source are clipped_source; or, with a
 * quantile, thresholded as in Imagen (Saharia et al. 2022): where that quantile of a sample's absolute values is beyond
 * the limit, the sample is divided by it. Then a few pixels that are too bright do not saturate the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/workspace.h"
#include "sample/sources/denoiser.h"

typedef struct clipped_source {
    psld_source *base;
    psld_recipe recipe; /* a copy of its own */
    double limit, quantile;
    psld_workspaces workspaces;
} clipped_source;

static void release_clipped(void *user)
{
    clipped_source *c = user;
    psld_workspaces_release(&c->workspaces);
    psld_release(c);
}

/* Ascending, NaN last: qsort needs a total order. */
static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? !isnan(y) - !isnan(x) : (x > y) - (x < y);
}

/* The quantile of |x|, or the limit if that is larger. */
static double threshold_of(const clipped_source *c, size_t dim, const double *x, double *sorted)
{
    if (c->quantile == 0) return c->limit;
    for (size_t j = 0; j < dim; j++) sorted[j] = fabs(x[j]);
    qsort(sorted, dim, sizeof *sorted, compare_numbers);
    return fmax(c->limit, sorted[(size_t)(c->quantile * (double)(dim - 1))]);
}

/* Numbers that are not finite become NaN instead of a pixel value, so that the sampler reports them. */
static void clip_sample(const clipped_source *c, size_t dim, double *x, double *sorted)
{
    double scale = threshold_of(c, dim, x, sorted);
    for (size_t j = 0; j < dim; j++)
        x[j] = isfinite(x[j]) ? fmax(-scale, fmin(scale, x[j])) * (c->limit / scale) : (double)NAN;
}

static psld_status predict_and_clip(clipped_source *c, psld_workspace *memory, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    size_t state = (size_t)c->recipe.spec.k * dim, predicted = (size_t)c->recipe.predicted * dim;
    double *x, *sorted; /* [n][dim], [dim] */
    PSLD_TRY(psld_workspace_room(memory, 0, n, dim, sizeof *x, (void **)&x));
    PSLD_TRY(psld_workspace_room(memory, 1, 1, dim, sizeof *sorted, (void **)&sorted));
    PSLD_TRY(psld_source_predict(c->base, states, eps));
    for (size_t begin = 0, end; begin < n; begin = end) {
        psld_denoiser denoiser;
        const double *z = states->z + begin * state;
        end = psld_states_same_time(states, begin);
        PSLD_TRY(psld_denoiser_plan(&c->recipe, c->base->exact, states->t[begin], &denoiser));
        psld_denoiser_apply(&denoiser, end - begin, dim, z, eps + begin * predicted, x);
        for (size_t i = begin; i < end; i++) clip_sample(c, dim, x + (i - begin) * dim, sorted);
        psld_denoiser_eps(&denoiser, end - begin, dim, z, x, eps + begin * predicted);
    }
    return PSLD_OK;
}

static psld_status predict_clipped(void *user, const psld_states *states, double *eps)
{
    clipped_source *c = user;
    psld_workspace *memory = psld_workspace_take(&c->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = predict_and_clip(c, memory, states, eps);
    psld_workspace_give(&c->workspaces, memory);
    return status;
}

psld_status psld_source_clip(psld_source *base, const psld_recipe *recipe, double limit, double quantile,
                             psld_source **source)
{
    *source = NULL;
    if (!(limit > 0) || !isfinite(limit))
        return psld_fail(PSLD_BAD_ARGUMENT, "clip: expected a positive number, found %g", limit);
    if (!(quantile >= 0 && quantile <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "threshold: expected a number from 0 to 1, found %g", quantile);
    clipped_source *c = psld_alloc(1, sizeof *c);
    if (!c) return PSLD_NO_MEMORY;
    *c = (clipped_source){.base = base, .recipe = *recipe, .limit = limit, .quantile = quantile};
    return psld_source_wrap(base, recipe, predict_clipped, release_clipped, c, source);
}
