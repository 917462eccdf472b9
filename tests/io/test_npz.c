/* .npz files: what NumPy writes, stored or compressed, is read; what is written NumPy reads; nothing is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "bytes.h"
#include "io/tensors/npy.h"
#include "io/tensors/npz.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

/* An array of one dimension that counts up. */
static psld_array *counting(psld_type type, size_t count)
{
    psld_array *array = NULL;
    assert_int_equal(psld_array_create(type, 1, &count, &array), PSLD_OK);
    for (size_t i = 0; i < count * psld_type_size(type); i++)
        ((unsigned char *)array->data)[i] = (unsigned char)(i % 50);
    return array;
}

static void add_array(archive *a, const char *name, const psld_array *array, int flags)
{
    char header[PSLD_NPY_HEADER];
    bytes b = {0};
    bytes_put(&b, header, psld_npy_header(array, header));
    bytes_put(&b, array->data, array->count * psld_type_size(array->type));
    zip_add(a, name, b.data, b.size, flags, -1);
    bytes_free(&b);
}

/* mu (5 float64, stored), sigma (1000 float32, compressed), something else, and one whose type we do not have. */
static bytes make_file(void)
{
    archive a = {0};
    psld_array *mu = counting(PSLD_F64, 5), *sigma = counting(PSLD_F32, 1000);
    add_array(&a, "mu.npy", mu, 0);
    add_array(&a, "sigma.npy", sigma, ZIP_DEFLATE);
    zip_add(&a, "readme.txt", "hello", 5, 0, -1);
    zip_add(&a, "half.npy", "\x93NUMPY\1\0\x3a\0{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }  xx", 70, 0,
            -1);
    psld_array_free(mu);
    psld_array_free(sigma);
    return zip_end(&a);
}

static void assert_counts(const psld_array *array, psld_type type, size_t count)
{
    assert_int_equal(array->type, type);
    assert_int_equal(array->count, count);
    psld_array *expected = counting(type, count);
    assert_memory_equal(array->data, expected->data, count * psld_type_size(type));
    psld_array_free(expected);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void reads_stored_and_compressed(void **state)
{
    (void)state;
    bytes file = make_file();
    psld_npz *npz = NULL;
    psld_array *array = NULL;
    bytes_save(&file, "in.npz");
    bytes_free(&file);
    assert_int_equal(psld_npz_open("in.npz", &npz), PSLD_OK);
    assert_int_equal(psld_npz_size(npz), 3);
    assert_string_equal(psld_npz_name(npz, 0), "mu");
    assert_string_equal(psld_npz_name(npz, 1), "sigma");
    for (int i = 0; i < 3; i++) { /* as often as one likes */
        assert_int_equal(psld_npz_read(npz, "sigma", &array), PSLD_OK);
        assert_counts(array, PSLD_F32, 1000);
        psld_array_free(array);
        assert_int_equal(psld_npz_read(npz, "mu", &array), PSLD_OK);
        assert_counts(array, PSLD_F64, 5);
        psld_array_free(array);
    }
    assert_int_equal(psld_npz_read(npz, "nu", &array), PSLD_BAD_INPUT);
    assert_null(array);
    assert_string_equal(psld_error_text(), "in.npz: no array nu, it has: mu, sigma, half");
    assert_int_equal(psld_npz_read(npz, "half", &array), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "in.npz: half: elements of type <f2, expected <f8, <f4, |u1, <i4 or <i8");
    psld_npz_free(npz);
    psld_npz_free(NULL);
}

static void many_names_are_not_all_shown(void **state)
{
    (void)state;
    archive a = {0};
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "array-number-%d.npy", i);
        zip_add(&a, name, "", 0, 0, -1);
    }
    bytes file = zip_end(&a);
    psld_npz *npz = NULL;
    psld_array *array = NULL;
    assert_int_equal(psld_npz_parse(file.data, file.size, "x.npz", &npz), PSLD_OK);
    assert_int_equal(psld_npz_read(npz, "mu", &array), PSLD_BAD_INPUT);
    assert_true(strlen(psld_error_text()) < 300);
    assert_int_equal(psld_npz_read(npz, "array-number-7", &array), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "x.npz: array-number-7: not a .npy file");
    psld_npz_free(npz);
    bytes_free(&file);
}

static void files_that_are_none(void **state)
{
    (void)state;
    psld_npz *npz = NULL;
    assert_int_equal(psld_npz_open("absent.npz", &npz), PSLD_IO);
    assert_int_equal(psld_npz_open("/dev/null", &npz), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "/dev/null: not a .npz file");
    assert_int_equal(psld_npz_parse("PK\3\4", 4, "x.npz", &npz), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "x.npz: a zip archive without its end: the file is cut off");
    assert_null(npz);
}

static psld_status read_all(const bytes *file)
{
    psld_npz *npz = NULL;
    psld_status status = psld_npz_parse(file->data, file->size, "x.npz", &npz);
    for (size_t i = 0; npz && i < psld_npz_size(npz); i++) {
        psld_array *array = NULL;
        psld_status each = psld_npz_read(npz, psld_npz_name(npz, i), &array);
        assert_true((each == PSLD_OK) == (array != NULL));
        psld_array_free(array);
        if (each != PSLD_OK) status = each;
    }
    psld_npz_free(npz);
    return status;
}

static void cut_anywhere(void **state)
{
    (void)state;
    bytes whole = make_file();
    for (size_t size = 0; size < whole.size; size++) {
        bytes b = {0};
        bytes_put(&b, whole.data, size);
        assert_int_equal(read_all(&b), PSLD_BAD_INPUT);
        assert_memory_equal(psld_error_text(), "x.npz: ", 7);
        bytes_free(&b);
    }
    bytes_free(&whole);
}

static void every_bit_flipped(void **state)
{
    (void)state;
    bytes file = make_file();
    long live = psld_alloc_live();
    for (size_t bit = 0; bit < file.size * 8; bit++) {
        file.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        psld_status status = read_all(&file);
        assert_true(status == PSLD_OK || status == PSLD_BAD_INPUT);
        file.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_equal(psld_alloc_live(), live);
    bytes_free(&file);
}

static void compressed_bombs(void **state)
{
    (void)state;
    psld_array *zeros = NULL;
    const size_t size = 1 << 20;
    assert_int_equal(psld_array_create(PSLD_U8, 1, &size, &zeros), PSLD_OK);
    static const int64_t claims[] = {0, 200, 1 << 20, (1 << 20) + 129};
    for (int i = 0; i < 4; i++) {
        char header[PSLD_NPY_HEADER];
        bytes b = {0};
        archive a = {0};
        bytes_put(&b, header, psld_npy_header(zeros, header));
        bytes_put(&b, zeros->data, size);
        zip_add(&a, "x.npy", b.data, b.size, ZIP_DEFLATE, claims[i]);
        bytes file = zip_end(&a);
        assert_int_equal(read_all(&file), PSLD_BAD_INPUT);
        assert_string_equal(psld_error_text(),
                            "x.npz: x.npy: the compressed data are damaged, or not of the size that they claim");
        bytes_free(&file);
        bytes_free(&b);
    }
    psld_array_free(zeros);
}

static void wrong_checksums(void **state)
{
    (void)state;
    static const char *const names[] = {"mu", "sigma"};
    for (int i = 0; i < 2; i++) {
        psld_array *array = counting(PSLD_F64, 5), *found = NULL;
        archive a = {0};
        psld_npz *npz = NULL;
        add_array(&a, i ? "sigma.npy" : "mu.npy", array, i ? ZIP_DEFLATE : 0);
        a.directory.data[16] ^= 1;
        bytes file = zip_end(&a);
        assert_int_equal(psld_npz_parse(file.data, file.size, "x.npz", &npz), PSLD_OK);
        assert_int_equal(psld_npz_read(npz, names[i], &found), PSLD_BAD_INPUT);
        assert_non_null(strstr(psld_error_text(), ".npy: the checksum does not fit the data: the file is damaged"));
        psld_npz_free(npz);
        psld_array_free(array);
        bytes_free(&file);
    }
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void writes_and_reads(void **state)
{
    (void)state;
    psld_array *arrays[] = {counting(PSLD_F64, 7), counting(PSLD_U8, 0), counting(PSLD_I64, 3)}, *found = NULL;
    static const char *const names[] = {"mu", "none", "\xc3\xa9"};
    psld_npz *npz = NULL;
    assert_int_equal(psld_npz_save("out.npz", 3, names, (const psld_array *const *)arrays), PSLD_OK);
    assert_int_equal(psld_npz_open("out.npz", &npz), PSLD_OK);
    assert_int_equal(psld_npz_size(npz), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(psld_npz_name(npz, i), names[i]);
        assert_int_equal(psld_npz_read(npz, names[i], &found), PSLD_OK);
        assert_counts(found, arrays[i]->type, arrays[i]->count);
        psld_array_free(found);
    }
    psld_npz_free(npz);
    static const char *const same[] = {"mu", "a", "mu"}, *const empty[] = {"mu", "a", ""};
    assert_int_equal(psld_npz_save("bad.npz", 3, same, (const psld_array *const *)arrays), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "bad.npz: two arrays have the name mu");
    assert_int_equal(psld_npz_save("bad.npz", 3, empty, (const psld_array *const *)arrays), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "bad.npz: an array of a .npz file has a name of 1 to 1020 bytes, not 0");
    assert_int_equal(access("bad.npz", F_OK), -1);
    assert_int_equal(psld_npz_save("no/such/folder.npz", 0, NULL, NULL), PSLD_IO);
    for (int i = 0; i < 3; i++) psld_array_free(arrays[i]);
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status write_and_read(void)
{
    static const double values[3] = {1, 2, 3};
    const psld_array array = {.type = PSLD_F64, .rank = 1, .shape = {3}, .count = 3, .data = (void *)(uintptr_t)values};
    const psld_array *arrays[] = {&array, &array};
    static const char *const names[] = {"a", "b"};
    psld_npz *npz = NULL;
    psld_array *found = NULL;
    psld_status status = psld_npz_save("memory.npz", 2, names, arrays);
    if (status == PSLD_OK) status = psld_npz_open("memory.npz", &npz);
    if (status == PSLD_OK) status = psld_npz_read(npz, "b", &found);
    if (status != PSLD_OK) assert_memory_equal(psld_error_text(), "memory.npz: ", 12);
    psld_array_free(found);
    psld_npz_free(npz);
    return status;
}

static psld_status read_compressed(void)
{
    psld_npz *npz = NULL;
    psld_array *found = NULL;
    psld_status status = psld_npz_open("in.npz", &npz);
    if (status == PSLD_OK) status = psld_npz_read(npz, "sigma", &found);
    if (status != PSLD_OK) assert_memory_equal(psld_error_text(), "in.npz: ", 8);
    psld_array_free(found);
    psld_npz_free(npz);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    bytes file = make_file();
    bytes_save(&file, "in.npz");
    bytes_free(&file);
    psld_status (*const calls[])(void) = {write_and_read, read_compressed};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) starve(calls[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stored_and_compressed),
        cmocka_unit_test(many_names_are_not_all_shown),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(compressed_bombs),
        cmocka_unit_test(wrong_checksums),
        cmocka_unit_test(writes_and_reads),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
