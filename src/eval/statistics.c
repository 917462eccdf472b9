/* Mean and covariance of features that arrive a few at a time, and their files.
 *
 * Rows are collected in blocks of a fixed size, so that the result does not depend on how many arrive at a time. A
 * block is centred on its own mean, and its scatter joined with that of the rows before (Chan, Golub & LeVeque 1979):
 *     S = S_a + S_b + (m_a - m_b)(m_a - m_b)' n_a n_b / (n_a + n_b),
 * which loses no digits, however far the mean is from 0. */
#include "eval/statistics.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/linear.h"
#include "io/tensors/npz.h"

enum { BLOCK = 512 };

/* The largest dimension: its matrices take 2 GB each. */
#define MAX_DIM ((size_t)16384)

struct psld_statistics {
    size_t dim;
    uint64_t count; /* rows in mean and scatter; 0 for statistics from a file */
    double *mean;   /* [dim] */
    double *cov;    /* [dim][dim]: the scatter until it is finished */
    double *block;  /* [BLOCK][dim]; NULL when finished */
    size_t waiting; /* rows in it */
};

psld_status psld_statistics_create(size_t dim, psld_statistics **statistics)
{
    *statistics = NULL;
    if (dim < 1 || dim > MAX_DIM)
        return psld_fail(PSLD_BAD_INPUT, "statistics: expected features of 1 to %zu numbers, found %zu", MAX_DIM, dim);
    psld_statistics *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->dim = dim;
    made->mean = psld_alloc(dim, sizeof *made->mean);
    made->cov = made->mean ? psld_alloc(dim * dim, sizeof *made->cov) : NULL;
    made->block = made->cov ? psld_alloc(BLOCK * dim, sizeof *made->block) : NULL;
    if (!made->block) {
        psld_statistics_free(made);
        return PSLD_NO_MEMORY;
    }
    *statistics = made;
    return PSLD_OK;
}

void psld_statistics_free(psld_statistics *statistics)
{
    if (!statistics) return;
    psld_release(statistics->mean);
    psld_release(statistics->cov);
    psld_release(statistics->block);
    psld_release(statistics);
}

size_t psld_statistics_dim(const psld_statistics *statistics)
{
    return statistics->dim;
}

uint64_t psld_statistics_count(const psld_statistics *statistics)
{
    return statistics->count + statistics->waiting;
}

static int is_statistics_finished(const psld_statistics *statistics)
{
    return statistics->block == NULL;
}

const double *psld_statistics_mean(const psld_statistics *statistics)
{
    return is_statistics_finished(statistics) ? statistics->mean : NULL;
}

const double *psld_statistics_cov(const psld_statistics *statistics)
{
    return is_statistics_finished(statistics) ? statistics->cov : NULL;
}

psld_status psld_statistics_check(const psld_statistics *statistics)
{
    if (is_statistics_finished(statistics)) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "statistics: not finished after %llu rows; finish them first",
                     (unsigned long long)psld_statistics_count(statistics));
}

/* ---- Adding up --------------------------------------------------------------------------------------------------- */

/* Subtracts the mean of the block's rows from each of them, and returns it in `mean`. */
static void centre_block(psld_statistics *s, double *mean)
{
    memset(mean, 0, s->dim * sizeof *mean);
    for (size_t i = 0; i < s->waiting; i++)
        for (size_t j = 0; j < s->dim; j++) mean[j] += s->block[i * s->dim + j];
    for (size_t j = 0; j < s->dim; j++) mean[j] /= (double)s->waiting;
    for (size_t i = 0; i < s->waiting; i++)
        for (size_t j = 0; j < s->dim; j++) s->block[i * s->dim + j] -= mean[j];
}

static psld_status join_block(psld_statistics *s)
{
    if (s->waiting == 0) return PSLD_OK;
    double *apart = psld_alloc(s->dim, sizeof *apart), before = (double)s->count, now = (double)s->waiting;
    if (!apart) return PSLD_NO_MEMORY;
    centre_block(s, apart);
    psld_status status = psld_linear_scatter(s->dim, s->waiting, s->block, s->cov);
    if (status != PSLD_OK) {
        psld_release(apart);
        return status;
    }
    for (size_t j = 0; j < s->dim; j++) apart[j] -= s->mean[j];
    double weight = before * now / (before + now);
    for (size_t i = 0; i < s->dim; i++)
        for (size_t j = 0; j < s->dim; j++) s->cov[i * s->dim + j] += weight * (apart[i] * apart[j]);
    for (size_t j = 0; j < s->dim; j++) s->mean[j] += apart[j] * now / (before + now);
    s->count += s->waiting;
    s->waiting = 0;
    psld_release(apart);
    return PSLD_OK;
}

psld_status psld_statistics_add(psld_statistics *statistics, size_t n, const float *features)
{
    size_t dim = statistics->dim;
    if (is_statistics_finished(statistics))
        return psld_fail(PSLD_BAD_ARGUMENT, "statistics: finished already; %zu more rows cannot be added", n);
    for (size_t i = 0; i < n; i++) {
        double *row = statistics->block + statistics->waiting * dim;
        for (size_t j = 0; j < dim; j++) {
            row[j] = (double)features[i * dim + j];
            if (!isfinite(row[j]))
                return psld_fail(PSLD_BAD_INPUT, "features: number %zu of row %llu is not finite", j,
                                 (unsigned long long)psld_statistics_count(statistics));
        }
        if (++statistics->waiting == BLOCK) PSLD_TRY(join_block(statistics));
    }
    return PSLD_OK;
}

psld_status psld_statistics_finish(psld_statistics *statistics)
{
    uint64_t count = psld_statistics_count(statistics);
    if (is_statistics_finished(statistics)) return PSLD_OK;
    if (count < 2)
        return psld_fail(PSLD_BAD_INPUT, "a covariance needs at least 2 images, found %llu", (unsigned long long)count);
    PSLD_TRY(join_block(statistics));
    for (size_t i = 0; i < statistics->dim * statistics->dim; i++) statistics->cov[i] /= (double)(count - 1);
    psld_release(statistics->block);
    statistics->block = NULL;
    return PSLD_OK;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static psld_status read_statistics_numbers(psld_npz *npz, const char *name, psld_array **numbers)
{
    psld_array *stored;
    PSLD_TRY(psld_npz_read(npz, name, &stored));
    psld_status status = psld_array_convert(stored, PSLD_F64, numbers);
    psld_array_free(stored);
    for (size_t i = 0; status == PSLD_OK && i < (*numbers)->count; i++)
        if (!isfinite(((const double *)(*numbers)->data)[i]))
            status = psld_fail(PSLD_BAD_INPUT, "%s: number %zu is not finite", name, i);
    return status;
}

static psld_status check_symmetric(size_t dim, const double *cov)
{
    double largest = 0;
    for (size_t i = 0; i < dim; i++) {
        if (cov[i * dim + i] < 0)
            return psld_fail(PSLD_BAD_INPUT, "sigma: variance %zu is negative, %g", i, cov[i * dim + i]);
        largest = fmax(largest, cov[i * dim + i]);
    }
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j < i; j++)
            if (!(fabs(cov[i * dim + j] - cov[j * dim + i]) <= 1e-5 * largest))
                return psld_fail(PSLD_BAD_INPUT, "sigma: not symmetric: [%zu][%zu] is %g, [%zu][%zu] is %g", i, j,
                                 cov[i * dim + j], j, i, cov[j * dim + i]);
    return PSLD_OK;
}

static psld_status use_statistics_arrays(const psld_array *mu, const psld_array *sigma, psld_statistics **statistics)
{
    if (mu->rank != 1) return psld_fail(PSLD_BAD_INPUT, "mu: expected a vector, found %d dimensions", mu->rank);
    size_t dim = mu->shape[0];
    if (sigma->rank != 2 || sigma->shape[0] != dim || sigma->shape[1] != dim)
        return psld_fail(PSLD_BAD_INPUT, "sigma: expected [%zu, %zu], as mu has %zu numbers", dim, dim, dim);
    PSLD_TRY(check_symmetric(dim, sigma->data));
    PSLD_TRY(psld_statistics_create(dim, statistics));
    memcpy((*statistics)->mean, mu->data, dim * sizeof(double));
    memcpy((*statistics)->cov, sigma->data, dim * dim * sizeof(double));
    psld_release((*statistics)->block);
    (*statistics)->block = NULL;
    return PSLD_OK;
}

psld_status psld_statistics_load(const char *path, psld_statistics **statistics)
{
    psld_npz *npz;
    psld_array *mu = NULL, *sigma = NULL;
    *statistics = NULL;
    PSLD_TRY(psld_npz_open(path, &npz));
    psld_status status = read_statistics_numbers(npz, "mu", &mu);
    if (status == PSLD_OK) status = read_statistics_numbers(npz, "sigma", &sigma);
    if (status == PSLD_OK) status = use_statistics_arrays(mu, sigma, statistics);
    if (status != PSLD_OK && status != PSLD_NO_MEMORY && !strstr(psld_error_text(), path))
        psld_fail_in(status, "%s", path);
    psld_array_free(mu);
    psld_array_free(sigma);
    psld_npz_free(npz);
    return status;
}

psld_status psld_statistics_save(const psld_statistics *statistics, const char *path)
{
    static const char *const names[] = {"mu", "sigma"};
    size_t dim = statistics->dim;
    PSLD_TRY(psld_statistics_check(statistics));
    const psld_array mu = {.type = PSLD_F64, .rank = 1, .shape = {dim}, .count = dim, .data = statistics->mean};
    const psld_array sigma = {
        .type = PSLD_F64, .rank = 2, .shape = {dim, dim}, .count = dim * dim, .data = statistics->cov};
    const psld_array *const arrays[] = {&mu, &sigma};
    return psld_npz_save(path, 2, names, arrays);
}
