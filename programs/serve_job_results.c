/* The results of jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_jobs.h"

psld_array *serve_job_part(serve_job *job, const char *name, size_t first, size_t count)
{
    psld_array *part = NULL;
    const psld_array *whole = NULL;
    pthread_mutex_lock(&job->lock);
    for (size_t i = 0; serve_job_is_finished(job) && i < job->array_count; i++)
        if (strcmp(job->arrays[i].name, name) == 0) whole = job->arrays[i].array;
    pthread_mutex_unlock(&job->lock); /* arrays of a finished job stay as they are */
    if (!whole || first >= whole->shape[0]) return NULL;
    if (count > whole->shape[0] - first) count = whole->shape[0] - first;
    size_t shape[PSLD_MAX_RANK], each = whole->count / whole->shape[0];
    memcpy(shape, whole->shape, sizeof shape);
    shape[0] = count;
    if (count == 0 || psld_array_create(whole->type, whole->rank, shape, &part) != PSLD_OK) return NULL;
    memcpy(part->data, (const float *)whole->data + first * each, count * each * sizeof(float));
    return part;
}

psld_status serve_sheet_encode(psld_array *part, size_t columns, size_t zoom, void **bytes, size_t *size)
{
    psld_array *pixels = NULL, *larger = NULL, *sheet = NULL;
    if (part->rank == 5) {
        if (columns == 0) columns = part->shape[1];
        part->shape[0] *= part->shape[1];
        memmove(part->shape + 1, part->shape + 2, 3 * sizeof *part->shape);
        part->rank = 4;
    }
    if (part->rank != 4) return cli_bad_input("the array has no pictures; take .npy");
    psld_status status = psld_images_from_data(part, 0, &pixels);
    if (status == PSLD_OK) status = psld_images_enlarge(pixels, zoom, &larger);
    if (status == PSLD_OK) status = psld_images_sheet(larger, columns, &sheet);
    if (status == PSLD_OK) status = psld_image_encode(sheet, bytes, size);
    psld_array_free(pixels);
    psld_array_free(larger);
    psld_array_free(sheet);
    return status;
}

static enum MHD_Result answer_array(serve_request *request, psld_array *part, const char *name, int is_sheet,
                                    long columns, long zoom)
{
    void *bytes = NULL;
    size_t size = 0;
    cli_listener listener = {.progress = NULL};
    cli_listen(&listener);
    psld_status status = is_sheet ? serve_sheet_encode(part, (size_t)columns, (size_t)zoom, &bytes, &size)
                                  : psld_array_encode(part, &bytes, &size);
    if (status != PSLD_OK) cli_failed(status);
    enum MHD_Result result = status == PSLD_OK
                                 ? serve_answer_bytes(request, bytes, size, psld_bytes_free,
                                                      is_sheet ? "image/png" : "application/octet-stream",
                                                      serve_url_get(&request->url, "download") ? name : NULL)
                                 : serve_refuse(request, 422, "%s", listener.message);
    cli_listen(NULL);
    return result;
}

enum MHD_Result serve_jobs_array(serve_request *request)
{
    char name[64];
    long first = 0, count = 1L << 40, columns = 0, zoom = 1;
    const char *file = request->url.segments[3], *dot = strrchr(file, '.');
    int is_sheet = dot && strcmp(dot, ".png") == 0;
    enum MHD_Result result = MHD_NO;
    if (!dot || (!is_sheet && strcmp(dot, ".npy") != 0) || (size_t)(dot - file) >= sizeof name)
        return serve_refuse(request, 404, "expected the name of an array, .npy or .png");
    if (!serve_number(request, "first", 0, 1L << 40, &first) || !serve_number(request, "count", 1, 1L << 40, &count) ||
        !serve_number(request, "columns", 0, 1 << 20, &columns) || !serve_number(request, "zoom", 1, 16, &zoom))
        return serve_refuse(request, 400, "expected whole numbers: first from 0, count from 1, columns, zoom up to 16");
    snprintf(name, sizeof name, "%.*s", (int)(dot - file), file);
    serve_job *job = serve_job_of(request, &result);
    if (!job) return result;
    psld_array *part = serve_job_part(job, name, (size_t)first, (size_t)count);
    serve_job_release(job);
    if (!part) return serve_refuse(request, 404, "the job has no array %s with these items, or is not finished", name);
    result = answer_array(request, part, file, is_sheet, columns, zoom);
    psld_array_free(part);
    return result;
}
