/* Random changes of training images: shifts, magnification, rotation, colour.
 *
 * The changes of a sample are ten numbers, a function of (seed, sample number); all are 0 for an unchanged image. A
 * network that gets them as an input (model.augment) learns to draw unchanged images. */
#ifndef PSLD_DATA_AUGMENT_H
#define PSLD_DATA_AUGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct psld_augmentation {
    double probability;   /* probability of each of translate, rotate, scale and colour; the crop is always made */
    double translate;     /* deviation of shifts, in widths and heights of the image */
    double rotate;        /* largest angle, in degrees */
    double scale;         /* deviation of log2 of the magnification */
    double colour;        /* deviation of log2 of contrast and saturation, of hue in radians, of brightness by half */
    int64_t crop_padding; /* padding in pixels on each side, before an image of the old size is cut out */
} psld_augmentation;

/* The order of the numbers. */
enum psld_augment_number {
    PSLD_AUGMENT_X,          /* shifts, in widths ... */
    PSLD_AUGMENT_Y,          /* ... and heights */
    PSLD_AUGMENT_SCALE,      /* log2 of the magnification */
    PSLD_AUGMENT_COSINE,     /* of the angle, less 1, ... */
    PSLD_AUGMENT_SINE,       /* ... and sine */
    PSLD_AUGMENT_BRIGHTNESS, /* added to pixels in [-1, 1] */
    PSLD_AUGMENT_CONTRAST,   /* log2 */
    PSLD_AUGMENT_SATURATION, /* log2 */
    PSLD_AUGMENT_HUE_COSINE, /* less 1 */
    PSLD_AUGMENT_HUE_SINE,
    PSLD_AUGMENT_NUMBERS
};

int psld_augmentation_any(const psld_augmentation *how);

/* The changes of a sample of images [channels][height][width]. */
void psld_augment_draw(const psld_augmentation *how, uint64_t seed, uint64_t sample, const size_t shape[3],
                       double numbers[PSLD_AUGMENT_NUMBERS]);
/* Changes an image x. Its values are in [-1, 1] before and after; `room` is memory for one more image. */
void psld_augment_apply(const double numbers[PSLD_AUGMENT_NUMBERS], const size_t shape[3], float *x, float *room);

#endif
