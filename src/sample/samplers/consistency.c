/* Sampling by a consistency function: one evaluation can give a whole sample.
 *
 * A model that is tuned for it (psld tune) predicts at every noise sigma the end of the probability flow of y = x_0 +
 * sigma n (collapsed_frame.h), and not the mean of the clean data. So the last evaluation, the denoising step, is the
 * sample, and at t = 1 it may be the only one. An evaluation before it is a step: its clean data X get fresh noise of
 * the end of the step,
 *     z(u) = mu(u) X + L(u) n,     L L' = Sigma,
 * from which the next evaluation predicts better clean data. */
#include <string.h>

#include "sample/samplers/multistep.h"

static psld_status consistency_plan_step(const psld_discretisation *grid, int i, psld_multistep *table)
{
    psld_gaussian kernel;
    int k = grid->recipe->spec.k;
    memset(table, 0, sizeof *table);
    table->t = grid->times[i];
    table->index = i;
    table->order = 1;
    PSLD_TRY(psld_denoiser_plan(grid->recipe, grid->exact, table->t, &table->denoiser));
    psld_source_kernel(grid->recipe, grid->exact, grid->times[i + 1], &kernel);
    psld_matrix_copy(k, kernel.factor, table->map.noise);
    for (int a = 0; a < k; a++) table->weight[0][0][a] = kernel.mean[a * k];
    return PSLD_OK;
}

static psld_status consistency_plan(const psld_discretisation *grid, void *tables)
{
    psld_multistep *table = tables;
    for (int i = 0; i < grid->steps; i++) PSLD_TRY(consistency_plan_step(grid, i, &table[i]));
    return PSLD_OK;
}

const psld_sampler psld_sampler_consistency = {
    .info = {.name = "consistency",
             .summary = "one to four evaluations, by models tuned for it (psld tune)",
             .grid = "inverse",
             .nfe = 2,
             .evaluations = 1,
             .end_sigma = 0.8,
             .predicts_data = 1,
             .consistency = 1},
    PSLD_MULTISTEP_ROW,
    .plan_steps = consistency_plan,
};
