/* The graph of terms: every term is looked up in a hash table before it is made. */
#include "process/terms.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct psld_terms {
    psld_term_node *node;
    size_t count, capacity;
    psld_term *slot; /* [slots]: open addressing; -1: empty */
    size_t slots;    /* a power of two, at least twice the count */
    psld_status status;
};

static const struct {
    psld_term_kind kind;
    const char *name;
} functions[] = {{PSLD_TERM_SQRT, "sqrt"}, {PSLD_TERM_EXP, "exp"},   {PSLD_TERM_LOG, "log"},
                 {PSLD_TERM_SIN, "sin"},   {PSLD_TERM_COS, "cos"},   {PSLD_TERM_TANH, "tanh"},
                 {PSLD_TERM_ATAN, "atan"}, {PSLD_TERM_SINH, "sinh"}, {PSLD_TERM_COSH, "cosh"}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

psld_term_kind psld_term_function_named(const char *name)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0) return functions[i].kind;
    return PSLD_TERM_KINDS;
}

const char *psld_term_functions(void)
{
    return "sqrt, exp, log, sin, cos, tanh, atan, sinh, cosh";
}

int psld_term_may_be_named(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!*name || !strchr(letters, *name) || strlen(name) > 32) return 0;
    for (const char *at = name; *at; at++)
        if (!strchr(letters, *at) && !(*at >= '0' && *at <= '9')) return 0;
    return strcmp(name, "pi") != 0 && psld_term_function_named(name) == PSLD_TERM_KINDS;
}

double psld_term_value(psld_term_kind kind, double a, double b)
{
    switch (kind) {
    case PSLD_TERM_ADD:
        return a + b;
    case PSLD_TERM_SUBTRACT:
        return a - b;
    case PSLD_TERM_MULTIPLY:
        return a * b;
    case PSLD_TERM_DIVIDE:
        return a / b;
    case PSLD_TERM_POWER:
        return pow(a, b);
    case PSLD_TERM_SQRT:
        return sqrt(a);
    case PSLD_TERM_EXP:
        return exp(a);
    case PSLD_TERM_LOG:
        return log(a);
    case PSLD_TERM_SIN:
        return sin(a);
    case PSLD_TERM_COS:
        return cos(a);
    case PSLD_TERM_TANH:
        return tanh(a);
    case PSLD_TERM_ATAN:
        return atan(a);
    case PSLD_TERM_SINH:
        return sinh(a);
    case PSLD_TERM_COSH:
        return cosh(a);
    default:
        return (double)NAN;
    }
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static size_t hash_of(const psld_term_node *node)
{
    uint64_t bits, h;
    memcpy(&bits, &node->number, sizeof bits);
    h = (uint64_t)node->kind * UINT64_C(0x9e3779b97f4a7c15) ^
        (uint64_t)(uint32_t)node->a * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 29)) * UINT64_C(0x94d049bb133111eb) ^ (uint64_t)(uint32_t)node->b ^ bits;
    h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(h ^ (h >> 32));
}

static int same_node(const psld_term_node *a, const psld_term_node *b)
{
    return a->kind == b->kind && a->a == b->a && a->b == b->b && memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

/* The slot that has the node, or the empty one where it belongs. */
static psld_term *find_slot(psld_term *slot, size_t slots, const psld_term_node *nodes, const psld_term_node *node)
{
    size_t at = hash_of(node) & (slots - 1);
    while (slot[at] >= 0 && !same_node(&nodes[slot[at]], node)) at = (at + 1) & (slots - 1);
    return &slot[at];
}

static psld_status grow_slots(psld_terms *terms)
{
    size_t slots = terms->slots ? 2 * terms->slots : 256;
    psld_term *slot = psld_alloc(slots, sizeof *slot);
    if (!slot) return PSLD_NO_MEMORY;
    memset(slot, 0xff, slots * sizeof *slot);
    for (size_t i = 0; i < terms->count; i++) *find_slot(slot, slots, terms->node, &terms->node[i]) = (psld_term)i;
    psld_release(terms->slot);
    terms->slot = slot;
    terms->slots = slots;
    return PSLD_OK;
}

static psld_status make_room(psld_terms *terms)
{
    if (terms->count == PSLD_TERMS_MOST)
        return psld_fail(PSLD_BAD_INPUT, "the formulas are too large: more than %d terms with their derivatives",
                         PSLD_TERMS_MOST);
    if (2 * (terms->count + 1) > terms->slots) PSLD_TRY(grow_slots(terms));
    return psld_grow((void **)&terms->node, &terms->capacity, terms->count + 1, sizeof *terms->node);
}

/* The term of a node: that which is there, or a new one. */
static psld_term term_of(psld_terms *terms, psld_term_kind kind, psld_term a, psld_term b, double number)
{
    psld_term_node node;
    memset(&node, 0, sizeof node);
    node.kind = kind;
    node.a = a;
    node.b = b;
    node.number = number;
    if (terms->status != PSLD_OK) return 0;
    psld_term *slot = find_slot(terms->slot, terms->slots, terms->node, &node);
    if (*slot >= 0) return *slot;
    terms->status = make_room(terms);
    if (terms->status != PSLD_OK) return 0;
    slot = find_slot(terms->slot, terms->slots, terms->node, &node);
    terms->node[terms->count] = node;
    return *slot = (psld_term)terms->count++;
}

psld_status psld_terms_create(psld_terms **terms)
{
    *terms = NULL;
    psld_terms *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = grow_slots(made);
    if (status == PSLD_OK) {
        psld_term_number(made, 0);
        status = made->status;
    }
    if (status != PSLD_OK) {
        psld_terms_free(made);
        return status;
    }
    *terms = made;
    return PSLD_OK;
}

void psld_terms_free(psld_terms *terms)
{
    if (!terms) return;
    psld_release(terms->node);
    psld_release(terms->slot);
    psld_release(terms);
}

psld_status psld_terms_status(const psld_terms *terms)
{
    return terms->status;
}

int psld_terms_count(const psld_terms *terms)
{
    return (int)terms->count;
}

const psld_term_node *psld_terms_node(const psld_terms *terms, psld_term term)
{
    return &terms->node[term];
}

/* ---- Making terms ------------------------------------------------------------------------------------------------ */

psld_term psld_term_number(psld_terms *terms, double number)
{
    if (!isfinite(number) && terms->status == PSLD_OK)
        terms->status = psld_fail(PSLD_BAD_INPUT, "a number in it is not finite");
    return term_of(terms, PSLD_TERM_NUMBER, 0, 0, number == 0 ? 0 : number);
}

psld_term psld_term_variable(psld_terms *terms, int variable)
{
    return term_of(terms, PSLD_TERM_VARIABLE, variable, 0, 0);
}

static int is_number(const psld_terms *terms, psld_term term)
{
    return terms->node[term].kind == PSLD_TERM_NUMBER;
}

static int is_one(const psld_terms *terms, psld_term term)
{
    return is_number(terms, term) && terms->node[term].number == 1;
}

/* The value of a kind for two terms that are numbers. */
static psld_term fold_numbers(psld_terms *terms, psld_term_kind kind, psld_term a, psld_term b)
{
    double x = terms->node[a].number, y = terms->node[b].number, value = psld_term_value(kind, x, y);
    if (!isfinite(value) && terms->status == PSLD_OK) {
        terms->status = kind == PSLD_TERM_DIVIDE && y == 0
                            ? psld_fail(PSLD_BAD_INPUT, "it divides by zero")
                            : psld_fail(PSLD_BAD_INPUT, "a constant part of it is not a finite number");
        return 0;
    }
    return psld_term_number(terms, value);
}

psld_term psld_term_add(psld_terms *terms, psld_term a, psld_term b)
{
    if (terms->status != PSLD_OK) return 0;
    if (is_number(terms, a) && is_number(terms, b)) return fold_numbers(terms, PSLD_TERM_ADD, a, b);
    if (a == 0 || b == 0) return a == 0 ? b : a;
    return a < b ? term_of(terms, PSLD_TERM_ADD, a, b, 0) : term_of(terms, PSLD_TERM_ADD, b, a, 0);
}

psld_term psld_term_subtract(psld_terms *terms, psld_term a, psld_term b)
{
    if (terms->status != PSLD_OK || a == b) return 0;
    if (is_number(terms, a) && is_number(terms, b)) return fold_numbers(terms, PSLD_TERM_SUBTRACT, a, b);
    if (b == 0) return a;
    return a == 0 ? psld_term_multiply(terms, psld_term_number(terms, -1), b)
                  : term_of(terms, PSLD_TERM_SUBTRACT, a, b, 0);
}

/* A number times (a number times something) is one product. */
static psld_term scale_term(psld_terms *terms, psld_term number, psld_term b)
{
    const psld_term_node node = terms->node[b]; /* a copy: new terms move the table */
    if (node.kind == PSLD_TERM_MULTIPLY && is_number(terms, node.a))
        return psld_term_multiply(terms, fold_numbers(terms, PSLD_TERM_MULTIPLY, number, node.a), node.b);
    return term_of(terms, PSLD_TERM_MULTIPLY, number, b, 0);
}

psld_term psld_term_multiply(psld_terms *terms, psld_term a, psld_term b)
{
    if (terms->status != PSLD_OK || a == 0 || b == 0) return 0;
    if (is_number(terms, a) && is_number(terms, b)) return fold_numbers(terms, PSLD_TERM_MULTIPLY, a, b);
    if (is_one(terms, a) || is_one(terms, b)) return is_one(terms, a) ? b : a;
    if (is_number(terms, a)) return scale_term(terms, a, b);
    if (is_number(terms, b)) return scale_term(terms, b, a);
    return a < b ? term_of(terms, PSLD_TERM_MULTIPLY, a, b, 0) : term_of(terms, PSLD_TERM_MULTIPLY, b, a, 0);
}

psld_term psld_term_divide(psld_terms *terms, psld_term a, psld_term b)
{
    if (terms->status != PSLD_OK) return 0;
    if (is_number(terms, b) && (b == 0 || is_number(terms, a))) return fold_numbers(terms, PSLD_TERM_DIVIDE, a, b);
    if (a == 0 || is_one(terms, b)) return a;
    return a == b ? psld_term_number(terms, 1) : term_of(terms, PSLD_TERM_DIVIDE, a, b, 0);
}

enum { MOST_REPEATED = 64 };

psld_term psld_term_power(psld_terms *terms, psld_term a, psld_term b)
{
    if (terms->status != PSLD_OK) return 0;
    if (is_number(terms, b)) {
        double power = terms->node[b].number;
        if (power == 0) return psld_term_number(terms, 1);
        if (power == 1) return a;
        if (is_number(terms, a)) return fold_numbers(terms, PSLD_TERM_POWER, a, b);
        if (power < 0)
            return psld_term_divide(terms, psld_term_number(terms, 1),
                                    psld_term_power(terms, a, psld_term_number(terms, -power)));
        if (power <= MOST_REPEATED && power == floor(power))
            return term_of(terms, PSLD_TERM_REPEATED, a, (int)power, 0);
    }
    return term_of(terms, PSLD_TERM_POWER, a, b, 0);
}

psld_term psld_term_function(psld_terms *terms, psld_term_kind kind, psld_term a)
{
    if (terms->status != PSLD_OK) return 0;
    return is_number(terms, a) ? fold_numbers(terms, kind, a, 0) : term_of(terms, kind, a, 0, 0);
}
