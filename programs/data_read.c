/* Choosing items of a set by class and number, and reading them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Index of the class with this name; the number of classes if there is none. */
static size_t find_data_class(const psld_data *data, const char *name, size_t length)
{
    size_t i = 0, classes = psld_data_classes(data);
    while (i < classes &&
           (strlen(psld_data_class(data, i)) != length || strncmp(psld_data_class(data, i), name, length) != 0))
        i++;
    return i;
}

static psld_status choose_classes(data_job *job)
{
    size_t classes = psld_data_classes(job->data);
    const char *name = job->request->classes;
    if (!name) return PSLD_OK;
    if (classes == 0) return cli_bad_input("--class: %s has no classes", job->request->path);
    job->wanted = calloc(classes, 1);
    if (!job->wanted) return cli_bad_input("out of memory");
    for (; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t length = strcspn(name, ","), at = find_data_class(job->data, name, length);
        if (at == classes)
            return cli_bad_input("--class: %s has no class \"%.*s\"; psld data %s lists them", job->request->path,
                                 (int)length, name, job->request->path);
        job->wanted[at] = 1;
    }
    return PSLD_OK;
}

static psld_status limit_classes(data_job *job)
{
    size_t classes = psld_data_classes(job->data);
    if (!job->request->per_class) return PSLD_OK;
    if (classes == 0) return cli_bad_input("--per-class: %s has no classes", job->request->path);
    job->left = malloc(classes * sizeof *job->left);
    if (!job->left) return cli_bad_input("out of memory");
    for (size_t i = 0; i < classes; i++) job->left[i] = (uint64_t)job->request->per_class;
    return PSLD_OK;
}

psld_status data_open(const data_request *request, data_job *job)
{
    enum { OF_ENDLESS = 1000 };
    *job = (data_job){.request = request, .dim = 1};
    psld_status status = psld_data_open(request->path, &request->options, &job->data);
    if (status != PSLD_OK) return status;
    job->rank = psld_data_shape(job->data, job->shape);
    for (int i = 0; i < job->rank; i++) job->dim *= job->shape[i];
    job->is_picture = psld_data_is_image(job->data) || (job->rank == 3 && (job->shape[0] == 1 || job->shape[0] == 3));
    int endless = psld_data_count(job->data) >= (uint64_t)1 << 32;
    job->most = request->n ? (uint64_t)request->n : endless ? OF_ENDLESS : psld_data_count(job->data);
    status = choose_classes(job);
    return status == PSLD_OK ? limit_classes(job) : status;
}

void data_close(data_job *job)
{
    free(job->wanted);
    free(job->left);
    psld_data_free(job->data);
    job->wanted = NULL;
    job->left = NULL;
    job->data = NULL;
}

int data_is_wanted(const data_job *job, uint64_t index)
{
    if (!job->wanted) return 1;
    int32_t label = psld_data_label(job->data, index);
    return label >= 0 && job->wanted[label];
}

uint64_t data_count_wanted(const data_job *job)
{
    uint64_t count = psld_data_count(job->data), wanted = 0, of_all = 0;
    if (job->left) { /* at most the items of each class, or the limit per class */
        for (size_t c = 0; c < psld_data_classes(job->data); c++) {
            uint64_t has = psld_data_class_count(job->data, c);
            if (!job->wanted || job->wanted[c]) of_all += has && has < job->left[c] ? has : job->left[c];
        }
        return of_all < job->most ? of_all : job->most;
    }
    if (!job->wanted) return count < job->most ? count : job->most;
    for (uint64_t i = 0; i < count && wanted < job->most; i++) wanted += (uint64_t)data_is_wanted(job, i);
    return wanted;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

psld_status data_pixels(data_job *job, size_t n, const uint64_t *index, unsigned char *pixels)
{
    const size_t shape[2] = {n, job->dim};
    psld_array *numbers = NULL, *made = NULL;
    if (psld_data_is_image(job->data)) return psld_data_read_u8(job->data, n, index, pixels, NULL);
    psld_status status = psld_array_create(PSLD_F32, 2, shape, &numbers);
    if (status == PSLD_OK) status = psld_data_read(job->data, n, index, numbers->data, NULL);
    if (status == PSLD_OK) status = psld_images_from_data(numbers, 0, &made);
    if (status == PSLD_OK) memcpy(pixels, made->data, made->count);
    psld_array_free(numbers);
    psld_array_free(made);
    return status;
}

/* Whether an item is taken: it is of a chosen class whose limit is not reached. */
static int is_item_taken(data_job *job, uint64_t index)
{
    if (!data_is_wanted(job, index)) return 0;
    if (!job->left) return 1;
    int32_t label = psld_data_label(job->data, index);
    return label >= 0 && job->left[label] > 0 ? (job->left[label]--, 1) : 0;
}

/* Moves good items to the front. */
static size_t leave_out_broken(const data_job *job, size_t n, size_t item, uint64_t *index, unsigned char *items)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (psld_data_is_broken(job->data, index[i])) {
            if (job->left)
                job->left[psld_data_label(job->data, index[i])]++; /* a broken item is replaced by the next one */
            continue;
        }
        index[kept] = index[i];
        if (kept != i) memmove(items + kept * item, items + i * item, item);
        kept++;
    }
    return kept;
}

psld_status data_next(data_job *job, size_t room, int as_numbers, uint64_t *index, int32_t *label, void *items,
                      size_t *got)
{
    uint64_t count = psld_data_count(job->data);
    *got = 0;
    while (*got == 0 && job->next < count && job->taken < job->most) {
        size_t n = 0;
        if (cli_progress_report(&job->progress, job->next, count < job->most ? count : job->most))
            return PSLD_CANCELLED;
        for (; job->next < count && n < room && n < job->most - job->taken; job->next++)
            if (is_item_taken(job, job->next)) index[n++] = job->next;
        psld_status status = n == 0       ? PSLD_OK
                             : as_numbers ? psld_data_read(job->data, n, index, items, NULL)
                                          : data_pixels(job, n, index, items);
        if (status != PSLD_OK) return status;
        *got = leave_out_broken(job, n, job->dim * (as_numbers ? sizeof(float) : 1), index, items);
    }
    for (size_t i = 0; label && i < *got; i++) label[i] = psld_data_label(job->data, index[i]);
    job->taken += *got;
    return PSLD_OK;
}
