#include "latent.h"

#include <string.h>

void latent_defaults(latent_request *request)
{
    psld_model_defaults(&request->model.options);
    request->model.weak = "none";
    psld_sample_defaults(&request->options);
    request->options.sampler = "collapsed";
    request->options.nfe = 200;
    request->options.batch = 0;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* A picture as data [channels, height, width] in [-1, 1]. */
static psld_status load_picture(const char *path, psld_array **x)
{
    psld_array *image = NULL;
    psld_status status = psld_image_load(path, &image);
    if (status == PSLD_OK) status = psld_array_convert(image, PSLD_F32, x);
    for (size_t i = 0; status == PSLD_OK && i < (*x)->count; i++) {
        float *v = (float *)(*x)->data + i;
        *v = (float)((double)*v / 127.5 - 1);
    }
    psld_array_free(image);
    return status;
}

static psld_status load_array(const char *path, psld_array **x)
{
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F32, x);
    psld_array_free(loaded);
    return status;
}

static psld_status load_file(const char *path, size_t width, psld_array **x)
{
    psld_status status = cli_ends_in(path, ".npy") ? load_array(path, x) : load_picture(path, x);
    if (status != PSLD_OK) return status;
    if ((*x)->count == 0 || (*x)->count % width != 0)
        return cli_bad_input("%s: expected data of %zu numbers each, as the model has them, found %zu in all", path,
                             width, (*x)->count);
    return PSLD_OK;
}

/* All files one after another. */
static psld_status load_data(const char *const *files, int count, latent_job *job)
{
    size_t shape[PSLD_MAX_RANK], width = 1, rows = 0;
    int rank = psld_model_shape(job->model, shape);
    for (int i = 0; i < rank; i++) width *= shape[i];
    for (int i = rank; i > 0; i--) shape[i] = shape[i - 1];
    for (int f = 0; f < count; f++) {
        psld_array *x = NULL, *all = NULL;
        psld_status status = load_file(files[f], width, &x);
        if (status == PSLD_OK) shape[0] = rows + x->count / width;
        if (status == PSLD_OK) status = psld_array_create(PSLD_F32, rank + 1, shape, &all);
        if (status == PSLD_OK) {
            if (rows) memcpy(all->data, job->x->data, rows * width * sizeof(float));
            memcpy((float *)all->data + rows * width, x->data, x->count * sizeof(float));
            psld_array_free(job->x);
            job->x = all;
            rows = shape[0];
        }
        psld_array_free(x);
        if (status != PSLD_OK) return status;
    }
    return PSLD_OK;
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
    return load_data(files, count, job);
}

void latent_close(latent_job *job)
{
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
