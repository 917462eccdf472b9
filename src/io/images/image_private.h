/* The formats behind io/images/image.h. */
#ifndef PSLD_IO_IMAGE_PRIVATE_H
#define PSLD_IO_IMAGE_PRIVATE_H

#include "io/images/image.h"

/* Each decodes a whole file whose first bytes are right. With `look`, no more than the header is read, and the pixels
 * stay NULL. On failure the image is the caller's to release. */
typedef psld_status (*psld_image_fn)(const uint8_t *bytes, size_t size, const char *origin, int look,
                                     psld_image *image);

psld_status psld_png_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);
psld_status psld_jpeg_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);
psld_status psld_webp_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image);

/* Sets the sizes that a header claims; fails when they are more than an image may have. */
psld_status psld_image_check_size(const char *origin, size_t width, size_t height, int channels, psld_image *image);
/* Room for the pixels of the sizes that were claimed. */
psld_status psld_image_allocate(const char *origin, psld_image *image);

/* count pixels of `channels` colours and one of opacity, laid on white; `to` may be `from`. */
void psld_image_blend_white(const uint8_t *from, size_t count, int channels, uint8_t *to);

/* The orientation (1 to 8) in the Exif data of a JPEG, beginning behind the marker's length; 1 where there is none. */
int psld_exif_orientation(const uint8_t *bytes, size_t size);
/* Turns an image that is stored with this orientation. */
psld_status psld_image_orient(const char *origin, int orientation, psld_image *image);

#endif
