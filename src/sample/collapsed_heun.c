/* Heun's method with the auxiliary variables integrated out (see collapsed.c): dy/dsigma = (y - X) / sigma as in EDM.
 * From sigma = s to r, its Euler step is the multistep of order 1, y_1 = (r / s) y + (1 - r / s) X; the mean of both
 * slopes differs from it by
 *     (r - s) / 2 [(y_1 - X_1) / r - (y - X) / s] = (r - s) / (2 r) (X - X_1),
 * since (y_1 - X) / r = (y - X) / s. A truncated last step is the Euler step. */
#include <string.h>

#include "sample/collapsed.h"

typedef struct heun_table {
    psld_multistep ahead;
    int truncated;
    psld_multistep settle; /* z + weight_0 X_1 + weight_1 X */
} heun_table;

static psld_status plan_step(const psld_path *path, int i, heun_table *table)
{
    psld_split from, to;
    psld_stretch stretch = {.t = path->times[i], .u = path->times[i + 1], .order = 1};
    int k = path->recipe->spec.k;
    memset(table, 0, sizeof *table);
    table->truncated = path->truncated && i + 1 == path->steps;
    table->ahead.t = stretch.t;
    table->ahead.index = 2 * i;
    table->ahead.order = 1;
    PSLD_TRY(psld_denoiser_plan(path->recipe, path->exact, stretch.t, &table->ahead.denoiser));
    PSLD_TRY(psld_collapsed_plan(path, &stretch, &table->ahead));
    if (table->truncated) return PSLD_OK;
    table->settle.t = stretch.u;
    table->settle.index = 2 * i + 1;
    table->settle.order = 2;
    PSLD_TRY(psld_denoiser_plan(path->recipe, path->exact, stretch.u, &table->settle.denoiser));
    PSLD_TRY(psld_split_plan(path->recipe, path->exact, stretch.t, &from));
    PSLD_TRY(psld_split_plan(path->recipe, path->exact, stretch.u, &to));
    psld_affine_identity(path->recipe, &table->settle.move);
    stretch.certainty[0] = table->settle.denoiser.certainty;
    stretch.certainty[1] = table->ahead.denoiser.certainty;
    if (!psld_multistep_uses(&stretch, 2, 0)) return PSLD_OK; /* what is seen there is no correction */
    for (int a = 0; a < k; a++) {
        double mu = to.frame[a * k] / to.sigma, half = (to.sigma - from.sigma) / (2 * to.sigma);
        table->settle.weight[1][0][a] = -mu * half;
        table->settle.weight[1][1][a] = mu * half;
    }
    return PSLD_OK;
}

static psld_status prepare(const psld_path *path, void *tables)
{
    heun_table *table = tables;
    for (int i = 0; i < path->steps; i++) PSLD_TRY(plan_step(path, i, &table[i]));
    return PSLD_OK;
}

static psld_status take(psld_walk *walk, uint64_t visit, const void *table)
{
    const heun_table *step = table;
    PSLD_TRY(psld_multistep_take(walk, visit, &step->ahead));
    return step->truncated ? PSLD_OK : psld_multistep_take(walk, visit, &step->settle);
}

const psld_sampler psld_sampler_collapsed_heun = {
    .name = "collapsed-heun",
    .summary = "auxiliary variables integrated out, Heun's method (two evaluations a step)",
    .grid = "rho",
    .nfe = 50,
    .evaluations = 2,
    .work_states = PSLD_MULTISTEP_ROOM,
    .deterministic = 1,
    .predicts_data = 1,
    .reversible = 1,
    .table_size = sizeof(heun_table),
    .prepare = prepare,
    .step = take};
