/* Symmetric splitting (SSCS of CLD and PSLD) for every recipe.
 *
 * The reverse drift is beta [(D + Q) P z + 2 D s] = -beta (D - Q) P z + 2 beta D (P z + s). The first part with the
 * noise is the recipe with -Q for Q: an Ornstein-Uhlenbeck process whose transition is known exactly. The second
 * vanishes at stationarity and gets an Euler step. A step is half of the first, the second, half of the first; the
 * score is taken at the time it starts from. Weak order 1, with a smaller constant than Euler-Maruyama where the
 * linear part is stiff. */
#include <string.h>

#include "sample/samplers/sampler.h"

typedef struct sscs_table {
    double t;
    psld_affine first;  /* half an exact step */
    psld_affine second; /* the score step, then the other half */
} sscs_table;

static psld_status plan_sscs(const psld_recipe *recipe, double t, double u, int truncated, void *table)
{
    sscs_table *step = table;
    psld_gaussian half;
    psld_affine score;
    double middle = t - 0.5 * (t - u), h = (double)psld_beta_integral(recipe, u, t), weight[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, predicted = recipe->predicted;
    (void)truncated;
    memset(step, 0, sizeof *step);
    step->t = t;
    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, middle, t), NULL, &half);
    psld_matrix_copy(k, half.mean, step->first.state);
    psld_matrix_copy(k, half.factor, step->first.noise);

    psld_affine_identity(recipe, &score); /* z + 2 h D (P z + s) */
    for (int i = 0; i < k * k; i++) {
        double variance = recipe->deviation[i % k] * recipe->deviation[i % k];
        weight[i] = 2 * h * recipe->spec.D[i];
        score.state[i] += weight[i] / variance;
    }
    PSLD_TRY(psld_affine_score(recipe, t, weight, &score));

    psld_transition(recipe, PSLD_FLIPPED, psld_beta_integral(recipe, u, middle), NULL, &half);
    psld_matrix_multiply(k, half.mean, score.state, step->second.state);
    for (int a = 0; a < k; a++)
        for (int c = 0; c < predicted; c++)
            for (int b = 0; b < k; b++)
                step->second.eps[a * predicted + c] += half.mean[a * k + b] * score.eps[b * predicted + c];
    psld_matrix_copy(k, half.factor, step->second.noise);
    return PSLD_OK;
}

static psld_status step_sscs(psld_reverse *reverse, uint64_t index, const void *table)
{
    const sscs_table *step = table;
    psld_affine_apply(reverse, &step->first, PSLD_FOR_STEP, 2 * index, NULL, reverse->z, reverse->z);
    PSLD_TRY(psld_reverse_predict(reverse, reverse->z, step->t));
    psld_affine_apply(reverse, &step->second, PSLD_FOR_STEP, 2 * index + 1, NULL, reverse->z, reverse->z);
    return PSLD_OK;
}

const psld_sampler psld_sampler_sscs = {
    .info = {.name = "sscs",
             .summary = "symmetric splitting: exact linear part, Euler step for the score",
             .grid = "quadratic",
             .nfe = 250,
             .evaluations = 1},
    .table_size = sizeof(sscs_table),
    .plan_step = plan_sscs,
    .step = step_sscs,
};
