#include "latent.h"

#include <string.h>

#include "sampling.h"

void latent_defaults(latent_request *request)
{
    request->model.options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    request->model.weak = "none";
    request->options = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    request->options.sampler = LATENT_SAMPLER;
    request->options.nfe = LATENT_NFE;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* Behind what is there already. */
static psld_status append_latents(latent_job *job, int rank, size_t *shape, const psld_array *x)
{
    size_t before = job->x ? job->x->shape[0] : 0, width = x->shape[1];
    psld_array *all = NULL;
    shape[0] = before + x->shape[0];
    psld_status status = psld_array_create(PSLD_F32, rank + 1, shape, &all);
    if (status != PSLD_OK) return status;
    float *to = all->data;
    if (before) memcpy(to, job->x->data, before * width * sizeof *to);
    for (size_t i = 0; i < x->count; i++) to[before * width + i] = (float)((const double *)x->data)[i];
    psld_array_free(job->x);
    job->x = all;
    return PSLD_OK;
}

/* All files one after another. */
static psld_status load_data(const char *const *files, int count, latent_job *job)
{
    size_t shape[PSLD_MAX_RANK + 1];
    int rank = psld_model_shape(job->model, shape + 1);
    psld_status status = PSLD_OK;
    for (int f = 0; status == PSLD_OK && f < count; f++) {
        psld_array *x = NULL;
        status = sampling_read_shape(files[f], "data", rank, shape + 1, job->request->fit, &x);
        if (status == PSLD_OK) status = append_latents(job, rank, shape, x);
        psld_array_free(x);
    }
    return status;
}

/* ---- The job ----------------------------------------------------------------------------------------------------- */

psld_status latent_open(latent_request *request, const char *model, const char *const *files, int count,
                        latent_job *job)
{
    if (request->options.grid && strchr(request->options.grid, ',')) {
        if (request->nfe) return cli_bad_input("--nfe: the times of --grid say how many evaluations there are");
        request->options.nfe = 0;
    } else if (request->nfe) {
        request->options.nfe = request->nfe > 1000000000 ? 1000000000 : (int)request->nfe;
    }
    request->options.order = request->order > 1000 ? 1000 : (int)request->order;
    cli_model_settle(&request->model);
    psld_status status = psld_model_open(model, &request->model.options, &job->model);
    if (status != PSLD_OK) return status;
    if (psld_model_kind_of(job->model) == PSLD_CLASSIFIER)
        return cli_bad_input("%s: a classifier has no samples", model);
    job->request = request;
    job->options = request->options;
    status = labels_choose(&request->labels, job->model, model, &job->labels);
    if (status != PSLD_OK) return status;
    if (job->labels.is_set && job->labels.labels.count == 0)
        return cli_bad_input("--cfg: give --label, too: data are encoded without label by default");
    if (job->labels.is_set) job->options.labels = &job->labels.labels;
    return load_data(files, count, job);
}

void latent_close(latent_job *job)
{
    labels_free(&job->labels);
    psld_array_free(job->x);
    psld_array_free(job->z);
    psld_model_free(job->model);
}

psld_status latent_encode(latent_job *job)
{
    cli_progress progress;
    cli_progress_begin(&progress, "encoding");
    job->options.progress = cli_progress_report;
    job->options.progress_user = &progress;
    psld_status status = psld_model_encode(job->model, &job->options, 0, job->x, &job->z, &job->nfe);
    cli_progress_end(&progress);
    return status;
}

psld_status latent_decode(latent_job *job, const psld_array *z, psld_array **x)
{
    cli_progress progress;
    cli_progress_begin(&progress, "decoding");
    job->options.progress = cli_progress_report;
    job->options.progress_user = &progress;
    psld_status status = psld_model_sample(job->model, &job->options, 0, z->shape[0], z, 0, x, NULL);
    cli_progress_end(&progress);
    return status;
}
