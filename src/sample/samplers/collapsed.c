/* Sampling with the auxiliary variables integrated out.
 *
 * All that z tells of the data is y = x_0 + sigma n (psld_collapsed_frame), and X depends on (y, sigma) alone. So y may be taken
 * along the flow of the process with k = 1 and sigma for its noise,
 *     d(y / sigma) = X d(1 / sigma),
 * and the source be shown z = S (y / sigma, xi) with the xi that the walk began with: z then has the right law at each
 * t. It is not the probability flow of the recipe, but it begins and ends with the same laws, and it is as easy as that
 * of the best process of first order. In the frame S this is the multistep of all recipes, along a straight line. */
#include "sample/samplers/collapsed.h"

#include <math.h>
#include <string.h>

#include "sample/samplers/quadrature.h"

/* The integral of Lagrange polynomial j of that order times d(1 / sigma) from lambda = a to b. */
static double integrate_weight(const psld_multistep_window *window, int order, int j, double a, double b)
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
    memset(&table->move, 0, sizeof table->move);
    psld_matrix_multiply(k, to.frame, from.inverse, table->move.state);
    for (int q = 1; q <= window->order; q++)
        for (int j = 0; j < q; j++) {
            double pull = integrate_weight(window, q, j, -log(from.sigma), -log(to.sigma));
            for (int a = 0; a < k; a++) table->weight[q - 1][j][a] = to.frame[a * k] * pull;
        }
    return PSLD_OK;
}

static psld_status plan_collapsed(const psld_discretisation *grid, void *tables)
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
    .plan_steps = plan_collapsed,
};
