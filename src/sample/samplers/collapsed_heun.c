/* Heun's method with the auxiliary variables integrated out (collapsed.c): dy/dsigma = (y - X) / sigma, as in EDM.
 * From sigma = s to r its Euler step is the multistep step of order 1, y_1 = (r / s) y + (1 - r / s) X. The step with the
 * mean of both slopes differs from it by
 *     (r - s) / 2 [(y_1 - X_1) / r - (y - X) / s] = (r - s) / (2 r) (X - X_1),
 * since (y_1 - X) / r = (y - X) / s. A truncated last step is the Euler step alone. */
#include <string.h>

#include "sample/samplers/collapsed.h"

typedef struct collapsed_heun_table {
    psld_multistep predictor;
    int truncated;
    psld_multistep corrector; /* z + weight_0 X_1 + weight_1 X */
} collapsed_heun_table;

static psld_status collapsed_heun_plan_step(const psld_discretisation *grid, int i, collapsed_heun_table *table)
{
    psld_collapsed_frame from, to;
    psld_multistep_window window = {.t = grid->times[i], .u = grid->times[i + 1], .order = 1};
    int k = grid->recipe->spec.k;
    memset(table, 0, sizeof *table);
    table->truncated = grid->truncated && i + 1 == grid->steps;
    table->predictor.t = window.t;
    table->predictor.index = 2 * i;
    table->predictor.order = 1;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, window.t, &table->predictor.denoiser));
    PSLD_TRY(psld_collapsed_plan(grid, &window, &table->predictor));
    if (table->truncated) return PSLD_OK;
    table->corrector.t = window.u;
    table->corrector.index = 2 * i + 1;
    table->corrector.order = 2;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, window.u, &table->corrector.denoiser));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window.t, &from));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window.u, &to));
    psld_affine_identity(grid->recipe, &table->corrector.map);
    window.certainty[0] = table->corrector.denoiser.certainty;
    window.certainty[1] = table->predictor.denoiser.certainty;
    if (!psld_multistep_uses(window.certainty, 2, 0)) return PSLD_OK; /* too uncertain to correct with */
    for (int a = 0; a < k; a++) {
        double mu = to.frame[a * k] / to.sigma, half = (to.sigma - from.sigma) / (2 * to.sigma);
        table->corrector.weight[1][0][a] = -mu * half;
        table->corrector.weight[1][1][a] = mu * half;
    }
    return PSLD_OK;
}

static psld_status collapsed_heun_plan(const psld_discretisation *grid, void *tables)
{
    collapsed_heun_table *table = tables;
    for (int i = 0; i < grid->steps; i++) PSLD_TRY(collapsed_heun_plan_step(grid, i, &table[i]));
    return PSLD_OK;
}

static psld_status collapsed_heun_step(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const collapsed_heun_table *step = table;
    PSLD_TRY(psld_multistep_step(reverse, visit, &step->predictor));
    return step->truncated ? PSLD_OK : psld_multistep_step(reverse, visit, &step->corrector);
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
    .work_states = PSLD_MULTISTEP_STATES,
    .table_size = sizeof(collapsed_heun_table),
    .plan_steps = collapsed_heun_plan,
    .step = collapsed_heun_step,
};
