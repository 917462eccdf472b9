/* Invariants of a list of tensors
 *   1. items[i].data is aligned to its elements, never NULL, and lies in the mapped file, in a block of the list, or
 *      (added by a caller) in memory that the caller keeps.
 *   2. items[i].count and .bytes follow from type and shape; products of any of its sizes do not overflow.
 *   3. by_name is NULL or holds all items by strictly rising name. Adding an item removes it. */
#include "io/tensors/tensors_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "base/half.h"

static const struct {
    const char *name;
    size_t size;
} elements[PSLD_ELEMENT_COUNT] = {
    [PSLD_ELEMENT_F16] = {"float16", 2}, [PSLD_ELEMENT_BF16] = {"bfloat16", 2}, [PSLD_ELEMENT_F32] = {"float32", 4},
    [PSLD_ELEMENT_F64] = {"float64", 8}, [PSLD_ELEMENT_U8] = {"uint8", 1},      [PSLD_ELEMENT_I8] = {"int8", 1},
    [PSLD_ELEMENT_I16] = {"int16", 2},   [PSLD_ELEMENT_I32] = {"int32", 4},     [PSLD_ELEMENT_I64] = {"int64", 8},
    [PSLD_ELEMENT_BOOL] = {"bool", 1},
};

size_t psld_element_size(psld_element type)
{
    return (unsigned)type < PSLD_ELEMENT_COUNT ? elements[type].size : 0;
}

const char *psld_element_name(psld_element type)
{
    return (unsigned)type < PSLD_ELEMENT_COUNT ? elements[type].name : "";
}

int psld_element_count(psld_element type, int rank, const size_t *shape, size_t *count, size_t *bytes)
{
    size_t product = psld_element_size(type);
    int empty = 0;
    if (product == 0 || rank < 0 || rank > PSLD_MAX_RANK) return 0;
    /* Sizes of 0 are left out, so the products of any of the sizes are safe. */
    for (int i = 0; i < rank; i++) {
        if (shape[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(product, shape[i], &product))
            return 0;
    }
    if (product > PTRDIFF_MAX) return 0;
    *bytes = empty ? 0 : product;
    *count = *bytes / psld_element_size(type);
    return 1;
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

psld_status psld_tensors_create(psld_tensors **tensors)
{
    *tensors = NULL;
    psld_tensors *t = psld_alloc(1, sizeof *t);
    if (t) t->own = psld_alloc(1, sizeof *t->own);
    if (!t || !t->own) {
        psld_release(t);
        return PSLD_NO_MEMORY;
    }
    *tensors = t;
    return PSLD_OK;
}

void psld_tensors_free(psld_tensors *tensors)
{
    if (!tensors) return;
    struct psld_tensors_private *own = tensors->own;
    for (size_t i = 0; i < tensors->count; i++) psld_release(tensors->items[i].name);
    for (size_t i = 0; i < tensors->note_count; i++) {
        psld_release(tensors->notes[i].key);
        psld_release(tensors->notes[i].value);
    }
    for (size_t i = 0; i < own->block_count; i++) psld_release(own->blocks[i]);
    psld_release(own->blocks);
    psld_release(own->checksums);
    psld_release(own->by_name);
    psld_release(own->path);
    psld_map_close(&own->map);
    psld_release(own);
    psld_release(tensors->items);
    psld_release(tensors->notes);
    psld_release(tensors);
}

psld_status psld_tensors_add(psld_tensors *tensors, const char *name, psld_element type, int rank, const size_t *shape,
                             const void *data)
{
    size_t count = 0, bytes = 0;
    if (!psld_element_count(type, rank, shape, &count, &bytes))
        return psld_fail(PSLD_BAD_ARGUMENT, "tensor %.*s: its type, rank or sizes are out of range", PSLD_NAME_SHOWN,
                         name);
    assert(data && (uintptr_t)data % psld_element_size(type) == 0);
    void *items = tensors->items;
    PSLD_TRY(psld_grow(&items, &tensors->own->capacity, tensors->count + 1, sizeof *tensors->items));
    tensors->items = items;
    char *copy = psld_copy_text(name);
    if (!copy) return PSLD_NO_MEMORY;
    psld_tensor *t = &tensors->items[tensors->count++];
    *t = (psld_tensor){.name = copy, .type = type, .rank = rank, .count = count, .bytes = bytes, .data = data};
    if (rank > 0) memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
    psld_release(tensors->own->by_name);
    tensors->own->by_name = NULL;
    return PSLD_OK;
}

void psld_tensors_pop(psld_tensors *tensors, psld_tensor *last)
{
    *last = tensors->items[--tensors->count];
    psld_release(last->name);
    last->name = NULL;
    psld_release(tensors->own->by_name);
    tensors->own->by_name = NULL;
}

static psld_note *find_note(const psld_tensors *tensors, const char *key)
{
    for (size_t i = 0; i < tensors->note_count; i++)
        if (strcmp(tensors->notes[i].key, key) == 0) return &tensors->notes[i];
    return NULL;
}

const char *psld_tensors_note(const psld_tensors *tensors, const char *key)
{
    const psld_note *note = find_note(tensors, key);
    return note ? note->value : NULL;
}

psld_status psld_tensors_add_note(psld_tensors *tensors, const char *key, const char *value)
{
    void *notes = tensors->notes;
    PSLD_TRY(psld_grow(&notes, &tensors->own->note_capacity, tensors->note_count + 1, sizeof *tensors->notes));
    tensors->notes = notes;
    psld_note note = {.key = psld_copy_text(key), .value = psld_copy_text(value)};
    if (!note.key || !note.value) {
        psld_release(note.key);
        psld_release(note.value);
        return PSLD_NO_MEMORY;
    }
    tensors->notes[tensors->note_count++] = note;
    return PSLD_OK;
}

psld_status psld_tensors_set_note(psld_tensors *tensors, const char *key, const char *value)
{
    psld_note *note = find_note(tensors, key);
    if (!note) return psld_tensors_add_note(tensors, key, value);
    char *copy = psld_copy_text(value);
    if (!copy) return PSLD_NO_MEMORY;
    psld_release(note->value);
    note->value = copy;
    return PSLD_OK;
}

psld_status psld_tensors_block(psld_tensors *tensors, size_t size, void **block)
{
    struct psld_tensors_private *own = tensors->own;
    void *blocks = own->blocks;
    PSLD_TRY(psld_grow(&blocks, &own->block_capacity, own->block_count + 1, sizeof *own->blocks));
    own->blocks = blocks;
    *block = psld_alloc(size, 1);
    if (!*block) return PSLD_NO_MEMORY;
    own->blocks[own->block_count++] = *block;
    return PSLD_OK;
}

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

static int compare_tensor_names(const void *a, const void *b)
{
    const psld_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

psld_status psld_tensors_index(psld_tensors *tensors)
{
    psld_tensor **sorted = psld_alloc(tensors->count, sizeof(psld_tensor *));
    if (!sorted) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < tensors->count; i++) sorted[i] = &tensors->items[i];
    qsort(sorted, tensors->count, sizeof(psld_tensor *), compare_tensor_names);
    for (size_t i = 1; i < tensors->count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) != 0) continue;
        psld_fail(PSLD_BAD_INPUT, "two tensors have the name %.*s", PSLD_NAME_SHOWN, sorted[i]->name);
        psld_release(sorted);
        return PSLD_BAD_INPUT;
    }
    psld_release(tensors->own->by_name);
    tensors->own->by_name = sorted;
    return PSLD_OK;
}

static const psld_tensor *find_sorted(const psld_tensors *tensors, const char *name)
{
    size_t low = 0, high = tensors->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const psld_tensor *t = tensors->own->by_name[middle];
        int order = strcmp(name, t->name);
        if (order == 0) return t;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const psld_tensor *psld_tensors_find(const psld_tensors *tensors, const char *name)
{
    if (tensors->own->by_name) return find_sorted(tensors, name);
    for (size_t i = 0; i < tensors->count; i++)
        if (strcmp(tensors->items[i].name, name) == 0) return &tensors->items[i];
    return NULL;
}

/* Copies the tensors and notes with the prefix into `to`. */
static psld_status select_into(const psld_tensors *from, const char *prefix, psld_tensors *to)
{
    size_t length = strlen(prefix);
    to->format = from->format;
    for (size_t i = 0; i < from->note_count; i++)
        PSLD_TRY(psld_tensors_add_note(to, from->notes[i].key, from->notes[i].value));
    for (size_t i = 0; i < from->count; i++) {
        const psld_tensor *t = &from->items[i];
        if (strncmp(t->name, prefix, length) != 0) continue;
        PSLD_TRY(psld_tensors_add(to, t->name + length, t->type, t->rank, t->shape, t->data));
    }
    return psld_tensors_index(to);
}

psld_status psld_tensors_select(const psld_tensors *from, const char *prefix, psld_tensors **selected)
{
    psld_tensors *to = NULL;
    *selected = NULL;
    PSLD_TRY(psld_tensors_create(&to));
    psld_status status = select_into(from, prefix, to);
    if (status != PSLD_OK) {
        psld_tensors_free(to);
        return status;
    }
    *selected = to;
    return PSLD_OK;
}

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

void psld_tensor_to_f32(const psld_tensor *tensor, float *to)
{
    const void *from = tensor->data;
    size_t n = tensor->count;
    switch (tensor->type) {
    case PSLD_ELEMENT_F16:
        for (size_t i = 0; i < n; i++) to[i] = psld_half_value(((const uint16_t *)from)[i]);
        break;
    case PSLD_ELEMENT_BF16:
        for (size_t i = 0; i < n; i++) to[i] = psld_bf16_value(((const uint16_t *)from)[i]);
        break;
    case PSLD_ELEMENT_F32:
        if (n) memcpy(to, from, tensor->bytes);
        break;
    case PSLD_ELEMENT_F64:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const double *)from)[i];
        break;
    case PSLD_ELEMENT_I8:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const int8_t *)from)[i];
        break;
    case PSLD_ELEMENT_I16:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const int16_t *)from)[i];
        break;
    case PSLD_ELEMENT_I32:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const int32_t *)from)[i];
        break;
    case PSLD_ELEMENT_I64:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const int64_t *)from)[i];
        break;
    case PSLD_ELEMENT_U8:
        for (size_t i = 0; i < n; i++) to[i] = (float)((const uint8_t *)from)[i];
        break;
    case PSLD_ELEMENT_BOOL: /* a hostile file may have other bytes than 0 and 1 */
        for (size_t i = 0; i < n; i++) to[i] = ((const uint8_t *)from)[i] != 0;
        break;
    case PSLD_ELEMENT_COUNT:
        assert(0);
    }
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static psld_status read_into(psld_tensors *t, const unsigned char *bytes, size_t size, const char *path)
{
    t->own->path = psld_copy_text(path);
    if (!t->own->path) return PSLD_NO_MEMORY;
    /* All four bytes are compared: a safetensors header of 19280 bytes begins with the first two. */
    int zip = size >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
    int legacy = !zip && psld_torch_is_legacy(bytes, size);
    int persistent = !zip && !legacy && psld_persistent_is(bytes, size);
    t->format = zip ? PSLD_TORCH_ZIP : legacy ? PSLD_TORCH_LEGACY : persistent ? PSLD_PERSISTENT : PSLD_SAFETENSORS;
    if (zip) PSLD_TRY(psld_torch_zip_read(bytes, size, path, t));
    if (legacy) PSLD_TRY(psld_torch_legacy_read(bytes, size, path, t));
    if (persistent) PSLD_TRY(psld_persistent_read(bytes, size, path, t));
    if (t->format == PSLD_SAFETENSORS) PSLD_TRY(psld_safetensors_read(bytes, size, path, t));
    psld_status status = psld_tensors_index(t);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", path) : status;
}

psld_status psld_tensors_parse(const void *bytes, size_t size, const char *name, psld_tensors **tensors)
{
    psld_tensors *t = NULL;
    *tensors = NULL;
    psld_status status = psld_tensors_create(&t);
    if (status == PSLD_OK) status = read_into(t, bytes, size, name);
    if (status == PSLD_OK) {
        *tensors = t;
        return PSLD_OK;
    }
    psld_tensors_free(t);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", name) : status;
}

psld_status psld_tensors_open(const char *path, psld_tensors **tensors)
{
    psld_map map;
    *tensors = NULL;
    PSLD_TRY(psld_map_open(path, &map));
    psld_status status = psld_tensors_parse(map.bytes, map.size, path, tensors);
    if (status == PSLD_OK)
        (*tensors)->own->map = map;
    else
        psld_map_close(&map);
    return status;
}

psld_status psld_tensors_checksum(psld_tensors *tensors, const psld_checksum *checksum)
{
    struct psld_tensors_private *own = tensors->own;
    void *checksums = own->checksums;
    PSLD_TRY(psld_grow(&checksums, &own->checksum_capacity, own->checksum_count + 1, sizeof *checksum));
    own->checksums = checksums;
    own->checksums[own->checksum_count++] = *checksum;
    return PSLD_OK;
}

psld_status psld_tensors_verify(const psld_tensors *tensors)
{
    for (size_t i = 0; i < tensors->own->checksum_count; i++) {
        const psld_checksum *c = &tensors->own->checksums[i];
        if (crc32_z(0, c->data, c->size) == c->crc) continue;
        return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: the checksum does not fit the data: the file is damaged",
                         tensors->own->path, PSLD_NAME_SHOWN, tensors->items[c->tensor].name);
    }
    return PSLD_OK;
}

void psld_tensors_expect(const psld_tensors *tensors, int scattered)
{
    psld_map_expect(&tensors->own->map, scattered);
}

/* Two tensors of one name would make a file that cannot be read. */
static psld_status check_names(const psld_tensors *tensors, const char *path)
{
    psld_tensors copy = *tensors;
    struct psld_tensors_private own = {0};
    copy.own = &own;
    psld_status status = psld_tensors_index(&copy);
    psld_release(own.by_name);
    return status == PSLD_OK ? PSLD_OK
                             : psld_fail_in(status == PSLD_BAD_INPUT ? PSLD_BAD_ARGUMENT : status, "%s", path);
}

psld_status psld_tensors_save(const psld_tensors *tensors, psld_tensor_format format, const char *path)
{
    psld_writer *writer = NULL;
    if (format != PSLD_SAFETENSORS && format != PSLD_TORCH_ZIP)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: tensors are not written in this format", path);
    PSLD_TRY(check_names(tensors, path));
    PSLD_TRY(psld_writer_open(path, &writer));
    psld_status status = format == PSLD_SAFETENSORS ? psld_safetensors_write(tensors, path, writer)
                                                    : psld_torch_write(tensors, path, writer);
    if (status == PSLD_OK) return psld_writer_commit(writer);
    psld_writer_abort(writer);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", path) : status;
}
