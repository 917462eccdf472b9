/* From text to terms, by recursive descent:
 *     sum = product { (+ | -) product }
 *     product = signed { (* | /) signed }
 *     signed = (+ | -) signed | power
 *     power = atom [ ^ signed ]
 *     atom = number | name | function ( sum ) | ( sum ) */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "process/terms.h"

typedef struct parser {
    psld_terms *terms;
    const psld_term_names *names;
    const char *text, *at;
    int depth;
} parser;

static psld_status parse_sum(parser *p, psld_term *term);
static psld_status parse_signed(parser *p, psld_term *term);

static void skip_blanks(parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

/* Takes a character if it is the next one. */
static int accept(parser *p, char wanted)
{
    skip_blanks(p);
    if (*p->at != wanted) return 0;
    p->at++;
    return 1;
}

static psld_status fail_at(const parser *p, const char *wanted)
{
    char found[4] = {'"', *p->at, '"', 0};
    int printable = *p->at > ' ' && *p->at < 127;
    return psld_fail(PSLD_BAD_INPUT, "expected %s at character %d, found %s", wanted, (int)(p->at - p->text) + 1,
                     !*p->at     ? "the end"
                     : printable ? found
                                 : "a character that cannot be in a formula");
}

static psld_status deeper(parser *p)
{
    if (++p->depth <= PSLD_TERMS_DEPTH) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "it is nested more than %d deep at character %d", PSLD_TERMS_DEPTH,
                     (int)(p->at - p->text) + 1);
}

static psld_status parse_number(parser *p, psld_term *term)
{
    char digits[64];
    const char *end = p->at + strspn(p->at, "0123456789.");
    double number;
    if (*end == 'e' || *end == 'E') {
        const char *power = end + 1 + (end[1] == '+' || end[1] == '-');
        size_t count = strspn(power, "0123456789");
        if (count) end = power + count;
    }
    size_t length = (size_t)(end - p->at);
    if (length >= sizeof digits) return fail_at(p, "a number of less than 64 characters");
    memcpy(digits, p->at, length);
    digits[length] = 0;
    if (!psld_text_number(digits, &number) || !isfinite(number)) return fail_at(p, "a finite number");
    p->at = end;
    *term = psld_term_number(p->terms, number);
    return PSLD_OK;
}

enum { NAME_SIZE = 40 };

static psld_status fail_name(const parser *p, const char *name, size_t length)
{
    const char *known[64];
    char text[PSLD_SUGGESTION_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < p->names->variable_count && count < 64; i++) known[count++] = p->names->variables[i];
    for (size_t i = 0; i < p->names->constant_count && count < 64; i++) known[count++] = p->names->constants[i];
    psld_text_suggest(name, known, count, text);
    return psld_fail(PSLD_BAD_INPUT,
                     "\"%s\" at character %d is no variable or constant of this recipe, and no function (%s)%s", name,
                     (int)(p->at - p->text - (ptrdiff_t)length) + 1, psld_term_functions(), text);
}

static psld_status parse_argument(parser *p, psld_term_kind kind, psld_term *term)
{
    psld_term inner;
    if (!accept(p, '(')) return fail_at(p, "\"(\" after the name of a function");
    PSLD_TRY(parse_sum(p, &inner));
    if (!accept(p, ')')) return fail_at(p, "\")\"");
    *term = psld_term_function(p->terms, kind, inner);
    return PSLD_OK;
}

static psld_status parse_name(parser *p, psld_term *term)
{
    char name[NAME_SIZE];
    size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    const psld_term_names *names = p->names;
    if (length >= sizeof name) return fail_at(p, "a name of less than 40 characters");
    memcpy(name, p->at, length);
    name[length] = 0;
    p->at += length;
    psld_term_kind kind = psld_term_function_named(name);
    if (kind != PSLD_TERM_KINDS) return parse_argument(p, kind, term);
    for (size_t i = 0; i < names->variable_count; i++)
        if (strcmp(names->variables[i], name) == 0) {
            *term = psld_term_variable(p->terms, names->indices ? names->indices[i] : (int)i);
            return PSLD_OK;
        }
    for (size_t i = 0; i < names->constant_count; i++)
        if (strcmp(names->constants[i], name) == 0) {
            *term = psld_term_number(p->terms, names->values[i]);
            return PSLD_OK;
        }
    if (strcmp(name, "pi") != 0) return fail_name(p, name, length);
    *term = psld_term_number(p->terms, acos(-1));
    return PSLD_OK;
}

static psld_status parse_atom(parser *p, psld_term *term)
{
    skip_blanks(p);
    char c = *p->at;
    if ((c >= '0' && c <= '9') || c == '.') return parse_number(p, term);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return parse_name(p, term);
    if (!accept(p, '(')) return fail_at(p, "a number, a name or \"(\"");
    PSLD_TRY(parse_sum(p, term));
    return accept(p, ')') ? PSLD_OK : fail_at(p, "\")\"");
}

static psld_status parse_power(parser *p, psld_term *term)
{
    psld_term power;
    PSLD_TRY(parse_atom(p, term));
    if (!accept(p, '^')) return PSLD_OK;
    PSLD_TRY(parse_signed(p, &power));
    *term = psld_term_power(p->terms, *term, power);
    return PSLD_OK;
}

static psld_status parse_signed(parser *p, psld_term *term)
{
    PSLD_TRY(deeper(p));
    if (accept(p, '-')) {
        PSLD_TRY(parse_signed(p, term));
        *term = psld_term_subtract(p->terms, 0, *term);
    } else {
        PSLD_TRY(accept(p, '+') ? parse_signed(p, term) : parse_power(p, term));
    }
    p->depth--;
    return PSLD_OK;
}

static psld_status parse_product(parser *p, psld_term *term)
{
    psld_term next;
    PSLD_TRY(parse_signed(p, term));
    for (;;) {
        int times = accept(p, '*');
        if (!times && !accept(p, '/')) return PSLD_OK;
        PSLD_TRY(parse_signed(p, &next));
        *term = times ? psld_term_multiply(p->terms, *term, next) : psld_term_divide(p->terms, *term, next);
    }
}

static psld_status parse_sum(parser *p, psld_term *term)
{
    psld_term next;
    PSLD_TRY(parse_product(p, term));
    for (;;) {
        int plus = accept(p, '+');
        if (!plus && !accept(p, '-')) return PSLD_OK;
        PSLD_TRY(parse_product(p, &next));
        *term = plus ? psld_term_add(p->terms, *term, next) : psld_term_subtract(p->terms, *term, next);
    }
}

psld_status psld_terms_parse(psld_terms *terms, const char *text, const psld_term_names *names, psld_term *term)
{
    parser p = {terms, names, text, text, 0};
    *term = 0;
    if (strlen(text) > PSLD_TERMS_LENGTH)
        return psld_fail(PSLD_BAD_INPUT, "it has more than %d characters", PSLD_TERMS_LENGTH);
    PSLD_TRY(parse_sum(&p, term));
    skip_blanks(&p);
    if (*p.at) return fail_at(&p, "an operator or the end");
    return psld_terms_status(terms);
}
