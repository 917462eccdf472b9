/* The page: where panels are, their frames, ticks, titles and legends.
 *
 * Every panel has a cell of the same size. The frames of a row share their upper and lower edge and those of a column
 * their left and right one: margins are the largest that any panel of the row or column needs. Heights of text are
 * known, so the vertical margins come first; they give the y ticks, whose labels give the left margins; then the
 * width of the frames gives the x ticks. Thin lines are moved by up to a quarter of a point, to be sharp in a .png. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plot/figure_private.h"

static const double tick_size = 8, label_size = 9, title_size = 10, page_title_size = 13; /* of fonts, in points */
static const double gap = 12;                                                             /* around a cell */
static const double tick_length = 3.5, minor_length = 2, page_title_height = 34;
static const double smallest_frame = 12;

static const unsigned ink = 0x1f1f1f, soft_ink = 0x444444, frame_grey = 0x9a9a9a, grid_grey = 0xe8e8e8;

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void set_font(cairo_t *cr, double size, int bold)
{
    cairo_select_font_face(cr, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, size);
}

/* Copies bytes up to `end`, as many as fit without splitting a character; returns their number. */
static size_t copy_drawable_part(const char *text, const char *end, char *piece, size_t room)
{
    size_t n = (size_t)(end - text);
    if (n > room - 1)
        for (n = room - 1; n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
    memcpy(piece, text, n);
    piece[n] = 0;
    return n;
}

/* Where the part that begins at `text` ends: a script is ^{...} or _{...}, anything else is plain. */
static const char *part_end(const char *text, int script)
{
    if (script) return strchr(text, '}');
    const char *s = text + 1;
    while (*s && !((*s == '^' || *s == '_') && s[1] == '{' && strchr(s, '}'))) s++;
    return s;
}

static double draw_text_part(cairo_t *cr, const char *piece, int show)
{
    cairo_text_extents_t extents;
    cairo_text_extents(cr, piece, &extents);
    if (show) cairo_show_text(cr, piece);
    return extents.x_advance;
}

/* Advance of a text with scripts; shows it from the current point on, too, if told. */
static double show_text(cairo_t *cr, const char *text, double size, int bold, int show)
{
    double advance = 0;
    while (*text) {
        int script = (*text == '^' || *text == '_') && text[1] == '{' && strchr(text, '}');
        double shift = !script ? 0 : *text == '^' ? -0.36 * size : 0.16 * size;
        const char *end = part_end(text, script);
        if (script) text += 2;
        set_font(cr, script ? 0.72 * size : size, bold);
        if (show) cairo_rel_move_to(cr, 0, shift);
        if (script && *text == '-') { /* an exponent: a minus sign is longer than a hyphen */
            advance += draw_text_part(cr, "\xe2\x88\x92", show);
            text++;
        }
        while (text < end) {
            char piece[256];
            text += copy_drawable_part(text, end, piece, sizeof piece);
            advance += draw_text_part(cr, piece, show);
        }
        if (show) cairo_rel_move_to(cr, 0, -shift);
        if (script) text++;
    }
    return advance;
}

static double text_width(cairo_t *cr, const char *text, double size)
{
    return show_text(cr, text, size, 0, 0);
}

/* Draws with its baseline at y; `align` 0, 0.5, 1 puts its left end, middle, right end at x. Shrinks to `room`. */
static void draw_text(cairo_t *cr, const char *text, double x, double y, double align, double size, int bold,
                      double room)
{
    double width = show_text(cr, text, size, bold, 0);
    if (width > room) {
        size *= fmax(room / width, 0.5);
        width = show_text(cr, text, size, bold, 0);
    }
    cairo_move_to(cr, x - align * width, y);
    show_text(cr, text, size, bold, 1);
    cairo_new_path(cr);
}

/* Half the height of figures and capitals. */
static double half_height(double size)
{
    return 0.365 * size;
}

/* ---- Panels on the page ------------------------------------------------------------------------------------------ */

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

static double widest_label(cairo_t *cr, const psld_ticks *ticks)
{
    double widest = 0;
    for (int i = 0; i < ticks->count; i++) widest = fmax(widest, text_width(cr, ticks->tick[i].label, tick_size));
    return widest;
}

static int labelled(const psld_ticks *ticks)
{
    int count = 0;
    for (int i = 0; i < ticks->count; i++) count += ticks->tick[i].label[0] != 0;
    return count;
}

/* Removes labels that would touch the one before. */
static void thin_labels(cairo_t *cr, const psld_axis *axis, int vertical, psld_ticks *ticks)
{
    double last = -1e9;
    for (int i = 0; i < ticks->count; i++) {
        psld_tick *tick = &ticks->tick[i];
        if (!tick->label[0]) continue;
        double size = vertical ? 1.3 * tick_size : text_width(cr, tick->label, tick_size) + 5;
        double at = fabs(psld_axis_place_tick(axis, tick->at) - axis->at_lo);
        if (at - size / 2 < last)
            tick->label[0] = 0;
        else
            last = at + size / 2;
    }
}

static void choose_x_ticks(cairo_t *cr, view *v)
{
    double length = v->frame.x1 - v->frame.x0;
    for (int target = (int)fmin(fmax(length / 34, 1), 8); target >= 1; target--) {
        psld_axis_ticks(&v->x, target, &v->x_ticks);
        if (labelled(&v->x_ticks) * (widest_label(cr, &v->x_ticks) + 12) <= length) break;
    }
    thin_labels(cr, &v->x, 0, &v->x_ticks);
}

static void choose_y_ticks(cairo_t *cr, view *v)
{
    double length = v->frame.y1 - v->frame.y0;
    psld_axis_ticks(&v->y, (int)fmin(fmax(length / 21, 2), 8), &v->y_ticks);
    thin_labels(cr, &v->y, 1, &v->y_ticks);
    v->label_width = fmax(widest_label(cr, &v->y_ticks), text_width(cr, v->y_ticks.factor, tick_size));
}

/* Makes units equally long: first by a smaller frame, then, not to make it a sliver, by a larger range. */
static void equalise_units(view *v)
{
    double width = v->frame.x1 - v->frame.x0, height = v->frame.y1 - v->frame.y0;
    double unit = fmin(width / (v->x.hi - v->x.lo), height / (v->y.hi - v->y.lo));
    double w = fmin(fmax((v->x.hi - v->x.lo) * unit, 0.45 * width), width);
    double h = fmin(fmax((v->y.hi - v->y.lo) * unit, 0.45 * height), height);
    psld_axis_stretch(&v->x, w / unit);
    psld_axis_stretch(&v->y, h / unit);
    v->frame.x0 += (width - w) / 2;
    v->frame.x1 = v->frame.x0 + w;
    v->frame.y0 += (height - h) / 2;
    v->frame.y1 = v->frame.y0 + h;
}

/* Everything about a panel in its cell that does not depend on other panels. */
static void make_view(cairo_t *cr, const psld_panel *panel, const psld_box *cell, const margins *m, view *v)
{
    v->panel = panel;
    v->frame.x0 = ceil(cell->x0 + m->left);
    v->frame.y0 = ceil(cell->y0 + m->top);
    v->frame.x1 = fmax(floor(cell->x1 - m->right), v->frame.x0 + smallest_frame);
    v->frame.y1 = fmax(floor(cell->y1 - m->bottom), v->frame.y0 + smallest_frame);
    psld_axes_fit(panel, &v->x, &v->y);
    /* A unit and a decade cannot be compared. */
    if (panel->flags & PSLD_EQUAL_AXES && v->x.log == v->y.log) equalise_units(v);
    psld_axis_set(&v->x, v->frame.x0, v->frame.x1);
    psld_axis_set(&v->y, v->frame.y1, v->frame.y0);
    choose_y_ticks(cr, v);
    choose_x_ticks(cr, v);
}

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

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

static void draw_grid(cairo_t *cr, const view *v)
{
    for (size_t i = 0; i < v->panel->count; i++)
        if (v->panel->marks[i].kind == PSLD_MARK_DENSITY) return; /* the map would hide half of it */
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

static void draw_frame(cairo_t *cr, const view *v)
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

static const double any_room = 1e9;

static void draw_tick_labels(cairo_t *cr, const view *v)
{
    const psld_box *f = &v->frame;
    double below = f->y1 + tick_length + 3 + 2 * half_height(tick_size), left = f->x0 - tick_length - 3;
    psld_colour_set(cr, soft_ink, 1);
    for (int i = 0; i < v->x_ticks.count; i++)
        draw_text(cr, v->x_ticks.tick[i].label, psld_axis_place_tick(&v->x, v->x_ticks.tick[i].at), below, 0.5,
                  tick_size, 0, any_room);
    for (int i = 0; i < v->y_ticks.count; i++)
        draw_text(cr, v->y_ticks.tick[i].label, left,
                  psld_axis_place_tick(&v->y, v->y_ticks.tick[i].at) + half_height(tick_size), 1, tick_size, 0,
                  any_room);
    draw_text(cr, v->x_ticks.factor, f->x1, below + 1.45 * label_size, 1, tick_size, 0, any_room);
    draw_text(cr, v->y_ticks.factor, left, f->y0 - 7, 1, tick_size, 0, any_room);
}

/* `left` is the margin of the column: labels of y axes stand in line, unless that is far from the ticks. */
static void draw_titles(cairo_t *cr, const view *v, const psld_box *cell, double left)
{
    const psld_box *f = &v->frame;
    const psld_panel *panel = v->panel;
    double middle = (f->y0 + f->y1) / 2, below = f->y1 + tick_length + 3 + 2 * half_height(tick_size);
    double beside = tick_length + 3 + v->label_width + 0.8 * label_size;
    psld_colour_set(cr, ink, 1);
    if (panel->title) draw_text(cr, panel->title, f->x0, f->y0 - 7, 0, title_size, 1, cell->x1 - f->x0 - 4);
    double centre = (f->x0 + f->x1) / 2, room = 2 * fmin(centre - cell->x0, cell->x1 - centre) - 4;
    if (panel->x_label) draw_text(cr, panel->x_label, centre, below + 1.6 * label_size, 0.5, label_size, 0, room);
    if (!panel->y_label) return;
    cairo_save(cr);
    cairo_translate(cr, f->x0 - fmax(beside, fmin(left - gap - 0.8 * label_size, beside + 12)), middle);
    cairo_rotate(cr, -2 * atan(1));
    draw_text(cr, panel->y_label, 0, 0, 0.5, label_size, 0, cell->y1 - cell->y0 - gap);
    cairo_restore(cr);
}

/* ---- Legends ----------------------------------------------------------------------------------------------------- */

static const double legend_line = 12.5, legend_inset = 6, legend_pad = 5;

typedef struct legend {
    int lines, columns, rows;
    double sample_width, column_width;
    double width, height, scale; /* before and by which it is scaled: one too large for the frame is drawn smaller */
    psld_box box;                /* on the page */
    double cover;                /* how much of the data it hides */
} legend;

static void measure_legend(cairo_t *cr, const psld_panel *panel, legend *l)
{
    double widest = 0;
    for (size_t i = 0; i < panel->count; i++) {
        if (!panel->marks[i].label) continue;
        l->lines++;
        l->sample_width = fmax(l->sample_width, panel->marks[i].kind == PSLD_MARK_CURVE ? 20 : 7);
        widest = fmax(widest, text_width(cr, panel->marks[i].label, tick_size));
    }
    l->column_width = l->sample_width + 5 + widest;
}

static void shape_legend(legend *l, int columns, const psld_box *frame)
{
    l->rows = (l->lines + columns - 1) / columns;
    l->columns = (l->lines + l->rows - 1) / l->rows;
    l->width = l->columns * (l->column_width + 2 * legend_pad);
    l->height = 2 * legend_pad - 3 + l->rows * legend_line;
    double across = (frame->x1 - frame->x0 - 2 * legend_inset) / l->width;
    double down = (frame->y1 - frame->y0 - 2 * legend_inset) / l->height;
    l->scale = fmax(fmin(1, fmin(across, down)), 0.3);
}

/* Puts it into the corner where it covers least of the data; the first of equal ones. */
static void place_legend(legend *l, const view *v)
{
    const psld_box *f = &v->frame;
    double width = l->scale * l->width, height = l->scale * l->height;
    double left = f->x0 + legend_inset, right = f->x1 - legend_inset - width;
    double top = f->y0 + legend_inset, bottom = f->y1 - legend_inset - height;
    const double corner[4][2] = {{right, top}, {left, top}, {right, bottom}, {left, bottom}};
    l->cover = HUGE_VAL;
    for (int c = 0; c < 4; c++) {
        double x = corner[c][0], y = corner[c][1], cover = 0;
        const psld_box around = {x - 3, y - 3, x + width + 3, y + height + 3};
        for (size_t i = 0; i < v->panel->count; i++)
            cover += psld_mark_cover(&v->panel->marks[i], &v->x, &v->y, &around);
        if (cover >= l->cover) continue;
        l->cover = cover;
        l->box = (psld_box){floor(x), floor(y), x + width, y + height};
    }
}

/* One column where it fits; more when that hides less and makes nothing smaller. */
static void choose_legend(cairo_t *cr, const view *v, legend *best)
{
    legend measured = {0};
    measure_legend(cr, v->panel, &measured);
    *best = measured;
    for (int columns = 1; columns <= 3 && columns <= measured.lines; columns++) {
        legend tried = measured;
        shape_legend(&tried, columns, &v->frame);
        place_legend(&tried, v);
        int better = tried.scale > best->scale || (tried.scale == best->scale && tried.cover < 0.7 * best->cover);
        if (columns == 1 || better) *best = tried;
    }
}

static void draw_legend(cairo_t *cr, const view *v)
{
    legend l;
    int line = 0;
    choose_legend(cr, v, &l);
    if (l.lines == 0) return;
    cairo_save(cr);
    cairo_translate(cr, l.box.x0, l.box.y0);
    cairo_scale(cr, l.scale, l.scale);
    cairo_rectangle(cr, 0, 0, l.width, l.height);
    psld_colour_set(cr, 0xffffff, 0.85);
    cairo_fill(cr);
    for (size_t i = 0; i < v->panel->count; i++) {
        const psld_mark *mark = &v->panel->marks[i];
        if (!mark->label) continue;
        double x = legend_pad + line / l.rows * (l.column_width + 2 * legend_pad);
        double y = legend_pad - 1.5 + (line % l.rows + 0.5) * legend_line;
        psld_mark_sample(cr, mark, x, y, l.sample_width);
        psld_colour_set(cr, ink, 1);
        draw_text(cr, mark->label, x + l.sample_width + 5, y + half_height(tick_size), 0, tick_size, 0, any_room);
        line++;
    }
    cairo_restore(cr);
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

static psld_status draw_marks(const psld_canvas *canvas, const view *v)
{
    const psld_box *f = &v->frame;
    psld_status status = PSLD_OK;
    cairo_save(canvas->cr);
    cairo_rectangle(canvas->cr, f->x0, f->y0, f->x1 - f->x0, f->y1 - f->y0);
    cairo_clip(canvas->cr);
    for (int maps = 1; maps >= 0; maps--) /* maps first: they hide what is under them */
        for (size_t i = 0; i < v->panel->count && status == PSLD_OK; i++)
            if ((v->panel->marks[i].kind == PSLD_MARK_DENSITY) == maps)
                status = psld_mark_draw(canvas, &v->panel->marks[i], &v->x, &v->y, f);
    cairo_restore(canvas->cr);
    return status;
}

static psld_status draw_panel(const psld_canvas *canvas, const view *v, const psld_box *cell, double left)
{
    draw_grid(canvas->cr, v);
    PSLD_TRY(draw_marks(canvas, v));
    draw_frame(canvas->cr, v);
    draw_tick_labels(canvas->cr, v);
    draw_titles(canvas->cr, v, cell, left);
    draw_legend(canvas->cr, v);
    return PSLD_OK;
}

static psld_box cell_of_panel(const psld_figure *figure, int index)
{
    double x = index % figure->columns * figure->panel_width;
    double y = index / figure->columns * figure->panel_height + (figure->title ? page_title_height : 0);
    return (psld_box){x, y, x + figure->panel_width, y + figure->panel_height};
}

static void largest(double *a, double b)
{
    *a = fmax(*a, b);
}

/* Margins of all rows and columns: m[i] has the vertical ones of row i and the horizontal ones of column i. */
static void find_margins(cairo_t *cr, const psld_figure *figure, margins *m, view *v)
{
    double tick_height = tick_length + 3 + 2 * half_height(tick_size);
    int count = figure->rows * figure->columns;
    for (int i = 0; i < count; i++) {
        const psld_panel *panel = &figure->panels[i];
        margins *row = &m[i / figure->columns];
        largest(&row->top, panel->title ? gap / 2 + 7 + title_size : gap + 4);
        largest(&row->bottom, gap + tick_height + (panel->x_label ? 1.6 * label_size : 0));
        largest(&m[i % figure->columns].right, 1.3 * gap);
    }
    for (int i = 0; i < count; i++) {
        const psld_panel *panel = &figure->panels[i];
        psld_box cell = cell_of_panel(figure, i);
        const margins *row = &m[i / figure->columns];
        const margins guess = {50, 1.3 * gap, row->top, row->bottom};
        if (!panel->used) continue;
        make_view(cr, panel, &cell, &guess, v);
        largest(&m[i % figure->columns].left,
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
        draw_text(canvas->cr, figure->title, width / 2, gap + page_title_size, 0.5, page_title_size, 1,
                  width - 2 * gap);
    find_margins(canvas->cr, figure, m, v);
    for (int i = 0; i < figure->rows * figure->columns && status == PSLD_OK; i++) {
        const margins *row = &m[i / figure->columns], *column = &m[i % figure->columns];
        const margins mine = {column->left, column->right, row->top, row->bottom};
        psld_box cell = cell_of_panel(figure, i);
        if (!figure->panels[i].used) continue;
        make_view(canvas->cr, &figure->panels[i], &cell, &mine, v);
        status = draw_panel(canvas, v, &cell, column->left);
    }
end:
    psld_release(m);
    psld_release(v);
    return status;
}
