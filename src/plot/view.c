/* A panel in its cell: its frame, axes and ticks. */
#include <math.h>

#include "plot/page.h"

static const double smallest_frame = 12;

static double widest_label(cairo_t *cr, const psld_ticks *ticks)
{
    double widest = 0;
    for (int i = 0; i < ticks->count; i++) widest = fmax(widest, psld_text_width(cr, ticks->tick[i].label, tick_size));
    return widest;
}

static int labelled(const psld_ticks *ticks)
{
    int count = 0;
    for (int i = 0; i < ticks->count; i++) count += ticks->tick[i].label[0] != 0;
    return count;
}

/* Removes labels that would touch the previous one. */
static void thin_labels(cairo_t *cr, const psld_axis *axis, int vertical, psld_ticks *ticks)
{
    double last = -1e9;
    for (int i = 0; i < ticks->count; i++) {
        psld_tick *tick = &ticks->tick[i];
        if (!tick->label[0]) continue;
        double size = vertical ? 1.3 * tick_size : psld_text_width(cr, tick->label, tick_size) + 5;
        double at = fabs(psld_axis_place_tick(axis, tick->at) - axis->at_lo);
        if (at - size / 2 < last)
            tick->label[0] = 0;
        else
            last = at + size / 2;
    }
}

static void choose_x_ticks(cairo_t *cr, view *v)
{
    double length = v->frame.x1 - v->frame.x0;
    for (int target = (int)fmin(fmax(length / 34, 1), 8); target >= 1; target--) {
        psld_axis_ticks(&v->x, target, &v->x_ticks);
        if (labelled(&v->x_ticks) * (widest_label(cr, &v->x_ticks) + 12) <= length) break;
    }
    thin_labels(cr, &v->x, 0, &v->x_ticks);
}

static void choose_y_ticks(cairo_t *cr, view *v)
{
    double length = v->frame.y1 - v->frame.y0;
    psld_axis_ticks(&v->y, (int)fmin(fmax(length / 21, 2), 8), &v->y_ticks);
    thin_labels(cr, &v->y, 1, &v->y_ticks);
    v->label_width = fmax(widest_label(cr, &v->y_ticks), psld_text_width(cr, v->y_ticks.factor, tick_size));
}

/* Makes units equally long on both axes: first by a smaller frame, then by a larger range, so that the frame is not too
 * narrow. */
static void equalise_units(view *v)
{
    double width = v->frame.x1 - v->frame.x0, height = v->frame.y1 - v->frame.y0;
    double unit = fmin(width / (v->x.hi - v->x.lo), height / (v->y.hi - v->y.lo));
    double w = fmin(fmax((v->x.hi - v->x.lo) * unit, 0.45 * width), width);
    double h = fmin(fmax((v->y.hi - v->y.lo) * unit, 0.45 * height), height);
    psld_axis_stretch(&v->x, w / unit);
    psld_axis_stretch(&v->y, h / unit);
    v->frame.x0 += (width - w) / 2;
    v->frame.x1 = v->frame.x0 + w;
    v->frame.y0 += (height - h) / 2;
    v->frame.y1 = v->frame.y0 + h;
}

void psld_view_make(cairo_t *cr, const psld_panel *panel, const psld_box *cell, const margins *m, view *v)
{
    v->panel = panel;
    v->frame.x0 = ceil(cell->x0 + m->left);
    v->frame.y0 = ceil(cell->y0 + m->top);
    v->frame.x1 = fmax(floor(cell->x1 - m->right), v->frame.x0 + smallest_frame);
    v->frame.y1 = fmax(floor(cell->y1 - m->bottom), v->frame.y0 + smallest_frame);
    psld_axes_fit(panel, &v->x, &v->y);
    /* A unit and a decade cannot be compared. */
    if (panel->flags & PSLD_EQUAL_AXES && v->x.log == v->y.log) equalise_units(v);
    psld_axis_set(&v->x, v->frame.x0, v->frame.x1);
    psld_axis_set(&v->y, v->frame.y1, v->frame.y0);
    choose_y_ticks(cr, v);
    choose_x_ticks(cr, v);
}
