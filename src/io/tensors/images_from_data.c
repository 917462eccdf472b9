/* Part of the core library, unlike the image formats: programs that draw samples also show them. */
#include "base/status.h"
#include "io/tensors/array.h"

psld_status psld_images_from_data(const psld_array *x, int floor, psld_array **images)
{
    *images = NULL;
    if (x->type != PSLD_F32) return psld_fail(PSLD_BAD_ARGUMENT, "pixels are made of float32 numbers alone");
    PSLD_TRY(psld_array_create(PSLD_U8, x->rank, x->shape, images));
    const float *from = x->data;
    uint8_t *to = (*images)->data;
    double half = floor ? 0 : 0.5;
    for (size_t i = 0; i < x->count; i++) {
        double v = ((double)from[i] + 1) * 127.5;
        to[i] = v >= 255 ? 255 : v > 0 ? (uint8_t)(v + half) : 0; /* not-a-number is 0, too */
    }
    return PSLD_OK;
}
