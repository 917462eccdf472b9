/* A data set in front of its items: shape, classes, cache, and what is broken.
 *
 * Invariants
 *   1. Each image is decoded once and kept as planes [channels][height][width] of the set's shape, unless it costs
 *      nothing to make (no decoding, no fitting).
 *   2. Whether an image is broken is a property of the file: number i stands for the first good image at or after i
 *      (cyclically), whichever thread meets it first. */
#include "data/data.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/threads.h"
#include "data/cache.h"
#include "data/items.h"

enum {
    LOOKS = 32, /* images, at most, that are looked at to tell size and colour of a set */
    TEXT_SIZE = 1024,
};

struct psld_data {
    char *path;
    psld_items *items;
    psld_data_options options; /* pointers in it are not used after opening */
    int rank;
    size_t shape[PSLD_MAX_RANK];
    size_t dim;
    psld_cache *cache;                  /* NULL: images cost nothing, or items are numbers */
    int32_t *new_label;                 /* [items->class_count] where the caller gave an order of classes, or NULL */
    char **classes;                     /* names in the caller's order, or NULL */
    atomic_ullong *sizes;               /* [classes] items of each, but for broken ones */
    size_t stored_height, stored_width; /* of the middle image, as it is */
    atomic_int mixed;                   /* others were found that differ */
    atomic_int fitted;                  /* some were brought to the shape of the set */
    atomic_ullong broken;               /* images */
    float values[256];                  /* v / 127.5 - 1 */
};

void psld_data_defaults(psld_data_options *options)
{
    *options = (psld_data_options){.memory = (size_t)1 << 30};
}

/* ---- Items ------------------------------------------------------------------------------------------------------- */

size_t psld_data_dim(const psld_data *data)
{
    return data->dim;
}

int psld_data_is_image(const psld_data *data)
{
    return data->items->ops->image != NULL;
}

int32_t psld_data_label(const psld_data *data, uint64_t index)
{
    int32_t label = index < data->items->count ? data->items->ops->label(data->items, index) : -1;
    return label >= 0 && data->new_label ? data->new_label[label] : label;
}

/* Makes an image: reads, decodes, brings it to the shape of the set. */
static psld_status make_image(psld_data *data, uint64_t index, uint8_t *pixels)
{
    psld_image image = {0};
    int channels = (int)data->shape[0];
    size_t height = data->shape[1], width = data->shape[2];
    PSLD_TRY(data->items->ops->image(data->items, index, &image));
    psld_status status = PSLD_OK;
    int other_size = image.width != width || image.height != height;
    if (other_size || image.channels > channels) atomic_store(&data->fitted, 1);
    if (other_size && data->options.size == 0)
        status = psld_fail(PSLD_BAD_ARGUMENT,
                           "%s: image %" PRIu64
                           " has %zu x %zu pixels, others %zu x %zu; give a size to bring all of them to",
                           data->path, index, image.width, image.height, width, height);
    if (status == PSLD_OK)
        status = psld_image_fit(&image, channels, width, height, data->options.stretch, data->options.resample, pixels);
    psld_image_release(&image);
    return status;
}

/* What was read and cannot be decoded is wrong with one file and not with the others. A file that cannot be read says
 * nothing about its image: the disk, the network or a limit of the system may be at fault. */
static int is_broken(psld_status status)
{
    return status == PSLD_BAD_INPUT;
}

/* Counts and names an image that cannot be decoded. */
static void note_broken(psld_data *data, uint64_t index)
{
    int32_t label = psld_data_label(data, index);
    atomic_fetch_add(&data->broken, 1);
    if (label >= 0 && !data->items->endless) atomic_fetch_sub(&data->sizes[label], 1);
    psld_log(PSLD_LOG_WARNING, "skipped %s", psld_error_text());
}

static psld_status check_skipped(const psld_data *data)
{
    double part = data->options.skip_limit;
    unsigned long long broken = atomic_load(&data->broken), count = data->items->count;
    if (part <= 0 || (double)broken <= ceil(part * (double)count)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: %llu of %llu images are broken, more than data.skip_limit = %g allows",
                     data->path, broken, count, part);
}

/* Ends what psld_cache_begin began: with the pixels of the image (NULL: not to be kept), or with what went wrong. */
static void end_making(psld_data *data, uint64_t index, psld_status status, const uint8_t *pixels)
{
    psld_cache_state state = status == PSLD_OK && pixels ? PSLD_CACHE_KEPT : PSLD_CACHE_ABSENT;
    if (is_broken(status) && !data->options.strict) {
        state = PSLD_CACHE_BROKEN;
        note_broken(data, index);
    }
    psld_cache_end(data->cache, index, state, pixels);
}

/* The image of exactly this number. *broken says of a failure that it is this image's: a cache that cannot be read is
 * none, and the next image would be no answer to it. `pixels` has room for it. */
static psld_status get_image(psld_data *data, uint64_t index, uint8_t *pixels, int *broken)
{
    psld_cache_state state = data->cache ? psld_cache_begin(data->cache, index) : PSLD_CACHE_ABSENT;
    *broken = state == PSLD_CACHE_BROKEN;
    if (state == PSLD_CACHE_KEPT) return psld_cache_get(data->cache, index, pixels);
    if (*broken) return psld_fail(PSLD_BAD_INPUT, "%s: a broken image", data->path);
    psld_status status = make_image(data, index, pixels);
    *broken = is_broken(status);
    if (data->cache) end_making(data, index, status, data->options.once ? NULL : pixels);
    return status;
}

/* The first good image at or after this number. */
static psld_status find_image(psld_data *data, uint64_t index, uint8_t *pixels, uint64_t *found)
{
    uint64_t count = data->items->count;
    for (uint64_t tried = 0; tried < count; tried++) {
        *found = (index + tried) % count;
        int broken;
        psld_status status = get_image(data, *found, pixels, &broken);
        if (!broken || data->options.strict) return status;
        PSLD_TRY(check_skipped(data));
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: none of the %" PRIu64 " images can be read", data->path, count);
}

static void mirror(uint8_t *pixels, size_t rows, size_t width)
{
    for (size_t y = 0; y < rows; y++, pixels += width)
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
        /* The pixels go to the last quarter of x, from where they are spread forward: each is read before a number is
         * written over it. */
        uint8_t *pixels = (uint8_t *)x + data->dim * (sizeof *x - 1);
        PSLD_TRY(find_image(data, index, pixels, &found));
        if (flip) mirror(pixels, data->shape[0] * data->shape[1], data->shape[2]);
        for (size_t i = 0; i < data->dim; i++) x[i] = data->values[pixels[i]];
    }
    if (label) *label = psld_data_label(data, found);
    return PSLD_OK;
}

int psld_data_is_costly(const psld_data *data)
{
    return data->cache != NULL;
}

void psld_data_prepare(psld_data *data, uint64_t index, uint8_t *pixels)
{
    int broken;
    if (data->cache && psld_cache_state_of(data->cache, index) == PSLD_CACHE_ABSENT)
        (void)get_image(data, index, pixels, &broken);
}

int psld_data_is_prepared(const psld_data *data, uint64_t index)
{
    return !data->cache || psld_cache_state_of(data->cache, index) == PSLD_CACHE_KEPT;
}

/* ---- Reading many ------------------------------------------------------------------------------------------------ */

static double patience = 6; /* seconds for which data that cannot be read are tried again */

void psld_data_set_patience(double seconds)
{
    patience = seconds;
}

typedef struct reading {
    psld_data *data;
    const uint64_t *index;
    const uint8_t *flip; /* or NULL */
    float *x;
    uint8_t *pixels; /* instead of x; with neither, items are checked */
    int32_t *label;
    atomic_int told;     /* that something cannot be read and is tried again */
    atomic_int hopeless; /* one item was tried long enough: the others need not be */
    pthread_mutex_t lock;
    psld_status status; /* of the first item that failed, and its text */
    size_t failed;
    char text[TEXT_SIZE];
} reading;

/* Decodes and forgets: a set may be larger than what there is room for. */
static psld_status check_item(psld_data *data, uint64_t index)
{
    psld_image image = {0};
    psld_cache_state state = psld_cache_begin(data->cache, index);
    if (state != PSLD_CACHE_ABSENT) return PSLD_OK;
    psld_status status = data->items->ops->image(data->items, index, &image);
    if (status == PSLD_OK && (image.height != data->stored_height || image.width != data->stored_width))
        atomic_store(&data->mixed, 1);
    psld_image_release(&image);
    end_making(data, index, status, NULL);
    return is_broken(status) && !data->options.strict ? PSLD_OK : status;
}

static psld_status read_item(reading *r, size_t i)
{
    psld_data *data = r->data;
    uint64_t found = r->index[i];
    int32_t *label = r->label ? r->label + i : NULL;
    if (!r->x && !r->pixels) return check_item(data, found);
    if (r->x) return fetch_item(data, found, r->flip && r->flip[i], r->x + i * data->dim, label);
    PSLD_TRY(find_image(data, found, r->pixels + i * data->dim, &found));
    if (label) *label = psld_data_label(data, found);
    return PSLD_OK;
}

/* What cannot be read may be there again in a moment: a server that was away, a folder that was renamed, too many open
 * files. Pauses grow, so that a short one costs little. */
static psld_status read_patiently(reading *r, size_t i)
{
    const double first_pause = 0.1;
    psld_status status = read_item(r, i);
    double pause = first_pause, waited = 0;
    while (status == PSLD_IO && !atomic_load(&r->hopeless)) {
        if (waited >= patience) {
            atomic_store(&r->hopeless, 1);
            break;
        }
        if (atomic_exchange(&r->told, 1) == 0) psld_log(PSLD_LOG_WARNING, "%s; trying again", psld_error_text());
        nanosleep(&(struct timespec){.tv_sec = (time_t)pause, .tv_nsec = (long)(1e9 * (pause - floor(pause)))}, NULL);
        waited += pause;
        pause *= 2;
        status = read_item(r, i);
    }
    return status;
}

static void read_range(void *context, size_t begin, size_t end)
{
    reading *r = context;
    for (size_t i = begin; i < end; i++) {
        psld_status status = read_patiently(r, i);
        if (status == PSLD_OK) continue;
        pthread_mutex_lock(&r->lock);
        if (r->status == PSLD_OK || i < r->failed) {
            r->status = status;
            r->failed = i;
            snprintf(r->text, sizeof r->text, "%s", psld_error_text());
        }
        pthread_mutex_unlock(&r->lock);
        return;
    }
}

static psld_status read_many(psld_data *data, size_t n, const uint64_t *index, const uint8_t *flip, float *x,
                             uint8_t *pixels, int32_t *label)
{
    for (size_t i = 0; i < n; i++)
        if (index[i] >= data->items->count)
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no item %" PRIu64 ", only %" PRIu64, data->path, index[i],
                             data->items->count);
    PSLD_TRY(check_skipped(data));
    reading r = {.data = data, .index = index, .flip = flip, .x = x, .pixels = pixels, .label = label};
    pthread_mutex_init(&r.lock, NULL);
    psld_parallel(n, data->cache ? 1 : 64, read_range, &r);
    pthread_mutex_destroy(&r.lock);
    return r.status == PSLD_OK ? PSLD_OK : psld_fail(r.status, "%s", r.text);
}

psld_status psld_data_read(psld_data *data, size_t n, const uint64_t *index, float *x, int32_t *label)
{
    return read_many(data, n, index, NULL, x, NULL, label);
}

psld_status psld_data_fetch(psld_data *data, size_t n, const uint64_t *index, const uint8_t *flip, float *x,
                            int32_t *label)
{
    return read_many(data, n, index, flip, x, NULL, label);
}

psld_status psld_data_read_u8(psld_data *data, size_t n, const uint64_t *index, uint8_t *pixels, int32_t *label)
{
    if (!psld_data_is_image(data)) return psld_fail(PSLD_BAD_ARGUMENT, "%s: no images, but numbers", data->path);
    return read_many(data, n, index, NULL, NULL, pixels, label);
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
        PSLD_TRY(read_many(data, n, index, NULL, NULL, NULL, NULL));
    }
    return PSLD_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* By the shorter side, which is that of the largest square. */
static int compare_sizes(const void *first, const void *second)
{
    const psld_image *a = first, *b = second;
    size_t short_a = a->width < a->height ? a->width : a->height, long_a = a->width + a->height - short_a;
    size_t short_b = b->width < b->height ? b->width : b->height, long_b = b->width + b->height - short_b;
    if (short_a != short_b) return short_a < short_b ? -1 : 1;
    return (long_a > long_b) - (long_a < long_b);
}

/* Sizes of some images, evenly chosen, broken ones passed over: at least one, of at most LOOKS. */
static psld_status look_at_some(const psld_data *data, psld_image seen[LOOKS], size_t *count)
{
    const psld_items *items = data->items;
    char why[TEXT_SIZE] = "";
    uint64_t stride = (items->count + LOOKS - 1) / LOOKS, step = stride;
    *count = 0;
    for (uint64_t i = 0; i < items->count; i += step) {
        psld_status status = items->ops->look(items, i, &seen[*count]);
        if (status != PSLD_OK && !is_broken(status)) return status;
        if (status != PSLD_OK && !*why) snprintf(why, sizeof why, "%s", psld_error_text());
        *count += status == PSLD_OK;
        step = *count ? stride : 1; /* any image will do to begin with */
    }
    if (*count) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: no image can be read; the first: %s", data->path, why);
}

/* The shape of a set of images: the size of the middle one of some, so that no odd one decides it; in colour when any of
 * them is. */
static psld_status find_shape(psld_data *data)
{
    const psld_items *items = data->items;
    psld_image seen[LOOKS];
    size_t count;
    int channels = 1;
    PSLD_TRY(look_at_some(data, seen, &count));
    for (size_t i = 0; i < count; i++)
        if (seen[i].channels > channels) channels = seen[i].channels;
    qsort(seen, count, sizeof *seen, compare_sizes);
    data->stored_height = seen[(count - 1) / 2].height;
    data->stored_width = seen[(count - 1) / 2].width;
    data->rank = 3;
    data->shape[0] = (size_t)(data->options.channels ? data->options.channels : channels);
    data->shape[1] = data->options.size ? data->options.size : data->stored_height;
    data->shape[2] = data->options.size ? data->options.size : data->stored_width;
    int as_stored = data->shape[1] == data->stored_height && data->shape[2] == data->stored_width;
    data->dim = data->shape[0] * data->shape[1] * data->shape[2];
    if (!items->costly && as_stored) return PSLD_OK;
    return psld_cache_create(items->count, data->dim, data->options.once ? 0 : data->options.memory,
                             data->options.cache_dir, &data->cache);
}

typedef struct place {
    const char *name;
    size_t at;
} place;

/* By name, then by place: of equal names the first counts. */
static int by_name(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The first of the sorted places with this name, or NULL. */
static const place *find_place(const place *sorted, size_t count, const char *name)
{
    size_t begin = 0, end = count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < count && strcmp(sorted[begin].name, name) == 0 ? &sorted[begin] : NULL;
}

static psld_status find_labels(psld_data *data, const place *sorted)
{
    const psld_items *items = data->items;
    for (size_t i = 0; i < items->class_count; i++) {
        const place *found = find_place(sorted, data->options.class_count, items->classes[i]);
        if (!found)
            return psld_fail(PSLD_BAD_INPUT, "%s: its class %s is not among those given", data->path,
                             items->classes[i]);
        data->new_label[i] = (int32_t)found->at;
    }
    return PSLD_OK;
}

/* Where each of the set's own classes is in the order given. */
static psld_status order_classes(psld_data *data)
{
    const psld_data_options *o = &data->options;
    const psld_items *items = data->items;
    if (!o->classes) return PSLD_OK;
    data->new_label = psld_alloc(items->class_count, sizeof *data->new_label);
    data->classes = psld_alloc(o->class_count, sizeof *data->classes);
    if (!data->new_label || !data->classes) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < o->class_count; i++)
        if (!(data->classes[i] = psld_copy_text(o->classes[i]))) return PSLD_NO_MEMORY;
    place *sorted = psld_alloc(o->class_count, sizeof *sorted);
    if (!sorted) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < o->class_count; i++) sorted[i] = (place){o->classes[i], i};
    if (o->class_count > 1) qsort(sorted, o->class_count, sizeof *sorted, by_name);
    psld_status status = find_labels(data, sorted);
    psld_release(sorted);
    return status;
}

static psld_status count_classes(psld_data *data)
{
    size_t classes = psld_data_classes(data);
    data->sizes = psld_alloc(classes, sizeof *data->sizes);
    if (!data->sizes) return PSLD_NO_MEMORY;
    for (uint64_t i = 0; classes && !data->items->endless && i < data->items->count; i++) {
        int32_t label = psld_data_label(data, i);
        if (label >= 0) atomic_fetch_add(&data->sizes[label], 1);
    }
    return PSLD_OK;
}

static psld_status check_options(const char *path, const psld_data_options *o)
{
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: %d channels, expected 1 (grey), 3 (colour) or 0", path, o->channels);
    if (o->size > 0 && o->size > PSLD_IMAGE_MAX_PIXELS / o->size)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: images of %zu x %zu pixels are more than can be had", path, o->size,
                         o->size);
    if (!psld_resample_at(o->resample))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no filter number %d to resample by", path, o->resample);
    return PSLD_OK;
}

static psld_status open_data(psld_data *data, const char *path)
{
    data->path = psld_copy_text(path);
    if (!data->path) return PSLD_NO_MEMORY;
    PSLD_TRY(check_options(path, &data->options));
    PSLD_TRY(psld_items_open(path, &data->options, &data->items));
    if (data->options.strict && data->items->skipped)
        return psld_fail(PSLD_BAD_INPUT, "%s: %" PRIu64 " names in it lead out of it", path, data->items->skipped);
    for (int v = 0; v < 256; v++) data->values[v] = (float)(v / 127.5 - 1);
    if (psld_data_is_image(data)) {
        PSLD_TRY(find_shape(data));
    } else {
        data->rank = data->items->rank;
        data->dim = 1;
        for (int i = 0; i < data->rank; i++) data->dim *= data->shape[i] = data->items->shape[i];
    }
    PSLD_TRY(order_classes(data));
    return count_classes(data);
}

psld_status psld_data_open(const char *path, const psld_data_options *options, psld_data **data)
{
    *data = NULL;
    psld_data *d = psld_alloc(1, sizeof *d);
    if (!d) return PSLD_NO_MEMORY;
    psld_data_defaults(&d->options);
    if (options) d->options = *options;
    psld_status status = open_data(d, path);
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
    for (size_t i = 0; data->classes && i < data->options.class_count; i++) psld_release(data->classes[i]);
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

/* ---- What it is -------------------------------------------------------------------------------------------------- */

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

size_t psld_data_classes(const psld_data *data)
{
    return data->classes ? data->options.class_count : data->items->class_count;
}

const char *psld_data_class(const psld_data *data, size_t index)
{
    if (index >= psld_data_classes(data)) return NULL;
    return data->classes ? data->classes[index] : data->items->classes[index];
}

uint64_t psld_data_class_count(const psld_data *data, size_t index)
{
    return index < psld_data_classes(data) ? (uint64_t)atomic_load(&data->sizes[index]) : 0;
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
