/* Dense k x k matrices of double, k <= PSLD_MAX_K, stored by rows.
 *
 * They are so small that a call of LAPACK would cost more than the work. Outputs must not overlap inputs unless noted. */
#ifndef PSLD_PROCESS_MATRIX_H
#define PSLD_PROCESS_MATRIX_H

#include "psld.h"

enum { PSLD_MATRIX_SIZE = PSLD_MAX_K * PSLD_MAX_K };

void psld_matrix_identity(int k, double *a);
void psld_matrix_copy(int k, const double *a, double *out);
void psld_matrix_transpose(int k, const double *a, double *out);
/* out = a b;  out = a b';  y += f x (x may be y) */
void psld_matrix_multiply(int k, const double *a, const double *b, double *out);
void psld_matrix_multiply_t(int k, const double *a, const double *b, double *out);
void psld_matrix_add(int k, double f, const double *x, double *y);
double psld_matrix_largest(int k, const double *a); /* largest absolute entry */

/* Lower factor of a symmetric positive (semi)definite matrix; a pivot that is not positive gives a column of zeros.
 * Returns the number of such pivots. */
int psld_matrix_cholesky(int k, const double *a, double *lower);
/* Inverse of a lower triangular matrix with positive diagonal. */
void psld_matrix_invert_lower(int k, const double *lower, double *inverse);

/* One rotation of Jacobi's method: makes entry (p, q) of the symmetric n x n matrix a zero, for any n. Rows of `vectors`
 * are rotated with it, unless it is NULL. */
void psld_matrix_rotate(size_t n, size_t p, size_t q, double *a, double *vectors);
/* Eigenvalues of a symmetric matrix, ascending (Jacobi). */
void psld_matrix_symmetric_eigenvalues(int k, const double *a, double *values);
/* Eigenvalues of any real matrix by real part, then imaginary part. Real ones that rounding has split from one multiple
 * eigenvalue come back equal. Returns 1 when a real eigenvalue has fewer eigenvectors than its multiplicity. */
int psld_matrix_eigenvalues(int k, const double *a, double *re, double *im);
/* Numerical rank of a, which has k rows and `columns` columns. Pivots up to `tolerance` times the largest entry count as
 * zero. Overwrites a. */
int psld_matrix_rank(int k, int columns, double *a, double tolerance);

#endif
