/* Radix 2, with twiddle factors from a table, line after line along each axis. */
#include "process/fourier.h"

#include <math.h>

#include "base/alloc.h"

typedef struct line {
    size_t points;
    double *cosine, *sine; /* [points / 2] */
    double *re, *im;       /* [points] */
} line;

static void reorder(line *l)
{
    for (size_t i = 1, j = 0; i < l->points; i++) {
        size_t bit = l->points >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j |= bit;
        if (i >= j) continue;
        double re = l->re[i], im = l->im[i];
        l->re[i] = l->re[j], l->im[i] = l->im[j];
        l->re[j] = re, l->im[j] = im;
    }
}

static void transform_line(line *l)
{
    reorder(l);
    for (size_t half = 1; half < l->points; half *= 2)
        for (size_t begin = 0; begin < l->points; begin += 2 * half)
            for (size_t i = 0; i < half; i++) {
                size_t a = begin + i, b = a + half, at = i * (l->points / (2 * half));
                double c = l->cosine[at], s = l->sine[at];
                double re = c * l->re[b] - s * l->im[b], im = s * l->re[b] + c * l->im[b];
                l->re[b] = l->re[a] - re, l->im[b] = l->im[a] - im;
                l->re[a] += re, l->im[a] += im;
            }
}

static void transform_axis(line *l, size_t stride, size_t total, double *re, double *im)
{
    for (size_t start = 0; start < total; start++) {
        if (start / stride % l->points != 0) continue;
        for (size_t i = 0; i < l->points; i++) l->re[i] = re[start + i * stride], l->im[i] = im[start + i * stride];
        transform_line(l);
        for (size_t i = 0; i < l->points; i++) re[start + i * stride] = l->re[i], im[start + i * stride] = l->im[i];
    }
}

psld_status psld_fourier(int axes, size_t points, double *re, double *im, int inverse)
{
    size_t total = 1, stride = 1;
    double *memory = psld_alloc(3 * points, sizeof *memory);
    if (!memory) return PSLD_NO_MEMORY;
    line l = {points, memory, memory + points / 2, memory + points, memory + 2 * points};
    const double turn = 2 * acos(-1) / (double)points;
    for (size_t i = 0; i < points / 2; i++) {
        l.cosine[i] = cos(turn * (double)i);
        l.sine[i] = (inverse ? 1 : -1) * sin(turn * (double)i);
    }
    for (int a = 0; a < axes; a++) total *= points;
    for (int a = 0; a < axes; a++, stride *= points) transform_axis(&l, stride, total, re, im);
    for (size_t i = 0; inverse && i < total; i++) re[i] /= (double)total, im[i] /= (double)total;
    psld_release(memory);
    return PSLD_OK;
}
