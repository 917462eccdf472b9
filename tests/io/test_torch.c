/* PyTorch checkpoints, zip and older: tensors come out as torch would make them, nothing is ever run, and whatever is
 * wrong is one line that names the tensor or the byte. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "bytes.h"
#include "comma.h"
#include "golden_network.h"
#include "io/files/zip.h"
#include "io/tensors/torch_private.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

static const float numbers[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

/* A checkpoint of this pickle, with storages "0" (24 float32) and "1" (8 bytes). */
static bytes make_zip(const bytes *pickle, int flags)
{
    archive a = {0};
    zip_add(&a, "m/data.pkl", pickle->data, pickle->size, flags, -1);
    zip_add(&a, "m/byteorder", "little", 6, flags, -1);
    zip_add(&a, "m/data/0", numbers, sizeof numbers, flags, -1);
    zip_add(&a, "m/data/1", "\x00\x3c\x01\xff\x80\x3f\x00\x01", 8, flags, -1);
    zip_add(&a, "m/empty/", "", 0, 0, -1);
    return zip_end(&a);
}

/* The same in the old format. */
static bytes make_legacy(const bytes *pickle)
{
    bytes b = {0};
    bytes_put(&b, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
    bytes_text(&b, "\x80\x02}X\x0d");
    bytes_put(&b, "\0\0\0little_endian\x88s.", 19);
    bytes_put(&b, pickle->data, pickle->size);
    bytes_text(&b, "\x80\x02](U\x01"
                   "0U\x01"
                   "1e.");
    bytes_number(&b, 24, 8);
    bytes_put(&b, numbers, sizeof numbers);
    bytes_number(&b, 8, 8);
    bytes_put(&b, "\x00\x3c\x01\xff\x80\x3f\x00\x01", 8);
    return b;
}

/* A dict of one tensor of storage "0", and (every storage has to be used) one of "1". */
static bytes one_tensor(int64_t offset, int rank, const int64_t *shape, const int64_t *stride)
{
    bytes p = {0};
    bytes_text(&p, "\x80\x02}(");
    pickle_text(&p, "w");
    pickle_tensor(&p, "FloatStorage", "0", 24, offset, rank, shape, stride);
    pickle_text(&p, "b");
    pickle_tensor(&p, "ByteStorage", "1", 8, 0, 1, (const int64_t[]){8}, (const int64_t[]){1});
    bytes_text(&p, "u.");
    return p;
}

static psld_tensors *parse(const bytes *b)
{
    psld_tensors *t = NULL;
    if (psld_tensors_parse(b->data, b->size, "x.pt", &t) != PSLD_OK) fail_msg("%s", psld_error_text());
    return t;
}

static void assert_refused(const bytes *b, const char *message)
{
    psld_tensors *t = NULL;
    long live = psld_alloc_live();
    assert_int_equal(psld_tensors_parse(b->data, b->size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_null(t);
    assert_string_equal(psld_error_text(), message);
    assert_int_equal(psld_alloc_live(), live);
}

/* Parses a pickle in either container and frees it and what was made of it. */
static psld_tensors *parse_pickle(bytes *pickle)
{
    bytes file = make_zip(pickle, 0);
    psld_tensors *t = parse(&file);
    bytes_free(pickle);
    /* The tensors need the file; it is freed with them in a test's last breath. */
    void *keep = NULL;
    assert_int_equal(psld_tensors_block(t, file.size, &keep), PSLD_OK);
    memcpy(keep, file.data, file.size);
    for (size_t i = 0; i < t->count; i++) {
        const unsigned char *data = t->items[i].data;
        if (data >= file.data && data < file.data + file.size)
            t->items[i].data = (unsigned char *)keep + (data - file.data);
    }
    bytes_free(&file);
    return t;
}

/* The place in messages counts from the beginning of the file: the pickle begins at byte 40. */
static void assert_pickle_refused(const void *pickle, size_t size, const char *message)
{
    bytes p = {0};
    bytes_put(&p, pickle, size);
    bytes file = make_zip(&p, 0);
    assert_refused(&file, message);
    bytes_free(&file);
    bytes_free(&p);
}

static void assert_floats(const psld_tensor *t, size_t count, const float *expected)
{
    float found[64];
    assert_non_null(t);
    assert_int_equal(t->count, count);
    psld_tensor_to_f32(t, found);
    assert_memory_equal(found, expected, count * sizeof *expected);
}

/* ---- Real files -------------------------------------------------------------------------------------------------- */

/* The EMA weights of a Lightning checkpoint are those of the safetensors file, the others half of them. */
static void compare_golden(const char *folder, const psld_tensors *ckpt)
{
    char path[GOLDEN_PATH];
    psld_tensors *safe = NULL, *ema = NULL, *raw = NULL;
    if (!golden_path(folder, "model.safetensors", path)) golden_write_formula(folder, path);
    if (psld_tensors_open(path, &safe) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_tensors_select(ckpt, "ema_score_fn.", &ema), PSLD_OK);
    assert_int_equal(psld_tensors_select(ckpt, ema->count ? "score_fn." : "clf_fn.", &raw), PSLD_OK);
    float scale = ema->count ? 0.5f : 1;
    if (ema->count) assert_int_equal(ema->count, safe->count);
    assert_int_equal(raw->count, safe->count);
    assert_int_equal(ema->count + raw->count, ckpt->count);
    for (size_t i = 0; i < safe->count; i++) {
        const psld_tensor *s = &safe->items[i], *e = psld_tensors_find(ema, s->name),
                          *r = psld_tensors_find(raw, s->name);
        assert_int_equal(s->type, PSLD_ELEMENT_F32);
        if (ema->count) assert_memory_equal(e->data, s->data, s->bytes);
        assert_int_equal(r->rank, s->rank);
        assert_memory_equal(r->shape, s->shape, sizeof s->shape);
        for (size_t j = 0; j < s->count; j++)
            assert_true(((const float *)r->data)[j] == scale * ((const float *)s->data)[j]);
    }
    printf("%s: %zu tensors the same in both files\n", folder, safe->count);
    psld_tensors_free(raw);
    psld_tensors_free(ema);
    psld_tensors_free(safe);
}

/* Every checkpoint can be read; one that a training run wrote says its step, and its weights are those of the folder. */
static void golden_checkpoints(void **state)
{
    (void)state;
    const golden_list *list = golden_find("model.ckpt");
    for (size_t i = 0; i < list->count; i++) {
        char path[GOLDEN_PATH];
        psld_tensors *ckpt = NULL;
        golden_path(list->folders[i], "model.ckpt", path);
        if (psld_tensors_open(path, &ckpt) != PSLD_OK) fail_msg("%s", psld_error_text());
        assert_int_equal(psld_tensors_verify(ckpt), PSLD_OK);
        if (psld_tensors_note(ckpt, "global_step"))
            compare_golden(list->folders[i], ckpt);
        else
            printf("%s: %zu tensors can be read\n", list->folders[i], ckpt->count);
        psld_tensors_free(ckpt);
    }
}

static void a_real_legacy_file(void **state)
{
    (void)state;
    char path[GOLDEN_PATH + 64], roots[GOLDEN_ROOTS][GOLDEN_PATH];
    psld_tensors *t = NULL;
    golden_roots(roots);
    snprintf(path, sizeof path, "%s/../data/weights/resnet56-4bfd9763.th", roots[1]);
    if (access(path, R_OK) != 0) skip_for("no %s", path);
    if (psld_tensors_open(path, &t) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(t->format, PSLD_TORCH_LEGACY);
    assert_int_equal(t->count, 277);
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        assert_int_equal(t->items[i].type, PSLD_ELEMENT_F32);
        assert_int_equal((uintptr_t)t->items[i].data % 4, 0);
        count += t->items[i].count;
    }
    assert_int_equal(count, 857082);
    assert_string_equal(t->items[0].name, "module.conv1.weight");
    const psld_tensor *conv = psld_tensors_find(t, "module.layer2.0.conv1.weight");
    assert_int_equal(conv->rank, 4);
    assert_memory_equal(conv->shape, ((const size_t[]){32, 16, 3, 3}), 4 * sizeof(size_t));
    const psld_tensor *linear = psld_tensors_find(t, "module.linear.weight");
    assert_int_equal(linear->shape[0] * linear->shape[1], 640);
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < t->items[i].count; j++) assert_true(isfinite(((const float *)t->items[i].data)[j]));
    assert_string_equal(psld_tensors_note(t, "best_prec1"), "93.62");
    psld_tensors_free(t);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static void types_of_storages(void **state)
{
    (void)state;
    static const struct {
        const char *storage;
        psld_element type;
        float first;
    } rows[] = {
        {"HalfStorage", PSLD_ELEMENT_F16, 1},       {"BFloat16Storage", PSLD_ELEMENT_BF16, 0x1p-7f},
        {"FloatStorage", PSLD_ELEMENT_F32, 0},      {"DoubleStorage", PSLD_ELEMENT_F64, 0},
        {"ByteStorage", PSLD_ELEMENT_U8, 0},        {"CharStorage", PSLD_ELEMENT_I8, 0},
        {"ShortStorage", PSLD_ELEMENT_I16, 0x3c00}, {"IntStorage", PSLD_ELEMENT_I32, 0},
        {"LongStorage", PSLD_ELEMENT_I64, 0},       {"BoolStorage", PSLD_ELEMENT_BOOL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bytes p = {0};
        int64_t count = 8 / (int64_t)psld_element_size(rows[i].type);
        float found[8];
        bytes_text(&p, "\x80\x02}");
        pickle_text(&p, "w");
        pickle_tensor(&p, rows[i].storage, "1", count, 0, 1, &count, (const int64_t[]){1});
        bytes_text(&p, "s.");
        psld_tensors *t = parse_pickle(&p);
        assert_int_equal(t->items[0].type, rows[i].type);
        assert_int_equal(t->items[0].count, count);
        psld_tensor_to_f32(&t->items[0], found);
        if (psld_element_size(rows[i].type) == 2) assert_true(found[0] == rows[i].first);
        assert_string_equal(psld_storage_name(rows[i].type), rows[i].storage);
        psld_tensors_free(t);
    }
}

/* In C order whatever the strides are, from either container, stored or compressed. */
static void views(void **state)
{
    (void)state;
    static const struct {
        int64_t offset;
        int rank;
        int64_t shape[3], stride[3];
        float first, last;
        int copied;
    } rows[] = {
        {0, 1, {24}, {1}, 0, 23, 0},
        {2, 2, {3, 4}, {4, 1}, 2, 13, 0},           /* a part */
        {0, 2, {4, 6}, {1, 4}, 0, 23, 1},           /* transposed */
        {1, 2, {3, 2}, {6, 3}, 1, 16, 1},           /* every third */
        {5, 0, {0}, {0}, 5, 5, 0},                  /* a scalar */
        {23, 3, {1, 1, 1}, {7, 9, 100}, 23, 23, 0}, /* strides that do not matter */
        {3, 2, {2, 5}, {1, 0}, 3, 4, 1},            /* expanded */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bytes p = one_tensor(rows[i].offset, rows[i].rank, rows[i].shape, rows[i].stride);
        bytes files[] = {make_zip(&p, 0), make_zip(&p, ZIP_DEFLATE), make_zip(&p, ZIP_NO_CRC), make_legacy(&p)};
        for (int j = 0; j < 4; j++) {
            psld_tensors *t = parse(&files[j]);
            const psld_tensor *w = psld_tensors_find(t, "w");
            float found[64];
            psld_tensor_to_f32(w, found);
            assert_true(found[0] == rows[i].first);
            assert_true(found[w->count - 1] == rows[i].last);
            assert_int_equal((uintptr_t)w->data % 4, 0);
            const unsigned char *data = w->data;
            if (rows[i].copied) assert_false(data >= files[j].data && data < files[j].data + files[j].size);
            assert_int_equal(psld_tensors_verify(t), PSLD_OK);
            psld_tensors_free(t);
            bytes_free(&files[j]);
        }
        bytes_free(&p);
    }
    bytes p = one_tensor(0, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2});
    psld_tensors *t = parse_pickle(&p);
    assert_floats(psld_tensors_find(t, "w"), 6, (const float[]){0, 2, 4, 1, 3, 5});
    psld_tensors_free(t);
    p = one_tensor(99, 2, (const int64_t[]){0, 3}, (const int64_t[]){9, 9}); /* nothing cannot be out of range */
    t = parse_pickle(&p);
    assert_int_equal(psld_tensors_find(t, "w")->count, 0);
    psld_tensors_free(t);
}

static void views_out_of_range(void **state)
{
    (void)state;
    static const struct {
        int64_t offset, shape[2], stride[2];
        const char *message;
    } rows[] = {
        {1, {4, 6}, {6, 1}, "x.pt: tensor w: its shape and strides reach beyond its storage of 24 elements"},
        {0, {2, 2}, {23, 1}, "x.pt: tensor w: its shape and strides reach beyond its storage of 24 elements"},
        {INT64_MAX, {1, 1}, {1, 1}, "x.pt: tensor w: its shape and strides reach beyond its storage of 24 elements"},
        {INT64_MAX,
         {3, 2},
         {INT64_MAX, 1},
         "x.pt: tensor w: its shape and strides reach beyond its storage of 24 elements"},
        {0, {INT64_MAX, 4}, {0, 0}, "x.pt: tensor w: its sizes are too large"},
        {0,
         {1 << 30, 4},
         {0, 0},
         "x.pt: tensor w: views that are 17179869184 bytes when copied, too many for a file of this size"},
        {0, {-1, 4}, {0, 0}, "x.pt: byte 225: torch._utils._rebuild_tensor_v2 with arguments that make no sense"},
        {-1, {1, 4}, {0, 0}, "x.pt: byte 225: torch._utils._rebuild_tensor_v2 with arguments that make no sense"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bytes p = one_tensor(rows[i].offset, 2, rows[i].shape, rows[i].stride);
        bytes file = make_zip(&p, 0);
        assert_refused(&file, rows[i].message);
        bytes_free(&file);
        bytes_free(&p);
    }
}

/* Tensors that share a storage share its bytes, once in memory also if it has to be copied. */
static void shared_storages(void **state)
{
    (void)state;
    bytes p = {0};
    bytes_text(&p, "\x80\x02}(");
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        pickle_text(&p, names[i]);
        pickle_tensor(&p, "FloatStorage", "0", 24, 4 * i, 1, (const int64_t[]){12}, (const int64_t[]){1});
    }
    bytes_text(&p, "u.");
    bytes files[] = {make_zip(&p, 0), make_zip(&p, ZIP_DEFLATE)};
    for (int i = 0; i < 2; i++) {
        psld_tensors *t = parse(&files[i]);
        assert_ptr_equal((const float *)t->items[0].data + 4, t->items[1].data);
        assert_ptr_equal((const float *)t->items[0].data + 8, t->items[2].data);
        assert_floats(&t->items[2], 12, numbers + 8);
        psld_tensors_free(t);
        bytes_free(&files[i]);
    }
    bytes_free(&p);
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static void lightning_checkpoints(void **state)
{
    (void)state;
    bytes p = {0};
    bytes_text(&p, "\x80\x02}(");
    pickle_text(&p, "epoch");
    bytes_text(&p, "K\x07");
    pickle_text(&p, "best");
    bytes_put(&p, "G\xbf\xe0\0\0\0\0\0\0", 9);
    pickle_text(&p, "tenth");
    bytes_text(&p, "F0.1\n");
    pickle_text(&p, "odd");
    bytes_text(&p, "F0.30000000000000004\n");
    pickle_text(&p, "done");
    bytes_text(&p, "\x88");
    pickle_text(&p, "off");
    bytes_text(&p, "\x89");
    pickle_text(&p, "version");
    pickle_text(&p, "1.5");
    pickle_text(&p, "nothing");
    bytes_text(&p, "N");
    bytes_text(&p, "K\x05K\x05"); /* a key that is no text */
    pickle_text(&p, "hyper_parameters");
    bytes_text(&p, "cargparse\nNamespace\n)\x81}");
    pickle_text(&p, "lr");
    bytes_text(&p, "K\x01sb");
    pickle_text(&p, "callbacks");
    bytes_text(&p, "cmine\nDict\n)R(K\x01K\x02u(K\x01K\x02"); /* a dict of a class of its own, and a value of a list */
    bytes_text(&p, "l0");                                     /* that is dropped again */
    pickle_text(&p, "state_dict");
    bytes_text(&p, "ccollections\nOrderedDict\n)R(");
    pickle_text(&p, "score_fn.w");
    bytes_text(&p, "ctorch._utils\n_rebuild_parameter\n(");
    pickle_tensor(&p, "FloatStorage", "0", 24, 0, 1, (const int64_t[]){3}, (const int64_t[]){1});
    bytes_text(&p, "\x88)tR");
    pickle_text(&p, "ema_score_fn.w");
    bytes_text(&p, "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\ncmine\nTensor\n(");
    pickle_storage(&p, "FloatStorage", "0", 24);
    bytes_text(&p, "K\x01");
    bytes_text(&p, "ctorch\nSize\nK\x02\x85\x85RK\x01\x85\x89)t}tR");
    pickle_text(&p, "extra");
    bytes_text(&p, "cmine\nThing\n)R");
    pickle_text(&p, "none");
    bytes_text(&p, "N");
    bytes_text(&p, "u}");
    pickle_text(&p, "_metadata");
    bytes_text(&p, "}sbu.");
    psld_tensors *t = parse_pickle(&p);
    assert_int_equal(t->count, 2);
    assert_string_equal(t->items[0].name, "score_fn.w");
    assert_floats(&t->items[0], 3, numbers);
    assert_floats(psld_tensors_find(t, "ema_score_fn.w"), 2, numbers + 1);
    static const char *const notes[][2] = {
        {"epoch", "7"},   {"best", "-0.5"}, {"tenth", "0.1"},  {"odd", "0.30000000000000004"},
        {"done", "true"}, {"off", "false"}, {"version", "1.5"}};
    assert_int_equal(t->note_count, 7);
    for (int i = 0; i < 7; i++) assert_string_equal(psld_tensors_note(t, notes[i][0]), notes[i][1]);
    psld_tensors_free(t);
}

static void nested_dicts_and_lists(void **state)
{
    (void)state;
    bytes p = {0};
    const int64_t one[] = {1};
    bytes_text(&p, "\x80\x02}(");
    pickle_text(&p, "model");
    bytes_text(&p, "ccollections\nOrderedDict\n](]("); /* of a list of pairs, as Python 2 did */
    pickle_text(&p, "w");
    pickle_tensor(&p, "FloatStorage", "0", 24, 1, 1, one, one);
    bytes_text(&p, "e](K\x02");
    pickle_tensor(&p, "FloatStorage", "0", 24, 2, 1, one, one);
    bytes_text(&p, "ee\x85R");
    pickle_text(&p, "shadow");
    bytes_text(&p, "]");
    pickle_tensor(&p, "FloatStorage", "0", 24, 3, 1, one, one);
    bytes_text(&p, "a(");
    pickle_tensor(&p, "FloatStorage", "0", 24, 4, 1, one, one);
    bytes_text(&p, "ta");
    pickle_text(&p, "default");
    bytes_text(&p, "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R");
    pickle_text(&p, "x");
    pickle_tensor(&p, "FloatStorage", "0", 24, 5, 1, one, one);
    bytes_text(&p, "su.");
    psld_tensors *t = parse_pickle(&p);
    static const char *const names[] = {"model.w", "model.2", "shadow.0", "shadow.1.0", "default.x"};
    assert_int_equal(t->count, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(t->items[i].name, names[i]);
        assert_floats(&t->items[i], 1, numbers + i + 1);
    }
    psld_tensors_free(t);
}

/* Numbers become text, which an application's locale must not show in. */
static void notes_in_any_locale(void **state)
{
    (void)state;
    need_comma();
    bytes p = {0};
    bytes_text(&p,
               "(dp0\nS'w'\np1\nctorch._utils\n_rebuild_tensor\np2\n((S'storage'\nctorch.cuda\nFloatStorage\nV0\n"
               "S\"cuda:0\"\nL24L\ntp3\nQI2\n(I2\nI2\nt(I2\nI1\nttRp4\nsS'f'\nF0.1\nsS'g'\nF0.30000000000000004\ns.");
    with_comma();
    psld_tensors *t = parse_pickle(&p);
    without_comma();
    assert_string_equal(psld_tensors_note(t, "f"), "0.1");
    assert_string_equal(psld_tensors_note(t, "g"), "0.30000000000000004");
    psld_tensors_free(t);
}

/* What the oldest and the newest protocols have of their own. */
static void all_protocols(void **state)
{
    (void)state;
    static const char oldest[] =
        "(dp0\nS'w'\np1\nctorch._utils\n_rebuild_tensor\np2\n((S'storage'\nctorch.cuda\nFloatStorage\nV0\nS\"cuda:0\"\n"
        "L24L\ntp3\nQI2\n(I2\nI2\nt(I2\nI1\nttRp4\nsg1\n0S'i'\nI-5\nsS'l'\nL-123L\nsS'f'\nF1.5e3\nsS't'\nI01\nsS'n'"
        "\nNsS'e'\n"
        "V\\u00e9\nsS'p'\nPsome id\nsS'o'\n(imine\nThing\nsS'k'\n(cmine\nThing\nI1\nosS'd'\n(I1\nI2\nI3\n1I4\n20s"
        "S'big'\nL12345678901234567890123456789012345678901234567890123456789012345678901234567890L\nsS'y'\n(S'a'"
        "\nI1\ndsS'z'\n"
        "(lI1\nas.";
    bytes p = {0};
    bytes_put(&p, oldest, sizeof oldest - 1);
    psld_tensors *t = parse_pickle(&p);
    assert_int_equal(t->count, 1);
    assert_floats(psld_tensors_find(t, "w"), 4, (const float[]){2, 3, 4, 5});
    assert_string_equal(psld_tensors_note(t, "i"), "-5");
    assert_string_equal(psld_tensors_note(t, "l"), "-123");
    assert_string_equal(psld_tensors_note(t, "f"), "1500");
    assert_string_equal(psld_tensors_note(t, "t"), "true");
    assert_null(psld_tensors_note(t, "e"));
    psld_tensors_free(t);
    static const char newest[] = "\x80\x05\x95\x10\0\0\0\0\0\0\0}\x94(\x8c\x01w\x94\x8c\x0ctorch._utils\x94\x8c\x12_"
                                 "rebuild_tensor_v2\x94\x93\x94("
                                 "(\x8c\x07storage\x94\x8c\x05torch\x94\x8c\x0c"
                                 "FloatStorage\x94\x93\x94\x8c\x01"
                                 "0\x94\x8c\x03"
                                 "cpu\x94K\x18t\x94QJ\x01\0\0\0K\x02\x85\x94K\x01\x85\x94\x89)t\x94R\x94"
                                 "\x8d\x04\0\0\0\0\0\0\0same\x94h\x05"
                                 "0M\xff\xff\x8c\x03set\x8f(K\x01\x90\x8c\x06"
                                 "frozen(K\x01\x91\x8c\x01"
                                 "bC\x02xy\x8c\x02"
                                 "b4B\x01\0\0\0x\x8c\x02"
                                 "b8\x8e\x01\0\0\0\0\0\0\0x\x8c\x02"
                                 "ba\x96\x01\0\0\0\0\0\0\0x\x8c\x02"
                                 "ex\x8c\x04mine\x8c\x05Thing\x93)}\x92\x8c\x03"
                                 "big\x8b\x09\0\0\0\0\0\0\0\0\0\0\0\1\x8c\x03neg\x8a\x01\x80\x8c\x04zero\x8a\0\x8c\x01u"
                                 "T\x02\0\0\0uv\x8c\x01vU\x01v"
                                 "\x8c\x02t3K\x01K\x02K\x03\x87\x8c\x02t2K\x01K\x02\x86u.";
    bytes_put(&p, newest, sizeof newest - 1);
    t = parse_pickle(&p);
    assert_int_equal(t->count, 1);
    assert_floats(psld_tensors_find(t, "w"), 2, numbers + 1);
    assert_string_equal(psld_tensors_note(t, "same"), "65535");
    assert_string_equal(psld_tensors_note(t, "neg"), "-128");
    assert_string_equal(psld_tensors_note(t, "zero"), "0");
    assert_string_equal(psld_tensors_note(t, "u"), "uv");
    assert_string_equal(psld_tensors_note(t, "v"), "v");
    assert_int_equal(t->note_count, 5);
    psld_tensors_free(t);
}

/* ---- Hostile pickles --------------------------------------------------------------------------------------------- */

static void never_runs_anything(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "cos\nsystem\nU\x0ftouch was-there\x85R",
        "cposix\nsystem\nU\x0ftouch was-there\x85R",
        "(U\x0ftouch was-thereios\nsystem\n",
        "(cos\nsystem\nU\x0ftouch was-thereo",
        "cos\nsystem\nU\x0ftouch was-there\x85\x81",
        "U\x02os\x8c\x06system\x93U\x0ftouch was-there\x85R",
        "cbuiltins\neval\nU\x01x\x85R",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bytes p = one_tensor(0, 1, (const int64_t[]){2}, (const int64_t[]){1});
        p.size -= 2; /* "u." */
        pickle_text(&p, "evil");
        bytes_text(&p, calls[i]);
        bytes_text(&p, "u.");
        psld_tensors *t = parse_pickle(&p); /* as a value beside others it does not matter */
        assert_int_equal(t->count, 2);
        psld_tensors_free(t);
        assert_int_equal(access("was-there", F_OK), -1);
    }
    assert_pickle_refused("\x80\x02"
                          "cos\nsystem\nU\x0ftouch was-there\x85R.",
                          33,
                          "x.pt: byte 71: an object of os.system, which is not understood and never run here; expected "
                          "a dict of tensors, such as a state_dict");
    bytes p = {0};
    bytes_text(&p, "}");
    pickle_text(&p, "w");
    bytes_text(&p, "ctorch._utils\n_rebuild_tensor_v2\n(cos\nsystem\n)RK\x01)))tRs.");
    assert_pickle_refused(p.data, p.size, "x.pt: tensor w: made by os.system, which is not understood here");
    bytes_free(&p);
    bytes_text(&p, "}");
    pickle_text(&p, "w");
    bytes_text(&p, "cmine\nrebuild\n");
    pickle_storage(&p, "FloatStorage", "0", 24);
    bytes_text(&p, "\x85Rs.");
    assert_pickle_refused(p.data, p.size, "x.pt: tensor w: made by mine.rebuild, which is not understood here");
    bytes_free(&p);
    bytes_text(&p, "}");
    pickle_text(&p, "w");
    pickle_tensor(&p, "ComplexFloatStorage", "0", 24, 0, 0, NULL, NULL);
    bytes_text(&p, "s.");
    assert_pickle_refused(p.data, p.size,
                          "x.pt: tensor w: made by torch.ComplexFloatStorage, which is not understood here");
    bytes_free(&p);
    assert_int_equal(access("was-there", F_OK), -1);
}

static void broken_pickles(void **state)
{
    (void)state;
#define ROW(pickle, message)               \
    {                                      \
        pickle, sizeof pickle - 1, message \
    }
    static const struct {
        const char *pickle;
        size_t size;
        const char *message;
    } rows[] = {
        ROW("", "byte 40: the pickle is cut off"),
        ROW("}", "byte 41: the pickle is cut off"),
        ROW(".", "byte 40: an opcode without the values that it takes"),
        ROW("(.", "byte 41: an opcode without the values that it takes"),
        ROW("}}.", "byte 42: the pickle ends with values left on the stack"),
        ROW("\x80\x06}.", "byte 40: a pickle of an unknown protocol"),
        ROW("\xff.", "byte 40: 0xff is no opcode of a pickle that is known here"),
        ROW("\x82\x01.", "byte 40: 0x82 is no opcode of a pickle that is known here"),
        ROW("\x95\x40\0\0\0\0\0\0\0}.", "byte 40: the pickle is cut off: a frame reaches beyond its end"),
        ROW("M\x01", "byte 42: the pickle is cut off"),
        ROW("X\x05\0\0\0ab.", "byte 48: the pickle is cut off"),
        ROW("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "byte 50: the pickle is cut off"),
        ROW("I5", "byte 42: the pickle is cut off"),
        ROW("cos\nsystem", "byte 50: the pickle is cut off"),
        ROW("I5x\n.", "byte 40: expected an integer of 64 bits"),
        ROW("I99999999999999999999\n.", "byte 40: expected an integer of 64 bits"),
        ROW("Fabc\n.", "byte 40: expected a number"),
        ROW("F0000000000000000000000000000000000000000000000000000000000000000001\n.", "byte 40: expected a number"),
        ROW("S'a\n.", "byte 40: expected a text in quotes"),
        ROW("S\n.", "byte 40: expected a text in quotes"),
        ROW("0.", "byte 40: an opcode without the values that it takes"),
        ROW("1.", "byte 40: an opcode without the mark that it takes"),
        ROW("}t.", "byte 41: an opcode without the mark that it takes"),
        ROW("2.", "byte 40: an opcode without the values that it takes"),
        ROW("q\0.", "byte 40: an opcode without the values that it takes"),
        ROW("}r\xff\xff\xff\xff.", "byte 41: a number of the memo that is too large"),
        ROW("}r\0\x40\0\0.", "byte 41: a number of the memo that is too large"),
        ROW("}p99999999999999999999999\n.", "byte 41: a number of the memo that is too large"),
        ROW("}p-1\n.", "byte 41: expected a number of the memo"),
        ROW("}p\n.", "byte 41: expected a number of the memo"),
        ROW("h\x07.", "byte 40: nothing is in the memo under this number"),
        ROW("}q\x02h\x01.", "byte 43: nothing is in the memo under this number"),
        ROW("K\x01K\x01"
            "a.",
            "byte 44: adds to a value that is no container of the kind"),
        ROW("]K\x01K\x01s.", "byte 45: adds to a value that is no container of the kind"),
        ROW("}(K\x01u.", "byte 44: a key without a value"),
        ROW("(K\x01"
            "d.",
            "byte 43: a key without a value"),
        ROW("K\x01)R.", "byte 43: calls a value that is no global"),
        ROW("cmine\nx\nK\x01R.", "byte 50: calls a global with arguments that are no tuple"),
        ROW("c\nx\n.", "byte 40: the name of a global is empty or very long"),
        ROW("K\x01U\x01x\x93.", "byte 45: the name of a global is no text"),
        ROW("(o.", "byte 41: an opcode without the values that it takes"),
        ROW("\x85.", "byte 40: an opcode without the values that it takes"),
        ROW("s.", "byte 40: an opcode without the values that it takes"),
        ROW("b.", "byte 40: an opcode without the values that it takes"),
        ROW("Q.", "byte 40: an opcode without the values that it takes"),
        ROW("K\x01.", "byte 40: expected a dict of tensors, such as a state_dict"),
        ROW("ctorch\nSize\n)R.", "byte 52: torch.Size with arguments that make no sense"),
        ROW("ccollections\nOrderedDict\n]K\x01"
            "a\x85R.",
            "byte 69: collections.OrderedDict with arguments that make no sense"),
        ROW("ctorch._utils\n_rebuild_tensor\n)R.",
            "byte 70: torch._utils._rebuild_tensor with arguments that make no sense"),
        ROW("ctorch._utils\n_rebuild_tensor\n(NNNNtR.",
            "byte 75: torch._utils._rebuild_tensor with arguments that make no sense"),
        ROW("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)tR.",
            "byte 117: torch._tensor._rebuild_from_type_v2 with arguments that make no sense"),
        ROW("(U\x07storageNNNNtQ.", "byte 54: a reference to a storage that is not valid"),
        ROW("(U\x07storagectorch\nFloatStorage\nU\x01"
            "0NK\x18(NK\x10K\x10ttQ.",
            "byte 83: a reference to a part that the storage does not have"),
        ROW("}U\x03"
            "a\0b}s.",
            "byte 41: a name with a 0 byte in it"),
    };
#undef ROW
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char message[256];
        snprintf(message, sizeof message, "x.pt: %s", rows[i].message);
        assert_pickle_refused(rows[i].pickle, rows[i].size, message);
    }
}

static void deep_and_circular(void **state)
{
    (void)state;
    bytes p = {0};
    bytes_text(&p, "}q\x01"); /* a dict within itself */
    pickle_text(&p, "a");
    bytes_text(&p, "h\x01s.");
    assert_pickle_refused(p.data, p.size, "x.pt: byte 40: values nested too deep, or within themselves");
    bytes_free(&p);
    bytes_text(&p, "}U\x01x");
    for (int i = 0; i < 100000; i++) bytes_text(&p, "]");
    for (int i = 0; i < 99999; i++) bytes_text(&p, "a");
    bytes_text(&p, "s.");
    assert_pickle_refused(p.data, p.size, "x.pt: byte 75: values nested too deep, or within themselves");
    bytes_free(&p);
    /* Every list has the one before it a hundred times: few bytes, many ways through. */
    bytes_text(&p, "}U\x01x]q\x01");
    for (int i = 0; i < 10; i++) {
        bytes_text(&p, "0](");
        for (int j = 0; j < 100; j++) bytes_text(&p, "h\x01");
        bytes_text(&p, "eq\x01");
    }
    bytes_text(&p, "s.");
    assert_pickle_refused(p.data, p.size, "x.pt: byte 48: too many values");
    bytes_free(&p);
    for (int i = 0; i < 4200000; i++) bytes_text(&p, "(");
    assert_pickle_refused(p.data, p.size, "x.pt: byte 4194344: too many values on the stack");
    bytes_free(&p);
    /* One list of a million pairs, made into a dict again and again. */
    bytes_text(&p, "ccollections\nOrderedDict\n0](");
    bytes_text(&p, "K\x01K\x01\x86q\x02");
    for (int i = 0; i < 100000; i++) bytes_text(&p, "h\x02");
    bytes_text(&p, "e\x85q\x03");
    for (int i = 0; i < 10000; i++) bytes_text(&p, "ccollections\nOrderedDict\nh\x03R");
    bytes file = make_zip(&p, 0);
    psld_tensors *t = NULL;
    assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": a pickle that needs more memory than one of its size may"));
    bytes_free(&file);
    bytes_free(&p);
}

static void names_that_cannot_be(void **state)
{
    (void)state;
    char name[1200];
    bytes p = {0};
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    bytes_text(&p, "}");
    pickle_text(&p, name);
    bytes_text(&p, "}s.");
    assert_pickle_refused(p.data, p.size, "x.pt: byte 41: a name that is very long");
    bytes_free(&p);
    bytes_text(&p, "}(");
    for (int i = 0; i < 2; i++) {
        pickle_text(&p, "w");
        pickle_tensor(&p, "FloatStorage", "0", 24, 0, 0, NULL, NULL);
    }
    bytes_text(&p, "u.");
    assert_pickle_refused(p.data, p.size, "x.pt: two tensors have the name w");
    bytes_free(&p);
}

/* ---- Broken containers ------------------------------------------------------------------------------------------- */

static void storages_that_are_not_there(void **state)
{
    (void)state;
    static const struct {
        const char *type, *key;
        int64_t count;
        const char *message;
    } rows[] = {
        {"FloatStorage", "7", 24, "x.pt: tensor w: its storage data/7 is not in the archive"},
        {"FloatStorage", "", 24, "x.pt: tensor w: its storage data/ is not in the archive"},
        {"FloatStorage", "0", 23, "x.pt: tensor w: its storage data/0 has 96 bytes, expected 23 elements of float32"},
        {"HalfStorage", "0", 24, "x.pt: tensor w: its storage data/0 has 96 bytes, expected 24 elements of float16"},
        {"DoubleStorage", "0", INT64_MAX,
         "x.pt: tensor w: its storage data/0 has 96 bytes, expected 9223372036854775807 elements of float64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bytes p = {0};
        bytes_text(&p, "}");
        pickle_text(&p, "w");
        pickle_tensor(&p, rows[i].type, rows[i].key, rows[i].count, 0, 0, NULL, NULL);
        bytes_text(&p, "s.");
        assert_pickle_refused(p.data, p.size, rows[i].message);
        bytes_free(&p);
    }
    char key[400];
    bytes p = {0};
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    bytes_text(&p, "}");
    pickle_text(&p, "w");
    pickle_tensor(&p, "FloatStorage", key, 24, 0, 0, NULL, NULL);
    bytes_text(&p, "s.");
    bytes file = make_zip(&p, 0);
    psld_tensors *t = NULL;
    assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "kkk is not in the archive"));
    bytes_free(&file);
    bytes_free(&p);
}

static void archives_that_are_no_checkpoint(void **state)
{
    (void)state;
    archive a = {0};
    bytes file = zip_end(&a);
    assert_refused(&file, "x.pt: a zip archive, but no PyTorch checkpoint: it has no data.pkl");
    bytes_free(&file);
    zip_add(&a, "readme.txt", "hello", 5, 0, -1);
    file = zip_end(&a);
    assert_refused(&file, "x.pt: a zip archive, but no PyTorch checkpoint: it has no data.pkl");
    bytes_free(&file);
    zip_add(&a, "m/data.pkl", "}.", 2, 0, -1);
    zip_add(&a, "m/byteorder", "big", 3, 0, -1);
    file = zip_end(&a);
    assert_refused(&file, "x.pt: a checkpoint that is not little-endian");
    bytes_free(&file);
    zip_add(&a, "data.pkl", "}}.", 3, ZIP_DEFLATE, -1); /* no folder, and a place within what was unpacked */
    file = zip_end(&a);
    assert_refused(&file, "x.pt: data.pkl: byte 2: the pickle ends with values left on the stack");
    bytes_free(&file);
    char *folder = malloc(2000);
    memset(folder, 'f', 2000);
    memcpy(folder + 1990, "/data.pkl", 10);
    zip_add(&a, folder, "}.", 2, 0, -1);
    file = zip_end(&a);
    assert_refused(&file, "x.pt: a zip archive, but no PyTorch checkpoint: it has no data.pkl");
    bytes_free(&file);
    free(folder);
}

static void broken_zip(void **state)
{
    (void)state;
    /* "m/data.pkl" and "m/data/0": local headers at 0 and 42, directory at 84 with entries of 56 and 54 bytes, end at
     * 194. */
    static const struct {
        size_t at;
        int width;
        uint64_t value;
        const char *message;
    } rows[] = {
        {42, 4, 0x05034b50, "x.pt: byte 42: expected a zip entry"},
        {8, 2, 8, "x.pt: byte 0: a zip entry that differs from the directory"},
        {26, 2, 9, "x.pt: byte 0: a zip entry that differs from the directory"},
        {26, 2, 0xffff, "x.pt: byte 0: a zip entry that differs from the directory"},
        {28, 2, 0xffff, "x.pt: byte 0: a zip entry that differs from the directory"},
        {30, 1, 'n', "x.pt: byte 0: a zip entry that differs from the directory"},
        {28, 2, 10, "x.pt: m/data/0: overlaps another zip entry"},
        {84, 4, 0, "x.pt: byte 84: expected an entry of the zip directory"},
        {84 + 8, 2, 1, "x.pt: byte 84: an encrypted zip entry"},
        {84 + 10, 2, 12, "x.pt: byte 84: a zip entry neither stored nor deflated"},
        {84 + 20, 4, 1, "x.pt: byte 84: a zip entry with sizes that cannot be"},
        {84 + 24, 4, 3, "x.pt: byte 84: a zip entry with sizes that cannot be"},
        {84 + 20, 4, 1000, "x.pt: byte 84: a zip entry that reaches into the directory"},
        {84 + 20, 4, 0xffffffff, "x.pt: byte 84: a zip entry that reaches into the directory"},
        {84 + 28, 2, 0, "x.pt: byte 84: a zip entry without a usable name"},
        {84 + 28, 2, 0xffff, "x.pt: byte 84: an entry of the zip directory that is cut off"},
        {84 + 30, 2, 54, "x.pt: byte 140: a zip extra field that is cut off"},
        {84 + 32, 2, 54, "x.pt: byte 194: expected an entry of the zip directory"},
        {84 + 42, 4, 84, "x.pt: byte 84: a zip entry that begins beyond the directory"},
        {84 + 42, 4, 0xffffffff, "x.pt: byte 84: a zip entry that begins beyond the directory"},
        {84 + 46, 1, 0, "x.pt: byte 84: a zip entry without a usable name"},
        {194 + 4, 2, 1, "x.pt: byte 194: an archive of several parts"},
        {194 + 8, 2, 1, "x.pt: byte 194: an archive of several parts"},
        {194 + 8, 4, 0x00010001, "x.pt: byte 140: bytes in the zip directory that belong to no entry"},
        {194 + 8, 4, 0x00080008, "x.pt: byte 194: more entries than the zip directory has room for"},
        {194 + 12, 4, 109, "x.pt: byte 194: the zip directory is not where the archive's end says"},
        {194 + 16, 4, 0xffffffff, "x.pt: byte 194: the zip directory is not where the archive's end says"},
        {194 + 20, 2, 1, "x.pt: a zip archive without its end: the file is cut off"},
        {40, 1, '{', "x.pt: m/data.pkl: the checksum does not fit the data: the file is damaged"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive a = {0};
        zip_add(&a, "m/data.pkl", "}.", 2, 0, -1);
        zip_add(&a, "m/data/0", "abcd", 4, 0, -1);
        bytes file = zip_end(&a);
        assert_int_equal(file.size, 216);
        for (int j = 0; j < rows[i].width; j++)
            file.data[rows[i].at + (size_t)j] = (unsigned char)(rows[i].value >> 8 * j);
        assert_refused(&file, rows[i].message);
        bytes_free(&file);
    }
    archive a = {0};
    zip_add(&a, "m/data.pkl", "}.", 2, 0, -1);
    zip_add(&a, "m/data.pkl", "}.", 2, 0, -1);
    bytes file = zip_end(&a);
    assert_refused(&file, "x.pt: m/data.pkl: stands twice");
    bytes_free(&file);
}

static void compressed_bombs(void **state)
{
    (void)state;
    char *zeros = calloc(1 << 20, 1);
    static const struct {
        int64_t claim;
        const char *message;
    } rows[] = {
        {100, "x.pt: m/data.pkl: the compressed data are damaged, or not of the size that they claim"},
        {0, "x.pt: m/data.pkl: the compressed data are damaged, or not of the size that they claim"},
        {(1 << 20) + 1, "x.pt: m/data.pkl: the compressed data are damaged, or not of the size that they claim"},
        {0xfffffffe, ": a zip entry with sizes that cannot be"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive a = {0};
        zip_add(&a, "m/data.pkl", zeros, 1 << 20, ZIP_DEFLATE, rows[i].claim);
        bytes file = zip_end(&a);
        psld_tensors *t = NULL;
        assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
        assert_non_null(strstr(psld_error_text(), rows[i].message));
        bytes_free(&file);
    }
    free(zeros);
    /* Two gigabytes of honest zeros in two megabytes are more than they may be. */
    psld_zip_entry big = {.name = "big", .name_length = 3, .size = (size_t)1 << 31};
    psld_zip zip = {.budget = (size_t)1 << 30};
    assert_int_equal(psld_zip_spend(&zip, &big, big.size), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "big: 2147483648 bytes are more than a file of this size may unpack to");
    assert_int_equal(psld_zip_spend(&zip, &big, (size_t)1 << 30), PSLD_OK);
    assert_int_equal(psld_zip_spend(&zip, &big, 1), PSLD_BAD_INPUT);
}

static void broken_legacy(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to; /* of the same length */
        const char *message;
    } rows[] = {
        {"M\xe9\x03.", "M\xe8\x03.", "byte 17: expected 1001, the protocol of a PyTorch checkpoint"},
        {"little_endian\x88", "little_endian\x89", "byte 23: a checkpoint that does not say that it is little-endian"},
        {"little_endian\x88", "little_endiam\x88", "byte 23: a checkpoint that does not say that it is little-endian"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "](U\x01"
         "0U\x01"
         "0e.",
         "the key of a storage stands twice"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "](U\x01"
         "0U\x01"
         "2e.",
         "a storage that is not in the file"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "](U\x01"
         "0K\x01K\x01.",
         "the pickle ends with values left on the stack"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "N0N0(U\x01"
         "0t.",
         "expected the list of storages"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "](U\x01"
         "0M\x01\x01"
         "e.",
         "the key of a storage is no text"},
        {"](U\x01"
         "0U\x01"
         "1e.",
         "](U\x01"
         "1U\x01"
         "0e.",
         "a storage of 24 elements, expected 8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bytes p = one_tensor(0, 1, (const int64_t[]){2}, (const int64_t[]){1});
        bytes file = make_legacy(&p);
        size_t length = strlen(rows[i].from), done = 0;
        for (size_t at = 0; at + length <= file.size; at++) {
            if (memcmp(file.data + at, rows[i].from, length) != 0) continue;
            memcpy(file.data + at, rows[i].to, length);
            done++;
        }
        assert_int_equal(done, 1);
        psld_tensors *t = NULL;
        assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
        if (!strstr(psld_error_text(), rows[i].message))
            fail_msg("%s, expected %s", psld_error_text(), rows[i].message);
        bytes_free(&file);
        bytes_free(&p);
    }
}

/* One storage under two types, one that nobody uses, parts of storages, bytes left over. */
static void odd_legacy(void **state)
{
    (void)state;
    bytes p = {0};
    bytes_text(&p, "}(");
    pickle_text(&p, "a");
    pickle_tensor(&p, "FloatStorage", "0", 24, 0, 0, NULL, NULL);
    pickle_text(&p, "b");
    pickle_tensor(&p, "IntStorage", "0", 24, 0, 0, NULL, NULL);
    bytes_text(&p, "u.");
    bytes file = make_legacy(&p);
    psld_tensors *t = NULL;
    assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": a storage with two types or sizes"));
    bytes_free(&file);
    bytes_free(&p);
    bytes_text(&p, "}.");
    file = make_legacy(&p);
    assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": a storage that no tensor refers to"));
    bytes_free(&file);
    bytes_free(&p);
    /* ('storage', type, key, device, count, (key, first, number)) */
    bytes_text(&p, "}(");
    pickle_text(&p, "a");
    bytes_text(&p, "ctorch._utils\n_rebuild_tensor\n(");
    pickle_storage(&p, "FloatStorage", "0", 24);
    p.size -= 2; /* "tQ" */
    bytes_text(&p, "(U\x01vK\x04K\x03ttQK\x01K\x02\x85K\x01\x85tR");
    pickle_text(&p, "b");
    bytes_text(&p, "ctorch._utils\n_rebuild_tensor\n(");
    pickle_storage(&p, "CharStorage", "1", 8);
    p.size -= 2;
    bytes_text(&p, "NtQ");
    pickle_integer(&p, 0);
    bytes_text(&p, "))tRu.");
    file = make_legacy(&p);
    t = parse(&file);
    assert_floats(psld_tensors_find(t, "a"), 2, numbers + 5);
    assert_int_equal(psld_tensors_find(t, "b")->rank, 0);
    psld_tensors_free(t);
    bytes_put(&file, "x", 1);
    t = NULL;
    assert_int_equal(psld_tensors_parse(file.data, file.size, "x.pt", &t), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": bytes behind the last storage"));
    bytes_free(&file);
    bytes_free(&p);
}

/* Cut at any length: an error of one line, whatever the container. */
static void cut_anywhere(void **state)
{
    (void)state;
    bytes p = one_tensor(0, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2});
    bytes files[] = {make_zip(&p, 0), make_zip(&p, ZIP_DEFLATE), make_legacy(&p)};
    for (int i = 0; i < 3; i++) {
        for (size_t size = 0; size < files[i].size; size++) {
            psld_tensors *t = NULL;
            bytes b = {0};
            bytes_put(&b, files[i].data, size);
            assert_int_equal(psld_tensors_parse(b.data, size, "x.pt", &t), PSLD_BAD_INPUT);
            assert_memory_equal(psld_error_text(), "x.pt: ", 6);
            assert_null(strchr(psld_error_text(), '\n'));
            assert_null(t);
            bytes_free(&b);
        }
        bytes_free(&files[i]);
    }
    bytes_free(&p);
}

/* Every bit turned, with and without checksums: no crash, and with checksums nothing but the dead bytes of the headers
 * can change without notice. */
static void every_bit_flipped(void **state)
{
    (void)state;
    bytes p = one_tensor(0, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2});
    bytes files[] = {make_zip(&p, 0), make_zip(&p, ZIP_NO_CRC), make_zip(&p, ZIP_DEFLATE), make_legacy(&p)};
    for (int i = 0; i < 4; i++) {
        size_t accepted = 0;
        for (size_t bit = 0; bit < files[i].size * 8; bit++) {
            psld_tensors *t = NULL;
            files[i].data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            psld_status status = psld_tensors_parse(files[i].data, files[i].size, "x.pt", &t);
            assert_true(status == PSLD_OK || status == PSLD_BAD_INPUT);
            if (status == PSLD_OK) {
                for (size_t j = 0; j < t->count; j++) {
                    float found[32];
                    if (t->items[j].count <= 32) psld_tensor_to_f32(&t->items[j], found);
                }
                accepted += psld_tensors_verify(t) == PSLD_OK;
            }
            psld_tensors_free(t);
            files[i].data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        assert_true(accepted < files[i].size * 8);
        bytes_free(&files[i]);
    }
    bytes_free(&p);
}

static void verify_finds_damage(void **state)
{
    (void)state;
    bytes p = one_tensor(0, 1, (const int64_t[]){24}, (const int64_t[]){1});
    bytes file = make_zip(&p, 0);
    size_t at = 0;
    while (memcmp(file.data + at, numbers, sizeof numbers) != 0) at++;
    file.data[at + 50] ^= 4;
    psld_tensors *t = NULL;
    psld_status status = psld_tensors_parse(file.data, file.size, "x.pt", &t);
    if (status == PSLD_OK) status = psld_tensors_verify(t); /* unaligned storages are copied, and checked at once */
    assert_int_equal(status, PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "the checksum does not fit the data: the file is damaged"));
    assert_non_null(strstr(psld_error_text(), "tensor w: "));
    psld_tensors_free(t);
    bytes_free(&file);
    bytes_free(&p);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static psld_tensors *all_types(void)
{
    static const double values[4] = {1, -2.5, 0.1, 3e300};
    psld_tensors *t = NULL;
    char name[32];
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    for (int i = 0; i < PSLD_ELEMENT_COUNT; i++) {
        snprintf(name, sizeof name, "layer.%d", i);
        assert_int_equal(psld_tensors_add(t, name, (psld_element)i, i % 4, (const size_t[]){1, 4, 1}, values), PSLD_OK);
    }
    assert_int_equal(psld_tensors_add(t, "empty", PSLD_ELEMENT_F32, 2, (const size_t[]){0, 4}, values), PSLD_OK);
    return t;
}

static void writes_and_reads(void **state)
{
    (void)state;
    for (int notes = 0; notes < 2; notes++) {
        psld_tensors *t = all_types(), *again = NULL;
        if (notes) assert_int_equal(psld_tensors_set_note(t, "config", "a: 1\n"), PSLD_OK);
        assert_int_equal(psld_tensors_save(t, PSLD_TORCH_ZIP, "out.pt"), PSLD_OK);
        assert_int_equal(psld_tensors_open("out.pt", &again), PSLD_OK);
        assert_int_equal(again->format, PSLD_TORCH_ZIP);
        assert_int_equal(again->count, t->count);
        for (size_t i = 0; i < t->count; i++) {
            const psld_tensor *x = &t->items[i], *y = &again->items[i];
            assert_string_equal(x->name, y->name);
            assert_int_equal(x->type, y->type);
            assert_int_equal(x->rank, y->rank);
            assert_memory_equal(x->shape, y->shape, sizeof x->shape);
            if (x->bytes) assert_memory_equal(x->data, y->data, x->bytes);
            if (x->bytes) assert_int_equal((uintptr_t)y->data % 64, 0);
        }
        assert_int_equal(again->own->block_count, 0); /* nothing was copied */
        assert_int_equal(psld_tensors_verify(again), PSLD_OK);
        assert_int_equal(again->note_count, notes);
        if (notes) assert_string_equal(psld_tensors_note(again, "config"), "a: 1\n");
        psld_tensors_free(again);
        psld_tensors_free(t);
    }
    psld_tensors *t = NULL;
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_TORCH_ZIP, "out.pt"), PSLD_OK);
    psld_tensors_free(t);
    assert_int_equal(psld_tensors_open("out.pt", &t), PSLD_OK);
    assert_int_equal(t->count, 0);
    psld_tensors_free(t);
}

/* A shape with sizes beyond 31 bits, which only an empty tensor has room for here. */
static void writes_large_sizes(void **state)
{
    (void)state;
    psld_tensors *t = NULL;
    const size_t shape[] = {0, (size_t)5 << 32, 2};
    assert_int_equal(psld_tensors_create(&t), PSLD_OK);
    assert_int_equal(psld_tensors_add(t, "w", PSLD_ELEMENT_F32, 3, shape, numbers), PSLD_OK);
    assert_int_equal(psld_tensors_save(t, PSLD_TORCH_ZIP, "large.pt"), PSLD_OK);
    psld_tensors_free(t);
    assert_int_equal(psld_tensors_open("large.pt", &t), PSLD_OK);
    assert_memory_equal(t->items[0].shape, shape, sizeof shape);
    psld_tensors_free(t);
}

/* 64-bit sizes and offsets, from 100 bytes on instead of from 4 GB on. */
static void zip64(void **state)
{
    (void)state;
    psld_writer *writer = NULL;
    psld_zip_writer *zip = NULL;
    char data[300];
    memset(data, 'z', sizeof data);
    assert_int_equal(psld_writer_open("wide.zip", &writer), PSLD_OK);
    assert_int_equal(psld_zip_writer_create(writer, &zip), PSLD_OK);
    psld_zip_writer_limit(zip, 100);
    assert_int_equal(psld_zip_put(zip, "small", "ab", 2, "cd", 2), PSLD_OK);
    assert_int_equal(psld_zip_put(zip, "large", data, sizeof data, NULL, 0), PSLD_OK);
    assert_int_equal(psld_zip_put(zip, "last", NULL, 0, data, 1), PSLD_OK);
    assert_int_equal(psld_zip_put(zip, "", NULL, 0, data, 1), PSLD_BAD_ARGUMENT);
    psld_zip_finish(zip);
    psld_zip_writer_free(zip);
    psld_zip_writer_free(NULL);
    assert_int_equal(psld_writer_commit(writer), PSLD_OK);
    char *file = NULL, found[300];
    size_t size = 0;
    assert_int_equal(psld_file_read("wide.zip", 1 << 20, &file, &size), PSLD_OK);
    psld_zip *read = NULL;
    assert_int_equal(psld_zip_open(file, size, "wide.zip", &read), PSLD_OK);
    assert_int_equal(read->count, 3);
    const psld_zip_entry *large = psld_zip_find(read, "large", 5);
    assert_int_equal(large->size, 300);
    assert_int_equal((large->data - (unsigned char *)file) % 64, 0);
    assert_int_equal(psld_zip_extract(large, found), PSLD_OK);
    assert_memory_equal(found, data, 300);
    assert_int_equal(psld_zip_extract(psld_zip_find(read, "small", 5), found), PSLD_OK);
    assert_memory_equal(found, "abcd", 4);
    assert_null(psld_zip_find(read, "smal", 4));
    psld_zip_free(read);
    psld_zip_free(NULL);
    /* Each byte of the end records, and of what stands before them, is one that matters or is looked at safely. */
    for (size_t at = size - 400; at < size; at++)
        for (int bit = 0; bit < 8; bit++) {
            file[at] = (char)(file[at] ^ 1 << bit);
            psld_status status = psld_zip_open(file, size, "wide.zip", &read);
            assert_true(status == PSLD_OK || status == PSLD_BAD_INPUT);
            psld_zip_free(read);
            file[at] = (char)(file[at] ^ 1 << bit);
        }
    psld_release(file);
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status write_and_read(void)
{
    psld_tensors *t = NULL, *read = NULL;
    psld_status status = psld_tensors_create(&t);
    if (status == PSLD_OK) status = psld_tensors_add(t, "w", PSLD_ELEMENT_F32, 1, (const size_t[]){24}, numbers);
    if (status == PSLD_OK) status = psld_tensors_set_note(t, "k", "v");
    if (status == PSLD_OK) status = psld_tensors_save(t, PSLD_TORCH_ZIP, "memory.pt");
    if (status == PSLD_OK) status = psld_tensors_open("memory.pt", &read);
    psld_tensors_free(read);
    psld_tensors_free(t);
    return status;
}

static psld_status read_bytes(int kind)
{
    bytes p = one_tensor(0, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2});
    bytes file = kind == 2 ? make_legacy(&p) : make_zip(&p, kind);
    psld_tensors *t = NULL;
    psld_status status = psld_tensors_parse(file.data, file.size, "x.pt", &t);
    if (status != PSLD_OK) assert_memory_equal(psld_error_text(), "x.pt: ", 6);
    psld_tensors_free(t);
    bytes_free(&file);
    bytes_free(&p);
    return status;
}

static psld_status read_stored(void)
{
    return read_bytes(0);
}

static psld_status read_deflated(void)
{
    return read_bytes(ZIP_DEFLATE);
}

static psld_status read_legacy(void)
{
    return read_bytes(2);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psld_status (*const calls[])(void) = {write_and_read, read_stored, read_deflated, read_legacy};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) starve(calls[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_checkpoints),
        cmocka_unit_test(a_real_legacy_file),
        cmocka_unit_test(types_of_storages),
        cmocka_unit_test(views),
        cmocka_unit_test(views_out_of_range),
        cmocka_unit_test(shared_storages),
        cmocka_unit_test(lightning_checkpoints),
        cmocka_unit_test(nested_dicts_and_lists),
        cmocka_unit_test(all_protocols),
        cmocka_unit_test(notes_in_any_locale),
        cmocka_unit_test(never_runs_anything),
        cmocka_unit_test(broken_pickles),
        cmocka_unit_test(deep_and_circular),
        cmocka_unit_test(names_that_cannot_be),
        cmocka_unit_test(storages_that_are_not_there),
        cmocka_unit_test(archives_that_are_no_checkpoint),
        cmocka_unit_test(broken_zip),
        cmocka_unit_test(compressed_bombs),
        cmocka_unit_test(broken_legacy),
        cmocka_unit_test(odd_legacy),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(verify_finds_damage),
        cmocka_unit_test(writes_and_reads),
        cmocka_unit_test(writes_large_sizes),
        cmocka_unit_test(zip64),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
