/* The machine: a stack of values, a memo of numbered values, and a table of opcodes.
 *
 * Invariants
 *   1. Nothing is executed: an opcode that would call makes the value that the rules give, or an opaque one.
 *   2. The stack holds pointers to values; NULL is a mark. An opcode that takes values never takes a mark.
 *   3. Values and their items are in an arena that is freed as a whole, so cycles do no harm. Its size is bounded by
 *      the size of the pickle: a few bytes cannot ask for much memory.
 *   4. No opcode recurses, and each takes at least one byte: the time is bounded by the size of the pickle, too.
 *   5. Texts are not copied: they stay in the pickle (names of globals: in the arena). */
#include "io/tensors/pickle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum {
    NEWEST_PROTOCOL = 5,
    CHUNK = 1 << 14,
    ARENA_BASE = 1 << 26, /* bytes that every pickle may use, and how many more per byte of its own */
    ARENA_FACTOR = 128,
    MAX_STACK = 1 << 22,
    MAX_MEMO = 1 << 22,
    MEMO_BASE = 1 << 12, /* memo numbers are below this, or below the size of the pickle */
    MAX_GLOBAL = 255,    /* bytes of a module or of a name */
    NUMBER_SIZE = 64,    /* digits of a number that is written out */
};

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} chunk;

struct psld_pickle {
    const psld_pickle_rules *rules;
    void *user;
    const char *origin;
    const unsigned char *bytes;
    size_t size, base;
    size_t next; /* byte to read */
    size_t op;   /* where the current opcode stands */
    chunk *chunks;
    size_t arena_left;
    psld_status status; /* why the last allocation failed */
    psld_value **stack;
    size_t height, stack_capacity;
    psld_value **memo;
    size_t memo_count, memo_capacity; /* count: as MEMOIZE counts */
    psld_value *result;               /* once the pickle has ended */
};

psld_status psld_pickle_fail(const psld_pickle *pickle, size_t place, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return psld_fail(PSLD_BAD_INPUT, "%s: byte %zu: %s", pickle->origin, place, message);
}

static psld_status fail_op(const psld_pickle *p, const char *what)
{
    return psld_pickle_fail(p, p->base + p->op, "%s", what);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

void *psld_pickle_room(psld_pickle *pickle, size_t size)
{
    size = (size + 15) / 16 * 16;
    if (size > pickle->arena_left) {
        pickle->status = fail_op(pickle, "a pickle that needs more memory than one of its size may");
        return NULL;
    }
    chunk *c = pickle->chunks;
    if (!c || size > c->size - c->used) {
        size_t room = size > CHUNK ? size : CHUNK;
        c = psld_alloc(1, sizeof *c + room);
        if (!c) {
            pickle->status = PSLD_NO_MEMORY;
            return NULL;
        }
        c->size = room;
        c->next = pickle->chunks;
        pickle->chunks = c;
    }
    void *at = c->bytes + c->used;
    c->used += size;
    pickle->arena_left -= size;
    return at;
}

psld_status psld_pickle_status(const psld_pickle *pickle)
{
    return pickle->status;
}

void *psld_pickle_user(const psld_pickle *pickle)
{
    return pickle->user;
}

psld_value *psld_pickle_value(psld_pickle *pickle, psld_value_kind kind)
{
    psld_value *value = psld_pickle_room(pickle, sizeof *value);
    if (!value) return NULL;
    value->kind = kind;
    value->place = pickle->base + pickle->op;
    return value;
}

psld_status psld_pickle_append(psld_pickle *pickle, psld_value *list, psld_value *item)
{
    if (list->size == list->capacity) {
        size_t capacity = list->capacity * 2 + 4;
        psld_value **items = psld_pickle_room(pickle, capacity * sizeof(psld_value *));
        if (!items) return pickle->status;
        if (list->size) memcpy(items, list->items, list->size * sizeof(psld_value *));
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->size++] = item;
    return PSLD_OK;
}

/* ---- Stack and memo ---------------------------------------------------------------------------------------------- */

static psld_status push_value(psld_pickle *p, psld_value *value)
{
    if (p->height == MAX_STACK) return fail_op(p, "too many values on the stack");
    void *stack = p->stack;
    PSLD_TRY(psld_grow(&stack, &p->stack_capacity, p->height + 1, sizeof(psld_value *)));
    p->stack = stack;
    p->stack[p->height++] = value;
    return PSLD_OK;
}

/* Makes a value and pushes it. */
static psld_status push_new(psld_pickle *p, psld_value_kind kind, psld_value **value)
{
    *value = psld_pickle_value(p, kind);
    return *value ? push_value(p, *value) : p->status;
}

static psld_status pop_value(psld_pickle *p, psld_value **value)
{
    if (p->height == 0 || !p->stack[p->height - 1]) return fail_op(p, "an opcode without the values that it takes");
    *value = p->stack[--p->height];
    return PSLD_OK;
}

/* The value on top, which stays there. */
static psld_status top_value(psld_pickle *p, psld_value **value)
{
    PSLD_TRY(pop_value(p, value));
    p->height++;
    return PSLD_OK;
}

/* Takes the values above the last mark, and the mark: `count` values, which stay readable until the next push. */
static psld_status pop_mark(psld_pickle *p, psld_value ***values, size_t *count)
{
    size_t at = p->height;
    while (at > 0 && p->stack[at - 1]) at--;
    if (at == 0) return fail_op(p, "an opcode without the mark that it takes");
    *values = p->stack + at;
    *count = p->height - at;
    p->height = at - 1;
    return PSLD_OK;
}

static psld_status memo_put(psld_pickle *p, uint64_t number)
{
    psld_value *value = NULL;
    PSLD_TRY(top_value(p, &value));
    if (number >= MAX_MEMO || (number >= MEMO_BASE && number >= p->size))
        return fail_op(p, "a number of the memo that is too large");
    void *memo = p->memo;
    PSLD_TRY(psld_grow(&memo, &p->memo_capacity, (size_t)number + 1, sizeof(psld_value *)));
    p->memo = memo;
    if (!p->memo[number]) p->memo_count++;
    p->memo[number] = value;
    return PSLD_OK;
}

static psld_status memo_get(psld_pickle *p, uint64_t number)
{
    if (number >= p->memo_capacity || !p->memo[number]) return fail_op(p, "nothing is in the memo under this number");
    return push_value(p, p->memo[number]);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* What follows an opcode. */
typedef struct argument {
    uint64_t number;
    const char *text, *second; /* second: of two lines */
    size_t length, second_length;
    int detail; /* of the table */
} argument;

typedef psld_status (*op_fn)(psld_pickle *p, const argument *arg);

static psld_value *make_text(psld_pickle *p, psld_value_kind kind, const char *text, size_t length)
{
    psld_value *value = psld_pickle_value(p, kind);
    if (!value) return NULL;
    value->text = text;
    value->length = length;
    return value;
}

static psld_status push_text(psld_pickle *p, psld_value_kind kind, const char *text, size_t length)
{
    psld_value *value = make_text(p, kind, text, length);
    return value ? push_value(p, value) : p->status;
}

static psld_status push_integer(psld_pickle *p, psld_value_kind kind, int64_t integer)
{
    psld_value *value = NULL;
    PSLD_TRY(push_new(p, kind, &value));
    value->integer = integer;
    return PSLD_OK;
}

static psld_status op_empty(psld_pickle *p, const argument *arg)
{
    psld_value *value = NULL;
    return push_new(p, (psld_value_kind)arg->detail, &value);
}

static psld_status op_bool(psld_pickle *p, const argument *arg)
{
    return push_integer(p, PSLD_VALUE_BOOL, arg->detail);
}

static psld_status op_unsigned(psld_pickle *p, const argument *arg)
{
    return push_integer(p, PSLD_VALUE_INTEGER, (int64_t)arg->number);
}

static psld_status op_signed(psld_pickle *p, const argument *arg)
{
    return push_integer(p, PSLD_VALUE_INTEGER, (int32_t)(uint32_t)arg->number);
}

static psld_status op_double(psld_pickle *p, const argument *arg)
{
    psld_value *value = NULL;
    PSLD_TRY(push_new(p, PSLD_VALUE_NUMBER, &value));
    uint64_t swapped = __builtin_bswap64(arg->number); /* the one number that is big-endian */
    memcpy(&value->number, &swapped, sizeof swapped);
    return PSLD_OK;
}

/* LONG1, LONG4: two's complement, little-endian, of any length. */
static psld_status op_long(psld_pickle *p, const argument *arg)
{
    uint64_t bits = 0;
    if (arg->length > 8) return push_text(p, PSLD_VALUE_OPAQUE, "an integer of more than 64 bits", 31);
    for (size_t i = 0; i < arg->length; i++) bits |= (uint64_t)(unsigned char)arg->text[i] << 8 * i;
    if (arg->length > 0 && arg->length < 8 && arg->text[arg->length - 1] & 0x80) bits |= UINT64_MAX << 8 * arg->length;
    return push_integer(p, PSLD_VALUE_INTEGER, (int64_t)bits);
}

/* A number in decimal digits: INT ("01" and "00" are bools), LONG (with an L), FLOAT. */
static psld_status op_written(psld_pickle *p, const argument *arg)
{
    char text[NUMBER_SIZE];
    int64_t integer = 0;
    double number = 0;
    size_t length = arg->length;
    if (arg->detail == 'L' && length > 0 && arg->text[length - 1] == 'L') length--;
    if (length >= sizeof text && arg->detail != 'F') return push_text(p, PSLD_VALUE_OPAQUE, "a very long integer", 19);
    if (length >= sizeof text) return fail_op(p, "expected a number");
    memcpy(text, arg->text, length);
    text[length] = '\0';
    if (arg->detail == 'F') {
        if (!psld_text_number(text, &number)) return fail_op(p, "expected a number");
        psld_value *value = NULL;
        PSLD_TRY(push_new(p, PSLD_VALUE_NUMBER, &value));
        value->number = number;
        return PSLD_OK;
    }
    if (arg->detail == 'I' && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
        return push_integer(p, PSLD_VALUE_BOOL, text[1] == '1');
    if (!psld_text_integer(text, &integer)) return fail_op(p, "expected an integer of 64 bits");
    return push_integer(p, PSLD_VALUE_INTEGER, integer);
}

static psld_status op_text(psld_pickle *p, const argument *arg)
{
    return push_text(p, (psld_value_kind)arg->detail, arg->text, arg->length);
}

/* STRING and UNICODE of the oldest protocol: in quotes or to the end of the line. Names of tensors have no escapes. */
static psld_status op_line(psld_pickle *p, const argument *arg)
{
    const char *text = arg->text;
    size_t length = arg->length;
    if (length && memchr(text, '\\', length)) return push_text(p, PSLD_VALUE_OPAQUE, "a text with escapes", 19);
    if (arg->detail == 'S') {
        if (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0])
            return fail_op(p, "expected a text in quotes");
        text++;
        length -= 2;
    }
    return push_text(p, PSLD_VALUE_TEXT, text, length);
}

/* ---- Containers -------------------------------------------------------------------------------------------------- */

static psld_status make_tuple(psld_pickle *p, psld_value *const *values, size_t count, psld_value **tuple)
{
    *tuple = psld_pickle_value(p, PSLD_VALUE_TUPLE);
    if (!*tuple) return p->status;
    for (size_t i = 0; i < count; i++) PSLD_TRY(psld_pickle_append(p, *tuple, values[i]));
    return PSLD_OK;
}

/* Adds values to a list, or key-value pairs to a dict. An opaque object ignores them. */
static psld_status add_items(psld_pickle *p, psld_value *to, psld_value_kind kind, psld_value *const *values,
                             size_t count)
{
    if (to->kind == PSLD_VALUE_OPAQUE) return PSLD_OK;
    if (to->kind != kind) return fail_op(p, "adds to a value that is no container of the kind");
    if (kind == PSLD_VALUE_DICT && count % 2 != 0) return fail_op(p, "a key without a value");
    for (size_t i = 0; i < count; i++) PSLD_TRY(psld_pickle_append(p, to, values[i]));
    return PSLD_OK;
}

/* TUPLE, LIST, DICT: of what is above the mark. */
static psld_status op_collect(psld_pickle *p, const argument *arg)
{
    psld_value **values = NULL, *value = psld_pickle_value(p, (psld_value_kind)arg->detail);
    size_t count = 0;
    if (!value) return p->status;
    PSLD_TRY(pop_mark(p, &values, &count));
    if (value->kind == PSLD_VALUE_DICT && count % 2 != 0) return fail_op(p, "a key without a value");
    for (size_t i = 0; i < count; i++) PSLD_TRY(psld_pickle_append(p, value, values[i]));
    return push_value(p, value);
}

/* TUPLE1 to TUPLE3. */
static psld_status op_tuple(psld_pickle *p, const argument *arg)
{
    psld_value *values[3] = {NULL, NULL, NULL}, *tuple = NULL;
    for (int i = arg->detail - 1; i >= 0; i--) PSLD_TRY(pop_value(p, &values[i]));
    PSLD_TRY(make_tuple(p, values, (size_t)arg->detail, &tuple));
    return push_value(p, tuple);
}

/* APPEND and SETITEM: one item or pair on top of its container. */
static psld_status op_add(psld_pickle *p, const argument *arg)
{
    psld_value *values[2] = {NULL, NULL}, *to = NULL;
    size_t count = arg->detail == PSLD_VALUE_DICT ? 2 : 1;
    for (size_t i = count; i-- > 0;) PSLD_TRY(pop_value(p, &values[i]));
    PSLD_TRY(top_value(p, &to));
    return add_items(p, to, (psld_value_kind)arg->detail, values, count);
}

/* APPENDS, SETITEMS and ADDITEMS (of sets, which are opaque): all above the mark. */
static psld_status op_add_all(psld_pickle *p, const argument *arg)
{
    psld_value **values = NULL, *to = NULL;
    size_t count = 0;
    PSLD_TRY(pop_mark(p, &values, &count));
    PSLD_TRY(top_value(p, &to));
    return add_items(p, to, (psld_value_kind)arg->detail, values, count);
}

static psld_status op_set(psld_pickle *p, const argument *arg)
{
    psld_value **values = NULL;
    size_t count = 0;
    if (arg->detail) PSLD_TRY(pop_mark(p, &values, &count)); /* FROZENSET */
    return push_text(p, PSLD_VALUE_OPAQUE, "a set", 5);
}

/* ---- Stack, memo, frame ------------------------------------------------------------------------------------------ */

static psld_status op_mark(psld_pickle *p, const argument *arg)
{
    (void)arg;
    return push_value(p, NULL);
}

static psld_status op_pop(psld_pickle *p, const argument *arg)
{
    (void)arg;
    if (p->height == 0) return fail_op(p, "an opcode without the values that it takes");
    p->height--;
    return PSLD_OK;
}

static psld_status op_pop_mark(psld_pickle *p, const argument *arg)
{
    psld_value **values = NULL;
    size_t count = 0;
    (void)arg;
    return pop_mark(p, &values, &count);
}

static psld_status op_dup(psld_pickle *p, const argument *arg)
{
    psld_value *value = NULL;
    (void)arg;
    PSLD_TRY(top_value(p, &value));
    return push_value(p, value);
}

static psld_status op_put(psld_pickle *p, const argument *arg)
{
    return memo_put(p, arg->number);
}

static psld_status op_get(psld_pickle *p, const argument *arg)
{
    return memo_get(p, arg->number);
}

/* PUT and GET of the oldest protocol, with a number in decimal digits. */
static psld_status op_memo_written(psld_pickle *p, const argument *arg)
{
    uint64_t number = 0;
    for (size_t i = 0; i < arg->length && number < MAX_MEMO; i++) {
        if (arg->text[i] < '0' || arg->text[i] > '9') return fail_op(p, "expected a number of the memo");
        number = number * 10 + (uint64_t)(arg->text[i] - '0');
    }
    if (arg->length == 0) return fail_op(p, "expected a number of the memo");
    return arg->detail ? memo_put(p, number) : memo_get(p, number);
}

static psld_status op_memoize(psld_pickle *p, const argument *arg)
{
    (void)arg;
    return memo_put(p, p->memo_count);
}

static psld_status op_proto(psld_pickle *p, const argument *arg)
{
    if (arg->number > NEWEST_PROTOCOL) return fail_op(p, "a pickle of an unknown protocol");
    return PSLD_OK;
}

static psld_status op_frame(psld_pickle *p, const argument *arg)
{
    if (arg->number > p->size - p->next) return fail_op(p, "the pickle is cut off: a frame reaches beyond its end");
    return PSLD_OK;
}

static psld_status op_stop(psld_pickle *p, const argument *arg)
{
    (void)arg;
    PSLD_TRY(pop_value(p, &p->result));
    return p->height == 0 ? PSLD_OK : fail_op(p, "the pickle ends with values left on the stack");
}

/* ---- Globals and calls (nothing is ever called) ------------------------------------------------------------------ */

static psld_status push_global(psld_pickle *p, const char *module, size_t module_length, const char *name,
                               size_t name_length)
{
    if (module_length == 0 || name_length == 0 || module_length > MAX_GLOBAL || name_length > MAX_GLOBAL)
        return fail_op(p, "the name of a global is empty or very long");
    char *text = psld_pickle_room(p, module_length + 1 + name_length);
    if (!text) return p->status;
    memcpy(text, module, module_length);
    text[module_length] = '.';
    memcpy(text + module_length + 1, name, name_length);
    return push_text(p, PSLD_VALUE_GLOBAL, text, module_length + 1 + name_length);
}

static psld_status op_global(psld_pickle *p, const argument *arg)
{
    return push_global(p, arg->text, arg->length, arg->second, arg->second_length);
}

static psld_status op_stack_global(psld_pickle *p, const argument *arg)
{
    psld_value *module = NULL, *name = NULL;
    (void)arg;
    PSLD_TRY(pop_value(p, &name));
    PSLD_TRY(pop_value(p, &module));
    if (module->kind != PSLD_VALUE_TEXT || name->kind != PSLD_VALUE_TEXT)
        return fail_op(p, "the name of a global is no text");
    return push_global(p, module->text, module->length, name->text, name->length);
}

/* The result of a call: by the rules, or an opaque value with the name of what would have been called. */
static psld_status push_call(psld_pickle *p, const psld_value *callable, psld_value *args)
{
    psld_value *result = NULL;
    if (callable->kind != PSLD_VALUE_GLOBAL && callable->kind != PSLD_VALUE_OPAQUE)
        return fail_op(p, "calls a value that is no global");
    if (args->kind != PSLD_VALUE_TUPLE && args->kind != PSLD_VALUE_OPAQUE)
        return fail_op(p, "calls a global with arguments that are no tuple");
    if (callable->kind == PSLD_VALUE_GLOBAL && args->kind == PSLD_VALUE_TUPLE)
        PSLD_TRY(p->rules->call(p, callable, args, &result));
    if (!result) return push_text(p, PSLD_VALUE_OPAQUE, callable->text, callable->length);
    return push_value(p, result);
}

/* REDUCE and NEWOBJ; NEWOBJ_EX has a dict of named arguments on top. */
static psld_status op_call(psld_pickle *p, const argument *arg)
{
    psld_value *named = NULL, *args = NULL, *callable = NULL;
    if (arg->detail) PSLD_TRY(pop_value(p, &named));
    PSLD_TRY(pop_value(p, &args));
    PSLD_TRY(pop_value(p, &callable));
    return push_call(p, callable, args);
}

/* INST names the global, OBJ has it as the first value above the mark. */
static psld_status op_object(psld_pickle *p, const argument *arg)
{
    psld_value **values = NULL, *args = NULL, *callable = NULL;
    size_t count = 0;
    if (arg->detail == 'i') {
        PSLD_TRY(op_global(p, arg));
        PSLD_TRY(pop_value(p, &callable));
    }
    PSLD_TRY(pop_mark(p, &values, &count));
    if (!callable && count == 0) return fail_op(p, "an opcode without the values that it takes");
    size_t skip = callable ? 0 : 1;
    if (!callable) callable = values[0];
    PSLD_TRY(make_tuple(p, values + skip, count - skip, &args));
    return push_call(p, callable, args);
}

/* Sets attributes. Those of a dict are kept (an OrderedDict may have some); the rules decide about others. */
static psld_status op_build(psld_pickle *p, const argument *arg)
{
    psld_value *attributes = NULL, *to = NULL;
    (void)arg;
    PSLD_TRY(pop_value(p, &attributes));
    PSLD_TRY(top_value(p, &to));
    if (to->kind == PSLD_VALUE_DICT && attributes->kind == PSLD_VALUE_DICT) to->attributes = attributes;
    return to->kind != PSLD_VALUE_DICT && p->rules->build ? p->rules->build(p, to, attributes) : PSLD_OK;
}

static psld_status push_reference(psld_pickle *p, psld_value *id)
{
    psld_value *result = NULL;
    PSLD_TRY(p->rules->refer(p, id, &result));
    if (!result) return push_text(p, PSLD_VALUE_OPAQUE, "a reference", 11);
    return push_value(p, result);
}

static psld_status op_refer(psld_pickle *p, const argument *arg)
{
    psld_value *id = NULL;
    (void)arg;
    PSLD_TRY(pop_value(p, &id));
    return push_reference(p, id);
}

static psld_status op_refer_line(psld_pickle *p, const argument *arg)
{
    psld_value *id = make_text(p, PSLD_VALUE_TEXT, arg->text, arg->length);
    return id ? push_reference(p, id) : p->status;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

/* The argument of an opcode: nothing; a number of 1 to 8 bytes; a count of 1 to 8 bytes and that many bytes; lines. */
typedef enum following { NOTHING, NUMBER, COUNTED, LINE, TWO_LINES } following;

static const struct {
    op_fn run; /* NULL: unknown opcode */
    following follows;
    int width; /* of the number or count */
    int detail;
} ops[256] = {
    ['('] = {op_mark, NOTHING, 0, 0},
    ['.'] = {op_stop, NOTHING, 0, 0},
    ['0'] = {op_pop, NOTHING, 0, 0},
    ['1'] = {op_pop_mark, NOTHING, 0, 0},
    ['2'] = {op_dup, NOTHING, 0, 0},
    ['F'] = {op_written, LINE, 0, 'F'},
    ['G'] = {op_double, NUMBER, 8, 0},
    ['I'] = {op_written, LINE, 0, 'I'},
    ['J'] = {op_signed, NUMBER, 4, 0},
    ['K'] = {op_unsigned, NUMBER, 1, 0},
    ['L'] = {op_written, LINE, 0, 'L'},
    ['M'] = {op_unsigned, NUMBER, 2, 0},
    [0x8a] = {op_long, COUNTED, 1, 0},
    [0x8b] = {op_long, COUNTED, 4, 0},
    ['N'] = {op_empty, NOTHING, 0, PSLD_VALUE_NONE},
    [0x88] = {op_bool, NOTHING, 0, 1},
    [0x89] = {op_bool, NOTHING, 0, 0},
    ['S'] = {op_line, LINE, 0, 'S'},
    ['V'] = {op_line, LINE, 0, 'V'},
    ['T'] = {op_text, COUNTED, 4, PSLD_VALUE_TEXT},
    ['U'] = {op_text, COUNTED, 1, PSLD_VALUE_TEXT},
    ['X'] = {op_text, COUNTED, 4, PSLD_VALUE_TEXT},
    [0x8c] = {op_text, COUNTED, 1, PSLD_VALUE_TEXT},
    [0x8d] = {op_text, COUNTED, 8, PSLD_VALUE_TEXT},
    ['B'] = {op_text, COUNTED, 4, PSLD_VALUE_BYTES},
    ['C'] = {op_text, COUNTED, 1, PSLD_VALUE_BYTES},
    [0x8e] = {op_text, COUNTED, 8, PSLD_VALUE_BYTES},
    [0x96] = {op_text, COUNTED, 8, PSLD_VALUE_BYTES},
    [')'] = {op_empty, NOTHING, 0, PSLD_VALUE_TUPLE},
    [']'] = {op_empty, NOTHING, 0, PSLD_VALUE_LIST},
    ['}'] = {op_empty, NOTHING, 0, PSLD_VALUE_DICT},
    ['t'] = {op_collect, NOTHING, 0, PSLD_VALUE_TUPLE},
    ['l'] = {op_collect, NOTHING, 0, PSLD_VALUE_LIST},
    ['d'] = {op_collect, NOTHING, 0, PSLD_VALUE_DICT},
    [0x85] = {op_tuple, NOTHING, 0, 1},
    [0x86] = {op_tuple, NOTHING, 0, 2},
    [0x87] = {op_tuple, NOTHING, 0, 3},
    ['a'] = {op_add, NOTHING, 0, PSLD_VALUE_LIST},
    ['s'] = {op_add, NOTHING, 0, PSLD_VALUE_DICT},
    ['e'] = {op_add_all, NOTHING, 0, PSLD_VALUE_LIST},
    ['u'] = {op_add_all, NOTHING, 0, PSLD_VALUE_DICT},
    [0x90] = {op_add_all, NOTHING, 0, PSLD_VALUE_OPAQUE},
    [0x8f] = {op_set, NOTHING, 0, 0},
    [0x91] = {op_set, NOTHING, 0, 1},
    ['p'] = {op_memo_written, LINE, 0, 1},
    ['g'] = {op_memo_written, LINE, 0, 0},
    ['q'] = {op_put, NUMBER, 1, 0},
    ['r'] = {op_put, NUMBER, 4, 0},
    ['h'] = {op_get, NUMBER, 1, 0},
    ['j'] = {op_get, NUMBER, 4, 0},
    [0x94] = {op_memoize, NOTHING, 0, 0},
    [0x80] = {op_proto, NUMBER, 1, 0},
    [0x95] = {op_frame, NUMBER, 8, 0},
    ['c'] = {op_global, TWO_LINES, 0, 0},
    [0x93] = {op_stack_global, NOTHING, 0, 0},
    ['R'] = {op_call, NOTHING, 0, 0},
    [0x81] = {op_call, NOTHING, 0, 0},
    [0x92] = {op_call, NOTHING, 0, 1},
    ['i'] = {op_object, TWO_LINES, 0, 'i'},
    ['o'] = {op_object, NOTHING, 0, 'o'},
    ['b'] = {op_build, NOTHING, 0, 0},
    ['Q'] = {op_refer, NOTHING, 0, 0},
    ['P'] = {op_refer_line, LINE, 0, 0},
};

static psld_status fail_end(const psld_pickle *p)
{
    return psld_pickle_fail(p, p->base + p->size, "the pickle is cut off");
}

static psld_status read_line(psld_pickle *p, const char **text, size_t *length)
{
    const unsigned char *from = p->bytes + p->next,
                        *end = p->next < p->size ? memchr(from, '\n', p->size - p->next) : NULL;
    if (!end) return fail_end(p);
    *text = (const char *)from;
    *length = (size_t)(end - from);
    p->next += *length + 1;
    return PSLD_OK;
}

static psld_status read_argument(psld_pickle *p, following follows, int width, argument *arg)
{
    if (follows == NOTHING) return PSLD_OK;
    if (follows == LINE || follows == TWO_LINES) {
        PSLD_TRY(read_line(p, &arg->text, &arg->length));
        return follows == LINE ? PSLD_OK : read_line(p, &arg->second, &arg->second_length);
    }
    if ((size_t)width > p->size - p->next) return fail_end(p);
    for (int i = 0; i < width; i++) arg->number |= (uint64_t)p->bytes[p->next++] << 8 * i;
    if (follows == NUMBER) return PSLD_OK;
    if (arg->number > p->size - p->next) return fail_end(p);
    arg->text = (const char *)p->bytes + p->next;
    arg->length = (size_t)arg->number;
    p->next += arg->length;
    return PSLD_OK;
}

static psld_status run_opcodes(psld_pickle *p)
{
    while (!p->result) {
        if (p->next == p->size) return fail_end(p);
        p->op = p->next++;
        unsigned char code = p->bytes[p->op];
        if (!ops[code].run)
            return psld_pickle_fail(p, p->base + p->op, "0x%02x is no opcode of a pickle that is known here", code);
        argument arg = {.detail = ops[code].detail};
        PSLD_TRY(read_argument(p, ops[code].follows, ops[code].width, &arg));
        PSLD_TRY(ops[code].run(p, &arg));
    }
    return PSLD_OK;
}

/* ---- From outside ------------------------------------------------------------------------------------------------ */

psld_status psld_pickle_create(const psld_pickle_rules *rules, void *user, psld_pickle **pickle)
{
    *pickle = psld_alloc(1, sizeof **pickle);
    if (!*pickle) return PSLD_NO_MEMORY;
    (*pickle)->rules = rules;
    (*pickle)->user = user;
    return PSLD_OK;
}

void psld_pickle_free(psld_pickle *pickle)
{
    if (!pickle) return;
    while (pickle->chunks) {
        chunk *next = pickle->chunks->next;
        psld_release(pickle->chunks);
        pickle->chunks = next;
    }
    psld_release(pickle->stack);
    psld_release(pickle->memo);
    psld_release(pickle);
}

psld_status psld_pickle_load(psld_pickle *pickle, const char *origin, const void *bytes, size_t size, size_t base,
                             psld_value **value, size_t *used)
{
    psld_pickle *p = pickle;
    *value = NULL;
    p->origin = origin;
    p->bytes = bytes;
    p->size = size;
    p->base = base;
    p->next = p->op = p->height = p->memo_count = 0;
    if (p->memo_capacity) memset(p->memo, 0, p->memo_capacity * sizeof(psld_value *));
    p->arena_left = size < SIZE_MAX / (2 * ARENA_FACTOR) ? ARENA_BASE + ARENA_FACTOR * size : SIZE_MAX / 2;
    p->result = NULL;
    PSLD_TRY(run_opcodes(p));
    *value = p->result;
    *used = p->next;
    return PSLD_OK;
}

int psld_value_is(const psld_value *value, const char *text)
{
    if (value->kind != PSLD_VALUE_TEXT && value->kind != PSLD_VALUE_BYTES && value->kind != PSLD_VALUE_GLOBAL &&
        value->kind != PSLD_VALUE_OPAQUE)
        return 0;
    return value->length == strlen(text) && memcmp(value->text, text, value->length) == 0;
}

psld_value *psld_value_get(const psld_value *dict, const char *key)
{
    if (!dict || dict->kind != PSLD_VALUE_DICT) return NULL;
    for (size_t i = dict->size; i >= 2; i -= 2) {
        const psld_value *found = dict->items[i - 2];
        if ((found->kind == PSLD_VALUE_TEXT || found->kind == PSLD_VALUE_BYTES) && psld_value_is(found, key))
            return dict->items[i - 1];
    }
    return NULL;
}
