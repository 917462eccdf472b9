/* Points.
 *
 * A point is a stroke of no length with a round pen, which takes few bytes in a file. Within one stroke, the opacity of
 * overlapping points does not add up; one stroke per point takes five times the bytes. So points are divided into
 * layers in which none overlap, and each layer is one stroke. The order of layers does not matter, as all have the same
 * colour. A place that is in every layer already is opaque to the eye; more points there are left out. */
#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "plot/marks.h"

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

/* Puts a dot into the first layer where it touches no other; drops it if there is no such layer. */
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
    psld_colour_set(cr, psld_mark_colour(mark), mark->opacity);
    for (int layer = 0; layer < s->layers; layer++) {
        int found = 0;
        for (size_t i = 0; i < s->count; i++) {
            if (s->dots[i].layer != layer) continue;
            cairo_move_to(cr, s->dots[i].x, s->dots[i].y);
            cairo_line_to(cr, s->dots[i].x, s->dots[i].y);
            found = 1;
        }
        if (!found) break; /* a layer is used only if the one before has dots */
        cairo_stroke(cr);
    }
}

psld_status psld_points_draw(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                             const psld_box *frame)
{
    psld_box box = psld_box_larger(frame, mark->radius);
    double width = box.x1 - box.x0, height = box.y1 - box.y0;
    /* Opaque dots may overlap; of dots at the same place only one is drawn. */
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
        if (!psld_mark_position(mark, i, x, y, &at)) continue;
        if (at.x < box.x0 || at.x > box.x1 || at.y < box.y0 || at.y > box.y1) continue;
        /* Eighths of a point look exact, and are short in a file. */
        add_dot(&s, (point){round(8 * at.x) / 8, round(8 * at.y) / 8});
    }
    if (status == PSLD_OK) draw_layers(cr, &s, mark);
    psld_release(s.head);
    psld_release(s.dots);
    return status;
}

void psld_points_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width)
{
    cairo_set_dash(cr, NULL, 0, 0);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_width(cr, 2 * fmin(fmax(mark->radius, 1.75), 3.5));
    cairo_move_to(cr, x + width / 2, y);
    cairo_line_to(cr, x + width / 2, y);
    psld_colour_set(cr, psld_mark_colour(mark), fmax(mark->opacity, 0.7));
    cairo_stroke(cr);
}
