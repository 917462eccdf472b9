/* Images of a data set: decoded once, fitted to the set's shape, kept in the cache.
 *
 * Whether an image is broken is a property of its file. Number i stands for the first good image at or after i
 * (cyclically), whichever thread reads it first. */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "data/data_private.h"

/* Reads and decodes an image and fits it to the shape of the set. */
static psld_status decode_image(psld_data *data, uint64_t index, uint8_t *pixels)
{
    psld_image image = {0};
    int channels = (int)data->shape[0];
    size_t height = data->shape[1], width = data->shape[2];
    PSLD_TRY(data->items->ops->image(data->items, index, &image));
    psld_status status = PSLD_OK;
    int other_size = image.width != width || image.height != height;
    if (other_size || image.channels > channels) atomic_store(&data->fitted, 1);
    if (other_size && data->options.image_size == 0)
        status = psld_fail(PSLD_BAD_ARGUMENT,
                           "%s: image %" PRIu64 " has %zu x %zu pixels, others %zu x %zu; give a size for all of them",
                           data->path, index, image.width, image.height, width, height);
    if (status == PSLD_OK)
        status = psld_image_fit(&image, channels, width, height, data->options.stretch, data->options.resample, pixels);
    psld_image_release(&image);
    return status;
}

int psld_data_status_is_broken(psld_status status)
{
    return status == PSLD_BAD_INPUT;
}

/* Counts and names an image that cannot be decoded. */
static void report_broken(psld_data *data, uint64_t index)
{
    int32_t label = psld_data_label(data, index);
    atomic_fetch_add(&data->broken, 1);
    if (label >= 0 && !data->items->endless) atomic_fetch_sub(&data->sizes[label], 1);
    psld_log(PSLD_LOG_WARNING, "skipped %s", psld_error_text());
}

psld_status psld_data_check_broken(const psld_data *data)
{
    double part = data->options.skip_limit;
    unsigned long long broken = atomic_load(&data->broken), count = data->items->count;
    if (part <= 0 || (double)broken <= ceil(part * (double)count)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: %llu of %llu images are broken, more than data.skip_limit = %g allows",
                     data->path, broken, count, part);
}

/* Ends what psld_cache_begin began. `pixels` is NULL if the image is not to be kept. */
static void finish_decoding(psld_data *data, uint64_t index, psld_status status, const uint8_t *pixels)
{
    psld_cache_state state = status == PSLD_OK && pixels ? PSLD_CACHE_KEPT : PSLD_CACHE_ABSENT;
    if (psld_data_status_is_broken(status) && !data->options.strict) {
        state = PSLD_CACHE_BROKEN;
        report_broken(data, index);
    }
    psld_cache_end(data->cache, index, state, pixels);
}

/* The image of exactly this number. On failure *broken tells whether the image itself is broken. If only the cache
 * cannot be read, the next image must not be taken: that would hide the failure. */
static psld_status image_at(psld_data *data, uint64_t index, uint8_t *pixels, int *broken)
{
    psld_cache_state state = data->cache ? psld_cache_begin(data->cache, index) : PSLD_CACHE_ABSENT;
    *broken = state == PSLD_CACHE_BROKEN;
    if (state == PSLD_CACHE_KEPT) return psld_cache_get(data->cache, index, pixels);
    if (*broken) return psld_fail(PSLD_BAD_INPUT, "%s: a broken image", data->path);
    psld_status status = decode_image(data, index, pixels);
    *broken = psld_data_status_is_broken(status);
    if (data->cache) finish_decoding(data, index, status, data->options.once ? NULL : pixels);
    return status;
}

psld_status psld_data_find_image(psld_data *data, uint64_t index, uint8_t *pixels, uint64_t *found)
{
    uint64_t count = data->items->count;
    for (uint64_t tried = 0; tried < count; tried++) {
        *found = (index + tried) % count;
        int broken;
        psld_status status = image_at(data, *found, pixels, &broken);
        if (!broken || data->options.strict) return status;
        PSLD_TRY(psld_data_check_broken(data));
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: none of the %" PRIu64 " images can be read", data->path, count);
}

psld_status psld_data_check_image(psld_data *data, uint64_t index)
{
    psld_image image = {0};
    psld_cache_state state = psld_cache_begin(data->cache, index);
    if (state != PSLD_CACHE_ABSENT) return PSLD_OK;
    psld_status status = data->items->ops->image(data->items, index, &image);
    if (status == PSLD_OK && (image.height != data->stored_height || image.width != data->stored_width))
        atomic_store(&data->mixed, 1);
    psld_image_release(&image);
    finish_decoding(data, index, status, NULL);
    return psld_data_status_is_broken(status) && !data->options.strict ? PSLD_OK : status;
}

int psld_data_is_costly(const psld_data *data)
{
    return data->cache != NULL;
}

void psld_data_prepare(psld_data *data, uint64_t index, uint8_t *pixels)
{
    int broken;
    if (data->cache && psld_cache_state_of(data->cache, index) == PSLD_CACHE_ABSENT)
        (void)image_at(data, index, pixels, &broken);
}

int psld_data_is_prepared(const psld_data *data, uint64_t index)
{
    return !data->cache || psld_cache_state_of(data->cache, index) == PSLD_CACHE_KEPT;
}
