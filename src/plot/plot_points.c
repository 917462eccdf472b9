/* Samples drawn over the exact density. */
#include <math.h>

#include "base/alloc.h"
#include "plot/figure.h"
#include "psld_plot.h"

enum { CELLS = 160 };

/* The smallest square that contains all points. For a mixture it reaches at least 2.5 deviations from the mean each
 * way, and at most five, so that a few distant points do not shrink the rest to a dot. */
static void frame_of(const psld_mixture *mixture, const double *points, size_t count, double *centre, double *half)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, mean[2], cov[4];
    for (size_t i = 0; i < 2 * count; i++) {
        low[i % 2] = fmin(low[i % 2], points[i]);
        high[i % 2] = fmax(high[i % 2], points[i]);
    }
    if (mixture) {
        psld_mixture_moments(mixture, mean, cov);
        for (int j = 0; j < 2; j++) {
            double spread = 2.5 * sqrt(cov[3 * j]);
            low[j] = fmax(fmin(low[j], mean[j] - spread), mean[j] - 2 * spread);
            high[j] = fmin(fmax(high[j], mean[j] + spread), mean[j] + 2 * spread);
        }
    }
    *half = 0;
    for (int j = 0; j < 2; j++) {
        centre[j] = (low[j] + high[j]) / 2;
        *half = fmax(*half, (high[j] - low[j]) / 2);
    }
}

static psld_status add_density_panel(psld_panel *panel, const psld_mixture *mixture, const double *centre, double half)
{
    double *values = psld_alloc(CELLS * CELLS, sizeof *values);
    if (!values) return PSLD_NO_MEMORY;
    for (int row = 0; row < CELLS; row++)
        for (int column = 0; column < CELLS; column++) {
            double x[2] = {centre[0] + half * (2.0 * column / (CELLS - 1) - 1),
                           centre[1] + half * (2.0 * row / (CELLS - 1) - 1)};
            values[row * CELLS + column] = psld_mixture_density(mixture, x);
        }
    psld_panel_density(panel, CELLS, CELLS, centre[0] - half, centre[0] + half, centre[1] - half, centre[1] + half,
                       values);
    psld_release(values);
    return PSLD_OK;
}

static psld_status add_points(psld_panel *panel, const double *points, size_t count)
{
    enum { MOST = 20000 }; /* more would only make the picture black */
    size_t shown = count < MOST ? count : MOST;
    double *x = psld_alloc(2 * shown, sizeof *x);
    if (!x) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < shown; i++) x[i] = points[2 * i], x[shown + i] = points[2 * i + 1];
    psld_panel_points(panel, shown, x, x + shown, 1, shown > 3000 ? 0.6 : 1.1, shown > 3000 ? 0.35 : 0.6, NULL);
    psld_release(x);
    return PSLD_OK;
}

psld_status psld_plot_points(const psld_mixture *mixture, const double *points, size_t count, const char *title,
                             const char *path)
{
    double centre[2], half;
    if (mixture && psld_mixture_dim(mixture) != 2)
        return psld_fail(PSLD_BAD_ARGUMENT, "plot: expected a mixture of 2 dimensions, found %zu",
                         psld_mixture_dim(mixture));
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "plot: expected at least one point");
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 420, 420);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, title, NULL, NULL, PSLD_EQUAL_AXES);
    frame_of(mixture, points, count, centre, &half);
    psld_panel_range(panel, centre[0] - half, centre[0] + half, centre[1] - half, centre[1] + half);
    psld_status status = mixture ? add_density_panel(panel, mixture, centre, half) : PSLD_OK;
    if (status == PSLD_OK) status = add_points(panel, points, count);
    if (status == PSLD_OK) status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    return status;
}
