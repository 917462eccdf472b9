/* Image files: PNG, JPEG and WebP are read, PNG is written.
 *
 * A decoded image is grey (1 channel) or colour (3 channels). Everything else is converted: 16 bits are scaled to 8,
 * palettes are looked up, transparency is composed on white, CMYK becomes RGB, a JPEG is rotated as its Exif
 * orientation says, and only the first frame of an animation is used. */
#ifndef PSLD_IO_IMAGE_H
#define PSLD_IO_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The largest size a header may claim. More is refused before memory is allocated. */
#define PSLD_IMAGE_MAX_PIXELS ((size_t)100 * 1000 * 1000)

typedef struct psld_image {
    size_t width, height;
    int channels;    /* 1 or 3 */
    uint8_t *pixels; /* [height][width][channels] */
} psld_image;

/* Decodes a whole file; `origin` names it in messages. Release with psld_image_release. Thread-safe. */
psld_status psld_image_decode(const void *bytes, size_t size, const char *origin, psld_image *image);
/* Reads only the header; the pixels stay NULL. */
psld_status psld_image_header(const void *bytes, size_t size, const char *origin, psld_image *image);
/* "PNG", "JPEG", "WebP", or NULL. */
const char *psld_image_format(const void *bytes, size_t size);
/* Harmless if all fields are 0. */
void psld_image_release(psld_image *image);

/* Whether a name has the ending of an image file: .png, .jpg, .jpeg or .webp in any case. */
int psld_image_name(const char *name);

/* Writes a PNG, atomically; pixels as in psld_image, channels 1 or 3. */
psld_status psld_image_write(const char *path, size_t width, size_t height, int channels, const uint8_t *pixels);

/* The same into memory: release with psld_release. `origin` names it in messages. */
psld_status psld_image_pack(const char *origin, size_t width, size_t height, int channels, const uint8_t *pixels,
                            void **bytes, size_t *size);

/* Converts an image to planes u8 [channels][height][width]: grey by the luma of ITU-R BT.601, colour from grey by
 * repeating it. If sizes differ it is resampled by a filter (psld_resample), from the whole image (stretch) or from
 * the largest central part with the right proportions. */
psld_status psld_image_fit(const psld_image *image, int channels, size_t width, size_t height, int stretch,
                           int resampling, uint8_t *planes);

#endif
