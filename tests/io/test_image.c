/* Images: what the libraries' own encoders write is read, in every form; what is broken or too large is refused; fitting
 * is checked against the filter's definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/files/map.h"
#include "io/images/image.h"
#include "pictures.h"
#include "psld_data.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

static uint8_t noise(size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u;
    return (uint8_t)((x ^ x >> 15) * 2246822519u >> 24);
}

static void fill_noise(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) pixels[i] = noise(i);
}

/* Decodes and frees the file; looking first must tell the same sizes. */
static psld_image decode(bytes file)
{
    psld_image image, looked;
    assert_int_equal(psld_image_header(file.data, file.size, "file", &looked), PSLD_OK);
    if (psld_image_decode(file.data, file.size, "file", &image) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_null(looked.pixels);
    assert_true(looked.width == image.width && looked.height == image.height && looked.channels == image.channels);
    bytes_free(&file);
    return image;
}

static void check_image(psld_image image, size_t width, size_t height, int channels, const uint8_t *pixels,
                        int tolerance)
{
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.channels, channels);
    for (size_t i = 0; i < width * height * (size_t)channels; i++)
        if (abs(image.pixels[i] - pixels[i]) > tolerance)
            fail_msg("element %zu is %d, expected %d", i, image.pixels[i], pixels[i]);
    psld_image_release(&image);
}

static void check_refused(const void *data, size_t size, const char *why)
{
    psld_image image;
    long live = psld_alloc_live();
    assert_int_equal(psld_image_decode(data, size, "file", &image), PSLD_BAD_INPUT);
    assert_null(image.pixels);
    if (!strstr(psld_error_text(), why)) fail_msg("no \"%s\" in: %s", why, psld_error_text());
    assert_int_equal(psld_alloc_live(), live);
}

static uint8_t on_white(uint8_t value, uint8_t opacity)
{
    return (uint8_t)lround((value * (double)opacity + 255.0 * (255 - opacity)) / 255);
}

/* ---- PNG --------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 13, HEIGHT = 7, COUNT = WIDTH * HEIGHT };

static void png_eight_bits(void **state)
{
    uint8_t pixels[COUNT * 3];
    (void)state;
    fill_noise(pixels, sizeof pixels);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        const png_form colour = {.type = PNG_COLOR_TYPE_RGB, .bits = 8, .interlaced = interlaced};
        const png_form grey = {.type = PNG_COLOR_TYPE_GRAY, .bits = 8, .interlaced = interlaced};
        check_image(decode(make_png(&colour, WIDTH, HEIGHT, pixels, WIDTH * 3)), WIDTH, HEIGHT, 3, pixels, 0);
        check_image(decode(make_png(&grey, WIDTH, HEIGHT, pixels, WIDTH)), WIDTH, HEIGHT, 1, pixels, 0);
    }
}

static void png_sixteen_bits(void **state)
{
    uint8_t deep[COUNT * 3 * 2], expected[COUNT * 3];
    const png_form form = {.type = PNG_COLOR_TYPE_RGB, .bits = 16};
    (void)state;
    fill_noise(deep, sizeof deep);
    for (size_t i = 0; i < sizeof expected; i++)
        expected[i] = (uint8_t)lround((deep[2 * i] * 256 + deep[2 * i + 1]) / 257.0);
    check_image(decode(make_png(&form, WIDTH, HEIGHT, deep, WIDTH * 6)), WIDTH, HEIGHT, 3, expected, 0);
}

static void png_few_bits_and_palette(void **state)
{
    const png_color palette[3] = {{10, 20, 30}, {200, 100, 50}, {0, 255, 7}};
    const uint8_t rows[2] = {0x1b, 0xb1};    /* 0 1 2 3 and 2 3 0 1 in two bits each */
    const uint8_t indices[2] = {0x18, 0x90}; /* 0 1 2 0 and 2 1 0 0 */
    const uint8_t grey[8] = {0, 85, 170, 255, 170, 255, 0, 85}, opacity[2] = {255, 64};
    uint8_t coloured[8 * 3];
    const png_form few = {.type = PNG_COLOR_TYPE_GRAY, .bits = 2};
    const png_form indexed = {.type = PNG_COLOR_TYPE_PALETTE, .bits = 2, .palette = palette, .palette_size = 3};
    png_form transparent = indexed;
    (void)state;
    check_image(decode(make_png(&few, 4, 2, rows, 1)), 4, 2, 1, grey, 0);
    const int order[8] = {0, 1, 2, 0, 2, 1, 0, 0};
    for (int i = 0; i < 8; i++) memcpy(coloured + 3 * i, &palette[order[i]], 3);
    check_image(decode(make_png(&indexed, 4, 2, indices, 1)), 4, 2, 3, coloured, 0);
    transparent.opacity = opacity;
    transparent.opacity_size = 2;
    for (int i = 0; i < 8; i++)
        for (int c = 0; c < 3; c++)
            if (order[i] == 1) coloured[3 * i + c] = on_white(coloured[3 * i + c], 64);
    check_image(decode(make_png(&transparent, 4, 2, indices, 1)), 4, 2, 3, coloured, 0);
}

static void png_opacity(void **state)
{
    uint8_t pixels[COUNT * 4], expected[COUNT * 3];
    const png_form colour = {.type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8},
                   grey = {.type = PNG_COLOR_TYPE_GRAY_ALPHA, .bits = 8};
    (void)state;
    fill_noise(pixels, sizeof pixels);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t c = 0; c < 3; c++) expected[3 * i + c] = on_white(pixels[4 * i + c], pixels[4 * i + 3]);
    check_image(decode(make_png(&colour, WIDTH, HEIGHT, pixels, WIDTH * 4)), WIDTH, HEIGHT, 3, expected, 0);
    for (size_t i = 0; i < COUNT; i++) expected[i] = on_white(pixels[2 * i], pixels[2 * i + 1]);
    check_image(decode(make_png(&grey, WIDTH, HEIGHT, pixels, WIDTH * 2)), WIDTH, HEIGHT, 1, expected, 0);
}

static bytes small_png(void)
{
    uint8_t pixels[COUNT * 3];
    const png_form form = {.type = PNG_COLOR_TYPE_RGB, .bits = 8};
    fill_noise(pixels, sizeof pixels);
    return make_png(&form, WIDTH, HEIGHT, pixels, WIDTH * 3);
}

/* Changes the sizes in the header of a PNG, and its checksum. */
static void claim_size(bytes *file, uint32_t width, uint32_t height)
{
    for (int i = 0; i < 4; i++) {
        file->data[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        file->data[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    uint32_t crc = (uint32_t)crc32(0, file->data + 12, 17);
    for (int i = 0; i < 4; i++) file->data[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

static void png_broken(void **state)
{
    bytes file = small_png();
    (void)state;
    for (size_t size = 8; size < file.size; size++) check_refused(file.data, size, "file: a broken PNG");
    file.data[60] ^= 0xff;
    check_refused(file.data, file.size, "file: a broken PNG");
    claim_size(&file, 100000, 100000);
    check_refused(file.data, file.size, "an image of 100000 x 100000 pixels, expected at most 100000000");
    claim_size(&file, 9000, 9000);
    check_refused(file.data, file.size, "cannot hold 9000 x 9000 pixels");
    claim_size(&file, 0, 5);
    check_refused(file.data, file.size, "a broken PNG");
    bytes_free(&file);
    check_refused("", 0, "an empty file");
    check_refused("GIF89a", 6, "expected PNG, JPEG or WebP");
    check_refused("RIFF1234WAVE", 12, "expected PNG, JPEG or WebP");
}

static void put_big_endian(bytes *b, uint32_t value)
{
    for (int i = 0; i < 4; i++) bytes_put(b, &(unsigned char){(unsigned char)(value >> (24 - 8 * i))}, 1);
}

/* A compressed text of a megabyte in a few hundred bytes. */
static void put_text_chunk(bytes *b)
{
    enum { UNPACKED = 1 << 20, ROOM = 1 << 14 };
    static unsigned char text[UNPACKED], chunk[ROOM] = "zTXtk\0"; /* its keyword, and how it is compressed */
    uLongf size = ROOM - 7;
    if (compress2(chunk + 7, &size, text, sizeof text, 9) != Z_OK) abort();
    put_big_endian(b, (uint32_t)(size + 3));
    bytes_put(b, chunk, size + 7);
    put_big_endian(b, (uint32_t)crc32(0, chunk, (uInt)(size + 7)));
}

/* Allocations that decoding makes: one more is asked to fail than there are. */
static long allocations(const bytes *file)
{
    for (long n = 1;; n++) {
        psld_image image;
        psld_alloc_fail_at(n);
        psld_status status = psld_image_decode(file->data, file->size, "file", &image);
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        if (status == PSLD_OK) psld_image_release(&image);
        if (!failed) return n;
    }
}

/* Texts are not unpacked: an image with many of them costs no more than one without. */
static void png_with_texts(void **state)
{
    enum { BEFORE = 33 }; /* the signature and IHDR */
    bytes file = small_png(), bomb = {0};
    (void)state;
    bytes_put(&bomb, file.data, BEFORE);
    for (int i = 0; i < 50; i++) put_text_chunk(&bomb);
    bytes_put(&bomb, file.data + BEFORE, file.size - BEFORE);
    assert_int_equal(allocations(&bomb), allocations(&file));
    bytes_free(&file);
    bytes_free(&bomb);
}

/* ---- JPEG -------------------------------------------------------------------------------------------------------- */

/* Four quarters of even colour, in blocks of 8 x 8 that JPEG keeps as they are but for rounding. */
static void fill_quarters(uint8_t *pixels, size_t width, size_t height, int channels, uint8_t *const colours[4])
{
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            memcpy(pixels + (y * width + x) * (size_t)channels, colours[(y >= height / 2) * 2 + (x >= width / 2)],
                   (size_t)channels);
}

enum { J_WIDTH = 64, J_HEIGHT = 32, J_COUNT = J_WIDTH * J_HEIGHT };

static uint8_t red[4] = {220, 30, 40, 255}, green[4] = {20, 200, 60, 200}, blue[4] = {10, 60, 240, 100},
               white[4] = {250, 250, 250, 0};
static uint8_t *const quarters[4] = {red, green, blue, white};

static void jpeg_colours(void **state)
{
    uint8_t pixels[J_COUNT * 4];
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++) {
        const jpeg_form colour = {.colours = JCS_RGB, .channels = 3, .progressive = progressive};
        const jpeg_form grey = {.colours = JCS_GRAYSCALE, .channels = 1, .progressive = progressive};
        fill_quarters(pixels, J_WIDTH, J_HEIGHT, 3, quarters);
        check_image(decode(make_jpeg(&colour, J_WIDTH, J_HEIGHT, pixels)), J_WIDTH, J_HEIGHT, 3, pixels, 4);
        fill_quarters(pixels, J_WIDTH, J_HEIGHT, 1, quarters);
        check_image(decode(make_jpeg(&grey, J_WIDTH, J_HEIGHT, pixels)), J_WIDTH, J_HEIGHT, 1, pixels, 2);
    }
}

/* libjpeg writes an Adobe marker with CMYK: then values are of what is not inked. */
static void jpeg_cmyk(void **state)
{
    uint8_t pixels[J_COUNT * 4], expected[J_COUNT * 3];
    const jpeg_form form = {.colours = JCS_CMYK, .channels = 4};
    (void)state;
    fill_quarters(pixels, J_WIDTH, J_HEIGHT, 4, quarters);
    for (size_t i = 0; i < J_COUNT; i++)
        for (size_t c = 0; c < 3; c++) expected[3 * i + c] = (uint8_t)(pixels[4 * i + c] * pixels[4 * i + 3] / 255);
    check_image(decode(make_jpeg(&form, J_WIDTH, J_HEIGHT, pixels)), J_WIDTH, J_HEIGHT, 3, expected, 4);
}

/* Which quarter comes to the upper left, upper right, lower left and lower right for each orientation. */
static void jpeg_orientation(void **state)
{
    static const int turned[9][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                     {0, 2, 1, 3}, {2, 0, 3, 1}, {3, 1, 2, 0}, {1, 3, 0, 2}};
    uint8_t pixels[J_COUNT * 3], expected[J_COUNT * 3];
    (void)state;
    fill_quarters(pixels, J_WIDTH, J_HEIGHT, 3, quarters);
    for (int o = 1; o <= 8; o++) {
        const jpeg_form form = {.colours = JCS_RGB, .channels = 3, .orientation = o};
        size_t width = o < 5 ? J_WIDTH : J_HEIGHT, height = o < 5 ? J_HEIGHT : J_WIDTH;
        uint8_t *colours[4];
        for (int i = 0; i < 4; i++) colours[i] = quarters[turned[o][i]];
        fill_quarters(expected, width, height, 3, colours);
        check_image(decode(make_jpeg(&form, J_WIDTH, J_HEIGHT, pixels)), width, height, 3, expected, 4);
    }
}

static void jpeg_broken(void **state)
{
    uint8_t pixels[J_COUNT * 3];
    const jpeg_form form = {.colours = JCS_RGB, .channels = 3};
    (void)state;
    fill_noise(pixels, sizeof pixels);
    bytes file = make_jpeg(&form, J_WIDTH, J_HEIGHT, pixels);
    for (size_t size = 3; size < file.size; size += size < 700 ? 1 : 53)
        check_refused(file.data, size, "a broken JPEG");
    /* The frame header: ff c0, length, bits, height, width. */
    for (size_t i = 0; i + 9 < file.size; i++)
        if (file.data[i] == 0xff && file.data[i + 1] == 0xc0) {
            memcpy(file.data + i + 5, "\x80\0\x80\0", 4);
            break;
        }
    check_refused(file.data, file.size, "an image of 32768 x 32768 pixels");
    bytes_free(&file);
}

/* ---- WebP -------------------------------------------------------------------------------------------------------- */

static void webp_forms(void **state)
{
    uint8_t rgba[COUNT * 4], other[COUNT * 4], opaque[COUNT * 4], expected[COUNT * 3];
    (void)state;
    fill_noise(rgba, sizeof rgba);
    /* What is not seen at all has no colour in a lossless file. */
    for (size_t i = 0; i < COUNT; i++) rgba[4 * i + 3] = (uint8_t)(rgba[4 * i + 3] | 1);
    memcpy(opaque, rgba, sizeof rgba);
    for (size_t i = 0; i < COUNT; i++) {
        opaque[4 * i + 3] = 255;
        memcpy(expected + 3 * i, rgba + 4 * i, 3);
    }
    check_image(decode(make_webp(WIDTH, HEIGHT, opaque)), WIDTH, HEIGHT, 3, expected, 0);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t c = 0; c < 3; c++) expected[3 * i + c] = on_white(rgba[4 * i + c], rgba[4 * i + 3]);
    check_image(decode(make_webp(WIDTH, HEIGHT, rgba)), WIDTH, HEIGHT, 3, expected, 0);
    memset(other, 77, sizeof other);
    bytes frames[2] = {make_webp(WIDTH, HEIGHT, rgba), make_webp(WIDTH, HEIGHT, other)};
    check_image(decode(make_animation(WIDTH, HEIGHT, frames, 2)), WIDTH, HEIGHT, 3, expected, 0);
    for (size_t size = 12; size < frames[0].size; size++) check_refused(frames[0].data, size, "a broken WebP");
    bytes_free(&frames[0]);
    bytes_free(&frames[1]);
}

/* ---- Fitting ----------------------------------------------------------------------------------------------------- */

static double lanczos(double d)
{
    const double pi = acos(-1);
    if (fabs(d) < 1e-12) return 1;
    return fabs(d) >= 3 ? 0 : sin(pi * d) / (pi * d) * (sin(pi * d / 3) / (pi * d / 3));
}

/* One new pixel, by the definition: a sum over all old ones in two dimensions. */
static double defined(const uint8_t *plane, size_t width, size_t height, size_t to_width, size_t to_height, size_t x,
                      size_t y)
{
    double across = (double)width / (double)to_width, down = (double)height / (double)to_height, sum = 0, weights = 0;
    double cx = ((double)x + 0.5) * across, cy = ((double)y + 0.5) * down;
    for (size_t j = 0; j < height; j++)
        for (size_t i = 0; i < width; i++) {
            double w =
                lanczos(((double)i + 0.5 - cx) / fmax(across, 1)) * lanczos(((double)j + 0.5 - cy) / fmax(down, 1));
            sum += w * plane[j * width + i];
            weights += w;
        }
    return fmin(fmax(sum / weights, 0), 255);
}

static void fit_by_definition(void **state)
{
    static const size_t cases[][4] = {{40, 40, 16, 16}, {37, 23, 8, 9}, {9, 5, 20, 17},
                                      {64, 64, 3, 3},   {1, 1, 6, 6},   {100, 3, 7, 7}};
    uint8_t pixels[4096], planes[512];
    (void)state;
    fill_noise(pixels, sizeof pixels);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t width = cases[i][0], height = cases[i][1], to_width = cases[i][2], to_height = cases[i][3];
        const psld_image image = {.width = width, .height = height, .channels = 1, .pixels = pixels};
        assert_int_equal(psld_image_fit(&image, 1, to_width, to_height, 1, PSLD_RESAMPLE_LANCZOS, planes), PSLD_OK);
        for (size_t y = 0; y < to_height; y++)
            for (size_t x = 0; x < to_width; x++) {
                double expected = defined(pixels, width, height, to_width, to_height, x, y);
                if (fabs(planes[y * to_width + x] - expected) > 0.501)
                    fail_msg("case %zu: (%zu, %zu) is %d, expected %g", i, x, y, planes[y * to_width + x], expected);
            }
    }
}

static void fit_crops_the_middle(void **state)
{
    uint8_t wide[4 * 9], cropped[16], even[50 * 30 * 3], small[64 * 3];
    (void)state;
    fill_noise(wide, sizeof wide);
    const psld_image image = {.width = 9, .height = 4, .channels = 1, .pixels = wide};
    assert_int_equal(psld_image_fit(&image, 1, 4, 4, 0, PSLD_RESAMPLE_LANCZOS, cropped), PSLD_OK);
    for (size_t y = 0; y < 4; y++) assert_memory_equal(cropped + 4 * y, wide + 9 * y + 2, 4);
    /* Black outside of the middle square must not be seen. */
    memset(even, 0, sizeof even);
    for (size_t y = 0; y < 30; y++)
        for (size_t x = 10; x < 40; x++) memcpy(even + (y * 50 + x) * 3, "\x50\xa0\xf0", 3);
    const psld_image framed = {.width = 50, .height = 30, .channels = 3, .pixels = even};
    assert_int_equal(psld_image_fit(&framed, 3, 8, 8, 0, PSLD_RESAMPLE_LANCZOS, small), PSLD_OK);
    for (size_t i = 0; i < sizeof small; i++) assert_int_equal(small[i], i < 64 ? 0x50 : i < 128 ? 0xa0 : 0xf0);
}

/* What Pillow 13 makes of the same 9 x 7 pixels by resize((4, 4), ...); bilinear_plain by its definition. */
static void fit_by_filters(void **state)
{
    static const struct {
        int filter;
        int expected[16];
    } cases[] = {
        {PSLD_RESAMPLE_BILINEAR, {104, 96, 129, 151, 143, 154, 153, 152, 61, 136, 134, 132, 129, 118, 100, 145}},
        {PSLD_RESAMPLE_BICUBIC, {103, 87, 130, 155, 144, 165, 154, 153, 48, 143, 136, 126, 134, 110, 96, 148}},
        {PSLD_RESAMPLE_BOX, {104, 95, 134, 152, 102, 202, 136, 130, 29, 130, 194, 138, 158, 111, 70, 156}},
        {PSLD_RESAMPLE_NEAREST, {141, 107, 113, 159, 251, 65, 175, 69, 17, 191, 149, 147, 207, 229, 35, 137}},
        {PSLD_RESAMPLE_BILINEAR_PLAIN, {96, 82, 110, 146, 167, 103, 170, 132, 29, 179, 153, 134, 163, 139, 47, 146}},
    };
    uint8_t pixels[63], planes[16];
    (void)state;
    for (int i = 0; i < 63; i++) pixels[i] = (uint8_t)(37 * i * i + 91 * i + 13);
    const psld_image image = {.width = 9, .height = 7, .channels = 1, .pixels = pixels};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(psld_image_fit(&image, 1, 4, 4, 1, cases[i].filter, planes), PSLD_OK);
        for (int j = 0; j < 16; j++)
            if (abs(planes[j] - cases[i].expected[j]) > 1)
                fail_msg("%s: pixel %d is %d, expected %d", psld_resample_at((int)cases[i].filter)->name, j, planes[j],
                         cases[i].expected[j]);
    }
    assert_string_equal(psld_resample_at(PSLD_RESAMPLE_BILINEAR_PLAIN)->name, "bilinear_plain");
}

static void fit_changes_colours(void **state)
{
    uint8_t pixels[3 * 256], planes[3 * 256];
    (void)state;
    fill_noise(pixels, sizeof pixels);
    const psld_image colour = {.width = 16, .height = 16, .channels = 3, .pixels = pixels};
    const psld_image grey = {.width = 16, .height = 16, .channels = 1, .pixels = pixels};
    assert_int_equal(psld_image_fit(&colour, 1, 16, 16, 0, PSLD_RESAMPLE_LANCZOS, planes), PSLD_OK);
    for (size_t i = 0; i < 256; i++) {
        double luma = 0.299 * pixels[3 * i] + 0.587 * pixels[3 * i + 1] + 0.114 * pixels[3 * i + 2];
        assert_true(fabs(planes[i] - luma) < 0.51);
    }
    assert_int_equal(psld_image_fit(&grey, 3, 16, 16, 0, PSLD_RESAMPLE_LANCZOS, planes), PSLD_OK);
    for (size_t c = 0; c < 3; c++) assert_memory_equal(planes + 256 * c, pixels, 256);
    assert_int_equal(psld_image_fit(&colour, 3, 16, 16, 0, PSLD_RESAMPLE_LANCZOS, planes), PSLD_OK);
    for (size_t i = 0; i < 256; i++)
        for (size_t c = 0; c < 3; c++) assert_int_equal(planes[256 * c + i], pixels[3 * i + c]);
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static psld_array *make_array(psld_type type, int rank, const size_t *shape)
{
    psld_array *array = NULL;
    assert_int_equal(psld_array_create(type, rank, shape, &array), PSLD_OK);
    if (type == PSLD_U8) fill_noise(array->data, array->count);
    return array;
}

static void save_and_load(void **state)
{
    (void)state;
    for (size_t channels = 1; channels <= 3; channels += 2) {
        const size_t shape[3] = {channels, 5, 9};
        psld_array *image = make_array(PSLD_U8, 3, shape), *again = NULL;
        assert_int_equal(psld_image_save(image, "saved.png"), PSLD_OK);
        assert_int_equal(psld_image_load("saved.png", &again), PSLD_OK);
        assert_int_equal(again->rank, 3);
        assert_memory_equal(again->shape, shape, sizeof shape);
        assert_memory_equal(again->data, image->data, image->count);
        psld_array_free(image);
        psld_array_free(again);
    }
    const size_t two[3] = {2, 4, 4};
    psld_array *image = make_array(PSLD_U8, 3, two), *none = NULL;
    assert_int_equal(psld_image_save(image, "two.png"), PSLD_BAD_ARGUMENT);
    assert_int_not_equal(access("two.png", F_OK), 0);
    assert_int_equal(psld_image_grid(image, 0, "two.png"), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_image_load("absent.png", &none), PSLD_IO);
    assert_null(none);
    psld_array_free(image);
    unlink("saved.png");
}

/* Seven images in three columns: each is where it belongs, white is between them and in the places of the last row. */
static void grid(void **state)
{
    const size_t shape[4] = {7, 3, 4, 5};
    psld_array *images = make_array(PSLD_U8, 4, shape), *drawn = NULL;
    (void)state;
    assert_int_equal(psld_image_grid(images, 0, "grid.png"), PSLD_OK);
    assert_int_equal(psld_image_load("grid.png", &drawn), PSLD_OK);
    size_t high = drawn->shape[1], wide = drawn->shape[2], gap = (wide - 3 * 5) / 4;
    assert_int_equal(wide, 3 * 5 + 4 * gap);
    assert_int_equal(high, 3 * 4 + 4 * gap);
    const uint8_t *all = drawn->data, *from = images->data;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < high; y++)
            for (size_t x = 0; x < wide; x++) {
                size_t row = y / (4 + gap), column = x / (5 + gap), v = y % (4 + gap), u = x % (5 + gap);
                size_t i = row * 3 + column;
                int inside = v >= gap && u >= gap && i < 7;
                int expected = inside ? from[((i * 3 + c) * 4 + v - gap) * 5 + u - gap] : 255;
                assert_int_equal(all[(c * high + y) * wide + x], expected);
            }
    psld_array_free(images);
    psld_array_free(drawn);
    unlink("grid.png");
}

/* A PNG in memory is that of the file. */
static void in_memory(void **state)
{
    const size_t shape[3] = {3, 4, 5};
    psld_array *image = make_array(PSLD_U8, 3, shape);
    void *packed = NULL;
    size_t size = 0, wanted[3] = {0};
    const char *format = NULL;
    (void)state;
    assert_int_equal(psld_image_save(image, "memory.png"), PSLD_OK);
    assert_int_equal(psld_image_encode(image, &packed, &size), PSLD_OK);
    char *file = malloc(size + 1);
    FILE *in = fopen("memory.png", "rb");
    assert_non_null(in);
    assert_int_equal(fread(file, 1, size + 1, in), size);
    assert_memory_equal(file, packed, size);
    fclose(in);
    free(file);
    psld_bytes_free(packed);
    assert_int_equal(psld_image_inspect("memory.png", &format, wanted), PSLD_OK);
    assert_string_equal(format, "PNG");
    assert_memory_equal(wanted, shape, sizeof shape);
    image->rank = 2;
    assert_int_equal(psld_image_encode(image, &packed, &size), PSLD_BAD_ARGUMENT);
    assert_null(packed);
    psld_array_free(image);
    unlink("memory.png");
}

/* Every pixel is a square of equal ones, in every image and channel. */
static void enlarged(void **state)
{
    const size_t shape[4] = {2, 3, 4, 5};
    psld_array *images = make_array(PSLD_U8, 4, shape), *large = NULL, *numbers = make_array(PSLD_F32, 4, shape);
    (void)state;
    assert_int_equal(psld_images_enlarge(images, 3, &large), PSLD_OK);
    const size_t expected[4] = {2, 3, 12, 15};
    assert_memory_equal(large->shape, expected, sizeof expected);
    const uint8_t *from = images->data, *to = large->data;
    for (size_t plane = 0; plane < 6; plane++)
        for (size_t y = 0; y < 12; y++)
            for (size_t x = 0; x < 15; x++)
                assert_int_equal(to[(plane * 12 + y) * 15 + x], from[(plane * 4 + y / 3) * 5 + x / 3]);
    psld_array_free(large);
    assert_int_equal(psld_images_enlarge(images, 0, &large), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_images_enlarge(images, PSLD_MAX_ZOOM + 1, &large), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_images_enlarge(numbers, 2, &large), PSLD_BAD_ARGUMENT);
    assert_null(large);
    psld_array_free(images);
    psld_array_free(numbers);
}

static void pixels_of_numbers(void **state)
{
    static const float numbers[] = {-1, 1, 0, -2, 2, 0.99f, -0.99f, NAN, INFINITY, -INFINITY, 0.0039216f};
    static const uint8_t rounded[] = {0, 255, 128, 0, 255, 254, 1, 0, 255, 0, 128};
    static const uint8_t cut[] = {0, 255, 127, 0, 255, 253, 1, 0, 255, 0, 128};
    const size_t count = sizeof rounded;
    psld_array *x = make_array(PSLD_F32, 1, &count), *u8 = NULL;
    (void)state;
    memcpy(x->data, numbers, sizeof numbers);
    assert_int_equal(psld_images_from_data(x, 0, &u8), PSLD_OK);
    assert_memory_equal(u8->data, rounded, count);
    psld_array_free(u8);
    assert_int_equal(psld_images_from_data(x, 1, &u8), PSLD_OK);
    assert_memory_equal(u8->data, cut, count);
    psld_array_free(u8);
    psld_array_free(x);
    /* All 256 values come back from v / 127.5 - 1, either way of rounding up to one of the floor's. */
    const size_t all = 256;
    x = make_array(PSLD_F32, 1, &all);
    for (int v = 0; v < 256; v++) ((float *)x->data)[v] = (float)(v / 127.5 - 1);
    assert_int_equal(psld_images_from_data(x, 0, &u8), PSLD_OK);
    for (int v = 0; v < 256; v++) assert_int_equal(((uint8_t *)u8->data)[v], v);
    psld_array_free(u8);
    psld_array_free(x);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static bytes starving;

static psld_status decode_and_fit(void)
{
    psld_image image;
    uint8_t planes[3 * 25];
    PSLD_TRY(psld_image_decode(starving.data, starving.size, "file", &image));
    psld_status status = psld_image_fit(&image, 3, 5, 5, 0, PSLD_RESAMPLE_LANCZOS, planes);
    psld_image_release(&image);
    return status;
}

static void out_of_memory(void **state)
{
    uint8_t pixels[J_COUNT * 4];
    const png_form transparent = {.type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8};
    const jpeg_form cmyk = {.colours = JCS_CMYK, .channels = 4, .orientation = 6};
    (void)state;
    fill_noise(pixels, sizeof pixels);
    starving = make_png(&transparent, J_WIDTH, J_HEIGHT, pixels, J_WIDTH * 4);
    starve(decode_and_fit);
    bytes_free(&starving);
    starving = make_jpeg(&cmyk, J_WIDTH, J_HEIGHT, pixels);
    starve(decode_and_fit);
    bytes_free(&starving);
    starving = make_webp(J_WIDTH, J_HEIGHT, pixels);
    starve(decode_and_fit);
    bytes_free(&starving);
}

/* Long pictures are written as they are read: the limits of libpng are not ours. */
static void png_longer_than_a_million(void **state)
{
    (void)state;
    enum { LONG = 1200000 };
    uint8_t *pixels = psld_alloc(LONG, 1);
    psld_image image = {0};
    psld_map map;
    assert_non_null(pixels);
    fill_noise(pixels, LONG);
    if (psld_image_write("long.png", LONG, 1, 1, pixels) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_map_open("long.png", &map), PSLD_OK);
    assert_int_equal(psld_image_decode(map.bytes, map.size, "long.png", &image), PSLD_OK);
    assert_true(image.width == LONG && image.height == 1);
    assert_memory_equal(image.pixels, pixels, LONG);
    psld_image_release(&image);
    psld_map_close(&map);
    psld_release(pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_eight_bits),
        cmocka_unit_test(png_sixteen_bits),
        cmocka_unit_test(png_few_bits_and_palette),
        cmocka_unit_test(png_opacity),
        cmocka_unit_test(png_longer_than_a_million),
        cmocka_unit_test(png_broken),
        cmocka_unit_test(png_with_texts),
        cmocka_unit_test(jpeg_colours),
        cmocka_unit_test(jpeg_cmyk),
        cmocka_unit_test(jpeg_orientation),
        cmocka_unit_test(jpeg_broken),
        cmocka_unit_test(webp_forms),
        cmocka_unit_test(fit_by_definition),
        cmocka_unit_test(fit_crops_the_middle),
        cmocka_unit_test(fit_by_filters),
        cmocka_unit_test(fit_changes_colours),
        cmocka_unit_test(save_and_load),
        cmocka_unit_test(grid),
        cmocka_unit_test(enlarged),
        cmocka_unit_test(in_memory),
        cmocka_unit_test(pixels_of_numbers),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
