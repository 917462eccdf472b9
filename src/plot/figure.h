/* Figures: a grid of panels with curves, points and density maps, drawn by cairo into .svg or .png.
 *
 * A figure records what it is given (data are copied) and draws when it is saved. The first failure is kept and
 * returned by save, so that composing a figure needs no checks: every function ignores a NULL figure or panel.
 *
 * In titles and labels ^{...} raises and _{...} lowers what is inside the braces: "10^{-3}", "beta_{max}". */
#ifndef PSLD_IO_PLOT_H
#define PSLD_IO_PLOT_H

#include <stddef.h>

#include "base/status.h"

typedef struct psld_figure psld_figure;
typedef struct psld_panel psld_panel;

/* `rows` x `columns` panels of the given size each, in points, axis labels included; a title (or NULL) adds a line on
 * top. NULL if memory has run out; the functions below treat NULL as a failed figure. */
psld_figure *psld_figure_create(const char *title, int rows, int columns, double panel_width, double panel_height);
void psld_figure_free(psld_figure *figure);
/* Writes .svg or .png (two pixels per point), as the path ends. A failure leaves no incomplete file. Equal figures give
 * equal bytes. */
psld_status psld_figure_save(psld_figure *figure, const char *path);

/* Borrowed from the figure. A panel that nothing is added to stays blank. */
psld_panel *psld_figure_panel(psld_figure *figure, int row, int column);

enum { PSLD_LOG_X = 1, PSLD_LOG_Y = 2, PSLD_EQUAL_AXES = 4 };
/* Title and labels may be NULL. Log axes drop points that are not positive. With equal axes one unit (a decade
 * if both are log axes) is as long in x as in y; this has no effect if only one axis is logarithmic. */
void psld_panel_frame(psld_panel *panel, const char *title, const char *x_label, const char *y_label, int flags);
/* Fixes the range shown; x0 > x1 reverses the axis. A bound that is not finite, or not positive on a log axis, is
 * chosen from the data, as all are without this call. */
void psld_panel_range(psld_panel *panel, double x0, double x1, double y0, double y1);

typedef enum psld_dash { PSLD_SOLID, PSLD_DASHED, PSLD_DOTTED } psld_dash;
/* Colours are numbered: 0 blue, 1 vermilion, 2 green, 3 purple, 4 orange, 5 light blue, 6 grey, 7 black, and again from
 * 8 on. A label (or NULL) is an entry of the legend. A curve is broken where a value is not finite. */
void psld_panel_curve(psld_panel *panel, size_t count, const double *x, const double *y, int colour, psld_dash dash,
                      const char *label);
/* `radius` in points; `opacity` from 0 to 1. */
void psld_panel_points(psld_panel *panel, size_t count, const double *x, const double *y, int colour, double radius,
                       double opacity, const char *label);
/* values [ny][nx] on a grid whose first column is at x0 and last at x1, first row at y0 and last at y1; shown as a
 * smooth map from white (0, less, or not finite) to dark (the largest). */
void psld_panel_density(psld_panel *panel, int nx, int ny, double x0, double x1, double y0, double y1,
                        const double *values);

#endif
