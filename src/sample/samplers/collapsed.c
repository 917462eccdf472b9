/* Sampling with the auxiliary variables integrated out.
 *
 * The sufficient statistic of z for the data is y = x_0 + sigma n (collapsed_frame.h), and the denoiser X depends on
 * (y, sigma) alone. So y can follow the probability flow of a process with k = 1 and noise sigma,
 *     d(y / sigma) = X d(1 / sigma),
 * while the score source is evaluated at z = S (y / sigma, xi). xi is drawn once per sample, with the initial state, and
 * kept. Then z has the right distribution at every t. The result is not the probability flow of the recipe, but it has
 * the same marginals at both ends, and it is as easy to integrate as the best first-order process. In the frame S it is
 * the multistep step of the other samplers, along a straight line. */
#include "sample/samplers/collapsed.h"

#include <math.h>
#include <string.h>

#include "sample/samplers/quadrature.h"

/* The integral of the j-th Lagrange polynomial of that order times d(1 / sigma), from lambda = a to b. */
static double collapsed_integral(const psld_multistep_window *window, int order, int j, double a, double b)
{
    const psld_quadrature *rule = psld_quadrature_get();
    int panels = (int)ceil(fabs(b - a)) + 1;
    double h = (b - a) / panels, sum = 0;
    for (int i = 0; i < panels; i++)
        for (int n = 0; n < PSLD_NODES; n++) {
            double lambda = a + h * (i + rule->node[n]), clock = psld_multistep_clock(window->detail, lambda);
            sum += h * rule->weight[n] * exp(lambda) * psld_multistep_weight(window, order, j, clock);
        }
    return sum;
}

psld_status psld_collapsed_plan(const psld_discretisation *grid, const psld_multistep_window *window,
                                psld_multistep *table)
{
    psld_collapsed_frame from, to;
    int k = grid->recipe->spec.k;
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window->t, &from));
    PSLD_TRY(psld_collapsed_frame_plan(grid->recipe, grid->exact, window->u, &to));
    memset(&table->map, 0, sizeof table->map);
    psld_matrix_multiply(k, to.frame, from.inverse, table->map.state);
    for (int q = 1; q <= window->order; q++)
        for (int j = 0; j < q; j++) {
            double weight = collapsed_integral(window, q, j, -log(from.sigma), -log(to.sigma));
            for (int a = 0; a < k; a++) table->weight[q - 1][j][a] = to.frame[a * k] * weight;
        }
    return PSLD_OK;
}

static psld_status collapsed_plan_steps(const psld_discretisation *grid, void *tables)
{
    return psld_multistep_plan(grid, grid->exact, psld_collapsed_plan, tables);
}

const psld_sampler psld_sampler_collapsed = {
    .info = {.name = "collapsed",
             .summary = "auxiliary variables integrated out, multistep of order 1 to 3",
             .grid = "log",
             .nfe = 50,
             .evaluations = 1,
             .order = 3,
             .max_order = PSLD_MAX_ORDER,
             .deterministic = 1,
             .reversible = 1,
             .predicts_data = 1,
             .uses_detail = 1},
    PSLD_MULTISTEP_ROW,
    .plan_steps = collapsed_plan_steps,
};
