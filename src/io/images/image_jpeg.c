/* JPEG by libjpeg-turbo, with its default (accurate) transform and smooth upsampling of colour. Errors come by
 * longjmp, as in image_png.c. Files that libjpeg repairs with a warning (it fills missing parts with grey) count as
 * broken if pixels are lost. */
#include <setjmp.h>
#include <stdio.h>
/* jpeglib.h wants stdio.h before it. */
#include <jerror.h>
#include <jpeglib.h>

#include "base/alloc.h"
#include "io/images/image_private.h"

enum {
    CMYK = 4,
    MAX_SCANS = 500, /* a small progressive file may ask for any number of passes over all pixels */
    EXIF_MARKER = JPEG_APP0 + 1,
    MAX_MARKER = 0xffff,
};

typedef struct work {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    const char *origin;
    jmp_buf *escape;
    psld_status status;
    uint8_t *row; /* of a CMYK image */
    int orientation;
    psld_image *image;
} work;

static void fail_message(work *w)
{
    char message[JMSG_LENGTH_MAX];
    w->errors.format_message((j_common_ptr)&w->jpeg, message);
    int no_memory = w->errors.msg_code == JERR_OUT_OF_MEMORY;
    w->status = psld_fail(no_memory ? PSLD_NO_MEMORY : PSLD_BAD_INPUT, "%s: %s: %s", w->origin,
                          no_memory ? "out of memory" : "a broken JPEG", message);
    longjmp(*w->escape, 1);
}

static void jpeg_on_error(j_common_ptr jpeg)
{
    fail_message(jpeg->client_data);
}

static void jpeg_on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    if (level >= 0) return;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)
        fail_message(jpeg->client_data);
}

static void jpeg_on_progress(j_common_ptr jpeg)
{
    work *w = jpeg->client_data;
    if (w->jpeg.input_scan_number <= MAX_SCANS) return;
    w->status = psld_fail(PSLD_BAD_INPUT, "%s: a JPEG of more than %d scans", w->origin, MAX_SCANS);
    longjmp(*w->escape, 1);
}

/* Adobe's programs, which write nearly all of these files, store how much ink is *not* there. The paper is white. */
static void cmyk_to_rgb(const uint8_t *from, size_t count, int inverted, uint8_t *to)
{
    unsigned flip = inverted ? 0 : 255;
    for (size_t i = 0; i < count; i++, from += CMYK)
        for (int c = 0; c < 3; c++) *to++ = (uint8_t)(((from[c] ^ flip) * (from[3] ^ flip) + 127) / 255);
}

static void read_rows(work *w)
{
    psld_image *image = w->image;
    size_t row_bytes = image->width * (size_t)image->channels;
    int is_cmyk = w->jpeg.out_color_space == JCS_CMYK;
    if (is_cmyk && !(w->row = psld_alloc(image->width, CMYK))) {
        w->status = psld_fail_in(PSLD_NO_MEMORY, "%s", w->origin);
        return;
    }
    while (w->jpeg.output_scanline < image->height) {
        uint8_t *to = image->pixels + w->jpeg.output_scanline * row_bytes, *row = is_cmyk ? w->row : to;
        jpeg_read_scanlines(&w->jpeg, &row, 1);
        if (is_cmyk) cmyk_to_rgb(row, image->width, w->jpeg.saw_Adobe_marker, to);
    }
    jpeg_finish_decompress(&w->jpeg);
}

static void read_exif(work *w)
{
    w->orientation = 1;
    for (jpeg_saved_marker_ptr m = w->jpeg.marker_list; m && w->orientation == 1; m = m->next)
        if (m->marker == EXIF_MARKER) w->orientation = psld_exif_orientation(m->data, m->data_length);
}

static void read_jpeg(work *w, const uint8_t *bytes, size_t size, int look)
{
    jmp_buf escape;
    w->escape = &escape;
    if (setjmp(escape)) return;
    jpeg_create_decompress(&w->jpeg);
    w->jpeg.client_data = w;
    w->progress.progress_monitor = jpeg_on_progress;
    w->jpeg.progress = &w->progress;
    jpeg_mem_src(&w->jpeg, bytes, size);
    jpeg_save_markers(&w->jpeg, EXIF_MARKER, MAX_MARKER);
    jpeg_read_header(&w->jpeg, TRUE);
    J_COLOR_SPACE stored = w->jpeg.jpeg_color_space;
    int is_cmyk = stored == JCS_CMYK || stored == JCS_YCCK;
    w->jpeg.out_color_space = is_cmyk ? JCS_CMYK : stored == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    w->status = psld_image_check_size(w->origin, w->jpeg.image_width, w->jpeg.image_height,
                                      stored == JCS_GRAYSCALE ? 1 : 3, w->image);
    read_exif(w);
    if (w->status != PSLD_OK || look) return;
    w->status = psld_image_allocate(w->origin, w->image);
    if (w->status != PSLD_OK) return;
    jpeg_start_decompress(&w->jpeg);
    read_rows(w);
}

psld_status psld_jpeg_decode(const uint8_t *bytes, size_t size, const char *origin, int look, psld_image *image)
{
    work w = {.origin = origin, .image = image};
    w.jpeg.err = jpeg_std_error(&w.errors);
    w.jpeg.client_data = &w;
    w.errors.error_exit = jpeg_on_error;
    w.errors.emit_message = jpeg_on_message;
    read_jpeg(&w, bytes, size, look);
    jpeg_destroy_decompress(&w.jpeg);
    psld_release(w.row);
    if (w.status != PSLD_OK) return w.status;
    return psld_image_orient(origin, w.orientation, image);
}
