/* The input is an image file, PNG, JPEG or WebP; what can be decoded is fitted to other sizes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/images/image.h"
#include "psld_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger ones take their time and tell nothing more. */
enum { MAX_PIXELS = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psld_image looked, image;
    uint8_t planes[3 * 64];
    psld_status status = psld_image_header(data, size, "fuzz", &looked);
    if (looked.pixels || (status != PSLD_OK && !*psld_error_text())) abort();
    if (status == PSLD_OK && looked.width * looked.height > MAX_PIXELS) return 0;
    psld_status decoded = psld_image_decode(data, size, "fuzz", &image);
    if (decoded == PSLD_OK) {
        if (status != PSLD_OK || image.width != looked.width || image.height != looked.height) abort();
        if (image.channels != looked.channels) abort();
        for (int stretch = 0; stretch < 2; stretch++)
            for (int channels = 1; channels <= 3; channels += 2)
                if (psld_image_fit(&image, channels, 8, 8, stretch, PSLD_RESAMPLE_LANCZOS, planes) != PSLD_OK) abort();
        psld_image_release(&image);
    } else if (decoded != PSLD_BAD_INPUT && decoded != PSLD_NO_MEMORY) {
        abort();
    }
    if (strchr(psld_error_text(), '\n') || psld_alloc_live() != 0) abort();
    return 0;
}
