/* Data sets: every kind gives the pixels and labels that were put into it; what is broken is skipped, counted and named;
 * the loader's order is a permutation that nothing but the sample's number decides. Files are made on the fly. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "archives.h"
#include "base/alloc.h"
#include "data/data.h"
#include "data/loader.h"
#include "data/order.h"
#include "io/tensors/npz.h"
#include "pictures.h"
#include "skip.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

enum { SIDE = 8, PIXELS = SIDE * SIDE * 3 };

static uint8_t noise(size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + 12345;
    return (uint8_t)((x ^ x >> 15) * 2246822519u >> 24);
}

/* The picture number `number`, rows of colours. */
static bytes picture(unsigned number, unsigned side)
{
    uint8_t *pixels = malloc((size_t)side * side * 3);
    const png_form form = {.type = PNG_COLOR_TYPE_RGB, .bits = 8};
    for (size_t i = 0; i < (size_t)side * side * 3; i++) pixels[i] = noise(i + number * 1000);
    bytes file = make_png(&form, side, side, pixels, (size_t)side * 3);
    free(pixels);
    return file;
}

static uint8_t pixel(unsigned number, size_t c, size_t y, size_t x)
{
    return noise((y * SIDE + x) * 3 + c + number * 1000);
}

static void check_picture(unsigned number, const uint8_t *planes)
{
    for (size_t i = 0; i < PIXELS; i++)
        if (planes[i] != pixel(number, i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE))
            fail_msg("not picture %u at %zu", number, i);
}

static void save(bytes file, const char *path)
{
    bytes_save(&file, path);
    bytes_free(&file);
}

static psld_data *open_data(const char *path, const psld_data_options *options)
{
    psld_data *data = NULL;
    if (psld_data_open(path, options, &data) != PSLD_OK) fail_msg("%s", psld_error_text());
    return data;
}

static void check_refused(const char *path, const psld_data_options *options, psld_status expected, const char *why)
{
    psld_data *data = NULL;
    long live = psld_alloc_live();
    assert_int_equal(psld_data_open(path, options, &data), expected);
    assert_null(data);
    if (!strstr(psld_error_text(), why)) fail_msg("no \"%s\" in: %s", why, psld_error_text());
    assert_int_equal(psld_alloc_live(), live);
}

static char logged[4096];
static int log_lines;

static void remember(void *user, psld_log_level level, const char *line)
{
    (void)user, (void)level;
    log_lines++;
    snprintf(logged, sizeof logged, "%s", line);
}

/* ---- Folders and archives ---------------------------------------------------------------------------------------- */

static const char *const names[] = {"top/ant/1.png", "top/ant/2.PNG", "top/bee/a.png", "top/cow/z.png"};
enum { NAMES = 4 };

static void make_folder(void)
{
    mkdir("set", 0777);
    mkdir("set/top", 0777);
    mkdir("set/top/ant", 0777);
    mkdir("set/top/bee", 0777);
    mkdir("set/top/cow", 0777);
    for (unsigned i = 0; i < NAMES; i++) {
        char path[64];
        snprintf(path, sizeof path, "set/%s", names[i]);
        save(picture(i, SIDE), path);
    }
    save(picture(99, SIDE), "set/top/.hidden.png");
    bytes text = {0};
    bytes_text(&text, "not an image");
    save(text, "set/top/ant/read me.txt");
}

/* An archive of the pictures, last ones first, and of one more entry under any name. */
static void make_archive(const char *path, const char *format, const char *other)
{
    struct archive *a = archive_begin(path, format);
    for (unsigned i = 0; i < NAMES + (other ? 1 : 0); i++)
        archive_add(a, i < NAMES ? names[NAMES - 1 - i] : other, picture(NAMES - 1 - i, SIDE));
    archive_end(a);
}

static void check_set(psld_data *data, const char *kind)
{
    size_t shape[PSLD_MAX_RANK];
    const uint64_t index[NAMES] = {3, 0, 2, 1};
    const int32_t labels[NAMES] = {2, 0, 1, 0};
    uint8_t pixels[NAMES * PIXELS];
    float x[NAMES * PIXELS];
    int32_t label[NAMES], again[NAMES];
    assert_string_equal(psld_data_kind(data), kind);
    assert_int_equal(psld_data_count(data), NAMES);
    assert_int_equal(psld_data_is_image(data), 1);
    assert_int_equal(psld_data_shape(data, shape), 3);
    assert_true(shape[0] == 3 && shape[1] == SIDE && shape[2] == SIDE);
    assert_int_equal(psld_data_classes(data), 3);
    assert_string_equal(psld_data_class(data, 0), "ant");
    assert_int_equal(psld_data_class_count(data, 0), 2);
    assert_string_equal(psld_data_class(data, 2), "cow");
    for (int round = 0; round < 2; round++) { /* decoded, then kept */
        assert_int_equal(psld_data_read_u8(data, NAMES, index, pixels, label), PSLD_OK);
        for (size_t i = 0; i < NAMES; i++) check_picture((unsigned)index[i], pixels + i * PIXELS);
        assert_memory_equal(label, labels, sizeof labels);
    }
    assert_int_equal(psld_data_read(data, NAMES, index, x, again), PSLD_OK);
    assert_memory_equal(again, labels, sizeof labels);
    for (size_t i = 0; i < NAMES * PIXELS; i++) assert_true(x[i] == (float)(pixels[i] / 127.5 - 1));
    const uint64_t beyond = NAMES;
    assert_int_equal(psld_data_read(data, 1, &beyond, x, NULL), PSLD_BAD_ARGUMENT);
}

static void folders_and_archives(void **state)
{
    static const struct {
        const char *path, *filter, *kind;
    } archives[] = {{"set.tar", "", "tar archive of images"},
                    {"set.tar.gz", "gzip", "tar archive of images"},
                    {"set.zip", "zip", "zip archive of images"}};
    psld_data_options options;
    (void)state;
    make_folder();
    psld_data *data = open_data("set", NULL);
    check_set(data, "folder of images");
    psld_data_free(data);
    for (size_t i = 0; i < 3; i++) {
        make_archive(archives[i].path, archives[i].filter, NULL);
        for (int spilled = 0; spilled < 2; spilled++) { /* everything in a file without a name */
            options = (psld_data_options)PSLD_DATA_DEFAULTS;
            if (spilled) options.memory = 0;
            options.cache_dir = ".";
            data = open_data(archives[i].path, &options);
            check_set(data, archives[i].kind);
            assert_int_equal(psld_data_skipped(data), 0);
            psld_data_free(data);
        }
    }
}

static void hostile_names(void **state)
{
    static const char *const bad[] = {"/etc/x.png", "../x.png", "top/../../x.png", "top/ant/.."};
    psld_data_options strict;
    (void)state;
    strict = (psld_data_options)PSLD_DATA_DEFAULTS;
    strict.strict = 1;
    psld_log_to(remember, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int zip = 0; zip < 2; zip++) {
            make_archive("bad", zip ? "zip" : "", bad[i]);
            log_lines = 0;
            psld_data *data = open_data("bad", NULL);
            assert_int_equal(psld_data_count(data), NAMES);
            assert_int_equal(psld_data_skipped(data), 1);
            assert_int_equal(log_lines, 1);
            if (!strstr(logged, bad[i])) fail_msg("%s", logged);
            psld_data_free(data);
            check_refused("bad", &strict, PSLD_BAD_INPUT, "point outside of it");
        }
    psld_log_to(NULL, NULL);
    unlink("bad");
}

/* Rules against archives that would write elsewhere say nothing about folders, whose files are where they are. */
static void odd_names_in_folders(void **state)
{
    (void)state;
    mkdir("odd", 0777);
    save(picture(5, SIDE), "odd/a:b.png");
    save(picture(6, SIDE), "odd/\\c.png");
    psld_data *data = open_data("odd", NULL);
    assert_int_equal(psld_data_count(data), 2);
    assert_int_equal(psld_data_skipped(data), 0);
    psld_data_free(data);
    data = open_data("odd/a:b.png", NULL);
    assert_int_equal(psld_data_count(data), 1);
    psld_data_free(data);
}

/* Names that begin alike, in an order of the caller's: every image finds its own, whatever lies between. */
static void classes_that_begin_alike(void **state)
{
    static const char *const order[] = {"b", "a.b", "a", "a-b", "a0", "a", "a b", "ab"};
    static const char *const files[] = {"a b/1.png", "a-b/1.png", "a.b/1.png", "a.png",   "a/1.png", "a/b/2.png",
                                        "a/c.png",   "a0/1.png",  "ab/1.png",  "b/1.png", "b/2.png"};
    static const int32_t expected[] = {6, 3, 1, -1, 2, 2, 2, 4, 7, 0, 0};
    enum { FILES = sizeof files / sizeof *files };
    static const char *const folders[] = {"a b", "a-b", "a.b", "a", "a/b", "a0", "ab", "b"};
    char path[64];
    psld_data_options options;
    uint64_t index[FILES];
    int32_t label[FILES];
    static uint8_t pixels[FILES * PIXELS];
    (void)state;
    mkdir("alike", 0777);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "alike/%s", folders[i]);
        mkdir(path, 0777);
    }
    for (size_t i = 0; i < FILES; i++) {
        index[i] = i;
        snprintf(path, sizeof path, "alike/%s", files[i]);
        save(picture((unsigned)i, SIDE), path);
    }
    psld_data *data = open_data("alike", NULL);
    assert_int_equal(psld_data_classes(data), 7);
    psld_data_free(data);
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.classes = order;
    options.class_count = sizeof order / sizeof *order;
    data = open_data("alike", &options);
    assert_int_equal(psld_data_count(data), FILES);
    assert_int_equal(psld_data_read_u8(data, FILES, index, pixels, label), PSLD_OK);
    assert_memory_equal(label, expected, sizeof expected);
    assert_int_equal(psld_data_class_count(data, 2), 3);
    assert_int_equal(psld_data_class_count(data, 5), 0); /* of equal names the first counts */
    psld_data_free(data);
}

static void classes_in_order(void **state)
{
    static const char *const order[] = {"dog", "cow", "ant", "bee"};
    psld_data_options options;
    const uint64_t index[NAMES] = {0, 1, 2, 3};
    int32_t label[NAMES];
    uint8_t pixels[NAMES * PIXELS];
    (void)state;
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.classes = order;
    options.class_count = 4;
    psld_data *data = open_data("set", &options);
    assert_int_equal(psld_data_classes(data), 4);
    assert_string_equal(psld_data_class(data, 1), "cow");
    assert_int_equal(psld_data_class_count(data, 0), 0);
    assert_int_equal(psld_data_class_count(data, 2), 2);
    assert_int_equal(psld_data_read_u8(data, NAMES, index, pixels, label), PSLD_OK);
    const int32_t expected[NAMES] = {2, 2, 3, 1};
    assert_memory_equal(label, expected, sizeof expected);
    psld_data_free(data);
    options.class_count = 3;
    check_refused("set", &options, PSLD_BAD_INPUT, "its class \"bee\" is not among the classes given");
    /* A single folder of images has no classes, unless it is asked for as one. */
    data = open_data("set/top/ant", NULL);
    assert_int_equal(psld_data_classes(data), 0);
    psld_data_free(data);
}

/* The five files of broken/ are cut to this many bytes. */
static void cut_all(off_t size)
{
    for (unsigned i = 0; i < 5; i++) {
        char path[64];
        snprintf(path, sizeof path, "broken/%u.png", i);
        assert_int_equal(truncate(path, size), 0);
    }
}

static void broken_images(void **state)
{
    psld_data_options options;
    const uint64_t index[5] = {0, 1, 2, 3, 4};
    uint8_t pixels[5 * PIXELS];
    (void)state;
    mkdir("broken", 0777);
    for (unsigned i = 0; i < 5; i++) {
        char path[64];
        bytes file = picture(i, SIDE);
        if (i == 1 || i == 4) file.size /= 2;
        snprintf(path, sizeof path, "broken/%u.png", i);
        save(file, path);
    }
    psld_log_to(remember, NULL);
    log_lines = 0;
    psld_data *data = open_data("broken", NULL);
    for (int round = 0; round < 2; round++) {
        const unsigned expected[5] = {0, 2, 2, 3, 0};
        assert_int_equal(psld_data_read_u8(data, 5, index, pixels, NULL), PSLD_OK);
        for (size_t i = 0; i < 5; i++) check_picture(expected[i], pixels + i * PIXELS);
        assert_int_equal(psld_data_skipped(data), 2);
        assert_int_equal(log_lines, 2);
    }
    assert_non_null(strstr(logged, "skipped broken/"));
    psld_data_free(data);
    data = open_data("broken", NULL);
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_data_skipped(data), 2);
    assert_int_equal(psld_data_mixed(data), 0);
    psld_data_free(data);
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.strict = 1;
    data = open_data("broken", &options);
    assert_int_equal(psld_data_read_u8(data, 1, index, pixels, NULL), PSLD_OK);
    assert_int_equal(psld_data_read_u8(data, 5, index, pixels, NULL), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "broken/1.png: a broken PNG"));
    psld_data_free(data);
    cut_all(60);
    data = open_data("broken", NULL); /* the headers can still be read */
    assert_int_equal(psld_data_read_u8(data, 1, index, pixels, NULL), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "broken: none of the 5 images can be read"));
    psld_data_free(data);
    cut_all(3);
    check_refused("broken", NULL, PSLD_BAD_INPUT, "no image can be read; the first: broken/0.png");
    psld_log_to(NULL, NULL);
    mkdir("empty", 0777);
    check_refused("empty", NULL, PSLD_BAD_INPUT, "empty: a folder without images");
    check_refused("absent", NULL, PSLD_IO, "absent: cannot read");
}

/* Files that are there but cannot be read are an error, not images that are left out. */
static void unreadable_images(void **state)
{
    const uint64_t index[3] = {0, 1, 2};
    uint8_t pixels[3 * PIXELS];
    (void)state;
    mkdir("unreadable", 0777);
    save(picture(5, SIDE), "unreadable/1.png");
    save(picture(6, SIDE), "unreadable/2.png");
    unlink("unreadable/3.png");
    save(picture(7, SIDE), "unreadable/3.png");
    psld_data *data = open_data("unreadable", NULL);
    assert_int_equal(unlink("unreadable/3.png"), 0);
    assert_int_equal(symlink("/proc/self/mem", "unreadable/3.png"), 0);
    int is_locked =
        chmod("unreadable/2.png", 0) == 0 && access("unreadable/2.png", R_OK) != 0; /* root reads it all the same */
    assert_int_equal(psld_data_read_u8(data, 1, index, pixels, NULL), PSLD_OK);
    check_picture(5, pixels);
    assert_int_equal(psld_data_read_u8(data, 3, index, pixels, NULL), PSLD_IO);
    if (!strstr(psld_error_text(), is_locked ? "unreadable/2.png: cannot read" : "unreadable/3.png: cannot read"))
        fail_msg("%s", psld_error_text());
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_IO);
    assert_int_equal(psld_data_skipped(data), 0);
    psld_data_free(data);
    chmod("unreadable/2.png", 0666);
}

/* Images of formats that are not read are spoken of; other files are nobody's concern. */
static void foreign_formats(void **state)
{
    (void)state;
    static const char *const beside[] = {"foreign/samples.json", "foreign/b.gif", "foreign/c.TIFF"};
    mkdir("foreign", 0777);
    save(picture(1, SIDE), "foreign/1.png");
    for (int i = 0; i < 3; i++) unlink(beside[i]); /* of an earlier run */
    for (int i = 0; i < 3; i++) {
        bytes text = {0};
        bytes_text(&text, "not an image");
        save(text, beside[i]);
        log_lines = 0;
        psld_log_to(remember, NULL);
        psld_data_free(open_data("foreign", NULL));
        psld_log_to(NULL, NULL);
        assert_int_equal(log_lines, i > 0);
    }
    assert_non_null(
        strstr(logged, "foreign: 2 images in formats that cannot be read are left out; the first is b.gif"));
}

static void other_sizes(void **state)
{
    psld_data_options options;
    const uint64_t index[3] = {0, 1, 2};
    uint8_t pixels[3 * PIXELS];
    size_t shape[PSLD_MAX_RANK];
    (void)state;
    mkdir("sizes", 0777);
    save(picture(0, SIDE), "sizes/a.png");
    save(picture(1, SIDE), "sizes/b.png");
    save(picture(2, 2 * SIDE), "sizes/c.png");
    psld_data *data = open_data("sizes", NULL);
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_data_mixed(data), 1);
    assert_int_equal(psld_data_read_u8(data, 2, index, pixels, NULL), PSLD_OK);
    assert_int_equal(psld_data_read_u8(data, 3, index, pixels, NULL), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "16 x 16 pixels"));
    psld_data_free(data);
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.image_size = 4;
    options.channels = 1;
    data = open_data("sizes", &options);
    psld_data_shape(data, shape);
    assert_true(shape[0] == 1 && shape[1] == 4 && shape[2] == 4);
    assert_int_equal(psld_data_read_u8(data, 3, index, pixels, NULL), PSLD_OK);
    psld_data_free(data);
    options.channels = 2;
    check_refused("sizes", &options, PSLD_BAD_ARGUMENT, "2 channels, expected 1 (grey), 3 (colour) or 0");
    options.channels = 0;
    options.image_size = 20000;
    check_refused("sizes", &options, PSLD_BAD_ARGUMENT, "pixels are too large");
}

/* One odd image, or a broken one, does not decide what the others are brought to. */
static void odd_first_image(void **state)
{
    size_t shape[PSLD_MAX_RANK];
    char path[32];
    (void)state;
    mkdir("thumb", 0777);
    save(picture(0, 3), "thumb/000.png");
    save((bytes){0}, "thumb/001.png");
    for (unsigned i = 2; i < 100; i++) {
        snprintf(path, sizeof path, "thumb/%03u.png", i);
        save(picture(i, i % 3 ? SIDE : 2 * SIDE), path);
    }
    psld_data *data = open_data("thumb", NULL);
    assert_int_equal(psld_data_shape(data, shape), 3);
    assert_true(shape[0] == 3 && shape[1] == SIDE && shape[2] == SIDE);
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_data_mixed(data), 1);
    psld_data_free(data);
}

/* ---- IDX --------------------------------------------------------------------------------------------------------- */

static bytes make_idx(int rank, const uint32_t *shape, size_t extra)
{
    bytes b = {0};
    size_t count = 1;
    bytes_put(&b, "\0\0\x08", 3);
    bytes_number(&b, (uint64_t)rank, 1);
    for (int i = 0; i < rank; i++) {
        for (int j = 3; j >= 0; j--) bytes_number(&b, shape[i] >> 8 * j, 1);
        count *= shape[i];
    }
    for (size_t i = 0; i < count + extra; i++) {
        uint8_t value = rank == 1 ? (uint8_t)(i % 7) : noise(i);
        bytes_put(&b, &value, 1);
    }
    return b;
}

static void save_gz(bytes file, const char *path)
{
    gzFile gz = gzopen(path, "wb");
    assert_int_equal(gzwrite(gz, file.data, (unsigned)file.size), (int)file.size);
    gzclose(gz);
    bytes_free(&file);
}

static void idx_sets(void **state)
{
    const uint32_t train[3] = {20, 5, 6}, test[3] = {10, 5, 6};
    const uint64_t last = 19;
    uint8_t pixels[30];
    int32_t label = 0;
    psld_data_options options;
    (void)state;
    mkdir("digits", 0777);
    save_gz(make_idx(3, train, 0), "digits/train-images-idx3-ubyte.gz");
    save(make_idx(1, train, 0), "digits/train-labels-idx1-ubyte");
    save(make_idx(3, test, 0), "digits/t10k-images-idx3-ubyte");
    save_gz(make_idx(1, test, 0), "digits/t10k-labels-idx1-ubyte.gz");
    static const char *const paths[] = {"digits", "digits/train-images-idx3-ubyte.gz"};
    for (int i = 0; i < 2; i++) {
        psld_data *data = open_data(paths[i], NULL);
        assert_int_equal(psld_data_count(data), 20);
        assert_int_equal(psld_data_classes(data), 7);
        assert_string_equal(psld_data_class(data, 6), "6");
        assert_int_equal(psld_data_read_u8(data, 1, &last, pixels, &label), PSLD_OK);
        for (size_t j = 0; j < 30; j++) assert_int_equal(pixels[j], noise(19 * 30 + j));
        assert_int_equal(label, 19 % 7);
        psld_data_free(data);
    }
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.test = 1;
    psld_data *data = open_data("digits", &options);
    assert_int_equal(psld_data_count(data), 10);
    assert_int_equal(psld_data_classes(data), 7);
    psld_data_free(data);
    data = open_data("digits/t10k-images-idx3-ubyte", NULL);
    assert_int_equal(psld_data_count(data), 10);
    psld_data_free(data);
}

static void idx_broken(void **state)
{
    const uint32_t shape[3] = {20, 5, 6}, vast[3] = {0xffffffff, 0xffffffff, 0xffffffff}, none[3] = {0, 5, 6},
                   few[1] = {19};
    (void)state;
    bytes file = make_idx(3, shape, 0);
    file.size--;
    save(file, "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "x-idx: by its IDX header the file has 616 bytes, it has fewer");
    save(make_idx(3, shape, 1), "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "it has more");
    save_gz(make_idx(3, shape, 1), "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "it has more");
    file = make_idx(3, shape, 0);
    file.size = 10;
    save(file, "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "ends within the IDX header");
    file = (bytes){0};
    bytes_put(&file, "\0\0\x08\x03", 4);
    for (int i = 0; i < 3; i++) bytes_number(&file, vast[i], 4);
    save(file, "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "too large");
    save(make_idx(3, none, 0), "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "size 1 of the IDX header is 0");
    file = make_idx(3, shape, 0);
    file.data[2] = 13;
    save(file, "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "elements of type 0x0d, expected 0x08");
    save(make_idx(1, few, 0), "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "an IDX file of rank 1, expected images");
    save(make_idx(3, shape, 0), "x-images-idx3-ubyte");
    save(make_idx(1, few, 0), "x-labels-idx1-ubyte");
    check_refused("x-images-idx3-ubyte", NULL, PSLD_BAD_INPUT,
                  "x-labels-idx1-ubyte: 19 labels, expected as many as images: 20");
    /* A .gz that is cut off, or claims what it cannot hold. */
    save_gz(make_idx(3, shape, 0), "x-idx");
    assert_int_equal(truncate("x-idx", 300), 0);
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "x-idx: the .gz file is cut off");
    file = (bytes){0};
    bytes_put(&file, "\0\0\x08\x03\0\xff\xff\xff\0\0\xff\xff\0\0\xff\xff", 16);
    save_gz(file, "x-idx");
    check_refused("x-idx", NULL, PSLD_BAD_INPUT, "it has fewer");
}

/* ---- CIFAR ------------------------------------------------------------------------------------------------------- */

enum { C_PIXELS = 3072 };

static bytes make_records(unsigned first, unsigned count, int label_bytes)
{
    bytes b = {0};
    for (unsigned i = first; i < first + count; i++) {
        if (label_bytes == 2) bytes_number(&b, 3, 1);
        bytes_number(&b, i % 10, 1);
        for (size_t j = 0; j < C_PIXELS; j++) bytes_put(&b, &(uint8_t){noise(j + i * 5000)}, 1);
    }
    return b;
}

/* A batch as Python 2 pickled it: strings hold the bytes. */
static bytes make_pickle(unsigned first, unsigned count, const char *type, int64_t claimed, const char *label_key)
{
    bytes b = {0};
    const int64_t shape[2] = {claimed, C_PIXELS}, nothing = 0;
    bytes_text(&b, "\x80\x02}(");
    pickle_text(&b, "data");
    bytes_text(&b, "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n");
    pickle_integers(&b, 1, &nothing);
    bytes_text(&b, "U\x01"
                   "btR(K\x01");
    pickle_integers(&b, 2, shape);
    bytes_text(&b, "cnumpy\ndtype\n(");
    pickle_text(&b, type);
    bytes_text(&b, "K");
    bytes_number(&b, 0, 1);
    bytes_text(&b, "K\x01tR(K\x03U\x01|NNNJ");
    bytes_number(&b, 0xffffffff, 4);
    bytes_text(&b, "J");
    bytes_number(&b, 0xffffffff, 4);
    bytes_text(&b, "K");
    bytes_number(&b, 0, 1);
    bytes_text(&b, "tb\x89T");
    bytes_number(&b, (uint64_t)count * C_PIXELS, 4);
    for (unsigned i = first; i < first + count; i++)
        for (size_t j = 0; j < C_PIXELS; j++) bytes_put(&b, &(uint8_t){noise(j + i * 5000)}, 1);
    bytes_text(&b, "tb");
    pickle_text(&b, label_key);
    bytes_text(&b, "](");
    for (unsigned i = first; i < first + count; i++) pickle_integer(&b, i % 10);
    bytes_text(&b, "eu.");
    return b;
}

static void check_cifar(const char *path, int test, unsigned first, unsigned count, const char *last_class)
{
    psld_data_options options;
    uint8_t pixels[C_PIXELS];
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.test = test;
    psld_data *data = open_data(path, &options);
    assert_int_equal(psld_data_count(data), count);
    if (last_class) assert_string_equal(psld_data_class(data, 9), last_class);
    for (uint64_t i = 0; i < count; i++) {
        int32_t label = 0;
        assert_int_equal(psld_data_read_u8(data, 1, &i, pixels, &label), PSLD_OK);
        assert_int_equal(label, (first + i) % 10);
        for (size_t j = 0; j < C_PIXELS; j++) assert_int_equal(pixels[j], noise(j + (first + i) * 5000));
    }
    psld_data_free(data);
}

static void cifar_binary(void **state)
{
    bytes meta = {0};
    (void)state;
    mkdir("bin", 0777);
    unlink("bin/batches.meta.txt"); /* of an earlier run */
    save(make_records(0, 3, 1), "bin/data_batch_1.bin");
    save(make_records(3, 2, 1), "bin/data_batch_2.bin");
    save(make_records(50, 4, 1), "bin/test_batch.bin");
    check_cifar("bin", 0, 0, 5, "truck");
    check_cifar("bin", 1, 50, 4, "truck");
    check_cifar("bin/data_batch_2.bin", 0, 3, 2, "truck");
    bytes_text(&meta, "a\nb\nc\nd\ne\nf\ng\nh\ni\nlorry\n\n");
    save(meta, "bin/batches.meta.txt");
    check_cifar("bin", 0, 0, 5, "lorry");
    mkdir("bin100", 0777);
    save(make_records(0, 3, 2), "bin100/train.bin");
    save(make_records(7, 1, 2), "bin100/test.bin");
    bytes none = {0};
    bytes_text(&none, "only one name\n");
    save(none, "bin100/fine_label_names.txt");
    check_cifar("bin100", 0, 0, 3, "9");
    check_cifar("bin100", 1, 7, 1, "9");
    check_cifar("bin100/train.bin", 0, 0, 3, "9");
    bytes broken = make_records(0, 2, 1);
    broken.data[3073] = 10;
    save(broken, "bin/data_batch_3.bin");
    check_refused("bin", NULL, PSLD_BAD_INPUT, "bin/data_batch_3.bin: image 1 has label 10, expected 0 to 9");
    assert_int_equal(truncate("bin/data_batch_3.bin", 4000), 0);
    check_refused("bin", NULL, PSLD_BAD_INPUT, "bin/data_batch_3.bin: 4000 bytes, expected a multiple of 3073");
    check_refused("bin/data_batch_3.bin", NULL, PSLD_BAD_INPUT, "not a binary file of CIFAR-10 or CIFAR-100");
    unlink("bin/data_batch_3.bin");
}

static void cifar_pickled(void **state)
{
    (void)state;
    mkdir("py", 0777);
    save(make_pickle(0, 3, "u1", 3, "labels"), "py/data_batch_1");
    save(make_pickle(3, 2, "u1", 2, "labels"), "py/data_batch_2");
    save(make_pickle(9, 1, "u1", 1, "labels"), "py/test_batch");
    check_cifar("py", 0, 0, 5, "truck");
    check_cifar("py", 1, 9, 1, "truck");
    check_cifar("py/data_batch_2", 0, 3, 2, "truck");
    save(make_pickle(5, 2, "u1", 2, "fine_labels"), "py/data_batch_2");
    check_cifar("py/data_batch_2", 0, 5, 2, "9");
    check_refused("py", NULL, PSLD_BAD_INPUT, "expected a list of 2 numbers under \"labels\"");
    save(make_pickle(3, 2, "f4", 2, "labels"), "py/data_batch_2");
    check_refused("py", NULL, PSLD_BAD_INPUT, "the state of a NumPy array makes no sense");
    save(make_pickle(3, 2, "u1", 20, "labels"), "py/data_batch_2");
    check_refused("py", NULL, PSLD_BAD_INPUT, "the state of a NumPy array makes no sense");
    save(make_pickle(3, 2, "u1", -1, "labels"), "py/data_batch_2");
    check_refused("py", NULL, PSLD_BAD_INPUT, "the state of a NumPy array makes no sense");
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static psld_array *make_array(psld_type type, int rank, const size_t *shape)
{
    psld_array *array = NULL;
    assert_int_equal(psld_array_create(type, rank, shape, &array), PSLD_OK);
    for (size_t i = 0; i < array->count; i++) {
        if (type == PSLD_U8) ((uint8_t *)array->data)[i] = noise(i);
        if (type == PSLD_F32) ((float *)array->data)[i] = (float)i / 8;
        if (type == PSLD_F64) ((double *)array->data)[i] = (double)i / 8;
        if (type == PSLD_I64) ((int64_t *)array->data)[i] = (int64_t)i % 3 - 1;
    }
    return array;
}

static void save_array(psld_type type, int rank, const size_t *shape, const char *path)
{
    psld_array *array = make_array(type, rank, shape);
    assert_int_equal(psld_array_save(array, path), PSLD_OK);
    psld_array_free(array);
}

static void array_images(void **state)
{
    const size_t forms[3][4] = {{4, 5, 6, 0}, {4, 5, 6, 3}, {4, 3, 5, 6}};
    const size_t ranks[3] = {3, 4, 4};
    uint8_t pixels[90];
    const uint64_t index = 2;
    size_t shape[PSLD_MAX_RANK];
    (void)state;
    for (int i = 0; i < 3; i++) {
        save_array(PSLD_U8, (int)ranks[i], forms[i], "x.npy");
        psld_data *data = open_data("x.npy", NULL);
        size_t channels = i == 0 ? 1 : 3, each = channels * 30;
        psld_data_shape(data, shape);
        assert_true(shape[0] == channels && shape[1] == 5 && shape[2] == 6);
        assert_int_equal(psld_data_read_u8(data, 1, &index, pixels, NULL), PSLD_OK);
        for (size_t c = 0; c < channels; c++)
            for (size_t j = 0; j < 30; j++)
                assert_int_equal(pixels[c * 30 + j], noise(2 * each + (i == 1 ? j * 3 + c : c * 30 + j)));
        psld_data_free(data);
    }
}

static void array_numbers(void **state)
{
    const size_t shape[2] = {5, 3};
    const uint64_t index[2] = {4, 1};
    float x[6];
    int32_t label[2];
    size_t found[PSLD_MAX_RANK];
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        save_array(wide ? PSLD_F64 : PSLD_F32, 2, shape, "v.npy");
        psld_data *data = open_data("v.npy", NULL);
        assert_int_equal(psld_data_is_image(data), 0);
        assert_int_equal(psld_data_shape(data, found), 1);
        assert_int_equal(found[0], 3);
        assert_int_equal(psld_data_read(data, 2, index, x, label), PSLD_OK);
        for (int i = 0; i < 6; i++) assert_true(x[i] == (float)(index[i / 3] * 3 + (uint64_t)i % 3) / 8);
        assert_int_equal(label[0], -1);
        assert_int_equal(psld_data_read_u8(data, 1, index, (uint8_t *)x, NULL), PSLD_BAD_ARGUMENT);
        psld_data_free(data);
    }
    psld_array *bad = make_array(PSLD_F32, 2, shape);
    ((float *)bad->data)[14] = NAN;
    assert_int_equal(psld_array_save(bad, "v.npy"), PSLD_OK);
    psld_array_free(bad);
    psld_data *data = open_data("v.npy", NULL);
    assert_int_equal(psld_data_read(data, 2, index, x, NULL), PSLD_BAD_INPUT);
    psld_data_free(data);
    save_array(PSLD_I64, 2, shape, "v.npy");
    check_refused("v.npy", NULL, PSLD_BAD_INPUT, "whole numbers, expected u8 images or float numbers");
    const size_t none[2] = {0, 3};
    save_array(PSLD_F32, 2, none, "v.npy");
    check_refused("v.npy", NULL, PSLD_BAD_INPUT, "the array has no items");
}

/* A file behind /dev/stdin is looked at and then read, from where it is; a pipe cannot be. */
static void standard_input(void **state)
{
    (void)state;
    static char head[100];
    int before = dup(STDIN_FILENO), ends[2];
    psld_array *a = make_array(PSLD_F32, 2, (const size_t[]){1500, 2});
    assert_int_equal(psld_array_save(a, "input.npy"), PSLD_OK);
    int file = open("input.npy", O_RDONLY), later = open("later.npy", O_RDWR | O_CREAT | O_TRUNC, 0666);
    dup2(file, STDIN_FILENO);
    psld_data *data = open_data("/dev/stdin", NULL);
    assert_int_equal(psld_data_count(data), 1500);
    psld_data_free(data);
    static char all[1 << 16];
    ssize_t size = read(file, all, sizeof all);
    assert_true(size > 0 && write(later, head, sizeof head) == sizeof head && write(later, all, (size_t)size) == size);
    assert_int_equal(lseek(later, sizeof head, SEEK_SET), sizeof head);
    dup2(later, STDIN_FILENO);
    data = open_data("/dev/stdin", NULL);
    assert_int_equal(psld_data_count(data), 1500);
    psld_data_free(data);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], all, 8192), 8192);
    dup2(ends[0], STDIN_FILENO);
    check_refused("/dev/stdin", NULL, PSLD_BAD_INPUT, "/dev/stdin: a pipe cannot be looked at");
    dup2(before, STDIN_FILENO);
    close(before), close(file), close(later), close(ends[0]), close(ends[1]);
    psld_array_free(a);
}

static void array_archives(void **state)
{
    const size_t images_shape[3] = {5, 4, 4}, labels_shape[1] = {5}, short_shape[1] = {4};
    const uint64_t index[3] = {0, 1, 2};
    uint8_t pixels[48];
    int32_t label[3];
    (void)state;
    psld_array *images = make_array(PSLD_U8, 3, images_shape), *labels = make_array(PSLD_I64, 1, labels_shape),
               *few = make_array(PSLD_I64, 1, short_shape);
    const char *const both[2] = {"images", "labels"};
    const psld_array *arrays[2] = {images, labels};
    assert_int_equal(psld_npz_save("set.npz", 2, both, arrays), PSLD_OK);
    psld_data *data = open_data("set.npz", NULL);
    assert_int_equal(psld_data_classes(data), 2);
    assert_int_equal(psld_data_read_u8(data, 3, index, pixels, label), PSLD_OK);
    assert_memory_equal(pixels, images->data, sizeof pixels);
    assert_true(label[0] == -1 && label[1] == 0 && label[2] == 1);
    psld_data_free(data);
    arrays[1] = few;
    assert_int_equal(psld_npz_save("set.npz", 2, both, arrays), PSLD_OK);
    check_refused("set.npz", NULL, PSLD_BAD_INPUT, "labels: expected 5 whole numbers");
    const char *const others[2] = {"mu", "sigma"};
    assert_int_equal(psld_npz_save("set.npz", 2, others, arrays), PSLD_OK);
    check_refused("set.npz", NULL, PSLD_BAD_INPUT, "no array images, it has: mu, sigma");
    psld_array_free(images);
    psld_array_free(labels);
    psld_array_free(few);
}

/* ---- Toys -------------------------------------------------------------------------------------------------------- */

static void toys(void **state)
{
    enum { DRAWS = 20000 };
    static float x[2 * DRAWS], y[4];
    static uint64_t index[DRAWS];
    static int32_t label[DRAWS];
    (void)state;
    for (size_t i = 0; i < DRAWS; i++) index[i] = i;
    for (int t = 0; psld_toy_at(t); t++) {
        char path[64];
        double mean[2] = {0, 0}, square = 0;
        snprintf(path, sizeof path, "toy:%s", psld_toy_at(t)->name);
        psld_data *data = open_data(path, NULL);
        assert_int_equal(psld_data_count(data), UINT64_C(1) << 32);
        assert_int_equal(psld_data_read(data, DRAWS, index, x, label), PSLD_OK);
        for (size_t i = 0; i < DRAWS; i++) {
            for (size_t c = 0; c < 2; c++) {
                mean[c] += (double)x[2 * i + c] / DRAWS;
                square += (double)x[2 * i + c] * (double)x[2 * i + c] / (2 * DRAWS);
            }
            assert_true(label[i] >= (psld_data_classes(data) ? 0 : -1) && label[i] < (int32_t)psld_data_classes(data));
        }
        /* Five standard errors: 1 / sqrt(20000) for means; no fourth moment is above 4. */
        if (fabs(mean[0]) > 0.036 || fabs(mean[1]) > 0.036 || fabs(square - 1) > 0.045)
            fail_msg("%s: mean %g %g, square %g", path, mean[0], mean[1], square);
        assert_int_equal(psld_data_read(data, 2, index + 7, y, NULL), PSLD_OK);
        assert_memory_equal(y, x + 14, sizeof y);
        psld_data_free(data);
        psld_data_options options = PSLD_DATA_DEFAULTS;
        options.test = 1;
        data = open_data(path, &options);
        assert_int_equal(psld_data_read(data, 1, index, y, NULL), PSLD_OK);
        assert_memory_not_equal(y, x, 8);
        psld_data_free(data);
    }
    psld_data *data = open_data("toy:rings:100", NULL);
    assert_int_equal(psld_data_count(data), 100);
    psld_data_free(data);
    check_refused("toy:ring", NULL, PSLD_BAD_ARGUMENT, "no such toy set, expected toy: and one of swissroll, moons");
    check_refused("toy:rings:0", NULL, PSLD_BAD_ARGUMENT, "expected a number from 1");
    check_refused("toy:rings:x", NULL, PSLD_BAD_ARGUMENT, "expected a number from 1");
}

/* ---- Order and loader -------------------------------------------------------------------------------------------- */

static void order_is_a_permutation(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4096, 50000};
    static uint8_t seen[50000];
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            memset(seen, 0, sizeof seen);
            for (uint64_t place = 0; place < counts[i]; place++) {
                uint64_t item = psld_order_at(7, epoch, counts[i], place);
                assert_true(item < counts[i] && !seen[item]);
                seen[item] = 1;
            }
        }
    for (uint64_t place = 0; place < 1000; place++) /* huge sets */
        assert_true(psld_order_at(7, 1, UINT64_C(1) << 63, place) < UINT64_C(1) << 63);
}

/* Over epochs each item comes to each place equally often, and pairs of neighbours are equally frequent: chi-square of
 * 11 x 11 cells with 100 degrees of freedom stays below mean + 5 standard deviations. */
static void order_is_even(void **state)
{
    enum { ITEMS = 11, EPOCHS = 6600 };
    static int at[ITEMS][ITEMS], after[ITEMS][ITEMS];
    double chi_place = 0, chi_pair = 0, expected = EPOCHS / (double)ITEMS;
    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t before = ITEMS;
        for (uint64_t place = 0; place < ITEMS; place++) {
            uint64_t item = psld_order_at(3, epoch, ITEMS, place);
            at[place][item]++;
            if (before < ITEMS) after[before][item]++;
            before = item;
        }
    }
    for (int i = 0; i < ITEMS; i++)
        for (int j = 0; j < ITEMS; j++) {
            chi_place += pow(at[i][j] - expected, 2) / expected;
            if (i != j) chi_pair += pow(after[i][j] - expected, 2) / expected; /* EPOCHS x 10 pairs in 110 cells */
        }
    if (chi_place > 100 + 5 * sqrt(200) || chi_pair > 110 + 5 * sqrt(220))
        fail_msg("chi-square of places %g, of pairs %g", chi_place, chi_pair);
}

enum { MANY = 40 };

static void make_many(void)
{
    mkdir("many", 0777);
    for (unsigned i = 0; i < MANY; i++) {
        char path[64];
        snprintf(path, sizeof path, "many/%02u.png", i);
        save(picture(i, SIDE), path);
    }
}

static psld_loader *make_loader(psld_data *data, uint64_t begin, uint64_t end, size_t ahead)
{
    const psld_loader_options options = {
        .seed = 5, .flip = 1, .begin = begin, .end = end, .ahead = ahead, .threads = 3};
    psld_loader *loader = NULL;
    assert_int_equal(psld_loader_create(data, &options, &loader), PSLD_OK);
    return loader;
}

/* Two and a half epochs in pieces of many sizes: always the sample that its number says. */
static void feed_by_number(void **state)
{
    static const size_t pieces[] = {1, 7, 16, MANY};
    static float x[MANY * PIXELS];
    (void)state;
    make_many();
    for (size_t p = 0; p < 4; p++)
        for (int limited = 0; limited < 2; limited++) {
            psld_data_options options = PSLD_DATA_DEFAULTS;
            if (limited) options.memory = 10 * PIXELS;
            psld_data *data = open_data("many", &options);
            psld_loader *loader = make_loader(data, 0, MANY, p == 0 ? 0 : 24);
            int flipped = 0;
            for (uint64_t s = 0; s < 100; s += pieces[p]) {
                assert_int_equal(psld_loader_read(loader, s, pieces[p], x, NULL), PSLD_OK);
                for (size_t i = 0; i < pieces[p]; i++) {
                    int flip = 0;
                    unsigned item = (unsigned)psld_loader_item(loader, s + i, &flip);
                    assert_int_equal(item, psld_order_at(5, (s + i) / MANY, MANY, (s + i) % MANY));
                    flipped += flip;
                    for (size_t j = 0; j < PIXELS; j++) {
                        size_t column = flip ? SIDE - 1 - j % SIDE : j % SIDE;
                        uint8_t v = pixel(item, j / (SIDE * SIDE), j / SIDE % SIDE, column);
                        assert_true(x[i * PIXELS + j] == (float)(v / 127.5 - 1));
                    }
                }
            }
            assert_true(flipped > 25 && flipped < 90);
            psld_loader_free(loader);
            psld_data_free(data);
        }
}

/* Once an epoch is over nothing is decoded again: the files may be gone. */
static void second_epoch_never_decodes(void **state)
{
    static float x[MANY * PIXELS];
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        psld_data_options options;
        make_many();
        options = (psld_data_options)PSLD_DATA_DEFAULTS;
        if (limited) options.memory = 3 * PIXELS;
        psld_data *data = open_data("many", &options);
        psld_loader *loader = make_loader(data, 0, MANY, 16);
        assert_int_equal(psld_loader_read(loader, 0, MANY, x, NULL), PSLD_OK);
        for (unsigned i = 0; i < MANY; i++) {
            char path[64];
            snprintf(path, sizeof path, "many/%02u.png", i);
            assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(psld_loader_read(loader, MANY, MANY, x, NULL), PSLD_OK);
        assert_int_equal(psld_data_skipped(data), 0);
        psld_loader_free(loader);
        psld_data_free(data);
    }
    make_many();
}

/* Takes away what the file without a name has in it. */
static void empty_scratch(void)
{
    int emptied = 0;
    for (int fd = 0; fd < 256; fd++) {
        char link[64], path[256] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/psld-")) emptied += ftruncate(fd, 0) == 0;
    }
    assert_true(emptied);
}

/* Decoded images that cannot be read back are no broken images, in whose place the next would do. */
static void broken_cache(void **state)
{
    static float x[MANY * PIXELS];
    uint64_t index[MANY];
    psld_data_options options;
    (void)state;
    if (access("/proc/self/fd", R_OK) != 0) skip_for("no /proc");
    for (uint64_t i = 0; i < MANY; i++) index[i] = i;
    options = (psld_data_options)PSLD_DATA_DEFAULTS;
    options.memory = 3 * PIXELS;
    psld_data *data = open_data("many", &options);
    assert_int_equal(psld_data_read(data, MANY, index, x, NULL), PSLD_OK);
    empty_scratch();
    assert_int_equal(psld_data_read(data, 3, index, x, NULL), PSLD_OK);
    assert_int_equal(psld_data_read(data, 1, index + 5, x, NULL), PSLD_IO);
    assert_non_null(strstr(psld_error_text(), "cannot read a temporary file"));
    assert_int_equal(psld_data_skipped(data), 0);
    psld_data_free(data);
}

/* What is ahead is decoded without being asked for: the files may be gone by then. */
static void ahead_of_use(void **state)
{
    static float x[8 * PIXELS];
    char path[64];
    int flip = 0;
    (void)state;
    psld_data *data = open_data("many", NULL);
    psld_loader *loader = make_loader(data, 0, MANY, 8);
    assert_int_equal(psld_loader_read(loader, 0, 8, x, NULL), PSLD_OK);
    for (uint64_t s = 8; s < 16; s++) {
        uint64_t item = psld_loader_item(loader, s, &flip);
        for (int waited = 0; !psld_data_is_prepared(data, item) && waited < 60000; waited++) usleep(1000);
        snprintf(path, sizeof path, "many/%02u.png", (unsigned)item);
        unlink(path);
    }
    assert_int_equal(psld_loader_read(loader, 8, 8, x, NULL), PSLD_OK);
    assert_int_equal(psld_data_skipped(data), 0);
    psld_loader_free(loader);
    psld_data_free(data);
    make_many();
}

static void feed_split(void **state)
{
    int seen[MANY] = {0}, flip = 0, in_order = 1;
    (void)state;
    psld_data *data = open_data("many", NULL);
    psld_loader *train = make_loader(data, 0, 30, 0), *held = make_loader(data, 30, MANY, 0);
    for (uint64_t s = 0; s < 30; s++) seen[psld_loader_item(train, s, &flip)]++;
    for (uint64_t s = 0; s < 10; s++) {
        uint64_t item = psld_loader_item(held, s, &flip);
        seen[item]++;
        if (item < 30) in_order = 0;
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(in_order, 0); /* not the last files, but any */
    psld_loader_free(train);
    psld_loader_free(held);
    psld_data_free(data);
}

/* Without a place for the cache's file the set works, and says so once. */
static void read_without_cache(const char *cache_dir)
{
    static float x[MANY * PIXELS];
    psld_data_options options = PSLD_DATA_DEFAULTS;
    options.memory = 0;
    options.cache_dir = cache_dir;
    psld_log_to(remember, NULL);
    log_lines = 0;
    psld_data *data = open_data("many", &options);
    psld_loader *loader = make_loader(data, 0, MANY, 8);
    for (uint64_t s = 0; s < 3 * MANY; s += MANY) assert_int_equal(psld_loader_read(loader, s, MANY, x, NULL), PSLD_OK);
    psld_loader_free(loader);
    psld_data_free(data);
    psld_log_to(NULL, NULL);
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(logged, "images are decoded each time"));
}

static void no_room_for_a_cache(void **state)
{
    struct rlimit before, small;
    (void)state;
    read_without_cache("no such folder");
    signal(SIGXFSZ, SIG_IGN); /* a disk that is full after a few images */
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 3 * PIXELS;
    setrlimit(RLIMIT_FSIZE, &small);
    read_without_cache(".");
    setrlimit(RLIMIT_FSIZE, &before);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static const char *starving;

static psld_status open_and_read(void)
{
    psld_data *data = NULL;
    const uint64_t index[2] = {1, 0};
    static float x[2 * C_PIXELS];
    PSLD_TRY(psld_data_open(starving, NULL, &data));
    psld_status status = psld_data_read(data, 2, index, x, NULL);
    psld_data_free(data);
    return status;
}

static void out_of_memory(void **state)
{
    static const char *const paths[] = {"set", "set.tar",         "set.tar.gz", "set.zip",  "digits",
                                        "bin", "py/data_batch_1", "x.npy",      "toy:moons"};
    (void)state;
    psld_threads_set(1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        starving = paths[i];
        starve(open_and_read);
    }
    psld_threads_set(0);
}

/* ---- Real sets --------------------------------------------------------------------------------------------------- */

typedef struct real_set {
    const char *path;
    uint64_t count;
    size_t channels, size, classes;
} real_set;

static void opens_real_set(void **state)
{
    const real_set *set = *state;
    const char *source = getenv("PSLD_SOURCE");
    char path[1024];
    size_t shape[PSLD_MAX_RANK];
    const uint64_t index[3] = {0, 1234, set->count - 1};
    static uint8_t pixels[3 * 3 * 64 * 64];
    snprintf(path, sizeof path, "%s/../shared/data/%s", source ? source : "..", set->path);
    if (access(path, R_OK) != 0) skip_for("no %s", path);
    psld_data *data = open_data(path, NULL);
    assert_int_equal(psld_data_count(data), set->count);
    psld_data_shape(data, shape);
    assert_true(shape[0] == set->channels && shape[1] == set->size && shape[2] == set->size);
    assert_int_equal(psld_data_classes(data), set->classes);
    assert_int_equal(psld_data_read_u8(data, 3, index, pixels, NULL), PSLD_OK);
    psld_data_free(data);
}

static real_set cifar10 = {"cifar10/test.tar", 10000, 3, 32, 10}, mnist = {"mnist", 60000, 1, 28, 10},
                cats = {"cats/cats64.tar", 5153, 3, 64, 0};

int main(void)
{
    psld_data_set_patience(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_archives),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(odd_names_in_folders),
        cmocka_unit_test(classes_in_order),
        cmocka_unit_test(classes_that_begin_alike),
        cmocka_unit_test(broken_images),
        cmocka_unit_test(unreadable_images),
        cmocka_unit_test(foreign_formats),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(odd_first_image),
        cmocka_unit_test(idx_sets),
        cmocka_unit_test(idx_broken),
        cmocka_unit_test(cifar_binary),
        cmocka_unit_test(cifar_pickled),
        cmocka_unit_test(array_images),
        cmocka_unit_test(array_numbers),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(array_archives),
        cmocka_unit_test(toys),
        cmocka_unit_test(order_is_a_permutation),
        cmocka_unit_test(order_is_even),
        cmocka_unit_test(feed_by_number),
        cmocka_unit_test(second_epoch_never_decodes),
        cmocka_unit_test(broken_cache),
        cmocka_unit_test(ahead_of_use),
        cmocka_unit_test(feed_split),
        cmocka_unit_test(no_room_for_a_cache),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test_prestate(opens_real_set, &cifar10),
        cmocka_unit_test_prestate(opens_real_set, &mnist),
        cmocka_unit_test_prestate(opens_real_set, &cats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
