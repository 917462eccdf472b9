/* Making image files in memory with the libraries' own encoders, in forms that our writer does not have. */
#ifndef PSLD_TESTS_PICTURES_H
#define PSLD_TESTS_PICTURES_H

#include <png.h>
#include <stdint.h>
#include <stdio.h>
/* jpeglib.h wants stdio.h before it. */
#include <jpeglib.h>
#include <webp/encode.h>

#include "bytes.h"

/* ---- PNG --------------------------------------------------------------------------------------------------------- */

typedef struct png_form {
    int type, bits, interlaced;
    const png_color *palette;
    int palette_size;
    const uint8_t *opacity; /* of the palette */
    int opacity_size;
} png_form;

static inline void png_to_bytes(png_structp png, png_bytep from, size_t size)
{
    bytes_put(png_get_io_ptr(png), from, size);
}

static inline void png_no_flush(png_structp png)
{
    (void)png;
}

/* rows: as the file has them, `row_bytes` each */
static inline bytes make_png(const png_form *form, unsigned width, unsigned height, const uint8_t *rows,
                             size_t row_bytes)
{
    bytes file = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (!png || !info) abort();
    png_set_write_fn(png, &file, png_to_bytes, png_no_flush);
    png_set_IHDR(png, info, width, height, form->bits, form->type,
                 form->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (form->palette) png_set_PLTE(png, info, form->palette, form->palette_size);
    if (form->opacity) png_set_tRNS(png, info, form->opacity, form->opacity_size, NULL);
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (unsigned y = 0; y < height; y++) png_write_row(png, rows + y * row_bytes);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return file;
}

/* ---- JPEG -------------------------------------------------------------------------------------------------------- */

typedef struct jpeg_form {
    J_COLOR_SPACE colours;
    int channels, progressive;
    int orientation; /* 0: no Exif data */
} jpeg_form;

static inline void put_exif(struct jpeg_compress_struct *jpeg, int orientation)
{
    /* A little-endian TIFF whose directory has one entry: tag 0x0112, a short. */
    uint8_t exif[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                      0x12, 1,   3,   0,   1, 0, 0,   0,   0,  0, 0, 0, 0, 0, 0, 0};
    exif[24] = (uint8_t)orientation;
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, exif, sizeof exif);
}

static inline bytes make_jpeg(const jpeg_form *form, unsigned width, unsigned height, const uint8_t *pixels)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *made = NULL;
    unsigned long size = 0;
    bytes file = {0};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &made, &size);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = form->channels;
    jpeg.in_color_space = form->colours;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    for (int i = 0; i < jpeg.num_components; i++) /* all channels at full resolution */
        jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
    if (form->progressive) jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    if (form->orientation) put_exif(&jpeg, form->orientation);
    while (jpeg.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)pixels + (size_t)jpeg.next_scanline * width * (size_t)form->channels;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    bytes_put(&file, made, size);
    free(made);
    return file;
}

/* ---- WebP -------------------------------------------------------------------------------------------------------- */

static inline bytes make_webp(unsigned width, unsigned height, const uint8_t *rgba)
{
    uint8_t *made = NULL;
    bytes file = {0};
    size_t size = WebPEncodeLosslessRGBA(rgba, (int)width, (int)height, (int)width * 4, &made);
    bytes_put(&file, made, size);
    WebPFree(made);
    return file;
}

static inline void put_chunk(bytes *to, const char *name, const void *data, size_t size)
{
    bytes_put(to, name, 4);
    bytes_number(to, size, 4);
    bytes_put(to, data, size);
    if (size % 2) bytes_number(to, 0, 1);
}

/* An animation of whole frames, each a lossless file of the same size. */
static inline bytes make_animation(unsigned width, unsigned height, const bytes *frames, int count)
{
    bytes body = {0}, file = {0}, head = {0}, loop = {0};
    bytes_number(&head, 0x02 | 0x10, 4); /* animated, with opacity */
    bytes_number(&head, width - 1, 3);
    bytes_number(&head, height - 1, 3);
    bytes_number(&loop, 0, 6);
    bytes_text(&body, "WEBP");
    put_chunk(&body, "VP8X", head.data, head.size);
    put_chunk(&body, "ANIM", loop.data, loop.size);
    for (int i = 0; i < count; i++) {
        bytes frame = {0};
        bytes_number(&frame, 0, 6);
        bytes_number(&frame, width - 1, 3);
        bytes_number(&frame, height - 1, 3);
        bytes_number(&frame, 100, 3);
        bytes_number(&frame, 0, 1);
        bytes_put(&frame, frames[i].data + 12, frames[i].size - 12);
        put_chunk(&body, "ANMF", frame.data, frame.size);
        bytes_free(&frame);
    }
    put_chunk(&file, "RIFF", body.data, body.size);
    bytes_free(&body);
    bytes_free(&head);
    bytes_free(&loop);
    return file;
}

#endif
