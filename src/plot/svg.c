/* Tidies the SVG that cairo writes.
 *
 * cairo names the objects of a file by counters of the process, so that the second picture differs from the first, and
 * writes coordinates with six decimals. Here objects become a0, a1, ... in the order in which they appear, so that
 * equal figures are equal files, and the numbers of paths lose what is beyond a hundredth of a point, which makes files
 * a third smaller. Everything else is copied as it is: this code reads the few forms that cairo writes, and leaves all
 * others unchanged. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "plot/figure_private.h"

enum { DECIMALS = 2 };

void psld_bytes_put(psld_bytes *to, const void *data, size_t size)
{
    void *block = to->data;
    if (to->status != PSLD_OK) return;
    to->status = psld_grow(&block, &to->capacity, to->size + size, 1);
    to->data = block;
    if (to->status != PSLD_OK) return;
    if (size) memcpy(to->data + to->size, data, size);
    to->size += size;
}

static int is_svg_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_name(char c)
{
    return is_svg_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* Whether `word` stands just before s, in a text that begins at `begin`. */
static int is_preceded_by(const char *begin, const char *s, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(s - begin) >= length && memcmp(s - length, word, length) == 0;
}

typedef struct name {
    const char *start;
    size_t length;
} name;

typedef struct names {
    void *list; /* name [count] */
    size_t count, capacity;
} names;

/* Writes the new name of the object whose old name is at s; returns where the old name ends. */
static const char *copy_svg_name(const char *s, const char *end, names *known, psld_bytes *out)
{
    name found = {s, 0};
    while (s < end && is_name(*s)) s++;
    found.length = (size_t)(s - found.start);
    const name *list = known->list;
    size_t i = 0;
    while (i < known->count &&
           (list[i].length != found.length || memcmp(list[i].start, found.start, found.length) != 0))
        i++;
    if (i == known->count) {
        psld_status status = psld_grow(&known->list, &known->capacity, i + 1, sizeof found);
        if (status != PSLD_OK) {
            out->status = status;
            return end;
        }
        ((name *)known->list)[known->count++] = found;
    }
    char text[24];
    psld_bytes_put(out, text, (size_t)snprintf(text, sizeof text, "a%zu", i));
    return s;
}

/* Writes the data of a path up to its closing quote with fewer decimals; returns where the quote is. */
static const char *copy_svg_path(const char *s, const char *end, psld_bytes *out)
{
    const char *copied = s;
    while (s < end && *s != '"') {
        if (*s++ != '.') continue;
        const char *digits = s;
        while (s < end && is_svg_digit(*s)) s++;
        const char *kept = s - digits > DECIMALS ? digits + DECIMALS : s;
        while (kept > digits && kept[-1] == '0') kept--;
        if (kept == digits) kept--; /* the point itself */
        psld_bytes_put(out, copied, (size_t)(kept - copied));
        copied = s;
    }
    psld_bytes_put(out, copied, (size_t)(s - copied));
    return s;
}

psld_status psld_svg_tidy(const psld_bytes *svg, psld_bytes *out)
{
    names known = {0};
    const char *begin = svg->data, *end = begin + svg->size, *copied = begin, *s = begin;
    while (s < end && out->status == PSLD_OK) {
        char c = *s++;
        if (c != '"' && c != '#') continue;
        int path = is_preceded_by(begin, s, " d=\"");
        if (!path && !is_preceded_by(begin, s, " id=\"") && !is_preceded_by(begin, s, "href=\"#") &&
            !is_preceded_by(begin, s, "url(#"))
            continue;
        psld_bytes_put(out, copied, (size_t)(s - copied));
        copied = s = path ? copy_svg_path(s, end, out) : copy_svg_name(s, end, &known, out);
    }
    psld_bytes_put(out, copied, (size_t)(end - copied));
    psld_release(known.list);
    return out->status;
}
