/* A process with formulas: its paths, where they end, and the residual for each size of the grid. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "plot/figure.h"
#include "process/process.h"
#include "psld_plot.h"

enum { SIZE = 320, PATHS = 15, TIMES = 200, ENDS = 3000, CELLS = 120 };

/* Paths from -1, 0 and 1, five of each, at even times. */
static psld_status add_paths(const psld_process *process, psld_panel *panel)
{
    static const double starts[] = {-1, 0, 1};
    size_t n = (size_t)process->variables;
    double *z = psld_alloc(PATHS * n, sizeof *z), *x = z ? psld_alloc((PATHS + 1) * (TIMES + 1), sizeof *x) : NULL;
    psld_status status = x ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t i = 0; status == PSLD_OK && i < PATHS; i++) {
        for (size_t d = 0; d < (size_t)process->data; d++) z[i * n + d] = starts[i % 3];
        psld_process_begin(process, 1, i, 0, z + i * n);
    }
    for (int s = 0; status == PSLD_OK && s <= TIMES; s++) {
        double t = (double)s / TIMES, before = (double)(s - 1) / TIMES;
        if (s) status = psld_process_simulate(process, 1, (uint64_t)s * PATHS, PATHS, before, t, 8, z);
        x[s] = t;
        for (size_t i = 0; i < PATHS; i++) x[(i + 1) * (TIMES + 1) + (size_t)s] = z[i * n];
    }
    for (size_t i = 0; status == PSLD_OK && i < PATHS; i++)
        psld_panel_curve(panel, TIMES + 1, x, x + (i + 1) * (TIMES + 1), (int)(i % 3), PSLD_SOLID, NULL);
    psld_release(z);
    psld_release(x);
    return status;
}

/* exp(-H) in the plane of a process of two variables. */
static psld_status add_energy(const psld_process *process, const psld_process_report *r, psld_panel *panel)
{
    double *z = psld_alloc(2 * CELLS * CELLS, sizeof *z), *H = z ? psld_alloc(CELLS * CELLS, sizeof *H) : NULL;
    psld_status status = H ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t i = 0; H && i < CELLS * CELLS; i++) {
        z[2 * i] = r->low[0] + (r->high[0] - r->low[0]) * (double)(i % CELLS) / (CELLS - 1);
        z[2 * i + 1] = r->low[1] + (r->high[1] - r->low[1]) * (double)(i / CELLS) / (CELLS - 1);
    }
    if (status == PSLD_OK) status = psld_process_energy(process, CELLS * CELLS, z, H, NULL);
    if (status == PSLD_OK) {
        double least = (double)INFINITY;
        for (size_t i = 0; i < CELLS * CELLS; i++) least = fmin(least, H[i]);
        for (size_t i = 0; i < CELLS * CELLS; i++) H[i] = exp(least - H[i]);
        psld_panel_density(panel, CELLS, CELLS, r->low[0], r->high[0], r->low[1], r->high[1], H);
    }
    psld_release(z);
    psld_release(H);
    return status;
}

/* Ends of paths from 0, in the first two variables. */
static psld_status add_ends(const psld_process *process, psld_panel *panel)
{
    size_t n = (size_t)process->variables, second = n > 1;
    double *z = psld_alloc(ENDS * n, sizeof *z), *x = z ? psld_alloc(2 * ENDS, sizeof *x) : NULL;
    psld_status status = x ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t i = 0; x && i < ENDS; i++) psld_process_begin(process, 2, i, 0, z + i * n);
    if (status == PSLD_OK) status = psld_process_simulate(process, 2, 0, ENDS, 0, 1, 0, z);
    for (size_t i = 0; status == PSLD_OK && i < ENDS; i++) {
        x[i] = z[i * n];
        x[ENDS + i] = z[i * n + second];
    }
    if (status == PSLD_OK) psld_panel_points(panel, ENDS, x, x + ENDS, 1, 0.7, 0.5, NULL);
    psld_release(z);
    psld_release(x);
    return status;
}

psld_status psld_plot_process(const psld_process *process, const psld_process_report *report, const char *path)
{
    psld_figure *figure = psld_figure_create(process->name, 1, report->grids ? 3 : 2, SIZE, SIZE);
    psld_panel *paths = psld_figure_panel(figure, 0, 0), *ends = psld_figure_panel(figure, 0, 1);
    psld_panel_frame(paths, "paths", "t", process->variable[0], 0);
    psld_panel_frame(ends, process->variables == 2 ? "ends of paths from 0, over exp(-H)" : "ends of paths from 0",
                     process->variable[0], process->variable[process->variables > 1], 0);
    psld_status status = add_paths(process, paths);
    if (status == PSLD_OK && process->variables == 2) status = add_energy(process, report, ends);
    if (status == PSLD_OK) status = add_ends(process, ends);
    if (status == PSLD_OK && report->grids) {
        psld_panel *grid = psld_figure_panel(figure, 0, 2);
        psld_panel_frame(grid, "residual by differences", "points a variable", NULL, PSLD_LOG_X | PSLD_LOG_Y);
        psld_panel_curve(grid, (size_t)report->grids, report->points, report->grid_residual, 0, PSLD_SOLID, NULL);
    }
    if (status == PSLD_OK) status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    return status;
}
