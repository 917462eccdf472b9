/* Measurement operators: linear maps A with y = A x, which restoration inverts.
 *
 * Beside A and its adjoint, the methods divide by functions of A A'. So every operator has an orthonormal basis of its
 * measurements in which A A' is diagonal: A A' = U' diag(squares) U. For most tasks A A' is diagonal already, and U = 1. A
 * blur is a periodic convolution, which the Hartley transform (real, symmetric, orthonormal) diagonalises. A general
 * matrix has its own eigenvectors. */
#ifndef PSLD_SAMPLE_OPERATOR_H
#define PSLD_SAMPLE_OPERATOR_H

#include "base/status.h"

typedef struct psld_task_row psld_task_row;

struct psld_operator {
    const psld_task_row *task;
    size_t channels, height, width; /* of x; a vector has height 1 */
    size_t dim, size;               /* numbers in x and in y */
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of y */
    double *squares;             /* [size]: eigenvalues of A A' */
    /* of the task: */
    size_t factor[2];             /* super-resolution: down and across */
    size_t *known;                /* inpainting: [size], indices of the known elements */
    double weight[4];             /* colorize: of each channel in grey */
    double *blur[2], *hartley[2]; /* down (n = height) and across (n = width): [n][n] each */
    double *matrix, *vectors;     /* general: [size][dim]; eigenvectors of A A' as rows [size][size] */
};

/* y [size] from x [dim], and x = A' y. Not in place; `work` is [dim]. */
void psld_operator_forward(const psld_operator *op, const double *x, double *work, double *y);
void psld_operator_adjoint(const psld_operator *op, const double *y, double *work, double *x);
/* out = U y, into the basis in which A A' is diagonal, or out = U' y. Not in place; `work` is [size]. */
void psld_operator_rotate(const psld_operator *op, int back, const double *y, double *work, double *out);

#endif
