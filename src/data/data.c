/* Opening a data set: its items, its shape, its cache. data_decode.c makes images, data_read.c reads many items,
 * data_classes.c has the classes.
 *
 * Each image is decoded once and kept as planes [channels][height][width] of the set's shape, unless it needs neither
 * decoding nor fitting. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "data/data_private.h"

enum {
    SIZES_SEEN = 32, /* at most so many images are examined to choose size and colour of a set */
    ERROR_SIZE = 1024,
};

/* Completes the caller's options by the defaults. */
static psld_status read_data_options(const psld_data_options *options, psld_data_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_data_options, options, own, PSLD_DATA_DEFAULTS));
    PSLD_FILL_UNSET(own->image_size, 0);
    PSLD_FILL_UNSET(own->channels, 0);
    PSLD_FILL_UNSET(own->stretch, 0);
    PSLD_FILL_UNSET(own->resample, PSLD_RESAMPLE_LANCZOS);
    PSLD_FILL_UNSET(own->test, 0);
    PSLD_FILL_UNSET(own->strict, 0);
    PSLD_FILL_UNSET(own->once, 0);
    PSLD_FILL_UNSET(own->memory, (int64_t)1 << 30);
    PSLD_FILL_UNSET(own->skip_limit, 0);
    if (!own->classes) own->class_count = 0;
    return PSLD_OK;
}

/* By the shorter side: it is the side of the largest square. */
static int compare_sizes(const void *first, const void *second)
{
    const psld_image *a = first, *b = second;
    size_t short_a = a->width < a->height ? a->width : a->height, long_a = a->width + a->height - short_a;
    size_t short_b = b->width < b->height ? b->width : b->height, long_b = b->width + b->height - short_b;
    if (short_a != short_b) return short_a < short_b ? -1 : 1;
    return (long_a > long_b) - (long_a < long_b);
}

/* Sizes of 1 to SIZES_SEEN images, evenly spaced; broken ones are skipped. */
static psld_status sample_sizes(const psld_data *data, psld_image seen[SIZES_SEEN], size_t *count)
{
    const psld_items *items = data->items;
    char why[ERROR_SIZE] = "";
    uint64_t stride = (items->count + SIZES_SEEN - 1) / SIZES_SEEN, step = stride;
    *count = 0;
    for (uint64_t i = 0; i < items->count; i += step) {
        psld_status status = items->ops->image_size(items, i, &seen[*count]);
        if (status != PSLD_OK && !psld_data_status_is_broken(status)) return status;
        if (status != PSLD_OK && !*why) snprintf(why, sizeof why, "%s", psld_error_text());
        *count += status == PSLD_OK;
        step = *count ? stride : 1; /* start with any image */
    }
    if (*count) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: no image can be read; the first: %s", data->path, why);
}

/* The shape of a set of images: the median size of some of them, so that an unusual one does not decide it; in colour
 * if any of them is. */
static psld_status find_shape(psld_data *data)
{
    const psld_items *items = data->items;
    psld_image seen[SIZES_SEEN];
    size_t count;
    int channels = 1;
    PSLD_TRY(sample_sizes(data, seen, &count));
    for (size_t i = 0; i < count; i++)
        if (seen[i].channels > channels) channels = seen[i].channels;
    qsort(seen, count, sizeof *seen, compare_sizes);
    data->stored_height = seen[(count - 1) / 2].height;
    data->stored_width = seen[(count - 1) / 2].width;
    data->rank = 3;
    data->shape[0] = (size_t)(data->options.channels ? data->options.channels : channels);
    size_t side = (size_t)data->options.image_size;
    data->shape[1] = side ? side : data->stored_height;
    data->shape[2] = side ? side : data->stored_width;
    int as_stored = data->shape[1] == data->stored_height && data->shape[2] == data->stored_width;
    data->dim = data->shape[0] * data->shape[1] * data->shape[2];
    if (!items->costly && as_stored) return PSLD_OK;
    return psld_cache_create(items->count, data->dim, data->options.once ? 0 : (size_t)data->options.memory,
                             data->options.cache_dir, &data->cache);
}

static psld_status check_data_options(const char *path, const psld_data_options *o)
{
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: %d channels, expected 1 (grey), 3 (colour) or 0", path, o->channels);
    if (o->image_size < 0 || o->class_count < 0 || o->memory < 0)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "%s: image_size %d, class_count %d, memory %" PRId64 ": expected at least 0 of each", path,
                         o->image_size, o->class_count, o->memory);
    if (o->image_size > 0 && (size_t)o->image_size > PSLD_IMAGE_MAX_PIXELS / (size_t)o->image_size)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: images of %d x %d pixels are too large; expected at most %d pixels",
                         path, o->image_size, o->image_size, (int)PSLD_IMAGE_MAX_PIXELS);
    if (!psld_resample_at(o->resample))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: unknown resample filter, number %d", path, o->resample);
    return PSLD_OK;
}

static psld_status data_open(psld_data *data, const char *path)
{
    data->path = psld_copy_text(path);
    if (!data->path) return PSLD_NO_MEMORY;
    PSLD_TRY(check_data_options(path, &data->options));
    PSLD_TRY(psld_items_open(path, &data->options, &data->items));
    if (data->options.strict && data->items->skipped)
        return psld_fail(PSLD_BAD_INPUT, "%s: %" PRIu64 " names in it point outside of it", path, data->items->skipped);
    for (int v = 0; v < 256; v++) data->values[v] = (float)(v / 127.5 - 1);
    if (psld_data_is_image(data)) {
        PSLD_TRY(find_shape(data));
    } else {
        data->rank = data->items->rank;
        data->dim = 1;
        for (int i = 0; i < data->rank; i++) data->dim *= data->shape[i] = data->items->shape[i];
    }
    PSLD_TRY(psld_data_order_classes(data));
    return psld_data_count_classes(data);
}

psld_status psld_data_open(const char *path, const psld_data_options *options, psld_data **data)
{
    *data = NULL;
    psld_data *d = psld_alloc(1, sizeof *d);
    if (!d) return PSLD_NO_MEMORY;
    psld_status status = read_data_options(options, &d->options);
    if (status == PSLD_OK) status = data_open(d, path);
    if (status != PSLD_OK) {
        psld_data_free(d);
        return status;
    }
    *data = d;
    return PSLD_OK;
}

void psld_data_free(psld_data *data)
{
    if (!data) return;
    for (size_t i = 0; data->classes && i < (size_t)data->options.class_count; i++) psld_release(data->classes[i]);
    psld_release(data->classes);
    psld_release(data->new_label);
    psld_release(data->sizes);
    psld_cache_free(data->cache);
    psld_items_free(data->items);
    psld_release(data->path);
    psld_release(data);
}

const char *psld_data_name(const psld_data *data, uint64_t index)
{
    const psld_items *items = data->items;
    return items->ops->name && index < items->count ? items->ops->name(items, index) : NULL;
}

int psld_data_is_broken(const psld_data *data, uint64_t index)
{
    return data->cache && index < data->items->count && psld_cache_state_of(data->cache, index) == PSLD_CACHE_BROKEN;
}

size_t psld_data_dim(const psld_data *data)
{
    return data->dim;
}

int psld_data_is_image(const psld_data *data)
{
    return data->items->ops->image != NULL;
}

const char *psld_data_kind(const psld_data *data)
{
    return data->items->kind;
}

uint64_t psld_data_count(const psld_data *data)
{
    return data->items->count;
}

int psld_data_shape(const psld_data *data, size_t shape[PSLD_MAX_RANK])
{
    memcpy(shape, data->shape, sizeof data->shape);
    return data->rank;
}

uint64_t psld_data_skipped(const psld_data *data)
{
    return (uint64_t)atomic_load(&data->broken) + data->items->skipped;
}

uint64_t psld_data_good(const psld_data *data)
{
    return data->items->count - (uint64_t)atomic_load(&data->broken);
}

int psld_data_fitted(const psld_data *data)
{
    return atomic_load(&data->fitted);
}

int psld_data_mixed(const psld_data *data)
{
    return atomic_load(&data->mixed);
}
