/* What the parts of the plotter share. In the order of the work:
 *
 *     figure.c        records a figure; turns a drawing into the bytes of a file
 *     axes.c          ranges, ticks and their labels: arithmetic only
 *     marks.c         the data, with mark_curves.c, mark_points.c, mark_density.c
 *     draw.c          the page, with view.c, draw_frame.c, draw_text.c, legend.c
 *     svg.c           makes cairo's SVG small, and the same each time
 *
 * Lengths are in points, y downwards, as in cairo. */
#ifndef PSLD_PLOT_FIGURE_PRIVATE_H
#define PSLD_PLOT_FIGURE_PRIVATE_H

#include <cairo.h>

#include "plot/figure.h"

/* ---- What a figure records --------------------------------------------------------------------------------------- */

typedef enum psld_mark_kind { PSLD_MARK_CURVE, PSLD_MARK_POINTS, PSLD_MARK_DENSITY } psld_mark_kind;

typedef struct psld_mark {
    psld_mark_kind kind;
    size_t count;   /* curve, points: length of x and y; density: nx * ny */
    double *x, *y;  /* curve, points: [count] each */
    double *values; /* density: [ny][nx], divided by the largest: 0 to 1 */
    int nx, ny;     /* density */
    double edge[4]; /* density: x0, x1, y0, y1 */
    int colour;     /* number in the palette, which repeats */
    psld_dash dash; /* curve */
    double radius;  /* points */
    double opacity; /* points */
    char *label;    /* in the legend, or NULL */
} psld_mark;

struct psld_panel {
    psld_figure *figure;
    int used; /* something was added or set */
    char *title, *x_label, *y_label;
    int flags;
    double range[4]; /* x0, x1, y0, y1; NaN: chosen from the data */
    psld_mark *marks;
    size_t count, capacity;
};

struct psld_figure {
    psld_status status; /* the first failure, with its text */
    char error[512];
    char *title;
    int rows, columns;
    double panel_width, panel_height;
    psld_panel *panels; /* [rows][columns] */
};

/* ---- Axes -------------------------------------------------------------------------------------------------------- */

typedef struct psld_axis {
    int log;
    int empty;           /* no data and no range: no ticks */
    int reversed;        /* values fall from left to right, or upwards */
    double lo, hi;       /* lo < hi, far enough apart to divide by hi - lo; log10 of the values on a log axis */
    double at_lo, at_hi; /* positions of lo and hi on the page */
} psld_axis;

enum { PSLD_MAX_TICKS = 128, PSLD_TICK_LABEL_SIZE = 40 };

typedef struct psld_tick {
    double at;                        /* in the units of lo and hi */
    char label[PSLD_TICK_LABEL_SIZE]; /* "" makes it a minor tick */
} psld_tick;

typedef struct psld_ticks {
    int count;
    psld_tick tick[PSLD_MAX_TICKS];
    char factor[PSLD_TICK_LABEL_SIZE]; /* common factor of all labels, "×10^{5}"; mostly "" */
} psld_ticks;

/* Ranges of a panel from its data and flags; the positions are left to the caller. */
void psld_axes_fit(const psld_panel *panel, psld_axis *x, psld_axis *y);
/* Makes the range `width` wide around its middle. */
void psld_axis_stretch(psld_axis *axis, double width);
/* Sets where the range begins and ends on the page. */
void psld_axis_set(psld_axis *axis, double at_lo, double at_hi);
/* The position of a value on the page; returns 0 if this axis cannot show it. Positions far out of range are moved
 * nearer. */
int psld_axis_place(const psld_axis *axis, double value, double *at);
double psld_axis_place_tick(const psld_axis *axis, double at);
/* The value at a place on the page. */
double psld_axis_value(const psld_axis *axis, double at);
/* About `target` labelled ticks, rather fewer. */
void psld_axis_ticks(const psld_axis *axis, int target, psld_ticks *ticks);

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

typedef struct psld_box {
    double x0, y0, x1, y1;
} psld_box;

typedef struct psld_canvas {
    cairo_t *cr;
    double pixels; /* pixels per point of parts that are drawn as an image */
} psld_canvas;

void psld_colour_set(cairo_t *cr, unsigned rgb, double opacity);

psld_status psld_mark_draw(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                           const psld_box *frame);
/* How much of the mark is in the box, to keep the legend away from data. In points of line length. */
double psld_mark_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box);
/* The example in the legend, `width` wide from x on, centred at y. */
void psld_mark_sample(cairo_t *cr, const psld_mark *mark, double x, double y, double width);

void psld_figure_size(const psld_figure *figure, double *width, double *height);
/* Draws the whole page. Failures of cairo stay in canvas->cr. */
psld_status psld_figure_draw(const psld_canvas *canvas, const psld_figure *figure);

/* ---- Bytes of a file --------------------------------------------------------------------------------------------- */

typedef struct psld_bytes {
    psld_status status; /* the first failure; nothing is added after it */
    char *data;         /* released by the owner */
    size_t size, capacity;
} psld_bytes;

void psld_bytes_put(psld_bytes *to, const void *data, size_t size);
psld_status psld_svg_tidy(const psld_bytes *svg, psld_bytes *out);

#endif
