/* PNG by libpng. Its errors come by longjmp, so everything that must be released is in one struct outside of the
 * function that calls setjmp. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/file.h"
#include "io/images/image_private.h"

/* The largest compression ratio of deflate. */
enum { DEFLATE_RATIO = 1032 };

typedef struct work {
    png_structp png;
    png_infop info;
    const char *origin;
    jmp_buf *escape;
    psld_status status;
    const uint8_t *bytes; /* reading: what is left of the file */
    size_t left;
    int writing;
    psld_writer *writer; /* writing: to a file, or if NULL to memory, */
    void *packed;        /* which grows */
    size_t packed_size, packed_capacity;
    uint8_t *canvas; /* pixels from libpng, perhaps with opacity */
    png_bytepp rows; /* into the canvas, or into what is written */
    psld_image *image;
} work;

static void png_on_error(png_structp png, png_const_charp message)
{
    work *w = png_get_error_ptr(png);
    if (w->status == PSLD_OK)
        w->status = w->writing ? psld_fail(PSLD_BAD_ARGUMENT, "%s: cannot be a PNG: %s", w->origin, message)
                               : psld_fail(PSLD_BAD_INPUT, "%s: a broken PNG: %s", w->origin, message);
    longjmp(*w->escape, 1);
}

static void png_on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static png_voidp png_allocate(png_structp png, png_alloc_size_t size)
{
    work *w = png_get_mem_ptr(png);
    void *block = psld_alloc(size, 1);
    if (!block && w->status == PSLD_OK) w->status = psld_fail_in(PSLD_NO_MEMORY, "%s", w->origin);
    return block;
}

static void png_release(png_structp png, png_voidp block)
{
    (void)png;
    psld_release(block);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void png_give_bytes(png_structp png, png_bytep to, size_t size)
{
    work *w = png_get_io_ptr(png);
    if (size > w->left) png_error(png, "the file is cut off");
    memcpy(to, w->bytes, size);
    w->bytes += size;
    w->left -= size;
}

/* Asks for 8 bits per channel, grey or colour, with opacity if the file has it. */
static void set_transformations(work *w)
{
    png_set_scale_16(w->png);
    png_set_expand(w->png);
    png_set_interlace_handling(w->png);
    png_read_update_info(w->png, w->info);
}

static int png_claim_size(work *w, size_t packed)
{
    png_uint_32 width = 0, height = 0;
    int bits = 0, type = 0;
    png_get_IHDR(w->png, w->info, &width, &height, &bits, &type, NULL, NULL, NULL);
    int channels = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
    w->status = psld_image_check_size(w->origin, width, height, channels, w->image);
    if (w->status != PSLD_OK) return 0;
    if (png_get_rowbytes(w->png, w->info) / DEFLATE_RATIO * height <= packed) return 1;
    w->status = psld_fail(PSLD_BAD_INPUT, "%s: a PNG of %zu bytes cannot hold %u x %u pixels", w->origin, packed,
                          (unsigned)width, (unsigned)height);
    return 0;
}

static int make_rows(work *w, uint8_t *pixels, size_t row_bytes, size_t height)
{
    w->rows = psld_alloc(height, sizeof *w->rows);
    if (!w->rows) {
        w->status = psld_fail_in(PSLD_NO_MEMORY, "%s", w->origin);
        return 0;
    }
    for (size_t y = 0; y < height; y++) w->rows[y] = pixels + y * row_bytes;
    return 1;
}

/* Decodes into the image itself, or into a canvas if there is opacity. */
static void png_read_pixels(work *w)
{
    psld_image *image = w->image;
    size_t row_bytes = png_get_rowbytes(w->png, w->info), count = image->width * image->height;
    int has_opacity = row_bytes != image->width * (size_t)image->channels;
    w->status = psld_image_allocate(w->origin, image);
    if (w->status != PSLD_OK) return;
    if (has_opacity && !(w->canvas = png_allocate(w->png, row_bytes * image->height))) return;
    if (!make_rows(w, has_opacity ? w->canvas : image->pixels, row_bytes, image->height)) return;
    png_read_image(w->png, w->rows);
    png_read_end(w->png, NULL);
    if (has_opacity) psld_image_blend_white(w->canvas, count, image->channels, image->pixels);
}

/* Texts and colour profiles do not matter for the pixels. libpng would unpack them one after the other, each to
 * megabytes from a few bytes. */
static void skip_text_chunks(png_structp png)
{
    static const png_byte names[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT\0eXIf\0hIST\0pCAL\0sCAL\0tIME";
    enum { NAME = 5 };
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof names / NAME);
}

static void read_png(work *w, int look)
{
    jmp_buf escape;
    w->escape = &escape;
    size_t packed = w->left;
    if (setjmp(escape)) return;
    w->png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, w, png_on_error, png_on_warning, w, png_allocate, png_release);
    if (w->png) w->info = png_create_info_struct(w->png);
    if (!w->info) {
        w->status = psld_fail_in(PSLD_NO_MEMORY, "%s", w->origin);
        return;
    }
    png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* our own message says more */
    skip_text_chunks(w->png);
    png_set_read_fn(w->png, w, png_give_bytes);
    png_read_info(w->png, w->info);
    if (!png_claim_size(w, packed) || look) return;
    set_transformations(w);
    png_read_pixels(w);
}

psld_status psld_png_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image)
{
    work w = {.origin = origin, .bytes = bytes, .left = size, .image = image};
    read_png(&w, look);
    png_destroy_read_struct(&w.png, &w.info, NULL);
    psld_release(w.canvas);
    psld_release(w.rows);
    return w.status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void png_take_bytes(png_structp png, png_bytep from, size_t size)
{
    work *w = png_get_io_ptr(png);
    if (w->writer) {
        psld_writer_put(w->writer, from, size);
        return;
    }
    w->status = psld_grow(&w->packed, &w->packed_capacity, w->packed_size + size, 1);
    if (w->status != PSLD_OK) png_error(png, "out of memory");
    memcpy((uint8_t *)w->packed + w->packed_size, from, size);
    w->packed_size += size;
}

static void png_take_flush(png_structp png)
{
    (void)png;
}

static void write_png(work *w, size_t width, size_t height, int channels, uint8_t *pixels)
{
    jmp_buf escape;
    w->escape = &escape;
    if (!make_rows(w, pixels, width * (size_t)channels, height)) return;
    if (setjmp(escape)) return;
    w->png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, w, png_on_error, png_on_warning, w, png_allocate, png_release);
    if (w->png) w->info = png_create_info_struct(w->png);
    if (!w->info) {
        w->status = psld_fail_in(PSLD_NO_MEMORY, "%s", w->origin);
        return;
    }
    png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* libpng's own are a million each */
    png_set_write_fn(w->png, w, png_take_bytes, png_take_flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)width, (png_uint_32)height, 8,
                 channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    png_write_image(w->png, w->rows);
    png_write_end(w->png, w->info);
}

static psld_status run_write(work *w, size_t width, size_t height, int channels, const uint8_t *pixels)
{
    write_png(w, width, height, channels, (uint8_t *)(uintptr_t)pixels); /* libpng's rows are not const */
    png_destroy_write_struct(&w->png, &w->info);
    psld_release(w->rows);
    return w->status;
}

static psld_status png_check_size(const char *origin, size_t width, size_t height)
{
    if (width > 0 && height > 0 && width <= PNG_UINT_31_MAX / 8 && height <= PNG_UINT_31_MAX) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: a PNG cannot have %zu x %zu pixels", origin, width, height);
}

psld_status psld_image_pack(const char *origin, size_t width, size_t height, int channels, const uint8_t *pixels,
                            void **bytes, size_t *size)
{
    work w = {.origin = origin, .writing = 1};
    *bytes = NULL;
    *size = 0;
    PSLD_TRY(png_check_size(origin, width, height));
    psld_status status = run_write(&w, width, height, channels, pixels);
    if (status != PSLD_OK) {
        psld_release(w.packed);
        return status;
    }
    *bytes = w.packed;
    *size = w.packed_size;
    return PSLD_OK;
}

psld_status psld_image_write(const char *path, size_t width, size_t height, int channels, const uint8_t *pixels)
{
    work w = {.origin = path, .writing = 1};
    PSLD_TRY(png_check_size(path, width, height));
    PSLD_TRY(psld_writer_open(path, &w.writer));
    run_write(&w, width, height, channels, pixels);
    if (w.status == PSLD_OK) return psld_writer_commit(w.writer);
    psld_writer_abort(w.writer);
    return w.status;
}
