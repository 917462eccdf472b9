/* Sets whose samples are inpainted: which part of each image is hidden, and what is known of it. */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "eval/set.h"

/* ---- Hidden parts ------------------------------------------------------------------------------------------------ */

static psld_status hide_part(psld_set *set, const char *hide)
{
    static const struct {
        const char *name;
        double top, left, bottom, right; /* of the hidden part, in units of the image */
    } parts[] = {{"left", 0, 0, 1, 0.5},
                 {"right", 0, 0.5, 1, 1},
                 {"upper", 0, 0, 0.5, 1},
                 {"lower", 0.5, 0, 1, 1},
                 {"centre", 0.25, 0.25, 0.75, 0.75}};
    size_t part = 0, height = set->shape[1], width = set->shape[2], known = sizeof parts / sizeof *parts;
    while (part < known && strcmp(parts[part].name, hide) != 0) part++;
    if (part == known)
        return psld_fail(PSLD_BAD_INPUT, "hide: expected left, right, upper, lower or centre, found \"%s\"", hide);
    for (size_t i = 0; i < psld_set_batch(set) * set->size; i++) {
        double y = ((double)(i / width % height) + 0.5) / (double)height,
               x = ((double)(i % width) + 0.5) / (double)width;
        set->visible[i] =
            !(y > parts[part].top && y < parts[part].bottom && x > parts[part].left && x < parts[part].right);
    }
    return PSLD_OK;
}

/* ---- Masks ------------------------------------------------------------------------------------------------------- */

/* For digits every pixel of a stroke hides, however faint, as in the paper's experiment. For pictures, pixels nearer to
 * white than to black hide. */
static psld_status use_masks(psld_set *set, psld_set *masks)
{
    if (masks->kind != PSLD_SET_IMAGES || !masks->data)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected pictures as masks", masks->name);
    if (masks->count != 1 && masks->count < set->count)
        return psld_fail(PSLD_BAD_INPUT, "%s: has %llu masks for %llu images", masks->name,
                         (unsigned long long)masks->count, (unsigned long long)set->count);
    set->masks = masks;
    set->strokes = strstr(psld_data_kind(masks->data), "IDX") != NULL;
    return PSLD_OK;
}

/* One mask, resized to the images by nearest pixels. */
static void fit_mask(const psld_set *set, const uint8_t *mask, unsigned char *visible)
{
    size_t height = set->shape[1], width = set->shape[2], rows = set->masks->shape[1], columns = set->masks->shape[2];
    size_t planes = set->masks->shape[0], plane = rows * columns;
    int limit = set->strokes ? 0 : 127;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const uint8_t *at =
                mask + (2 * y + 1) * rows / (2 * height) * columns + (2 * x + 1) * columns / (2 * width);
            int hidden = 0;
            for (size_t c = 0; c < planes; c++) hidden |= at[c * plane] > limit;
            for (size_t c = 0; c < set->shape[0]; c++) visible[(c * height + y) * width + x] = (unsigned char)!hidden;
        }
}

/* The masks of the next n samples. */
static psld_status show_masks(psld_set *set, size_t n)
{
    size_t size = set->masks->size, different = set->masks->count == 1 ? 1 : n;
    uint8_t *masks = psld_alloc(different, size);
    if (!masks) return PSLD_NO_MEMORY;
    psld_status status = psld_set_read_images(set->masks, different == n ? set->drawn : 0, different, masks);
    for (size_t i = 0; status == PSLD_OK && i < n; i++)
        fit_mask(set, masks + (different == n ? i : 0) * size, set->visible + i * set->size);
    psld_release(masks);
    return status;
}

/* ---- The set ----------------------------------------------------------------------------------------------------- */

static psld_status make_inpainted(psld_set *set, psld_set *images, const psld_hiding *hiding)
{
    if (set->kind != PSLD_SET_IMAGES || images->kind != PSLD_SET_IMAGES ||
        memcmp(set->shape, images->shape, 3 * sizeof *set->shape) != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected images of the size of the model's", images->name);
    if (images->count < set->count)
        return psld_fail(PSLD_BAD_INPUT, "%s: has %llu images, %llu are to be continued", images->name,
                         (unsigned long long)images->count, (unsigned long long)set->count);
    set->known = images;
    set->lagging = hiding->lagging;
    set->visible = psld_alloc(psld_set_batch(set), set->size);
    set->x = set->visible ? psld_alloc(psld_set_batch(set) * set->size, sizeof *set->x) : NULL;
    if (!set->x) return PSLD_NO_MEMORY;
    return hiding->masks ? use_masks(set, hiding->masks) : hide_part(set, hiding->part);
}

psld_status psld_set_inpainted_as(psld_model *model, const psld_sample_options *options, uint64_t count, int floor,
                                  psld_set *images, const psld_hiding *hiding, psld_set **set)
{
    psld_hiding own;
    *set = NULL;
    PSLD_TRY(PSLD_SIZED_READ(psld_hiding, hiding, &own, PSLD_HIDING_DEFAULTS));
    PSLD_FILL_UNSET(own.lagging, 0);
    if (!own.part && !own.masks)
        return psld_fail(PSLD_BAD_ARGUMENT, "inpainting: expected hide or masks, found neither");
    PSLD_TRY(psld_set_model(model, options, count, floor, set));
    psld_status status = make_inpainted(*set, images, &own);
    if (status == PSLD_OK) return PSLD_OK;
    psld_set_free(*set);
    *set = NULL;
    return status;
}

psld_status psld_set_inpainted(psld_model *model, const psld_sample_options *options, uint64_t count, int floor,
                               psld_set *images, const char *hide, psld_set **set)
{
    const psld_hiding hiding = {.size = sizeof hiding, .part = hide};
    return psld_set_inpainted_as(model, options, count, floor, images, &hiding, set);
}

psld_status psld_set_next_inpainting(psld_set *set, size_t n, psld_inpainting *inpainting)
{
    uint8_t *pixels = psld_alloc(n, set->size);
    if (!pixels) return PSLD_NO_MEMORY;
    psld_status status = psld_set_read_images(set->known, set->drawn, n, pixels);
    for (size_t i = 0; status == PSLD_OK && i < n * set->size; i++) set->x[i] = (double)pixels[i] / 127.5 - 1;
    psld_release(pixels);
    if (status == PSLD_OK && set->masks) status = show_masks(set, n);
    *inpainting = (psld_inpainting)PSLD_INPAINTING_DEFAULTS;
    inpainting->images =
        (int)psld_set_batch(set); /* sample s completes image s modulo this; pieces begin at multiples of it */
    inpainting->x = set->x;
    inpainting->known = set->visible;
    inpainting->lagging = set->lagging;
    return status;
}
