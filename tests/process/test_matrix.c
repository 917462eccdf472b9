/* Small matrices: each function against its definition, in extended precision, on random matrices of every size. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "process/matrix.h"
#include "process/wide.h"

enum { K = PSLD_MAX_K, SIZE = PSLD_MATRIX_SIZE, TRIALS = 20, MAX_COLUMNS = 2 * PSLD_MAX_K };

/* What some ten operations in extended precision may lose. */
#define ROUNDING (100 * (double)LDBL_EPSILON)
/* Without exchanging rows, rounding of a semidefinite matrix grows with the condition of its leading part. */
#define FLAT 1e4

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

/* `count` normal numbers; another set for each size, trial and number of the set. */
static void draw(int k, int trial, int set, int count, double *a)
{
    psld_random_normal(77, PSLD_FOR_WEIGHTS, (uint64_t)(k * 1000 + trial), (uint64_t)set, 0, (size_t)count, a);
}

static void assert_close(double found, double expected, double error, const char *what)
{
    if (!(fabs(found - expected) <= error))
        fail_msg("%s: %.17g, expected %.17g, error %g > %g", what, found, expected, fabs(found - expected), error);
}

static void assert_matrix_close(int k, const double *found, const double *expected, double error, const char *what)
{
    for (int i = 0; i < k * k; i++) assert_close(found[i], expected[i], error, what);
}

static void assert_lower(int k, const double *a)
{
    for (int i = 0; i < k; i++)
        for (int j = i + 1; j < k; j++) assert_true(a[i * k + j] == 0);
}

static void assert_wide_factor(int k, const psld_wide *a)
{
    for (int i = 0; i < k; i++)
        for (int j = i; j < k; j++) assert_true(j > i ? a[i * k + j] == 0 : a[i * k + i] >= 0);
}

/* out = a b', a and b with k rows and `columns` columns */
static void exact_multiply_t(int k, int columns, const double *a, const double *b, double *out)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            psld_wide sum = 0;
            for (int l = 0; l < columns; l++) sum += (psld_wide)a[i * columns + l] * (psld_wide)b[j * columns + l];
            out[i * k + j] = (double)sum;
        }
}

static double determinant(int k, const double *a)
{
    psld_wide work[SIZE], product = 1;
    for (int i = 0; i < k * k; i++) work[i] = (psld_wide)a[i];
    for (int c = 0; c < k; c++) {
        int pivot = c;
        for (int i = c; i < k; i++)
            if (fabsl(work[i * k + c]) > fabsl(work[pivot * k + c])) pivot = i;
        for (int j = 0; j < k && pivot != c; j++) {
            psld_wide x = work[c * k + j];
            work[c * k + j] = work[pivot * k + j];
            work[pivot * k + j] = -x;
        }
        product *= work[c * k + c];
        for (int i = c + 1; i < k && work[c * k + c] != 0; i++) {
            psld_wide f = work[i * k + c] / work[c * k + c];
            for (int j = c; j < k; j++) work[i * k + j] -= f * work[c * k + j];
        }
    }
    return (double)product;
}

/* A random orthogonal matrix: a product of k reflections. */
static void draw_orthogonal(int k, int trial, double *q)
{
    psld_matrix_identity(k, q);
    for (int r = 0; r < k; r++) {
        double v[K], next[SIZE], reflection[SIZE], length = 0;
        draw(k, trial, 100 + r, k, v);
        for (int i = 0; i < k; i++) length += v[i] * v[i];
        for (int i = 0; i < k * k; i++) reflection[i] = (i % (k + 1) == 0) - 2 * v[i / k] * v[i % k] / length;
        psld_matrix_multiply(k, reflection, q, next);
        psld_matrix_copy(k, next, q);
    }
}

/* S a S^-1 for S = U L: orthogonal times unit lower triangular, so that the result is neither normal nor badly
 * conditioned. `slant` is the size of the part below the diagonal. */
static void transform(int k, int trial, double slant, const double *a, double *out)
{
    double q[SIZE], lower[SIZE], inverse[SIZE], x[SIZE], y[SIZE];
    draw_orthogonal(k, trial, q);
    draw(k, trial, 200, k * k, lower);
    for (int i = 0; i < k * k; i++) lower[i] = i / k == i % k ? 1 : i / k > i % k ? slant * lower[i] : 0;
    psld_matrix_invert_lower(k, lower, inverse);
    psld_matrix_multiply(k, lower, a, x);
    psld_matrix_multiply(k, x, inverse, y);
    psld_matrix_multiply(k, q, y, x);
    psld_matrix_multiply_t(k, x, q, out);
}

/* ---- Arithmetic -------------------------------------------------------------------------------------------------- */

static void products_and_sums_are_as_defined(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++) {
            double a[SIZE], b[SIZE], b_t[SIZE], expected[SIZE], found[SIZE], one[SIZE];
            draw(k, trial, 0, k * k, a);
            draw(k, trial, 1, k * k, b);
            psld_matrix_transpose(k, b, b_t);
            for (int i = 0; i < k * k; i++) assert_true(b_t[i % k * k + i / k] == b[i]);
            exact_multiply_t(k, k, a, b, expected);
            psld_matrix_multiply_t(k, a, b, found);
            assert_matrix_close(k, found, expected, 1e-14, "a b'");
            psld_matrix_multiply(k, a, b_t, found);
            assert_matrix_close(k, found, expected, 1e-14, "a b");

            psld_matrix_identity(k, one);
            psld_matrix_multiply(k, one, a, found);
            assert_memory_equal(found, a, (size_t)(k * k) * sizeof *a);
            psld_matrix_multiply(k, a, one, found);
            assert_memory_equal(found, a, (size_t)(k * k) * sizeof *a);

            psld_matrix_copy(k, b, found);
            psld_matrix_add(k, 0.5, a, found);
            for (int i = 0; i < k * k; i++) assert_true(found[i] == b[i] + 0.5 * a[i]);
            psld_matrix_copy(k, b, found);
            psld_matrix_add(k, -0.5, found, found);
            for (int i = 0; i < k * k; i++) assert_true(found[i] == 0.5 * b[i]);
        }
}

static void sizes_are_as_defined(void **state)
{
    (void)state;
    static const double a[9] = {1, -2, 3, 0, 5, -7, -4, 0.5, 1};
    static const psld_wide w[9] = {1, -2, 3, 0, 5, -7, -4, 0.5L, 1};
    assert_true(psld_matrix_largest(3, a) == 7);
    assert_true(psld_wide_norm(3, w) == 11);
    for (int k = 1; k <= K; k++) {
        double zero[SIZE] = {0}, one[SIZE];
        psld_wide wide_zero[SIZE] = {0}, wide_one[SIZE];
        psld_matrix_identity(k, one);
        psld_wide_identity(k, wide_one);
        assert_true(psld_matrix_largest(k, zero) == 0 && psld_matrix_largest(k, one) == 1);
        assert_true(psld_wide_norm(k, wide_zero) == 0 && psld_wide_norm(k, wide_one) == 1);
    }
}

/* Products of whole numbers are exact in both precisions. */
static void wide_products_are_the_same(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++) {
        double a[SIZE], b[SIZE], product[SIZE], product_t[SIZE];
        psld_wide wide_a[SIZE], wide_b[SIZE], wide_product[SIZE], wide_product_t[SIZE];
        draw(k, 0, 0, k * k, a);
        draw(k, 0, 1, k * k, b);
        for (int i = 0; i < k * k; i++) {
            a[i] = floor(1000 * a[i]);
            b[i] = floor(1000 * b[i]);
            wide_a[i] = (psld_wide)a[i];
            wide_b[i] = (psld_wide)b[i];
        }
        psld_matrix_multiply(k, a, b, product);
        psld_matrix_multiply_t(k, a, b, product_t);
        psld_wide_multiply(k, wide_a, wide_b, wide_product);
        psld_wide_multiply_t(k, wide_a, wide_b, wide_product_t);
        for (int i = 0; i < k * k; i++)
            assert_true((double)wide_product[i] == product[i] && (double)wide_product_t[i] == product_t[i]);
    }
}

/* ---- Factors ----------------------------------------------------------------------------------------------------- */

static void cholesky_gives_back_its_matrix(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++)
            for (int columns = 1; columns <= k + 2; columns++) { /* fewer than k: semidefinite */
                double b[K * (K + 2)], a[SIZE], lower[SIZE], back[SIZE];
                draw(k, trial, columns, k * columns, b);
                exact_multiply_t(k, columns, b, b, a);
                int flat = psld_matrix_cholesky(k, a, lower);
                assert_lower(k, lower);
                for (int i = 0; i < k; i++) assert_true(lower[i * k + i] >= 0);
                psld_matrix_multiply_t(k, lower, lower, back);
                assert_matrix_close(k, back, a, (columns < k ? FLAT : 1) * 1e-14 * psld_matrix_largest(k, a), "L L'");
                if (columns >= k) assert_int_equal(flat, 0);
            }
}

/* Whole numbers have no rounding: the factor comes back exactly, columns of zeros included. */
static void cholesky_of_semidefinite_matrices_is_exact(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int zeros = 0; zeros < 1 << k; zeros++) {
            double factor[SIZE] = {0}, a[SIZE], found[SIZE];
            int count = 0;
            for (int j = 0; j < k; j++) {
                count += zeros >> j & 1;
                for (int i = j; i < k && !(zeros >> j & 1); i++)
                    factor[i * k + j] = i == j ? 1 + j : (i * 7 + j) % 5 - 2;
            }
            exact_multiply_t(k, k, factor, factor, a);
            assert_int_equal(psld_matrix_cholesky(k, a, found), count);
            assert_matrix_close(k, found, factor, 0, "exact factor");
        }
    static const double indefinite[4] = {1, 2, 2, 1}, negative[1] = {-1};
    double lower[4];
    assert_int_equal(psld_matrix_cholesky(2, indefinite, lower), 1);
    assert_int_equal(psld_matrix_cholesky(1, negative, lower), 1);
}

static void wide_cholesky_gives_back_its_matrix(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++)
            for (int columns = 1; columns <= k + 2; columns++) {
                double b[K * (K + 2)], a[SIZE];
                psld_wide wide[SIZE] = {0}, lower[SIZE], back[SIZE];
                draw(k, trial, columns, k * columns, b);
                for (int i = 0; i < k * k; i++)
                    for (int l = 0; l < columns; l++)
                        wide[i] += (psld_wide)b[i / k * columns + l] * (psld_wide)b[i % k * columns + l];
                for (int i = 0; i < k * k; i++) a[i] = (double)wide[i];
                psld_wide_cholesky(k, wide, lower);
                assert_wide_factor(k, lower);
                psld_wide_multiply_t(k, lower, lower, back);
                for (int i = 0; i < k * k; i++)
                    assert_close((double)(back[i] - wide[i]), 0,
                                 (columns < k ? FLAT : 1) * ROUNDING * psld_matrix_largest(k, a), "wide L L'");
            }
    static const psld_wide semidefinite[9] = {0, 0, 0, 0, 4, 2, 0, 2, 1};
    psld_wide lower[9];
    psld_wide_cholesky(3, semidefinite, lower);
    for (int i = 0; i < 9; i++) assert_true(lower[i] == (i == 4 ? 2 : i == 7 ? 1 : 0));
}

/* Gram-Schmidt over the rows, twice each. Rows must be independent. */
static void orthogonalise_rows(int k, int columns, const psld_wide *a, psld_wide *lower)
{
    psld_wide q[K][MAX_COLUMNS];
    memset(lower, 0, (size_t)(k * k) * sizeof *lower);
    for (int i = 0; i < k; i++) {
        psld_wide length = 0;
        for (int c = 0; c < columns; c++) q[i][c] = a[i * columns + c];
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < i; j++) {
                psld_wide dot = 0;
                for (int c = 0; c < columns; c++) dot += q[i][c] * q[j][c];
                for (int c = 0; c < columns; c++) q[i][c] -= dot * q[j][c];
                lower[i * k + j] += dot;
            }
        for (int c = 0; c < columns; c++) length += q[i][c] * q[i][c];
        lower[i * k + i] = sqrtl(length);
        for (int c = 0; c < columns; c++) q[i][c] /= lower[i * k + i];
    }
}

static void triangularising_keeps_the_product(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++)
            for (int columns = 1; columns <= 2 * k; columns++) { /* fewer than k: semidefinite */
                double a[K * MAX_COLUMNS], product[SIZE];
                psld_wide wide[K * MAX_COLUMNS], lower[SIZE], back[SIZE];
                draw(k, trial, columns, k * columns, a);
                exact_multiply_t(k, columns, a, a, product);
                for (int i = 0; i < k * columns; i++) wide[i] = (psld_wide)a[i];
                psld_wide_triangularise(k, columns, wide, lower);
                assert_wide_factor(k, lower);
                psld_wide_multiply_t(k, lower, lower, back);
                for (int i = 0; i < k * k; i++)
                    assert_close((double)back[i], product[i], 1e-15 * (1 + psld_matrix_largest(k, product)), "L L'");
            }
}

/* Rows of sizes 1e-12 ... 1e+12: rotations mix columns, so each row keeps its accuracy relative to itself. The bound of
 * the diagonal allows for the condition of rows scaled to length 1, below 1e3 here. */
static void triangularising_keeps_small_rows_accurate(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++) {
            int columns = k + trial % (k + 1);
            double a[K * MAX_COLUMNS], exponents[K];
            psld_wide wide[K * MAX_COLUMNS], expected[SIZE], lower[SIZE];
            draw(k, trial, 0, k * columns, a);
            draw(k, trial, 1, k, exponents);
            for (int i = 0; i < k * columns; i++)
                wide[i] = (psld_wide)((a[i] + 3 * (i / columns == i % columns)) *
                                      pow(10, fmod(10 * exponents[i / columns], 12)));
            orthogonalise_rows(k, columns, wide, expected);
            psld_wide_triangularise(k, columns, wide, lower);
            assert_wide_factor(k, lower);
            for (int i = 0; i < k; i++) {
                psld_wide length = 0, *row = lower + i * k, *wanted = expected + i * k;
                for (int j = 0; j <= i; j++) length = hypotl(length, wanted[j]);
                for (int j = 0; j <= i; j++)
                    assert_close((double)((row[j] - wanted[j]) / length), 0, ROUNDING, "graded row");
                assert_close((double)(row[i] / wanted[i] - 1), 0, 1000 * ROUNDING, "graded diagonal");
            }
        }
}

/* Where the product itself would have lost the small entry: 1 + 25e-24 is 1 in double, and all but so in psld_wide. */
static void triangularising_keeps_what_squares_lose(void **state)
{
    (void)state;
    psld_wide a[6] = {-1, 0, 0, 1, 3e-12L, 4e-12L}, lower[4];
    psld_wide_triangularise(2, 3, a, lower);
    assert_true(lower[0] == 1 && lower[1] == 0 && lower[2] == -1);
    assert_close((double)(lower[3] / 5e-12L - 1), 0, ROUNDING, "L[1][1]");
    psld_wide zero[4] = {0}, none[4] = {9, 9, 9, 9};
    psld_wide_triangularise(2, 2, zero, none);
    for (int i = 0; i < 4; i++) assert_true(none[i] == 0);
}

/* |L X - 1| <= c u |L| |X| in each entry, also for graded rows (Higham, ch. 14). */
static void inverses_of_lower_matrices_are_inverses(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++) {
            double lower[SIZE], inverse[SIZE];
            draw(k, trial, 0, k * k, lower);
            for (int i = 0; i < k * k; i++) {
                int row = i / k, column = i % k;
                double scale = trial % 2 ? pow(10, row * 5 % 7 - 3) : 1;
                lower[i] = row < column ? 0 : scale * (row == column ? fabs(lower[i]) + 0.1 : lower[i]);
            }
            psld_matrix_invert_lower(k, lower, inverse);
            assert_lower(k, inverse);
            for (int i = 0; i < k; i++)
                for (int j = 0; j < k; j++) {
                    psld_wide sum = 0, size = 0;
                    for (int l = 0; l < k; l++) {
                        psld_wide term = (psld_wide)lower[i * k + l] * (psld_wide)inverse[l * k + j];
                        sum += term;
                        size += fabsl(term);
                    }
                    assert_close((double)sum, i == j, 4e-16 * K * (double)size, "L L^-1");
                }
        }
}

/* ---- Symmetric eigenvalues --------------------------------------------------------------------------------------- */

static void symmetric_eigenvalues_sum_and_multiply(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < TRIALS; trial++) {
            double a[SIZE], values[K], trace = 0, squares = 0, sum = 0, square_sum = 0, product = 1;
            draw(k, trial, 0, k * k, a);
            for (int i = 0; i < k * k; i++)
                if (i / k > i % k) a[i] = a[i % k * k + i / k];
            psld_matrix_symmetric_eigenvalues(k, a, values);
            for (int i = 0; i < k; i++) {
                trace += a[i * k + i];
                sum += values[i];
                square_sum += values[i] * values[i];
                product *= values[i];
                if (i) assert_true(values[i - 1] <= values[i]);
            }
            for (int i = 0; i < k * k; i++) squares += a[i] * a[i];
            assert_close(sum, trace, 1e-13, "sum of eigenvalues");
            assert_close(square_sum, squares, 1e-13 * squares, "sum of their squares");
            assert_close(product, determinant(k, a), 1e-13 * pow(sqrt(squares), k), "product of eigenvalues");
        }
}

static void symmetric_spectra_come_back(void **state)
{
    (void)state;
    static const double spectra[][K] = {{-3, -2, -1, 0, 1, 2, 3, 4},
                                        {0, 0, 0, 0, 0, 0, 0, 0},
                                        {-1, -1, -1, 5, 5, 5, 5, 5},
                                        {0, 0, 1e-9, 1e-6, 1, 1, 1, 1e3}};
    for (int k = 1; k <= K; k++) {
        for (size_t s = 0; s < sizeof spectra / sizeof *spectra; s++)
            for (int trial = 0; trial < TRIALS; trial++) {
                double q[SIZE], scaled[SIZE], a[SIZE], values[K], largest = 0;
                draw_orthogonal(k, trial, q);
                for (int i = 0; i < k * k; i++) scaled[i] = q[i] * spectra[s][i % k];
                for (int i = 0; i < k; i++) largest = fmax(largest, fabs(spectra[s][i]));
                psld_matrix_multiply_t(k, scaled, q, a);
                for (int i = 0; i < k * k; i++) a[i] = i / k > i % k ? a[i % k * k + i / k] : a[i];
                psld_matrix_symmetric_eigenvalues(k, a, values);
                for (int i = 0; i < k; i++) assert_close(values[i], spectra[s][i], 2e-14 * largest, "spectrum");
            }
        double chain[SIZE] = {0}, values[K]; /* a chain of springs: known in closed form */
        for (int i = 0; i < k; i++) {
            chain[i * k + i] = 2;
            if (i) chain[i * k + i - 1] = chain[(i - 1) * k + i] = -1;
        }
        psld_matrix_symmetric_eigenvalues(k, chain, values);
        for (int i = 0; i < k; i++) assert_close(values[i], 2 - 2 * cos((i + 1) * acos(-1) / (k + 1)), 1e-14, "chain");
    }
}

/* ---- General eigenvalues ----------------------------------------------------------------------------------------- */

/* A spectrum as it should come back: by real part, then imaginary part. */
typedef struct spectrum {
    int k;
    double re[K], im[K];
} spectrum;

static void sort_spectrum(spectrum *s)
{
    for (int i = 1; i < s->k; i++)
        for (int j = i; j > 0; j--) {
            if (s->re[j - 1] < s->re[j] || (s->re[j - 1] == s->re[j] && s->im[j - 1] <= s->im[j])) break;
            double re = s->re[j], im = s->im[j];
            s->re[j] = s->re[j - 1];
            s->im[j] = s->im[j - 1];
            s->re[j - 1] = re;
            s->im[j - 1] = im;
        }
}

static void assert_spectrum(const double *a, spectrum expected, double error, int defective, const char *what)
{
    spectrum found = {.k = expected.k};
    sort_spectrum(&expected);
    int is_defective = psld_matrix_eigenvalues(found.k, a, found.re, found.im);
    for (int i = 0; i < found.k; i++) {
        double off = hypot(found.re[i] - expected.re[i], found.im[i] - expected.im[i]);
        if (!(off <= error))
            fail_msg("%s: k = %d: found %.17g %+.17g i, expected %.17g %+.17g i: error %g > %g", what, found.k,
                     found.re[i], found.im[i], expected.re[i], expected.im[i], off, error);
    }
    if (is_defective != defective) fail_msg("%s: k = %d: defective is %d", what, found.k, is_defective);
}

static void eigenvalues_of_companion_matrices_are_the_roots(void **state)
{
    (void)state;
    /* pairs (re, im) with im > 0 stand for two conjugate roots */
    static const double polynomials[][K][2] = {
        {{-1, 0}, {2, 0}, {-3, 0}, {4, 0}, {-5, 0}, {6, 0}, {-7, 0}, {8, 0}},
        {{-1, 2}, {0.5, 0}, {-2, 1}, {-3, 0}, {1, 1}},
        {{-0.5, 0}, {0.1, 1}, {0, 2}, {-0.1, 3}},
        {{0, 0}, {1, 0}, {-1, 0}, {0.25, 1}, {2, 2}},
    };
    for (size_t p = 0; p < sizeof polynomials / sizeof *polynomials; p++) {
        spectrum roots = {0};
        double c[K + 1] = {1}; /* ascending, leading coefficient 1 at c[k] */
        for (int i = 0; i < K && roots.k < K && (i == 0 || polynomials[p][i][0] != 0 || polynomials[p][i][1] != 0);
             i++) {
            double re = polynomials[p][i][0], im = polynomials[p][i][1];
            for (int conjugate = 0; conjugate <= (im > 0); conjugate++) {
                roots.re[roots.k] = re;
                roots.im[roots.k++] = conjugate ? -im : im;
            }
            double next[K + 1] = {0};
            for (int j = 0; j + (im > 0) < K; j++) { /* times (x - re), or x^2 - 2 re x + re^2 + im^2 */
                next[j + 1 + (im > 0)] += c[j];
                next[j + (im > 0)] -= (im > 0 ? 2 * re : re) * c[j];
                if (im > 0) next[j] += (re * re + im * im) * c[j];
            }
            memcpy(c, next, sizeof c);
            int k = roots.k;
            double companion[SIZE] = {0};
            for (int j = 0; j < k; j++) companion[j * k + k - 1] = -c[j];
            for (int j = 1; j < k; j++) companion[j * k + j - 1] = 1;
            assert_spectrum(companion, roots, 1e-11 * psld_matrix_largest(k, companion), 0, "companion");
        }
    }
}

static void rotations_have_conjugate_pairs(void **state)
{
    (void)state;
    for (int pairs = 1; pairs <= K / 2; pairs++)
        for (int trial = 0; trial < TRIALS; trial++)
            for (int odd = 0; odd <= (2 * pairs < K); odd++) {
                spectrum s = {.k = 2 * pairs + odd};
                double blocks[SIZE] = {0}, a[SIZE];
                for (int p = 0; p < pairs; p++) {
                    double re = -0.5 * p, im = 1 + p;
                    int i = 2 * p, j = i + 1;
                    blocks[i * s.k + i] = blocks[j * s.k + j] = s.re[i] = s.re[j] = re;
                    blocks[i * s.k + j] = s.im[i] = im;
                    blocks[j * s.k + i] = s.im[j] = -im;
                }
                if (odd) blocks[s.k * s.k - 1] = s.re[s.k - 1] = 1.25;
                transform(s.k, trial, 0.3, blocks, a);
                assert_spectrum(a, s, 1e-12 * (1 + psld_matrix_largest(s.k, a)), 0, "rotations");
                double re[K], im[K]; /* pairs are exact */
                psld_matrix_eigenvalues(s.k, a, re, im);
                for (int i = 0; i < s.k; i++) {
                    int partners = 0;
                    for (int j = 0; j < s.k; j++) partners += re[i] == re[j] && im[i] == -im[j];
                    assert_true(partners >= 1);
                }
            }
}

/* A Jordan block of each size within each larger matrix, the other eigenvalues apart from it. */
static void defective_matrices_are_recognised(void **state)
{
    (void)state;
    for (int m = 2; m <= 4; m++)
        for (int k = m; k <= K; k++)
            for (int trial = 0; trial < TRIALS; trial++) {
                spectrum s = {.k = k};
                double jordan[SIZE] = {0}, a[SIZE];
                for (int i = 0; i < k; i++) {
                    jordan[i * k + i] = s.re[i] = i < m ? -1.005 : 1 + i - m;
                    if (i + 1 < m) jordan[i * k + i + 1] = 1;
                }
                transform(k, trial, 0.2, jordan, a);
                assert_spectrum(a, s, 1e-10 * (1 + psld_matrix_largest(k, a)), 1, "Jordan block");
                double re[K], im[K]; /* the members come back equal and real */
                psld_matrix_eigenvalues(k, a, re, im);
                for (int i = 0; i < m; i++) assert_true(re[i] == re[0] && im[i] == 0);
            }
}

static void two_jordan_blocks_are_recognised(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        spectrum s = {.k = 5, .re = {-2, -2, 1, 1, 4}};
        double jordan[25] = {0}, a[25];
        for (int i = 0; i < 5; i++) jordan[i * 5 + i] = s.re[i];
        jordan[1] = jordan[2 * 5 + 3] = 1;
        transform(5, trial, 0.2, jordan, a);
        assert_spectrum(a, s, 1e-11 * psld_matrix_largest(5, a), 1, "two Jordan blocks");
        jordan[2 * 5 + 3] = 0; /* and one block next to a double eigenvalue with two vectors */
        transform(5, trial, 0.2, jordan, a);
        assert_spectrum(a, s, 1e-11 * psld_matrix_largest(5, a), 1, "one Jordan block");
    }
}

/* Critical damping as the presets have it: their drift matrices. */
static void critical_drifts_are_defective(void **state)
{
    (void)state;
    double phase[4] = {-0.005, 2, -0.5, -2.005}, root = sqrt(3.0) / 2;
    assert_spectrum(phase, (spectrum){.k = 2, .re = {-1.005, -1.005}}, 1e-14, 1, "psld");
    double third[9] = {0, 0.5, 0, -0.5, 0, sqrt(2.0), 0, -sqrt(2.0), -1.5 * sqrt(3.0)};
    assert_spectrum(third, (spectrum){.k = 3, .re = {-root, -root, -root}}, 1e-13, 1, "told");
}

static void repeated_eigenvalues_with_all_vectors_are_not_defective(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int m = 1; m <= k; m++)
            for (int trial = 0; trial < TRIALS; trial++) {
                spectrum s = {.k = k};
                double diagonal[SIZE] = {0}, a[SIZE];
                for (int i = 0; i < k; i++) diagonal[i * k + i] = s.re[i] = i < m ? -1.5 : i - m + 0.5;
                assert_spectrum(diagonal, s, 1e-15, 0, "diagonal");
                transform(k, trial, 0.3, diagonal, a);
                assert_spectrum(a, s, 1e-12 * (1 + psld_matrix_largest(k, a)), 0, "repeated");
            }
    for (int k = 1; k <= K; k++) {
        double zero[SIZE] = {0};
        assert_spectrum(zero, (spectrum){.k = k}, 0, 0, "zero");
    }
}

/* Neighbours that are no rounding of one eigenvalue stay apart: those of a symmetric matrix are known to u. */
static void neighbouring_eigenvalues_stay_apart(void **state)
{
    (void)state;
    for (int k = 2; k <= K; k++)
        for (int exponent = 1; exponent <= 8; exponent++) {
            spectrum s = {.k = k};
            double diagonal[SIZE] = {0}, q[SIZE], x[SIZE], a[SIZE];
            for (int i = 0; i < k; i++) diagonal[i * k + i] = s.re[i] = 1 + i * pow(10, -exponent);
            assert_spectrum(diagonal, s, 1e-14, 0, "neighbours");
            draw_orthogonal(k, exponent, q);
            psld_matrix_multiply(k, q, diagonal, x);
            psld_matrix_multiply_t(k, x, q, a);
            assert_spectrum(a, s, 1e-13, 0, "turned neighbours");
            s.re[k - 1] = diagonal[k * k - 1] = 7; /* next to one far away */
            assert_spectrum(diagonal, s, 1e-14, 0, "neighbours and another");
        }
}

static void random_eigenvalues_sum_and_multiply(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int trial = 0; trial < 10 * TRIALS; trial++) {
            double a[SIZE], square[SIZE], re[K], im[K], sum = 0, squares = 0, trace = 0, square_trace = 0;
            double product[2] = {1, 0};
            draw(k, trial, 0, k * k, a);
            psld_matrix_multiply(k, a, a, square);
            assert_int_equal(psld_matrix_eigenvalues(k, a, re, im), 0);
            for (int i = 0; i < k; i++) {
                double x = product[0] * re[i] - product[1] * im[i], y = product[0] * im[i] + product[1] * re[i];
                product[0] = x;
                product[1] = y;
                sum += re[i];
                squares += re[i] * re[i] - im[i] * im[i];
                trace += a[i * k + i];
                square_trace += square[i * k + i];
                if (i) assert_true(re[i - 1] < re[i] || (re[i - 1] == re[i] && im[i - 1] <= im[i]));
            }
            double size = pow(k * psld_matrix_largest(k, a), k);
            assert_close(sum, trace, 1e-12, "sum of eigenvalues");
            assert_close(squares, square_trace, 1e-11, "sum of their squares");
            assert_close(product[0], determinant(k, a), 1e-13 * size, "product of eigenvalues");
            assert_close(product[1], 0, 1e-13 * size, "its imaginary part");
        }
}

/* ---- Rank -------------------------------------------------------------------------------------------------------- */

static void rank_counts_independent_columns(void **state)
{
    (void)state;
    for (int k = 1; k <= K; k++)
        for (int columns = 1; columns <= MAX_COLUMNS; columns++)
            for (int rank = 0; rank <= k && rank <= columns; rank++)
                for (int trial = 0; trial < 3; trial++) {
                    double left[SIZE], right[K * MAX_COLUMNS], a[K * MAX_COLUMNS];
                    draw(k, trial, 1, k * rank, left);
                    draw(k, trial, 2, rank * columns, right);
                    for (int i = 0; i < k; i++)
                        for (int j = 0; j < columns; j++) {
                            double sum = 0;
                            for (int l = 0; l < rank; l++) sum += left[i * rank + l] * right[l * columns + j];
                            a[i * columns + j] = sum;
                        }
                    assert_int_equal(psld_matrix_rank(k, columns, a, 1e-10), rank);
                }
}

static void rank_tolerance_is_relative(void **state)
{
    (void)state;
    for (int exponent = -200; exponent <= 200; exponent += 100) {
        double scale = pow(10, exponent);
        double a[4] = {scale, 0, 0, scale * 1e-6}, b[4] = {scale, 0, 0, scale * 1e-6};
        assert_int_equal(psld_matrix_rank(2, 2, a, 1e-5), 1);
        assert_int_equal(psld_matrix_rank(2, 2, b, 1e-7), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums_are_as_defined),
        cmocka_unit_test(sizes_are_as_defined),
        cmocka_unit_test(wide_products_are_the_same),
        cmocka_unit_test(cholesky_gives_back_its_matrix),
        cmocka_unit_test(cholesky_of_semidefinite_matrices_is_exact),
        cmocka_unit_test(wide_cholesky_gives_back_its_matrix),
        cmocka_unit_test(triangularising_keeps_the_product),
        cmocka_unit_test(triangularising_keeps_small_rows_accurate),
        cmocka_unit_test(triangularising_keeps_what_squares_lose),
        cmocka_unit_test(inverses_of_lower_matrices_are_inverses),
        cmocka_unit_test(symmetric_eigenvalues_sum_and_multiply),
        cmocka_unit_test(symmetric_spectra_come_back),
        cmocka_unit_test(eigenvalues_of_companion_matrices_are_the_roots),
        cmocka_unit_test(rotations_have_conjugate_pairs),
        cmocka_unit_test(defective_matrices_are_recognised),
        cmocka_unit_test(two_jordan_blocks_are_recognised),
        cmocka_unit_test(critical_drifts_are_defective),
        cmocka_unit_test(repeated_eigenvalues_with_all_vectors_are_not_defective),
        cmocka_unit_test(neighbouring_eigenvalues_stay_apart),
        cmocka_unit_test(random_eigenvalues_sum_and_multiply),
        cmocka_unit_test(rank_counts_independent_columns),
        cmocka_unit_test(rank_tolerance_is_relative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
