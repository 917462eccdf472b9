/* psld: plots of recipes, points and curves. Needs the full library.
 */
#ifndef PSLD_PLOT_H
#define PSLD_PLOT_H

#include "psld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

/* Each writes one picture, .svg or .png, as the path ends. */

/* A page on one recipe or a comparison of several: kernel moments, spectrum, noise level, mixing, error factors, and
 * forward and reverse trajectories in phase space. */
PSLD_API psld_status psld_plot_recipes(const psld_recipe *const *recipes, size_t count, const char *path);

/* A page on a process with formulas: paths of its first variable, where they end over exp(-H), and how the residual of
 * the Fokker-Planck equation falls with the grid (`report`: of psld_process_check). */
PSLD_API psld_status psld_plot_process(const psld_process *process, const psld_process_report *report,
                                       const char *path);

/* Points [count][2] (float64) over the density of a 2-D mixture (NULL: only the points). */
PSLD_API psld_status psld_plot_points(const psld_mixture *mixture, const double *points, size_t count,
                                      const char *title, const char *path);

typedef struct psld_curve {
    const char *label;
    size_t count;
    const double *x, *y;
    int colour; /* 0, 1, ... from a palette of eight */
    int dash;   /* 0 solid, 1 dashed, 2 dotted */
} psld_curve;

/* Curves in one frame with a legend. */
PSLD_API psld_status psld_plot_curves(const char *title, const char *x_label, const char *y_label, int log_x, int log_y,
                                      const psld_curve *curves, size_t count, const char *path);

#ifdef __cplusplus
}
#endif

#endif
