#include "process/wide.h"

#include <float.h>
#include <math.h>
#include <string.h>

void psld_wide_identity(int k, psld_wide *a)
{
    for (int i = 0; i < k * k; i++) a[i] = i % (k + 1) == 0;
}

static inline void wide_multiply_loop(int k, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[l * k + j];
            out[i * k + j] = sum;
        }
}

/* The Taylor series of kernels spend their time here, so k = 1 and k = 2 are written out. */
void psld_wide_multiply(int k, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    if (k == 1)
        *out = *a * *b;
    else if (k == 2)
        for (int i = 0; i < 4; i++) out[i] = a[i & 2] * b[i & 1] + a[i | 1] * b[i | 2];
    else
        wide_multiply_loop(k, a, b, out);
}

void psld_wide_multiply_t(int k, const psld_wide *a, const psld_wide *b, psld_wide *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[j * k + l];
            out[i * k + j] = sum;
        }
}

psld_wide psld_wide_norm(int k, const psld_wide *a)
{
    psld_wide norm = 0;
    for (int j = 0; j < k; j++) {
        psld_wide sum = 0;
        for (int i = 0; i < k; i++) sum += fabsl(a[i * k + j]);
        if (sum > norm) norm = sum;
    }
    return norm;
}

void psld_wide_cholesky(int k, const psld_wide *a, psld_wide *lower)
{
    memset(lower, 0, (size_t)(k * k) * sizeof *lower);
    for (int j = 0; j < k; j++) {
        psld_wide pivot = a[j * k + j];
        for (int l = 0; l < j; l++) pivot -= lower[j * k + l] * lower[j * k + l];
        if (!(pivot > k * DBL_EPSILON * a[j * k + j])) continue; /* zero to the rounding of a */
        psld_wide root = sqrtl(pivot);
        lower[j * k + j] = root;
        for (int i = j + 1; i < k; i++) {
            psld_wide sum = a[i * k + j];
            for (int l = 0; l < j; l++) sum -= lower[i * k + l] * lower[j * k + l];
            lower[i * k + j] = sum / root;
        }
    }
}

void psld_wide_triangularise(int k, int columns, psld_wide *a, psld_wide *lower)
{
    memset(lower, 0, (size_t)(k * k) * sizeof *lower);
    for (int i = 0; i < k && i < columns; i++) {
        for (int j = i + 1; j < columns; j++) { /* rotate columns i and j so that a[i][j] becomes 0 */
            psld_wide x = a[i * columns + i], y = a[i * columns + j];
            if (y == 0) continue;
            psld_wide r = sqrtl(x * x + y * y), c = x / r, s = y / r;
            for (int row = i; row < k; row++) {
                psld_wide u = a[row * columns + i], v = a[row * columns + j];
                a[row * columns + i] = c * u + s * v;
                a[row * columns + j] = c * v - s * u;
            }
        }
        psld_wide sign = a[i * columns + i] < 0 ? -1 : 1;
        for (int row = i; row < k; row++) lower[row * k + i] = sign * a[row * columns + i];
    }
}
