/* SSCS, the symmetric splitting sampler of CLD and PSLD (App. B.4.2 of the paper), for every recipe.
 *
 * The reverse SDE. In time that runs backwards, with the score s = grad log p_t(z),
 *     dz = beta [(D + Q) P z + 2 D s] dt + sqrt(2 beta D) dw.
 * Splitting. Subtract and add 2 D P z in the drift:
 *     dz = { -beta (D - Q) P z dt + sqrt(2 beta D) dw }  +  { 2 beta D (P z + s) dt }.
 *   A: the first part is the forward process with -Q in place of Q. It is an Ornstein-Uhlenbeck process with the same
 *      stationary distribution N(0, P^-1), and its transition is known exactly (psld_transition, PSLD_FLIPPED).
 *   S: the second part vanishes at stationarity, where s = -P z. It gets one Euler step.
 * One step from t to u is A over the first half of [u, t], S over the whole, A over the second half:
 *     z <- Phi_1 z + L_1 n                     exact, h = int beta from the middle to t
 *     z <- z + 2 H D (P z + s(z, t))           Euler, H = int beta from u to t
 *     z <- Phi_2 z + L_2 n'                    exact, h = int beta from u to the middle
 * The score is evaluated at the start time t of the step. Weak order 1, as Euler-Maruyama, with a smaller error where
 * the linear part is stiff. */
#include <string.h>

#include "sample/samplers/sampler.h"

typedef struct sscs_table {
    double t;
    psld_affine before; /* A over the first half */
    psld_affine after;  /* S, then A over the second half: one affine map, since both are affine in z and eps */
} sscs_table;

static psld_status sscs_plan(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    sscs_table *step = table;
    psld_gaussian half;
    psld_affine score;
    double middle = t - 0.5 * (t - u), H = (double)psld_beta_integral(recipe, u, t), weight[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, predicted = recipe->predicted;
    (void)truncated;
    memset(step, 0, sizeof *step);
    step->t = t;
    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, middle, t), NULL, &half);
    psld_matrix_copy(k, half.mean, step->before.state);
    psld_matrix_copy(k, half.factor, step->before.noise);

    psld_affine_identity(recipe, &score); /* z + 2 H D (P z + s) */
    for (int i = 0; i < k * k; i++) {
        double mass = recipe->deviation[i % k] * recipe->deviation[i % k]; /* P = diag(1 / mass) */
        weight[i] = 2 * H * recipe->spec.D[i];
        score.state[i] += weight[i] / mass;
    }
    PSLD_TRY(psld_affine_score(recipe, t, weight, &score));

    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, u, middle), NULL, &half);
    psld_matrix_multiply(k, half.mean, score.state, step->after.state);
    for (int a = 0; a < k; a++)
        for (int c = 0; c < predicted; c++)
            for (int b = 0; b < k; b++)
                step->after.eps[a * predicted + c] += half.mean[a * k + b] * score.eps[b * predicted + c];
    psld_matrix_copy(k, half.factor, step->after.noise);
    return PSLD_OK;
}

static psld_status sscs_step(psld_reverse *reverse, uint64_t visit, const void *table)
{
    const sscs_table *step = table;
    psld_affine_apply(reverse, &step->before, PSLD_FOR_STEP, 2 * visit, NULL, reverse->z, reverse->z);
    psld_affine_expect(reverse, &step->after, 2 * visit + 1, 2); /* and that with which the next step begins */
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    psld_affine_apply(reverse, &step->after, PSLD_FOR_STEP, 2 * visit + 1, NULL, reverse->z, reverse->z);
    return PSLD_OK;
}

const psld_sampler psld_sampler_sscs = {
    .info = {.name = "sscs",
             .summary = "symmetric splitting: exact linear part, Euler step for the score",
             .grid = "quadratic",
             .nfe = 250,
             .evaluations = 1},
    .table_size = sizeof(sscs_table),
    .plan_step = sscs_plan,
    .step = sscs_step,
};
