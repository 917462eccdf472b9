/* The discrete Fourier transform of data on a grid of one, two or three axes, each of a power of two points. */
#ifndef PSLD_PROCESS_FOURIER_H
#define PSLD_PROCESS_FOURIER_H

#include <stddef.h>

#include "base/status.h"

/* In place, on `axes` axes of `points` each: z(k) = sum_x z(x) exp(-2 pi i k x / points) per axis. `re` and `im` are
 * [points^axes]. `inverse`: with the sign + and divided by the number of points. */
psld_status psld_fourier(int axes, size_t points, double *re, double *im, int inverse);

#endif
