/* Restoration by the diffused measurement: see restore.c. */
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/inverse/restore.h"

typedef struct diffused_job {
    const psld_restore_call *r;
    const psld_restore_constants *at;
    const double *z;
    double *precision; /* [size][k x k]: inverses of s^2 mu mu' + square cov; 0 where nothing is measured */
} diffused_job;

static void diffused_precision(const psld_restore_call *r, const psld_restore_constants *at, double square, double *out)
{
    double cov[PSLD_MATRIX_SIZE], lower[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE], transposed[PSLD_MATRIX_SIZE];
    int k = r->recipe->spec.k;
    memset(out, 0, (size_t)(k * k) * sizeof *out);
    if (square < 1e-14) return;
    for (int i = 0; i < k * k; i++)
        cov[i] = r->options.noise * r->options.noise * at->mu[i / k] * at->mu[i % k] + square * at->cov[i];
    if (psld_matrix_cholesky(k, cov, lower)) return; /* singular in double precision: carries no information */
    psld_matrix_invert_lower(k, lower, inverse);
    psld_matrix_transpose(k, inverse, transposed);
    psld_matrix_multiply(k, transposed, inverse, out);
}

static void diffused_state(const diffused_job *job, size_t i)
{
    const psld_restore_call *r = job->r;
    const psld_operator *op = r->op;
    size_t k = (size_t)r->recipe->spec.k, dim = op->dim, size = op->size;
    double *work = r->work + i * r->work_size, *rest = work + dim, *spare = rest + k * size;
    double *gradient = r->gradient + i * k * dim;
    for (size_t a = 0; a < k; a++) {
        psld_operator_forward(op, job->z + (i * k + a) * dim, work, spare);
        for (size_t l = 0; l < size; l++) spare[l] = job->at->mu[a] * r->y[l] - spare[l];
        psld_operator_rotate(op, 0, spare, work, rest + a * size);
    }
    for (size_t a = 0; a < k; a++) {
        double *out = r->cg[0] + i * size;
        for (size_t l = 0; l < size; l++) {
            out[l] = 0;
            for (size_t b = 0; b < k; b++) out[l] += job->precision[l * k * k + a * k + b] * rest[b * size + l];
        }
        psld_operator_rotate(op, 1, out, work, spare);
        psld_operator_adjoint(op, spare, work, gradient + a * dim);
    }
}

static void diffused_range(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) diffused_state(context, i);
}

psld_status psld_restore_diffused(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                  const double *eps)
{
    size_t k = (size_t)r->recipe->spec.k, size = r->op->size;
    (void)eps;
    diffused_job job = {r, at, states->z, psld_alloc(size, k * k * sizeof(double))};
    if (!job.precision) return PSLD_NO_MEMORY;
    for (size_t l = 0; l < size; l++) {
        int as_before = l > 0 && r->op->squares[l] == r->op->squares[l - 1];
        double *out = job.precision + l * k * k;
        if (as_before)
            memcpy(out, out - k * k, k * k * sizeof *out);
        else
            diffused_precision(r, at, r->op->squares[l], out);
    }
    psld_parallel(states->n, 1, diffused_range, &job);
    psld_release(job.precision);
    return PSLD_OK;
}
