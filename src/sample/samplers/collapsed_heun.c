/* Heun's method with the auxiliary variables integrated out (see collapsed.c): dy/dsigma = (y - X) / sigma as in EDM.
 * From sigma = s to r, its Euler step is the multistep of order 1, y_1 = (r / s) y + (1 - r / s) X; the mean of both
 * slopes differs from it by
 *     (r - s) / 2 [(y_1 - X_1) / r - (y - X) / s] = (r - s) / (2 r) (X - X_1),
 * since (y_1 - X) / r = (y - X) / s. A truncated last step is the Euler step. */
#include <string.h>

#include "sample/samplers/collapsed.h"

typedef struct heun_table {
    psld_multistep ahead;
    int truncated;
    psld_multistep settle; /* z + weight_0 X_1 + weight_1 X */
} heun_table;

static psld_status plan_heun_step(const psld_discretisation *grid, int i, heun_table *table)
{
    psld_collapsed_frame from, to;
    psld_multistep_window window = {.t = grid->times[i], .u = grid->times[i + 1], .order = 1};
    int k = grid->recipe->spec.k;
    memset(table, 0, sizeof *table);
    table->truncated = grid->truncated && i + 1 == grid->steps;
    table->ahead.t = window.t;
    table->ahead.index = 2 * i;
    table->ahead.order = 1;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, window.t, &table->ahead.denoiser));
    PSLD_TRY(psld_collapsed_plan(grid, &window, &table->ahead));
    if (table->truncated) return PSLD_OK;
    table->settle.t = window.u;
    table->settle.index = 2 * i + 1;
    table->settle.order = 2;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, window.u, &table->settle.denoiser));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window.t, &from));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window.u, &to));
    psld_affine_identity(grid->recipe, &table->settle.move);
    window.certainty[0] = table->settle.denoiser.certainty;
    window.certainty[1] = table->ahead.denoiser.certainty;
    if (!psld_multistep_uses(&window, 2, 0)) return PSLD_OK; /* what is seen there is no correction */
    for (int a = 0; a < k; a++) {
        double mu = to.frame[a * k] / to.sigma, half = (to.sigma - from.sigma) / (2 * to.sigma);
        table->settle.weight[1][0][a] = -mu * half;
        table->settle.weight[1][1][a] = mu * half;
    }
    return PSLD_OK;
}

static psld_status plan_collapsed_heun(const psld_discretisation *grid, void *tables)
{
    heun_table *table = tables;
    for (int i = 0; i < grid->steps; i++) PSLD_TRY(plan_heun_step(grid, i, &table[i]));
    return PSLD_OK;
}

static psld_status step_collapsed_heun(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const heun_table *step = table;
    PSLD_TRY(psld_multistep_step(reverse, visit, &step->ahead));
    return step->truncated ? PSLD_OK : psld_multistep_step(reverse, visit, &step->settle);
}

const psld_sampler psld_sampler_collapsed_heun = {
    .info = {.name = "collapsed-heun",
             .summary = "auxiliary variables integrated out, Heun's method (two evaluations per step)",
             .grid = "rho",
             .nfe = 50,
             .evaluations = 2,
             .deterministic = 1,
             .reversible = 1,
             .predicts_data = 1},
    .work_states = PSLD_MULTISTEP_ROOM,
    .table_size = sizeof(heun_table),
    .plan_steps = plan_collapsed_heun,
    .step = step_collapsed_heun,
};
