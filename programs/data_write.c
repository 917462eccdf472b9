/* Items into one file: arrays, a contact sheet, a plot of points. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

enum { BATCH = 256 };

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* [c][h][w] -> [h][w][c] */
static void data_channels_last(size_t channels, size_t pixels, const unsigned char *from, unsigned char *to)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) to[p * channels + c] = *from++;
}

/* An array for n items: pictures u8 [n, h, w] or [n, h, w, c], as in published sets, others float32 [n, ...]. */
static psld_status make_array(const data_job *job, size_t n, psld_array **x)
{
    size_t shape[PSLD_MAX_RANK + 1] = {n};
    if (psld_data_is_image(job->data)) {
        shape[1] = job->shape[1], shape[2] = job->shape[2], shape[3] = job->shape[0];
        return psld_array_create(PSLD_U8, job->shape[0] == 1 ? 3 : 4, shape, x);
    }
    for (int i = 0; i < job->rank; i++) shape[i + 1] = job->shape[i];
    return psld_array_create(PSLD_F32, job->rank + 1, shape, x);
}

static void cut_to(psld_array *array, size_t n)
{
    array->count = array->count / array->shape[0] * n;
    array->shape[0] = n;
}

/* Reads everything into x and labels; *n: the number of items. */
static psld_status fill_arrays(data_job *job, psld_array *x, psld_array *labels, size_t *n)
{
    int is_image = psld_data_is_image(job->data);
    size_t item = job->dim * (is_image ? 1 : sizeof(float)), got = 1;
    uint64_t index[BATCH];
    unsigned char *batch = malloc(BATCH * item);
    psld_status status = batch ? PSLD_OK : cli_bad_input("out of memory");
    *n = 0;
    while (status == PSLD_OK && got > 0) {
        status = data_next(job, BATCH, !is_image, index, (int32_t *)labels->data + *n, batch, &got);
        unsigned char *to = (unsigned char *)x->data + *n * item;
        if (status == PSLD_OK && !is_image) memcpy(to, batch, got * item);
        for (size_t i = 0; status == PSLD_OK && is_image && i < got; i++)
            data_channels_last(job->shape[0], item / job->shape[0], batch + i * item, to + i * item);
        *n += status == PSLD_OK ? got : 0;
    }
    free(batch);
    return status;
}

/* u8 [classes, longest]: one name per row, followed by zeros. */
static psld_status data_name_classes(const data_job *job, psld_array **names)
{
    size_t shape[2] = {psld_data_classes(job->data), 1};
    for (size_t i = 0; i < shape[0]; i++) {
        size_t length = strlen(psld_data_class(job->data, i));
        if (length > shape[1]) shape[1] = length;
    }
    psld_status status = psld_array_create(PSLD_U8, 2, shape, names);
    if (status != PSLD_OK) return status;
    memset((*names)->data, 0, (*names)->count);
    for (size_t i = 0; i < shape[0]; i++) {
        const char *name = psld_data_class(job->data, i);
        memcpy((char *)(*names)->data + i * shape[1], name, strlen(name));
    }
    return PSLD_OK;
}

static psld_status save_arrays(const data_job *job, const psld_array *x, const psld_array *labels)
{
    static const char *const names[3] = {"images", "labels", "class_names"};
    static const char *const number_names[3] = {"data", "labels", "class_names"};
    const char *out = job->request->out;
    psld_array *classes = NULL;
    if (cli_ends_in(out, ".npy")) return psld_array_save(x, out);
    size_t count = psld_data_classes(job->data) ? 3 : 1;
    psld_status status = count == 3 ? data_name_classes(job, &classes) : PSLD_OK;
    const psld_array *arrays[3] = {x, labels, classes};
    if (status == PSLD_OK)
        status = psld_npz_save(out, count, psld_data_is_image(job->data) ? names : number_names, arrays);
    psld_array_free(classes);
    return status;
}

psld_status data_write_arrays(data_job *job, uint64_t *written)
{
    psld_array *x = NULL, *labels = NULL;
    size_t n = (size_t)data_count_wanted(job);
    if (n == 0) return cli_bad_input("%s: no items to write", job->request->path);
    psld_status status = make_array(job, n, &x);
    if (status == PSLD_OK) status = psld_array_create(PSLD_I32, 1, &n, &labels);
    if (status == PSLD_OK) status = fill_arrays(job, x, labels, &n);
    if (status == PSLD_OK && n == 0) status = cli_bad_input("%s: no image can be read", job->request->path);
    if (status == PSLD_OK) {
        cut_to(x, n);
        cut_to(labels, n);
        status = save_arrays(job, x, labels);
    }
    *written = n;
    psld_array_free(x);
    psld_array_free(labels);
    return status;
}

/* ---- A contact sheet --------------------------------------------------------------------------------------------- */

enum { OF_CLASS = 10, MAX_ROWS = 32, WITHOUT_CLASSES = 64 };

/* The numbers of the items of a sheet; NOTHING: an empty place. */
typedef struct picks {
    uint64_t *index;
    size_t count, columns;
} picks;

#define NOTHING UINT64_MAX

static psld_status reserve_picks(picks *p, size_t count)
{
    p->count = count;
    p->index = malloc(count * sizeof *p->index);
    for (size_t i = 0; p->index && i < count; i++) p->index[i] = NOTHING;
    return p->index ? PSLD_OK : cli_bad_input("out of memory");
}

/* One row per class: its first items. */
static psld_status pick_by_class(const data_job *job, size_t rows, picks *p)
{
    size_t row_of[MAX_ROWS], used[MAX_ROWS] = {0}, row = 0, full = 0;
    psld_status status = reserve_picks(p, rows * OF_CLASS);
    p->columns = OF_CLASS;
    for (size_t c = 0; c < psld_data_classes(job->data) && c < MAX_ROWS; c++)
        row_of[c] = !job->wanted || job->wanted[c] ? row++ : 0;
    for (uint64_t i = 0; status == PSLD_OK && i < psld_data_count(job->data) && full < rows; i++) {
        int32_t label = psld_data_label(job->data, i);
        if (label < 0 || !data_is_wanted(job, i) || used[label] == OF_CLASS) continue;
        p->index[row_of[label] * OF_CLASS + used[label]++] = i;
        full += used[label] == OF_CLASS;
    }
    return status;
}

/* The first items; without -n, some that are evenly chosen. */
static psld_status pick_in_order(const data_job *job, picks *p)
{
    uint64_t count = data_count_wanted(job), most = job->request->n ? count : WITHOUT_CLASSES, seen = 0;
    if (most > count) most = count;
    if (most == 0) return cli_bad_input("%s: no items to show", job->request->path);
    psld_status status = reserve_picks(p, (size_t)most);
    p->columns = 0;
    size_t at = 0;
    for (uint64_t i = 0; status == PSLD_OK && at < most; i++)
        if (data_is_wanted(job, i) && seen++ == at * count / most) p->index[at++] = i;
    return status;
}

static psld_status choose_picks(const data_job *job, picks *p)
{
    size_t classes = psld_data_classes(job->data), rows = 0;
    for (size_t c = 0; c < classes; c++) rows += !job->wanted || job->wanted[c];
    int by_class = rows > 0 && classes <= MAX_ROWS && !job->request->n;
    return by_class ? pick_by_class(job, rows, p) : pick_in_order(job, p);
}

/* Missing and broken items stay white. */
static psld_status read_picks(data_job *job, const picks *p, psld_array *pixels, uint64_t *shown)
{
    psld_status status = PSLD_OK;
    memset(pixels->data, 255, pixels->count);
    for (size_t i = 0; status == PSLD_OK && i < p->count; i++) {
        unsigned char *to = (unsigned char *)pixels->data + i * job->dim;
        if (p->index[i] == NOTHING) continue;
        if (cli_progress_report(&job->progress, i, p->count)) return PSLD_CANCELLED;
        status = data_pixels(job, 1, &p->index[i], to);
        if (status == PSLD_OK && psld_data_is_broken(job->data, p->index[i]))
            memset(to, 255, job->dim);
        else
            ++*shown;
    }
    return status;
}

psld_status data_write_sheet(data_job *job, uint64_t *written)
{
    picks p = {0};
    psld_array *pixels = NULL;
    *written = 0;
    psld_status status = choose_picks(job, &p);
    if (status == PSLD_OK) {
        const size_t shape[4] = {p.count, job->shape[0], job->shape[1], job->shape[2]};
        status = psld_array_create(PSLD_U8, 4, shape, &pixels);
    }
    if (status == PSLD_OK) status = read_picks(job, &p, pixels, written);
    if (status == PSLD_OK) status = sheet_write(pixels, p.columns, job->request->zoom, job->request->out);
    psld_array_free(pixels);
    free(p.index);
    return status;
}

/* ---- Points ------------------------------------------------------------------------------------------------------ */

psld_status data_write_plot(data_job *job, uint64_t *written)
{
    size_t n = (size_t)data_count_wanted(job), got = 1, all[2] = {n, 2};
    uint64_t index[BATCH];
    float batch[2 * BATCH];
    psld_array *points = NULL;
    *written = 0;
    if (n == 0) return cli_bad_input("%s: no items to show", job->request->path);
    psld_status status = psld_array_create(PSLD_F64, 2, all, &points);
    while (status == PSLD_OK && got > 0) {
        status = data_next(job, BATCH, 1, index, NULL, batch, &got);
        for (size_t i = 0; status == PSLD_OK && i < 2 * got; i++)
            ((double *)points->data)[2 * *written + i] = (double)batch[i];
        *written += status == PSLD_OK ? got : 0;
    }
    if (status == PSLD_OK)
        status = psld_plot_points(NULL, points->data, (size_t)*written, job->request->path, job->request->out);
    psld_array_free(points);
    return status;
}
