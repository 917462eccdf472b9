/* The page: where panels are, and in which order they are drawn.
 *
 * Every panel has a cell of the same size. The frames of a row share their upper and lower edge and those of a column
 * their left and right one: margins are the largest that any panel of the row or column needs. Heights of text are
 * known, so the vertical margins come first; they give the y ticks, whose labels give the left margins; then the
 * width of the frames gives the x ticks. */
#include <math.h>

#include "base/alloc.h"
#include "plot/page.h"

static const double page_title_height = 34;

static psld_status draw_marks(const psld_canvas *canvas, const view *v)
{
    const psld_box *f = &v->frame;
    psld_status status = PSLD_OK;
    cairo_save(canvas->cr);
    cairo_rectangle(canvas->cr, f->x0, f->y0, f->x1 - f->x0, f->y1 - f->y0);
    cairo_clip(canvas->cr);
    for (int maps = 1; maps >= 0; maps--) /* maps first: they cover what was drawn before */
        for (size_t i = 0; i < v->panel->count && status == PSLD_OK; i++)
            if ((v->panel->marks[i].kind == PSLD_MARK_DENSITY) == maps)
                status = psld_mark_draw(canvas, &v->panel->marks[i], &v->x, &v->y, f);
    cairo_restore(canvas->cr);
    return status;
}

static psld_status draw_panel(const psld_canvas *canvas, const view *v, const psld_box *cell, double left)
{
    psld_grid_draw(canvas->cr, v);
    PSLD_TRY(draw_marks(canvas, v));
    psld_frame_draw(canvas->cr, v);
    psld_tick_labels_draw(canvas->cr, v);
    psld_titles_draw(canvas->cr, v, cell, left);
    psld_legend_draw(canvas->cr, v);
    return PSLD_OK;
}

static psld_box cell_of_panel(const psld_figure *figure, int index)
{
    double x = index % figure->columns * figure->panel_width;
    double y = index / figure->columns * figure->panel_height + (figure->title ? page_title_height : 0);
    return (psld_box){x, y, x + figure->panel_width, y + figure->panel_height};
}

static void keep_largest(double *a, double b)
{
    *a = fmax(*a, b);
}

/* Margins of all rows and columns: m[i] has the vertical ones of row i and the horizontal ones of column i. */
static void find_margins(cairo_t *cr, const psld_figure *figure, margins *m, view *v)
{
    double tick_height = tick_length + 3 + 2 * psld_text_half_height(tick_size);
    int count = figure->rows * figure->columns;
    for (int i = 0; i < count; i++) {
        const psld_panel *panel = &figure->panels[i];
        margins *row = &m[i / figure->columns];
        keep_largest(&row->top, panel->title ? gap / 2 + 7 + title_size : gap + 4);
        keep_largest(&row->bottom, gap + tick_height + (panel->x_label ? 1.6 * label_size : 0));
        keep_largest(&m[i % figure->columns].right, 1.3 * gap);
    }
    for (int i = 0; i < count; i++) {
        const psld_panel *panel = &figure->panels[i];
        psld_box cell = cell_of_panel(figure, i);
        const margins *row = &m[i / figure->columns];
        const margins guess = {50, 1.3 * gap, row->top, row->bottom};
        if (!panel->used) continue;
        psld_view_make(cr, panel, &cell, &guess, v);
        keep_largest(&m[i % figure->columns].left,
                     gap + tick_length + 3 + v->label_width + (panel->y_label ? 1.6 * label_size : 0));
    }
}

static void set_up_page(cairo_t *cr)
{
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(cr, options);
    cairo_font_options_destroy(options);
    psld_colour_set(cr, 0xffffff, 1);
    cairo_paint(cr);
}

void psld_figure_size(const psld_figure *figure, double *width, double *height)
{
    *width = figure->panel_width * figure->columns;
    *height = figure->panel_height * figure->rows + (figure->title ? page_title_height : 0);
}

psld_status psld_figure_draw(const psld_canvas *canvas, const psld_figure *figure)
{
    double width = 0, height = 0;
    psld_status status = PSLD_OK;
    size_t longer = (size_t)(figure->rows > figure->columns ? figure->rows : figure->columns);
    margins *m = psld_alloc(longer, sizeof *m);
    view *v = psld_alloc(1, sizeof *v);
    if (!m || !v) PSLD_TRY_OR(end, PSLD_NO_MEMORY);
    set_up_page(canvas->cr);
    psld_figure_size(figure, &width, &height);
    psld_colour_set(canvas->cr, ink, 1);
    if (figure->title)
        psld_text_draw(canvas->cr, figure->title, width / 2, gap + page_title_size, 0.5, page_title_size, 1,
                       width - 2 * gap);
    find_margins(canvas->cr, figure, m, v);
    for (int i = 0; i < figure->rows * figure->columns && status == PSLD_OK; i++) {
        const margins *row = &m[i / figure->columns], *column = &m[i % figure->columns];
        const margins mine = {column->left, column->right, row->top, row->bottom};
        psld_box cell = cell_of_panel(figure, i);
        if (!figure->panels[i].used) continue;
        psld_view_make(canvas->cr, &figure->panels[i], &cell, &mine, v);
        status = draw_panel(canvas, v, &cell, column->left);
    }
end:
    psld_release(m);
    psld_release(v);
    return status;
}
