#include "sample/samplers/multistep.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/linear.h"
#include "sample/samplers/quadrature.h"

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

#define MIN_SHARE 0.3 /* an evaluation is used if it has this share of the largest certainty */

double psld_multistep_clock(double detail, double lambda)
{
    return detail > 0 ? -log1p(exp(-2 * lambda) / (detail * detail)) / 2 : lambda;
}

int psld_multistep_uses(const double *certainty, int order, int j)
{
    double best = 0;
    for (int m = 0; m < order; m++) best = fmax(best, certainty[m]);
    return MIN_SHARE * best <= certainty[j];
}

double psld_multistep_weight(const psld_multistep_window *window, int order, int j, double clock)
{
    double nodes[PSLD_MAX_ORDER];
    int count = 0, at = -1;
    for (int m = 0; m < order; m++) {
        if (!psld_multistep_uses(window->certainty, order, m)) continue;
        if (m == j) at = count;
        nodes[count++] = window->clock[m];
    }
    return at < 0 ? 0 : psld_lagrange(count, nodes, at, clock);
}

typedef struct multistep_job {
    const psld_discretisation *grid;
    int exact; /* see psld_source: which kernel sigma belongs to */
    psld_multistep_fn plan;
    double *sigma; /* [steps] */
    psld_multistep *tables;
    psld_status *status; /* [steps] */
    psld_status (*body)(const struct multistep_job *p, size_t step);
} multistep_job;

/* Effective noise and denoiser at the start of step i. */
static psld_status plan_evaluation(const multistep_job *p, size_t i)
{
    psld_collapsed_frame frame;
    PSLD_TRY(psld_collapsed_frame_plan(p->grid->recipe, p->exact, p->grid->times[i], &frame));
    p->sigma[i] = frame.sigma;
    return psld_denoiser_plan(p->grid->recipe, p->grid->exact, p->grid->times[i], &p->tables[i].denoiser);
}

static psld_status plan_multistep(const multistep_job *p, size_t i)
{
    const psld_discretisation *grid = p->grid;
    psld_multistep *table = &p->tables[i];
    psld_multistep_window window = {
        .t = grid->times[i], .u = grid->times[i + 1], .order = grid->options->order, .detail = grid->options->detail};
    if (window.order > (int)i + 1) window.order = (int)i + 1;
    for (int j = 0; j < window.order; j++) {
        window.sigma[j] = p->sigma[i - (size_t)j];
        window.clock[j] = psld_multistep_clock(window.detail, -log(window.sigma[j]));
        window.certainty[j] = p->tables[i - (size_t)j].denoiser.certainty;
    }
    table->t = window.t;
    table->index = (int)i;
    table->order = window.order;
    return p->plan(grid, &window, table);
}

static void multistep_range(void *context, size_t begin, size_t end)
{
    const multistep_job *p = context;
    for (size_t i = begin; i < end; i++) p->status[i] = p->body(p, i);
}

/* Calls `body` for every step, on all threads. */
static psld_status plan_in_parallel(multistep_job *p, psld_status (*body)(const multistep_job *, size_t))
{
    size_t steps = (size_t)p->grid->steps;
    p->body = body;
    psld_parallel(steps, 1, multistep_range, p);
    for (size_t i = 0; i < steps; i++)
        if (p->status[i] != PSLD_OK) return body(p, i); /* repeated in this thread, for its error text */
    return PSLD_OK;
}

static psld_status plan_evaluations_and_steps(multistep_job *p)
{
    PSLD_TRY(plan_in_parallel(p, plan_evaluation));
    return plan_in_parallel(p, plan_multistep);
}

psld_status psld_multistep_plan(const psld_discretisation *grid, int exact, psld_multistep_fn plan,
                                psld_multistep *tables)
{
    size_t steps = (size_t)grid->steps;
    double *sigma = psld_alloc(steps, sizeof *sigma);
    psld_status *status = sigma ? psld_alloc(steps, sizeof *status) : NULL;
    multistep_job p = {grid, exact, plan, sigma, tables, status, NULL};
    psld_status result = status ? plan_evaluations_and_steps(&p) : PSLD_NO_MEMORY;
    psld_release(status);
    psld_release(sigma);
    return result;
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

/* Where the clean data of step `index` are stored: a ring of PSLD_MAX_ORDER. */
static double *clean_data_of(const psld_reverse *reverse, int index)
{
    return reverse->work + (size_t)(index % PSLD_MAX_ORDER) * reverse->count * reverse->dim;
}

/* weighted = sum_j weight_j X_j. */
static void extrapolate(const psld_reverse *reverse, const psld_multistep *step, int order, double *weighted)
{
    psld_linear_part parts[PSLD_MAX_ORDER];
    for (int j = 0; j < order; j++)
        parts[j] = (psld_linear_part){step->weight[order - 1][j], 1, clean_data_of(reverse, step->index - j)};
    psld_linear_apply(reverse->count, reverse->dim, reverse->k, (size_t)order, parts, weighted);
}

psld_status psld_multistep_step(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const psld_multistep *step = table;
    double *weighted = reverse->work + PSLD_MAX_ORDER * reverse->count * reverse->dim;
    reverse->consecutive = step->index == reverse->last_step + 1 ? reverse->consecutive + 1 : 1;
    reverse->last_step = step->index;
    psld_affine_expect(reverse, &step->map, visit, 1);
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    psld_denoiser_apply(&step->denoiser, reverse->count, reverse->dim, reverse->z, reverse->eps,
                        clean_data_of(reverse, step->index));
    extrapolate(reverse, step, reverse->consecutive < step->order ? reverse->consecutive : step->order, weighted);
    psld_affine_apply(reverse, &step->map, PSLD_FOR_STEP, visit, weighted, reverse->z, reverse->z);
    return PSLD_OK;
}
