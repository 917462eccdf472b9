/* Cameras store what the sensor saw and note in the Exif data how the camera was held: orientation 1 is upright, 2
 * to 4 are mirrored or upside down, 5 to 8 lie on their side. Exif data are a TIFF file after "Exif\0\0": a header
 * with its byte order and the offset of a directory, whose entries are 12 bytes each: tag, type, count, value. */
#include <string.h>

#include "base/alloc.h"
#include "io/images/image_private.h"

enum { PREFIX = 6, TIFF_HEADER = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };

static unsigned exif_number(const uint8_t *at, int size, int big_endian)
{
    unsigned value = 0;
    for (int i = 0; i < size; i++) value |= (unsigned)at[big_endian ? size - 1 - i : i] << 8 * i;
    return value;
}

int psld_exif_orientation(const uint8_t *bytes, size_t size)
{
    if (size < PREFIX + TIFF_HEADER || memcmp(bytes, "Exif\0\0", PREFIX) != 0) return 1;
    const uint8_t *tiff = bytes + PREFIX;
    size -= PREFIX;
    int big = tiff[0] == 'M';
    if (memcmp(tiff, big ? "MM" : "II", 2) != 0 || exif_number(tiff + 2, 2, big) != 42) return 1;
    size_t at = exif_number(tiff + 4, 4, big);
    if (at > size - 2) return 1;
    size_t count = exif_number(tiff + at, 2, big), room = (size - at - 2) / ENTRY;
    for (size_t i = 0; i < count && i < room; i++) {
        const uint8_t *entry = tiff + at + 2 + i * ENTRY;
        if (exif_number(entry, 2, big) != ORIENTATION || exif_number(entry + 2, 2, big) != SHORT) continue;
        unsigned value = exif_number(entry + 8, 2, big);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Where the pixel (x, y) of the upright image lies in the stored image of width x height. */
static size_t stored_at(int orientation, size_t x, size_t y, size_t width, size_t height)
{
    size_t right = width - 1, bottom = height - 1;
    switch (orientation) {
    case 2:
        return y * width + (right - x);
    case 3:
        return (bottom - y) * width + (right - x);
    case 4:
        return (bottom - y) * width + x;
    case 5:
        return x * width + y;
    case 6:
        return (bottom - x) * width + y;
    case 7:
        return (bottom - x) * width + (right - y);
    case 8:
        return x * width + (right - y);
    default:
        return y * width + x;
    }
}

psld_status psld_image_orient(const char *origin, int orientation, psld_image *image)
{
    if (orientation == 1) return PSLD_OK;
    psld_image upright = *image;
    size_t channels = (size_t)image->channels;
    if (orientation >= 5) {
        upright.width = image->height;
        upright.height = image->width;
    }
    if (image->pixels) {
        PSLD_TRY(psld_image_allocate(origin, &upright));
        uint8_t *to = upright.pixels;
        for (size_t y = 0; y < upright.height; y++)
            for (size_t x = 0; x < upright.width; x++, to += channels)
                memcpy(to, image->pixels + stored_at(orientation, x, y, image->width, image->height) * channels,
                       channels);
    }
    psld_release(image->pixels);
    *image = upright;
    return PSLD_OK;
}
