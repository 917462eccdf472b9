/* Python's pickle as a tree of plain values.
 *
 * A pickle is a program for a stack machine. Python's own machine imports and calls whatever the program names. This
 * one does neither: a global is only a name. The caller's rules say what a call of a name means (a few for PyTorch,
 * in torch.c). Any other call gives an *opaque* value, which has no content, may be stored anywhere, and remembers
 * the name that made it. Values may be shared and may contain themselves: code that visits them must bound depth and
 * number of steps. */
#ifndef PSLD_IO_PICKLE_H
#define PSLD_IO_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum psld_value_kind {
    PSLD_VALUE_NONE,
    PSLD_VALUE_BOOL,    /* integer: 0 or 1 */
    PSLD_VALUE_INTEGER, /* within int64_t; larger ones are opaque */
    PSLD_VALUE_NUMBER,
    PSLD_VALUE_TEXT,
    PSLD_VALUE_TUPLE,
    PSLD_VALUE_LIST,
    PSLD_VALUE_DICT,   /* items: key, value, key, value, ...; of equal keys the last one counts */
    PSLD_VALUE_GLOBAL, /* text: "module.name" */
    PSLD_VALUE_OPAQUE, /* text: of the global that made it, or what else it is */
    PSLD_VALUE_OBJECT, /* of the rules */
    PSLD_VALUE_BYTES,  /* text: they are */
} psld_value_kind;

typedef struct psld_value psld_value;
struct psld_value {
    psld_value_kind kind;
    int detail;   /* of the rules */
    size_t place; /* byte of the file where it was made */
    union {
        int64_t integer;
        double number;
        struct {
            const char *text; /* no 0 byte behind it; may have some in it */
            size_t length;
        };
        struct {
            psld_value **items;
            size_t size, capacity;
            psld_value *attributes; /* DICT: attributes set with BUILD, or NULL */
        };
        void *object;
    };
};

typedef struct psld_pickle psld_pickle;

/* The meaning of some names and ids. Each may leave *result NULL: opaque. */
typedef struct psld_pickle_rules {
    /* Calling a GLOBAL with a TUPLE. */
    psld_status (*call)(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result);
    /* A reference to something outside of the pickle. */
    psld_status (*refer)(psld_pickle *pickle, psld_value *id, psld_value **result);
    /* Sets the state of a value that is not a dict; NULL: the state is ignored. */
    psld_status (*build)(psld_pickle *pickle, psld_value *to, const psld_value *state);
} psld_pickle_rules;

psld_status psld_pickle_create(const psld_pickle_rules *rules, void *user, psld_pickle **pickle);
/* Frees all values that it gave. */
void psld_pickle_free(psld_pickle *pickle);

/* Runs the pickle at the beginning of the bytes, which must outlive the values; *used is its length. `origin`
 * (borrowed until the next run) names the bytes in messages; `base` is added to byte offsets in them. */
psld_status psld_pickle_load(psld_pickle *pickle, const char *origin, const void *bytes, size_t size, size_t base,
                             psld_value **value, size_t *used);

/* The value of a dict under a text (or bytes); NULL if it is not a dict or has no such key. */
psld_value *psld_value_get(const psld_value *dict, const char *key);
/* Whether a TEXT, BYTES, GLOBAL or OPAQUE value has this text. */
int psld_value_is(const psld_value *value, const char *text);

/* ---- For rules --------------------------------------------------------------------------------------------------- */

void *psld_pickle_user(const psld_pickle *pickle);
/* A new value of a kind, made at the current byte; and memory that lives as long as the values. NULL: out of memory,
 * or more than a pickle of this size may use, as the error text says; return psld_pickle_status then. */
psld_value *psld_pickle_value(psld_pickle *pickle, psld_value_kind kind);
void *psld_pickle_room(psld_pickle *pickle, size_t size);
psld_status psld_pickle_status(const psld_pickle *pickle);
psld_status psld_pickle_append(psld_pickle *pickle, psld_value *list, psld_value *item);
/* Fails with "<origin>: byte <offset>: <format>". */
psld_status psld_pickle_fail(const psld_pickle *pickle, size_t place, const char *format, ...) PSLD_PRINTF(3, 4);

#endif
