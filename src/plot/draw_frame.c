/* The frame of a panel: grid, ticks, their labels, titles. Thin lines are moved by up to a quarter of a point, to be sharp
 * in a .png. */
#include <math.h>

#include "plot/page.h"

static const double minor_length = 2;
static const unsigned frame_grey = 0x9a9a9a, grid_grey = 0xe8e8e8;

static void begin_lines(cairo_t *cr, unsigned colour, double width)
{
    psld_colour_set(cr, colour, 1);
    cairo_set_line_width(cr, width);
    cairo_set_dash(cr, NULL, 0, 0);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_BUTT);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_MITER);
}

/* The middle of the pixel of a .png: a line half a point wide becomes one pixel. */
static double to_pixel_middle(double at)
{
    return floor(2 * at) / 2 + 0.25;
}

static void add_line(cairo_t *cr, double x0, double y0, double x1, double y1)
{
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
}

void psld_grid_draw(cairo_t *cr, const view *v)
{
    for (size_t i = 0; i < v->panel->count; i++)
        if (v->panel->marks[i].kind == PSLD_MARK_DENSITY) return; /* the map would cover half of the line */
    begin_lines(cr, grid_grey, 0.5);
    for (int i = 0; i < v->x_ticks.count; i++) {
        double at = to_pixel_middle(psld_axis_place_tick(&v->x, v->x_ticks.tick[i].at));
        if (v->x_ticks.tick[i].label[0]) add_line(cr, at, v->frame.y0, at, v->frame.y1);
    }
    for (int i = 0; i < v->y_ticks.count; i++) {
        double at = to_pixel_middle(psld_axis_place_tick(&v->y, v->y_ticks.tick[i].at));
        if (v->y_ticks.tick[i].label[0]) add_line(cr, v->frame.x0, at, v->frame.x1, at);
    }
    cairo_stroke(cr);
}

void psld_frame_draw(cairo_t *cr, const view *v)
{
    const psld_box *f = &v->frame;
    begin_lines(cr, frame_grey, 0.5);
    cairo_rectangle(cr, to_pixel_middle(f->x0), to_pixel_middle(f->y0), to_pixel_middle(f->x1) - to_pixel_middle(f->x0),
                    to_pixel_middle(f->y1) - to_pixel_middle(f->y0));
    for (int i = 0; i < v->x_ticks.count; i++) {
        double at = to_pixel_middle(psld_axis_place_tick(&v->x, v->x_ticks.tick[i].at));
        add_line(cr, at, f->y1, at, f->y1 + (v->x_ticks.tick[i].label[0] ? tick_length : minor_length));
    }
    for (int i = 0; i < v->y_ticks.count; i++) {
        double at = to_pixel_middle(psld_axis_place_tick(&v->y, v->y_ticks.tick[i].at));
        add_line(cr, f->x0, at, f->x0 - (v->y_ticks.tick[i].label[0] ? tick_length : minor_length), at);
    }
    cairo_stroke(cr);
}

void psld_tick_labels_draw(cairo_t *cr, const view *v)
{
    const psld_box *f = &v->frame;
    double below = f->y1 + tick_length + 3 + 2 * psld_text_half_height(tick_size), left = f->x0 - tick_length - 3;
    psld_colour_set(cr, soft_ink, 1);
    for (int i = 0; i < v->x_ticks.count; i++)
        psld_text_draw(cr, v->x_ticks.tick[i].label, psld_axis_place_tick(&v->x, v->x_ticks.tick[i].at), below, 0.5,
                       tick_size, 0, any_room);
    for (int i = 0; i < v->y_ticks.count; i++)
        psld_text_draw(cr, v->y_ticks.tick[i].label, left,
                       psld_axis_place_tick(&v->y, v->y_ticks.tick[i].at) + psld_text_half_height(tick_size), 1,
                       tick_size, 0, any_room);
    psld_text_draw(cr, v->x_ticks.factor, f->x1, below + 1.45 * label_size, 1, tick_size, 0, any_room);
    psld_text_draw(cr, v->y_ticks.factor, left, f->y0 - 7, 1, tick_size, 0, any_room);
}

void psld_titles_draw(cairo_t *cr, const view *v, const psld_box *cell, double left)
{
    const psld_box *f = &v->frame;
    const psld_panel *panel = v->panel;
    double middle = (f->y0 + f->y1) / 2, below = f->y1 + tick_length + 3 + 2 * psld_text_half_height(tick_size);
    double beside = tick_length + 3 + v->label_width + 0.8 * label_size;
    psld_colour_set(cr, ink, 1);
    if (panel->title) psld_text_draw(cr, panel->title, f->x0, f->y0 - 7, 0, title_size, 1, cell->x1 - f->x0 - 4);
    double centre = (f->x0 + f->x1) / 2, room = 2 * fmin(centre - cell->x0, cell->x1 - centre) - 4;
    if (panel->x_label) psld_text_draw(cr, panel->x_label, centre, below + 1.6 * label_size, 0.5, label_size, 0, room);
    if (!panel->y_label) return;
    cairo_save(cr);
    cairo_translate(cr, f->x0 - fmax(beside, fmin(left - gap - 0.8 * label_size, beside + 12)), middle);
    cairo_rotate(cr, -2 * atan(1));
    psld_text_draw(cr, panel->y_label, 0, 0, 0.5, label_size, 0, cell->y1 - cell->y0 - gap);
    cairo_restore(cr);
}
