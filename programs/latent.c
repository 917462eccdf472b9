#include "latent.h"

#include <math.h>
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

/* Appends the data of a file. */
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

psld_status latent_settle(latent_request *request)
{
    if (request->options.grid && strchr(request->options.grid, ',')) {
        if (request->nfe)
            return cli_bad_input("--nfe: the times of --grid set the number of evaluations; give no --nfe");
        request->options.nfe = 0;
    } else if (request->nfe) {
        request->options.nfe = request->nfe > 1000000000 ? 1000000000 : (int)request->nfe;
    }
    request->options.order = request->order > 1000 ? 1000 : (int)request->order;
    cli_model_settle(&request->model);
    return PSLD_OK;
}

psld_status latent_begin(const latent_request *request, const char *model, const char *const *files, int count,
                         latent_job *job)
{
    if (psld_model_kind_of(job->model) == PSLD_CLASSIFIER)
        return cli_bad_input("%s: a classifier has no samples", model);
    job->request = request;
    job->options = request->options;
    psld_status status = labels_choose(&request->labels, job->model, model, &job->labels);
    if (status != PSLD_OK) return status;
    if (job->labels.is_set && job->labels.labels.count == 0)
        return cli_bad_input("--cfg: give --label, too: data are encoded without label by default");
    if (job->labels.is_set) job->options.labels = &job->labels.labels;
    return load_data(files, count, job);
}

psld_status latent_open(latent_request *request, const char *model, const char *const *files, int count,
                        latent_job *job)
{
    psld_status status = latent_settle(request);
    if (status == PSLD_OK) status = psld_model_open(model, &request->model.options, &job->model);
    return status == PSLD_OK ? latent_begin(request, model, files, count, job) : status;
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

/* ---- Comparison and interpolation -------------------------------------------------------------------------------- */

void latent_compare(const psld_array *x, const psld_array *again, double *rms, double *absolute)
{
    const float *a = x->data, *b = again->data;
    *rms = *absolute = 0;
    for (size_t i = 0; i < x->count; i++) {
        double d = (double)a[i] - (double)b[i];
        *rms += d * d / (double)x->count;
        *absolute += fabs(d) / (double)x->count;
    }
    *rms = sqrt(*rms);
}

psld_status latent_check_pair(const latent_job *job, const char *a, const char *b)
{
    if (job->x->shape[0] != 2) return cli_bad_input("expected one picture or point in each of %s and %s", a, b);
    if (job->labels.labels.count > 1)
        return cli_bad_input("--label: expected one class for all pictures, found %zu", job->labels.labels.count);
    return PSLD_OK;
}

/* States on the arc between a and b, which keeps them typical of noise: weights sin((1 - f) w) / sin w and sin(f w)
 * / sin w, where w is their angle. */
static void interpolate_arc(size_t width, const float *a, const float *b, size_t n, float *out)
{
    double aa = 0, bb = 0, ab = 0;
    for (size_t j = 0; j < width; j++) {
        aa += (double)a[j] * (double)a[j];
        bb += (double)b[j] * (double)b[j];
        ab += (double)a[j] * (double)b[j];
    }
    double angle = acos(fmax(-1, fmin(1, ab / sqrt(aa * bb))));
    for (size_t i = 0; i < n; i++) {
        double f = (double)i / (double)(n - 1), left = 1 - f, right = f;
        if (angle > 1e-6 && sin(angle) > 1e-6) {
            left = sin((1 - f) * angle) / sin(angle);
            right = sin(f * angle) / sin(angle);
        }
        for (size_t j = 0; j < width; j++) out[i * width + j] = (float)(left * (double)a[j] + right * (double)b[j]);
    }
}

psld_status latent_between(const latent_job *job, size_t n, psld_array **between)
{
    size_t shape[PSLD_MAX_RANK], width = job->z->count / 2;
    for (int i = 0; i < job->z->rank; i++) shape[i] = i ? job->z->shape[i] : n;
    psld_status status = psld_array_create(PSLD_F32, job->z->rank, shape, between);
    if (status == PSLD_OK)
        interpolate_arc(width, job->z->data, (const float *)job->z->data + width, n, (*between)->data);
    return status;
}
