/* Curves.
 *
 * Segments are cut at a box a little larger than the frame before cairo sees them (its coordinates are 24.8 fixed point).
 * Then two passes leave out what cannot be seen. `straighten` drops points that are within 0.05 points of the line drawn
 * without them. `squeeze_points` replaces many points in one column of a quarter of a point by the first, the lowest, the
 * highest and the last. A smooth curve never gets more than a few points into such a column after the first pass, so only
 * noise is squeezed. */
#include <math.h>

#include "base/alloc.h"
#include "plot/marks.h"

static const double line_width = 1.4;
static const double tolerance = 0.05, column_width = 0.25; /* points */

/* Drops points that lie on the line between their neighbours; returns how many are left. From the last point kept,
 * the directions in which a line passes all points since then within the tolerance form a cone; a point that leaves
 * it, or turns back, makes its predecessor the next one to keep. */
static size_t straighten(point *p, size_t count)
{
    size_t kept = 1;
    if (count < 2) return count;
    point axis = {0, 0}; /* unit vector, the middle of the cone at its start; 0: all points so far are at p[kept-1] */
    double lo = 0, hi = 0, reach = 0;
    for (size_t i = 1; i < count; i++) {
        point d = {p[i].x - p[kept - 1].x, p[i].y - p[kept - 1].y};
        double length = hypot(d.x, d.y);
        if (axis.x == 0 && axis.y == 0 && length <= tolerance) continue;
        double angle = atan2(axis.x * d.y - axis.y * d.x, axis.x * d.x + axis.y * d.y);
        if ((axis.x != 0 || axis.y != 0) && (angle < lo || angle > hi || length < reach - tolerance)) {
            p[kept++] = p[i - 1];
            axis = (point){0, 0};
            reach = 0;
            i--; /* the same again, seen from the point just kept */
            continue;
        }
        double slack = asin(fmin(tolerance / length, 1));
        if (axis.x == 0 && axis.y == 0) {
            axis = (point){d.x / length, d.y / length};
            lo = -slack;
            hi = slack;
        } else {
            lo = fmax(lo, angle - slack);
            hi = fmin(hi, angle + slack);
        }
        reach = fmax(reach, length);
    }
    p[kept++] = p[count - 1];
    return kept;
}

/* Replaces many successive points of one column by at most four; returns how many are left. */
static size_t squeeze_points(point *p, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0, next; i < count; i = next) {
        size_t low = i, high = i;
        double column = floor(p[i].x / column_width);
        for (next = i; next < count && floor(p[next].x / column_width) == column; next++) {
            if (p[next].y < p[low].y) low = next;
            if (p[next].y > p[high].y) high = next;
        }
        const size_t chosen[4] = {i, low < high ? low : high, low < high ? high : low, next - 1};
        if (next - i <= 4) {
            for (size_t j = i; j < next; j++) p[kept++] = p[j];
            continue;
        }
        /* Both indices grow and kept <= i, so nothing is overwritten before it is read. */
        for (int j = 0; j < 4; j++)
            if (j == 0 || chosen[j] != chosen[j - 1]) p[kept++] = p[chosen[j]];
    }
    return kept;
}

/* Adds a run of connected points to the path. A single one becomes a dot. */
static void add_run(cairo_t *cr, point *p, size_t count)
{
    if (count == 0) return;
    count = squeeze_points(p, straighten(p, count));
    cairo_move_to(cr, p[0].x, p[0].y);
    for (size_t i = 1; i < count; i++) cairo_line_to(cr, p[i].x, p[i].y);
}

static void set_dash(cairo_t *cr, psld_dash dash)
{
    static const double dashed[] = {4.5, 2.5}, dotted[] = {0, 2.6};
    cairo_set_line_width(cr, dash == PSLD_DOTTED ? 1.1 * line_width : line_width);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cr, dash == PSLD_DASHED ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
    cairo_set_dash(cr, dash == PSLD_DOTTED ? dotted : dashed, dash == PSLD_SOLID ? 0 : 2, 0);
}

psld_status psld_curve_draw(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                            const psld_box *frame)
{
    /* A run holds at most both ends of every segment; +1 for a point alone. */
    point *run = psld_alloc(mark->count + 1, 2 * sizeof *run);
    if (!run) return PSLD_NO_MEMORY;
    psld_box box = psld_box_larger(frame, 4 * line_width);
    point last = {0, 0}, at = {0, 0};
    size_t length = 0;
    int connected = 0;
    for (size_t i = 0; i < mark->count; i++) {
        if (!psld_mark_position(mark, i, x, y, &at)) {
            connected = 0;
            continue;
        }
        point a = connected ? last : at, b = at;
        last = at;
        if (!psld_segment_clip(&box, &a, &b)) {
            connected = 1;
            continue;
        }
        int joined = connected && length > 0 && run[length - 1].x == a.x && run[length - 1].y == a.y;
        if (!joined) {
            add_run(cr, run, length);
            length = 0;
            run[length++] = a;
        }
        run[length++] = b;
        connected = 1;
    }
    add_run(cr, run, length);
    set_dash(cr, mark->dash);
    psld_colour_set(cr, psld_mark_colour(mark), 1);
    cairo_stroke(cr);
    psld_release(run);
    return PSLD_OK;
}

void psld_curve_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width)
{
    set_dash(cr, mark->dash);
    /* A round dot at the very end of a dotted line would stick out. */
    double inset = mark->dash == PSLD_DASHED ? 0 : line_width / 2;
    cairo_move_to(cr, x + inset, y);
    cairo_line_to(cr, x + width - inset, y);
    psld_colour_set(cr, psld_mark_colour(mark), 1);
    cairo_stroke(cr);
}
