/* Multistep samplers that predict clean data: what dpm, ancestral and collapsed have in common.
 *
 * Write the score as s = Sigma^-1 (mu X - z), with the denoiser X = E[x_0 | z_t]. Every process with the recipe's
 * marginals, stochastic or not, is then linear apart from X. So a reverse step can be exact in everything but the change
 * of X over the step. X is extrapolated by a polynomial through the last evaluations X_j:
 *     z(u) = state z(t) + sum_j weight_j X_j + noise n,
 * where weight_j [k] are integrals over the step. The samplers differ in these constants only.
 *
 * The polynomial's variable is the clock -log sqrt(sigma^2 + detail^2). On the flow of data with mean m and deviation s,
 * y - m is proportional to sqrt(s^2 + sigma^2). So X - m = s^2 (y - m) / (s^2 + sigma^2) is the exponential of the clock
 * with detail = s. With detail = 0 the clock is lambda = -log sigma, half the log-SNR. It keeps growing after X has
 * stopped changing, and a last step that is long in lambda makes polynomials of order 3 overshoot. */
#ifndef PSLD_SAMPLE_MULTISTEP_H
#define PSLD_SAMPLE_MULTISTEP_H

#include "sample/collapsed_frame.h"
#include "sample/samplers/sampler.h"
#include "sample/sources/denoiser.h"

enum { PSLD_MAX_ORDER = 3 };

typedef struct psld_multistep {
    double t;
    int index;              /* number of the step in its grid */
    psld_denoiser denoiser; /* at t */
    int order;              /* evaluations that this step may use: its own and earlier ones */
    /* weight[order - 1][j]: for each order up to that one, newest evaluation first. Fewer evaluations are known at the
     * first steps, and after a jump of inpainting. */
    double weight[PSLD_MAX_ORDER][PSLD_MAX_ORDER][PSLD_MAX_K];
    psld_affine map; /* state and noise */
} psld_multistep;

/* A step and the evaluations it uses. */
typedef struct psld_multistep_window {
    double t, u;
    int order;
    double detail;
    /* At the evaluations, newest first; for certainty see psld_denoiser. */
    double sigma[PSLD_MAX_ORDER], clock[PSLD_MAX_ORDER], certainty[PSLD_MAX_ORDER];
} psld_multistep_window;

/* Whether evaluation j, among the newest `order` of these certainties, is used. At the turning points of an underdamped process the predicted
 * variables depend little on x_0, and sigma hardly changes. An evaluation there is much less certain than its neighbours,
 * and a polynomial through points so close would magnify its error. */
int psld_multistep_uses(const double *certainty, int order, int j);
/* The weight of evaluation j at a clock: its Lagrange polynomial among the evaluations that are used. */
double psld_multistep_weight(const psld_multistep_window *window, int order, int j, double clock);

/* The clock at lambda = -log sigma, up to a constant. */
double psld_multistep_clock(double detail, double lambda);

/* Computes `weight` and `map` of one step. The other fields of the table are set already. */
typedef psld_status (*psld_multistep_fn)(const psld_discretisation *grid, const psld_multistep_window *window,
                                         psld_multistep *table);

/* Computes the tables of all steps of a grid with `plan`, in parallel. The order rises from 1 to options->order over the
 * first steps. `exact`: which kernel sigma belongs to, see psld_source. */
psld_status psld_multistep_plan(const psld_discretisation *grid, int exact, psld_multistep_fn plan,
                                psld_multistep *tables);
/* Keeps the last evaluations in reverse->work: PSLD_MULTISTEP_STATES states per sample. */
psld_status psld_multistep_step(psld_reverse *reverse, uint64_t visit, const void *table);
enum { PSLD_MULTISTEP_STATES = PSLD_MAX_ORDER + 1 };
/* Fields that are the same for all of these samplers. */
#define PSLD_MULTISTEP_ROW \
    .work_states = PSLD_MULTISTEP_STATES, .table_size = sizeof(psld_multistep), .step = psld_multistep_step
/* Default of `detail`: good for images and mixtures (docs/measurements/samplers.md). */
#define PSLD_DETAIL 0.05

/* The step from t to u of the process that has the recipe's marginals and eta^2 of the noise variance of the reverse SDE.
 * eta = 0 is the probability flow, eta = 1 the reverse SDE. */
psld_status psld_propagator_plan(const psld_recipe *recipe, double eta, const psld_multistep_window *window,
                                 psld_multistep *table);

#endif
