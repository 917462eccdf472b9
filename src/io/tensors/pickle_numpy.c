/* An array is pickled as a call of _reconstruct, which makes an empty array, and BUILD with its state; in protocol 5
 * as a call of _frombuffer. A dtype is a call of numpy.dtype with its name, and BUILD with a state whose second item
 * is the byte order. */
#include "io/tensors/pickle_numpy.h"

#include <string.h>

/* The meaning of a value's `detail`. */
enum { ARRAY = 1, DTYPE };

typedef struct dtype {
    char name[8];
} dtype;

static int is_one_of(const psld_value *global, const char *const *names)
{
    for (; *names; names++)
        if (psld_value_is(global, *names)) return 1;
    return 0;
}

static psld_status make_object(psld_pickle *pickle, int detail, size_t size, psld_value **result)
{
    void *object = psld_pickle_room(pickle, size);
    psld_value *value = object ? psld_pickle_value(pickle, PSLD_VALUE_OBJECT) : NULL;
    if (!value) return psld_pickle_status(pickle);
    value->object = object;
    value->detail = detail;
    *result = value;
    return PSLD_OK;
}

/* ('u1', ...) */
static psld_status make_dtype(psld_pickle *pickle, const psld_value *args, psld_value **result)
{
    PSLD_TRY(make_object(pickle, DTYPE, sizeof(dtype), result));
    dtype *d = (*result)->object;
    const psld_value *name = args->size ? args->items[0] : NULL;
    if (name && (name->kind == PSLD_VALUE_TEXT || name->kind == PSLD_VALUE_BYTES) && name->length < sizeof d->name)
        memcpy(d->name, name->text, name->length);
    return PSLD_OK;
}

static psld_status numpy_refer(psld_pickle *pickle, psld_value *id, psld_value **result)
{
    (void)pickle, (void)id, (void)result;
    return PSLD_OK;
}

static psld_status fail_state(psld_pickle *pickle, const psld_value *state)
{
    return psld_pickle_fail(pickle, state->place, "the state of a NumPy array makes no sense");
}

/* The digits of "u1"; 0 if there are none. */
static size_t element_size(const char *type)
{
    return type[0] && type[1] >= '1' && type[1] <= '8' && !type[2] ? (size_t)(type[1] - '0') : 0;
}

/* Fills in an array if its elements are numbers. An array of objects has a list instead of bytes. */
static psld_status fill_array(psld_pickle *pickle, const psld_value *shape, const psld_value *type, int fortran,
                              const psld_value *bytes, psld_numpy *array)
{
    if (shape->kind != PSLD_VALUE_TUPLE || shape->size > PSLD_MAX_RANK) return fail_state(pickle, shape);
    if (type->kind != PSLD_VALUE_OBJECT || type->detail != DTYPE) return fail_state(pickle, type);
    if (bytes->kind != PSLD_VALUE_TEXT && bytes->kind != PSLD_VALUE_BYTES) return PSLD_OK;
    const dtype *d = type->object;
    size_t size = element_size(d->name);
    if (size == 0) return PSLD_OK;
    psld_numpy made = {.rank = (int)shape->size, .bytes = (const uint8_t *)bytes->text, .fortran = fortran};
    memcpy(made.type, d->name, sizeof made.type);
    for (size_t i = 0; i < shape->size; i++) {
        const psld_value *item = shape->items[i];
        if (item->kind != PSLD_VALUE_INTEGER || item->integer < 0) return fail_state(pickle, shape);
        made.shape[i] = (size_t)item->integer;
        if (__builtin_mul_overflow(size, made.shape[i], &size)) return fail_state(pickle, shape);
    }
    if (size != bytes->length) return fail_state(pickle, bytes);
    *array = made;
    return PSLD_OK;
}

/* (version, shape, dtype, whether in Fortran order, bytes) */
static psld_status build_array(psld_pickle *pickle, psld_numpy *array, const psld_value *state)
{
    if (state->kind != PSLD_VALUE_TUPLE || state->size != 5) return fail_state(pickle, state);
    const psld_value *order = state->items[3];
    int fortran = (order->kind == PSLD_VALUE_BOOL || order->kind == PSLD_VALUE_INTEGER) && order->integer != 0;
    return fill_array(pickle, state->items[1], state->items[2], fortran, state->items[4], array);
}

/* (bytes, dtype, shape, order), of protocol 5 */
static psld_status make_from_buffer(psld_pickle *pickle, const psld_value *args, psld_value **result)
{
    if (args->size < 3) return fail_state(pickle, args);
    PSLD_TRY(make_object(pickle, ARRAY, sizeof(psld_numpy), result));
    int fortran = args->size > 3 && psld_value_is(args->items[3], "F");
    return fill_array(pickle, args->items[2], args->items[1], fortran, args->items[0], (*result)->object);
}

/* (version, byte order, ...): a big-endian type loses its name and so counts as unknown. */
static void build_dtype(dtype *d, const psld_value *state)
{
    const psld_value *order = state->kind == PSLD_VALUE_TUPLE && state->size > 1 ? state->items[1] : NULL;
    if (order && psld_value_is(order, ">")) d->name[0] = '\0';
}

static psld_status numpy_call(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result)
{
    static const char *const makers[] = {"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct",
                                         NULL};
    static const char *const buffers[] = {"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer", NULL};
    static const char *const dtypes[] = {"numpy.dtype", NULL};
    if (is_one_of(global, makers)) return make_object(pickle, ARRAY, sizeof(psld_numpy), result);
    if (is_one_of(global, buffers)) return make_from_buffer(pickle, args, result);
    if (is_one_of(global, dtypes)) return make_dtype(pickle, args, result);
    return PSLD_OK;
}

static psld_status numpy_build(psld_pickle *pickle, psld_value *to, const psld_value *state)
{
    if (to->kind != PSLD_VALUE_OBJECT) return PSLD_OK;
    if (to->detail == ARRAY) return build_array(pickle, to->object, state);
    if (to->detail == DTYPE) build_dtype(to->object, state);
    return PSLD_OK;
}

const psld_pickle_rules psld_numpy_rules = {.call = numpy_call, .refer = numpy_refer, .build = numpy_build};

const psld_numpy *psld_value_numpy(const psld_value *value)
{
    if (!value || value->kind != PSLD_VALUE_OBJECT || value->detail != ARRAY) return NULL;
    const psld_numpy *array = value->object;
    return array->type[0] ? array : NULL;
}
