/* Images as arrays [channels, height, width]: the public calls. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/file.h"
#include "io/images/image.h"
#include "psld_data.h"

/* Pixels between the images of a grid, and around them. */
enum { GAP = 2, GAP_COLOUR = 255 };

enum { LARGEST_FILE = 1 << 30 };

static psld_status check_images(const psld_array *images, int rank, const char *shape, const char *path)
{
    if (images->type != PSLD_U8 || images->rank != rank)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected u8 %s to write", path, shape);
    size_t channels = images->shape[rank - 3];
    if (channels != 1 && channels != 3)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected images of 1 or 3 channels, not of %zu", path, channels);
    if (images->count == 0) return psld_fail(PSLD_BAD_ARGUMENT, "%s: an image without pixels", path);
    return PSLD_OK;
}

/* Between [channels][height][width] and [height][width][channels], whose rows may be `stride` pixels long. */
static void interleave(const uint8_t *planes, size_t channels, size_t height, size_t width, size_t stride, uint8_t *to)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++) to[(y * stride + x) * channels + c] = *planes++;
}

psld_status psld_image_load(const char *path, psld_array **image)
{
    *image = NULL;
    char *bytes = NULL;
    size_t size = 0;
    psld_image decoded = {0};
    psld_array *array = NULL;
    PSLD_TRY(psld_file_read(path, LARGEST_FILE, &bytes, &size));
    psld_status status = psld_image_decode(bytes, size, path, &decoded);
    psld_release(bytes);
    if (status != PSLD_OK) return status;
    const size_t shape[3] = {(size_t)decoded.channels, decoded.height, decoded.width};
    status = psld_array_create(PSLD_U8, 3, shape, &array);
    if (status == PSLD_OK)
        status = psld_image_fit(&decoded, decoded.channels, decoded.width, decoded.height, 1, PSLD_RESAMPLE_LANCZOS,
                                array->data);
    psld_image_release(&decoded);
    if (status != PSLD_OK) {
        psld_array_free(array);
        return status;
    }
    *image = array;
    return PSLD_OK;
}

psld_status psld_image_inspect(const char *path, const char **format, size_t shape[3])
{
    *format = NULL;
    char *bytes = NULL;
    size_t size = 0;
    psld_image image = {0};
    PSLD_TRY(psld_file_read(path, LARGEST_FILE, &bytes, &size));
    psld_status status = psld_image_header(bytes, size, path, &image);
    if (status == PSLD_OK) {
        *format = psld_image_format(bytes, size);
        shape[0] = (size_t)image.channels;
        shape[1] = image.height;
        shape[2] = image.width;
    }
    psld_release(bytes);
    return status;
}

psld_status psld_image_save(const psld_array *image, const char *path)
{
    PSLD_TRY(check_images(image, 3, "[channels, height, width]", path));
    size_t channels = image->shape[0], height = image->shape[1], width = image->shape[2];
    uint8_t *pixels = psld_alloc(image->count, 1);
    if (!pixels) return psld_fail_in(PSLD_NO_MEMORY, "%s", path);
    interleave(image->data, channels, height, width, width, pixels);
    psld_status status = psld_image_write(path, width, height, (int)channels, pixels);
    psld_release(pixels);
    return status;
}

psld_status psld_image_encode(const psld_array *image, void **bytes, size_t *size)
{
    *bytes = NULL;
    PSLD_TRY(check_images(image, 3, "[channels, height, width]", "PNG"));
    size_t channels = image->shape[0], height = image->shape[1], width = image->shape[2];
    uint8_t *pixels = psld_alloc(image->count, 1);
    if (!pixels) return psld_fail_in(PSLD_NO_MEMORY, "PNG");
    interleave(image->data, channels, height, width, width, pixels);
    psld_status status = psld_image_pack("PNG", width, height, (int)channels, pixels, bytes, size);
    psld_release(pixels);
    return status;
}

/* The sizes of the whole grid; 0 when they cannot be counted. */
static size_t grid_pixels(size_t rows, size_t columns, size_t height, size_t width, size_t *all_high, size_t *all_wide)
{
    size_t pixels = 0;
    if (__builtin_add_overflow(height, GAP, &height) || __builtin_mul_overflow(rows, height, all_high) ||
        __builtin_add_overflow(*all_high, GAP, all_high))
        return 0;
    if (__builtin_add_overflow(width, GAP, &width) || __builtin_mul_overflow(columns, width, all_wide) ||
        __builtin_add_overflow(*all_wide, GAP, all_wide))
        return 0;
    return __builtin_mul_overflow(*all_high, *all_wide, &pixels) ? 0 : pixels;
}

/* The pixels [height][width][channels] of a sheet; messages begin with `where`. Release `pixels`. */
static psld_status draw_sheet(const psld_array *images, size_t columns, const char *where, psld_image *sheet)
{
    PSLD_TRY(check_images(images, 4, "[n, channels, height, width]", where));
    size_t n = images->shape[0], channels = images->shape[1], height = images->shape[2], width = images->shape[3];
    if (columns == 0) columns = (size_t)ceil(sqrt((double)n));
    if (columns > n) columns = n;
    size_t high = 0, wide = 0, pixels = grid_pixels((n + columns - 1) / columns, columns, height, width, &high, &wide);
    if (pixels == 0) return psld_fail(PSLD_BAD_ARGUMENT, "%s: a grid of too many pixels", where);
    uint8_t *canvas = psld_alloc(pixels, channels);
    if (!canvas) return psld_fail_in(PSLD_NO_MEMORY, "%s", where);
    for (size_t i = 0; i < pixels * channels; i++) canvas[i] = GAP_COLOUR;
    for (size_t i = 0; i < n; i++) {
        size_t top = GAP + i / columns * (height + GAP), left = GAP + i % columns * (width + GAP);
        const uint8_t *planes = (const uint8_t *)images->data + i * channels * height * width;
        interleave(planes, channels, height, width, wide, canvas + (top * wide + left) * channels);
    }
    *sheet = (psld_image){.width = wide, .height = high, .channels = (int)channels, .pixels = canvas};
    return PSLD_OK;
}

psld_status psld_image_grid(const psld_array *images, size_t columns, const char *path)
{
    psld_image sheet;
    PSLD_TRY(draw_sheet(images, columns, path, &sheet));
    psld_status status = psld_image_write(path, sheet.width, sheet.height, sheet.channels, sheet.pixels);
    psld_release(sheet.pixels);
    return status;
}

psld_status psld_images_sheet(const psld_array *images, size_t columns, psld_array **sheet)
{
    psld_image drawn;
    *sheet = NULL;
    PSLD_TRY(draw_sheet(images, columns, "sheet", &drawn));
    size_t channels = (size_t)drawn.channels, shape[3] = {channels, drawn.height, drawn.width};
    psld_status status = psld_array_create(PSLD_U8, 3, shape, sheet);
    if (status == PSLD_OK)
        status =
            psld_image_fit(&drawn, drawn.channels, drawn.width, drawn.height, 1, PSLD_RESAMPLE_LANCZOS, (*sheet)->data);
    if (status != PSLD_OK) psld_array_free(*sheet), *sheet = NULL;
    psld_release(drawn.pixels);
    return status;
}

/* One row of pixels, each repeated, and the row itself as often. */
static uint8_t *enlarge_row(const uint8_t *from, size_t width, size_t factor, uint8_t *to)
{
    uint8_t *row = to;
    for (size_t x = 0; x < width; x++, to += factor) memset(to, from[x], factor);
    for (size_t i = 1; i < factor; i++, to += width * factor) memcpy(to, row, width * factor);
    return to;
}

psld_status psld_images_enlarge(const psld_array *images, size_t factor, psld_array **larger)
{
    *larger = NULL;
    int rank = images->rank;
    if (images->type != PSLD_U8 || rank < 2)
        return psld_fail(PSLD_BAD_ARGUMENT, "enlarge: expected u8 [..., height, width]");
    if (factor < 1 || factor > PSLD_MAX_ZOOM)
        return psld_fail(PSLD_BAD_ARGUMENT, "enlarge: expected a factor from 1 to %d, found %zu", PSLD_MAX_ZOOM,
                         factor);
    size_t shape[PSLD_MAX_RANK], width = images->shape[rank - 1];
    memcpy(shape, images->shape, sizeof shape);
    for (int i = rank - 2; i < rank; i++)
        if (__builtin_mul_overflow(shape[i], factor, &shape[i]))
            return psld_fail(PSLD_BAD_ARGUMENT, "enlarge: images of too many pixels");
    PSLD_TRY(psld_array_create(PSLD_U8, rank, shape, larger));
    const uint8_t *from = images->data;
    uint8_t *to = (*larger)->data;
    for (size_t row = 0; width > 0 && row < images->count / width; row++)
        to = enlarge_row(from + row * width, width, factor, to);
    return PSLD_OK;
}
