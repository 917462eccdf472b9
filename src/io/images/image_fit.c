/* Resampling is separable: rows first, then columns. A new pixel is a weighted mean of the old pixels around its
 * centre, with weights w(d) of their distances d, measured in old pixels when the image grows and in new pixels when
 * it shrinks. So the filter gets wider as the image gets smaller, and nothing aliases. `nearest` and
 * `bilinear_plain` are never widened. Weights are normalised, so uniform areas stay the same.
 *
 * Filters that reproduce Pillow round after each pass, as Pillow does; the others round once, at the end. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/table.h"
#include "io/images/image.h"
#include "psld_data.h"

static const double pi = 3.14159265358979323846;

/* The part of an image that is used, as separate planes. */
typedef struct window {
    size_t left, top, width, height;
} window;

/* How `count` new pixels are made: pixel i from the old pixels first[i] ... first[i] + taps - 1. */
typedef struct filter {
    size_t taps;
    size_t *first;
    float *weights; /* [count][taps] */
} filter;

static void free_filter(filter *f)
{
    psld_release(f->first);
    psld_release(f->weights);
}

/* ---- Filters ----------------------------------------------------------------------------------------------------- */

static double filter_lanczos(double d)
{
    enum { LOBES = 3 };
    if (d == 0) return 1;
    if (fabs(d) >= LOBES) return 0;
    return LOBES * sin(pi * d) * sin(pi * d / LOBES) / (pi * pi * d * d);
}

static double filter_triangle(double d)
{
    return fabs(d) < 1 ? 1 - fabs(d) : 0;
}

/* The cubic of Catmull and Rom. */
static double filter_cubic(double d)
{
    d = fabs(d);
    if (d < 1) return (1.5 * d - 2.5) * d * d + 1;
    return d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;
}

static double filter_box(double d)
{
    return d > -0.5 && d <= 0.5;
}

/* By psld_resample. */
static const struct {
    psld_resample_info info;
    double (*weight)(double d);
    double support; /* the weight is 0 beyond it */
    int floats;     /* between the two passes */
} filters[] = {
    {{.name = "lanczos",
      .summary = "windowed sinc of three lobes: the sharpest",
      .filter = PSLD_RESAMPLE_LANCZOS,
      .antialiases = 1},
     filter_lanczos,
     3,
     1},
    {{.name = "bilinear",
      .summary = "triangle, as Pillow and torchvision have it",
      .filter = PSLD_RESAMPLE_BILINEAR,
      .antialiases = 1},
     filter_triangle,
     1,
     0},
    {{.name = "bicubic",
      .summary = "cubic, as Pillow and torchvision have it",
      .filter = PSLD_RESAMPLE_BICUBIC,
      .antialiases = 1},
     filter_cubic,
     2,
     0},
    {{.name = "box",
      .summary = "mean of the pixels that a pixel covers",
      .filter = PSLD_RESAMPLE_BOX,
      .antialiases = 1},
     filter_box,
     0.5,
     0},
    {{.name = "nearest", .summary = "the pixel in the middle", .filter = PSLD_RESAMPLE_NEAREST}, filter_box, 0.5, 0},
    {{.name = "bilinear_plain",
      .summary = "four pixels only, as torch.nn.functional.interpolate and OpenCV",
      .filter = PSLD_RESAMPLE_BILINEAR_PLAIN},
     filter_triangle,
     1,
     1},
};

const psld_resample_info *psld_resample_at(int index)
{
    return PSLD_TABLE_AT(filters, index);
}

const psld_resample_info *psld_resample_find(const char *name)
{
    return PSLD_TABLE_FIND(filters, "resample", name);
}

static psld_status make_filter(size_t from, size_t to, int resample, filter *f)
{
    double scale = (double)from / (double)to, widening = scale > 1 && filters[resample].info.antialiases ? scale : 1;
    double support = filters[resample].support * widening, wanted = ceil(2 * support) + 1;
    f->taps = wanted < (double)from ? (size_t)wanted : from;
    f->first = psld_alloc(to, sizeof *f->first);
    f->weights = psld_alloc(to, f->taps * sizeof *f->weights);
    double *weights = psld_alloc(f->taps, sizeof *weights);
    if (!f->first || !f->weights || !weights) {
        psld_release(weights);
        return PSLD_NO_MEMORY;
    }
    for (size_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * scale, begin = floor(centre - support), sum = 0;
        size_t last = from - f->taps, first = begin > 0 ? (size_t)begin : 0;
        f->first[i] = first < last ? first : last;
        for (size_t j = 0; j < f->taps; j++) {
            weights[j] = filters[resample].weight(((double)(f->first[i] + j) + 0.5 - centre) / widening);
            sum += weights[j];
        }
        for (size_t j = 0; j < f->taps; j++) f->weights[i * f->taps + j] = (float)(weights[j] / sum);
    }
    psld_release(weights);
    return PSLD_OK;
}

static uint8_t to_pixel(float value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
}

/* The largest central part with the proportions of width x height. */
static window central_window(const psld_image *image, size_t width, size_t height)
{
    double wide = (double)image->height * (double)width / (double)height;
    double high = (double)image->width * (double)height / (double)width;
    window w = {0, 0, image->width, image->height};
    if (wide < (double)w.width) w.width = wide < 1 ? 1 : (size_t)(wide + 0.5);
    if (high < (double)w.height) w.height = high < 1 ? 1 : (size_t)(high + 0.5);
    w.left = (image->width - w.width) / 2;
    w.top = (image->height - w.height) / 2;
    return w;
}

/* ---- Colours ----------------------------------------------------------------------------------------------------- */

/* 0.299 R + 0.587 G + 0.114 B in 16-bit fixed point. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

/* The window as one plane: channel c, or grey when the image has three channels and `grey` is set. */
static void copy_plane(const psld_image *image, const window *w, int c, int grey, uint8_t *plane)
{
    size_t channels = (size_t)image->channels;
    for (size_t y = 0; y < w->height; y++) {
        const uint8_t *from = image->pixels + ((w->top + y) * image->width + w->left) * channels;
        for (size_t x = 0; x < w->width; x++, from += channels) *plane++ = grey ? luma(from) : from[c];
    }
}

/* ---- The two passes ---------------------------------------------------------------------------------------------- */

/* plane [rows][from] to out [rows][to] */
static void resample_rows(const uint8_t *plane, size_t rows, size_t from, size_t to, const filter *f, float *out)
{
    for (size_t y = 0; y < rows; y++, plane += from)
        for (size_t x = 0; x < to; x++) {
            const uint8_t *old = plane + f->first[x];
            const float *weight = f->weights + x * f->taps;
            float sum = 0;
            for (size_t j = 0; j < f->taps; j++) sum += weight[j] * (float)old[j];
            *out++ = sum;
        }
}

static void round_pixels(float *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) pixels[i] = (float)to_pixel(pixels[i]);
}

/* between [*][width] to out [to][width] */
static void resample_columns(const float *between, size_t width, size_t to, const filter *f, float *sums, uint8_t *out)
{
    for (size_t y = 0; y < to; y++) {
        const float *weight = f->weights + y * f->taps;
        memset(sums, 0, width * sizeof *sums);
        for (size_t j = 0; j < f->taps; j++) {
            const float *old = between + (f->first[y] + j) * width;
            for (size_t x = 0; x < width; x++) sums[x] += weight[j] * old[x];
        }
        for (size_t x = 0; x < width; x++) *out++ = to_pixel(sums[x]);
    }
}

static psld_status resample_plane(const psld_image *image, const window *w, int planes, int grey, size_t width,
                                  size_t height, int by, uint8_t *out)
{
    psld_status status = PSLD_NO_MEMORY;
    filter across = {0}, down = {0};
    uint8_t *plane = psld_alloc(w->width, w->height);
    float *between = psld_alloc(w->height, width * sizeof *between), *sums = psld_alloc(width, sizeof *sums);
    if (!plane || !between || !sums) goto end;
    PSLD_TRY_OR(end, make_filter(w->width, width, by, &across));
    PSLD_TRY_OR(end, make_filter(w->height, height, by, &down));
    for (int c = 0; c < planes; c++) {
        copy_plane(image, w, c, grey, plane);
        resample_rows(plane, w->height, w->width, width, &across, between);
        if (!filters[by].floats) round_pixels(between, w->height * width);
        resample_columns(between, width, height, &down, sums, out + (size_t)c * width * height);
    }
end:
    free_filter(&across);
    free_filter(&down);
    psld_release(plane);
    psld_release(between);
    psld_release(sums);
    return status;
}

psld_status psld_image_fit(const psld_image *image, int channels, size_t width, size_t height, int stretch,
                           int resampling, uint8_t *planes)
{
    const window whole = {0, 0, image->width, image->height};
    window w = stretch ? whole : central_window(image, width, height);
    int grey = channels < image->channels, own = channels < image->channels ? channels : image->channels;
    size_t plane = width * height;
    if (w.width == width && w.height == height)
        for (int c = 0; c < own; c++) copy_plane(image, &w, c, grey, planes + (size_t)c * plane);
    else
        PSLD_TRY(resample_plane(image, &w, own, grey, width, height, resampling, planes));
    for (int c = own; c < channels; c++) memcpy(planes + (size_t)c * plane, planes, plane);
    return PSLD_OK;
}
