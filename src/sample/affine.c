#include "sample/affine.h"

#include <string.h>

#include "base/threads.h"
#include "sample/linear.h"
#include "sample/reverse.h"
#include "sample/sources/denoiser.h"

/* ---- Applying a map to a batch ----------------------------------------------------------------------------------- */

typedef struct affine_job {
    const psld_reverse *reverse;
    const psld_affine *affine;
    enum psld_purpose purpose;
    uint64_t step;
    const double *base, *z;
    double *out;
    int draws[PSLD_MAX_K]; /* whether the noise of variable b is used */
    int any_noise;
    const double *drawn; /* [count][k * dim]: all noise, or NULL */
} affine_job;

/* Numbers first ... first + count - 1 of a sample's noise. */
static void draw_sample_noise(const affine_job *job, uint64_t sample, size_t first, size_t count, double *out)
{
    const psld_sample_options *options = job->reverse->options;
    if (options->noise && job->purpose == PSLD_FOR_STEP)
        options->noise(options->noise_user, sample, job->step, first, count, out);
    else
        psld_random_normal(options->seed, job->purpose, sample, job->step, first, count, out);
}

/* Noise of a block: of a piece of one state the variables that are used, of whole states all of them. */
static void draw_block_noise(const affine_job *job, const psld_block *block, psld_block_rows noise)
{
    const psld_sample_options *options = job->reverse->options;
    size_t k = job->reverse->k, dim = job->reverse->dim;
    uint64_t sample = job->reverse->first + block->first;
    double whole[PSLD_MAX_K * PSLD_BLOCK_WIDTH];
    const psld_block here = {.states = block->states, .width = block->width};
    if (job->drawn) {
        psld_block_load(block, dim, k, job->drawn, noise);
        return;
    }
    if (block->states == 1) {
        for (size_t b = 0; b < k; b++)
            if (job->draws[b]) draw_sample_noise(job, sample, b * dim + block->begin, block->width, noise[b]);
        return;
    }
    if (options->noise && job->purpose == PSLD_FOR_STEP)
        for (size_t i = 0; i < block->states; i++) draw_sample_noise(job, sample + i, 0, k * dim, whole + i * k * dim);
    else
        psld_random_normal_each(options->seed, job->purpose, sample, block->states, job->step, k * dim, whole);
    psld_block_load(&here, dim, k, whole, noise);
}

static void affine_block(const affine_job *job, const psld_block *block)
{
    const psld_reverse *reverse = job->reverse;
    size_t k = reverse->k, dim = reverse->dim;
    const psld_linear_part state = {job->affine->state, k, job->z};
    const psld_linear_part eps = {job->affine->eps, reverse->predicted, reverse->eps};
    psld_block_rows sum, noise;
    if (job->base) psld_block_load(block, dim, k, job->base, sum);
    for (size_t a = 0; !job->base && a < k; a++) memset(sum[a], 0, block->states * block->width * sizeof(double));
    psld_linear_add(block, dim, k, &state, sum);
    psld_linear_add(block, dim, k, &eps, sum);
    if (job->any_noise) {
        draw_block_noise(job, block, noise);
        psld_linear_add_rows(block, k, job->affine->noise, k, noise, sum);
    }
    psld_block_store(block, dim, k, sum, job->out);
}

static void affine_range(void *context, size_t begin, size_t end)
{
    const affine_job *job = context;
    psld_block block = {.first = begin};
    while (psld_block_next(&block, end, job->reverse->dim)) affine_block(job, &block);
}

void psld_affine_apply(const psld_reverse *reverse, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                       const double *base, const double *z, double *out)
{
    affine_job job = {reverse, affine, purpose, step, base, z, out, {0}, 0, NULL};
    for (size_t i = 0; i < reverse->k * reverse->k; i++)
        if (affine->noise[i] != 0) job.draws[i % reverse->k] = job.any_noise = 1;
    if (job.any_noise && purpose == PSLD_FOR_STEP) job.drawn = psld_ahead_take(reverse, step);
    psld_parallel(reverse->count, 2048 / (reverse->k * reverse->dim) + 1, affine_range, &job);
}

void psld_affine_expect(const psld_reverse *reverse, const psld_affine *affine, uint64_t step, size_t steps)
{
    int any_noise = 0;
    for (size_t i = 0; i < reverse->k * reverse->k; i++) any_noise |= affine->noise[i] != 0;
    if (any_noise) psld_ahead_begin(reverse, step, steps);
}

/* ---- Maps that steps are made of --------------------------------------------------------------------------------- */

void psld_affine_identity(const psld_recipe *recipe, psld_affine *affine)
{
    memset(affine, 0, sizeof *affine);
    psld_matrix_identity(recipe->spec.k, affine->state);
}

/* s = -L^-T eps, where eps is known for the predicted variables only. This is enough: L^-1 is lower triangular in `order`,
 * and the predicted variables are the last of it. So the scores of the variables with noise, the only ones with a nonzero
 * weight, depend on no other eps. L belongs to the kernel that eps belongs to (denoiser.h); the score is the same. */
psld_status psld_affine_score(const psld_recipe *recipe, double t, const double *weight, psld_affine *affine)
{
    double inverse[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, predicted = recipe->predicted;
    PSLD_TRY(psld_recipe_factor(recipe, t, recipe->spec.mode, NULL, inverse));
    for (int a = 0; a < k; a++)
        for (int c = 0; c < predicted; c++) {
            int b = recipe->variable[c];
            double sum = 0;
            for (int l = 0; l < k; l++) sum += weight[a * k + l] * inverse[b * k + l];
            affine->eps[a * predicted + c] = -sum;
        }
    return PSLD_OK;
}

psld_status psld_affine_euler(const psld_recipe *recipe, double t, double dt, double score_part, psld_affine *affine)
{
    double linear[PSLD_MATRIX_SIZE], weight[PSLD_MATRIX_SIZE], h = psld_beta(recipe, t) * dt;
    int k = recipe->spec.k;
    psld_affine_identity(recipe, affine);
    psld_recipe_reverse_drift(recipe, linear);
    psld_matrix_add(k, h, linear, affine->state);
    for (int i = 0; i < k * k; i++) weight[i] = score_part * h * recipe->spec.D[i];
    return psld_affine_score(recipe, t, weight, affine);
}

psld_status psld_affine_flow(const psld_recipe *recipe, double t, psld_affine *affine)
{
    int k = recipe->spec.k;
    PSLD_TRY(psld_affine_euler(recipe, t, 1, 1, affine));
    for (int i = 0; i < k; i++) affine->state[i * k + i] -= 1;
    return PSLD_OK;
}

psld_status psld_affine_denoise(const psld_recipe *recipe, int exact, double t, psld_affine *affine)
{
    psld_denoiser denoiser;
    psld_gaussian kernel;
    double inverse[PSLD_MATRIX_SIZE], gain[PSLD_MATRIX_SIZE], product[PSLD_MATRIX_SIZE], transposed[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, predicted = recipe->predicted;
    memset(affine, 0, sizeof *affine);
    PSLD_TRY(psld_denoiser_plan(recipe, exact, t, &denoiser));
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    psld_matrix_transpose(k, inverse, transposed);
    psld_matrix_multiply(k, transposed, inverse, product); /* Sigma^-1 */
    psld_matrix_transpose(k, kernel.mean, transposed);
    psld_matrix_multiply(k, transposed, product, gain);
    for (int a = 0; a < k; a++) {
        double variance = a ? recipe->spec.init[a - 1] * recipe->spec.mass[a - 1] : 0, clean = a == 0;
        for (int b = 0; b < k; b++) {
            affine->state[a * k + b] = variance * gain[a * k + b]; /* regression of m_0 on z_t - mu x_0 */
            clean -= variance * gain[a * k + b] * kernel.mean[b * k];
        }
        for (int b = 0; b < k; b++) affine->state[a * k + b] += clean * denoiser.state[b];
        for (int c = 0; c < predicted; c++) affine->eps[a * predicted + c] = clean * denoiser.eps[c];
    }
    return PSLD_OK;
}
