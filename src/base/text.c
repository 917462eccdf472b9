#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* Not isdigit and tolower: they ask the locale. */
static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

int psld_text_is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

psld_status psld_text_list_check(const char *what, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!list || !list[i])
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected %zu, found NULL at place %zu", what, count, i);
    return PSLD_OK;
}

int psld_text_same(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

int psld_text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);
    return length >= end && strcmp(text + length - end, ending) == 0;
}

static const char *skip_digits(const char *s)
{
    while (is_digit(*s)) s++;
    return s;
}

/* strtod takes more than a number here may be (space before it, hexadecimal, nan(...)), so look first. */
static int is_decimal(const char *s)
{
    const char *whole = skip_digits(s);
    const char *end = *whole == '.' ? skip_digits(whole + 1) : whole;
    if (!is_digit(*s) && !(s[0] == '.' && is_digit(s[1]))) return 0;
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end[1] == '+' || end[1] == '-' ? end + 2 : end + 1;
        if (!is_digit(*exponent)) return 0;
        end = skip_digits(exponent);
    }
    return *end == '\0';
}

/* The decimal point of strtod and printf is the locale's, which belongs to the application: this thread is switched to
 * "C" for a call. (libcs have that locale ready; making it does not allocate.) */
typedef struct locales {
    locale_t c, before;
} locales;

static int enter_c(locales *l)
{
    l->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (l->c) l->before = uselocale(l->c);
    return l->c != (locale_t)0;
}

static void leave_c(const locales *l)
{
    uselocale(l->before);
    freelocale(l->c);
}

static double decimal_value(const char *text)
{
    locales l;
    if (!enter_c(&l)) return (double)NAN;
    double value = strtod(text, NULL);
    leave_c(&l);
    return value;
}

int psld_text_number(const char *text, double *number)
{
    const char *s = *text == '+' || *text == '-' ? text + 1 : text;
    if (is_decimal(s)) {
        *number = decimal_value(text);
        return 1;
    }
    if (*s == '.') s++;
    if (psld_text_same(s, "inf") || psld_text_same(s, "infinity"))
        *number = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (psld_text_same(s, "nan"))
        *number = (double)NAN;
    else
        return 0;
    return 1;
}

int psld_text_integer(const char *text, int64_t *integer)
{
    const char *s = *text == '+' || *text == '-' ? text + 1 : text;
    if (!is_digit(*s)) return 0;
    int64_t value = 0; /* kept negative or zero: there is one more of those */
    for (; is_digit(*s); s++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, *s - '0', &value)) return 0;
    if (*s || (*text != '-' && value == INT64_MIN)) return 0;
    *integer = *text == '-' ? value : -value;
    return 1;
}

int psld_text_print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    locales l;
    if (!enter_c(&l)) return -1;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    leave_c(&l);
    return length;
}

size_t psld_text_utf8(const char *text, unsigned long *code)
{
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    *code = s[0];
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    *code &= 0x7fu >> length;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    int is_surrogate = (*code & ~0x7fful) == 0xd800;
    return *code < least[length] || *code > 0x10ffff || is_surrogate ? 0 : length;
}
