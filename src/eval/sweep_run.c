/* Runs the cells of a sweep. The data are measured once: their features are kept, or their moments if these are enough. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sized.h"
#include "eval/metrics.h"
#include "eval/sweep.h"

enum { ADAPTIVE_GUESS = 100, ESTIMATE_NFE = 3 };

/* Exact samples of a mixture, with a seed that no sampler uses: the reference if no data are given. */
static psld_status exact_draws(const psld_model *model, size_t count, psld_array **rows)
{
    const psld_mixture *mixture = psld_model_mixture(model);
    const psld_recipe *recipe = psld_model_recipe(model);
    size_t dim = psld_mixture_dim(mixture), width = dim * (size_t)psld_recipe_get(recipe)->k;
    double *z = psld_alloc(count, width * sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    psld_status status = psld_array_create(PSLD_F32, 2, (const size_t[]){count, dim}, rows);
    if (status == PSLD_OK) status = psld_mixture_draw(mixture, recipe, 0, UINT64_MAX, 0, count, z);
    for (size_t i = 0; status == PSLD_OK && i < count * dim; i++)
        ((float *)(*rows)->data)[i] = (float)z[i / dim * width + i % dim];
    psld_release(z);
    if (status == PSLD_OK) return PSLD_OK;
    psld_array_free(*rows);
    *rows = NULL;
    return status;
}

/* Reduces the data to features, or to moments if these are enough. */
static psld_status reduce_data(psld_sweep *s, psld_set *data, psld_progress_fn progress, void *user)
{
    unsigned rows_needed = s->metrics & psld_metrics_that(psld_metric_needs_rows);
    if (rows_needed) {
        psld_array *rows;
        PSLD_TRY(psld_set_features(data, s->features, progress, user, &rows));
        return psld_set_of_rows(rows, s->data, &s->real);
    }
    psld_statistics *statistics;
    PSLD_TRY(psld_set_statistics(data, s->features, progress, user, &statistics));
    return psld_set_of_statistics(statistics, s->data, &s->real);
}

static psld_status open_image_set(const psld_sweep *s, const char *path, psld_set **set)
{
    psld_data_options options = PSLD_DATA_DEFAULTS;
    options.image_size = (int)s->size;
    options.stretch = strcmp(s->fit, "stretch") == 0;
    options.resample = s->resample;
    return psld_set_open_as(path, 0, &options, set);
}

static psld_status open_sweep_data(psld_sweep *s, psld_progress_fn progress, void *user)
{
    psld_set *data;
    psld_array *rows;
    if (s->weights && !s->features) PSLD_TRY(psld_features_open_on(s->weights, s->device, &s->features));
    if (s->inpaint_images && !s->known) PSLD_TRY(open_image_set(s, s->inpaint_images, &s->known));
    if (s->masks_path && !s->masks) PSLD_TRY(psld_set_open(s->masks_path, 0, &s->masks));
    if (!s->data) {
        PSLD_TRY(exact_draws(s->model, 4 * (size_t)s->number, &rows));
        return psld_set_of_rows(rows, "exact draws", &s->real);
    }
    PSLD_TRY(open_image_set(s, s->data, &data));
    if (data->kind == PSLD_SET_STATISTICS) {
        s->real = data;
        return PSLD_OK;
    }
    psld_status status = reduce_data(s, data, progress, user);
    psld_set_free(data);
    return status;
}

static psld_status inpaint_samples(psld_sweep *s, const psld_sample_options *sampling, int floor, psld_set **set)
{
    const psld_hiding hiding = {
        .size = sizeof hiding, .part = s->hide, .masks = s->masks, .lagging = strcmp(s->method, "authors") == 0};
    return psld_set_inpainted_as(s->model, sampling, (uint64_t)s->number, floor, s->known, &hiding, set);
}

static psld_status make_samples(psld_sweep *s, size_t index, psld_set **set)
{
    psld_sample_options sampling;
    psld_labels labels;
    psld_array *list = NULL;
    int floor = strcmp(s->quantize, "floor") == 0;
    PSLD_TRY(psld_sweep_sampling(&s->cells[index], &sampling));
    if (psld_sweep_has_labels(s)) {
        PSLD_TRY(psld_sweep_labels(s, &s->cells[index], &labels, &list));
        sampling.labels = &labels;
    }
    psld_status status = s->known ? inpaint_samples(s, &sampling, floor, set)
                                  : psld_set_model(s->model, &sampling, (uint64_t)s->number, floor, set);
    psld_array_free(list);
    return status;
}

static psld_status run_cell(psld_sweep *sweep, size_t index, psld_progress_fn progress, void *user,
                            psld_sweep_result *result)
{
    psld_set *samples;
    psld_compare_options options = PSLD_COMPARE_DEFAULTS;
    PSLD_TRY(psld_sweep_check(sweep, index));
    PSLD_TRY(psld_sweep_open_model(sweep, index));
    if (sweep->model_fingerprint != sweep->fingerprint[index])
        return psld_fail(PSLD_BAD_INPUT, "%s: has changed since the sweep began",
                         sweep->models.text[sweep->model_of[index]]);
    if (!sweep->real) PSLD_TRY(open_sweep_data(sweep, progress, user));
    double began = psld_seconds();
    PSLD_TRY(make_samples(sweep, index, &samples));
    options.metrics = sweep->metrics;
    options.progress = progress;
    options.progress_user = user;
    psld_status status = psld_compare(samples, sweep->real, sweep->features, &options, &sweep->comparison);
    result->comparison = &sweep->comparison;
    result->is_fid = !sweep->features || psld_features_is_fid(sweep->features);
    result->nfe = psld_set_nfe(samples);
    result->seconds = psld_seconds() - began;
    psld_set_free(samples);
    return status;
}

psld_status psld_sweep_run(psld_sweep *sweep, size_t index, psld_progress_fn progress, void *user,
                           psld_sweep_result *result)
{
    psld_sweep_result own = PSLD_SWEEP_RESULT_EMPTY;
    PSLD_TRY(psld_sized_check(result, sizeof own, "PSLD_SWEEP_RESULT_EMPTY"));
    sweep->comparison = (psld_comparison)PSLD_COMPARISON_EMPTY;
    psld_status status = run_cell(sweep, index, progress, user, &own);
    psld_sized_write(result, &own);
    return status;
}

psld_status psld_sweep_estimate(psld_sweep *sweep, size_t index, double *seconds)
{
    psld_sample_options sampling = PSLD_SAMPLE_DEFAULTS;
    psld_array *x;
    uint64_t nfe;
    PSLD_TRY(psld_sweep_check(sweep, index));
    PSLD_TRY(psld_sweep_open_model(sweep, index));
    size_t batch = psld_model_batch(sweep->model);
    sampling.sampler = "em";
    sampling.nfe = ESTIMATE_NFE;
    if ((uint64_t)batch > (uint64_t)sweep->number) batch = (size_t)sweep->number;
    double began = psld_seconds();
    PSLD_TRY(psld_model_sample(sweep->model, &sampling, 0, batch, NULL, 0, &x, &nfe));
    psld_array_free(x);
    double each = (psld_seconds() - began) / (double)batch / ESTIMATE_NFE;
    int evaluations = sweep->cells[index].nfe ? sweep->cells[index].nfe : ADAPTIVE_GUESS;
    *seconds = each * (double)evaluations * (double)sweep->number;
    return PSLD_OK;
}
