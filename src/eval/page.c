/* A contact sheet: real images, generated images, and for each of these the nearest real image, which shows whether
 * a model copies its training data. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/threads.h"
#include "eval/set.h"

enum { COLUMNS = 12, PIECE = 256 };

typedef struct search {
    size_t count, size;
    const uint8_t *generated; /* [count][size] */
    uint64_t *best;           /* [count]: squared difference */
    uint8_t *nearest;         /* [count][size] */
    const uint8_t *piece;     /* [n][size] of real images */
    size_t n;
} search;

static uint64_t squared_difference(size_t size, const uint8_t *a, const uint8_t *b)
{
    uint64_t sum = 0;
    for (size_t first = 0; first < size; first += 1 << 14) { /* 255^2 2^14 fits into 32 bits */
        uint32_t part = 0;
        for (size_t i = first; i < size && i < first + (1 << 14); i++)
            part += (uint32_t)((a[i] - b[i]) * (a[i] - b[i]));
        sum += part;
    }
    return sum;
}

static void search_range(void *context, size_t begin, size_t end)
{
    const search *s = context;
    for (size_t i = begin; i < end; i++)
        for (size_t j = 0; j < s->n; j++) {
            uint64_t apart = squared_difference(s->size, s->generated + i * s->size, s->piece + j * s->size);
            if (apart >= s->best[i]) continue;
            s->best[i] = apart;
            memcpy(s->nearest + i * s->size, s->piece + j * s->size, s->size);
        }
}

static psld_status search_set(search *s, psld_set *real, psld_progress_fn progress, void *user)
{
    uint8_t *piece = psld_alloc(PIECE, s->size);
    psld_status status = piece ? PSLD_OK : PSLD_NO_MEMORY;
    s->piece = piece;
    for (uint64_t first = 0; status == PSLD_OK && first < real->count; first += PIECE) {
        s->n = real->count - first < PIECE ? (size_t)(real->count - first) : PIECE;
        status = psld_set_read_images(real, first, s->n, piece);
        if (status == PSLD_OK) psld_parallel(s->count, 1, search_range, s);
        if (status == PSLD_OK) status = psld_progress(progress, user, first + s->n, real->count);
    }
    psld_release(piece);
    return status;
}

/* Rows of COLUMNS: real, generated, nearest, and again. Real ones are spread over the set. */
static psld_status lay_out_page(const search *s, psld_set *real, const psld_array *page)
{
    uint8_t *to = page->data;
    for (size_t i = 0; i < s->count; i++) {
        size_t place = i / COLUMNS * 3 * COLUMNS + i % COLUMNS;
        PSLD_TRY(psld_set_read_images(real, real->count * i / s->count, 1, to + place * s->size));
        memcpy(to + (place + COLUMNS) * s->size, s->generated + i * s->size, s->size);
        memcpy(to + (place + 2 * COLUMNS) * s->size, s->nearest + i * s->size, s->size);
    }
    return PSLD_OK;
}

psld_status psld_compare_page(psld_set *generated, psld_set *real, size_t count, psld_progress_fn progress, void *user,
                              const char *path)
{
    if (generated->kind != PSLD_SET_IMAGES || real->kind != PSLD_SET_IMAGES)
        return psld_fail(PSLD_BAD_INPUT, "a page needs two sets of images");
    if (memcmp(generated->shape, real->shape, 3 * sizeof *real->shape) != 0)
        return psld_fail(PSLD_BAD_INPUT, "images of different sizes: %s and %s", generated->name, real->name);
    if (count > generated->count) count = (size_t)generated->count;
    size_t size = real->size, rows = (count + COLUMNS - 1) / COLUMNS;
    const size_t shape[4] = {3 * rows * COLUMNS, real->shape[0], real->shape[1], real->shape[2]};
    uint8_t *drawn = psld_alloc(2 * count, size);
    search s = {.count = count, .size = size, .generated = drawn, .nearest = drawn ? drawn + count * size : NULL};
    s.best = drawn ? psld_alloc(count, sizeof *s.best) : NULL;
    psld_array *page = NULL;
    psld_status status = s.best ? psld_array_create(PSLD_U8, 4, shape, &page) : PSLD_NO_MEMORY;
    for (size_t i = 0; status == PSLD_OK && i < count; i++) s.best[i] = UINT64_MAX;
    if (status == PSLD_OK) status = psld_set_read_images(generated, 0, count, drawn);
    if (status == PSLD_OK) status = search_set(&s, real, progress, user);
    if (status == PSLD_OK) status = lay_out_page(&s, real, page);
    if (status == PSLD_OK) status = psld_image_grid(page, COLUMNS, path);
    psld_array_free(page);
    psld_release(s.best);
    psld_release(drawn);
    return status;
}
