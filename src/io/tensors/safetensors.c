/* safetensors: 8 bytes, the length N of the header; N bytes of JSON; the data.
 *
 *     {"name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "value"}}
 *
 * Offsets count from the end of the header. The header is checked as a whole before any of it is used:
 *   1. it lies in the file and is JSON without repeated keys;
 *   2. every tensor has a known type, a shape that can be counted, and a range of exactly its bytes;
 *   3. the ranges, put in order, touch each other and fill the data from first to last byte: no overlap, no hole. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/tensors/tensors_private.h"

enum {
    LENGTH_SIZE = 8,
    MAX_HEADER = 1 << 24,
    ALIGNMENT = 64, /* alignment of the data that we write; all elements are aligned if large ones come first */
    LARGEST_ELEMENT = 8,
};

#define METADATA "__metadata__"

static const char *const type_names[PSLD_ELEMENT_COUNT] = {
    [PSLD_ELEMENT_F16] = "F16", [PSLD_ELEMENT_BF16] = "BF16", [PSLD_ELEMENT_F32] = "F32", [PSLD_ELEMENT_F64] = "F64",
    [PSLD_ELEMENT_U8] = "U8",   [PSLD_ELEMENT_I8] = "I8",     [PSLD_ELEMENT_I16] = "I16", [PSLD_ELEMENT_I32] = "I32",
    [PSLD_ELEMENT_I64] = "I64", [PSLD_ELEMENT_BOOL] = "BOOL",
};

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* The entry of one tensor in the header. */
typedef struct entry {
    const char *name; /* borrowed from the JSON */
    psld_element type;
    int rank;
    size_t shape[PSLD_MAX_RANK];
    size_t begin, end;
} entry;

static psld_status fail_tensor(const char *path, const char *name, const char *what)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: %s", path, PSLD_NAME_SHOWN, name, what);
}

static psld_status load_header(const unsigned char *bytes, size_t size, const char *path, json_t **header,
                               size_t *data_begin)
{
    uint64_t length = 0;
    if (size < LENGTH_SIZE + 1 || bytes[LENGTH_SIZE] != '{')
        return psld_fail(PSLD_BAD_INPUT, "%s: neither a safetensors file nor a PyTorch checkpoint", path);
    for (int i = 0; i < LENGTH_SIZE; i++) length |= (uint64_t)bytes[i] << 8 * i;
    if (length > MAX_HEADER)
        return psld_fail(PSLD_BAD_INPUT, "%s: safetensors header of %" PRIu64 " bytes, expected at most %d", path,
                         length, MAX_HEADER);
    if (length > size - LENGTH_SIZE)
        return psld_fail(PSLD_BAD_INPUT, "%s: the file ends within the safetensors header: %zu bytes of %" PRIu64, path,
                         size - LENGTH_SIZE, length);
    json_error_t error;
    *header = json_loadb((const char *)bytes + LENGTH_SIZE, length, JSON_REJECT_DUPLICATES, &error);
    if (!*header && json_error_code(&error) == json_error_out_of_memory)
        return psld_fail(PSLD_NO_MEMORY, "out of memory");
    if (!*header)
        return psld_fail(PSLD_BAD_INPUT, "%s: byte %zu: bad safetensors header: %s", path,
                         LENGTH_SIZE + (size_t)(error.position > 0 ? error.position : 0), error.text);
    *data_begin = LENGTH_SIZE + length;
    return PSLD_OK;
}

/* A whole number that is not negative. */
static int json_get_size(const json_t *value, size_t *size)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return 0;
    *size = (size_t)json_integer_value(value);
    return 1;
}

static psld_status safetensors_parse_type(const json_t *value, const char *path, entry *e)
{
    const char *name = json_string_value(value);
    if (!name) return fail_tensor(path, e->name, "expected \"dtype\" to be a text");
    for (int i = 0; i < PSLD_ELEMENT_COUNT; i++) {
        e->type = (psld_element)i;
        if (strcmp(name, type_names[i]) == 0) return PSLD_OK;
    }
    return psld_fail(
        PSLD_BAD_INPUT,
        "%s: tensor %.*s: elements of type %.20s, expected F16, BF16, F32, F64, U8, I8, I16, I32, I64 or BOOL", path,
        PSLD_NAME_SHOWN, e->name, name);
}

static psld_status safetensors_parse_shape(const json_t *value, const char *path, entry *e)
{
    if (!json_is_array(value)) return fail_tensor(path, e->name, "expected \"shape\" to be a list");
    if (json_array_size(value) > PSLD_MAX_RANK)
        return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: more than %d dimensions", path, PSLD_NAME_SHOWN, e->name,
                         PSLD_MAX_RANK);
    e->rank = (int)json_array_size(value);
    for (int i = 0; i < e->rank; i++)
        if (!json_get_size(json_array_get(value, (size_t)i), &e->shape[i]))
            return fail_tensor(path, e->name, "a size in its shape is not a whole number of 0 or more");
    return PSLD_OK;
}

static psld_status parse_entry(const char *name, const json_t *value, size_t data_size, const char *path, entry *e)
{
    size_t count = 0, bytes = 0;
    e->name = name;
    if (!json_is_object(value)) return fail_tensor(path, name, "expected an object with dtype, shape and data_offsets");
    const json_t *offsets = json_object_get(value, "data_offsets");
    PSLD_TRY(safetensors_parse_type(json_object_get(value, "dtype"), path, e));
    PSLD_TRY(safetensors_parse_shape(json_object_get(value, "shape"), path, e));
    if (json_array_size(offsets) != 2 || !json_get_size(json_array_get(offsets, 0), &e->begin) ||
        !json_get_size(json_array_get(offsets, 1), &e->end))
        return fail_tensor(path, name, "expected \"data_offsets\" to be a list of two whole numbers of 0 or more");
    if (json_object_size(value) != 3) return fail_tensor(path, name, "keys other than dtype, shape and data_offsets");
    if (!psld_element_count(e->type, e->rank, e->shape, &count, &bytes))
        return fail_tensor(path, name, "its sizes are too large");
    if (e->begin > e->end || e->end > data_size)
        return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: bytes %zu to %zu, of %zu that the file has", path,
                         PSLD_NAME_SHOWN, name, e->begin, e->end, data_size);
    if (e->end - e->begin != bytes)
        return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: %zu bytes of data, expected %zu for its type and shape",
                         path, PSLD_NAME_SHOWN, name, e->end - e->begin, bytes);
    return PSLD_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Invariant 3. */
static psld_status check_ranges(const entry *entries, size_t count, size_t data_size, const char *path)
{
    const entry **sorted = psld_alloc(count, sizeof *sorted);
    if (!sorted) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) sorted[i] = &entries[i];
    qsort(sorted, count, sizeof *sorted, compare_ranges);
    size_t end = 0;
    psld_status status = PSLD_OK;
    for (size_t i = 0; i < count && status == PSLD_OK; end = sorted[i++]->end)
        if (sorted[i]->begin != end)
            status = psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: its data begin at byte %zu, expected %zu: %s", path,
                               PSLD_NAME_SHOWN, sorted[i]->name, sorted[i]->begin, end,
                               sorted[i]->begin < end ? "an overlap" : "a hole");
    if (status == PSLD_OK && end != data_size)
        status = psld_fail(PSLD_BAD_INPUT, "%s: %zu bytes of data belong to no tensor", path, data_size - end);
    psld_release(sorted);
    return status;
}

/* Adds the data in place if they are aligned, as newer libraries write them; otherwise a copy. */
static psld_status safetensors_add_tensor(const entry *e, const unsigned char *data, psld_tensors *tensors)
{
    const void *from = data + e->begin;
    size_t size = e->end - e->begin;
    if ((uintptr_t)from % psld_element_size(e->type) != 0) {
        void *copy = NULL;
        PSLD_TRY(psld_tensors_block(tensors, size, &copy));
        if (size) memcpy(copy, from, size);
        from = copy;
    }
    return psld_tensors_add(tensors, e->name, e->type, e->rank, e->shape, from);
}

static psld_status parse_metadata(json_t *metadata, const char *path, psld_tensors *tensors)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return psld_fail(PSLD_BAD_INPUT, "%s: " METADATA ": expected an object", path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return psld_fail(PSLD_BAD_INPUT, "%s: " METADATA ": %.*s: expected a text", path, PSLD_NAME_SHOWN, key);
        PSLD_TRY(psld_tensors_add_note(tensors, key, json_string_value(value)));
    }
    return PSLD_OK;
}

static psld_status parse_header(json_t *header, const unsigned char *data, size_t data_size, const char *path,
                                psld_tensors *tensors)
{
    psld_status status = PSLD_OK;
    const char *name;
    json_t *value;
    size_t count = 0;
    entry *entries = psld_alloc(json_object_size(header), sizeof *entries);
    if (!entries) return PSLD_NO_MEMORY;
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, METADATA) == 0)
            status = parse_metadata(value, path, tensors);
        else
            status = parse_entry(name, value, data_size, path, &entries[count++]);
        if (status != PSLD_OK) break;
    }
    if (status == PSLD_OK) status = check_ranges(entries, count, data_size, path);
    for (size_t i = 0; i < count && status == PSLD_OK; i++) status = safetensors_add_tensor(&entries[i], data, tensors);
    psld_release(entries);
    return status;
}

psld_status psld_safetensors_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors)
{
    json_t *header = NULL;
    size_t begin = 0;
    PSLD_TRY(load_header(bytes, size, path, &header, &begin));
    psld_status status = parse_header(header, bytes + begin, size - begin, path, tensors);
    json_decref(header);
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static int is_utf8(const char *text)
{
    unsigned long code;
    for (size_t length; *text; text += length)
        if (!(length = psld_text_utf8(text, &code))) return 0;
    return 1;
}

/* Jansson gives no reasons for failures. Texts are checked first, so what fails then is memory. */
static psld_status set_json(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? PSLD_OK : psld_fail(PSLD_NO_MEMORY, "out of memory");
}

/* NULL: out of memory. */
static json_t *entry_json(const psld_tensor *t, size_t begin)
{
    json_t *shape = json_array();
    int made = shape != NULL;
    for (int i = 0; made && i < t->rank; i++)
        made = json_array_append_new(shape, json_integer((json_int_t)t->shape[i])) == 0;
    if (made)
        return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_names[t->type], "shape", shape, "data_offsets",
                         (json_int_t)begin, (json_int_t)(begin + t->bytes));
    json_decref(shape);
    return NULL;
}

static psld_status add_metadata(const psld_tensors *tensors, const char *path, json_t *header)
{
    if (!tensors->note_count) return PSLD_OK;
    PSLD_TRY(set_json(header, METADATA, json_object()));
    json_t *metadata = json_object_get(header, METADATA);
    for (size_t i = 0; i < tensors->note_count; i++) {
        const psld_note *note = &tensors->notes[i];
        if (!is_utf8(note->key) || !is_utf8(note->value))
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: the note %.*s is not UTF-8", path, PSLD_NAME_SHOWN, note->key);
        PSLD_TRY(set_json(metadata, note->key, json_string(note->value)));
    }
    return PSLD_OK;
}

/* Tensors in their order, data offsets by falling size of elements. */
static psld_status add_entries(const psld_tensors *tensors, const char *path, json_t *header)
{
    size_t begin[LARGEST_ELEMENT + 1] = {0}; /* of the next tensor with elements of a size */
    for (size_t i = 0; i < tensors->count; i++) {
        size_t size = psld_element_size(tensors->items[i].type);
        for (size_t smaller = 1; smaller < size; smaller++) begin[smaller] += tensors->items[i].bytes;
    }
    for (size_t i = 0; i < tensors->count; i++) {
        const psld_tensor *t = &tensors->items[i];
        size_t *at = &begin[psld_element_size(t->type)];
        if (strcmp(t->name, METADATA) == 0 || !is_utf8(t->name))
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: tensor %.*s: a name that safetensors cannot have", path,
                             PSLD_NAME_SHOWN, t->name);
        PSLD_TRY(set_json(header, t->name, entry_json(t, *at)));
        *at += t->bytes;
    }
    return PSLD_OK;
}

static void write_header(const char *text, psld_writer *writer)
{
    static const char spaces[ALIGNMENT + 1] = "                                                                ";
    size_t used = strlen(text), padding = (ALIGNMENT - (LENGTH_SIZE + used) % ALIGNMENT) % ALIGNMENT;
    unsigned char length[LENGTH_SIZE];
    for (int i = 0; i < LENGTH_SIZE; i++) length[i] = (unsigned char)((uint64_t)(used + padding) >> 8 * i);
    psld_writer_put(writer, length, sizeof length);
    psld_writer_put(writer, text, used);
    psld_writer_put(writer, spaces, padding);
}

psld_status psld_safetensors_write(const psld_tensors *tensors, const char *path, psld_writer *writer)
{
    json_t *header = json_object();
    psld_status status = add_metadata(tensors, path, header);
    if (status == PSLD_OK) status = add_entries(tensors, path, header);
    char *text = status == PSLD_OK ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (status != PSLD_OK) return status;
    if (!text) return psld_fail(PSLD_NO_MEMORY, "out of memory");
    if (strlen(text) > MAX_HEADER - ALIGNMENT) status = psld_fail(PSLD_BAD_ARGUMENT, "%s: too many tensors", path);
    if (status == PSLD_OK) write_header(text, writer);
    free(text);
    for (size_t size = LARGEST_ELEMENT; size > 0 && status == PSLD_OK; size /= 2)
        for (size_t i = 0; i < tensors->count; i++)
            if (psld_element_size(tensors->items[i].type) == size)
                psld_writer_put(writer, tensors->items[i].data, tensors->items[i].bytes);
    return status;
}
