/* k x k matrices in extended precision. Only the kernel is computed with them.
 *
 * Off-diagonal entries of a kernel pass through zero. They must be accurate relative to 1e-3 of the diagonal entries next
 * to them, after up to ten doublings of the interval. Double precision leaves an error of 1e-12 of that, the 64-bit
 * mantissa of long double 1e-15. On machines where long double is double, results have the accuracy of double. */
#ifndef PSLD_PROCESS_WIDE_H
#define PSLD_PROCESS_WIDE_H

#include "psld.h"

typedef long double psld_wide;

enum { PSLD_WIDE_SIZE = PSLD_MAX_K * PSLD_MAX_K };

void psld_wide_identity(int k, psld_wide *a);
/* out = a b;  out = a b'. */
void psld_wide_multiply(int k, const psld_wide *a, const psld_wide *b, psld_wide *out);
void psld_wide_multiply_t(int k, const psld_wide *a, const psld_wide *b, psld_wide *out);
/* Largest absolute column sum. */
psld_wide psld_wide_norm(int k, const psld_wide *a);

/* Lower Cholesky factor of a symmetric positive semidefinite matrix. A pivot that is not positive gives a zero column. */
void psld_wide_cholesky(int k, const psld_wide *a, psld_wide *lower);

/* The lower triangular factor, with diagonal >= 0, of a a', where a has k rows and `columns` columns. Columns are
 * rotated (Givens): small entries keep their relative accuracy, which the product a a' would lose. Overwrites a. */
void psld_wide_triangularise(int k, int columns, psld_wide *a, psld_wide *lower);

#endif
