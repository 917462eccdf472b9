/* All changes of position are one affine map. The image is interpolated by cubics (Catmull and Rom), which keep edges
 * sharp and are exact for whole shifts. Beyond its border an image continues as its mirror image. Colours are rotated
 * and stretched about the axis of greys. */
#include "data/augment.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

int psld_augmentation_any(const psld_augmentation *how)
{
    int sometimes = how->translate > 0 || how->rotate > 0 || how->scale > 0 || how->colour > 0;
    return how->crop_padding > 0 || (sometimes && how->probability > 0);
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* Uniform from -most to most. */
static double whole_shift(double u, int64_t most)
{
    return floor(u * (double)(2 * most + 1)) - (double)most;
}

void psld_augment_draw(const psld_augmentation *how, uint64_t seed, uint64_t sample, const size_t shape[3],
                       double numbers[PSLD_AUGMENT_NUMBERS])
{
    enum { MOVE, ZOOM, TURN, COLOUR, ANGLE, CROP_X, CROP_Y, UNIFORMS, NORMALS = 7 };
    double u[UNIFORMS], n[NORMALS];
    memset(numbers, 0, PSLD_AUGMENT_NUMBERS * sizeof *numbers);
    psld_random_uniform(seed, PSLD_FOR_AUGMENT, sample, 0, 0, UNIFORMS, u);
    psld_random_normal(seed, PSLD_FOR_AUGMENT, sample, 1, 0, NORMALS, n);
    numbers[PSLD_AUGMENT_X] = whole_shift(u[CROP_X], how->crop_padding) / (double)shape[2];
    numbers[PSLD_AUGMENT_Y] = whole_shift(u[CROP_Y], how->crop_padding) / (double)shape[1];
    if (u[MOVE] < how->probability) {
        numbers[PSLD_AUGMENT_X] += how->translate * n[0];
        numbers[PSLD_AUGMENT_Y] += how->translate * n[1];
    }
    if (u[ZOOM] < how->probability) numbers[PSLD_AUGMENT_SCALE] = how->scale * n[2];
    if (u[TURN] < how->probability) {
        double angle = (2 * u[ANGLE] - 1) * how->rotate * acos(-1) / 180;
        numbers[PSLD_AUGMENT_COSINE] = cos(angle) - 1;
        numbers[PSLD_AUGMENT_SINE] = sin(angle);
    }
    if (u[COLOUR] >= how->probability) return;
    numbers[PSLD_AUGMENT_BRIGHTNESS] = 0.5 * how->colour * n[3];
    numbers[PSLD_AUGMENT_CONTRAST] = how->colour * n[4];
    if (shape[0] != 3) return;
    numbers[PSLD_AUGMENT_SATURATION] = how->colour * n[5];
    numbers[PSLD_AUGMENT_HUE_COSINE] = cos(how->colour * n[6]) - 1;
    numbers[PSLD_AUGMENT_HUE_SINE] = sin(how->colour * n[6]);
}

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static size_t mirrored_index(long at, size_t size)
{
    long period = 2 * ((long)size - 1);
    if (period == 0) return 0;
    at %= period;
    if (at < 0) at += period;
    return (size_t)(at < (long)size ? at : period - at);
}

/* The pixels around a place on a line, and their weights. */
typedef struct taps {
    size_t at[4];
    double weight[4];
} taps;

static taps taps_at(double place, size_t size)
{
    taps t;
    double first = floor(place), f = place - first;
    const double weights[4] = {f * (-0.5 + f * (1 - 0.5 * f)), 1 + f * f * (1.5 * f - 2.5),
                               f * (0.5 + f * (2 - 1.5 * f)), f * f * (0.5 * f - 0.5)};
    for (int i = 0; i < 4; i++) t.at[i] = mirrored_index((long)first - 1 + i, size);
    memcpy(t.weight, weights, sizeof weights);
    return t;
}

static float read_at(const float *plane, size_t width, const taps *x, const taps *y)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        const float *row = plane + y->at[i] * width;
        double line = 0;
        for (int j = 0; j < 4; j++) line += x->weight[j] * (double)row[x->at[j]];
        sum += y->weight[i] * line;
    }
    return (float)sum;
}

/* The place in the old image of a pixel of the new one: out = shift + scale turn (in), about the centre. */
static void move_pixels(const double *numbers, const size_t shape[3], const float *from, float *to)
{
    size_t height = shape[1], width = shape[2];
    double cx = 0.5 * ((double)width - 1), cy = 0.5 * ((double)height - 1), scale = exp2(numbers[PSLD_AUGMENT_SCALE]);
    double cosine = (1 + numbers[PSLD_AUGMENT_COSINE]) / scale, sine = numbers[PSLD_AUGMENT_SINE] / scale;
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < width; j++) {
            double dx = (double)j - cx - numbers[PSLD_AUGMENT_X] * (double)width;
            double dy = (double)i - cy - numbers[PSLD_AUGMENT_Y] * (double)height;
            taps x = taps_at(cx + cosine * dx + sine * dy, width), y = taps_at(cy - sine * dx + cosine * dy, height);
            for (size_t c = 0; c < shape[0]; c++)
                to[(c * height + i) * width + j] = read_at(from + c * height * width, width, &x, &y);
        }
}

/* ---- Colours ----------------------------------------------------------------------------------------------------- */

/* Rotates and stretches the part of a colour that is not grey: v + cos d + sin (axis x d), where d is the difference
 * from grey v. */
static void turn_colour(const double *numbers, float *red, float *green, float *blue)
{
    double r = (double)*red, g = (double)*green, b = (double)*blue, grey = (r + g + b) / 3;
    double stretch = exp2(numbers[PSLD_AUGMENT_SATURATION]);
    double cosine = stretch * (1 + numbers[PSLD_AUGMENT_HUE_COSINE]);
    double sine = stretch * numbers[PSLD_AUGMENT_HUE_SINE] / sqrt(3);
    *red = (float)(grey + cosine * (r - grey) + sine * (b - g));
    *green = (float)(grey + cosine * (g - grey) + sine * (r - b));
    *blue = (float)(grey + cosine * (b - grey) + sine * (g - r));
}

static void recolour_pixels(const double *numbers, const size_t shape[3], float *x)
{
    size_t pixels = shape[1] * shape[2];
    double contrast = exp2(numbers[PSLD_AUGMENT_CONTRAST]), brightness = numbers[PSLD_AUGMENT_BRIGHTNESS];
    for (size_t i = 0; i < shape[0] * pixels; i++) x[i] = (float)(contrast * ((double)x[i] + brightness));
    for (size_t i = 0; shape[0] == 3 && i < pixels; i++)
        turn_colour(numbers, x + i, x + pixels + i, x + 2 * pixels + i);
}

static int any_of(const double *numbers, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (numbers[i] != 0) return 1;
    return 0;
}

void psld_augment_apply(const double numbers[PSLD_AUGMENT_NUMBERS], const size_t shape[3], float *x, float *room)
{
    size_t count = shape[0] * shape[1] * shape[2];
    int moves = any_of(numbers, PSLD_AUGMENT_X, PSLD_AUGMENT_SINE);
    int recolours = any_of(numbers, PSLD_AUGMENT_BRIGHTNESS, PSLD_AUGMENT_HUE_SINE);
    if (moves) {
        memcpy(room, x, count * sizeof *x);
        move_pixels(numbers, shape, room, x);
    }
    if (recolours) recolour_pixels(numbers, shape, x);
    for (size_t i = 0; (moves || recolours) && i < count; i++) x[i] = fminf(fmaxf(x[i], -1), 1);
}
