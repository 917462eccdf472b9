/* Data that go away while they are used: what cannot be read is tried again and then an error, never a broken image; files
 * that become shorter are noticed; only so many images may be broken. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "archives.h"
#include "base/alloc.h"
#include "data/data.h"
#include "pictures.h"

enum { SIDE = 4, COUNT = 6, PIXELS = SIDE * SIDE * 3 };

static const double no_patience = 0, much_patience = 60;
static const uint64_t all[COUNT] = {0, 1, 2, 3, 4, 5};

static bytes picture(unsigned number)
{
    uint8_t pixels[PIXELS];
    const png_form form = {.type = PNG_COLOR_TYPE_RGB, .bits = 8};
    for (size_t i = 0; i < PIXELS; i++) pixels[i] = (uint8_t)(number * 16 + i);
    return make_png(&form, SIDE, SIDE, pixels, (size_t)SIDE * 3);
}

static void save(bytes file, const char *path)
{
    bytes_save(&file, path);
    bytes_free(&file);
}

/* Six pictures in two classes, of which the first `broken` are cut in half. */
static void make_folder(unsigned broken)
{
    mkdir("set", 0777);
    mkdir("set/a", 0777);
    mkdir("set/b", 0777);
    for (unsigned i = 0; i < COUNT; i++) {
        char path[64];
        bytes file = picture(i);
        if (i < broken) file.size -= 30;
        snprintf(path, sizeof path, "set/%s/%u.png", i < COUNT / 2 ? "a" : "b", i);
        save(file, path);
    }
}

static psld_data *open_data(const char *path, const psld_data_options *options)
{
    psld_data *data = NULL;
    if (psld_data_open(path, options, &data) != PSLD_OK) fail_msg("%s", psld_error_text());
    return data;
}

static char logged[1024];
static int log_lines;

static void remember(void *user, psld_log_level level, const char *line)
{
    (void)user, (void)level;
    log_lines++;
    snprintf(logged, sizeof logged, "%s", line);
}

static int prepare(void **state)
{
    (void)state;
    log_lines = 0;
    psld_log_to(remember, NULL);
    psld_data_set_patience(no_patience);
    return 0;
}

static void expect_text(const char *words)
{
    if (!strstr(psld_error_text(), words)) fail_msg("no \"%s\" in: %s", words, psld_error_text());
}

/* ---- Files that cannot be opened --------------------------------------------------------------------------------- */

static void gone_is_not_broken(void **state)
{
    float x[COUNT * PIXELS];
    (void)state;
    make_folder(0);
    psld_data *data = open_data("set", NULL);
    assert_int_equal(rename("set", "away"), 0);
    assert_int_equal(psld_data_read(data, COUNT, all, x, NULL), PSLD_IO);
    expect_text("set/a/0.png: cannot read");
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_IO);
    assert_int_equal(rename("away", "set"), 0);
    assert_int_equal(psld_data_read(data, COUNT, all, x, NULL), PSLD_OK);
    assert_int_equal(psld_data_skipped(data), 0);
    assert_int_equal(psld_data_good(data), COUNT);
    assert_int_equal(log_lines, 0);
    psld_data_free(data);
}

/* Brings the folder back once the reader has said that it waits for it. */
static void *bring_back(void *unused)
{
    (void)unused;
    while (access("waits", F_OK) != 0) usleep(1000);
    assert_int_equal(rename("away", "set"), 0);
    return NULL;
}

static void say_that_it_waits(void *user, psld_log_level level, const char *line)
{
    remember(user, level, line);
    close(open("waits", O_CREAT | O_WRONLY, 0666));
}

static void back_in_a_moment(void **state)
{
    float x[COUNT * PIXELS];
    pthread_t thread;
    (void)state;
    make_folder(0);
    unlink("waits");
    psld_log_to(say_that_it_waits, NULL);
    psld_data_set_patience(much_patience);
    psld_data *data = open_data("set", NULL);
    assert_int_equal(rename("set", "away"), 0);
    assert_int_equal(pthread_create(&thread, NULL, bring_back, NULL), 0);
    assert_int_equal(psld_data_read(data, COUNT, all, x, NULL), PSLD_OK);
    pthread_join(thread, NULL);
    assert_int_equal(psld_data_skipped(data), 0);
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(logged, "trying again"));
    psld_data_free(data);
}

static void too_many_open_files(void **state)
{
    float x[COUNT * PIXELS];
    struct rlimit before, none;
    (void)state;
    make_folder(0);
    psld_data *data = open_data("set", NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    psld_status status = psld_data_read(data, COUNT, all, x, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, PSLD_IO);
    assert_int_equal(psld_data_skipped(data), 0);
    assert_int_equal(psld_data_read(data, COUNT, all, x, NULL), PSLD_OK);
    psld_data_free(data);
}

/* A link to nowhere is no image that could be left out. */
static void links_to_nowhere(void **state)
{
    psld_data *data = NULL;
    (void)state;
    make_folder(0);
    assert_int_equal(symlink("nowhere.png", "set/a/link.png"), 0);
    assert_int_equal(psld_data_open("set", NULL, &data), PSLD_IO);
    expect_text("set/a/link.png: cannot read");
    assert_int_equal(unlink("set/a/link.png"), 0);
}

/* ---- Images that are broken -------------------------------------------------------------------------------------- */

static void so_many_may_be_broken(void **state)
{
    static const struct {
        double limit;
        psld_status expected;
    } cases[] = {{0, PSLD_OK}, {0.5, PSLD_OK}, {0.2, PSLD_OK}, {0.1, PSLD_BAD_INPUT}};
    float x[COUNT * PIXELS];
    (void)state;
    make_folder(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        psld_data_options options = PSLD_DATA_DEFAULTS;
        options.skip_limit = cases[i].limit;
        psld_data *data = open_data("set", &options);
        assert_int_equal(psld_data_read(data, COUNT, all, x, NULL), cases[i].expected);
        if (cases[i].expected != PSLD_OK) expect_text("set: 2 of 6 images are broken, more than data.skip_limit = 0.1");
        psld_data_free(data);
    }
}

/* Broken ones do not count among what there is. */
static void count_of_good_ones(void **state)
{
    (void)state;
    make_folder(2);
    psld_data *data = open_data("set", NULL);
    assert_int_equal(psld_data_check(data, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_data_count(data), COUNT);
    assert_int_equal(psld_data_good(data), COUNT - 2);
    assert_int_equal(psld_data_skipped(data), 2);
    assert_int_equal(psld_data_class_count(data, 0), 1);
    assert_int_equal(psld_data_class_count(data, 1), 3);
    psld_data_free(data);
}

/* ---- Files that become shorter ----------------------------------------------------------------------------------- */

static void make_archive(const char *path, int zip)
{
    struct archive *a = archive_begin(path, zip ? "zip" : "tar");
    for (unsigned i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u.png", i);
        archive_add(a, name, picture(i));
    }
    archive_end(a);
}

static void make_array(const char *path, psld_type type, int rank, const size_t *shape)
{
    psld_array *array = NULL;
    assert_int_equal(psld_array_create(type, rank, shape, &array), PSLD_OK);
    assert_int_equal(psld_array_save(array, path), PSLD_OK);
    psld_array_free(array);
}

static void make_files(void)
{
    const size_t images[4] = {COUNT, SIDE, SIDE, 3}, rows[2] = {COUNT, 300};
    bytes idx = {0}, cifar = {0};
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    make_archive("six.tar", 0);
    make_archive("six.zip", 1);
    make_array("u8.npy", PSLD_U8, 4, images);
    make_array("f32.npy", PSLD_F32, 2, rows);
    make_array("f64.npy", PSLD_F64, 2, rows);
    bytes_put(&idx, head, sizeof head);
    for (int i = 0; i < COUNT * SIDE * SIDE; i++) bytes_number(&idx, 7, 1);
    for (int i = 0; i < COUNT * 3073; i++) bytes_number(&cifar, 1, 1);
    save(idx, "six-images-idx3-ubyte");
    save(cifar, "data_batch_1.bin");
    mkdir("cifar", 0777);
    bytes large = {0};
    for (int i = 0; i < 400 * 3073; i++) bytes_number(&large, 1, 1); /* as large as what is not copied */
    save(large, "cifar/data_batch_1.bin");
    save(picture(1), "one.png");
}

/* A mapping would end the program here. */
static void files_become_shorter(void **state)
{
    static const struct {
        const char *path, *file;
        size_t count;
    } sets[] = {{"six.tar", "six.tar", COUNT},
                {"six.zip", "six.zip", COUNT},
                {"u8.npy", "u8.npy", COUNT},
                {"f32.npy", "f32.npy", COUNT},
                {"f64.npy", "f64.npy", COUNT},
                {"six-images-idx3-ubyte", "six-images-idx3-ubyte", COUNT},
                {"data_batch_1.bin", "data_batch_1.bin", COUNT},
                {"cifar", "cifar/data_batch_1.bin", COUNT},
                {"one.png", "one.png", 1}};
    static float x[COUNT * 3072];
    (void)state;
    make_files();
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        long live = psld_alloc_live();
        psld_data *data = open_data(sets[i].path, NULL);
        assert_int_equal(truncate(sets[i].file, 0), 0);
        psld_status status = psld_data_read(data, sets[i].count, all, x, NULL);
        if (status != PSLD_IO) fail_msg("%s: status %d", sets[i].path, (int)status);
        expect_text("it has become shorter since it was opened");
        expect_text(sets[i].file);
        assert_int_equal(psld_data_skipped(data), 0);
        psld_data_free(data);
        assert_int_equal(psld_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gone_is_not_broken, prepare),    cmocka_unit_test_setup(back_in_a_moment, prepare),
        cmocka_unit_test_setup(too_many_open_files, prepare),   cmocka_unit_test_setup(links_to_nowhere, prepare),
        cmocka_unit_test_setup(so_many_may_be_broken, prepare), cmocka_unit_test_setup(count_of_good_ones, prepare),
        cmocka_unit_test_setup(files_become_shorter, prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
