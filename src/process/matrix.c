#include "process/matrix.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

void psld_matrix_identity(int k, double *a)
{
    for (int i = 0; i < k * k; i++) a[i] = i % (k + 1) == 0;
}

void psld_matrix_copy(int k, const double *a, double *out)
{
    memcpy(out, a, (size_t)(k * k) * sizeof *out);
}

void psld_matrix_transpose(int k, const double *a, double *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) out[j * k + i] = a[i * k + j];
}

void psld_matrix_multiply(int k, const double *a, const double *b, double *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[l * k + j];
            out[i * k + j] = sum;
        }
}

void psld_matrix_multiply_t(int k, const double *a, const double *b, double *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[j * k + l];
            out[i * k + j] = sum;
        }
}

void psld_matrix_add(int k, double f, const double *x, double *y)
{
    for (int i = 0; i < k * k; i++) y[i] += f * x[i];
}

double psld_matrix_largest(int k, const double *a)
{
    double largest = 0;
    for (int i = 0; i < k * k; i++) largest = fmax(largest, fabs(a[i]));
    return largest;
}

int psld_matrix_cholesky(int k, const double *a, double *lower)
{
    int zero_pivots = 0;
    memset(lower, 0, (size_t)(k * k) * sizeof *lower);
    for (int j = 0; j < k; j++) {
        double pivot = a[j * k + j];
        for (int l = 0; l < j; l++) pivot -= lower[j * k + l] * lower[j * k + l];
        if (!(pivot > k * DBL_EPSILON * a[j * k + j])) { /* zero to the rounding of a */
            zero_pivots++;
            continue;
        }
        double root = sqrt(pivot);
        lower[j * k + j] = root;
        for (int i = j + 1; i < k; i++) {
            double sum = a[i * k + j];
            for (int l = 0; l < j; l++) sum -= lower[i * k + l] * lower[j * k + l];
            lower[i * k + j] = sum / root;
        }
    }
    return zero_pivots;
}

void psld_matrix_invert_lower(int k, const double *lower, double *inverse)
{
    memset(inverse, 0, (size_t)(k * k) * sizeof *inverse);
    for (int j = 0; j < k; j++) {
        inverse[j * k + j] = 1 / lower[j * k + j];
        for (int i = j + 1; i < k; i++) {
            double sum = 0;
            for (int l = j; l < i; l++) sum += lower[i * k + l] * inverse[l * k + j];
            inverse[i * k + j] = -sum / lower[i * k + i];
        }
    }
}

/* ---- Symmetric eigenvalues: cyclic Jacobi rotations -------------------------------------------------------------- */

static void rotate_pair(double c, double s, double *x, double *y)
{
    double before = *x;
    *x = c * before - s * *y;
    *y = s * before + c * *y;
}

void psld_matrix_rotate(size_t n, size_t p, size_t q, double *a, double *vectors)
{
    double apq = a[p * n + q];
    if (apq == 0) return;
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t i = 0; i < n; i++) rotate_pair(c, s, &a[i * n + p], &a[i * n + q]);
    for (size_t i = 0; i < n; i++) rotate_pair(c, s, &a[p * n + i], &a[q * n + i]);
    for (size_t i = 0; vectors && i < n; i++) rotate_pair(c, s, &vectors[p * n + i], &vectors[q * n + i]);
}

void psld_matrix_symmetric_eigenvalues(int k, const double *a, double *values)
{
    double work[PSLD_MATRIX_SIZE];
    psld_matrix_copy(k, a, work);
    for (int sweep = 0; sweep < 30; sweep++)
        for (int p = 0; p < k; p++)
            for (int q = p + 1; q < k; q++) psld_matrix_rotate((size_t)k, (size_t)p, (size_t)q, work, NULL);
    for (int i = 0; i < k; i++) { /* insertion sort */
        double v = work[i * k + i];
        int j = i;
        for (; j > 0 && values[j - 1] > v; j--) values[j] = values[j - 1];
        values[j] = v;
    }
}

int psld_matrix_rank(int k, int columns, double *a, double tolerance)
{
    double threshold = 0;
    for (int i = 0; i < k * columns; i++) threshold = fmax(threshold, tolerance * fabs(a[i]));
    int rank = 0;
    for (; rank < k && rank < columns; rank++) { /* elimination with complete pivoting */
        int row = rank, column = rank;
        for (int i = rank; i < k; i++)
            for (int j = rank; j < columns; j++)
                if (fabs(a[i * columns + j]) > fabs(a[row * columns + column])) row = i, column = j;
        double pivot = a[row * columns + column];
        if (fabs(pivot) <= threshold) break;
        for (int j = 0; j < columns; j++) {
            double x = a[row * columns + j];
            a[row * columns + j] = a[rank * columns + j];
            a[rank * columns + j] = x;
        }
        for (int i = 0; i < k; i++) {
            double x = a[i * columns + column];
            a[i * columns + column] = a[i * columns + rank];
            a[i * columns + rank] = x;
        }
        for (int i = rank + 1; i < k; i++) {
            double f = a[i * columns + rank] / pivot;
            for (int j = rank; j < columns; j++) a[i * columns + j] -= f * a[rank * columns + j];
        }
    }
    return rank;
}

/* ---- General eigenvalues: QR steps with Wilkinson's shift in complex arithmetic ---------------------------------- */

/* The eigenvalue of the trailing 2 x 2 block of a[0..n)^2 that is closer to its last entry. */
static double complex wilkinson_shift(int k, int n, const double complex *a)
{
    double complex p = a[(n - 2) * k + n - 2], q = a[(n - 2) * k + n - 1];
    double complex r = a[(n - 1) * k + n - 2], s = a[(n - 1) * k + n - 1];
    double complex half = (p + s) / 2, root = csqrt((p - s) * (p - s) / 4 + q * r);
    double complex x = half + root, y = half - root;
    return cabs(x - s) < cabs(y - s) ? x : y;
}

/* One step A - shift = Q R, A <- R Q + shift on the leading n x n block by Givens rotations of full columns. */
static void qr_step(int k, int n, double complex *a, double complex shift)
{
    double complex rotations[PSLD_MATRIX_SIZE][2];
    int used = 0;
    for (int i = 0; i < n; i++) a[i * k + i] -= shift;
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++) {
            double complex x = a[j * k + j], y = a[i * k + j];
            double r = hypot(cabs(x), cabs(y));
            double complex c = r > 0 ? x / r : 1, s = r > 0 ? y / r : 0;
            for (int l = 0; l < n; l++) {
                double complex u = a[j * k + l], v = a[i * k + l];
                a[j * k + l] = conj(c) * u + conj(s) * v;
                a[i * k + l] = -s * u + c * v;
            }
            rotations[used][0] = c;
            rotations[used++][1] = s;
        }
    used = 0;
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++, used++)
            for (int l = 0; l < n; l++) {
                double complex c = rotations[used][0], s = rotations[used][1];
                double complex u = a[l * k + j], v = a[l * k + i];
                a[l * k + j] = u * c + v * s;
                a[l * k + i] = -u * conj(s) + v * conj(c);
            }
    for (int i = 0; i < n; i++) a[i * k + i] += shift;
}

static void qr_eigenvalues(int k, const double *real, double complex *values)
{
    double complex a[PSLD_MATRIX_SIZE];
    double scale = psld_matrix_largest(k, real);
    for (int i = 0; i < k * k; i++) a[i] = real[i];
    for (int n = k; n > 0; n--) {
        for (int step = 0; n > 1 && step < 200; step++) {
            double rest = 0;
            for (int j = 0; j < n - 1; j++) rest += cabs(a[(n - 1) * k + j]);
            if (rest <= 1e-17 * scale) break;
            /* an exceptional shift every 20 steps breaks cycles */
            qr_step(k, n, a, step % 20 == 19 ? a[(n - 1) * k + n - 1] + rest : wilkinson_shift(k, n, a));
        }
        values[n - 1] = a[(n - 1) * k + n - 1];
    }
}

/* Whether lambda is an eigenvalue of multiplicity m. With N = A - lambda, the null space of N^m then has dimension m, and
 * each power of N adds no more dimensions than the one before (Weyr characteristic). The second condition tells one
 * multiple eigenvalue from several close ones: high powers of a small difference vanish numerically, low powers do not. */
static int has_multiplicity(int k, const double *a, double lambda, int m)
{
    double shifted[PSLD_MATRIX_SIZE], power[PSLD_MATRIX_SIZE], next[PSLD_MATRIX_SIZE];
    psld_matrix_copy(k, a, shifted);
    for (int i = 0; i < k; i++) shifted[i * k + i] -= lambda;
    double size = psld_matrix_largest(k, shifted);
    if (size <= 1e-13 * psld_matrix_largest(k, a)) return 1;
    for (int i = 0; i < k * k; i++) shifted[i] /= size;
    psld_matrix_identity(k, power);
    int nullity = 0, growth = k;
    for (int j = 0; j < m; j++) {
        psld_matrix_multiply(k, shifted, power, next);
        psld_matrix_copy(k, next, power);
        double largest = psld_matrix_largest(k, next);
        int now = largest <= 1e-11 ? k : k - psld_matrix_rank(k, k, next, 1e-11 / largest);
        if (now - nullity > growth) return 0;
        growth = now - nullity;
        nullity = now;
    }
    return nullity >= m;
}

/* Rounding of relative size u splits a real eigenvalue of multiplicity m into m points on a circle of radius about
 * u^(1/m). Their mean is accurate. Where such a circle is found to be one multiple eigenvalue, its points are replaced by
 * their mean. Returns the multiplicity of v[i]. */
static int merge_split_eigenvalues(int k, const double *a, double complex *v, int i)
{
    double scale = psld_matrix_largest(k, a);
    for (int m = k; m > 1; m--) {
        double radius = 4 * scale * pow(1e-14, 1.0 / m);
        double complex mean = 0;
        int members = 0;
        for (int j = 0; j < k; j++)
            if (cabs(v[j] - v[i]) <= 2 * radius) mean += v[j], members++;
        if (members != m || !has_multiplicity(k, a, creal(mean) / m, m)) continue;
        double complex centre = v[i];
        for (int j = 0; j < k; j++)
            if (cabs(v[j] - centre) <= 2 * radius) v[j] = creal(mean) / m;
        return m;
    }
    return 1;
}

static int eigenvalue_less(double complex a, double complex b)
{
    return creal(a) != creal(b) ? creal(a) < creal(b) : cimag(a) < cimag(b);
}

int psld_matrix_eigenvalues(int k, const double *a, double *re, double *im)
{
    double complex v[PSLD_MAX_K];
    int defective = 0;
    double scale = psld_matrix_largest(k, a);
    qr_eigenvalues(k, a, v);
    for (int i = 0; i < k; i++) {
        int m = merge_split_eigenvalues(k, a, v, i);
        if (m == 1) continue;
        double shifted[PSLD_MATRIX_SIZE];
        psld_matrix_copy(k, a, shifted);
        for (int j = 0; j < k; j++) shifted[j * k + j] -= creal(v[i]);
        if (psld_matrix_largest(k, shifted) > 1e-12 * scale && psld_matrix_rank(k, k, shifted, 1e-10) > k - m)
            defective = 1;
    }
    for (int i = 0; i < k;
         i++) /* the matrix is real: remove imaginary parts that are rounding, and make conjugate pairs exact */
        if (fabs(cimag(v[i])) <= 1e-12 * scale) v[i] = creal(v[i]);
    for (int i = 0; i < k; i++)
        for (int j = i + 1; j < k; j++)
            if (cimag(v[i]) != 0 && cabs(v[j] - conj(v[i])) <= 1e-10 * scale) v[j] = conj(v[i]);
    for (int i = 1; i < k; i++)
        for (int j = i; j > 0 && eigenvalue_less(v[j], v[j - 1]); j--) {
            double complex x = v[j];
            v[j] = v[j - 1];
            v[j - 1] = x;
        }
    for (int i = 0; i < k; i++) re[i] = creal(v[i]), im[i] = cimag(v[i]);
    return defective;
}
