/* Means of the loss, and of the accuracy, by time: they show at which times a network is good. */
#ifndef PSLD_TRAIN_BINS_H
#define PSLD_TRAIN_BINS_H

#include <stddef.h>

enum { PSLD_BINS = 10 }; /* of equal width over t in [0, 1] */

typedef struct psld_bins {
    double loss[PSLD_BINS], hits[PSLD_BINS], count[PSLD_BINS];
} psld_bins;

/* `hit` may be NULL. */
void psld_bins_add(psld_bins *bins, size_t n, const double *t, const float *loss, const unsigned char *hit);
/* Sets the weight of a bin in means over all bins, in place of the number of its samples. */
void psld_bins_weigh(psld_bins *bins, int bin, double weight);
void psld_bins_merge(psld_bins *bins, const psld_bins *more);
/* Over all bins; NaN if they are empty. */
double psld_bins_loss(const psld_bins *bins);
double psld_bins_accuracy(const psld_bins *bins);

#endif
