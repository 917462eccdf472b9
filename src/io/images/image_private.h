/* The formats behind io/images/image.h. */
#ifndef PSLD_IO_IMAGE_PRIVATE_H
#define PSLD_IO_IMAGE_PRIVATE_H

#include "io/images/image.h"

/* Each decodes a whole file whose first bytes are right. With `look`, only the header is read and the pixels stay
 * NULL. On failure the caller releases the image. */
typedef psld_status (*psld_image_fn)(const uint8_t *bytes, size_t size, const char *origin, int look,
                                     psld_image *image);

psld_status psld_png_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);
psld_status psld_jpeg_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);
psld_status psld_webp_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);

/* Sets the size that a header claims; fails if it is larger than allowed. */
psld_status psld_image_check_size(const char *origin, size_t width, size_t height, int channels, psld_image *image);
/* Allocates the pixels of the claimed size. */
psld_status psld_image_allocate(const char *origin, psld_image *image);

/* Composes `count` pixels of `channels` colours and one opacity on white; `to` may be `from`. */
void psld_image_blend_white(const uint8_t *from, size_t count, int channels, uint8_t *to);

/* The orientation (1 to 8) in the Exif data of a JPEG, which begin after the marker's length; 1 if there is none. */
int psld_exif_orientation(const uint8_t *bytes, size_t size);
/* Turns an image that is stored with this orientation upright. */
psld_status psld_image_orient(const char *origin, int orientation, psld_image *image);

#endif
