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

#include "sample/denoiser.h"
#include "sample/walk.h"

enum { PSLD_MOST_ORDER = 3 };

typedef struct psld_multistep {
    double t;
    int index;              /* of the step in its grid */
    psld_denoiser denoiser; /* at t */
    int order;              /* evaluations that this step may look at, its own and those before */
    /* For each order up to that one, newest first: after a jump of inpainting there is no history. */
    double weight[PSLD_MOST_ORDER][PSLD_MOST_ORDER][PSLD_MAX_K];
    psld_affine move; /* state and noise */
} psld_multistep;

/* A step and the evaluations it looks at. */
typedef struct psld_stretch {
    double t, u;
    int order;
    double detail;
    /* Of the evaluations, newest first; for certainty see psld_denoiser. */
    double sigma[PSLD_MOST_ORDER], clock[PSLD_MOST_ORDER], certainty[PSLD_MOST_ORDER];
} psld_stretch;

/* Whether evaluation j is used among the newest `order`. Where an underdamped process turns, its predicted variables say
 * little of x_0 and sigma hardly changes: what is evaluated there is much less certain than what is next to it, and a
 * polynomial through points so close would carry its error far. */
int psld_multistep_uses(const psld_stretch *stretch, int order, int j);
/* What evaluation j counts at a clock: the Lagrange polynomial among those that are used. */
double psld_multistep_share(const psld_stretch *stretch, int order, int j, double clock);

/* The clock where -log sigma is lambda, but for a constant. */
double psld_multistep_clock(double detail, double lambda);

/* Fills the constants of step `index`: weight and move, all else being there already. */
typedef psld_status (*psld_multistep_fn)(const psld_path *path, const psld_stretch *stretch, psld_multistep *table);

/* Fills all tables of a path with `plan`, in parallel; orders rise from 1 to options->order with the first steps. `exact`
 * says which kernel sigma is of, see psld_source. */
psld_status psld_multistep_prepare(const psld_path *path, int exact, psld_multistep_fn plan, psld_multistep *tables);
/* Keeps its history in walk->work: PSLD_MULTISTEP_ROOM states. */
psld_status psld_multistep_take(psld_walk *walk, uint64_t visit, const void *table);
enum { PSLD_MULTISTEP_ROOM = PSLD_MOST_ORDER + 1 };
/* What the rows of these samplers have in common. */
#define PSLD_MULTISTEP_ROW                                                                                   \
    .most_order = PSLD_MOST_ORDER, .evaluations = 1, .work_states = PSLD_MULTISTEP_ROOM, .predicts_data = 1, \
    .table_size = sizeof(psld_multistep), .step = psld_multistep_take
/* What suits pictures and mixtures (docs/samplers.md). */
#define PSLD_DETAIL 0.05
/* And of those that follow a flow, without noise. */
#define PSLD_MULTISTEP_FLOW_ROW .nfe = 50, .order = 3, .deterministic = 1, .reversible = 1, PSLD_MULTISTEP_ROW

/* The step from t to u of the process with the recipe's marginals that has eta^2 of the reverse process's noise: eta =
 * 0 is the probability flow, 1 the reverse process. */
psld_status psld_passage_plan(const psld_recipe *recipe, double eta, const psld_stretch *stretch,
                              psld_multistep *table);

/* The frame in which the clean data move along one axis. With S = frame, S S' = Sigma and S^-1 mu = e_1 / sigma: the
 * coordinates S^-1 z are y / sigma, y = x_0 + sigma n being all that z tells of x_0, and k - 1 standard normal numbers
 * xi that tell nothing. Of the kernel that a source's predictions belong to. */
typedef struct psld_split {
    double sigma;
    double frame[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
} psld_split;
psld_status psld_split_plan(const psld_recipe *recipe, int exact, double t, psld_split *split);

/* States at time t for data x: y = x, xi drawn by address. */
psld_status psld_encode_start(const psld_recipe *recipe, int exact, double t, uint64_t seed, uint64_t first,
                              size_t count, size_t dim, const double *x, double *z);

#endif
