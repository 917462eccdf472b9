/* Legends: one for each panel, in the corner where it hides least. */
#include <math.h>

#include "plot/page.h"

static const double legend_line = 12.5, legend_inset = 6, legend_pad = 5;

typedef struct legend {
    int lines, columns, rows;
    double sample_width, column_width;
    double width, height, scale; /* size before scaling, and scale: below 1 if too large for the frame */
    psld_box box;                /* on the page */
    double cover;                /* how much of the data it hides */
} legend;

static void measure_legend(cairo_t *cr, const psld_panel *panel, legend *l)
{
    double widest = 0;
    for (size_t i = 0; i < panel->count; i++) {
        if (!panel->marks[i].label) continue;
        l->lines++;
        l->sample_width = fmax(l->sample_width, panel->marks[i].kind == PSLD_MARK_CURVE ? 20 : 7);
        widest = fmax(widest, psld_text_width(cr, panel->marks[i].label, tick_size));
    }
    l->column_width = l->sample_width + 5 + widest;
}

static void shape_legend(legend *l, int columns, const psld_box *frame)
{
    l->rows = (l->lines + columns - 1) / columns;
    l->columns = (l->lines + l->rows - 1) / l->rows;
    l->width = l->columns * (l->column_width + 2 * legend_pad);
    l->height = 2 * legend_pad - 3 + l->rows * legend_line;
    double across = (frame->x1 - frame->x0 - 2 * legend_inset) / l->width;
    double down = (frame->y1 - frame->y0 - 2 * legend_inset) / l->height;
    l->scale = fmax(fmin(1, fmin(across, down)), 0.3);
}

/* Puts the legend into the corner where it covers the least data; if corners are equal, into the first of them. */
static void place_legend(legend *l, const view *v)
{
    const psld_box *f = &v->frame;
    double width = l->scale * l->width, height = l->scale * l->height;
    double left = f->x0 + legend_inset, right = f->x1 - legend_inset - width;
    double top = f->y0 + legend_inset, bottom = f->y1 - legend_inset - height;
    const double corner[4][2] = {{right, top}, {left, top}, {right, bottom}, {left, bottom}};
    l->cover = HUGE_VAL;
    for (int c = 0; c < 4; c++) {
        double x = corner[c][0], y = corner[c][1], cover = 0;
        const psld_box around = {x - 3, y - 3, x + width + 3, y + height + 3};
        for (size_t i = 0; i < v->panel->count; i++)
            cover += psld_mark_cover(&v->panel->marks[i], &v->x, &v->y, &around);
        if (cover >= l->cover) continue;
        l->cover = cover;
        l->box = (psld_box){floor(x), floor(y), x + width, y + height};
    }
}

/* One column if it fits; more columns if they cover less data and need no smaller scale. */
static void choose_legend(cairo_t *cr, const view *v, legend *best)
{
    legend measured = {0};
    measure_legend(cr, v->panel, &measured);
    *best = measured;
    for (int columns = 1; columns <= 3 && columns <= measured.lines; columns++) {
        legend tried = measured;
        shape_legend(&tried, columns, &v->frame);
        place_legend(&tried, v);
        int better = tried.scale > best->scale || (tried.scale == best->scale && tried.cover < 0.7 * best->cover);
        if (columns == 1 || better) *best = tried;
    }
}

void psld_legend_draw(cairo_t *cr, const view *v)
{
    legend l;
    int line = 0;
    choose_legend(cr, v, &l);
    if (l.lines == 0) return;
    cairo_save(cr);
    cairo_translate(cr, l.box.x0, l.box.y0);
    cairo_scale(cr, l.scale, l.scale);
    cairo_rectangle(cr, 0, 0, l.width, l.height);
    psld_colour_set(cr, 0xffffff, 0.85);
    cairo_fill(cr);
    for (size_t i = 0; i < v->panel->count; i++) {
        const psld_mark *mark = &v->panel->marks[i];
        if (!mark->label) continue;
        double x = legend_pad + line / l.rows * (l.column_width + 2 * legend_pad);
        double y = legend_pad - 1.5 + (line % l.rows + 0.5) * legend_line;
        psld_mark_sample(cr, mark, x, y, l.sample_width);
        psld_colour_set(cr, ink, 1);
        psld_text_draw(cr, mark->label, x + l.sample_width + 5, y + psld_text_half_height(tick_size), 0, tick_size, 0,
                       any_room);
        line++;
    }
    cairo_restore(cr);
}
