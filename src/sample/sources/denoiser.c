#include "sample/sources/denoiser.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "sample/linear.h"

/* ---- Constants of one time --------------------------------------------------------------------------------------- */

/* The block of a matrix that belongs to the predicted variables, in recipe->order. */
static void predicted_block(const psld_recipe *recipe, const double *matrix, double *block)
{
    int k = recipe->spec.k, predicted = recipe->predicted;
    const int *order = recipe->order + k - predicted;
    for (int r = 0; r < predicted; r++)
        for (int c = 0; c < predicted; c++) block[r * predicted + c] = matrix[order[r] * k + order[c]];
}

/* A source predicts eps = -S' s, where S is the stabilised factor of the kernel that its eps belongs to. The denoiser needs
 * e = -L' s. So eps = convert e and e = back eps, with convert = S' L^-T and back = L' S^-T. Blocks are enough, since S and
 * L are lower triangular in recipe->order. */
static psld_status plan_eps_conversion(const psld_recipe *recipe, double t, const double *factor, double *convert,
                                       double *back)
{
    double stable[PSLD_MATRIX_SIZE], s[PSLD_MATRIX_SIZE], l[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
    double product[PSLD_MATRIX_SIZE];
    int predicted = recipe->predicted;
    PSLD_TRY(psld_recipe_factor(recipe, t, recipe->spec.mode, stable, NULL));
    predicted_block(recipe, stable, s);
    predicted_block(recipe, factor, l);
    psld_matrix_invert_lower(predicted, l, inverse);
    psld_matrix_multiply(predicted, inverse, s, product);
    psld_matrix_transpose(predicted, product, convert);
    psld_matrix_invert_lower(predicted, s, inverse);
    psld_matrix_multiply(predicted, inverse, l, product);
    psld_matrix_transpose(predicted, product, back);
    return PSLD_OK;
}

/* The recipe whose stabilised kernel is the kernel of the source. */
static psld_recipe recipe_of_kernel(const psld_recipe *recipe, int exact)
{
    psld_recipe own = *recipe;
    if (exact) own.spec.stabiliser = 0;
    return own;
}

#define MIN_CERTAINTY 1e-12

psld_status psld_denoiser_plan(const psld_recipe *recipe, int exact, double t, psld_denoiser *denoiser)
{
    psld_recipe own = recipe_of_kernel(recipe, exact);
    psld_gaussian kernel;
    double factor[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE], convert[PSLD_MATRIX_SIZE], back[PSLD_MATRIX_SIZE];
    double a[PSLD_MAX_K] = {0}, square = 0, all = 0;
    int k = recipe->spec.k, predicted = recipe->predicted;
    const int *order = recipe->order + k - predicted, *channel = recipe->channel;
    memset(denoiser, 0, sizeof *denoiser);
    denoiser->k = k;
    denoiser->predicted = predicted;
    PSLD_TRY(psld_recipe_factor(&own, t, PSLD_HSM, factor, inverse));
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    PSLD_TRY(plan_eps_conversion(recipe, t, factor, convert, back));
    for (int i = 0; i < k; i++) {
        double white = 0;
        for (int b = 0; b < k; b++) white += inverse[i * k + b] * kernel.mean[b * k];
        all += white * white;
    }
    for (int r = 0; r < predicted; r++) {
        for (int b = 0; b < k; b++) a[r] += inverse[order[r] * k + b] * kernel.mean[b * k];
        square += a[r] * a[r];
    }
    denoiser->certainty = sqrt(square / all);
    for (int r = 0; r < predicted; r++) {
        for (int b = 0; b < k; b++) denoiser->state[b] += a[r] * inverse[order[r] * k + b] / square;
        for (int c = 0; c < predicted; c++) {
            denoiser->eps[channel[c]] -= a[r] * back[r * predicted + c] / square;
            denoiser->gain[channel[r]] += convert[r * predicted + c] * a[c];
            for (int b = 0; b < k; b++)
                denoiser->white[channel[r] * k + b] += convert[r * predicted + c] * inverse[order[c] * k + b];
        }
    }
    if (!(denoiser->certainty > MIN_CERTAINTY))
        return psld_fail(PSLD_NOT_FINITE,
                         "recipe %s: at t = %g the predicted variables do not depend on the data: use other times",
                         recipe->spec.name, t);
    return PSLD_OK;
}

psld_status psld_recipe_denoiser(const psld_recipe *recipe, double t, double *state, double *noise, double *white,
                                 double *gain)
{
    psld_denoiser d;
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted;
    PSLD_TRY(psld_denoiser_plan(recipe, 0, t, &d));
    if (state) memcpy(state, d.state, k * sizeof *state);
    if (noise) memcpy(noise, d.eps, predicted * sizeof *noise);
    if (white) memcpy(white, d.white, predicted * k * sizeof *white);
    if (gain) memcpy(gain, d.gain, predicted * sizeof *gain);
    return PSLD_OK;
}

void psld_source_kernel(const psld_recipe *recipe, int exact, double t, psld_gaussian *kernel)
{
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, 0, kernel);
    if (exact || recipe->spec.stabiliser == 0) return;
    psld_wide wide[2 * PSLD_WIDE_SIZE] = {0}, lower[PSLD_WIDE_SIZE];
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) wide[i * 2 * k + j] = kernel->factor[i * k + j];
        wide[i * 2 * k + k + i] = sqrtl(recipe->spec.stabiliser);
        kernel->cov[i * k + i] += recipe->spec.stabiliser;
    }
    psld_wide_triangularise(k, 2 * k, wide, lower);
    for (int i = 0; i < k * k; i++) kernel->factor[i] = (double)lower[i];
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

void psld_denoiser_apply(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *eps,
                         double *x)
{
    const psld_linear_part parts[2] = {{denoiser->state, (size_t)denoiser->k, z},
                                       {denoiser->eps, (size_t)denoiser->predicted, eps}};
    psld_linear_apply(n, dim, 1, 2, parts, x);
}

void psld_denoiser_eps(const psld_denoiser *denoiser, size_t n, size_t dim, const double *z, const double *x,
                       double *eps)
{
    double loss[PSLD_MAX_K];
    const psld_linear_part parts[2] = {{denoiser->white, (size_t)denoiser->k, z}, {loss, 1, x}};
    for (int c = 0; c < denoiser->predicted; c++) loss[c] = -denoiser->gain[c];
    psld_linear_apply(n, dim, (size_t)denoiser->predicted, 2, parts, eps);
}

/* ---- What an evaluation stands for ------------------------------------------------------------------------------- */

psld_status psld_evaluation_denoise(const psld_evaluation *evaluation, const psld_source *source,
                                    const psld_recipe *recipe, double *x)
{
    const psld_states *states = evaluation->states;
    psld_denoiser denoiser;
    PSLD_TRY(psld_source_check(source, recipe));
    PSLD_TRY(psld_denoiser_plan(recipe, source->exact, states->t[0], &denoiser));
    psld_denoiser_apply(&denoiser, states->n, states->dim, states->z, evaluation->eps, x);
    return PSLD_OK;
}

/* ---- A source as a denoiser -------------------------------------------------------------------------------------- */

psld_status psld_source_denoise(psld_source *source, const psld_recipe *recipe, const psld_states *states, double *x)
{
    psld_states own;
    PSLD_TRY(psld_states_read(states, &own));
    size_t dim = own.dim, state = (size_t)recipe->spec.k * dim, predicted = (size_t)recipe->predicted * dim;
    PSLD_TRY(psld_source_check(source, recipe));
    PSLD_TRY(psld_check_doubles("denoise", own.n, (size_t)recipe->spec.k, dim));
    double *eps = psld_alloc(own.n, predicted * sizeof *eps);
    if (!eps) return PSLD_NO_MEMORY;
    psld_status status = psld_source_predict(source, &own, eps);
    for (size_t begin = 0, end; status == PSLD_OK && begin < own.n; begin = end) {
        psld_denoiser denoiser;
        end = psld_states_same_time(&own, begin);
        status = psld_denoiser_plan(recipe, source->exact, own.t[begin], &denoiser);
        if (status == PSLD_OK)
            psld_denoiser_apply(&denoiser, end - begin, dim, own.z + begin * state, eps + begin * predicted,
                                x + begin * dim);
    }
    psld_release(eps);
    return status;
}
