/* Networks that were pickled as Python objects with their source code (torch_utils.persistence of NVIDIA's projects),
 * read as data. Nothing is run, and the source is not looked at.
 *
 * The pickle is a dict; `ema` is the network. An object is a call of _reconstruct_persistent_obj with a dict
 *     type: class, version: 6, module_src: ..., class_name: NAME, state: {_parameters, _buffers, _modules,
 *     _init_kwargs, ...}
 * and _modules has further objects, or containers of torch.nn, which are plain calls with the same state. A storage is
 * the bytes of a whole PyTorch checkpoint that has nothing but the storage.
 *
 * The result: tensors with the names of the object's state_dict, and notes on the object and its modules of the first
 * level: "class" and "init.KEY" of the object, "NAME.class" and "NAME.init.KEY" of module NAME, with plain values and
 * lists of these as YAML.
 *
 * Invariants
 *   1. Depth is bounded, and every module, parameter and nested checkpoint spends of a budget that the size of the file
 *      sets: shared values and values that contain themselves cannot use up time or memory.
 *   2. An object that is not understood is refused by its name, never skipped. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/tensors/torch_private.h"

enum { VERSION = 6, MAX_DEPTH = 16, MAX_NAME = 512, MAX_NOTE = 1024, NOTED_DEPTH = 1, LOAD_COST = 4096 };

/* The meaning of a value's `detail`, beside those of torch.c. */
enum { PERSISTENT = 101, CONTAINER };

int psld_persistent_is(const unsigned char *bytes, size_t size)
{
    /* a safetensors file begins with the length of its header, which is JSON */
    if (size > 8 && bytes[8] == '{' && bytes[6] == 0 && bytes[7] == 0) return 0;
    return size > 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static psld_status spend_budget(psld_torch *torch, size_t bytes, size_t place)
{
    if (bytes > torch->budget)
        return psld_pickle_fail(torch->pickle, place, "storages that are larger than a file of this size may have");
    torch->budget -= bytes;
    return PSLD_OK;
}

/* The storage in the bytes of a whole checkpoint. Its elements become part of the tensors, where nothing refers to them
 * yet. */
static psld_status read_nested(psld_torch *torch, const psld_value *bytes, psld_tensor *flat)
{
    char origin[1024];
    const unsigned char *data = (const unsigned char *)bytes->text;
    size_t before = torch->tensors->count;
    int is_zip = bytes->length >= 4 && memcmp(data, "PK\3\4", 4) == 0;
    snprintf(origin, sizeof origin, "%.900s: in the bytes at %zu", torch->path, bytes->place);
    if (!is_zip && !psld_torch_is_legacy(data, bytes->length))
        return psld_fail(PSLD_BAD_INPUT, "%s: expected a PyTorch checkpoint with a storage", origin);
    PSLD_TRY((is_zip ? psld_torch_zip_read : psld_torch_legacy_read)(data, bytes->length, origin, torch->tensors));
    size_t found = torch->tensors->count - before;
    while (torch->tensors->count > before) psld_tensors_pop(torch->tensors, flat);
    if (found != 1 || flat->rank != 1)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected one storage and nothing else", origin);
    return PSLD_OK;
}

static psld_status call_load(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    psld_torch *torch = psld_pickle_user(pickle);
    psld_tensor flat = {0};
    if (args->size != 1 || args->items[0]->kind != PSLD_VALUE_BYTES)
        return psld_pickle_fail(pickle, args->place, "%.*s without the bytes of a storage", (int)global->length,
                                global->text);
    PSLD_TRY(spend_budget(torch, LOAD_COST + args->items[0]->length, args->place));
    PSLD_TRY(read_nested(torch, args->items[0], &flat));
    PSLD_TRY(spend_budget(torch, flat.bytes, args->place));
    return psld_torch_storage(pickle, &flat, result);
}

static psld_status call_object(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    if (args->size != 1 || args->items[0]->kind != PSLD_VALUE_DICT)
        return psld_pickle_fail(pickle, args->place, "%.*s without the dict that describes an object",
                                (int)global->length, global->text);
    psld_value *value = psld_pickle_value(pickle, PSLD_VALUE_OBJECT);
    if (!value) return psld_pickle_status(pickle);
    value->detail = PERSISTENT;
    value->object = args->items[0];
    *result = value;
    return PSLD_OK;
}

/* Its state comes later, as attributes of a dict. */
static psld_status call_container(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    (void)global, (void)args;
    *result = psld_pickle_value(pickle, PSLD_VALUE_DICT);
    if (!*result) return psld_pickle_status(pickle);
    (*result)->detail = CONTAINER;
    return PSLD_OK;
}

static psld_status persistent_call(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    static const struct {
        const char *name;
        psld_status (*call)(psld_pickle *, const psld_value *, psld_value *, psld_value **);
    } calls[] = {
        {"torch.storage._load_from_bytes", call_load},
        {"torch_utils.persistence._reconstruct_persistent_obj", call_object},
        {"torch.nn.modules.container.ModuleDict", call_container},
        {"torch.nn.modules.container.ModuleList", call_container},
        {"torch.nn.modules.container.Sequential", call_container},
        {"dnnlib.util.EasyDict", psld_torch_call_dict},
        {"dnnlib.EasyDict", psld_torch_call_dict},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (psld_value_is(global, calls[i].name)) return calls[i].call(pickle, global, args, result);
    return PSLD_OK;
}

/* ---- Notes ------------------------------------------------------------------------------------------------------- */

/* Appends a plain value, or a list of plain values, as YAML. 0: it is something else or too long. */
static int append_yaml(const psld_value *value, char *text, size_t size)
{
    size_t used = strlen(text);
    int is_list = value->kind == PSLD_VALUE_LIST || value->kind == PSLD_VALUE_TUPLE;
    if (!is_list) {
        if (value->kind == PSLD_VALUE_NONE) return snprintf(text + used, size - used, "null") < (int)(size - used);
        return psld_torch_text(value, text + used, size - used);
    }
    for (size_t i = 0; i < value->size; i++) {
        const psld_value *item = value->items[i];
        if (item->kind == PSLD_VALUE_LIST || item->kind == PSLD_VALUE_TUPLE) return 0;
        used = strlen(text);
        if (size - used < 4) return 0;
        snprintf(text + used, size - used, "%s", i ? ", " : "[");
        if (!append_yaml(item, text, size)) return 0;
    }
    used = strlen(text);
    return snprintf(text + used, size - used, "%s", value->size ? "]" : "[]") < (int)(size - used);
}

static psld_status add_note(psld_torch *torch, const char *path, const char *key, const char *text)
{
    char name[MAX_NAME + 80];
    snprintf(name, sizeof name, "%s%s%s", path, *path ? "." : "", key);
    return psld_tensors_set_note(torch->tensors, name, text);
}

/* Other values are left out. If a needed one is missing, building the network reports it. */
static psld_status note_arguments(psld_torch *torch, const psld_value *state, const char *path)
{
    const psld_value *named = psld_value_get(state, "_init_kwargs"), *others = psld_value_get(state, "_init_args");
    if (others && (others->kind != PSLD_VALUE_TUPLE || others->size))
        return psld_pickle_fail(torch->pickle, others->place, "_init_args: expected none, all arguments by name");
    for (size_t i = 0; named && named->kind == PSLD_VALUE_DICT && i + 1 < named->size; i += 2) {
        char key[64] = "init.", text[MAX_NOTE] = "";
        if (torch->tensors->note_count > 1000) break;
        if (!psld_torch_text(named->items[i], key + 5, sizeof key - 5)) continue;
        if (append_yaml(named->items[i + 1], text, sizeof text)) PSLD_TRY(add_note(torch, path, key, text));
    }
    return PSLD_OK;
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static psld_status read_module(psld_torch *torch, const psld_value *value, const char *path, int depth);

/* The name of something in a module. */
static psld_status join_name(psld_torch *torch, const char *path, const psld_value *key, char name[MAX_NAME])
{
    char own[128];
    if (key->kind != PSLD_VALUE_TEXT || !psld_torch_text(key, own, sizeof own) || strlen(path) + 130 > MAX_NAME)
        return psld_pickle_fail(torch->pickle, key->place,
                                "the name of a module or tensor is not a text, or very long");
    snprintf(name, MAX_NAME, "%.380s%s%s", path, *path ? "." : "", own);
    return PSLD_OK;
}

/* Parameters, buffers (`tensors`) or modules of a state; None stands for what is not there. */
static psld_status read_items(psld_torch *torch, const psld_value *state, const char *which, int tensors,
                              const char *path, int depth)
{
    const psld_value *items = psld_value_get(state, which);
    if (!items || items->kind != PSLD_VALUE_DICT)
        return psld_pickle_fail(torch->pickle, state->place, "an object without its dict of %s", which);
    for (size_t i = 0; i + 1 < items->size; i += 2) {
        char name[MAX_NAME];
        const psld_value *item = items->items[i + 1];
        if (item->kind == PSLD_VALUE_NONE) continue;
        if (torch->steps-- == 0) return psld_pickle_fail(torch->pickle, items->place, "too many values");
        PSLD_TRY(join_name(torch, path, items->items[i], name));
        PSLD_TRY(tensors ? psld_torch_add(torch, item, name) : read_module(torch, item, name, depth + 1));
    }
    return PSLD_OK;
}

static psld_status read_state(psld_torch *torch, const psld_value *state, const char *path, int depth)
{
    PSLD_TRY(read_items(torch, state, "_parameters", 1, path, depth));
    PSLD_TRY(read_items(torch, state, "_buffers", 1, path, depth));
    return read_items(torch, state, "_modules", 0, path, depth);
}

static psld_status read_object(psld_torch *torch, const psld_value *about, const char *path, int depth)
{
    const psld_value *type = psld_value_get(about, "type"), *version = psld_value_get(about, "version"),
                     *name = psld_value_get(about, "class_name"), *state = psld_value_get(about, "state");
    char class_name[64] = "";
    if (!name || name->kind != PSLD_VALUE_TEXT || !psld_torch_text(name, class_name, sizeof class_name))
        return psld_pickle_fail(torch->pickle, about->place, "an object without the name of its class");
    if (!type || !psld_value_is(type, "class") || !state || state->kind != PSLD_VALUE_DICT)
        return psld_pickle_fail(torch->pickle, about->place, "%s: expected an object of type class with a state",
                                class_name);
    if (!version || version->kind != PSLD_VALUE_INTEGER || version->integer != VERSION)
        return psld_pickle_fail(torch->pickle, about->place, "%s: version: expected %d, found %lld", class_name,
                                VERSION,
                                version && version->kind == PSLD_VALUE_INTEGER ? (long long)version->integer : -1LL);
    if (depth <= NOTED_DEPTH) {
        PSLD_TRY(add_note(torch, path, "class", class_name));
        PSLD_TRY(note_arguments(torch, state, path));
    }
    return read_state(torch, state, path, depth);
}

static psld_status read_module(psld_torch *torch, const psld_value *value, const char *path, int depth)
{
    if (depth > MAX_DEPTH)
        return psld_pickle_fail(torch->pickle, value->place, "modules nested too deep, or within themselves");
    if (value->kind == PSLD_VALUE_OBJECT && value->detail == PERSISTENT)
        return read_object(torch, value->object, path, depth);
    if (value->kind == PSLD_VALUE_DICT && value->detail == CONTAINER && value->attributes)
        return read_state(torch, value->attributes, path, depth);
    int named = value->kind == PSLD_VALUE_OPAQUE;
    return psld_pickle_fail(torch->pickle, value->place, "%s is an object of %.*s, which is not understood here",
                            *path ? path : "ema", named ? (int)value->length : 15,
                            named ? value->text : "no known class");
}

static psld_status read_pickle(psld_torch *torch, const unsigned char *bytes, size_t size)
{
    psld_value *object = NULL;
    size_t used = 0;
    PSLD_TRY(psld_pickle_load(torch->pickle, torch->path, bytes, size, 0, &object, &used));
    const psld_value *network = psld_value_get(object, "ema");
    if (!network)
        return psld_pickle_fail(torch->pickle, object->place, "a pickle, but not a dict with a network under \"ema\"");
    return read_module(torch, network, "", 0);
}

static psld_status no_elements(psld_torch *torch, const psld_storage *storage, size_t tensor, const void **data)
{
    (void)torch, (void)storage, (void)tensor, (void)data;
    return psld_fail(PSLD_BAD_INPUT, "its storage is not in the pickle");
}

psld_status psld_persistent_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors)
{
    psld_torch torch = {
        .path = path, .size = size, .tensors = tensors, .elements = no_elements, .call = persistent_call};
    psld_status status = psld_torch_open(&torch);
    if (status == PSLD_OK) status = read_pickle(&torch, bytes, size);
    psld_torch_close(&torch);
    return status;
}
