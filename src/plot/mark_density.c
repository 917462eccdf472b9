/* Density maps: an image of the values, interpolated, in shades of blue. */
#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "plot/marks.h"

/* White to dark blue with lightness falling evenly: "Blues" of ColorBrewer (Brewer, 2003), begun at pure white. */
static const unsigned blues[] = {0xffffff, 0xe3eef9, 0xc9dcf0, 0xa1cae3, 0x6daed5,
                                 0x4191c6, 0x2271b5, 0x0a549e, 0x08306b};

static uint32_t blue_of_density(double value)
{
    enum { LAST = sizeof blues / sizeof *blues - 1 };
    double at = fmin(fmax(value, 0), 1) * LAST;
    int i = at < LAST ? (int)at : LAST - 1;
    uint32_t rgb = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = blues[i] >> shift & 255, b = blues[i + 1] >> shift & 255;
        rgb |= (uint32_t)(a + (at - i) * (b - a) + 0.5) << shift;
    }
    return rgb;
}

/* Cubic interpolation (Catmull & Rom) at one pixel: linear shows the grid as creases. */
typedef struct taps {
    int index[4];
    double weight[4];
} taps;

static void set_taps(taps *t, double at, int count)
{
    at = fmin(fmax(at, 0), count - 1); /* also when it is NaN */
    int i = (int)at;
    double u = at - i;
    t->weight[0] = u * (-0.5 + u * (1 - 0.5 * u));
    t->weight[1] = 1 + u * u * (-2.5 + 1.5 * u);
    t->weight[2] = u * (0.5 + u * (2 - 1.5 * u));
    t->weight[3] = u * u * (-0.5 + 0.5 * u);
    for (int k = 0; k < 4; k++) {
        int j = i + k - 1;
        t->index[k] = j < 0 ? 0 : j < count ? j : count - 1;
    }
}

/* Taps for pixel centres from page position `start` on. */
static taps *find_taps(const psld_axis *axis, double start, double pixels, int size, const double *edge, int count)
{
    taps *t = psld_alloc((size_t)size, sizeof *t);
    for (int i = 0; i < size && t; i++) {
        double value = psld_axis_value(axis, start + (i + 0.5) / pixels);
        set_taps(&t[i], (value - edge[0]) / (edge[1] - edge[0]) * (count - 1), count);
    }
    return t;
}

static void fill_image(cairo_surface_t *image, const psld_mark *mark, const taps *columns, const taps *rows)
{
    int width = cairo_image_surface_get_width(image), height = cairo_image_surface_get_height(image);
    unsigned char *data = cairo_image_surface_get_data(image);
    if (!data) return; /* the image keeps the failure */
    cairo_surface_flush(image);
    for (int j = 0; j < height; j++) {
        /* cairo aligns rows to the size of a pixel */
        uint32_t *row = (uint32_t *)(void *)(data + (ptrdiff_t)j * cairo_image_surface_get_stride(image));
        for (int i = 0; i < width; i++) {
            double sum = 0;
            for (int b = 0; b < 4; b++) {
                const double *values = mark->values + (ptrdiff_t)rows[j].index[b] * mark->nx;
                for (int a = 0; a < 4; a++)
                    sum += rows[j].weight[b] * columns[i].weight[a] * values[columns[i].index[a]];
            }
            row[i] = blue_of_density(sum);
        }
    }
    cairo_surface_mark_dirty(image);
}

/* Where the map is on the page within the frame, on whole pixels; returns 0 if it is outside. */
static int find_map(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *frame, double pixels,
                    psld_box *box)
{
    double at[4] = {frame->x0, frame->x1, frame->y0, frame->y1};
    for (int i = 0; i < 4; i++) {
        /* An edge that the axis cannot show, such as 0 on a log axis, is outside the frame. */
        if (!isfinite(mark->edge[i])) return 0;
        psld_axis_place(i < 2 ? x : y, mark->edge[i], &at[i]);
    }
    if (mark->edge[0] == mark->edge[1] || mark->edge[2] == mark->edge[3]) return 0;
    box->x0 = floor(fmax(fmin(at[0], at[1]), frame->x0) * pixels) / pixels;
    box->x1 = ceil(fmin(fmax(at[0], at[1]), frame->x1) * pixels) / pixels;
    box->y0 = floor(fmax(fmin(at[2], at[3]), frame->y0) * pixels) / pixels;
    box->y1 = ceil(fmin(fmax(at[2], at[3]), frame->y1) * pixels) / pixels;
    return box->x0 < box->x1 && box->y0 < box->y1;
}

psld_status psld_density_draw(const psld_canvas *canvas, const psld_mark *mark, const psld_axis *x, const psld_axis *y,
                              const psld_box *frame)
{
    psld_box box;
    double pixels = canvas->pixels;
    if (!find_map(mark, x, y, frame, pixels, &box)) return PSLD_OK;
    int width = (int)lround((box.x1 - box.x0) * pixels), height = (int)lround((box.y1 - box.y0) * pixels);
    taps *columns = find_taps(x, box.x0, pixels, width, mark->edge, mark->nx);
    taps *rows = find_taps(y, box.y0, pixels, height, mark->edge + 2, mark->ny);
    psld_status status = columns && rows ? PSLD_OK : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
        fill_image(image, mark, columns, rows);
        cairo_save(canvas->cr);
        cairo_translate(canvas->cr, box.x0, box.y0);
        cairo_scale(canvas->cr, 1 / pixels, 1 / pixels);
        cairo_set_source_surface(canvas->cr, image, 0, 0);
        cairo_pattern_set_filter(cairo_get_source(canvas->cr), CAIRO_FILTER_BILINEAR);
        cairo_paint(canvas->cr);
        cairo_restore(canvas->cr);
        cairo_surface_destroy(image);
    }
    psld_release(columns);
    psld_release(rows);
    return status;
}

/* How dark the map is in the box, sampled. The darkest map counts half as much as a line of the length of the box. */
double psld_density_cover(const psld_mark *mark, const psld_axis *x, const psld_axis *y, const psld_box *box)
{
    enum { SAMPLES = 9 };
    double sum = 0;
    if (mark->edge[0] == mark->edge[1] || mark->edge[2] == mark->edge[3]) return 0;
    for (int j = 0; j < SAMPLES; j++)
        for (int i = 0; i < SAMPLES; i++) {
            double px = box->x0 + (box->x1 - box->x0) * i / (SAMPLES - 1);
            double py = box->y0 + (box->y1 - box->y0) * j / (SAMPLES - 1);
            const double *e = mark->edge;
            double u = (psld_axis_value(x, px) - e[0]) / (e[1] - e[0]) * (mark->nx - 1);
            double v = (psld_axis_value(y, py) - e[2]) / (e[3] - e[2]) * (mark->ny - 1);
            if (u >= 0 && u <= mark->nx - 1 && v >= 0 && v <= mark->ny - 1)
                sum += mark->values[(ptrdiff_t)(v + 0.5) * mark->nx + (ptrdiff_t)(u + 0.5)];
        }
    return sum / (SAMPLES * SAMPLES) * (box->x1 - box->x0) / 2;
}
