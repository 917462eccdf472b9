/* The data of a panel: curves, points, density maps.
 *
 * Curves. Segments are cut at a box a little larger than the frame before cairo sees them (its coordinates are 24.8
 * fixed point), then two passes leave out what cannot be seen: `straighten` drops points that are within 0.05 points
 * of the line drawn without them, and `squeeze` replaces many points in one column of a quarter of a point by the
 * first, the lowest, the highest and the last. A smooth curve never gets more than a few points into such a column
 * after the first pass, so only noise is squeezed.
 *
 * Points. A point is a stroke of no length with a round pen, which takes little room in a file. Within one stroke
 * overlapping points would not add up their opacity, and a stroke for each takes five times the room. So points are
 * dealt out to layers in which none overlap, and each layer is one stroke: the order of layers does not matter as all
 * have the same colour. A place that is in every layer already is opaque to the eye; more points there are left out. */
#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "plot/figure_private.h"

static const double line_width = 1.4;
static const double tolerance = 0.05, column_width = 0.25; /* points */

/* Okabe & Ito, "Color universal design" (2008), without yellow, which white swallows; purple a little darker. */
static const unsigned palette[] = {0x0072b2, 0xd55e00, 0x009e73, 0xb9609a, 0xe69f00, 0x56b4e9, 0x8c8c8c, 0x222222};

static unsigned mark_colour(const psld_mark *mark)
{
    enum { SIZE = sizeof palette / sizeof *palette };
    int index = mark->colour % SIZE;
    return palette[index < 0 ? index + SIZE : index];
}

void psld_colour_set(cairo_t *cr, unsigned rgb, double opacity)
{
    cairo_set_source_rgba(cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, opacity);
}

static psld_box larger(const psld_box *box, double by)
{
    return (psld_box){box->x0 - by, box->y0 - by, box->x1 + by, box->y1 + by};
}

typedef struct point {
    double x, y;
} point;

/* Narrows [*from, *to] to where start + part * change is in [lo, hi]: 0 when that is nowhere. */
static int cut_segment(double start, double change, double lo, double hi, double *from, double *to)
{
    if (change == 0) return start >= lo && start <= hi;
    double a = (lo - start) / change, b = (hi - start) / change;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
    return *from <= *to;
}

/* The part of the segment a b that is in the box (Liang & Barsky): 0 when it is outside. */
static int clip_segment(const psld_box *box, point *a, point *b)
{
    double from = 0, to = 1, dx = b->x - a->x, dy = b->y - a->y;
    point start = *a;
    if (!cut_segment(a->x, dx, box->x0, box->x1, &from, &to) || !cut_segment(a->y, dy, box->y0, box->y1, &from, &to))
        return 0;
    if (from > 0) *a = (point){start.x + from * dx, start.y + from * dy};
    if (to < 1) *b = (point){start.x + to * dx, start.y + to * dy};
    return 1;
}

static int page_position(const psld_mark *mark, size_t i, const psld_axis *x, const psld_axis *y, point *at)
{
    return psld_axis_place(x, mark->x[i], &at->x) && psld_axis_place(y, mark->y[i], &at->y);
}

/* ---- Curves ------------------------------------------------------------------------------------------------------ */

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
            i--; /* again, seen from the point just kept */
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

static psld_status draw_curve(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                              const psld_box *frame)
{
    /* A run holds at most both ends of every segment; +1 for a point alone. */
    point *run = psld_alloc(mark->count + 1, 2 * sizeof *run);
    if (!run) return PSLD_NO_MEMORY;
    psld_box box = larger(frame, 4 * line_width);
    point last = {0, 0}, at = {0, 0};
    size_t length = 0;
    int connected = 0;
    for (size_t i = 0; i < mark->count; i++) {
        if (!page_position(mark, i, x, y, &at)) {
            connected = 0;
            continue;
        }
        point a = connected ? last : at, b = at;
        last = at;
        if (!clip_segment(&box, &a, &b)) {
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
    psld_colour_set(cr, mark_colour(mark), 1);
    cairo_stroke(cr);
    psld_release(run);
    return PSLD_OK;
}

/* ---- Points ------------------------------------------------------------------------------------------------------ */

enum { MAX_LAYERS = 64, MAX_CELLS = 256 }; /* layers are bits of a uint64_t; cells are counted each way */

typedef struct dot {
    double x, y;
    size_t next; /* dot in the same cell, + 1; 0: none */
    int layer;
} dot;

/* A grid of cells that are as wide as the distance at which dots touch, so that a dot meets only its nine cells. */
typedef struct sheet {
    const psld_box *box;
    double reach; /* centres nearer than this overlap */
    double cell;
    int layers;
    size_t nx, ny, count;
    size_t *head; /* [ny][nx]: first dot of the cell, + 1 */
    dot *dots;
} sheet;

static size_t cell_of(double offset, double cell, size_t count)
{
    size_t index = (size_t)fmax(offset / cell, 0);
    return index < count ? index : count - 1;
}

/* Puts a dot into the first layer where it touches none; drops it when there is no such layer. */
static void add_dot(sheet *s, point at)
{
    size_t cx = cell_of(at.x - s->box->x0, s->cell, s->nx), cy = cell_of(at.y - s->box->y0, s->cell, s->ny);
    uint64_t taken = 0;
    for (size_t j = cy ? cy - 1 : 0; j <= cy + 1 && j < s->ny; j++)
        for (size_t i = cx ? cx - 1 : 0; i <= cx + 1 && i < s->nx; i++)
            for (size_t k = s->head[j * s->nx + i]; k; k = s->dots[k - 1].next) {
                const dot *other = &s->dots[k - 1];
                double dx = other->x - at.x, dy = other->y - at.y;
                if (dx * dx + dy * dy < s->reach * s->reach) taken |= UINT64_C(1) << other->layer;
            }
    int layer = 0;
    while (layer < s->layers && taken >> layer & 1) layer++;
    if (layer == s->layers) return;
    size_t *head = &s->head[cy * s->nx + cx];
    s->dots[s->count++] = (dot){at.x, at.y, *head, layer};
    *head = s->count;
}

static void draw_layers(cairo_t *cr, const sheet *s, const psld_mark *mark)
{
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_dash(cr, NULL, 0, 0);
    cairo_set_line_width(cr, 2 * mark->radius);
    psld_colour_set(cr, mark_colour(mark), mark->opacity);
    for (int layer = 0; layer < s->layers; layer++) {
        int found = 0;
        for (size_t i = 0; i < s->count; i++) {
            if (s->dots[i].layer != layer) continue;
            cairo_move_to(cr, s->dots[i].x, s->dots[i].y);
            cairo_line_to(cr, s->dots[i].x, s->dots[i].y);
            found = 1;
        }
        if (!found) break; /* a layer is begun only when the one before has dots */
        cairo_stroke(cr);
    }
}

static psld_status draw_point_marks(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                                    const psld_box *frame)
{
    psld_box box = larger(frame, mark->radius);
    double width = box.x1 - box.x0, height = box.y1 - box.y0;
    /* Opaque dots may overlap; one on top of another is left out. */
    sheet s = {.box = &box, .reach = 0.2, .layers = 1};
    if (mark->opacity < 1) s = (sheet){.box = &box, .reach = 2 * mark->radius, .layers = MAX_LAYERS};
    s.cell = fmax(s.reach, fmax(width, height) / MAX_CELLS);
    s.nx = (size_t)(width / s.cell) + 1;
    s.ny = (size_t)(height / s.cell) + 1;
    s.head = psld_alloc(s.nx * s.ny, sizeof *s.head);
    s.dots = psld_alloc(mark->count, sizeof *s.dots);
    psld_status status = s.head && s.dots ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t i = 0; i < mark->count && status == PSLD_OK; i++) {
        point at = {0, 0};
        if (!page_position(mark, i, x, y, &at)) continue;
        if (at.x < box.x0 || at.x > box.x1 || at.y < box.y0 || at.y > box.y1) continue;
        /* Eighths of a point are exact to the eye, and short in a file. */
        add_dot(&s, (point){round(8 * at.x) / 8, round(8 * at.y) / 8});
    }
    if (status == PSLD_OK) draw_layers(cr, &s, mark);
    psld_release(s.head);
    psld_release(s.dots);
    return status;
}

/* ---- Density maps ------------------------------------------------------------------------------------------------ */

/* White to dark blue with lightness falling evenly: "Blues" of ColorBrewer (Brewer, 2003), begun at pure white. */
static const unsigned blues[] = {0xffffff, 0xe3eef9, 0xc9dcf0, 0xa1cae3, 0x6daed5,
                                 0x4191c6, 0x2271b5, 0x0a549e, 0x08306b};

static uint32_t blue_of_density(double value)
{
    enum { LAST = sizeof blues / sizeof *blues - 1 };
    double at = fmin(fmax(value, 0), 1) * LAST;
    int i = at < LAST ? (int)at : LAST - 1;
    uint32_t rgb = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = blues[i] >> shift & 255, b = blues[i + 1] >> shift & 255;
        rgb |= (uint32_t)(a + (at - i) * (b - a) + 0.5) << shift;
    }
    return rgb;
}

/* Cubic interpolation (Catmull & Rom) at one pixel: linear shows the grid as creases. */
typedef struct taps {
    int index[4];
    double weight[4];
} taps;

static void set_taps(taps *t, double at, int count)
{
    at = fmin(fmax(at, 0), count - 1); /* also when it is NaN */
    int i = (int)at;
    double u = at - i;
    t->weight[0] = u * (-0.5 + u * (1 - 0.5 * u));
    t->weight[1] = 1 + u * u * (-2.5 + 1.5 * u);
    t->weight[2] = u * (0.5 + u * (2 - 1.5 * u));
    t->weight[3] = u * u * (-0.5 + 0.5 * u);
    for (int k = 0; k < 4; k++) {
        int j = i + k - 1;
        t->index[k] = j < 0 ? 0 : j < count ? j : count - 1;
    }
}

/* Taps for pixel centres from page position `start` on. */
static taps *find_taps(const psld_axis *axis, double start, double pixels, int size, const double *edge, int count)
{
    taps *t = psld_alloc((size_t)size, sizeof *t);
    for (int i = 0; i < size && t; i++) {
        double value = psld_axis_value(axis, start + (i + 0.5) / pixels);
        set_taps(&t[i], (value - edge[0]) / (edge[1] - edge[0]) * (count - 1), count);
    }
    return t;
}

static void fill_image(cairo_surface_t *image, const psld_mark *mark, const taps *columns, const taps *rows)
{
    int width = cairo_image_surface_get_width(image), height = cairo_image_surface_get_height(image);
    unsigned char *data = cairo_image_surface_get_data(image);
    if (!data) return; /* the failure is in the image */
    cairo_surface_flush(image);
    for (int j = 0; j < height; j++) {
        /* cairo aligns rows to the size of a pixel */
        uint32_t *row = (uint32_t *)(void *)(data + (ptrdiff_t)j * cairo_image_surface_get_stride(image));
        for (int i = 0; i < width; i++) {
            double sum = 0;
            for (int b = 0; b < 4; b++) {
                const double *values = mark->values + (ptrdiff_t)rows[j].index[b] * mark->nx;
                for (int a = 0; a < 4; a++)
                    sum += rows[j].weight[b] * columns[i].weight[a] * values[columns[i].index[a]];
            }
            row[i] = blue_of_density(sum);
        }
    }
    cairo_surface_mark_dirty(image);
}

/* Where the map is on the page within the frame, on whole pixels: 0 when that is nowhere. */
static int find_map(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *frame, double pixels,
                    psld_box *box)
{
    double at[4] = {frame->x0, frame->x1, frame->y0, frame->y1};
    for (int i = 0; i < 4; i++) {
        /* An edge without a place, as 0 on a log axis, is beyond the frame. */
        if (!isfinite(mark->edge[i])) return 0;
        psld_axis_place(i < 2 ? x : y, mark->edge[i], &at[i]);
    }
    if (mark->edge[0] == mark->edge[1] || mark->edge[2] == mark->edge[3]) return 0;
    box->x0 = floor(fmax(fmin(at[0], at[1]), frame->x0) * pixels) / pixels;
    box->x1 = ceil(fmin(fmax(at[0], at[1]), frame->x1) * pixels) / pixels;
    box->y0 = floor(fmax(fmin(at[2], at[3]), frame->y0) * pixels) / pixels;
    box->y1 = ceil(fmin(fmax(at[2], at[3]), frame->y1) * pixels) / pixels;
    return box->x0 < box->x1 && box->y0 < box->y1;
}

static psld_status draw_density(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x,
                                const psld_axis *y, const psld_box *frame)
{
    psld_box box;
    double pixels = canvas->pixels;
    if (!find_map(mark, x, y, frame, pixels, &box)) return PSLD_OK;
    int width = (int)lround((box.x1 - box.x0) * pixels), height = (int)lround((box.y1 - box.y0) * pixels);
    taps *columns = find_taps(x, box.x0, pixels, width, mark->edge, mark->nx);
    taps *rows = find_taps(y, box.y0, pixels, height, mark->edge + 2, mark->ny);
    psld_status status = columns && rows ? PSLD_OK : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
        fill_image(image, mark, columns, rows);
        cairo_save(canvas->cr);
        cairo_translate(canvas->cr, box.x0, box.y0);
        cairo_scale(canvas->cr, 1 / pixels, 1 / pixels);
        cairo_set_source_surface(canvas->cr, image, 0, 0);
        cairo_pattern_set_filter(cairo_get_source(canvas->cr), CAIRO_FILTER_BILINEAR);
        cairo_paint(canvas->cr);
        cairo_restore(canvas->cr);
        cairo_surface_destroy(image);
    }
    psld_release(columns);
    psld_release(rows);
    return status;
}

/* ---- All kinds --------------------------------------------------------------------------------------------------- */

psld_status psld_mark_draw(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                           const psld_box *frame)
{
    if (mark->kind == PSLD_MARK_CURVE) return draw_curve(canvas->cr, mark, x, y, frame);
    if (mark->kind == PSLD_MARK_POINTS) return draw_point_marks(canvas->cr, mark, x, y, frame);
    return draw_density(canvas, mark, x, y, frame);
}

/* The map's part in the box, sampled: half as important as a line of the length of the box where it is darkest. */
static double density_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box)
{
    enum { SAMPLES = 9 };
    double sum = 0;
    if (mark->edge[0] == mark->edge[1] || mark->edge[2] == mark->edge[3]) return 0;
    for (int j = 0; j < SAMPLES; j++)
        for (int i = 0; i < SAMPLES; i++) {
            double px = box->x0 + (box->x1 - box->x0) * i / (SAMPLES - 1);
            double py = box->y0 + (box->y1 - box->y0) * j / (SAMPLES - 1);
            const double *e = mark->edge;
            double u = (psld_axis_value(x, px) - e[0]) / (e[1] - e[0]) * (mark->nx - 1);
            double v = (psld_axis_value(y, py) - e[2]) / (e[3] - e[2]) * (mark->ny - 1);
            if (u >= 0 && u <= mark->nx - 1 && v >= 0 && v <= mark->ny - 1)
                sum += mark->values[(ptrdiff_t)(v + 0.5) * mark->nx + (ptrdiff_t)(u + 0.5)];
        }
    return sum / (SAMPLES * SAMPLES) * (box->x1 - box->x0) / 2;
}

double psld_mark_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box)
{
    double sum = 0;
    int connected = 0;
    point last = {0, 0}, at = {0, 0};
    if (mark->kind == PSLD_MARK_DENSITY) return density_cover(mark, x, y, box);
    for (size_t i = 0; i < mark->count; i++) {
        int here = page_position(mark, i, x, y, &at);
        int line = mark->kind == PSLD_MARK_CURVE && connected;
        point a = line ? last : at, b = at;
        if (here && clip_segment(box, &a, &b)) sum += line ? hypot(b.x - a.x, b.y - a.y) : 2 * mark->radius;
        connected = here;
        last = at;
    }
    return sum;
}

void psld_mark_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width)
{
    if (mark->kind == PSLD_MARK_CURVE) {
        set_dash(cr, mark->dash);
        /* A dot of a dotted line at the very end would stick out. */
        double inset = mark->dash == PSLD_DASHED ? 0 : line_width / 2;
        cairo_move_to(cr, x + inset, y);
        cairo_line_to(cr, x + width - inset, y);
        psld_colour_set(cr, mark_colour(mark), 1);
    } else {
        cairo_set_dash(cr, NULL, 0, 0);
        cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
        cairo_set_line_width(cr, 2 * fmin(fmax(mark->radius, 1.75), 3.5));
        cairo_move_to(cr, x + width / 2, y);
        cairo_line_to(cr, x + width / 2, y);
        psld_colour_set(cr, mark_colour(mark), fmax(mark->opacity, 0.7));
    }
    cairo_stroke(cr);
}
