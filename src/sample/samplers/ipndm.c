/* Adams-Bashforth with fixed coefficients, with the auxiliary variables integrated out (collapsed.c).
 *
 * In y = x_0 + sigma n the flow is dy/dsigma = d, d = (y - X) / sigma, and a step is
 *     y <- y + (sigma' - sigma) (c_0 d_0 + c_1 d_1 + ...),
 * with the coefficients for equal steps, newest slope first, whatever the steps are. Evaluations that are much less certain
 * than their neighbours are left out, as in multistep.h. In the frame S of collapsed_frame.h,
 * z = S (y / sigma, xi), so y / sigma is the first row of S^-1 times z, and
 *     z' = S' [diag(sigma / sigma', 1, ...) S^-1 z + (1 - sigma / sigma') (sum c_j d_j) e_1]. */
#include <string.h>

#include "base/threads.h"
#include "sample/samplers/multistep.h"

enum { IPNDM_ORDER = 4 };

static const double coefficients[IPNDM_ORDER][IPNDM_ORDER] = {
    {1}, {3.0 / 2, -1.0 / 2}, {23.0 / 12, -16.0 / 12, 5.0 / 12}, {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}};

typedef struct ipndm_table {
    double t;
    int index, order;
    psld_denoiser denoiser;
    double certainty[IPNDM_ORDER]; /* of this evaluation and those before it, newest first */
    double scaled[PSLD_MAX_K];     /* y / sigma = scaled . z */
    double sigma;
    psld_affine map;         /* what becomes of z without the slopes */
    double gain[PSLD_MAX_K]; /* and what the sum of the slopes adds */
} ipndm_table;

static psld_status ipndm_plan_step(const psld_discretisation *grid, int i, ipndm_table *table)
{
    psld_collapsed_frame from, to;
    double back[PSLD_MATRIX_SIZE];
    int k = grid->recipe->spec.k;
    memset(table, 0, sizeof *table);
    table->t = grid->times[i];
    table->index = i;
    table->order = grid->options->order;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, table->t, &table->denoiser));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, grid->times[i], &from));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, grid->times[i + 1], &to));
    table->sigma = from.sigma;
    memcpy(back, from.inverse, sizeof back);
    for (int a = 0; a < k; a++) {
        table->scaled[a] = from.inverse[a];
        table->gain[a] = to.frame[a * k] * (1 - from.sigma / to.sigma);
        back[a] *= from.sigma / to.sigma;
    }
    psld_matrix_multiply(k, to.frame, back, table->map.state);
    return PSLD_OK;
}

static psld_status ipndm_plan(const psld_discretisation *grid, void *tables)
{
    ipndm_table *table = tables;
    for (int i = 0; i < grid->steps; i++) {
        PSLD_TRY(ipndm_plan_step(grid, i, &table[i]));
        for (int j = 0; j < IPNDM_ORDER && j <= i; j++) table[i].certainty[j] = table[i - j].denoiser.certainty;
    }
    return PSLD_OK;
}

typedef struct slope_job {
    const psld_reverse *reverse;
    const ipndm_table *step;
    const double *clean;
    const double *slopes[IPNDM_ORDER]; /* those that are used, newest first */
    int order;
    double *newest, *added;
} slope_job;

static void slope_range(void *context, size_t begin, size_t end)
{
    const slope_job *job = context;
    size_t k = job->reverse->k, dim = job->reverse->dim;
    for (size_t i = begin; i < end; i++)
        for (size_t d = 0; d < dim; d++) {
            double slope = -job->clean[i * dim + d] / job->step->sigma, sum = 0;
            for (size_t a = 0; a < k; a++) slope += job->step->scaled[a] * job->reverse->z[(i * k + a) * dim + d];
            job->newest[i * dim + d] = slope;
            for (int j = 0; j < job->order; j++) sum += coefficients[job->order - 1][j] * job->slopes[j][i * dim + d];
            for (size_t a = 0; a < k; a++) job->added[(i * k + a) * dim + d] = job->step->gain[a] * sum;
        }
}

/* Chooses the slopes of the step: of the last evaluations, as many as its order, those that are certain enough. */
static void choose_slopes(const psld_reverse *reverse, const ipndm_table *step, slope_job *job)
{
    int order = reverse->consecutive < step->order ? reverse->consecutive : step->order;
    for (int j = 0; j < order; j++)
        if (psld_multistep_uses(step->certainty, order, j))
            job->slopes[job->order++] =
                reverse->work + (size_t)((step->index - j) % IPNDM_ORDER) * reverse->count * reverse->dim;
}

/* Memory: a ring of slopes, the clean data, and what the slopes add. */
static psld_status ipndm_step(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const ipndm_table *step = table;
    size_t numbers = reverse->count * reverse->dim;
    double *clean = reverse->work + IPNDM_ORDER * numbers, *added = clean + numbers;
    reverse->consecutive = step->index == reverse->last_step + 1 ? reverse->consecutive + 1 : 1;
    reverse->last_step = step->index;
    slope_job job = {.reverse = reverse, .step = step, .clean = clean, .added = added};
    choose_slopes(reverse, step, &job);
    job.newest = reverse->work + (size_t)(step->index % IPNDM_ORDER) * numbers;
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    psld_denoiser_apply(&step->denoiser, reverse->count, reverse->dim, reverse->z, reverse->eps, clean);
    psld_parallel(reverse->count, 4096 / (reverse->k * reverse->dim) + 1, slope_range, &job);
    psld_affine_apply(reverse, &step->map, PSLD_FOR_STEP, visit, added, reverse->z, reverse->z);
    return PSLD_OK;
}

const psld_sampler psld_sampler_ipndm = {
    .info = {.name = "ipndm",
             .summary = "auxiliary variables integrated out, multistep of slopes, order 1 to 4: for very few steps",
             .grid = "log",
             .nfe = 10,
             .evaluations = 1,
             .order = IPNDM_ORDER,
             .max_order = IPNDM_ORDER,
             .end_sigma = 0.01,
             .deterministic = 1,
             .predicts_data = 1},
    .work_states = IPNDM_ORDER + 2,
    .table_size = sizeof(ipndm_table),
    .plan_steps = ipndm_plan,
    .step = ipndm_step,
};
