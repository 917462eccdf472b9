#include "io/images/image.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/images/image_private.h"

/* ---- Formats ----------------------------------------------------------------------------------------------------- */

/* A format is recognised by its first bytes: `magic`, and `second` at offset `place`. */
static const struct {
    const char *name, *magic, *second;
    size_t length, place, second_length;
    psld_image_fn decode;
} formats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", "", 8, 0, 0, psld_png_decode},
    {"JPEG", "\xff\xd8\xff", "", 3, 0, 0, psld_jpeg_decode},
    {"WebP", "RIFF", "WEBP", 4, 8, 4, psld_webp_decode},
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static int has_at(const uint8_t *bytes, size_t size, size_t place, const char *text, size_t length)
{
    return size >= place + length && memcmp(bytes + place, text, length) == 0;
}

/* The index of a format in the table; FORMAT_COUNT: unknown. */
static size_t find_format(const void *bytes, size_t size)
{
    size_t i = 0;
    while (i < FORMAT_COUNT && !(has_at(bytes, size, 0, formats[i].magic, formats[i].length) &&
                                 has_at(bytes, size, formats[i].place, formats[i].second, formats[i].second_length)))
        i++;
    return i;
}

const char *psld_image_format(const void *bytes, size_t size)
{
    size_t i = find_format(bytes, size);
    return i < FORMAT_COUNT ? formats[i].name : NULL;
}

static psld_status decode_by_format(const void *bytes, size_t size, const char *origin, int look, psld_image *image)
{
    *image = (psld_image){0};
    size_t i = find_format(bytes, size);
    if (i < FORMAT_COUNT) {
        psld_status status = formats[i].decode(bytes, size, origin, look, image);
        if (status != PSLD_OK) psld_image_release(image);
        return status;
    }
    if (size == 0) return psld_fail(PSLD_BAD_INPUT, "%s: an empty file, expected an image", origin);
    return psld_fail(PSLD_BAD_INPUT, "%s: not an image, expected PNG, JPEG or WebP", origin);
}

psld_status psld_image_decode(const void *bytes, size_t size, const char *origin, psld_image *image)
{
    return decode_by_format(bytes, size, origin, 0, image);
}

psld_status psld_image_header(const void *bytes, size_t size, const char *origin, psld_image *image)
{
    return decode_by_format(bytes, size, origin, 1, image);
}

void psld_image_release(psld_image *image)
{
    psld_release(image->pixels);
    *image = (psld_image){0};
}

int psld_image_name(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".webp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (psld_text_same(dot, endings[i])) return 1;
    return 0;
}

/* ---- What the formats share -------------------------------------------------------------------------------------- */

psld_status psld_image_check_size(const char *origin, size_t width, size_t height, int channels, psld_image *image)
{
    if (width == 0 || height == 0) return psld_fail(PSLD_BAD_INPUT, "%s: an image without pixels", origin);
    if (width > PSLD_IMAGE_MAX_PIXELS / height)
        return psld_fail(PSLD_BAD_INPUT, "%s: an image of %zu x %zu pixels, expected at most %zu in all", origin, width,
                         height, PSLD_IMAGE_MAX_PIXELS);
    *image = (psld_image){.width = width, .height = height, .channels = channels};
    return PSLD_OK;
}

psld_status psld_image_allocate(const char *origin, psld_image *image)
{
    image->pixels = psld_alloc(image->width * image->height, (size_t)image->channels);
    return image->pixels ? PSLD_OK : psld_fail_in(PSLD_NO_MEMORY, "%s", origin);
}

void psld_image_blend_white(const uint8_t *from, size_t count, int channels, uint8_t *to)
{
    for (size_t i = 0; i < count; i++) {
        unsigned opacity = from[channels];
        for (int c = 0; c < channels; c++) *to++ = (uint8_t)((from[c] * opacity + 255 * (255 - opacity) + 127) / 255);
        from += channels + 1;
    }
}
