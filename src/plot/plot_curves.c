/* Curves in one frame. */
#include "plot/figure.h"
#include "psld_plot.h"

psld_status psld_plot_curves(const char *title, const char *x_label, const char *y_label, int log_x, int log_y,
                             const psld_curve *curves, size_t count, const char *path)
{
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 560, 420);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, title, x_label, y_label, (log_x ? PSLD_LOG_X : 0) | (log_y ? PSLD_LOG_Y : 0));
    for (size_t i = 0; i < count; i++) {
        const psld_curve *c = &curves[i];
        psld_dash dash = c->dash == 0 ? PSLD_SOLID : c->dash == 1 ? PSLD_DASHED : PSLD_DOTTED;
        psld_panel_curve(panel, c->count, c->x, c->y, c->colour, dash, c->label);
        psld_panel_points(panel, c->count, c->x, c->y, c->colour, 2.5, 1, NULL);
    }
    psld_status status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    return status;
}
