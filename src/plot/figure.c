/* Recording a figure, and turning it into the bytes of a file.
 *
 * Invariants:
 *   1. Once figure->status is not PSLD_OK nothing changes any more: save returns the first failure.
 *   2. A file is opened only when all its bytes are there, so a figure that fails leaves no file.
 *   3. Text that is recorded is valid UTF-8 without control characters, which is what cairo asks for. */
#include <cairo-svg.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/files/file.h"
#include "plot/figure_private.h"

enum { MAX_PANELS_A_SIDE = 64 };

static const double smallest_panel = 40, largest_page = 16000; /* cairo's images end at 32767 pixels */
static const double png_scale = 2, svg_pixels = 1.5;

/* ---- Recording --------------------------------------------------------------------------------------------------- */

/* Keeps a failure with the text that psld_fail has just set. */
static void keep_failure(psld_figure *figure, psld_status status)
{
    if (figure->status != PSLD_OK || status == PSLD_OK) return;
    figure->status = status;
    snprintf(figure->error, sizeof figure->error, "%s", psld_error_text());
}

/* Bytes of the UTF-8 sequence at s; 0 if cairo would refuse it, which accepts valid characters only. */
static size_t sequence_length(const char *s)
{
    unsigned long code = 0;
    size_t length = psld_text_utf8(s, &code);
    int is_character = !(code >= 0xfdd0 && code <= 0xfdef) && (code & 0xfffe) != 0xfffe;
    return is_character ? length : 0;
}

/* A copy that cairo can draw. Titles contain names of recipes and files, so the text may be anything. */
static char *copy_drawable(const char *text)
{
    char *copy = psld_copy_text(text);
    if (!copy) return NULL;
    for (char *s = copy; *s;) {
        size_t length = sequence_length(s);
        if (length == 0) *s = '?';
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = ' ';
        s += length ? length : 1;
    }
    return copy;
}

/* Replaces *slot. NULL and "" both mean no text. */
static void record_text(psld_figure *figure, char **slot, const char *text)
{
    psld_release(*slot);
    *slot = NULL;
    if (!text || !*text) return;
    *slot = copy_drawable(text);
    if (!*slot) keep_failure(figure, PSLD_NO_MEMORY);
}

static psld_status check_figure_size(int rows, int columns, double width, double height)
{
    if (rows < 1 || columns < 1 || rows > MAX_PANELS_A_SIDE || columns > MAX_PANELS_A_SIDE)
        return psld_fail(PSLD_BAD_ARGUMENT, "figure of %d x %d panels: expected 1 to %d each way", rows, columns,
                         MAX_PANELS_A_SIDE);
    /* The comparisons are false for NaN. */
    if (width >= smallest_panel && height >= smallest_panel && width * columns <= largest_page &&
        height * rows <= largest_page)
        return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "panels of %g x %g points: expected %g or more each, %g or less in all", width,
                     height, smallest_panel, largest_page);
}

psld_figure *psld_figure_create(const char *title, int rows, int columns, double panel_width, double panel_height)
{
    psld_figure *figure = psld_alloc(1, sizeof *figure);
    if (!figure) return NULL;
    keep_failure(figure, check_figure_size(rows, columns, panel_width, panel_height));
    if (figure->status != PSLD_OK) return figure;
    figure->panel_width = panel_width;
    figure->panel_height = panel_height;
    record_text(figure, &figure->title, title);
    figure->panels = psld_alloc((size_t)rows * (size_t)columns, sizeof *figure->panels);
    if (!figure->panels) {
        keep_failure(figure, PSLD_NO_MEMORY);
        return figure;
    }
    figure->rows = rows;
    figure->columns = columns;
    for (int i = 0; i < rows * columns; i++) {
        figure->panels[i].figure = figure;
        for (int j = 0; j < 4; j++) figure->panels[i].range[j] = (double)NAN;
    }
    return figure;
}

static void release_mark(psld_mark *mark)
{
    psld_release(mark->x);
    psld_release(mark->y);
    psld_release(mark->values);
    psld_release(mark->label);
}

void psld_figure_free(psld_figure *figure)
{
    if (!figure) return;
    for (int i = 0; i < figure->rows * figure->columns; i++) {
        psld_panel *panel = &figure->panels[i];
        for (size_t j = 0; j < panel->count; j++) release_mark(&panel->marks[j]);
        psld_release(panel->marks);
        psld_release(panel->title);
        psld_release(panel->x_label);
        psld_release(panel->y_label);
    }
    psld_release(figure->panels);
    psld_release(figure->title);
    psld_release(figure);
}

psld_panel *psld_figure_panel(psld_figure *figure, int row, int column)
{
    if (!figure || figure->status != PSLD_OK) return NULL;
    if (row < 0 || column < 0 || row >= figure->rows || column >= figure->columns) {
        keep_failure(figure, psld_fail(PSLD_BAD_ARGUMENT, "panel (%d, %d) of a figure with %d x %d", row, column,
                                       figure->rows, figure->columns));
        return NULL;
    }
    return &figure->panels[row * figure->columns + column];
}

/* Whether there is a panel to record to. */
static int begin_recording(psld_panel *panel)
{
    if (!panel || panel->figure->status != PSLD_OK) return 0;
    panel->used = 1;
    return 1;
}

void psld_panel_frame(psld_panel *panel, const char *title, const char *x_label, const char *y_label, int flags)
{
    if (!begin_recording(panel)) return;
    record_text(panel->figure, &panel->title, title);
    record_text(panel->figure, &panel->x_label, x_label);
    record_text(panel->figure, &panel->y_label, y_label);
    panel->flags = flags;
}

void psld_panel_range(psld_panel *panel, double x0, double x1, double y0, double y1)
{
    if (!begin_recording(panel)) return;
    panel->range[0] = x0;
    panel->range[1] = x1;
    panel->range[2] = y0;
    panel->range[3] = y1;
}

/* Adds the mark to the panel, or releases it if the figure has failed. Either way the caller no longer owns it. */
static void record_mark(psld_panel *panel, psld_mark *mark, const char *label)
{
    void *marks = panel->marks;
    record_text(panel->figure, &mark->label, label);
    keep_failure(panel->figure, psld_grow(&marks, &panel->capacity, panel->count + 1, sizeof *mark));
    panel->marks = marks;
    if (panel->figure->status == PSLD_OK)
        panel->marks[panel->count++] = *mark;
    else
        release_mark(mark);
}

static double *copy_numbers(const double *numbers, size_t count)
{
    double *copy = psld_alloc(count, sizeof *copy);
    if (copy && count) memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

static void record_series(psld_panel *panel, psld_mark mark, const double *x, const double *y, const char *label)
{
    mark.x = copy_numbers(x, mark.count);
    mark.y = copy_numbers(y, mark.count);
    if (!mark.x || !mark.y) keep_failure(panel->figure, PSLD_NO_MEMORY);
    record_mark(panel, &mark, label);
}

void psld_panel_curve(psld_panel *panel, size_t count, const double *x, const double *y, int colour, psld_dash dash,
                      const char *label)
{
    if (!begin_recording(panel)) return;
    psld_mark mark = {.kind = PSLD_MARK_CURVE, .count = count, .colour = colour, .dash = dash};
    record_series(panel, mark, x, y, label);
}

void psld_panel_points(psld_panel *panel, size_t count, const double *x, const double *y, int colour, double radius,
                       double opacity, const char *label)
{
    if (!begin_recording(panel)) return;
    psld_mark mark = {.kind = PSLD_MARK_POINTS, .count = count, .colour = colour};
    /* fmin and fmax return the number when the other argument is NaN. */
    mark.radius = fmin(fmax(radius, 0.25), 50);
    mark.opacity = fmin(fmax(opacity, 0), 1);
    record_series(panel, mark, x, y, label);
}

void psld_panel_density(psld_panel *panel, int nx, int ny, double x0, double x1, double y0, double y1,
                        const double *values)
{
    if (!begin_recording(panel)) return;
    if (nx < 1 || ny < 1) {
        keep_failure(panel->figure, psld_fail(PSLD_BAD_ARGUMENT, "density map of %d x %d values", nx, ny));
        return;
    }
    psld_mark mark = {.kind = PSLD_MARK_DENSITY, .count = (size_t)nx * (size_t)ny, .nx = nx, .ny = ny};
    const double edge[4] = {x0, x1, y0, y1};
    memcpy(mark.edge, edge, sizeof edge);
    mark.values = copy_numbers(values, mark.count);
    if (!mark.values) {
        keep_failure(panel->figure, PSLD_NO_MEMORY);
        return;
    }
    double largest = 0;
    for (size_t i = 0; i < mark.count; i++) {
        if (!(mark.values[i] > 0 && isfinite(mark.values[i]))) mark.values[i] = 0;
        largest = fmax(largest, mark.values[i]);
    }
    for (size_t i = 0; i < mark.count && largest > 0; i++) mark.values[i] /= largest;
    record_mark(panel, &mark, NULL);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

static cairo_status_t receive_bytes(void *to, const unsigned char *data, unsigned size)
{
    psld_bytes_put(to, data, size);
    return ((psld_bytes *)to)->status == PSLD_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* The failure to report. Our own comes first: cairo calls it only an "error while writing". */
static psld_status render_status(psld_status ours, const psld_bytes *out, cairo_status_t cairos)
{
    if (ours != PSLD_OK) return ours;
    if (out->status != PSLD_OK) return out->status;
    if (cairos == CAIRO_STATUS_SUCCESS) return PSLD_OK;
    return psld_fail(cairos == CAIRO_STATUS_NO_MEMORY ? PSLD_NO_MEMORY : PSLD_IO, "cairo cannot draw the figure: %s",
                     cairo_status_to_string(cairos));
}

static psld_status draw_on(cairo_surface_t *surface, const psld_figure *figure, double scale, double pixels,
                           cairo_status_t *cairos)
{
    psld_canvas canvas = {cairo_create(surface), pixels};
    cairo_scale(canvas.cr, scale, scale);
    psld_status status = psld_figure_draw(&canvas, figure);
    *cairos = cairo_status(canvas.cr);
    cairo_destroy(canvas.cr);
    return status;
}

static psld_status render_png(const psld_figure *figure, psld_bytes *out)
{
    double width = 0, height = 0;
    psld_figure_size(figure, &width, &height);
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(png_scale * width), (int)ceil(png_scale * height));
    cairo_status_t cairos = CAIRO_STATUS_SUCCESS;
    psld_status status = draw_on(surface, figure, png_scale, png_scale, &cairos);
    if (status == PSLD_OK && cairos == CAIRO_STATUS_SUCCESS)
        cairos = cairo_surface_write_to_png_stream(surface, receive_bytes, out);
    cairo_surface_destroy(surface);
    return render_status(status, out, cairos);
}

static psld_status render_svg(const psld_figure *figure, psld_bytes *out)
{
    double width = 0, height = 0;
    psld_bytes raw = {0};
    psld_figure_size(figure, &width, &height);
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(receive_bytes, &raw, width, height);
    cairo_status_t cairos = CAIRO_STATUS_SUCCESS;
    psld_status status = draw_on(surface, figure, 1, svg_pixels, &cairos);
    cairo_surface_finish(surface);
    if (cairos == CAIRO_STATUS_SUCCESS) cairos = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    status = render_status(status, &raw, cairos);
    if (status == PSLD_OK) status = psld_svg_tidy(&raw, out);
    psld_release(raw.data);
    return status;
}

psld_status psld_figure_save(psld_figure *figure, const char *path)
{
    if (!figure) return psld_fail(PSLD_NO_MEMORY, "%s: out of memory for the figure", path);
    if (figure->status != PSLD_OK) return psld_fail(figure->status, "%s: %s", path, figure->error);
    int svg = psld_text_ends_in(path, ".svg");
    if (!svg && !psld_text_ends_in(path, ".png"))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a name that ends in .svg or .png", path);
    psld_bytes out = {0};
    psld_writer *writer = NULL;
    psld_status status = svg ? render_svg(figure, &out) : render_png(figure, &out);
    if (status != PSLD_OK) psld_fail_in(status, "%s", path);
    if (status == PSLD_OK) status = psld_writer_open(path, &writer);
    if (status == PSLD_OK) {
        psld_writer_put(writer, out.data, out.size);
        status = psld_writer_commit(writer);
    }
    psld_release(out.data);
    return status;
}
