/* Text on the page, with raised and lowered parts. */
#include <math.h>
#include <string.h>

#include "plot/page.h"

static void set_font(cairo_t *cr, double size, int bold)
{
    cairo_select_font_face(cr, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, size);
}

/* Copies bytes up to `end`, as many as fit without splitting a character; returns their number. */
static size_t copy_drawable_part(const char *text, const char *end, char *piece, size_t room)
{
    size_t n = (size_t)(end - text);
    if (n > room - 1)
        for (n = room - 1; n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
    memcpy(piece, text, n);
    piece[n] = 0;
    return n;
}

/* Where the part that begins at `text` ends: a script is ^{...} or _{...}, anything else is plain. */
static const char *part_end(const char *text, int script)
{
    if (script) return strchr(text, '}');
    const char *s = text + 1;
    while (*s && !((*s == '^' || *s == '_') && s[1] == '{' && strchr(s, '}'))) s++;
    return s;
}

static double draw_text_part(cairo_t *cr, const char *piece, int show)
{
    cairo_text_extents_t extents;
    cairo_text_extents(cr, piece, &extents);
    if (show) cairo_show_text(cr, piece);
    return extents.x_advance;
}

/* Width of a text with scripts. Also draws it from the current point on, if asked to. */
static double show_text(cairo_t *cr, const char *text, double size, int bold, int show)
{
    double advance = 0;
    while (*text) {
        int script = (*text == '^' || *text == '_') && text[1] == '{' && strchr(text, '}');
        double shift = !script ? 0 : *text == '^' ? -0.36 * size : 0.16 * size;
        const char *end = part_end(text, script);
        if (script) text += 2;
        set_font(cr, script ? 0.72 * size : size, bold);
        if (show) cairo_rel_move_to(cr, 0, shift);
        if (script && *text == '-') { /* an exponent: a minus sign is longer than a hyphen */
            advance += draw_text_part(cr, "\xe2\x88\x92", show);
            text++;
        }
        while (text < end) {
            char piece[256];
            text += copy_drawable_part(text, end, piece, sizeof piece);
            advance += draw_text_part(cr, piece, show);
        }
        if (show) cairo_rel_move_to(cr, 0, -shift);
        if (script) text++;
    }
    return advance;
}

double psld_text_width(cairo_t *cr, const char *text, double size)
{
    return show_text(cr, text, size, 0, 0);
}

void psld_text_draw(cairo_t *cr, const char *text, double x, double y, double align, double size, int bold, double room)
{
    double width = show_text(cr, text, size, bold, 0);
    if (width > room) {
        size *= fmax(room / width, 0.5);
        width = show_text(cr, text, size, bold, 0);
    }
    cairo_move_to(cr, x - align * width, y);
    show_text(cr, text, size, bold, 1);
    cairo_new_path(cr);
}

double psld_text_half_height(double size)
{
    return 0.365 * size;
}
