/* Reading many items at once, on several threads. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/threads.h"
#include "data/data_private.h"

enum { ERROR_SIZE = 1024 };

static void mirror_image(uint8_t *pixels, size_t height, size_t width)
{
    for (size_t y = 0; y < height; y++, pixels += width)
        for (size_t i = 0, j = width - 1; i < j; i++, j--) {
            uint8_t swap = pixels[i];
            pixels[i] = pixels[j];
            pixels[j] = swap;
        }
}

static psld_status fetch_item(psld_data *data, uint64_t index, int flip, float *x, int32_t *label)
{
    uint64_t found = index;
    if (!psld_data_is_image(data)) {
        PSLD_TRY(data->items->ops->numbers(data->items, index, x));
    } else {
        /* The pixels go to the last quarter of x and are converted from the front: each is read before a number
         * overwrites it. */
        uint8_t *pixels = (uint8_t *)x + data->dim * (sizeof *x - 1);
        PSLD_TRY(psld_data_find_image(data, index, pixels, &found));
        if (flip) mirror_image(pixels, data->shape[0] * data->shape[1], data->shape[2]);
        for (size_t i = 0; i < data->dim; i++) x[i] = data->values[pixels[i]];
    }
    if (label) *label = psld_data_label(data, found);
    return PSLD_OK;
}

static double patience = 6; /* seconds during which reading is tried again after a failure */

void psld_data_set_patience(double seconds)
{
    patience = seconds;
}

typedef struct read_job {
    psld_data *data;
    const uint64_t *index;
    const uint8_t *flip; /* or NULL */
    float *x;
    uint8_t *pixels; /* instead of x; if both are NULL, items are only checked */
    int32_t *label;
    atomic_int warned;   /* a failure was logged and is being tried again */
    atomic_int hopeless; /* the time for trying again was used up by one item */
    pthread_mutex_t lock;
    psld_status status; /* status and text of the first item that failed */
    size_t failed;
    char text[ERROR_SIZE];
} read_job;

static psld_status read_item(read_job *job, size_t i)
{
    psld_data *data = job->data;
    uint64_t found = job->index[i];
    int32_t *label = job->label ? job->label + i : NULL;
    if (!job->x && !job->pixels) return psld_data_check_image(data, found);
    if (job->x) return fetch_item(data, found, job->flip && job->flip[i], job->x + i * data->dim, label);
    PSLD_TRY(psld_data_find_image(data, found, job->pixels + i * data->dim, &found));
    if (label) *label = psld_data_label(data, found);
    return PSLD_OK;
}

/* Tries again for a while if a file cannot be read: a server may come back, a folder may be renamed, open files may be
 * closed. Pauses grow, so that a short failure costs little. */
static psld_status read_with_retries(read_job *job, size_t i)
{
    const double first_pause = 0.1;
    psld_status status = read_item(job, i);
    double pause = first_pause, waited = 0;
    while (status == PSLD_IO && !atomic_load(&job->hopeless)) {
        if (waited >= patience) {
            atomic_store(&job->hopeless, 1);
            break;
        }
        if (atomic_exchange(&job->warned, 1) == 0) psld_log(PSLD_LOG_WARNING, "%s; trying again", psld_error_text());
        nanosleep(&(struct timespec){.tv_sec = (time_t)pause, .tv_nsec = (long)(1e9 * (pause - floor(pause)))}, NULL);
        waited += pause;
        pause *= 2;
        status = read_item(job, i);
    }
    return status;
}

static void read_range(void *context, size_t begin, size_t end)
{
    read_job *job = context;
    for (size_t i = begin; i < end; i++) {
        psld_status status = read_with_retries(job, i);
        if (status == PSLD_OK) continue;
        pthread_mutex_lock(&job->lock);
        if (job->status == PSLD_OK || i < job->failed) {
            job->status = status;
            job->failed = i;
            snprintf(job->text, sizeof job->text, "%s", psld_error_text());
        }
        pthread_mutex_unlock(&job->lock);
        return;
    }
}

static psld_status read_items(psld_data *data, size_t n, const uint64_t *index, const uint8_t *flip, float *x,
                              uint8_t *pixels, int32_t *label)
{
    for (size_t i = 0; i < n; i++)
        if (index[i] >= data->items->count)
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no item %" PRIu64 ", only %" PRIu64, data->path, index[i],
                             data->items->count);
    PSLD_TRY(psld_data_check_broken(data));
    read_job job = {.data = data, .index = index, .flip = flip, .x = x, .pixels = pixels, .label = label};
    pthread_mutex_init(&job.lock, NULL);
    psld_parallel(n, data->cache ? 1 : 64, read_range, &job);
    pthread_mutex_destroy(&job.lock);
    return job.status == PSLD_OK ? PSLD_OK : psld_fail(job.status, "%s", job.text);
}

psld_status psld_data_read(psld_data *data, size_t n, const uint64_t *index, float *x, int32_t *label)
{
    return read_items(data, n, index, NULL, x, NULL, label);
}

psld_status psld_data_fetch(psld_data *data, size_t n, const uint64_t *index, const uint8_t *flip, float *x,
                            int32_t *label)
{
    return read_items(data, n, index, flip, x, NULL, label);
}

psld_status psld_data_read_u8(psld_data *data, size_t n, const uint64_t *index, uint8_t *pixels, int32_t *label)
{
    if (!psld_data_is_image(data))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected images, found vectors", data->path);
    return read_items(data, n, index, NULL, NULL, pixels, label);
}

psld_status psld_data_check(psld_data *data, psld_progress_fn progress, void *user)
{
    enum { BATCH = 256 };
    uint64_t index[BATCH], count = data->items->count;
    if (!data->cache) return PSLD_OK;
    for (uint64_t done = 0; done < count; done += BATCH) {
        size_t n = count - done < BATCH ? (size_t)(count - done) : BATCH;
        for (size_t i = 0; i < n; i++) index[i] = done + i;
        PSLD_TRY(psld_progress(progress, user, done, count));
        PSLD_TRY(read_items(data, n, index, NULL, NULL, NULL, NULL));
    }
    return PSLD_OK;
}
