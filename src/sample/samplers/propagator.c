/* Exact reverse steps between the probability flow and the reverse SDE, given the clean data.
 *
 * A family of processes. For every eta, the process with drift beta [A z - (1 + eta^2) D s] in dt and noise
 * eta sqrt(2 beta D), run backwards in time, has the marginals p_t of the recipe. Insert s = Sigma^-1 (mu X - z), where
 * X = E[x_0 | z_t] is the denoiser. What remains is linear in z. Its propagator G(u, tau), from time tau to u, obeys
 *     dG/dtau = -beta G (A + (1 + eta^2) D Sigma^-1),    G(u, u) = I.
 * Since dmu/dtau = beta A mu, the clean data enter as
 *     z(u) = G(u, t) z(t) + int_t^u X(tau) d[G(u, tau) mu(tau)] + noise,
 *     d/dtau [G mu] = -(1 + eta^2) beta G D Sigma^-1 mu,
 *     noise covariance = Sigma(u) - G Sigma(t) G'.
 * eta = 1: G = Sigma(u) Phi' Sigma(t)^-1, the regression of z_u on z_t given x_0 (ancestral sampling).
 * eta = 0: G = R(u) R(t)^-1 with dR/dt = beta (A R + D R^-T). In the frame R the flow is dw = X d(R^-1 mu).
 *
 * What is computed. W = L(u)^-1 G(u, tau) L(tau), with L the lower factor of Sigma. Its entries stay within [-1, 1] for all
 * times and all masses. L^-1 dL/dtau is the lower triangle, with its diagonal halved, of beta (a + a' + 2 d), where
 * a = L^-1 A L and d = L^-1 D L^-T. So
 *     dW/dtau = -beta W [a + (1 + eta^2) d - half_lower(a + a' + 2 d)],
 * which for eta = 0 is a rotation. Near 0 the rates grow as 1/tau, so the integration variable is theta = log tau. It is
 * divided into panels on which the rate is at most about 1. A panel is solved by Gauss collocation of order 12, together
 * with the integrals.
 *
 * Errors of a network. An error of eps enters z(u) directly by int beta (1 + eta^2) |d|, in units of L(u), whatever the
 * step. Through the extrapolated clean data it is magnified by the weights. Orders that magnify it too much are not
 * used. */
#include <math.h>
#include <string.h>

#include "sample/samplers/multistep.h"
#include "sample/samplers/quadrature.h"

#define MAX_MAGNIFICATION 10 /* of errors of eps (docs/explanation/samplers.md) */

typedef struct propagator {
    const psld_recipe *recipe;
    const psld_multistep_window *window;
    double eta2;                                                 /* eta squared */
    double drift[PSLD_MATRIX_SIZE];                              /* A */
    double w[PSLD_MATRIX_SIZE];                                  /* W(tau) at the end of the panels so far */
    double integral[PSLD_MAX_ORDER][PSLD_MAX_ORDER][PSLD_MAX_K]; /* of X_j up to there, in units of L(u) */
    double direct_error; /* effect of an error of eps = 1 without extrapolation, in the same units */
} propagator;

/* The coefficients of the equations at one node, times dtau/dtheta. */
typedef struct rates {
    double omega[PSLD_MATRIX_SIZE];
    double source[PSLD_MAX_K];
    double direct_error, clock;
} rates;

static double euclidean_norm(int count, const double *numbers)
{
    double square = 0;
    for (int i = 0; i < count; i++) square += numbers[i] * numbers[i];
    return sqrt(square);
}

static void propagator_rates(const propagator *p, double tau, rates *out)
{
    psld_gaussian kernel;
    double inverse[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE], a[PSLD_MATRIX_SIZE], d[PSLD_MATRIX_SIZE];
    double mu[PSLD_MAX_K] = {0}, square = 0, speed = tau * psld_beta(p->recipe, tau);
    int k = p->recipe->spec.k;
    psld_kernel(p->recipe, tau, PSLD_HSM, 0, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    psld_matrix_multiply(k, inverse, p->drift, product);
    psld_matrix_multiply(k, product, kernel.factor, a);
    psld_matrix_multiply(k, inverse, p->recipe->spec.D, product);
    psld_matrix_multiply_t(k, product, inverse, d);
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) mu[i] += inverse[i * k + j] * kernel.mean[j * k];
        square += mu[i] * mu[i];
    }
    out->clock = psld_multistep_clock(p->window->detail, log(square) / 2);
    out->direct_error = speed * (1 + p->eta2) * euclidean_norm(k * k, d);
    for (int i = 0; i < k; i++) {
        out->source[i] = 0;
        for (int j = 0; j < k; j++) {
            double symmetric = a[i * k + j] + a[j * k + i] + 2 * d[i * k + j];
            double lower = i > j ? symmetric : i == j ? symmetric / 2 : 0;
            out->omega[i * k + j] = speed * (a[i * k + j] + (1 + p->eta2) * d[i * k + j] - lower);
            out->source[i] += speed * (1 + p->eta2) * d[i * k + j] * mu[j];
        }
    }
}

/* W at the nodes of a panel of width h: W_i = W - h sum_j partial_ij W_j omega_j, by iteration. */
static void solve_collocation(const propagator *p, const psld_quadrature *rule, double h, const rates *at,
                              double slope[][PSLD_MATRIX_SIZE], double w[][PSLD_MATRIX_SIZE])
{
    enum { MAX_ROUNDS = 60 };
    int k = p->recipe->spec.k;
    for (int i = 0; i < PSLD_NODES; i++) psld_matrix_copy(k, p->w, w[i]);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double change = 0;
        for (int i = 0; i < PSLD_NODES; i++) psld_matrix_multiply(k, w[i], at[i].omega, slope[i]);
        for (int i = 0; i < PSLD_NODES; i++)
            for (int e = 0; e < k * k; e++) {
                double sum = 0;
                for (int j = 0; j < PSLD_NODES; j++) sum += rule->partial[i][j] * slope[j][e];
                double next = p->w[e] - h * sum;
                change = fmax(change, fabs(next - w[i][e]));
                w[i][e] = next;
            }
        if (change < 1e-16) break;
    }
}

static void integrate_panel(propagator *p, const psld_quadrature *rule, double h, const rates *at)
{
    double w[PSLD_NODES][PSLD_MATRIX_SIZE], slope[PSLD_NODES][PSLD_MATRIX_SIZE];
    int k = p->recipe->spec.k;
    solve_collocation(p, rule, h, at, slope, w);
    for (int n = 0; n < PSLD_NODES; n++) {
        psld_matrix_add(k, -h * rule->weight[n], slope[n], p->w);
        double term[PSLD_MAX_K] = {0};
        p->direct_error += fabs(h) * rule->weight[n] * at[n].direct_error;
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) term[i] += h * rule->weight[n] * w[n][i * k + j] * at[n].source[j];
        for (int q = 1; q <= p->window->order; q++)
            for (int j = 0; j < q; j++) {
                double share = psld_multistep_weight(p->window, q, j, at[n].clock);
                for (int i = 0; i < k; i++) p->integral[q - 1][j][i] += term[i] * share;
            }
    }
}

/* The rates at the nodes of a panel. Returns 0 as soon as one is too large for its width, unless `accept`. Rates mostly
 * grow with tau, so the last node is looked at first. */
static int panel_rates(const propagator *p, const psld_quadrature *rule, double from, double h, int accept, rates *at)
{
    double width = accept ? 0 : fabs(h);
    for (int n = PSLD_NODES - 1; n >= 0 && width <= 1; n--) {
        propagator_rates(p, exp(from + h * rule->node[n]), &at[n]);
        if (width * psld_matrix_largest(p->recipe->spec.k, at[n].omega) > 1) return 0;
    }
    return width <= 1;
}

/* Integrates from theta = `from` to `to`. Intervals are halved where rates are large. */
static void integrate_interval(propagator *p, double from, double to, int depth)
{
    enum { MAX_DEPTH = 20 };
    const psld_quadrature *rule = psld_quadrature_get();
    double h = to - from;
    rates at[PSLD_NODES];
    if (panel_rates(p, rule, from, h, depth == MAX_DEPTH, at)) {
        integrate_panel(p, rule, h, at);
    } else {
        integrate_interval(p, from, from + h / 2, depth + 1);
        integrate_interval(p, from + h / 2, to, depth + 1);
    }
}

/* N with N N' = L (I - W W') L'. */
static void propagator_noise(int k, const double *factor, const double *w, double *noise)
{
    double rest[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE], root[PSLD_MATRIX_SIZE];
    psld_matrix_identity(k, rest);
    psld_matrix_multiply_t(k, w, w, product);
    psld_matrix_add(k, -1, product, rest);
    psld_matrix_cholesky(k, rest, root);
    psld_matrix_multiply(k, factor, root, noise);
}

/* How much a step of that order magnifies errors of eps, relative to their direct effect. */
static double magnification(const propagator *p, int order)
{
    double square = 0;
    for (int j = 0; j < order; j++) {
        double error = euclidean_norm(p->recipe->spec.k, p->integral[order - 1][j]) * p->window->sigma[j] /
                       p->window->certainty[j];
        square += error * error;
    }
    return sqrt(square) / p->direct_error;
}

/* The highest order up to `most` that magnifies errors little, or at most twice as much as the best order. */
static int choose_order(const propagator *p, int most)
{
    double least = INFINITY;
    for (int order = 1; order <= most; order++) least = fmin(least, magnification(p, order));
    while (most > 1 && magnification(p, most) > fmax(MAX_MAGNIFICATION, 2 * least)) most--;
    return most;
}

/* The weights must sum to mu(u) - G mu(t): then constant clean data are exact, since z - mu X is propagated by G alone.
 * The integrals satisfy this up to rounding, which 1 / sigma may magnify. So the newest weight is computed as the
 * difference. */
static int propagator_weights(const propagator *p, const psld_gaussian *from, const psld_gaussian *to, int order,
                              const double *state, double weight[][PSLD_MAX_K])
{
    int k = p->recipe->spec.k, newest = 0, finite = 1;
    while (!psld_multistep_uses(p->window->certainty, order, newest)) newest++;
    for (int a = 0; a < k; a++) {
        double rest = to->mean[a * k];
        for (int b = 0; b < k; b++) rest -= state[a * k + b] * from->mean[b * k];
        for (int j = order - 1; j > newest; j--) {
            weight[j][a] = 0;
            for (int b = 0; b <= a; b++) weight[j][a] += to->factor[a * k + b] * p->integral[order - 1][j][b];
            rest -= weight[j][a];
        }
        weight[newest][a] = rest;
        finite &= isfinite(rest) != 0;
    }
    return finite;
}

psld_status psld_propagator_plan(const psld_recipe *recipe, double eta, const psld_multistep_window *window,
                                 psld_multistep *table)
{
    propagator p = {.recipe = recipe, .window = window, .eta2 = eta * eta};
    psld_gaussian from, to;
    double inverse[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, finite = 1;
    psld_recipe_reverse_drift(recipe, p.drift);
    for (int i = 0; i < k * k; i++) p.drift[i] = -p.drift[i];
    psld_matrix_identity(k, p.w);
    integrate_interval(&p, log(window->u), log(window->t), 0);
    psld_kernel(recipe, window->t, PSLD_HSM, 0, &from);
    psld_kernel(recipe, window->u, PSLD_HSM, 0, &to);
    psld_matrix_invert_lower(k, from.factor, inverse);
    psld_matrix_multiply(k, p.w, inverse, product);
    memset(&table->map, 0, sizeof table->map);
    psld_matrix_multiply(k, to.factor, product, table->map.state);
    if (eta > 0) propagator_noise(k, to.factor, p.w, table->map.noise);
    memset(table->weight, 0, sizeof table->weight);
    for (int q = 1; q <= window->order; q++)
        finite &= propagator_weights(&p, &from, &to, choose_order(&p, q), table->map.state, table->weight[q - 1]);
    if (!finite)
        return psld_fail(PSLD_NOT_FINITE, "recipe %s: the step from t = %g to %g is not finite: use more steps",
                         recipe->spec.name, window->t, window->u);
    return PSLD_OK;
}
