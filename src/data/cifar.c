/* CIFAR-10 and CIFAR-100, binary or pickled, as in the Python archives. Images are 32 x 32, planar; a binary record is
 * one or two bytes of label (CIFAR-100: coarse, then fine; the last is used) and the 3072 pixels. A folder or archive
 * of such files is the training set, or the test set if the options ask for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/kinds.h"
#include "data/raw.h"
#include "io/tensors/pickle_numpy.h"

enum { SIDE = 32, CHANNELS = 3, PIXELS = SIDE * SIDE * CHANNELS, ORIGIN_SIZE = 1024, LARGEST_META = 1 << 20 };

typedef struct variant variant;

/* Adds the images and labels of one file. Owns its bytes on success. */
typedef psld_status (*part_fn)(const variant *v, psld_raw *raw, psld_map *bytes, const char *origin);
/* Adds the names of classes. */
typedef psld_status (*meta_fn)(const variant *v, psld_raw *raw, const psld_map *bytes, const char *origin);

struct variant {
    const char *kind;
    const char *train[2], *test; /* how names of files begin and end; the test set's name */
    const char *needs;           /* another file that must be there, since names like "train" are ambiguous; or NULL */
    const char *meta;            /* the file of names */
    size_t classes;
    size_t label_bytes;               /* binary */
    const char *label_key, *name_key; /* pickled */
    part_fn add_part;
    meta_fn add_names;
};

/* ---- Binary ------------------------------------------------------------------------------------------------------ */

/* Labels of the `count` images that were added last. */
static psld_status set_label(const variant *v, int32_t *label, int64_t value, size_t i, const char *origin)
{
    if (value < 0 || (uint64_t)value >= v->classes)
        return psld_fail(PSLD_BAD_INPUT, "%s: image %zu has label %lld, expected 0 to %zu", origin, i, (long long)value,
                         v->classes - 1);
    *label = (int32_t)value;
    return PSLD_OK;
}

static psld_status add_binary(const variant *v, psld_raw *raw, psld_map *bytes, const char *origin)
{
    size_t record = v->label_bytes + PIXELS, count = bytes->size / record, before = (size_t)raw->items.count;
    if (count == 0 || bytes->size % record != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: %zu bytes, expected a multiple of %zu (%s)", origin, bytes->size, record,
                         v->kind);
    const unsigned char *first = bytes->bytes;
    const psld_raw_part part = {.bytes = *bytes, .first = v->label_bytes, .stride = record, .count = count};
    PSLD_TRY(psld_raw_add(raw, &part));
    *bytes = (psld_map){0};
    int32_t *label = psld_raw_labels(raw);
    if (!label) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        PSLD_TRY(set_label(v, &label[before + i], first[i * record + v->label_bytes - 1], i, origin));
    return PSLD_OK;
}

/* One name a line. */
static psld_status add_lines(const variant *v, psld_raw *raw, const psld_map *bytes, const char *origin)
{
    const char *at = (const char *)bytes->bytes, *end = at + bytes->size;
    (void)origin;
    while (at < end && raw->items.class_count < v->classes) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        size_t length = (size_t)(stop - at);
        if (length > 0 && at[length - 1] == '\r') length--;
        if (length > 0) PSLD_TRY(psld_items_add_class(&raw->items, at, length));
        at = stop < end ? stop + 1 : end;
    }
    return PSLD_OK;
}

/* ---- Pickled ----------------------------------------------------------------------------------------------------- */

static psld_status load_pickle(const psld_map *bytes, const char *origin, psld_pickle **pickle, psld_value **value)
{
    size_t used = 0;
    PSLD_TRY(psld_pickle_create(&psld_numpy_rules, NULL, pickle));
    return psld_pickle_load(*pickle, origin, bytes->bytes, bytes->size, 0, value, &used);
}

static psld_status add_pickled_labels(const variant *v, psld_raw *raw, const psld_value *dict, size_t count,
                                      const char *origin)
{
    const psld_value *list = psld_value_get(dict, v->label_key);
    size_t before = (size_t)raw->items.count - count;
    if (!list || list->kind != PSLD_VALUE_LIST || list->size != count)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected a list of %zu numbers under \"%s\" (%s)", origin, count,
                         v->label_key, v->kind);
    int32_t *label = psld_raw_labels(raw);
    if (!label) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const psld_value *item = list->items[i];
        int64_t value = item->kind == PSLD_VALUE_INTEGER ? item->integer : -1;
        PSLD_TRY(set_label(v, &label[before + i], value, i, origin));
    }
    return PSLD_OK;
}

/* The pixels are not copied: they stay in the bytes of the file. */
static psld_status add_dict(const variant *v, psld_raw *raw, psld_map *bytes, const psld_value *dict,
                            const char *origin)
{
    const psld_numpy *a = psld_value_numpy(psld_value_get(dict, "data"));
    if (!a || strcmp(a->type, "u1") != 0 || a->rank != 2 || a->shape[1] != PIXELS || a->shape[0] == 0 || a->fortran)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected an array of u8 [n, %d] under \"data\" (%s)", origin, PIXELS,
                         v->kind);
    size_t count = a->shape[0], first = (size_t)((const unsigned char *)a->bytes - bytes->bytes);
    const psld_raw_part part = {.bytes = *bytes, .first = first, .stride = PIXELS, .count = count};
    PSLD_TRY(psld_raw_add(raw, &part));
    *bytes = (psld_map){0};
    return add_pickled_labels(v, raw, dict, count, origin);
}

static psld_status add_pickled(const variant *v, psld_raw *raw, psld_map *bytes, const char *origin)
{
    psld_pickle *pickle = NULL;
    psld_value *dict = NULL;
    psld_status status = load_pickle(bytes, origin, &pickle, &dict);
    if (status == PSLD_OK) status = add_dict(v, raw, bytes, dict, origin);
    psld_pickle_free(pickle);
    return status;
}

static psld_status add_pickled_names(const variant *v, psld_raw *raw, const psld_map *bytes, const char *origin)
{
    psld_pickle *pickle = NULL;
    psld_value *dict = NULL;
    psld_status status = load_pickle(bytes, origin, &pickle, &dict);
    const psld_value *list = status == PSLD_OK ? psld_value_get(dict, v->name_key) : NULL;
    size_t count = list && list->kind == PSLD_VALUE_LIST && list->size == v->classes ? list->size : 0;
    for (size_t i = 0; i < count && status == PSLD_OK; i++)
        if (list->items[i]->kind == PSLD_VALUE_TEXT)
            status = psld_items_add_class(&raw->items, list->items[i]->text, list->items[i]->length);
    psld_pickle_free(pickle);
    return status;
}

/* ---- The variants ------------------------------------------------------------------------------------------------ */

static const variant variants[] = {
    {.kind = "CIFAR-10",
     .train = {"data_batch_", ".bin"},
     .test = "test_batch.bin",
     .meta = "batches.meta.txt",
     .classes = 10,
     .label_bytes = 1,
     .add_part = add_binary,
     .add_names = add_lines},
    {.kind = "CIFAR-10",
     .train = {"data_batch_", ""},
     .test = "test_batch",
     .meta = "batches.meta",
     .classes = 10,
     .label_key = "labels",
     .name_key = "label_names",
     .add_part = add_pickled,
     .add_names = add_pickled_names},
    {.kind = "CIFAR-100",
     .train = {"train", ".bin"},
     .test = "test.bin",
     .needs = "fine_label_names.txt",
     .meta = "fine_label_names.txt",
     .classes = 100,
     .label_bytes = 2,
     .add_part = add_binary,
     .add_names = add_lines},
    {.kind = "CIFAR-100",
     .train = {"train", ""},
     .test = "test",
     .needs = "meta",
     .meta = "meta",
     .classes = 100,
     .label_key = "fine_labels",
     .name_key = "fine_label_names",
     .add_part = add_pickled,
     .add_names = add_pickled_names},
};

enum { VARIANT_COUNT = sizeof variants / sizeof *variants };

static const char *const names_of_10[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                          "dog",      "frog",       "horse", "ship", "truck"};

/* Names for classes that no file names. */
static psld_status name_classes(psld_raw *raw, const variant *v)
{
    psld_items *items = &raw->items;
    if (items->class_count == v->classes) return PSLD_OK;
    while (items->class_count > 0) psld_release(items->classes[--items->class_count]);
    if (v->classes != 10) return psld_items_number_classes(items, v->classes);
    for (size_t i = 0; i < v->classes; i++)
        PSLD_TRY(psld_items_add_class(items, names_of_10[i], strlen(names_of_10[i])));
    return PSLD_OK;
}

/* ---- One file ---------------------------------------------------------------------------------------------------- */

static psld_status open_file(const variant *v, const char *path, psld_items **items)
{
    psld_raw *raw = NULL;
    psld_map bytes;
    PSLD_TRY(psld_map_open_file(path, &bytes));
    psld_status status = psld_raw_create(SIDE, SIDE, CHANNELS, 1, &raw);
    if (status == PSLD_OK) status = v->add_part(v, raw, &bytes, path);
    if (status == PSLD_OK) status = name_classes(raw, v);
    if (status == PSLD_OK) status = psld_items_set_kind(&raw->items, "%s images", v->kind);
    psld_map_close(&bytes);
    if (status != PSLD_OK) {
        if (raw) psld_items_free(&raw->items);
        return status;
    }
    psld_raw_unmap(raw);
    *items = &raw->items;
    return PSLD_OK;
}

/* A single file is recognised by its length if it is binary, and by its keys if it is pickled. */
psld_status psld_cifar_open(const char *path, const psld_data_options *options, psld_items **items)
{
    size_t length = strlen(path);
    int is_binary = length > 4 && strcmp(path + length - 4, ".bin") == 0;
    psld_status status = PSLD_BAD_INPUT;
    (void)options;
    *items = NULL;
    for (size_t i = 0; i < VARIANT_COUNT && status == PSLD_BAD_INPUT; i++)
        if ((variants[i].add_part == add_binary) == is_binary) status = open_file(&variants[i], path, items);
    if (status != PSLD_BAD_INPUT) return status;
    return psld_fail_in(status, "not a %s file of CIFAR-10 or CIFAR-100", is_binary ? "binary" : "pickled");
}

/* ---- Folders and archives ---------------------------------------------------------------------------------------- */

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int is_part(const variant *v, const char *name, int test)
{
    size_t length = strlen(name), begin = strlen(v->train[0]), end = strlen(v->train[1]);
    if (test) return strcmp(name, v->test) == 0;
    if (length < begin + end || strncmp(name, v->train[0], begin) != 0) return 0;
    if (strcmp(name + length - end, v->train[1]) != 0) return 0;
    /* "data_batch_1": between beginning and end is a number, or nothing ("train"). */
    return strspn(name + begin, "0123456789") == length - begin - end;
}

/* Index of the first file of this name in any folder, or -1. */
static ptrdiff_t find_base(const psld_files *files, const char *name)
{
    for (size_t i = 0; i < psld_files_count(files); i++)
        if (strcmp(base_name(psld_files_name(files, i)), name) == 0) return (ptrdiff_t)i;
    return -1;
}

static const variant *find_variant(const psld_files *files)
{
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        const variant *v = &variants[i];
        if (v->needs && find_base(files, v->needs) < 0) continue;
        for (size_t j = 0; j < psld_files_count(files); j++) {
            const char *name = base_name(psld_files_name(files, j));
            if (is_part(v, name, 0) || is_part(v, name, 1)) return v;
        }
    }
    return NULL;
}

int psld_cifar_files_are(const psld_files *files)
{
    return find_variant(files) != NULL;
}

static psld_status add_parts(const variant *v, psld_raw *raw, const psld_files *files, int test)
{
    char origin[ORIGIN_SIZE];
    for (size_t i = 0; i < psld_files_count(files); i++) {
        psld_map bytes = {0};
        if (!is_part(v, base_name(psld_files_name(files, i)), test)) continue;
        psld_file_origin(files, i, origin, sizeof origin);
        psld_status status = psld_files_view(files, i, &bytes);
        if (status == PSLD_OK) status = v->add_part(v, raw, &bytes, origin);
        psld_map_close(&bytes);
        if (status != PSLD_OK) return status;
    }
    if (raw->items.count > 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: %s without its %s part", psld_files_path(files), v->kind,
                     test ? "test" : "training");
}

static psld_status add_names(const variant *v, psld_raw *raw, const psld_files *files)
{
    char origin[ORIGIN_SIZE];
    psld_map bytes = {0};
    ptrdiff_t at = find_base(files, v->meta);
    if (at < 0) return PSLD_OK;
    psld_file_origin(files, (size_t)at, origin, sizeof origin);
    psld_status status = psld_files_read(files, (size_t)at, &bytes);
    if (status == PSLD_OK && bytes.size <= LARGEST_META) status = v->add_names(v, raw, &bytes, origin);
    psld_map_close(&bytes);
    return status;
}

psld_status psld_cifar_files_open(psld_files *files, const psld_data_options *options, psld_items **items)
{
    const variant *v = find_variant(files);
    psld_raw *raw = NULL;
    PSLD_TRY(psld_raw_create(SIDE, SIDE, CHANNELS, 1, &raw));
    psld_status status = add_parts(v, raw, files, options->test);
    if (status == PSLD_OK) status = add_names(v, raw, files);
    if (status == PSLD_OK) status = name_classes(raw, v);
    if (status == PSLD_OK)
        status = psld_items_set_kind(&raw->items, "%s images in a %s", v->kind, psld_files_kind(files));
    if (status != PSLD_OK) {
        psld_items_free(&raw->items);
        return status;
    }
    raw->files = files;
    psld_raw_unmap(raw);
    *items = &raw->items;
    return PSLD_OK;
}
