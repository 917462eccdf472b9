/* k x k matrices in extended precision, for kernels alone.
 *
 * Entries of a kernel pass through zero and are wanted accurate relative to 1e-3 of their neighbours on the
 * diagonal, after up to ten doublings: double leaves 1e-12 of that, the 64-bit mantissa of long double 1e-15. Where
 * long double is double, results are as good as double gets. */
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

/* Lower factor of a symmetric positive semidefinite matrix; a pivot that is not positive gives a column of zeros. */
void psld_wide_cholesky(int k, const psld_wide *a, psld_wide *lower);

/* Lower factor, diagonal >= 0, of a a' for a with k rows and `columns` columns, by rotations of its columns: entries
 * keep their accuracy relative to themselves where a sum of squares would lose it. Overwrites a. */
void psld_wide_triangularise(int k, int columns, psld_wide *a, psld_wide *lower);

#endif
