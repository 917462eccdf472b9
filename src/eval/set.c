#include "eval/set.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/text.h"
#include "data/data.h"
#include "io/tensors/npz.h"
#include "sample/options.h"
#include "sample/sample.h"

enum { ENDLESS_COUNT = 10000, DRAW_AT_ONCE = 64 };

#define ENDLESS (UINT64_C(1) << 31)

static size_t shape_product(const size_t *shape, int rank)
{
    size_t size = 1;
    for (int i = 0; i < rank; i++) size *= shape[i];
    return size;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status open_data_set(const char *path, uint64_t limit, psld_set *set)
{
    psld_data_options options = set->asked;
    options.strict = 1;
    PSLD_TRY(psld_data_open(path, &options, &set->data));
    set->kind = psld_data_is_image(set->data) ? PSLD_SET_IMAGES : PSLD_SET_ROWS;
    set->count = psld_data_count(set->data);
    set->rank = psld_data_shape(set->data, set->shape);
    set->size = shape_product(set->shape, set->rank);
    if (set->kind == PSLD_SET_ROWS) { /* for any shape of items */
        set->rank = 1;
        set->shape[0] = set->size;
    }
    if (set->count >= ENDLESS && limit == 0) set->count = ENDLESS_COUNT;
    return PSLD_OK;
}

/* Opens an array as rows: all dimensions after the first are one. */
static psld_status use_rows(psld_array *loaded, psld_set *set)
{
    psld_status status = loaded->rank >= 2 ? psld_array_convert(loaded, PSLD_F32, &set->rows)
                                           : psld_fail(PSLD_BAD_INPUT, "%s: expected features [n, d]", set->name);
    if (status == PSLD_OK) {
        set->kind = PSLD_SET_ROWS;
        set->count = loaded->shape[0];
        set->rank = 1;
        set->size = set->shape[0] = shape_product(loaded->shape + 1, loaded->rank - 1);
        if (set->count && set->size == 0) status = psld_fail(PSLD_BAD_INPUT, "%s: rows without numbers", set->name);
    }
    psld_array_free(loaded);
    return status;
}

/* Whether the file has `mu` or `sigma`, as only files of statistics do. */
static psld_status is_statistics(const char *path, int *found)
{
    psld_npz *npz;
    *found = 0;
    PSLD_TRY(psld_npz_open(path, &npz));
    for (size_t i = 0; i < psld_npz_size(npz); i++) {
        const char *name = psld_npz_name(npz, i);
        if (strcmp(name, "mu") == 0 || strcmp(name, "sigma") == 0) *found = 1;
    }
    psld_npz_free(npz);
    return PSLD_OK;
}

static psld_status open_npz(const char *path, uint64_t limit, psld_set *set)
{
    int statistics;
    PSLD_TRY(is_statistics(path, &statistics));
    if (!statistics) return open_data_set(path, limit, set);
    set->kind = PSLD_SET_STATISTICS;
    PSLD_TRY(psld_statistics_load(path, &set->statistics));
    set->size = psld_statistics_dim(set->statistics);
    return PSLD_OK;
}

static psld_status open_any(const char *path, uint64_t limit, psld_set *set)
{
    set->name = psld_copy_text(path);
    if (!set->name) return PSLD_NO_MEMORY;
    if (psld_text_ends_in(path, ".npz")) return open_npz(path, limit, set);
    return open_data_set(path, limit, set);
}

static psld_status make_named_set(const char *name, psld_set **set)
{
    *set = psld_alloc(1, sizeof **set);
    if (!*set) return PSLD_NO_MEMORY;
    (*set)->name = psld_copy_text(name);
    if ((*set)->name) return PSLD_OK;
    psld_set_free(*set);
    *set = NULL;
    return PSLD_NO_MEMORY;
}

psld_status psld_set_of_rows(psld_array *rows, const char *name, psld_set **set)
{
    psld_status status = make_named_set(name, set);
    if (status != PSLD_OK) {
        psld_array_free(rows);
        return status;
    }
    status = use_rows(rows, *set);
    if (status == PSLD_OK) return PSLD_OK;
    psld_set_free(*set);
    *set = NULL;
    return status;
}

psld_status psld_set_of_statistics(psld_statistics *statistics, const char *name, psld_set **set)
{
    psld_status status = make_named_set(name, set);
    if (status != PSLD_OK) {
        psld_statistics_free(statistics);
        return status;
    }
    (*set)->kind = PSLD_SET_STATISTICS;
    (*set)->statistics = statistics;
    (*set)->size = psld_statistics_dim(statistics);
    return PSLD_OK;
}

psld_status psld_set_open(const char *path, uint64_t limit, psld_set **set)
{
    return psld_set_open_as(path, limit, NULL, set);
}

psld_status psld_set_open_as(const char *path, uint64_t limit, const psld_data_options *options, psld_set **set)
{
    *set = NULL;
    psld_set *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = PSLD_SIZED_READ(psld_data_options, options, &made->asked, PSLD_DATA_DEFAULTS);
    if (status == PSLD_OK) status = open_any(path, limit, made);
    if (status == PSLD_OK && made->kind != PSLD_SET_STATISTICS) {
        if (made->count == 0) status = psld_fail(PSLD_BAD_INPUT, "%s: the set is empty", path);
        if (status == PSLD_OK && limit > made->count)
            status = psld_fail(PSLD_BAD_INPUT, "%s: has %llu items, %llu were asked for", path,
                               (unsigned long long)made->count, (unsigned long long)limit);
        if (limit) made->count = limit;
    }
    if (status != PSLD_OK)
        psld_set_free(made);
    else
        *set = made;
    return status;
}

/* The set keeps a copy of the labels that the options point to. */
static psld_status keep_labels(psld_set *set)
{
    if (!set->sampling.labels) return PSLD_OK;
    PSLD_TRY(PSLD_SIZED_READ(psld_labels, set->sampling.labels, &set->labels, PSLD_LABELS_DEFAULTS));
    set->sampling.labels = &set->labels;
    if (!set->labels.label) return PSLD_OK;
    if (set->labels.count == 0) return psld_fail(PSLD_BAD_ARGUMENT, "labels: expected at least one");
    set->label = psld_copy_bytes(set->labels.label, set->labels.count * sizeof *set->label);
    set->labels.label = set->label;
    return set->label ? PSLD_OK : PSLD_NO_MEMORY;
}

psld_status psld_set_model(psld_model *model, const psld_sample_options *options, uint64_t count, int floor,
                           psld_set **set)
{
    psld_sample_options own;
    *set = NULL;
    PSLD_TRY(psld_sample_options_read(options, &own));
    if (psld_model_kind_of(model) == PSLD_CLASSIFIER)
        return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample of the model");
    psld_set *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->model = model;
    made->sampling = own;
    made->floor = floor;
    made->count = count;
    made->rank = psld_model_shape(model, made->shape);
    made->size = shape_product(made->shape, made->rank);
    made->kind = made->rank == 3 ? PSLD_SET_IMAGES : PSLD_SET_ROWS;
    made->name = psld_copy_text("samples");
    int images = made->kind == PSLD_SET_IMAGES;
    if (made->name && images) made->images = psld_alloc(count, made->size);
    if (made->name && !images) made->points = psld_alloc(count, made->size * sizeof(float));
    psld_status status = made->images || made->points ? keep_labels(made) : PSLD_NO_MEMORY;
    if (status == PSLD_OK)
        *set = made;
    else
        psld_set_free(made);
    return status;
}

void psld_set_free(psld_set *set)
{
    if (!set) return;
    psld_data_free(set->data);
    psld_array_free(set->rows);
    psld_statistics_free(set->statistics);
    psld_release(set->images);
    psld_release(set->points);
    psld_release(set->label);
    psld_release(set->item);
    psld_release(set->visible);
    psld_release(set->x);
    psld_release(set->name);
    psld_release(set);
}

psld_set_kind psld_set_kind_of(const psld_set *set)
{
    return set->kind;
}

uint64_t psld_set_count(const psld_set *set)
{
    return set->count;
}

int psld_set_fitted(const psld_set *set)
{
    const psld_set *whole = set->whole ? set->whole : set;
    return whole->data && psld_data_fitted(whole->data);
}

uint64_t psld_set_nfe(const psld_set *set)
{
    if (set->whole) return psld_set_nfe(set->whole);
    return set->drawn ? (set->evaluations + set->drawn - 1) / set->drawn : 0;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

static psld_status keep_samples(psld_set *set, const psld_array *x, size_t n)
{
    if (set->kind == PSLD_SET_ROWS) {
        memcpy(set->points + set->drawn * set->size, x->data, n * set->size * sizeof(float));
        return PSLD_OK;
    }
    psld_array *pixels;
    PSLD_TRY(psld_images_from_data(x, set->floor, &pixels));
    memcpy(set->images + set->drawn * set->size, pixels->data, n * set->size);
    psld_array_free(pixels);
    return PSLD_OK;
}

size_t psld_set_batch(const psld_set *set)
{
    size_t about = set->kind == PSLD_SET_ROWS ? 64 * DRAW_AT_ONCE : DRAW_AT_ONCE;
    return psld_batch_size((size_t)set->count, about, (size_t)set->sampling.ode_group);
}

/* Draws the samples up to `end` that are not drawn yet. */
static psld_status draw_until(psld_set *set, uint64_t end)
{
    size_t piece = psld_set_batch(set);
    psld_inpainting inpainting;
    while (set->drawn < end) {
        size_t n = set->count - set->drawn < piece ? (size_t)(set->count - set->drawn) : piece;
        psld_array *x;
        uint64_t nfe;
        psld_sample_options sampling = set->sampling;
        sampling.progress = set->progress;
        sampling.progress_user = set->progress_user;
        if (set->known) {
            PSLD_TRY(psld_set_next_inpainting(set, n, &inpainting));
            sampling.inpainting = &inpainting;
        }
        PSLD_TRY(psld_model_sample(set->model, &sampling, set->drawn, n, NULL, 0, &x, &nfe));
        psld_status status = keep_samples(set, x, n);
        psld_array_free(x);
        PSLD_TRY(status);
        set->drawn += n;
        set->evaluations += nfe * n;
    }
    return PSLD_OK;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

enum { READ_AT_ONCE = 256 };

/* Items first ... first + n - 1 of data, or those of a list at these places. */
static psld_status read_items(psld_set *set, const uint64_t *item, uint64_t first, size_t n, uint8_t *pixels,
                              float *rows)
{
    uint64_t index[READ_AT_ONCE];
    for (size_t done = 0; done < n; done += READ_AT_ONCE) {
        size_t now = n - done < READ_AT_ONCE ? n - done : READ_AT_ONCE;
        for (size_t i = 0; i < now; i++) index[i] = item ? item[first + done + i] : first + done + i;
        psld_status status = pixels ? psld_data_read_u8(set->data, now, index, pixels + done * set->size, NULL)
                                    : psld_data_read(set->data, now, index, rows + done * set->size, NULL);
        if (status != PSLD_OK) return rows ? psld_fail_in(status, "%s", set->name) : status; /* images have names */
    }
    return PSLD_OK;
}

/* Items of a class: in one call for data, one by one for samples. */
static psld_status read_part(psld_set *part, uint64_t first, size_t n, uint8_t *pixels, float *rows)
{
    psld_set *whole = part->whole;
    if (whole->data) return read_items(whole, part->item, first, n, pixels, rows);
    whole->progress = part->progress;
    whole->progress_user = part->progress_user;
    for (size_t i = 0; i < n; i++)
        PSLD_TRY(pixels ? psld_set_read_images(whole, part->item[first + i], 1, pixels + i * part->size)
                        : psld_set_read_rows(whole, part->item[first + i], 1, rows + i * part->size));
    return PSLD_OK;
}

psld_status psld_set_read_images(psld_set *set, uint64_t first, size_t n, uint8_t *pixels)
{
    if (set->whole) return read_part(set, first, n, pixels, NULL);
    if (set->data) return read_items(set, NULL, first, n, pixels, NULL);
    PSLD_TRY(draw_until(set, first + n));
    memcpy(pixels, set->images + first * set->size, n * set->size);
    return PSLD_OK;
}

psld_status psld_set_read_rows(psld_set *set, uint64_t first, size_t n, float *rows)
{
    if (set->whole) return read_part(set, first, n, NULL, rows);
    if (set->data) return read_items(set, NULL, first, n, NULL, rows);
    if (set->model) PSLD_TRY(draw_until(set, first + n));
    const float *from = set->model ? set->points : set->rows->data;
    memcpy(rows, from + first * set->size, n * set->size * sizeof *rows);
    return PSLD_OK;
}
