#include "eval/linear.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <limits.h>

#include "base/alloc.h"

/* ---- Threads of OpenBLAS: ours while a call runs, whatever they were before and after ------------------------------ */

static int take_threads(void)
{
    int before = openblas_get_num_threads();
    openblas_set_num_threads(psld_threads_get());
    return before;
}

static void give_back_threads(int before)
{
    openblas_set_num_threads(before);
}

static int as_int(size_t n)
{
    assert(n <= INT_MAX);
    return (int)n;
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

void psld_linear_scatter(size_t dim, size_t rows, const double *x, double *s)
{
    int d = as_int(dim), before = take_threads();
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, d, as_int(rows), 1, x, d, 1, s, d);
    give_back_threads(before);
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j < i; j++) s[i * dim + j] = s[j * dim + i];
}

void psld_linear_products(size_t dim, size_t n, const double *a, size_t m, const double *b, double *c)
{
    int d = as_int(dim), before = take_threads();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_int(n), as_int(m), d, 1, a, d, b, d, 0, c, as_int(m));
    give_back_threads(before);
}

/* ---- Decompositions ---------------------------------------------------------------------------------------------- */

static psld_status not_converged(const char *what, lapack_int info)
{
    return psld_fail(PSLD_NOT_FINITE, "%s of a matrix did not converge (%d)", what, (int)info);
}

/* Divide and conquer. Column by column the matrix is its own transpose, and the eigenvectors come out as rows. */
psld_status psld_linear_eigen(size_t dim, double *a, double *values)
{
    lapack_int n = as_int(dim), i_size = 0, info;
    double size = 0;
    LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, values, &size, -1, &i_size, -1);
    double *work = psld_alloc((size_t)size, sizeof *work);
    lapack_int *i_work = work ? psld_alloc((size_t)i_size, sizeof *i_work) : NULL;
    if (!i_work) {
        psld_release(work);
        return PSLD_NO_MEMORY;
    }
    int before = take_threads();
    info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, values, work, (lapack_int)size, i_work, i_size);
    give_back_threads(before);
    psld_release(i_work);
    psld_release(work);
    return info == 0 ? PSLD_OK : not_converged("the eigenvalues", info);
}

psld_status psld_linear_nuclear_norm(size_t rows, size_t columns, double *a, double *sum)
{
    size_t least = rows < columns ? rows : columns;
    lapack_int m = as_int(columns), n = as_int(rows), info; /* column by column it is the transpose */
    double size = 0, none = 0;
    *sum = 0;
    if (least == 0) return PSLD_OK;
    LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'N', m, n, a, m, &none, &none, 1, &none, 1, &size, -1, NULL);
    double *work = psld_alloc((size_t)size + least, sizeof *work);
    lapack_int *i_work = work ? psld_alloc(8 * least, sizeof *i_work) : NULL;
    if (!i_work) {
        psld_release(work);
        return PSLD_NO_MEMORY;
    }
    double *values = work + (size_t)size;
    int before = take_threads();
    info = LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'N', m, n, a, m, values, &none, 1, &none, 1, work, (lapack_int)size,
                               i_work);
    give_back_threads(before);
    for (size_t i = least; i-- > 0;) *sum += values[i]; /* small ones first */
    psld_release(i_work);
    psld_release(work);
    return info == 0 ? PSLD_OK : not_converged("the singular values", info);
}
