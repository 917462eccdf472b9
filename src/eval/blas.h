/* OpenBLAS, loaded when evaluation first needs it.
 *
 * Debian's build starts one thread per processor when it is loaded, and each of them asks for 128 MB of address space
 * until it gets them. If the address space is limited they wait for ever, and every command would hang, even without
 * matrices. So the program is not linked with OpenBLAS. OpenBLAS includes LAPACK. */
#ifndef PSLD_EVAL_BLAS_H
#define PSLD_EVAL_BLAS_H

#include "base/status.h"

/* Values of CBLAS's enumerations. */
enum { PSLD_BLAS_ROWS = 101, PSLD_BLAS_AS_IS = 111, PSLD_BLAS_TRANSPOSED = 112, PSLD_BLAS_UPPER = 121 };

typedef struct psld_blas {
    void (*dsyrk)(int order, int triangle, int transpose, int n, int k, double alpha, const double *a, int lda,
                  double beta, double *c, int ldc);
    void (*dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    /* LAPACK by Fortran's conventions: the lengths of texts come last. */
    void (*dsyevd)(const char *job, const char *triangle, const int *n, double *a, const int *lda, double *values,
                   double *work, const int *work_size, int *i_work, const int *i_work_size, int *info, size_t, size_t);
    void (*dgesdd)(const char *job, const int *m, const int *n, double *a, const int *lda, double *values, double *u,
                   const int *ldu, double *vt, const int *ldvt, double *work, const int *work_size, int *i_work,
                   int *info, size_t);
    int (*get_threads)(void);
    void (*set_threads)(int count);
} psld_blas;

/* Loads OpenBLAS. Fails if there is not enough address space for psld_threads_get() threads. */
psld_status psld_blas_open(const psld_blas **blas);

#endif
