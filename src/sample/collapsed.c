/* Sampling with the auxiliary variables integrated out.
 *
 * All that z tells of the data is y = x_0 + sigma n (psld_split), and X depends on (y, sigma) alone. So y may be taken
 * along the flow of the process with k = 1 and sigma for its noise,
 *     d(y / sigma) = X d(1 / sigma),
 * and the source be shown z = S (y / sigma, xi) with the xi that the walk began with: z then has the right law at each
 * t. It is not the probability flow of the recipe, but it begins and ends with the same laws, and it is as easy as that
 * of the best process of first order. In the frame S this is the multistep of all recipes, along a straight line. */
#include "sample/collapsed.h"

#include <math.h>
#include <string.h>

#include "sample/quadrature.h"

/* The integral of Lagrange polynomial j of that order times d(1 / sigma) from lambda = a to b. */
static double integrate(const psld_stretch *stretch, int order, int j, double a, double b)
{
    const psld_quadrature *rule = psld_quadrature_get();
    int panels = (int)ceil(fabs(b - a)) + 1;
    double h = (b - a) / panels, sum = 0;
    for (int i = 0; i < panels; i++)
        for (int n = 0; n < PSLD_NODES; n++) {
            double lambda = a + h * (i + rule->node[n]), clock = psld_multistep_clock(stretch->detail, lambda);
            sum += h * rule->weight[n] * exp(lambda) * psld_multistep_share(stretch, order, j, clock);
        }
    return sum;
}

psld_status psld_collapsed_plan(const psld_path *path, const psld_stretch *stretch, psld_multistep *table)
{
    psld_split from, to;
    int k = path->recipe->spec.k;
    PSLD_TRY(psld_split_plan(path->recipe, path->exact, stretch->t, &from));
    PSLD_TRY(psld_split_plan(path->recipe, path->exact, stretch->u, &to));
    memset(&table->move, 0, sizeof table->move);
    psld_matrix_multiply(k, to.frame, from.inverse, table->move.state);
    for (int q = 1; q <= stretch->order; q++)
        for (int j = 0; j < q; j++) {
            double pull = integrate(stretch, q, j, -log(from.sigma), -log(to.sigma));
            for (int a = 0; a < k; a++) table->weight[q - 1][j][a] = to.frame[a * k] * pull;
        }
    return PSLD_OK;
}

static psld_status prepare(const psld_path *path, void *tables)
{
    return psld_multistep_prepare(path, path->exact, psld_collapsed_plan, tables);
}

const psld_sampler psld_sampler_collapsed = {
    .name = "collapsed",
    .summary = "auxiliary variables integrated out, multistep of order 1 to 3",
    .prepare = prepare,
    PSLD_MULTISTEP_FLOW_ROW,
    .grid = "log",
};
