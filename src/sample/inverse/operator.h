/* Linear measurements y = A x of data x: what restoration undoes.
 *
 * Beside A and its adjoint the methods want to divide by functions of A A'. So every operator comes with an orthonormal
 * basis of its measurements in which A A' is diagonal: A A' = turn' diag(squares) turn. For most tasks A A' is diagonal
 * as it is, and turn = 1; blur is a convolution, periodic at the edges, which the Hartley transform (real, symmetric and
 * orthonormal) diagonalises; a general matrix brings its own eigenvectors. */
#ifndef PSLD_SAMPLE_LINEAR_H
#define PSLD_SAMPLE_LINEAR_H

#include "base/status.h"

typedef struct psld_task_row psld_task_row;

struct psld_operator {
    const psld_task_row *task;
    size_t channels, height, width; /* of x; vectors are one row */
    size_t dim, size;               /* numbers in x and in y */
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of y */
    double *squares;             /* [size]: eigenvalues of A A' */
    /* what the task needs of these */
    size_t factor[2];             /* super-resolution: down and across */
    size_t *places;               /* inpainting: [size], elements that are known */
    double weight[4];             /* colours: of each channel in grey */
    double *blur[2], *hartley[2]; /* down (n = height) and across (n = width): [n][n] each */
    double *matrix, *vectors;     /* general: [size][dim]; eigenvectors of A A' as rows [size][size] */
};

/* y [size] from x [dim], and x = A' y. Not in place; `work` is [dim]. */
void psld_operator_forward(const psld_operator *op, const double *x, double *work, double *y);
void psld_operator_adjoint(const psld_operator *op, const double *y, double *work, double *x);
/* Into the basis in which A A' is diagonal, or back from it. Not in place; `work` is [size]. */
void psld_operator_rotate(const psld_operator *op, int back, const double *y, double *work, double *out);

#endif
