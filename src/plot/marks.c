/* What all marks have in common: colours, places on the page, and which file draws which kind. */
#include <math.h>

#include "plot/marks.h"

/* Okabe & Ito, "Color universal design" (2008), without yellow, which is faint on white, and with a darker purple. */
static const unsigned palette[] = {0x0072b2, 0xd55e00, 0x009e73, 0xb9609a, 0xe69f00, 0x56b4e9, 0x8c8c8c, 0x222222};

unsigned psld_mark_colour(const psld_mark *mark)
{
    enum { SIZE = sizeof palette / sizeof *palette };
    int index = mark->colour % SIZE;
    return palette[index < 0 ? index + SIZE : index];
}

void psld_colour_set(cairo_t *cr, unsigned rgb, double opacity)
{
    cairo_set_source_rgba(cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, opacity);
}

psld_box psld_box_larger(const psld_box *box, double by)
{
    return (psld_box){box->x0 - by, box->y0 - by, box->x1 + by, box->y1 + by};
}

/* Narrows [*from, *to] to the parts where start + part * change is in [lo, hi]; returns 0 if there are none. */
static int cut_segment(double start, double change, double lo, double hi, double *from, double *to)
{
    if (change == 0) return start >= lo && start <= hi;
    double a = (lo - start) / change, b = (hi - start) / change;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
    return *from <= *to;
}

/* Clipping by Liang and Barsky. */
int psld_segment_clip(const psld_box *box, point *a, point *b)
{
    double from = 0, to = 1, dx = b->x - a->x, dy = b->y - a->y;
    point start = *a;
    if (!cut_segment(a->x, dx, box->x0, box->x1, &from, &to) || !cut_segment(a->y, dy, box->y0, box->y1, &from, &to))
        return 0;
    if (from > 0) *a = (point){start.x + from * dx, start.y + from * dy};
    if (to < 1) *b = (point){start.x + to * dx, start.y + to * dy};
    return 1;
}

int psld_mark_position(const psld_mark *mark, size_t i, const psld_axis *x, const psld_axis *y, point *at)
{
    return psld_axis_place(x, mark->x[i], &at->x) && psld_axis_place(y, mark->y[i], &at->y);
}

psld_status psld_mark_draw(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                           const psld_box *frame)
{
    if (mark->kind == PSLD_MARK_CURVE) return psld_curve_draw(canvas->cr, mark, x, y, frame);
    if (mark->kind == PSLD_MARK_POINTS) return psld_points_draw(canvas->cr, mark, x, y, frame);
    return psld_density_draw(canvas, mark, x, y, frame);
}

double psld_mark_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box)
{
    double sum = 0;
    int connected = 0;
    point last = {0, 0}, at = {0, 0};
    if (mark->kind == PSLD_MARK_DENSITY) return psld_density_cover(mark, x, y, box);
    for (size_t i = 0; i < mark->count; i++) {
        int here = psld_mark_position(mark, i, x, y, &at);
        int line = mark->kind == PSLD_MARK_CURVE && connected;
        point a = line ? last : at, b = at;
        if (here && psld_segment_clip(box, &a, &b)) sum += line ? hypot(b.x - a.x, b.y - a.y) : 2 * mark->radius;
        connected = here;
        last = at;
    }
    return sum;
}

void psld_mark_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width)
{
    (mark->kind == PSLD_MARK_CURVE ? psld_curve_sample : psld_points_sample)(cr, mark, x, y, width);
}
