#include "train/bins.h"

void psld_bins_add(psld_bins *bins, size_t n, const double *t, const float *loss, const unsigned char *hit)
{
    for (size_t i = 0; i < n; i++) {
        int bin = (int)(t[i] * PSLD_BINS);
        if (bin >= PSLD_BINS) bin = PSLD_BINS - 1;
        bins->loss[bin] += (double)loss[i];
        bins->hits[bin] += hit ? hit[i] : 0;
        bins->count[bin]++;
    }
}

void psld_bins_weigh(psld_bins *bins, int bin, double weight)
{
    bins->loss[bin] *= weight;
    bins->hits[bin] *= weight;
    bins->count[bin] *= weight;
}

void psld_bins_merge(psld_bins *bins, const psld_bins *more)
{
    for (int i = 0; i < PSLD_BINS; i++) {
        bins->loss[i] += more->loss[i];
        bins->hits[i] += more->hits[i];
        bins->count[i] += more->count[i];
    }
}

static double mean_of(const double *sums, const double *counts)
{
    double sum = 0, count = 0;
    for (int i = 0; i < PSLD_BINS; i++) sum += sums[i], count += counts[i];
    return sum / count;
}

double psld_bins_loss(const psld_bins *bins)
{
    return mean_of(bins->loss, bins->count);
}

double psld_bins_accuracy(const psld_bins *bins)
{
    return mean_of(bins->hits, bins->count);
}
