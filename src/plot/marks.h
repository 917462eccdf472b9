/* The kinds of marks, for the files marks.c and mark_*.c. */
#ifndef PSLD_PLOT_MARKS_H
#define PSLD_PLOT_MARKS_H

#include "plot/figure_private.h"

typedef struct point {
    double x, y;
} point;

/* The mark's colour, from the palette. */
unsigned psld_mark_colour(const psld_mark *mark);
/* Where point i of a curve or of points is on the page; returns 0 if the axes cannot show it. */
int psld_mark_position(const psld_mark *mark, size_t i, const psld_axis *x, const psld_axis *y, point *at);
psld_box psld_box_larger(const psld_box *box, double by);
/* The part of the segment a b that is in the box; returns 0 if it is outside. */
int psld_segment_clip(const psld_box *box, point *a, point *b);

psld_status psld_curve_draw(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                            const psld_box *frame);
psld_status psld_points_draw(cairo_t *cr, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                             const psld_box *frame);
psld_status psld_density_draw(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                              const psld_box *frame);

/* How much of a map is in the box; in points of line length, as psld_mark_cover. */
double psld_density_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box);

/* Examples in the legend, `width` wide from x on, centred at y. */
void psld_curve_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width);
void psld_points_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width);

#endif
