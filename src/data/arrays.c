/* .npy and .npz: u8 images [n, h, w], [n, h, w, c] or [n, c, h, w], or float numbers [n, ...], where the shape of an
 * item follows n. Items of a .npy file are read when they are needed, so the file may be larger than memory; a .npz is
 * kept in memory. Its labels are in an array of that name. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "data/kinds.h"
#include "data/raw.h"
#include "io/tensors/npy.h"
#include "io/tensors/npz.h"

enum { MAX_CLASSES = 1 << 20 };

/* The elements of an array and their owner. */
typedef struct owner {
    psld_map map;      /* of the file, or of the array's elements */
    psld_array *array; /* or NULL */
} owner;

typedef struct numbers {
    psld_items items;
    owner owner;
    size_t first; /* where in the map the elements begin */
    psld_type type;
    size_t dim;
    int32_t *label; /* or NULL */
} numbers;

static void free_owner(owner *o)
{
    psld_map_close(&o->map);
    psld_array_free(o->array);
    o->array = NULL;
}

/* The offset of an array's elements in their owner. */
static size_t array_offset(const psld_array *a, const owner *o)
{
    return (size_t)((const unsigned char *)a->data - o->map.bytes);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* Converts float64 in pieces. */
static psld_status read_wide(const psld_map *map, size_t offset, size_t count, float *x)
{
    enum { PIECE = 256 };
    double wide[PIECE];
    for (size_t done = 0; done < count; done += PIECE) {
        size_t n = count - done < PIECE ? count - done : PIECE;
        PSLD_TRY(psld_map_read(map, offset + done * sizeof *wide, n * sizeof *wide, wide));
        for (size_t i = 0; i < n; i++) x[done + i] = (float)wide[i];
    }
    return PSLD_OK;
}

static psld_status get_numbers(const psld_items *items, uint64_t index, float *x)
{
    const numbers *set = (const numbers *)items;
    size_t offset = set->first + (size_t)index * set->dim * psld_type_size(set->type);
    if (set->type == PSLD_F64)
        PSLD_TRY(read_wide(&set->owner.map, offset, set->dim, x));
    else
        PSLD_TRY(psld_map_read(&set->owner.map, offset, set->dim * sizeof *x, x));
    for (size_t i = 0; i < set->dim; i++)
        if (!isfinite(x[i]))
            return psld_fail(PSLD_BAD_INPUT, "number %zu of item %llu is not finite", i, (unsigned long long)index);
    return PSLD_OK;
}

static int32_t get_label(const psld_items *items, uint64_t index)
{
    const numbers *set = (const numbers *)items;
    return set->label ? set->label[index] : -1;
}

static void free_numbers(psld_items *items)
{
    numbers *set = (numbers *)items;
    free_owner(&set->owner);
    psld_release(set->label);
    psld_release(set);
}

static const psld_items_ops number_ops = {.numbers = get_numbers, .label = get_label, .free = free_numbers};

static psld_status open_numbers(const psld_array *a, owner *o, psld_items **items)
{
    numbers *set = psld_items_create(&number_ops, sizeof *set);
    if (!set) return PSLD_NO_MEMORY;
    set->first = array_offset(a, o);
    set->type = a->type;
    set->dim = 1;
    set->items.count = a->shape[0];
    set->items.rank = a->rank > 1 ? a->rank - 1 : 1;
    set->items.shape[0] = 1;
    for (int i = 1; i < a->rank; i++) set->dim *= set->items.shape[i - 1] = a->shape[i];
    set->owner = *o;
    psld_map_unmap(&set->owner.map);
    *o = (owner){0};
    *items = &set->items;
    return psld_items_set_kind(*items, "array of numbers");
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

static int is_channels(size_t size)
{
    return size == 1 || size == 3;
}

static psld_status open_images(const psld_array *a, const char *path, owner *o, psld_items **items)
{
    const size_t *s = a->shape;
    psld_raw *raw = NULL;
    if (a->rank == 3)
        PSLD_TRY(psld_raw_create(s[2], s[1], 1, 1, &raw));
    else if (a->rank == 4 && is_channels(s[3]))
        PSLD_TRY(psld_raw_create(s[2], s[1], (int)s[3], 0, &raw));
    else if (a->rank == 4 && is_channels(s[1]))
        PSLD_TRY(psld_raw_create(s[3], s[2], (int)s[1], 1, &raw));
    else
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: u8 of rank %d, expected images [n, height, width], [n, height, width, "
                         "channels] or [n, channels, height, width] with 1 or 3 channels",
                         path, a->rank);
    const psld_raw_part part = {
        .bytes = o->map, .array = o->array, .first = array_offset(a, o), .stride = a->count / s[0], .count = s[0]};
    *items = &raw->items;
    PSLD_TRY(psld_raw_add(raw, &part));
    *o = (owner){0};
    psld_raw_unmap(raw);
    return psld_items_set_kind(*items, "array of images");
}

/* ---- Labels ------------------------------------------------------------------------------------------------------ */

static int64_t integer_at(const psld_array *a, size_t i)
{
    return a->type == PSLD_U8    ? ((const uint8_t *)a->data)[i]
           : a->type == PSLD_I32 ? ((const int32_t *)a->data)[i]
                                 : ((const int64_t *)a->data)[i];
}

static psld_status read_labels(const psld_array *a, const char *path, const char *name, int32_t *label, size_t *classes)
{
    *classes = 0;
    for (size_t i = 0; i < a->count; i++) {
        int64_t value = integer_at(a, i);
        if (value >= MAX_CLASSES)
            return psld_fail(PSLD_BAD_INPUT, "%s: %s: label %lld, expected less than %d", path, name, (long long)value,
                             MAX_CLASSES);
        label[i] = value < 0 ? -1 : (int32_t)value;
        if (value >= 0 && (size_t)value >= *classes) *classes = (size_t)value + 1;
    }
    return PSLD_OK;
}

static psld_status add_labels(psld_items *items, const psld_array *a, const char *path, const char *name)
{
    size_t classes = 0;
    if (a->type == PSLD_F32 || a->type == PSLD_F64 || a->rank < 1 || a->count != items->count)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: expected %zu whole numbers, one for each item", path, name,
                         (size_t)items->count);
    int32_t **label = items->ops == &number_ops ? &((numbers *)items)->label : &((psld_raw *)items)->label;
    *label = psld_alloc(a->count, sizeof **label);
    if (!*label) return PSLD_NO_MEMORY;
    PSLD_TRY(read_labels(a, path, name, *label, &classes));
    return psld_items_number_classes(items, classes);
}

/* `class_names`, as psld data writes it: u8 [classes, longest], one name per row, ended by 0. If the array has another
 * form or fewer names than there are labels, classes are named by their numbers. */
static psld_status add_class_names(psld_items *items, const psld_array *a)
{
    if (a->type != PSLD_U8 || a->rank != 2 || a->shape[0] < items->class_count || a->shape[0] > MAX_CLASSES)
        return PSLD_OK;
    for (size_t i = 0; i < items->class_count; i++) psld_release(items->classes[i]);
    items->class_count = 0;
    for (size_t i = 0; i < a->shape[0]; i++) {
        const char *name = (const char *)a->data + i * a->shape[1];
        PSLD_TRY(psld_items_add_class(items, name, strnlen(name, a->shape[1])));
    }
    return PSLD_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Owns the array or file from then on, on success. */
static psld_status open_array(const psld_array *a, const char *path, owner *o, psld_items **items)
{
    if (o->array) o->map = (psld_map){.bytes = a->data, .size = a->count * psld_type_size(a->type)};
    if (a->rank == 0 || a->count == 0) return psld_fail(PSLD_BAD_INPUT, "%s: the array has no items", path);
    psld_status status =
        a->type == PSLD_U8 ? open_images(a, path, o, items)
        : a->type == PSLD_F32 || a->type == PSLD_F64
            ? open_numbers(a, o, items)
            : psld_fail(PSLD_BAD_INPUT, "%s: has whole numbers, expected u8 images or float numbers", path);
    if (status == PSLD_OK) return PSLD_OK;
    psld_items_free(*items);
    *items = NULL;
    return status;
}

psld_status psld_npy_set_open(const char *path, const psld_data_options *options, psld_items **items)
{
    owner o = {0};
    psld_array view = {0};
    int fortran = 0;
    (void)options;
    *items = NULL;
    PSLD_TRY(psld_map_open_file(path, &o.map));
    psld_status status = psld_npy_view(o.map.bytes, o.map.size, path, &view, &fortran);
    if (status == PSLD_OK && fortran) { /* stored by columns: they need a copy in rows */
        psld_map_close(&o.map);
        status = psld_array_load(path, &o.array);
        if (status == PSLD_OK) view = *o.array;
    }
    if (status == PSLD_OK) status = open_array(&view, path, &o, items);
    free_owner(&o);
    return status;
}

/* The first of these names that the file has, or NULL. */
static const char *find_name(const psld_npz *npz, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < psld_npz_size(npz); i++)
            if (strcmp(psld_npz_name(npz, i), *names) == 0) return *names;
    return NULL;
}

static psld_status read_npz(psld_npz *npz, const char *path, int test, psld_items **items)
{
    static const char *const data_names[2][9] = {
        {"images", "x", "X", "data", "x_train", "train_images", "samples", "arr_0", NULL},
        {"test_images", "x_test", "images_test", "images", "x", "X", "data", "arr_0", NULL}};
    static const char *const label_names[2][8] = {
        {"labels", "label", "y", "y_train", "train_labels", "arr_1", NULL},
        {"test_labels", "y_test", "labels_test", "labels", "y", "arr_1", NULL}};
    const char *name = find_name(npz, data_names[test]), *labels = find_name(npz, label_names[test]);
    if (!name && psld_npz_size(npz) == 1) name = psld_npz_name(npz, 0);
    owner o = {0};
    psld_array *label = NULL, *names = NULL;
    psld_status status = psld_npz_read(npz, name ? name : "images", &o.array);
    if (status == PSLD_OK) status = open_array(o.array, path, &o, items);
    if (status == PSLD_OK && labels) status = psld_npz_read(npz, labels, &label);
    if (status == PSLD_OK && labels) status = add_labels(*items, label, path, labels);
    static const char *const class_names[] = {"class_names", NULL};
    if (status == PSLD_OK && labels && find_name(npz, class_names)) {
        status = psld_npz_read(npz, class_names[0], &names);
        if (status == PSLD_OK) status = add_class_names(*items, names);
    }
    psld_array_free(names);
    psld_array_free(label);
    free_owner(&o);
    return status;
}

psld_status psld_npz_set_open(const char *path, const psld_data_options *options, psld_items **items)
{
    psld_npz *npz = NULL;
    *items = NULL;
    PSLD_TRY(psld_npz_open(path, &npz));
    psld_status status = read_npz(npz, path, options->test ? 1 : 0, items);
    psld_npz_free(npz);
    if (status != PSLD_OK) {
        psld_items_free(*items);
        *items = NULL;
    }
    return status;
}
