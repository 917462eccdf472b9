/* Samplers whose steps are made of clean data: what they have in common.
 *
 * With the score written as s = Sigma^-1 (mu X - z), X = E[x_0 | z_t], every process that has the marginals of the
 * recipe, stochastic or not, is linear but for X. So a step is exact in all but how X changes over it, and X is
 * extrapolated by a polynomial through the last evaluations:
 *     z(u) = state z(t) + sum_j weight_j X_j + noise n,
 * weight_j [k] being integrals over the step. Samplers differ in these constants alone.
 *
 * The polynomial is one in the clock -log sqrt(sigma^2 + detail^2). On the flow of data with mean m and deviation s, y - m
 * goes as sqrt(s^2 + sigma^2), so X - m = s^2 (y - m) / (s^2 + sigma^2) goes as the exponential of that clock for detail
 * = s. For detail = 0 it is lambda = -log sigma, which goes on for ever where X has long stopped to change: a last step
 * that is long in lambda then throws polynomials of order 3 far off. */
#ifndef PSLD_SAMPLE_MULTISTEP_H
#define PSLD_SAMPLE_MULTISTEP_H

#include "sample/collapsed_frame.h"
#include "sample/samplers/sampler.h"
#include "sample/sources/denoiser.h"

enum { PSLD_MAX_ORDER = 3 };

typedef struct psld_multistep {
    double t;
    int index;              /* of the step in its grid */
    psld_denoiser denoiser; /* at t */
    int order;              /* evaluations that this step may look at, its own and those before */
    /* For each order up to that one, newest first: after a jump of inpainting there is no history. */
    double weight[PSLD_MAX_ORDER][PSLD_MAX_ORDER][PSLD_MAX_K];
    psld_affine move; /* state and noise */
} psld_multistep;

/* A step and the evaluations it looks at. */
typedef struct psld_multistep_window {
    double t, u;
    int order;
    double detail;
    /* Of the evaluations, newest first; for certainty see psld_denoiser. */
    double sigma[PSLD_MAX_ORDER], clock[PSLD_MAX_ORDER], certainty[PSLD_MAX_ORDER];
} psld_multistep_window;

/* Whether evaluation j is used among the newest `order`. Where an underdamped process turns, its predicted variables say
 * little of x_0 and sigma hardly changes: what is evaluated there is much less certain than what is next to it, and a
 * polynomial through points so close would carry its error far. */
int psld_multistep_uses(const psld_multistep_window *window, int order, int j);
/* What evaluation j counts at a clock: the Lagrange polynomial among those that are used. */
double psld_multistep_weight(const psld_multistep_window *window, int order, int j, double clock);

/* The clock where -log sigma is lambda, but for a constant. */
double psld_multistep_clock(double detail, double lambda);

/* Fills the constants of step `index`: weight and move, all else being there already. */
typedef psld_status (*psld_multistep_fn)(const psld_discretisation *grid, const psld_multistep_window *window,
                                         psld_multistep *table);

/* Fills all tables of a path with `plan`, in parallel; orders rise from 1 to options->order with the first steps. `exact`
 * says which kernel sigma is of, see psld_source. */
psld_status psld_multistep_plan(const psld_discretisation *grid, int exact, psld_multistep_fn plan,
                                psld_multistep *tables);
/* Keeps its history in reverse->work: PSLD_MULTISTEP_ROOM states. */
psld_status psld_multistep_step(psld_reverse *reverse, uint64_t visit, const void *table);
enum { PSLD_MULTISTEP_ROOM = PSLD_MAX_ORDER + 1 };
/* What the rows of these samplers have in common. */
#define PSLD_MULTISTEP_ROW \
    .work_states = PSLD_MULTISTEP_ROOM, .table_size = sizeof(psld_multistep), .step = psld_multistep_step
/* What suits pictures and mixtures (docs/measurements/samplers.md). */
#define PSLD_DETAIL 0.05

/* The step from t to u of the process with the recipe's marginals that has eta^2 of the reverse process's noise: eta =
 * 0 is the probability flow, 1 the reverse process. */
psld_status psld_propagator_plan(const psld_recipe *recipe, double eta, const psld_multistep_window *window,
                                 psld_multistep *table);

#endif
