#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
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

int psld_text_same(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
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

/* The decimal point of strtod is the locale's, which belongs to the application: switch this thread to "C"
 * for the call. (libcs have that locale ready; making it does not allocate.) */
static double decimal_value(const char *text)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return (double)NAN;
    locale_t before = uselocale(c_locale);
    double value = strtod(text, NULL);
    uselocale(before);
    freelocale(c_locale);
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
