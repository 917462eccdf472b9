/* A tensor is pickled as a call torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...), and its storage
 * as a reference ('storage', torch.FloatStorage, key, device, count). Both become objects here; all other calls are
 * opaque. The tensors are then searched for in the object: a dict of tensors, or one that has it under state_dict.
 *
 * Invariants
 *   1. Opaque values are skipped, except where one stands for a tensor: made of a storage, or by one of torch's
 *      functions that rebuild tensors. That is an error with the name of what made it.
 *   2. A tensor that is added has been checked against its storage: no index of it lies outside.
 *   3. Depth and number of steps of the search are bounded, whatever cycles and shared values there are, and so is the
 *      memory for views that are copied (a view of a single element may claim any shape). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/tensors/torch_private.h"

enum {
    MAX_DEPTH = 32,
    STEPS_BASE = 1 << 16, /* a tree has fewer values than the file has bytes; shared values may cost a few more */
    STEPS_FACTOR = 2,
    MAX_NAME = 1024,
    BUDGET_BASE = 1 << 24,
    BUDGET_FACTOR = 16,
};

/* The meaning of a value's `detail`. */
enum { STORAGE = 1, TENSOR, BROKEN };

typedef struct view {
    const psld_storage *storage;
    size_t offset; /* elements, from the beginning of the whole storage */
    int rank;
    size_t shape[PSLD_MAX_RANK], stride[PSLD_MAX_RANK];
} view;

/* ---- References to storages -------------------------------------------------------------------------------------- */

static const char *const storage_names[PSLD_ELEMENT_COUNT] = {
    [PSLD_ELEMENT_F16] = "HalfStorage",   [PSLD_ELEMENT_BF16] = "BFloat16Storage", [PSLD_ELEMENT_F32] = "FloatStorage",
    [PSLD_ELEMENT_F64] = "DoubleStorage", [PSLD_ELEMENT_U8] = "ByteStorage",       [PSLD_ELEMENT_I8] = "CharStorage",
    [PSLD_ELEMENT_I16] = "ShortStorage",  [PSLD_ELEMENT_I32] = "IntStorage",       [PSLD_ELEMENT_I64] = "LongStorage",
    [PSLD_ELEMENT_BOOL] = "BoolStorage",
};

const char *psld_storage_name(psld_element type)
{
    return storage_names[type];
}

/* "torch.FloatStorage", and from old versions "torch.cuda.FloatStorage". */
static int find_storage_type(const psld_value *global, psld_element *type)
{
    static const char *const modules[] = {"torch.", "torch.cuda."};
    for (int i = 0; i < 2; i++) {
        size_t skip = strlen(modules[i]);
        if (global->length < skip || memcmp(global->text, modules[i], skip) != 0) continue;
        const psld_value name = {.kind = PSLD_VALUE_TEXT, .text = global->text + skip, .length = global->length - skip};
        for (int j = 0; j < PSLD_ELEMENT_COUNT; j++) {
            *type = (psld_element)j;
            if (psld_value_is(&name, storage_names[j])) return 1;
        }
    }
    return 0;
}

static int torch_get_size(const psld_value *value, size_t *size)
{
    if (value->kind != PSLD_VALUE_INTEGER || value->integer < 0) return 0;
    *size = (size_t)value->integer;
    return 1;
}

/* An opaque value that stands for a tensor or a storage. */
static psld_status make_broken(psld_pickle *pickle, const psld_value *maker, psld_value **result)
{
    *result = psld_pickle_value(pickle, PSLD_VALUE_OPAQUE);
    if (!*result) return psld_pickle_status(pickle);
    (*result)->text = maker->text;
    (*result)->length = maker->length;
    (*result)->detail = BROKEN;
    return PSLD_OK;
}

/* The old format may refer to a part of a storage: (key, first element, number of elements), or None. */
static psld_status read_storage_part(psld_pickle *pickle, const psld_value *part, psld_storage *s)
{
    size_t end = 0;
    if (part->kind == PSLD_VALUE_NONE) return PSLD_OK;
    if (part->kind != PSLD_VALUE_TUPLE || part->size != 3 || !torch_get_size(part->items[1], &s->view_begin) ||
        !torch_get_size(part->items[2], &s->view_count) || __builtin_add_overflow(s->view_begin, s->view_count, &end) ||
        end > s->count)
        return psld_pickle_fail(pickle, s->place, "a reference to a part that the storage does not have");
    return PSLD_OK;
}

static psld_status keep_storage(psld_torch *torch, psld_storage *storage)
{
    void *storages = torch->storages;
    PSLD_TRY(psld_grow(&storages, &torch->storage_capacity, torch->storage_count + 1, sizeof(psld_storage *)));
    torch->storages = storages;
    torch->storages[torch->storage_count++] = storage;
    return PSLD_OK;
}

/* ('storage', type, key, device, count[, part]) */
static psld_status torch_refer(psld_pickle *pickle, psld_value *id, psld_value **result)
{
    if (id->kind != PSLD_VALUE_TUPLE || id->size < 5 || !psld_value_is(id->items[0], "storage")) return PSLD_OK;
    const psld_value *type = id->items[1], *key = id->items[2];
    psld_storage *s = psld_pickle_room(pickle, sizeof *s);
    if (!s) return psld_pickle_status(pickle);
    s->place = id->place;
    if (type->kind != PSLD_VALUE_GLOBAL || key->kind != PSLD_VALUE_TEXT || !torch_get_size(id->items[4], &s->count))
        return psld_pickle_fail(pickle, id->place, "a reference to a storage that is not valid");
    if (!find_storage_type(type, &s->type)) return make_broken(pickle, type, result);
    s->key = key->text;
    s->key_length = key->length;
    s->view_count = s->count;
    if (id->size > 5) PSLD_TRY(read_storage_part(pickle, id->items[5], s));
    psld_value *value = psld_pickle_value(pickle, PSLD_VALUE_OBJECT);
    if (!value) return psld_pickle_status(pickle);
    value->object = s;
    value->detail = STORAGE;
    *result = value;
    return keep_storage(psld_pickle_user(pickle), s);
}

/* ---- Calls that are understood ----------------------------------------------------------------------------------- */

typedef psld_status (*call_fn)(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result);

static psld_status fail_call(psld_pickle *pickle, const psld_value *global, const psld_value *args)
{
    return psld_pickle_fail(pickle, args->place, "%.*s with arguments that make no sense", (int)global->length,
                            global->text);
}

/* Sizes or strides of a view; -1 if they are invalid. */
static int get_sizes(const psld_value *tuple, size_t sizes[PSLD_MAX_RANK])
{
    if (tuple->kind != PSLD_VALUE_TUPLE || tuple->size > PSLD_MAX_RANK) return -1;
    for (size_t i = 0; i < tuple->size; i++)
        if (!torch_get_size(tuple->items[i], &sizes[i])) return -1;
    return (int)tuple->size;
}

psld_status psld_torch_storage(psld_pickle *pickle, const psld_tensor *flat, psld_value **result)
{
    psld_storage *s = psld_pickle_room(pickle, sizeof *s);
    psld_value *value = s ? psld_pickle_value(pickle, PSLD_VALUE_OBJECT) : NULL;
    if (!value) return psld_pickle_status(pickle);
    *s = (psld_storage){.type = flat->type, .count = flat->count, .view_count = flat->count, .data = flat->data};
    s->place = value->place;
    value->object = s;
    value->detail = STORAGE;
    *result = value;
    return PSLD_OK;
}

/* (storage, offset, size, stride, ...) */
static psld_status call_tensor(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    if (args->size < 4) return fail_call(pickle, global, args);
    const psld_value *storage = args->items[0];
    if (storage->kind == PSLD_VALUE_OPAQUE) return make_broken(pickle, storage, result);
    if (storage->detail != STORAGE) return fail_call(pickle, global, args);
    view *v = psld_pickle_room(pickle, sizeof *v);
    psld_value *value = v ? psld_pickle_value(pickle, PSLD_VALUE_OBJECT) : NULL;
    if (!value) return psld_pickle_status(pickle);
    v->storage = storage->object;
    v->rank = get_sizes(args->items[2], v->shape);
    if (v->rank < 0 || get_sizes(args->items[3], v->stride) != v->rank || !torch_get_size(args->items[1], &v->offset) ||
        __builtin_add_overflow(v->offset, v->storage->view_begin, &v->offset))
        return fail_call(pickle, global, args);
    value->object = v;
    value->detail = TENSOR;
    *result = value;
    return PSLD_OK;
}

/* torch.Size of a tuple, and a parameter of its tensor: the result is the argument. */
static psld_status call_first(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    if (args->size == 0) return fail_call(pickle, global, args);
    *result = args->items[0];
    return PSLD_OK;
}

/* An empty dict, or (Python 2) a dict made of a list of pairs. */
psld_status psld_torch_call_dict(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    const psld_value *pairs = args->size ? args->items[0] : NULL;
    psld_value *dict = *result = psld_pickle_value(pickle, PSLD_VALUE_DICT);
    if (!dict) return psld_pickle_status(pickle);
    if (!pairs || pairs->kind != PSLD_VALUE_LIST) return PSLD_OK;
    for (size_t i = 0; i < pairs->size; i++) {
        const psld_value *pair = pairs->items[i];
        if ((pair->kind != PSLD_VALUE_TUPLE && pair->kind != PSLD_VALUE_LIST) || pair->size != 2)
            return fail_call(pickle, global, args);
        PSLD_TRY(psld_pickle_append(pickle, dict, pair->items[0]));
        PSLD_TRY(psld_pickle_append(pickle, dict, pair->items[1]));
    }
    return PSLD_OK;
}

static psld_status call_wrapped(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result);

static const struct {
    const char *name;
    call_fn call;
} calls[] = {
    {"torch._utils._rebuild_tensor_v2", call_tensor},      {"torch._utils._rebuild_tensor", call_tensor},
    {"torch._utils._rebuild_parameter", call_first},       {"torch._utils._rebuild_parameter_with_state", call_first},
    {"torch._tensor._rebuild_from_type_v2", call_wrapped}, {"torch.Size", call_first},
    {"collections.OrderedDict", psld_torch_call_dict},     {"collections.defaultdict", psld_torch_call_dict},
};

enum { CALL_COUNT = sizeof calls / sizeof *calls };

/* Whether an unknown call would have made a tensor. */
static int makes_tensor(const psld_value *global, const psld_value *args)
{
    static const char prefix[] = "torch._utils._rebuild_";
    if (global->length >= sizeof prefix - 1 && memcmp(global->text, prefix, sizeof prefix - 1) == 0) return 1;
    for (size_t i = 0; i < args->size; i++)
        if (args->items[i]->detail == STORAGE) return 1;
    return 0;
}

static psld_status torch_call(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    const psld_torch *torch = psld_pickle_user(pickle);
    if (torch->call) PSLD_TRY(torch->call(pickle, global, args, result));
    if (*result) return PSLD_OK;
    for (int i = 0; i < CALL_COUNT; i++)
        if (psld_value_is(global, calls[i].name)) return calls[i].call(pickle, global, args, result);
    return makes_tensor(global, args) ? make_broken(pickle, global, result) : PSLD_OK;
}

/* (function, type, arguments, state): a tensor of a class of its own, rebuilt by an inner call. */
static psld_status call_wrapped(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    if (args->size < 3 || args->items[0]->kind != PSLD_VALUE_GLOBAL || args->items[2]->kind != PSLD_VALUE_TUPLE ||
        psld_value_is(args->items[0], "torch._tensor._rebuild_from_type_v2")) /* it contains itself */
        return fail_call(pickle, global, args);
    return torch_call(pickle, args->items[0], args->items[2], result);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Whether the strides are those of C order. With one element or none they do not matter. */
static int is_contiguous(const view *v)
{
    size_t expected = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        if (v->shape[i] != 1 && v->stride[i] != expected) return 0;
        expected *= v->shape[i];
    }
    return 1;
}

/* Invariant 2, for a view with elements. */
static int fits_storage(const view *v)
{
    size_t last = v->offset, reach = 0;
    for (int i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(v->shape[i] - 1, v->stride[i], &reach) || __builtin_add_overflow(last, reach, &last))
            return 0;
    return last < v->storage->view_begin + v->storage->view_count;
}

/* Copies a view's elements, of `size` bytes each, to C order: counts its indices up, the last one fastest. */
static void copy_view(const view *v, size_t size, size_t count, const unsigned char *from, unsigned char *to)
{
    size_t index[PSLD_MAX_RANK] = {0}, at = v->offset;
    for (size_t done = 0; done < count; done++, to += size) {
        memcpy(to, from + at * size, size);
        for (int i = v->rank - 1; i >= 0; i--) {
            at += v->stride[i];
            if (++index[i] < v->shape[i]) break;
            at -= v->stride[i] * v->shape[i];
            index[i] = 0;
        }
    }
}

/* The elements of a view in C order: in place if possible. */
static psld_status find_elements(psld_torch *torch, const view *v, size_t count, size_t bytes, const void **data)
{
    static const double nothing = 0;
    size_t size = psld_element_size(v->storage->type);
    *data = &nothing;
    if (count == 0) return PSLD_OK;
    if (!fits_storage(v))
        return psld_fail(PSLD_BAD_INPUT, "its shape and strides reach beyond its storage of %zu elements",
                         v->storage->view_count);
    const void *elements = v->storage->data;
    if (!elements) PSLD_TRY(torch->elements(torch, v->storage, torch->tensors->count, &elements));
    if (is_contiguous(v)) {
        *data = (const unsigned char *)elements + v->offset * size;
        return PSLD_OK;
    }
    if (bytes > torch->budget)
        return psld_fail(PSLD_BAD_INPUT, "views that are %zu bytes when copied, too many for a file of this size",
                         bytes);
    torch->budget -= bytes;
    void *copy = NULL;
    PSLD_TRY(psld_tensors_block(torch->tensors, bytes, &copy));
    copy_view(v, size, count, elements, copy);
    *data = copy;
    return PSLD_OK;
}

int psld_torch_is_tensor(const psld_value *value)
{
    return value->kind == PSLD_VALUE_OBJECT && value->detail == TENSOR;
}

static psld_status torch_add_tensor(psld_torch *torch, const view *v, const char *name)
{
    size_t count = 0, bytes = 0;
    const void *data = NULL;
    psld_status status = PSLD_OK;
    if (!psld_element_count(v->storage->type, v->rank, v->shape, &count, &bytes))
        status = psld_fail(PSLD_BAD_INPUT, "its sizes are too large");
    if (status == PSLD_OK) status = find_elements(torch, v, count, bytes, &data);
    if (status == PSLD_BAD_INPUT) return psld_fail_in(status, "%s: tensor %.*s", torch->path, PSLD_NAME_SHOWN, name);
    if (status != PSLD_OK) return status;
    return psld_tensors_add(torch->tensors, name, v->storage->type, v->rank, v->shape, data);
}

psld_status psld_torch_add(psld_torch *torch, const psld_value *value, const char *name)
{
    if (psld_torch_is_tensor(value)) return torch_add_tensor(torch, value->object, name);
    return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: made by %.*s, which is not understood here", torch->path,
                     PSLD_NAME_SHOWN, name, value->kind == PSLD_VALUE_OPAQUE ? (int)value->length : 14,
                     value->kind == PSLD_VALUE_OPAQUE ? value->text : "something else");
}

/* A storage that was saved alone: one tensor, flat. */
static psld_status add_storage(psld_torch *torch, const psld_storage *storage)
{
    view whole = {.storage = storage, .offset = storage->view_begin, .rank = 1};
    whole.shape[0] = storage->view_count;
    whole.stride[0] = 1;
    return torch_add_tensor(torch, &whole, PSLD_STORAGE_NAME);
}

/* ---- Finding them ------------------------------------------------------------------------------------------------ */

/* The path of keys to a value. */
typedef struct path {
    char text[MAX_NAME];
    size_t length;
} path;

static psld_status fail_tensor_name(psld_torch *torch, const psld_value *key, const char *what)
{
    return psld_pickle_fail(torch->pickle, key->place, "%s", what);
}

/* Appends a key or an index to the path. */
static psld_status path_add(psld_torch *torch, path *name, const psld_value *key)
{
    char digits[32];
    const char *text = key->text;
    size_t length = key->length;
    if (key->kind == PSLD_VALUE_INTEGER) {
        length = (size_t)snprintf(digits, sizeof digits, "%" PRId64, key->integer);
        text = digits;
    }
    if (length + 2 > sizeof name->text - name->length) return fail_tensor_name(torch, key, "a name that is very long");
    if (length && memchr(text, '\0', length)) return fail_tensor_name(torch, key, "a name with a 0 byte in it");
    if (name->length) name->text[name->length++] = '.';
    if (length) memcpy(name->text + name->length, text, length);
    name->length += length;
    name->text[name->length] = '\0';
    return PSLD_OK;
}

static psld_status add_tensors_in(psld_torch *torch, const psld_value *value, path *name, int depth);

/* The value under a key, if the key can be part of a name. */
static psld_status add_tensors_of_item(psld_torch *torch, const psld_value *key, const psld_value *value, path *name,
                                       int depth)
{
    size_t length = name->length;
    if (key->kind != PSLD_VALUE_TEXT && key->kind != PSLD_VALUE_INTEGER) return PSLD_OK;
    /* Most values of a checkpoint are numbers. A long list of them must not use up the budget. */
    if (value->kind < PSLD_VALUE_TUPLE || value->kind == PSLD_VALUE_GLOBAL) return PSLD_OK;
    PSLD_TRY(path_add(torch, name, key));
    PSLD_TRY(add_tensors_in(torch, value, name, depth));
    name->length = length;
    name->text[length] = '\0';
    return PSLD_OK;
}

/* Adds every tensor inside the value. */
static psld_status add_tensors_in(psld_torch *torch, const psld_value *value, path *name, int depth)
{
    if (psld_torch_is_tensor(value)) return torch_add_tensor(torch, value->object, name->text);
    if (value->kind == PSLD_VALUE_OPAQUE && value->detail == BROKEN)
        return psld_fail(PSLD_BAD_INPUT, "%s: tensor %.*s: made by %.*s, which is not understood here", torch->path,
                         PSLD_NAME_SHOWN, name->text, (int)value->length, value->text);
    int dict = value->kind == PSLD_VALUE_DICT, list = value->kind == PSLD_VALUE_LIST || value->kind == PSLD_VALUE_TUPLE;
    if (!dict && !list) return PSLD_OK;
    if (depth == MAX_DEPTH || torch->steps < value->size)
        return psld_pickle_fail(torch->pickle, value->place, "%s",
                                depth == MAX_DEPTH ? "values nested too deep, or within themselves"
                                                   : "too many values");
    torch->steps -= value->size;
    for (size_t i = 0; i < value->size; i++) {
        psld_value index = {.kind = PSLD_VALUE_INTEGER, .place = value->place, .integer = (int64_t)i};
        if (list) PSLD_TRY(add_tensors_of_item(torch, &index, value->items[i], name, depth + 1));
        if (dict && i % 2 == 1)
            PSLD_TRY(add_tensors_of_item(torch, value->items[i - 1], value->items[i], name, depth + 1));
    }
    return PSLD_OK;
}

int psld_torch_text(const psld_value *value, char *text, size_t size)
{
    if (value->kind == PSLD_VALUE_INTEGER) return snprintf(text, size, "%" PRId64, value->integer) > 0;
    if (value->kind == PSLD_VALUE_BOOL) return snprintf(text, size, "%s", value->integer ? "true" : "false") > 0;
    if (value->kind == PSLD_VALUE_NUMBER) {
        char number[PSLD_NUMBER_SIZE];
        return snprintf(text, size, "%s", psld_text_shortest(value->number, number)) > 0;
    }
    if (value->kind != PSLD_VALUE_TEXT || value->length >= size) return 0;
    if (value->length) memcpy(text, value->text, value->length);
    text[value->length] = '\0';
    return strlen(text) == value->length;
}

/* Adds the plain values of a dict as notes: a limited number, of limited length. */
static psld_status add_notes(psld_torch *torch, const psld_value *dict)
{
    enum { MAX_NOTES = 1000, MAX_TEXT = 1 << 20 };
    char key[MAX_NAME], *text = NULL;
    if (!dict || dict->kind != PSLD_VALUE_DICT) return PSLD_OK;
    psld_status status = PSLD_OK;
    for (size_t i = 0; i + 1 < dict->size && torch->tensors->note_count < MAX_NOTES && status == PSLD_OK; i += 2) {
        const psld_value *value = dict->items[i + 1];
        size_t room = value->kind == PSLD_VALUE_TEXT ? value->length + 1 : 64;
        if (dict->items[i]->kind != PSLD_VALUE_TEXT || !psld_torch_text(dict->items[i], key, sizeof key) ||
            room > MAX_TEXT)
            continue;
        text = psld_alloc(room, 1);
        if (!text) return PSLD_NO_MEMORY;
        if (psld_torch_text(value, text, room)) status = psld_tensors_set_note(torch->tensors, key, text);
        psld_release(text);
    }
    return status;
}

psld_status psld_torch_collect(psld_torch *torch, const psld_value *object)
{
    path name = {.length = 0};
    if (object->kind == PSLD_VALUE_OPAQUE)
        return psld_pickle_fail(torch->pickle, object->place,
                                "an object of %.*s, which is not understood and never run here; expected a dict of "
                                "tensors, such as a state_dict",
                                (int)object->length, object->text);
    if (object->kind == PSLD_VALUE_OBJECT && object->detail == STORAGE) return add_storage(torch, object->object);
    if (object->kind != PSLD_VALUE_DICT)
        return psld_pickle_fail(torch->pickle, object->place, "expected a dict of tensors, such as a state_dict");
    const psld_value *state = psld_value_get(object, "state_dict");
    if (!state || state->kind != PSLD_VALUE_DICT) state = object;
    PSLD_TRY(add_notes(torch, object));
    PSLD_TRY(add_notes(torch, psld_value_get(state->attributes, "psld_notes")));
    return add_tensors_in(torch, state, &name, 0);
}

psld_status psld_torch_open(psld_torch *torch)
{
    static const psld_pickle_rules rules = {.call = torch_call, .refer = torch_refer};
    torch->budget = torch->size < SIZE_MAX / (2 * BUDGET_FACTOR) ? BUDGET_BASE + BUDGET_FACTOR * torch->size : SIZE_MAX;
    torch->steps = STEPS_BASE + (torch->size < SIZE_MAX / 4 ? STEPS_FACTOR * torch->size : SIZE_MAX / 4);
    return psld_pickle_create(&rules, torch, &torch->pickle);
}

void psld_torch_close(psld_torch *torch)
{
    psld_pickle_free(torch->pickle);
    psld_release(torch->storages);
}
