/* Frechet distance of two Gaussians with the moments of two sets of features (Heusel et al. 2017; Dowson & Landau
 * 1982):
 *     |m1 - m2|^2 + tr S1 + tr S2 - 2 tr (S1 S2)^1/2.
 * With S = V' L V (rows of V the eigenvectors) the last trace is the sum of the singular values of S1^1/2 S2^1/2, and
 * so of L1^1/2 V1 V2' L2^1/2. So no square root of a non-symmetric matrix is needed, which other programs compute
 * wrongly when there are fewer samples than dimensions. Eigenvalues below the rounding errors of the largest count as
 * 0: their roots would be eight digits too large. */
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "eval/linear.h"
#include "eval/statistics.h"

/* The square root of a covariance: the rows of L^1/2 V that count, [rank][dim]. */
typedef struct half {
    size_t rank;
    double *rows; /* first of these rows */
    double *room; /* [dim][dim] and eigenvalues [dim] */
} half;

static psld_status find_half(const psld_statistics *statistics, half *h)
{
    size_t dim = psld_statistics_dim(statistics);
    const double *cov = psld_statistics_cov(statistics);
    h->room = psld_alloc(dim * (dim + 1), sizeof *h->room);
    if (!h->room) return PSLD_NO_MEMORY;
    double *values = h->room + dim * dim;
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j < dim; j++) h->room[i * dim + j] = (cov[i * dim + j] + cov[j * dim + i]) / 2;
    PSLD_TRY(psld_linear_eigen(dim, h->room, values));
    double least = (double)dim * DBL_EPSILON * values[dim - 1];
    size_t first = 0;
    while (first < dim && !(values[first] > least)) first++;
    for (size_t i = first; i < dim; i++)
        for (size_t j = 0; j < dim; j++) h->room[i * dim + j] *= sqrt(values[i]);
    h->rank = dim - first;
    h->rows = h->room + first * dim;
    return PSLD_OK;
}

static psld_status root_trace(size_t dim, const half *a, const half *b, double *trace)
{
    double *product = psld_alloc(a->rank * b->rank, sizeof *product);
    if (!product) return PSLD_NO_MEMORY;
    psld_status status = PSLD_OK;
    if (a->rank && b->rank) status = psld_linear_products(dim, a->rank, a->rows, b->rank, b->rows, product);
    if (status == PSLD_OK) status = psld_linear_nuclear_norm(a->rank, b->rank, product, trace);
    psld_release(product);
    return status;
}

psld_status psld_frechet_distance(const psld_statistics *a, const psld_statistics *b, double *distance)
{
    size_t dim = psld_statistics_dim(a);
    if (dim != psld_statistics_dim(b))
        return psld_fail(PSLD_BAD_INPUT,
                         "frechet distance: the features of the first set have %zu numbers, those of the second %zu",
                         dim, psld_statistics_dim(b));
    PSLD_TRY(psld_statistics_check(a));
    PSLD_TRY(psld_statistics_check(b));
    half of_a = {0}, of_b = {0};
    double trace = 0, sum = 0;
    psld_status status = find_half(a, &of_a);
    if (status == PSLD_OK) status = find_half(b, &of_b);
    if (status == PSLD_OK) status = root_trace(dim, &of_a, &of_b, &trace);
    for (size_t i = 0; i < dim; i++) {
        double apart = psld_statistics_mean(a)[i] - psld_statistics_mean(b)[i];
        sum += apart * apart + psld_statistics_cov(a)[i * dim + i] + psld_statistics_cov(b)[i * dim + i];
    }
    if (status == PSLD_OK) *distance = fmax(0, sum - 2 * trace);
    psld_release(of_a.room);
    psld_release(of_b.room);
    return status;
}
