/* Arrays and .npy files: what NumPy writes is read, what is written is what NumPy writes, and no header is believed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/tensors/npy.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

typedef struct blob {
    size_t size;
    unsigned char bytes[4096];
} blob;

/* A .npy file of a version with the given header and data. */
static blob make(int version, const char *header, const void *data, size_t size)
{
    blob b = {0};
    size_t length = strlen(header);
    memcpy(b.bytes, "\x93NUMPY", 6);
    b.bytes[6] = (unsigned char)version;
    b.size = version == 1 ? 10 : 12;
    for (size_t i = 8; i < b.size; i++) b.bytes[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(b.bytes + b.size, header, length);
    b.size += length;
    if (size) memcpy(b.bytes + b.size, data, size);
    b.size += size;
    return b;
}

static psld_status read_blob(const blob *b, psld_array **array)
{
    psld_reader reader;
    psld_reader_memory(b->bytes, b->size, "x.npy", &reader);
    return psld_npy_read(&reader, array);
}

static void assert_refused(const blob *b, const char *message)
{
    psld_array *array = NULL;
    long live = psld_alloc_live();
    assert_int_equal(read_blob(b, &array), PSLD_BAD_INPUT);
    assert_null(array);
    assert_string_equal(psld_error_text(), message);
    assert_int_equal(psld_alloc_live(), live);
}

/* A header of version 1 with 24 bytes of data. */
static void assert_header_refused(const char *header, const char *message)
{
    static const char data[24];
    blob b = make(1, header, data, sizeof data);
    assert_refused(&b, message);
}

static psld_array *read_header(const char *header, const void *data, size_t size)
{
    blob b = make(1, header, data, size);
    psld_array *array = NULL;
    if (read_blob(&b, &array) != PSLD_OK) fail_msg("%s", psld_error_text());
    return array;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static void creates_arrays(void **state)
{
    (void)state;
    static const size_t shape[8] = {1, 2, 3, 1, 2, 1, 2, 1};
    for (int rank = 0; rank <= PSLD_MAX_RANK; rank++) {
        psld_array *array = NULL;
        size_t count = 1;
        for (int i = 0; i < rank; i++) count *= shape[i];
        assert_int_equal(psld_array_create(PSLD_I32, rank, rank ? shape : NULL, &array), PSLD_OK);
        assert_int_equal(array->type, PSLD_I32);
        assert_int_equal(array->rank, rank);
        assert_int_equal(array->count, count);
        for (int i = 0; i < rank; i++) assert_int_equal(array->shape[i], shape[i]);
        for (size_t i = 0; i < count; i++) assert_int_equal(((int32_t *)array->data)[i], 0);
        psld_array_free(array);
    }
    psld_array_free(NULL);
}

static void refuses_bad_shapes(void **state)
{
    (void)state;
    psld_array *array = NULL;
    size_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(psld_array_create(PSLD_F64, 9, shape, &array), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "an array cannot have rank 9, expected 0 to 8");
    assert_int_equal(psld_array_create(PSLD_F64, -1, shape, &array), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_array_create((psld_type)17, 1, shape, &array), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "17 is no type of array elements");
    static const size_t large[][3] = {{SIZE_MAX, 1, 1},
                                      {SIZE_MAX / 8 + 1, 1, 1},
                                      {(size_t)1 << 32, (size_t)1 << 32, 1},
                                      {(size_t)1 << 32, (size_t)1 << 32, 0},
                                      {0, SIZE_MAX, 1},
                                      {SIZE_MAX / 16 + 1, 1, 1}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        assert_int_equal(psld_array_create(PSLD_F64, 3, large[i], &array), PSLD_BAD_ARGUMENT);
        assert_string_equal(psld_error_text(), "the sizes of an array are too large");
        assert_null(array);
    }
}

static void converts(void **state)
{
    (void)state;
    const size_t shape[2] = {1, 3};
    static const double f64[] = {0.1, -2.5, 1e300};
    static const float f32[] = {0.1f, -2.5f, 3e38f};
    static const uint8_t u8[] = {0, 128, 255};
    static const int32_t i32[] = {INT32_MIN, -1, INT32_MAX};
    static const int64_t i64[] = {INT64_MIN, -1, ((int64_t)1 << 53) - 1};
    const struct {
        psld_type type;
        const void *data;
        double as_f64[3];
        float as_f32[3];
    } rows[] = {
        {PSLD_F64, f64, {0.1, -2.5, 1e300}, {0.1f, -2.5f, HUGE_VALF}},
        {PSLD_F32, f32, {(double)0.1f, -2.5, (double)3e38f}, {0.1f, -2.5f, 3e38f}},
        {PSLD_U8, u8, {0, 128, 255}, {0, 128, 255}},
        {PSLD_I32, i32, {-2147483648.0, -1, 2147483647.0}, {-2147483648.0f, -1, 2147483648.0f}},
        {PSLD_I64, i64, {-9223372036854775808.0, -1, 9007199254740991.0}, {-9223372036854775808.0f, -1, 0x1p53f}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_array *array = NULL, *to = NULL;
        assert_int_equal(psld_array_create(rows[i].type, 2, shape, &array), PSLD_OK);
        memcpy(array->data, rows[i].data, 3 * psld_type_size(rows[i].type));
        assert_int_equal(psld_array_convert(array, PSLD_F64, &to), PSLD_OK);
        assert_int_equal(to->type, PSLD_F64);
        assert_int_equal(to->rank, 2);
        assert_int_equal(to->shape[1], 3);
        assert_memory_equal(to->data, rows[i].as_f64, sizeof rows[i].as_f64);
        psld_array_free(to);
        assert_int_equal(psld_array_convert(array, PSLD_F32, &to), PSLD_OK);
        assert_int_equal(to->type, PSLD_F32);
        assert_memory_equal(to->data, rows[i].as_f32, sizeof rows[i].as_f32);
        psld_array_free(to);
        assert_int_equal(psld_array_convert(array, PSLD_U8, &to), PSLD_BAD_ARGUMENT);
        assert_null(to);
        assert_non_null(strstr(psld_error_text(), "PSLD_F64 or PSLD_F32"));
        psld_array_free(array);
    }
}

/* To float32 in one rounding: by way of float64 this would round down. */
static void rounds_once(void **state)
{
    (void)state;
    const size_t one = 1;
    psld_array *array = NULL, *to = NULL;
    assert_int_equal(psld_array_create(PSLD_I64, 1, &one, &array), PSLD_OK);
    *(int64_t *)array->data = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    assert_int_equal(psld_array_convert(array, PSLD_F32, &to), PSLD_OK);
    assert_true(*(float *)to->data == 0x1.000002p60f);
    psld_array_free(array);
    psld_array_free(to);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* The header as NumPy writes it: text, spaces to a multiple of 64, newline. Checked against NumPy 2.4 by hand. */
static void assert_saved(psld_type type, int rank, const size_t *shape, const char *text, size_t start)
{
    psld_array *array = NULL, *again = NULL;
    assert_int_equal(psld_array_create(type, rank, shape, &array), PSLD_OK);
    size_t bytes = array->count * psld_type_size(type), size = 0;
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)array->data)[i] = (unsigned char)(i * 7 + 1);
    assert_int_equal(psld_array_save(array, "saved.npy"), PSLD_OK);
    char *file = NULL;
    assert_int_equal(psld_file_read("saved.npy", 1 << 20, &file, &size), PSLD_OK);
    assert_int_equal(size, start + bytes);
    const unsigned char preamble[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(start - 10), (unsigned char)((start - 10) >> 8)};
    assert_memory_equal(file, preamble, 10);
    assert_memory_equal(file + 10, text, strlen(text));
    for (size_t i = 10 + strlen(text); i < start - 1; i++) assert_int_equal(file[i], ' ');
    assert_int_equal(file[start - 1], '\n');
    assert_memory_equal(file + start, array->data, bytes);
    psld_release(file);
    assert_int_equal(psld_array_load("saved.npy", &again), PSLD_OK);
    assert_int_equal(again->type, type);
    assert_int_equal(again->rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(again->shape[i], shape[i]);
    assert_int_equal(again->count, array->count);
    assert_memory_equal(again->data, array->data, bytes);
    psld_array_free(array);
    psld_array_free(again);
}

static void saves_as_numpy_does(void **state)
{
    (void)state;
    const size_t small[] = {3, 4}, eight[] = {1, 2, 1, 3, 1, 1, 2, 1}, none[] = {0, 7}, wide[] = {12345, 1};
    const size_t longest[] = {1, 1000000, 10000, 100000, 10, 0, 1, 10}; /* no shape that can be counted is longer */
    assert_saved(PSLD_F64, 2, small, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", 128);
    assert_saved(PSLD_F32, 1, small, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 128);
    assert_saved(PSLD_U8, 0, NULL, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 128);
    assert_saved(PSLD_I32, 8, eight, "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 1, 3, 1, 1, 2, 1), }",
                 128);
    assert_saved(PSLD_I64, 2, none, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 7), }", 128);
    assert_saved(PSLD_U8, 2, wide, "{'descr': '|u1', 'fortran_order': False, 'shape': (12345, 1), }", 128);
    assert_saved(PSLD_U8, 8, longest,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1000000, 10000, 100000, 10, 0, 1, 10), }", 128);
}

static void save_reports_failure(void **state)
{
    (void)state;
    psld_array *array = NULL;
    assert_int_equal(psld_array_create(PSLD_F64, 0, NULL, &array), PSLD_OK);
    assert_int_equal(psld_array_save(array, "no/such/folder/x.npy"), PSLD_IO);
    assert_string_equal(psld_error_text(), "no/such/folder/x.npy: cannot write: No such file or directory");
    psld_array_free(array);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void reads_every_version_and_type(void **state)
{
    (void)state;
    static const double f8[] = {1.5, -2};
    static const struct {
        const char *descr;
        psld_type type;
        size_t size;
    } types[] = {{"<f8", PSLD_F64, 8}, {"=f8", PSLD_F64, 8}, {"<f4", PSLD_F32, 4}, {"=f4", PSLD_F32, 4},
                 {"|u1", PSLD_U8, 1},  {"<u1", PSLD_U8, 1},  {"<i4", PSLD_I32, 4}, {"<i8", PSLD_I64, 8}};
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            char header[128];
            snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }      \n",
                     types[i].descr);
            blob b = make(version, header, f8, 2 * types[i].size);
            psld_array *array = NULL;
            assert_int_equal(read_blob(&b, &array), PSLD_OK);
            assert_int_equal(array->type, types[i].type);
            assert_int_equal(array->count, 2);
            assert_memory_equal(array->data, f8, 2 * types[i].size);
            psld_array_free(array);
        }
    }
}

static void reads_any_layout_of_the_header(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}",
        "{'shape':(2,3,),'fortran_order':False,'descr':'|u1'}",
        "  {\n\t\"fortran_order\" :  False ,\"shape\"\n: ( 2 , 3 ) , 'descr' : \"|u1\" , } \n",
    };
    for (size_t i = 0; i < 3; i++) {
        psld_array *array = read_header(headers[i], "abcdef", 6);
        assert_int_equal(array->rank, 2);
        assert_int_equal(array->shape[0], 2);
        assert_int_equal(array->shape[1], 3);
        assert_memory_equal(array->data, "abcdef", 6);
        psld_array_free(array);
    }
}

static void reads_rank_zero_and_empty(void **state)
{
    (void)state;
    psld_array *array = read_header("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "z", 1);
    assert_int_equal(array->rank, 0);
    assert_int_equal(array->count, 1);
    assert_int_equal(*(char *)array->data, 'z');
    psld_array_free(array);
    array = read_header("{'descr': '<f8', 'fortran_order': True, 'shape': (4, 0, 2), }", NULL, 0);
    assert_int_equal(array->rank, 3);
    assert_int_equal(array->count, 0);
    assert_non_null(array->data);
    psld_array_free(array);
}

static void turns_fortran_order_into_c_order(void **state)
{
    (void)state;
    /* x[i][j][k] = 100 i + 10 j + k, shape (2, 3, 2). */
    int32_t data[12];
    for (int k = 0, at = 0; k < 2; k++)
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 2; i++) data[at++] = 100 * i + 10 * j + k;
    psld_array *array = read_header("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 2), }", data, sizeof data);
    const int32_t *found = array->data;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++) assert_int_equal(*found++, 100 * i + 10 * j + k);
    psld_array_free(array);
    array = read_header("{'descr': '<i4', 'fortran_order': True, 'shape': (12,), }", data, sizeof data);
    assert_memory_equal(array->data, data, sizeof data);
    psld_array_free(array);
}

/* A file of `rows` x `columns` float64 in Fortran order, larger than the pieces it is read in. */
static void write_fortran(const char *path, size_t rows, size_t columns)
{
    char header[118];
    int length = snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': True, 'shape': (%zu, %zu), }", rows,
                          columns);
    memset(header + length, ' ', sizeof header - (size_t)length);
    FILE *file = fopen(path, "wb");
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++) {
            double value = (double)(i * columns + j);
            fwrite(&value, sizeof value, 1, file);
        }
    assert_int_equal(fclose(file), 0);
}

static void assert_counts_up(const psld_array *array)
{
    for (size_t i = 0; i < array->count; i++)
        if (((const double *)array->data)[i] != (double)i) fail_msg("element %zu", i);
}

static void reads_large_fortran_files(void **state)
{
    (void)state;
    psld_array *array = NULL;
    write_fortran("fortran.npy", 301, 457);
    assert_int_equal(psld_array_load("fortran.npy", &array), PSLD_OK);
    assert_int_equal(array->count, 301 * 457);
    assert_counts_up(array);
    psld_array_free(array);
}

/* A child process writes the file, `size` bytes of it, into a pipe. */
static psld_status load_piped(const char *path, size_t size, psld_array **array)
{
    int ends[2];
    char *bytes = NULL, name[64];
    size_t length = 0;
    assert_int_equal(psld_file_read(path, 1 << 26, &bytes, &length), PSLD_OK);
    assert_true(size <= length + 1); /* its 0 byte may follow */
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        for (size_t done = 0; done < size;) {
            ssize_t count = write(ends[1], bytes + done, size - done);
            if (count <= 0) break;
            done += (size_t)count;
        }
        _exit(0);
    }
    close(ends[1]);
    psld_release(bytes);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    psld_status status = psld_array_load(name, array);
    close(ends[0]);
    wait(NULL);
    return status;
}

static void reads_pipes(void **state)
{
    (void)state;
    const size_t shape[] = {700, 500};
    const size_t bytes = 700 * 500 * 8;
    psld_array *array = NULL, *piped = NULL;
    assert_int_equal(psld_array_create(PSLD_F64, 2, shape, &array), PSLD_OK);
    for (size_t i = 0; i < array->count; i++) ((double *)array->data)[i] = (double)i;
    assert_int_equal(psld_array_save(array, "c.npy"), PSLD_OK);
    psld_array_free(array);
    write_fortran("fortran.npy", 700, 500);
    static const char *const paths[] = {"c.npy", "fortran.npy"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(load_piped(paths[i], 128 + bytes, &piped), PSLD_OK);
        assert_counts_up(piped);
        psld_array_free(piped);
        assert_int_equal(load_piped(paths[i], 128 + bytes - 1, &piped), PSLD_BAD_INPUT);
        assert_non_null(strstr(psld_error_text(), ": expected 2800000 bytes of data, found 2799999"));
        assert_null(piped);
        assert_int_equal(load_piped(paths[i], 128 + bytes + 1, &piped), PSLD_BAD_INPUT);
        assert_non_null(strstr(psld_error_text(), ": expected 2800000 bytes of data, found more"));
    }
}

/* What a header promises is not allocated before it is there, from a pipe either. */
static void does_not_believe_the_shape(void **state)
{
    (void)state;
    static const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000), }";
    psld_array *array = NULL;
    blob b = make(1, header, "12345678", 8);
    assert_refused(&b, "x.npy: expected 8000000000000000 bytes of data, found 8");
    write_bytes("liar.npy", b.bytes, b.size);
    assert_int_equal(load_piped("liar.npy", b.size, &array), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": expected 8000000000000000 bytes of data, found 8"));
    assert_int_equal(psld_array_load("liar.npy", &array), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "liar.npy: expected 8000000000000000 bytes of data, found 8");
}

/* ---- Broken files ------------------------------------------------------------------------------------------------ */

static void cut_anywhere(void **state)
{
    (void)state;
    static const double data[] = {1, 2, 3};
    for (int version = 1; version <= 3; version++) {
        const blob whole = make(version, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", data, 24);
        for (size_t size = 0; size < whole.size; size++) {
            blob b = whole;
            char message[128] = "x.npy: not a .npy file";
            b.size = size;
            if (size >= 6) snprintf(message, sizeof message, "x.npy: the file ends within the .npy header");
            if (size >= whole.size - 24)
                snprintf(message, sizeof message, "x.npy: expected 24 bytes of data, found %zu",
                         size - (whole.size - 24));
            assert_refused(&b, message);
        }
        blob longer = whole;
        longer.size++;
        assert_refused(&longer, "x.npy: expected 24 bytes of data, found 25");
    }
}

static void bad_beginnings(void **state)
{
    (void)state;
    const blob good = make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "z", 1);
    for (size_t i = 0; i < 6; i++) {
        blob b = good;
        b.bytes[i] ^= 1;
        assert_refused(&b, "x.npy: not a .npy file");
    }
    blob b = good;
    b.bytes[6] = 4;
    assert_refused(&b, "x.npy: .npy version 4.0, expected 1.0, 2.0 or 3.0");
    b.bytes[6] = 0;
    assert_refused(&b, "x.npy: .npy version 0.0, expected 1.0, 2.0 or 3.0");
    b.bytes[6] = b.bytes[7] = 1;
    assert_refused(&b, "x.npy: .npy version 1.1, expected 1.0, 2.0 or 3.0");
    b = make(2, "{}", NULL, 0);
    memset(b.bytes + 8, 0xff, 4);
    assert_refused(&b, "x.npy: .npy header of 4294967295 bytes, expected at most 65535");
    b = make(1, "{}", NULL, 0);
    memset(b.bytes + 8, 0xff, 2);
    assert_refused(&b, "x.npy: the file ends within the .npy header");
    b = good;
    b.bytes[12] = 0;
    assert_refused(&b, "x.npy: bad .npy header: a NUL byte in it");
}

static void bad_types(void **state)
{
    (void)state;
    static const char *const descr[] = {">f8", "|i1", "<f2", "|b1", "<c8", "|f8", "f8", "<f80", "", "<"};
    for (size_t i = 0; i < sizeof descr / sizeof *descr; i++) {
        char header[128], message[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", descr[i]);
        snprintf(message, sizeof message, "x.npy: elements of type %s, expected <f8, <f4, |u1, <i4 or <i8", descr[i]);
        assert_header_refused(header, message);
    }
    assert_header_refused("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
                          "x.npy: elements of type [...] (records), expected <f8, <f4, |u1, <i4 or <i8");
}

static void bad_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *message;
    } rows[] = {
        {"(-3,)", "bad .npy header: expected a size of 0 or more, found \"-3,)}\""},
        {"(3)", "bad .npy header: expected , behind the first size of the shape, found \")}\""},
        {"(3 4)", "bad .npy header: expected , behind the first size of the shape, found \"4)}\""},
        {"(3, 4 5)", "bad .npy header: expected , or ) in the shape, found \"5)}\""},
        {"(3,,4)", "bad .npy header: expected a size of 0 or more, found \",4)}\""},
        {"(,)", "bad .npy header: expected a size of 0 or more, found \",)}\""},
        {"(3,", "bad .npy header: expected a size of 0 or more, found \"}\""},
        {"3", "bad .npy header: expected ( before the shape, found \"3}\""},
        {"(3L,)", "bad .npy header: expected , behind the first size of the shape, found \"L,)}\""},
        {"(1e3,)", "bad .npy header: expected , behind the first size of the shape, found \"e3,)}\""},
        {"(1,1,1,1,1,1,1,1,3)", "more than 8 dimensions"},
        {"(18446744073709551616,)", "the sizes of the array are too large"},
        {"(99999999999999999999999999,)", "the sizes of the array are too large"},
        {"(18446744073709551615,)", "the sizes of the array are too large"},
        {"(4294967296, 4294967296)", "the sizes of the array are too large"},
        {"(4294967296, 4294967296, 0)", "the sizes of the array are too large"},
        {"(2305843009213693952,)", "the sizes of the array are too large"},
        {"(4,)", "expected 32 bytes of data, found 24"},
        {"(2,)", "expected 16 bytes of data, found 24"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[160], message[160];
        snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': %s}", rows[i].shape);
        snprintf(message, sizeof message, "x.npy: %s", rows[i].message);
        assert_header_refused(header, message);
    }
}

static void bad_dicts(void **state)
{
    (void)state;
    assert_header_refused("", "x.npy: bad .npy header: expected {, found \"\"");
    assert_header_refused("{}", "x.npy: bad .npy header: no key \"descr\"");
    assert_header_refused("{'descr': '<f8', 'shape': (3,)}", "x.npy: bad .npy header: no key \"fortran_order\"");
    assert_header_refused("{'descr': '<f8', 'fortran_order': False}", "x.npy: bad .npy header: no key \"shape\"");
    assert_header_refused("{'descr': '<f8', 'descr': '<f8'}", "x.npy: bad .npy header: repeated key \"descr\"");
    assert_header_refused("{'colour': 1}", "x.npy: bad .npy header: unknown key \"colour\"");
    assert_header_refused("{'descr' '<f8'}", "x.npy: bad .npy header: expected :, found \"'<f8'}\"");
    assert_header_refused("{'descr': '<f8' 'shape': (3,)}",
                          "x.npy: bad .npy header: expected , or }, found \"'shape': (3,)}\"");
    assert_header_refused("{, }", "x.npy: bad .npy header: expected a short string in quotes, found \", }\"");
    assert_header_refused("{'descr: 3",
                          "x.npy: bad .npy header: expected a short string in quotes, found \"'descr: 3\"");
    assert_header_refused("{'fortran_order': 0", "x.npy: bad .npy header: expected True or False, found \"0\"");
    assert_header_refused("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x",
                          "x.npy: bad .npy header: expected its end, found \"x\"");
    assert_header_refused("{'descr': '<\\x66' }",
                          "x.npy: bad .npy header: expected a short string in quotes, found \"'<\\x66' }\"");
    assert_header_refused("{'0123456789012345678901234567890123456789': 1}",
                          "x.npy: bad .npy header: expected a short string in quotes, found \"'0123456789012345678\"");
}

static void files_that_are_none(void **state)
{
    (void)state;
    psld_array *array = NULL;
    assert_int_equal(psld_array_load("absent.npy", &array), PSLD_IO);
    assert_string_equal(psld_error_text(), "absent.npy: cannot read: No such file or directory");
    assert_int_equal(psld_array_load(".", &array), PSLD_IO);
    assert_string_equal(psld_error_text(), ".: cannot read: Is a directory");
    write_bytes("empty.npy", "", 0);
    assert_int_equal(psld_array_load("empty.npy", &array), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "empty.npy: not a .npy file");
    assert_int_equal(psld_array_load("/dev/zero", &array), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "/dev/zero: not a .npy file");
    assert_null(array);
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status all_of_it(void)
{
    const size_t shape[] = {2, 3};
    psld_array *array = NULL, *loaded = NULL, *converted = NULL;
    psld_status status = psld_array_create(PSLD_F32, 2, shape, &array);
    if (status == PSLD_OK) status = psld_array_save(array, "memory.npy");
    if (status == PSLD_OK) status = psld_array_load("memory.npy", &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &converted);
    psld_array_free(array);
    psld_array_free(loaded);
    psld_array_free(converted);
    return status;
}

static psld_status load_fortran(void)
{
    psld_array *array = NULL;
    psld_status status = psld_array_load("fortran.npy", &array);
    if (status != PSLD_OK) assert_non_null(strstr(psld_error_text(), "fortran.npy: out of memory"));
    psld_array_free(array);
    return status;
}

static psld_status load_fortran_piped(void)
{
    char name[64];
    int ends[2];
    blob b = make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "abcdef", 6);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.bytes, b.size), b.size);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    psld_array *array = NULL;
    psld_status status = psld_array_load(name, &array);
    close(ends[0]);
    if (status == PSLD_OK) assert_memory_equal(array->data, "acebdf", 6);
    psld_array_free(array);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    write_fortran("fortran.npy", 3, 4);
    psld_status (*const calls[])(void) = {all_of_it, load_fortran, load_fortran_piped};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) starve(calls[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_arrays),
        cmocka_unit_test(refuses_bad_shapes),
        cmocka_unit_test(converts),
        cmocka_unit_test(rounds_once),
        cmocka_unit_test(saves_as_numpy_does),
        cmocka_unit_test(save_reports_failure),
        cmocka_unit_test(reads_every_version_and_type),
        cmocka_unit_test(reads_any_layout_of_the_header),
        cmocka_unit_test(reads_rank_zero_and_empty),
        cmocka_unit_test(turns_fortran_order_into_c_order),
        cmocka_unit_test(reads_large_fortran_files),
        cmocka_unit_test(reads_pipes),
        cmocka_unit_test(does_not_believe_the_shape),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(bad_beginnings),
        cmocka_unit_test(bad_types),
        cmocka_unit_test(bad_shapes),
        cmocka_unit_test(bad_dicts),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
