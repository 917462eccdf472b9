/* WebP by libwebp; an animation's first frame, on its canvas, by libwebpdemux. */
#include <webp/decode.h>
#include <webp/demux.h>

#include "base/alloc.h"
#include "io/images/image_private.h"

enum { RGB = 3, RGBA = 4 };

static psld_status fail_broken(const char *origin, const char *why)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: a broken WebP: %s", origin, why);
}

static psld_status read_opaque(const uint8_t *bytes, size_t size, const char *origin, psld_image *image)
{
    int stride = (int)image->width * RGB;
    if (WebPDecodeRGBInto(bytes, size, image->pixels, (size_t)stride * image->height, stride)) return PSLD_OK;
    return fail_broken(origin, "its pixels cannot be decoded");
}

static psld_status read_transparent(const uint8_t *bytes, size_t size, const char *origin, psld_image *image)
{
    size_t count = image->width * image->height;
    int stride = (int)image->width * RGBA;
    uint8_t *canvas = psld_alloc(count, RGBA);
    if (!canvas) return psld_fail_in(PSLD_NO_MEMORY, "%s", origin);
    int done = WebPDecodeRGBAInto(bytes, size, canvas, count * RGBA, stride) != NULL;
    if (done) psld_image_blend_white(canvas, count, RGB, image->pixels);
    psld_release(canvas);
    return done ? PSLD_OK : fail_broken(origin, "its pixels cannot be decoded");
}

static psld_status read_first_frame(const uint8_t *bytes, size_t size, const char *origin, psld_image *image)
{
    WebPAnimDecoderOptions options;
    const WebPData data = {bytes, size};
    uint8_t *canvas = NULL;
    int time = 0;
    if (!WebPAnimDecoderOptionsInit(&options)) return fail_broken(origin, "another version of libwebp is installed");
    options.use_threads = 0;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &options);
    if (!decoder) return fail_broken(origin, "its animation cannot be read");
    int done = WebPAnimDecoderGetNext(decoder, &canvas, &time);
    if (done) psld_image_blend_white(canvas, image->width * image->height, RGB, image->pixels);
    WebPAnimDecoderDelete(decoder);
    return done ? PSLD_OK : fail_broken(origin, "its first frame cannot be decoded");
}

psld_status psld_webp_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image)
{
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(bytes, size, &features) != VP8_STATUS_OK)
        return fail_broken(origin, "its header cannot be read");
    PSLD_TRY(psld_image_check_size(origin, (size_t)features.width, (size_t)features.height, RGB, image));
    if (look) return PSLD_OK;
    PSLD_TRY(psld_image_allocate(origin, image));
    if (features.has_animation) return read_first_frame(bytes, size, origin, image);
    return features.has_alpha ? read_transparent(bytes, size, origin, image) : read_opaque(bytes, size, origin, image);
}
