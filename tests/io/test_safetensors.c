/* Lists of tensors and safetensors files: what is written is read again, elements are used where they lie, and no
 * header is believed. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "bytes.h"
#include "io/tensors/tensors_private.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

/* A file with this header and `size` bytes of data, at an address that can be used in place. */
static bytes make(const char *header, const void *data, size_t size)
{
    bytes b = {0};
    bytes_number(&b, strlen(header), 8);
    bytes_text(&b, header);
    if (size) bytes_put(&b, data, size);
    return b;
}

static psld_tensors *parse(const bytes *b)
{
    psld_tensors *tensors = NULL;
    if (psld_tensors_parse(b->data, b->size, "x", &tensors) != PSLD_OK) fail_msg("%s", psld_error_text());
    return tensors;
}

static void assert_refused(const bytes *b, const char *message)
{
    psld_tensors *tensors = NULL;
    long live = psld_alloc_live();
    assert_int_equal(psld_tensors_parse(b->data, b->size, "x", &tensors), PSLD_BAD_INPUT);
    assert_null(tensors);
    assert_string_equal(psld_error_text(), message);
    assert_int_equal(psld_alloc_live(), live);
}

/* A header of tensors with 24 bytes of data. */
static void assert_header_refused(const char *header, const char *message)
{
    static const char data[24];
    bytes b = make(header, data, sizeof data);
    assert_refused(&b, message);
    bytes_free(&b);
}

static void assert_same(const psld_tensors *a, const psld_tensors *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const psld_tensor *x = &a->items[i], *y = psld_tensors_find(b, x->name);
        assert_non_null(y);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->rank, y->rank);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        assert_int_equal(x->count, y->count);
        assert_int_equal(x->bytes, y->bytes);
        if (x->bytes) assert_memory_equal(x->data, y->data, x->bytes);
    }
    assert_int_equal(a->note_count, b->note_count);
    for (size_t i = 0; i < a->note_count; i++)
        assert_string_equal(psld_tensors_note(b, a->notes[i].key), a->notes[i].value);
}

static const double values[16] = {1, -2.5, 3e300, 0.1};

/* One tensor of each type, some notes. */
static psld_tensors *all_types(void)
{
    psld_tensors *t = NULL;
    const size_t shape[] = {1, 3, 1};
    char name[32];
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    for (int i = 0; i < PSLD_ELEMENT_COUNT; i++) {
        snprintf(name, sizeof name, "layer.%d \"\xc3\xa9\\", i);
        assert_int_equal(psld_tensors_add(t, name, (psld_element)i, i % 4, shape, values), PSLD_OK);
    }
    const size_t none[] = {4, 0};
    assert_int_equal(psld_tensors_add(t, "empty", PSLD_ELEMENT_F32, 2, none, values), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "config", "a: 1\nb: \"x\"\n"), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "format", "x"), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "format", "pt"), PSLD_OK);
    return t;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static void names_and_sizes_of_types(void **state)
{
    (void)state;
    assert_int_equal(psld_element_size(PSLD_ELEMENT_BF16), 2);
    assert_string_equal(psld_element_name(PSLD_ELEMENT_BF16), "bfloat16");
    assert_string_equal(psld_element_name(PSLD_ELEMENT_U8), "uint8");
    assert_int_equal(psld_element_size(PSLD_ELEMENT_COUNT), 0);
    assert_string_equal(psld_element_name(PSLD_ELEMENT_COUNT), "");
}

static void finds_and_selects(void **state)
{
    (void)state;
    psld_tensors *t = NULL, *s = NULL;
    const size_t shape[] = {2};
    psld_tensors_free(NULL);
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    static const char *const names[] = {"score_fn.b", "ema_score_fn.b", "ema_score_fn.a", "c"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(psld_tensors_add(t, names[i], PSLD_ELEMENT_F64, 1, shape, values + i), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "k", "v"), PSLD_OK);
    assert_ptr_equal(psld_tensors_find(t, "c"), &t->items[3]); /* without an index */
    assert_null(psld_tensors_find(t, "d"));
    assert_null(psld_tensors_note(t, "d"));
    assert_int_equal(psld_tensors_select(t, "ema_score_fn.", &s), PSLD_OK);
    assert_int_equal(s->count, 2);
    assert_string_equal(s->items[0].name, "b");
    assert_ptr_equal(psld_tensors_find(s, "a")->data, values + 2);
    assert_ptr_equal(psld_tensors_find(s, "b")->data, values + 1);
    assert_null(psld_tensors_find(s, "A"));
    assert_null(psld_tensors_find(s, "c"));
    assert_string_equal(psld_tensors_note(s, "k"), "v");
    psld_tensors_free(s);
    assert_int_equal(psld_tensors_select(t, "clf_fn.", &s), PSLD_OK);
    assert_int_equal(s->count, 0);
    psld_tensors_free(s);
    psld_tensors_free(t);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    psld_tensors *t = NULL;
    size_t shape[9] = {SIZE_MAX / 4, 2, 0};
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_F32, 3, shape, values), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "tensor a: its type, rank or sizes are out of range");
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_COUNT, 0, shape, values), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_F32, 9, shape, values), PSLD_BAD_ARGUMENT);
    assert_int_equal(t->count, 0);
    shape[0] = 1;
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_U8, 1, shape, values), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_TORCH_LEGACY, "x"), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "no/such/folder"), PSLD_IO);
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_U8, 1, shape, values), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "x"), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "x: two tensors have the name a");
    assert_int_equal(psld_tensors_save(t, PSLD_TORCH_ZIP, "x"), PSLD_BAD_ARGUMENT);
    psld_tensors_free(t);
    static const char *const names[] = {"__metadata__", "\xff"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(psld_tensors_create(&t), PSLD_OK);
        assert_int_equal(psld_tensors_add(t, names[i], PSLD_ELEMENT_U8, 1, shape, values), PSLD_OK);
        assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "x"), PSLD_BAD_ARGUMENT);
        assert_non_null(strstr(psld_error_text(), "a name that safetensors cannot have"));
        psld_tensors_free(t);
    }
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "k", "\xff"), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "x"), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "x: the note k is not UTF-8");
    psld_tensors_free(t);
    assert_int_equal(access("x", F_OK), -1);
}

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

static void assert_converts(psld_element type, const void *data, size_t count, const float *expected)
{
    float found[16];
    const psld_tensor t = {.type = type,
                           .rank = 1,
                           .shape = {count},
                           .count = count,
                           .bytes = count * psld_element_size(type),
                           .data = data};
    psld_tensor_to_f32(&t, found);
    assert_memory_equal(found, expected, count * sizeof *found);
}

static void converts_to_float32(void **state)
{
    (void)state;
    static const uint16_t f16[] = {0x3c00, 0xc100, 0x0001, 0x83ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x8000, 0x2e66};
    const float from_f16[] = {1,     -2.5f,     0x1p-24f,   -0x1.ff8p-15f, 0x1p-14f,
                              65504, HUGE_VALF, -HUGE_VALF, -0.0f,         0x1.998p-4f};
    assert_converts(PSLD_ELEMENT_F16, f16, 10, from_f16);
    static const uint16_t bf16[] = {0x3f80, 0xc020, 0x0001, 0x7f80, 0x8000};
    const float from_bf16[] = {1, -2.5f, 0x1p-133f, HUGE_VALF, -0.0f};
    assert_converts(PSLD_ELEMENT_BF16, bf16, 5, from_bf16);
    static const double f64[] = {0.1, -1e300, 0x1.000001p0};
    const float from_f64[] = {0.1f, -HUGE_VALF, 1};
    assert_converts(PSLD_ELEMENT_F64, f64, 3, from_f64);
    static const float f32[] = {0.1f, -0.0f};
    assert_converts(PSLD_ELEMENT_F32, f32, 2, f32);
    assert_converts(PSLD_ELEMENT_F32, f32, 0, f32);
    static const int8_t i8[] = {-128, 127};
    assert_converts(PSLD_ELEMENT_I8, i8, 2, (const float[]){-128, 127});
    static const uint8_t u8[] = {0, 255};
    assert_converts(PSLD_ELEMENT_U8, u8, 2, (const float[]){0, 255});
    assert_converts(PSLD_ELEMENT_BOOL, u8, 2, (const float[]){0, 1});
    static const int16_t i16[] = {-32768, 32767};
    assert_converts(PSLD_ELEMENT_I16, i16, 2, (const float[]){-32768, 32767});
    static const int32_t i32[] = {INT32_MIN, 16777217};
    assert_converts(PSLD_ELEMENT_I32, i32, 2, (const float[]){-0x1p31f, 16777216});
    static const int64_t i64[] = {INT64_MIN, ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1};
    assert_converts(PSLD_ELEMENT_I64, i64, 2, (const float[]){-0x1p63f, 0x1.000002p60f});
    static const uint16_t nan = 0x7e01;
    float found;
    psld_tensor_to_f32(&(psld_tensor){.type = PSLD_ELEMENT_F16, .count = 1, .bytes = 2, .data = &nan}, &found);
    assert_true(isnan(found));
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void writes_and_reads_all_types(void **state)
{
    (void)state;
    psld_tensors *t = all_types(), *again = NULL;
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "all.safetensors"), PSLD_OK);
    assert_int_equal(psld_tensors_open("all.safetensors", &again), PSLD_OK);
    assert_int_equal(again->format, PSLD_SAFETENSORS);
    assert_same(t, again);
    for (size_t i = 0; i < t->count; i++) { /* in order, and in the mapped file */
        const unsigned char *data = again->items[i].data, *map = again->own->map.bytes;
        assert_string_equal(again->items[i].name, t->items[i].name);
        assert_true(data >= map && data <= map + again->own->map.size);
        assert_int_equal((uintptr_t)data % psld_element_size(again->items[i].type), 0);
    }
    assert_int_equal(psld_tensors_verify(again), PSLD_OK);
    psld_tensors_free(again);
    psld_tensors_free(t);
}

static void writes_an_empty_list(void **state)
{
    (void)state;
    psld_tensors *t = NULL, *again = NULL;
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "none.safetensors"), PSLD_OK);
    assert_int_equal(psld_tensors_open("none.safetensors", &again), PSLD_OK);
    assert_int_equal(again->count, 0);
    psld_tensors_free(again);
    psld_tensors_free(t);
}

static void writes_these_bytes(void **state)
{
    (void)state;
    const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
        "\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}";
    psld_tensors *t = NULL, *found = NULL;
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_add(t, "b", PSLD_ELEMENT_U8, 1, (const size_t[]){3}, "abc"), PSLD_OK);
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_F64, 0, NULL, values), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "k", "v"), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "exact.safetensors"), PSLD_OK);
    char *file = NULL;
    size_t size = 0, length = strlen(header);
    assert_int_equal(psld_file_read("exact.safetensors", 1 << 20, &file, &size), PSLD_OK);
    assert_int_equal((8 + length + 63) / 64 * 64 + 11, size);
    assert_memory_equal(file + 8, header, length);
    for (size_t i = 8 + length; i < size - 11; i++) assert_int_equal(file[i], ' ');
    assert_memory_equal(file + size - 11, values, 8);
    assert_memory_equal(file + size - 3, "abc", 3);
    /* From memory, where the data lie in the middle of nowhere: copied if need be. */
    for (size_t shift = 0; shift < 8; shift++) {
        char *moved = malloc(size + shift);
        memcpy(moved + shift, file, size);
        assert_int_equal(psld_tensors_parse(moved + shift, size, "x", &found), PSLD_OK);
        assert_same(t, found);
        assert_int_equal((uintptr_t)found->items[1].data % 8, 0);
        assert_int_equal(found->own->block_count, shift == 0 ? 0 : 1);
        psld_tensors_free(found);
        free(moved);
    }
    psld_release(file);
    psld_tensors_free(t);
}

static void reads_pipes(void **state)
{
    (void)state;
    psld_tensors *t = all_types(), *again = NULL;
    char *file = NULL, name[32];
    size_t size = 0;
    int ends[2];
    assert_int_equal(psld_tensors_save(t, PSLD_SAFETENSORS, "pipe.safetensors"), PSLD_OK);
    assert_int_equal(psld_file_read("pipe.safetensors", 1 << 20, &file, &size), PSLD_OK);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], file, size), size);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(psld_tensors_open(name, &again), PSLD_OK);
    close(ends[0]);
    assert_same(t, again);
    psld_release(file);
    psld_tensors_free(again);
    psld_tensors_free(t);
}

static void files_that_are_none(void **state)
{
    (void)state;
    psld_tensors *t = NULL;
    assert_int_equal(psld_tensors_open("absent", &t), PSLD_IO);
    assert_string_equal(psld_error_text(), "absent: cannot read: No such file or directory");
    assert_int_equal(psld_tensors_open("/dev/null", &t), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "/dev/null: neither a safetensors file nor a PyTorch checkpoint");
    assert_null(t);
}

/* ---- Broken files ------------------------------------------------------------------------------------------------ */

#define A_TENSOR "{\"a\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]}}"

static void cut_anywhere(void **state)
{
    (void)state;
    bytes whole = make(A_TENSOR, values, 24);
    for (size_t size = 0; size < whole.size; size++) {
        bytes b = {0};
        char message[160] = "x: neither a safetensors file nor a PyTorch checkpoint";
        if (size > 8)
            snprintf(message, sizeof message, "x: the file ends within the safetensors header: %zu bytes of 55",
                     size - 8);
        if (size >= 63)
            snprintf(message, sizeof message, "x: tensor a: bytes 0 to 24, of %zu that the file has", size - 63);
        bytes_put(&b, whole.data, size);
        assert_refused(&b, message);
        bytes_free(&b);
    }
    bytes_put(&whole, "12", 2);
    assert_refused(&whole, "x: 2 bytes of data belong to no tensor");
    bytes_free(&whole);
}

static void every_bit_flipped(void **state)
{
    (void)state;
    bytes b = make("{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]},"
                   "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
                   values, 24);
    for (size_t i = 0; i < b.size * 8; i++) {
        psld_tensors *t = NULL;
        b.data[i / 8] ^= (unsigned char)(1 << i % 8);
        psld_status status = psld_tensors_parse(b.data, b.size, "x", &t);
        assert_true(status == PSLD_OK || status == PSLD_BAD_INPUT);
        assert_true((status == PSLD_OK) == (t != NULL));
        psld_tensors_free(t);
        b.data[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    psld_tensors_free(parse(&b));
    bytes_free(&b);
}

/* Whose length is such that the file begins with the letters of a zip archive. */
static void a_header_that_looks_like_zip(void **state)
{
    (void)state;
    char header[0x4b50 + 1];
    memset(header, ' ', sizeof header - 1);
    header[sizeof header - 1] = '\0';
    memcpy(header, A_TENSOR, strlen(A_TENSOR));
    bytes b = make(header, values, 24);
    assert_memory_equal(b.data, "PK", 2);
    psld_tensors *t = parse(&b);
    assert_int_equal(t->format, PSLD_SAFETENSORS);
    psld_tensors_free(t);
    bytes_free(&b);
}

static void bad_headers(void **state)
{
    (void)state;
    bytes b = make(A_TENSOR, values, 24);
    memset(b.data, 0xff, 8);
    assert_refused(&b, "x: safetensors header of 18446744073709551615 bytes, expected at most 16777216");
    bytes_free(&b);
    assert_header_refused("[1]", "x: neither a safetensors file nor a PyTorch checkpoint");
    assert_header_refused("{\"a\":", "x: byte 13: bad safetensors header: unexpected token near end of file");
    assert_header_refused("{} x", "x: byte 12: bad safetensors header: end of file expected near 'x'");
    assert_header_refused("{}", "x: 24 bytes of data belong to no tensor");
    assert_header_refused("{\"a\":1,\"a\":2}", "x: byte 18: bad safetensors header: duplicate object key near '\"a\"'");
    assert_header_refused(
        "{\"a\\u0000\":1}",
        "x: byte 18: bad safetensors header: NUL byte in object key not supported near '\"a\\u0000\"'");
    assert_header_refused("{\"a\":1}", "x: tensor a: expected an object with dtype, shape and data_offsets");
    assert_header_refused("{\"__metadata__\":[]}", "x: __metadata__: expected an object");
    assert_header_refused("{\"__metadata__\":{\"k\":1}}", "x: __metadata__: k: expected a text");
    char deep[5000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    deep[sizeof deep - 1] = '\0';
    assert_header_refused(deep, "x: byte 2061: bad safetensors header: maximum parsing depth reached near '['");
}

static void bad_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *message;
    } rows[] = {
        {"\"shape\":[3],\"data_offsets\":[0,24]", "expected \"dtype\" to be a text"},
        {"\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,24]",
         "elements of type F8_E4M3, expected F16, BF16, F32, F64, U8, I8, I16, I32, I64 or BOOL"},
        {"\"dtype\":\"F64\",\"data_offsets\":[0,24]", "expected \"shape\" to be a list"},
        {"\"dtype\":\"F64\",\"shape\":[3,1,1,1,1,1,1,1,1],\"data_offsets\":[0,24]", "more than 8 dimensions"},
        {"\"dtype\":\"F64\",\"shape\":[-3],\"data_offsets\":[0,24]",
         "a size in its shape is not a whole number of 0 or more"},
        {"\"dtype\":\"F64\",\"shape\":[3.0],\"data_offsets\":[0,24]",
         "a size in its shape is not a whole number of 0 or more"},
        {"\"dtype\":\"F64\",\"shape\":[3]", "expected \"data_offsets\" to be a list of two whole numbers of 0 or more"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24,1]",
         "expected \"data_offsets\" to be a list of two whole numbers of 0 or more"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[-1,24]",
         "expected \"data_offsets\" to be a list of two whole numbers of 0 or more"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24],\"x\":1",
         "keys other than dtype, shape and data_offsets"},
        {"\"dtype\":\"F64\",\"shape\":[4611686018427387904,4,2],\"data_offsets\":[0,24]", "its sizes are too large"},
        {"\"dtype\":\"F64\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]", "its sizes are too large"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[24,0]", "bytes 24 to 0, of 24 that the file has"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[1,25]", "bytes 1 to 25, of 24 that the file has"},
        {"\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,9223372036854775807]",
         "bytes 0 to 9223372036854775807, of 24 that the file has"},
        {"\"dtype\":\"F64\",\"shape\":[4],\"data_offsets\":[0,24]",
         "24 bytes of data, expected 32 for its type and shape"},
        {"\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]", "its data begin at byte 8, expected 0: a hole"},
        {"\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
         "\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[256], message[256];
        snprintf(header, sizeof header, "{\"a\":{%s}}", rows[i].fields);
        snprintf(message, sizeof message, "x: tensor a: %s", rows[i].message ? rows[i].message : "");
        if (!rows[i].message)
            snprintf(message, sizeof message, "x: tensor b: its data begin at byte 8, expected 16: an overlap");
        assert_header_refused(header, message);
    }
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status all_of_it(void)
{
    psld_tensors *t = NULL, *read = NULL, *selected = NULL;
    psld_status status = psld_tensors_create(&t);
    const size_t shape[] = {3};
    char name[16];
    for (int i = 0; i < 12 && status == PSLD_OK; i++) {
        snprintf(name, sizeof name, "a.%d", i);
        status = psld_tensors_add(t, name, i % 2 ? PSLD_ELEMENT_U8 : PSLD_ELEMENT_F64, 1, shape, values);
        if (status == PSLD_OK) status = psld_tensors_set_note(t, name, "v");
    }
    if (status == PSLD_OK) status = psld_tensors_set_note(t, "a.1", "w");
    if (status == PSLD_OK) status = psld_tensors_save(t, PSLD_SAFETENSORS, "memory.safetensors");
    if (status == PSLD_OK) status = psld_tensors_open("memory.safetensors", &read);
    if (status == PSLD_OK) status = psld_tensors_select(read, "a.", &selected);
    psld_tensors_free(selected);
    psld_tensors_free(read);
    psld_tensors_free(t);
    return status;
}

/* With data that have to be copied. */
static psld_status read_unaligned(void)
{
    psld_tensors *t = NULL;
    bytes b = make(A_TENSOR, values, 24); /* which begin at byte 63 */
    psld_status status = psld_tensors_parse(b.data, b.size, "x", &t);
    if (status != PSLD_OK) assert_non_null(strstr(psld_error_text(), "x: out of memory"));
    if (status == PSLD_OK) assert_int_equal(t->own->block_count, 1);
    psld_tensors_free(t);
    bytes_free(&b);
    return status;
}

static psld_status read_pipe(void)
{
    psld_tensors *t = NULL;
    char name[32];
    int ends[2];
    bytes b = make(A_TENSOR, values, 24);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.size), b.size);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    psld_status status = psld_tensors_open(name, &t);
    close(ends[0]);
    psld_tensors_free(t);
    bytes_free(&b);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psld_status (*const calls[])(void) = {all_of_it, read_unaligned, read_pipe};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) starve(calls[i]);
}

static long json_blocks_left;

static void *few_json_blocks(size_t size)
{
    return json_blocks_left-- > 0 ? malloc(size) : NULL;
}

/* The header is made by a library with memory of its own: that it has none left is no fault of a name. */
static void memory_of_the_header(void **state)
{
    (void)state;
    static const float four[4] = {1, 2, 3, 4};
    psld_tensors *t = NULL;
    psld_status status = PSLD_NO_MEMORY;
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_add(t, "a", PSLD_ELEMENT_F32, 2, (const size_t[]){2, 2}, four), PSLD_OK);
    assert_int_equal(psld_tensors_set_note(t, "k", "v"), PSLD_OK);
    for (long blocks = 0; status != PSLD_OK; blocks++) {
        json_set_alloc_funcs(few_json_blocks, free);
        json_blocks_left = blocks;
        status = psld_tensors_save(t, PSLD_SAFETENSORS, "starved.safetensors");
        json_set_alloc_funcs(malloc, free);
        if (status != PSLD_OK) assert_int_equal(status, PSLD_NO_MEMORY);
    }
    psld_tensors_free(t);
    assert_int_equal(psld_tensors_open("starved.safetensors", &t), PSLD_OK);
    assert_string_equal(psld_tensors_note(t, "k"), "v");
    assert_int_equal(psld_tensors_find(t, "a")->count, 4);
    psld_tensors_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes_of_types),
        cmocka_unit_test(finds_and_selects),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(memory_of_the_header),
        cmocka_unit_test(converts_to_float32),
        cmocka_unit_test(writes_and_reads_all_types),
        cmocka_unit_test(writes_an_empty_list),
        cmocka_unit_test(writes_these_bytes),
        cmocka_unit_test(reads_pipes),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(a_header_that_looks_like_zip),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_tensors),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
