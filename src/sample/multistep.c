#include "sample/multistep.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/quadrature.h"

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

#define LEAST_SHARE 0.3 /* of the certainty of the best */

double psld_multistep_clock(double detail, double lambda)
{
    return detail > 0 ? -log1p(exp(-2 * lambda) / (detail * detail)) / 2 : lambda;
}

int psld_multistep_uses(const psld_stretch *stretch, int order, int j)
{
    double best = 0;
    for (int m = 0; m < order; m++) best = fmax(best, stretch->certainty[m]);
    return LEAST_SHARE * best <= stretch->certainty[j];
}

double psld_multistep_share(const psld_stretch *stretch, int order, int j, double clock)
{
    double nodes[PSLD_MOST_ORDER];
    int count = 0, at = -1;
    for (int m = 0; m < order; m++) {
        if (!psld_multistep_uses(stretch, order, m)) continue;
        if (m == j) at = count;
        nodes[count++] = stretch->clock[m];
    }
    return at < 0 ? 0 : psld_lagrange(count, nodes, at, clock);
}

typedef struct preparation {
    const psld_path *path;
    int exact; /* see psld_source: whose frame the time of the clean data is measured in */
    psld_multistep_fn plan;
    double *sigma; /* [steps] */
    psld_multistep *tables;
    psld_status *status; /* [steps] */
    psld_status (*prepare)(const struct preparation *p, size_t step);
} preparation;

/* When clean data are known, and how well. */
static psld_status find_evaluation(const preparation *p, size_t i)
{
    psld_split split;
    PSLD_TRY(psld_split_plan(p->path->recipe, p->exact, p->path->times[i], &split));
    p->sigma[i] = split.sigma;
    return psld_denoiser_plan(p->path->recipe, p->path->exact, p->path->times[i], &p->tables[i].denoiser);
}

static psld_status prepare_step(const preparation *p, size_t i)
{
    const psld_path *path = p->path;
    psld_multistep *table = &p->tables[i];
    psld_stretch stretch = {
        .t = path->times[i], .u = path->times[i + 1], .order = path->options->order, .detail = path->options->detail};
    if (stretch.order > (int)i + 1) stretch.order = (int)i + 1;
    for (int j = 0; j < stretch.order; j++) {
        stretch.sigma[j] = p->sigma[i - (size_t)j];
        stretch.clock[j] = psld_multistep_clock(stretch.detail, -log(stretch.sigma[j]));
        stretch.certainty[j] = p->tables[i - (size_t)j].denoiser.certainty;
    }
    table->t = stretch.t;
    table->index = (int)i;
    table->order = stretch.order;
    return p->plan(path, &stretch, table);
}

static void prepare_range(void *context, size_t begin, size_t end)
{
    const preparation *p = context;
    for (size_t i = begin; i < end; i++) p->status[i] = p->prepare(p, i);
}

/* One or the other for every step, on all threads. */
static psld_status for_all_steps(preparation *p, psld_status (*prepare)(const preparation *, size_t))
{
    size_t steps = (size_t)p->path->steps;
    p->prepare = prepare;
    psld_parallel(steps, 1, prepare_range, p);
    for (size_t i = 0; i < steps; i++)
        if (p->status[i] != PSLD_OK) return prepare(p, i); /* again, in this thread, for the text */
    return PSLD_OK;
}

static psld_status prepare_all(preparation *p)
{
    PSLD_TRY(for_all_steps(p, find_evaluation));
    return for_all_steps(p, prepare_step);
}

psld_status psld_multistep_prepare(const psld_path *path, int exact, psld_multistep_fn plan, psld_multistep *tables)
{
    size_t steps = (size_t)path->steps;
    double *sigma = psld_alloc(steps, sizeof *sigma);
    psld_status *status = sigma ? psld_alloc(steps, sizeof *status) : NULL;
    preparation p = {path, exact, plan, sigma, tables, status, NULL};
    psld_status result = status ? prepare_all(&p) : PSLD_NO_MEMORY;
    psld_release(status);
    psld_release(sigma);
    return result;
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

/* Where the clean data of the step `index` are kept. */
static double *history(const psld_walk *walk, int index)
{
    return walk->work + (size_t)(index % PSLD_MOST_ORDER) * walk->count * walk->dim;
}

typedef struct pull_job {
    const psld_walk *walk;
    const psld_multistep *step;
    int order;
    double *out;
} pull_job;

/* out = sum_j weight_j X_j. */
static void pull_range(void *context, size_t begin, size_t end)
{
    const pull_job *job = context;
    size_t k = job->walk->k, dim = job->walk->dim;
    for (size_t i = begin; i < end; i++) {
        memset(job->out + i * k * dim, 0, k * dim * sizeof(double));
        for (int j = 0; j < job->order; j++) {
            const double *x = history(job->walk, job->step->index - j) + i * dim;
            for (size_t a = 0; a < k; a++) {
                double *out = job->out + (i * k + a) * dim, weight = job->step->weight[job->order - 1][j][a];
                for (size_t d = 0; d < dim; d++) out[d] += weight * x[d];
            }
        }
    }
}

psld_status psld_multistep_take(psld_walk *walk, uint64_t visit, const void *table)
{
    const psld_multistep *step = table;
    double *pull = walk->work + PSLD_MOST_ORDER * walk->count * walk->dim;
    walk->run = step->index == walk->step + 1 ? walk->run + 1 : 1;
    walk->step = step->index;
    pull_job job = {walk, step, walk->run < step->order ? walk->run : step->order, pull};
    PSLD_TRY(psld_walk_predict(walk, walk->z, step->t));
    psld_denoiser_apply(&step->denoiser, walk->count, walk->dim, walk->z, walk->eps, history(walk, step->index));
    psld_parallel(walk->count, 4096 / (walk->k * walk->dim) + 1, pull_range, &job);
    psld_walk_affine(walk, &step->move, PSLD_FOR_STEP, visit, pull, walk->z, walk->z);
    return PSLD_OK;
}
