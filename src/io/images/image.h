/* Images in files, as bytes in memory: PNG, JPEG and WebP are read, PNG is written.
 *
 * A decoded image is grey (1 channel) or colour (3). What else files may have is brought to that: 16 bits are scaled to
 * 8, palettes are looked up, transparency is laid on white, CMYK is converted, a JPEG is turned as its Exif orientation
 * says, and of an animation the first frame is taken. */
#ifndef PSLD_IO_IMAGE_H
#define PSLD_IO_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a header may ask for: more is refused before any memory is asked for. */
#define PSLD_IMAGE_MAX_PIXELS ((size_t)100 * 1000 * 1000)

typedef struct psld_image {
    size_t width, height;
    int channels;    /* 1 or 3 */
    uint8_t *pixels; /* [height][width][channels] */
} psld_image;

/* The image of a whole file; `origin` names it in messages. Release with psld_image_release. Any thread. */
psld_status psld_image_decode(const void *bytes, size_t size, const char *origin, psld_image *image);
/* The same up to the pixels, which are left NULL. Nothing but the header is looked at. */
psld_status psld_image_header(const void *bytes, size_t size, const char *origin, psld_image *image);
/* "PNG", "JPEG", "WebP", or NULL. */
const char *psld_image_format(const void *bytes, size_t size);
/* Harmless on one that is all 0. */
void psld_image_release(psld_image *image);

/* Whether a name ends like that of an image file: .png, .jpg, .jpeg, .webp in any case. */
int psld_image_name(const char *name);

/* Writes a PNG, atomically; pixels as in psld_image, channels 1 or 3. */
psld_status psld_image_write(const char *path, size_t width, size_t height, int channels, const uint8_t *pixels);

/* The same into memory: release with psld_release. `origin` names it in messages. */
psld_status psld_image_pack(const char *origin, size_t width, size_t height, int channels, const uint8_t *pixels,
                            void **bytes, size_t *size);

/* Brings an image to planes u8 [channels][height][width]: grey by the luma of ITU-R BT.601, colour from grey by
 * repeating it. Sizes that differ are resampled by a filter (psld_resample), from the whole (stretch) or from the largest
 * part in the middle that has the proportions wanted. */
psld_status psld_image_fit(const psld_image *image, int channels, size_t width, size_t height, int stretch,
                           int resampling, uint8_t *planes);

#endif
