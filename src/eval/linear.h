/* Dense linear algebra in float64 for evaluation, from OpenBLAS and LAPACK.
 *
 * Matrices are stored row by row. Workspace comes from base/alloc, so running out of memory is a status. During a
 * call OpenBLAS uses psld_threads_get() threads; this changes results by rounding only. */
#ifndef PSLD_EVAL_LINEAR_H
#define PSLD_EVAL_LINEAR_H

#include <stddef.h>

#include "base/status.h"

/* s [dim][dim] += x' x, both triangles; x is [rows][dim]. */
psld_status psld_linear_scatter(size_t dim, size_t rows, const double *x, double *s);
/* c [n][m] = a b', a being [n][dim] and b [m][dim]. */
psld_status psld_linear_products(size_t dim, size_t n, const double *a, size_t m, const double *b, double *c);

/* Eigenvalues of a symmetric matrix, ascending; row i of `a` becomes the eigenvector of value i. */
psld_status psld_linear_eigen(size_t dim, double *a, double *values);
/* Sum of the singular values of a [rows][columns], which is overwritten. */
psld_status psld_linear_nuclear_norm(size_t rows, size_t columns, double *a, double *sum);

#endif
