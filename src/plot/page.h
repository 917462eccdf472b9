/* The parts of a page, for the files draw.c, draw_*.c and legend.c. Sizes are in points. */
#ifndef PSLD_PLOT_PAGE_H
#define PSLD_PLOT_PAGE_H

#include "plot/figure_private.h"

static const double tick_size = 8, label_size = 9, title_size = 10, page_title_size = 13; /* of fonts */
static const double gap = 12;                                                             /* around a cell */
static const double tick_length = 3.5;
static const unsigned ink = 0x1f1f1f, soft_ink = 0x444444;

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static const double any_room = 1e9;

/* Draws with its baseline at y; `align` 0, 0.5, 1 puts its left end, middle, right end at x. Shrinks to `room`. ^{...} is
 * raised and _{...} lowered. */
void psld_text_draw(cairo_t *cr, const char *text, double x, double y, double align, double size, int bold,
                    double room);
double psld_text_width(cairo_t *cr, const char *text, double size);
/* Half the height of figures and capitals. */
double psld_text_half_height(double size);

/* ---- Panels ------------------------------------------------------------------------------------------------------ */

typedef struct margins {
    double left, right, top, bottom;
} margins;

typedef struct view {
    const psld_panel *panel;
    psld_box frame;
    double label_width; /* the widest label of the y ticks */
    psld_axis x, y;
    psld_ticks x_ticks, y_ticks;
} view;

/* What a panel needs in its cell; independent of other panels. */
void psld_view_make(cairo_t *cr, const psld_panel *panel, const psld_box *cell, const margins *m, view *v);

void psld_grid_draw(cairo_t *cr, const view *v);
void psld_frame_draw(cairo_t *cr, const view *v);
void psld_tick_labels_draw(cairo_t *cr, const view *v);
/* `left` is the margin of the column: the labels of its y axes are aligned, unless that is far from the ticks. */
void psld_titles_draw(cairo_t *cr, const view *v, const psld_box *cell, double left);
void psld_legend_draw(cairo_t *cr, const view *v);

#endif
