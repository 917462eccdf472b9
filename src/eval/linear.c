#include "eval/linear.h"

#include <assert.h>
#include <limits.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "eval/blas.h"
#include "psld_eval.h"

/* ---- Functions of the application, where there is no OpenBLAS ---------------------------------------------------- */

static psld_linear_algebra given; /* size 0: none */

psld_status psld_linear_algebra_use(const psld_linear_algebra *algebra)
{
    psld_linear_algebra own = PSLD_LINEAR_ALGEBRA_DEFAULTS;
    given.size = 0;
    if (!algebra) return PSLD_OK;
    PSLD_TRY(psld_sized_copy(algebra, &own, sizeof own, "PSLD_LINEAR_ALGEBRA_DEFAULTS"));
    if (!own.scatter || !own.products || !own.eigen || !own.nuclear_norm)
        return psld_fail(PSLD_BAD_ARGUMENT, "linear algebra: expected four functions, found fewer");
    given = own;
    return PSLD_OK;
}

/* *blas is NULL if the given functions are to be used. */
static psld_status find_algebra(const psld_blas **blas)
{
    psld_status status = psld_blas_open(blas);
    return status == PSLD_IO && given.size > 0 ? PSLD_OK : status;
}

#define ASK_GIVEN(call)                                                \
    do {                                                               \
        uint64_t failures = psld_fail_count();                         \
        return psld_fail_callback("linear algebra", failures, (call)); \
    } while (0)

/* ---- Threads of OpenBLAS: as many as ours during a call ---------------------------------------------------------- */

static int set_blas_threads(const psld_blas *blas)
{
    int before = blas->get_threads();
    blas->set_threads(psld_threads_get());
    return before;
}

static int blas_int(size_t n)
{
    assert(n <= INT_MAX);
    return (int)n;
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

psld_status psld_linear_scatter(size_t dim, size_t rows, const double *x, double *s)
{
    const psld_blas *blas;
    PSLD_TRY(find_algebra(&blas));
    if (!blas) ASK_GIVEN(given.scatter(given.user, dim, rows, x, s));
    int d = blas_int(dim), before = set_blas_threads(blas);
    blas->dsyrk(PSLD_BLAS_ROWS, PSLD_BLAS_UPPER, PSLD_BLAS_TRANSPOSED, d, blas_int(rows), 1, x, d, 1, s, d);
    blas->set_threads(before);
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j < i; j++) s[i * dim + j] = s[j * dim + i];
    return PSLD_OK;
}

psld_status psld_linear_products(size_t dim, size_t n, const double *a, size_t m, const double *b, double *c)
{
    const psld_blas *blas;
    PSLD_TRY(find_algebra(&blas));
    if (!blas) ASK_GIVEN(given.products(given.user, dim, n, a, m, b, c));
    int d = blas_int(dim), before = set_blas_threads(blas);
    blas->dgemm(PSLD_BLAS_ROWS, PSLD_BLAS_AS_IS, PSLD_BLAS_TRANSPOSED, blas_int(n), blas_int(m), d, 1, a, d, b, d, 0, c,
                blas_int(m));
    blas->set_threads(before);
    return PSLD_OK;
}

/* ---- Decompositions ---------------------------------------------------------------------------------------------- */

static psld_status not_converged(const char *what, int info)
{
    return psld_fail(PSLD_NOT_FINITE, "%s of a matrix did not converge (%d)", what, info);
}

/* Divide and conquer. LAPACK stores by columns: it reads the same symmetric matrix, and returns eigenvectors as our
 * rows. */
psld_status psld_linear_eigen(size_t dim, double *a, double *values)
{
    const psld_blas *blas;
    const int ask = -1;
    int n = blas_int(dim), work_size, i_size = 0, info = 0;
    double size = 0;
    PSLD_TRY(find_algebra(&blas));
    if (!blas) ASK_GIVEN(given.eigen(given.user, dim, a, values));
    blas->dsyevd("V", "U", &n, a, &n, values, &size, &ask, &i_size, &ask, &info, 1, 1);
    double *work = psld_alloc((size_t)size, sizeof *work);
    int *i_work = work ? psld_alloc((size_t)i_size, sizeof *i_work) : NULL;
    if (!i_work) {
        psld_release(work);
        return PSLD_NO_MEMORY;
    }
    work_size = (int)size;
    int before = set_blas_threads(blas);
    blas->dsyevd("V", "U", &n, a, &n, values, work, &work_size, i_work, &i_size, &info, 1, 1);
    blas->set_threads(before);
    psld_release(i_work);
    psld_release(work);
    return info == 0 ? PSLD_OK : not_converged("the eigenvalues", info);
}

psld_status psld_linear_nuclear_norm(size_t rows, size_t columns, double *a, double *sum)
{
    const psld_blas *blas;
    size_t least = rows < columns ? rows : columns;
    const int ask = -1, one = 1;
    int m = blas_int(columns), n = blas_int(rows), work_size, info = 0; /* column by column it is the transpose */
    double size = 0, none = 0;
    *sum = 0;
    if (least == 0) return PSLD_OK;
    PSLD_TRY(find_algebra(&blas));
    if (!blas) ASK_GIVEN(given.nuclear_norm(given.user, rows, columns, a, sum));
    blas->dgesdd("N", &m, &n, a, &m, &none, &none, &one, &none, &one, &size, &ask, NULL, &info, 1);
    double *work = psld_alloc((size_t)size + least, sizeof *work);
    int *i_work = work ? psld_alloc(8 * least, sizeof *i_work) : NULL;
    if (!i_work) {
        psld_release(work);
        return PSLD_NO_MEMORY;
    }
    double *values = work + (size_t)size;
    work_size = (int)size;
    int before = set_blas_threads(blas);
    blas->dgesdd("N", &m, &n, a, &m, values, &none, &one, &none, &one, work, &work_size, i_work, &info, 1);
    blas->set_threads(before);
    for (size_t i = least; i-- > 0;) *sum += values[i]; /* small ones first */
    psld_release(i_work);
    psld_release(work);
    return info == 0 ? PSLD_OK : not_converged("the singular values", info);
}
