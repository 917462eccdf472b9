#include "base/text.h"
#include "base/alloc.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* isdigit and tolower depend on the locale. */
static int is_decimal_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int ascii_lower(char c)
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
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected %zu, found NULL at index %zu", what, count, i);
    return PSLD_OK;
}

int psld_text_same(const char *a, const char *b)
{
    while (*a && ascii_lower(*a) == ascii_lower(*b)) {
        a++;
        b++;
    }
    return ascii_lower(*a) == ascii_lower(*b);
}

int psld_text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);
    return length >= end && strcmp(text + length - end, ending) == 0;
}

static const char *skip_digits(const char *s)
{
    while (is_decimal_digit(*s)) s++;
    return s;
}

/* strtod accepts more than we call a number (leading space, hexadecimal, nan(...)), so the text is checked first. */
static int is_decimal(const char *s)
{
    const char *whole = skip_digits(s);
    const char *end = *whole == '.' ? skip_digits(whole + 1) : whole;
    if (!is_decimal_digit(*s) && !(s[0] == '.' && is_decimal_digit(s[1]))) return 0;
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end[1] == '+' || end[1] == '-' ? end + 2 : end + 1;
        if (!is_decimal_digit(*exponent)) return 0;
        end = skip_digits(exponent);
    }
    return *end == '\0';
}

/* strtod and printf use the decimal point of the locale, which belongs to the application. So this thread is
 * switched to the "C" locale during a call. (C libraries have that locale ready; making it does not allocate.) */
typedef struct locales {
    locale_t c, before;
} locales;

static int enter_c_locale(locales *l)
{
    l->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (l->c) l->before = uselocale(l->c);
    return l->c != (locale_t)0;
}

static void leave_c_locale(const locales *l)
{
    uselocale(l->before);
    freelocale(l->c);
}

static double decimal_value(const char *text)
{
    locales l;
    if (!enter_c_locale(&l)) return (double)NAN;
    double value = strtod(text, NULL);
    leave_c_locale(&l);
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
    if (!is_decimal_digit(*s)) return 0;
    int64_t value = 0; /* kept at or below zero, because INT64_MIN has no positive counterpart */
    for (; is_decimal_digit(*s); s++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, *s - '0', &value)) return 0;
    if (*s || (*text != '-' && value == INT64_MIN)) return 0;
    *integer = *text == '-' ? value : -value;
    return 1;
}

int psld_text_print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    locales l;
    if (!enter_c_locale(&l)) return -1;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    leave_c_locale(&l);
    return length;
}

/* Removes '+' and leading zeros from the exponent: 1e-05 becomes 1e-5. */
static void shorten_exponent(char *text)
{
    char *from = strchr(text, 'e');
    if (!from) return;
    char *to = ++from;
    if (*from == '-') to++;
    from += *from == '-' || *from == '+';
    while (from[0] == '0' && from[1]) from++;
    memmove(to, from, strlen(from) + 1);
}

const char *psld_text_shortest(double number, char text[PSLD_NUMBER_SIZE])
{
    enum { MAX_DIGITS = 17, LONGEST_WHOLE = 15 };
    int digits = 0;
    double again = 0;
    do psld_text_print(text, PSLD_NUMBER_SIZE, "%.*e", digits, number);
    while (psld_text_number(text, &again) && again != number && ++digits < MAX_DIGITS);
    if (!isfinite(number)) return text;
    const char *e = strchr(text, 'e');
    int exponent = e ? atoi(e + 1) : 0, enough = digits + 1;
    /* %g writes a number without exponent if its precision covers all digits before the point. */
    if (exponent >= enough && exponent < LONGEST_WHOLE) enough = exponent + 1;
    psld_text_print(text, PSLD_NUMBER_SIZE, "%.*g", enough, number);
    shorten_exponent(text);
    return text;
}

/* ---- Suggestions: "did you mean ...?"
 * ------------------------------------------------------------------------------- */

enum { LONGEST_WORD = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The edit distance with transpositions: letters to add, drop, change or exchange with their neighbour. */
static size_t edit_distance(const char *a, size_t m, const char *b, size_t n)
{
    size_t rows[3][LONGEST_WORD + 1]; /* row i of the distance table and the two before it, in turn */
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            int same = ascii_lower(a[i - 1]) == ascii_lower(b[j - 1]);
            now[j] = smaller(smaller(before[j], now[j - 1]) + 1, before[j - 1] + !same);
            int exchanged = i > 1 && j > 1 && ascii_lower(a[i - 1]) == ascii_lower(b[j - 2]) &&
                            ascii_lower(a[i - 2]) == ascii_lower(b[j - 1]);
            if (exchanged) now[j] = smaller(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

/* Edit distance of a word that may have been meant; SIZE_MAX: too far away. Up to a third of the letters may be
 * wrong, or the end of the word may be missing. */
static size_t suggestion_distance(const char *word, const char *other, size_t n)
{
    size_t m = strlen(word), most = smaller(m, n) / 3;
    if (m == 0 || m > LONGEST_WORD || n > LONGEST_WORD) return SIZE_MAX;
    size_t far = edit_distance(word, m, other, n);
    if (far <= (most ? most : 1) && far < smaller(m, n)) return far;
    return m >= 3 && n > m && strncmp(word, other, m) == 0 ? LONGEST_WORD + n : SIZE_MAX;
}

const char *psld_text_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t far = suggestion_distance(word, words[i], strlen(words[i]));
        if (far < best) best = far, nearest = words[i];
    }
    return nearest;
}

static const char *write_suggestion(const char *word, size_t length, char text[PSLD_SUGGESTION_SIZE])
{
    text[0] = 0;
    if (word) snprintf(text, PSLD_SUGGESTION_SIZE, ": did you mean \"%.*s\"?", (int)length, word);
    return text;
}

const char *psld_text_suggest(const char *word, const char *const *words, size_t count, char text[PSLD_SUGGESTION_SIZE])
{
    const char *nearest = psld_text_nearest(word, words, count);
    return write_suggestion(nearest, nearest ? strlen(nearest) : 0, text);
}

static const char *next_choice(const char *words)
{
    const char *bar = strchr(words, '|');
    return bar ? bar + 1 : NULL;
}

const char *psld_text_suggest_from(const char *word, const char *words, char text[PSLD_SUGGESTION_SIZE])
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX, length = 0;
    for (const char *at = words; at; at = next_choice(at)) {
        size_t n = strcspn(at, "|"), far = suggestion_distance(word, at, n);
        if (far < best) best = far, nearest = at, length = n;
    }
    return write_suggestion(nearest, length, text);
}

int psld_text_choice(const char *word, const char *words)
{
    int position = 0;
    for (const char *at = words; at; at = next_choice(at), position++) {
        char one[LONGEST_WORD + 1];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(at, "|"), at);
        if (psld_text_same(word, one)) return position;
    }
    return -1;
}

const char *psld_text_choices(const char *words, char text[PSLD_CHOICES_SIZE])
{
    static const char rest[] = ", ...";
    text[0] = 0;
    for (const char *at = words; at; at = next_choice(at)) {
        size_t used = strlen(text), length = strcspn(at, "|");
        const char *between = at == words ? "" : next_choice(at) ? ", " : " or ";
        if (used + strlen(between) + length + sizeof rest > PSLD_CHOICES_SIZE) {
            memcpy(text + used, rest, sizeof rest);
            break;
        }
        snprintf(text + used, PSLD_CHOICES_SIZE - used, "%s%.*s", between, (int)length, at);
    }
    return text;
}

psld_status psld_text_fail_choice(psld_status status, const char *what, const char *word, const char *const *words,
                                  size_t count)
{
    char names[512] = "", suggestion[PSLD_SUGGESTION_SIZE];
    if (!word) word = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", words[i]);
    }
    return psld_fail(status, "%s: expected one of %s, found \"%s\"%s", what, names, word,
                     psld_text_suggest(word, words, count, suggestion));
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

void psld_text_free(char *text)
{
    psld_release(text);
}
