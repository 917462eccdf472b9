#include "sample/affine.h"

#include <string.h>

#include "base/threads.h"
#include "sample/reverse.h"
#include "sample/sources/denoiser.h"

/* ---- Applying a map to a batch ----------------------------------------------------------------------------------- */

enum { CHUNK = 256 }; /* coordinates per block: its state, eps and noise fit into the L1 cache */

typedef struct affine_job {
    const psld_reverse *reverse;
    const psld_affine *affine;
    enum psld_purpose purpose;
    uint64_t step;
    const double *base, *z;
    double *out;
    int draws[PSLD_MAX_K]; /* whether the noise of variable b is used */
    int any_noise;
} affine_job;

/* out += matrix in, where in and out have `width` coordinates for each variable. */
static void add_product(size_t to, size_t from, const double *matrix, const double *in, size_t in_stride, size_t width,
                        double out[][CHUNK])
{
    for (size_t a = 0; a < to; a++)
        for (size_t b = 0; b < from; b++) {
            double f = matrix[a * from + b];
            if (f == 0) continue;
            const double *row = in + b * in_stride;
            for (size_t j = 0; j < width; j++) out[a][j] += f * row[j];
        }
}

/* Numbers first ... first + count - 1 of a sample's noise. */
static void draw_sample_noise(const affine_job *job, uint64_t sample, size_t first, size_t count, double *out)
{
    const psld_sample_options *options = job->reverse->options;
    if (options->noise && job->purpose == PSLD_FOR_STEP)
        options->noise(options->noise_user, sample, job->step, first, count, out);
    else
        psld_random_normal(options->seed, job->purpose, sample, job->step, first, count, out);
}

/* Noise of coordinates begin ... begin + width - 1 for each variable. */
static void draw_block_noise(const affine_job *job, uint64_t sample, size_t begin, size_t width, double noise[][CHUNK])
{
    size_t k = job->reverse->k, dim = job->reverse->dim;
    for (size_t b = 0; b < k; b++)
        if (job->draws[b]) draw_sample_noise(job, sample, b * dim + begin, width, noise[b]);
}

static void affine_one_state(const affine_job *job, size_t i)
{
    const psld_reverse *reverse = job->reverse;
    size_t k = reverse->k, dim = reverse->dim;
    const double *z = job->z + i * k * dim, *eps = reverse->eps + i * reverse->predicted * dim;
    const double *base = job->base ? job->base + i * k * dim : NULL;
    double sum[PSLD_MAX_K][CHUNK], noise[PSLD_MAX_K][CHUNK];
    for (size_t begin = 0; begin < dim; begin += CHUNK) {
        size_t width = dim - begin < CHUNK ? dim - begin : CHUNK;
        for (size_t a = 0; a < k; a++) {
            if (base)
                memcpy(sum[a], base + a * dim + begin, width * sizeof(double));
            else
                memset(sum[a], 0, width * sizeof(double));
        }
        add_product(k, k, job->affine->state, z + begin, dim, width, sum);
        add_product(k, reverse->predicted, job->affine->eps, eps + begin, dim, width, sum);
        if (job->any_noise) {
            draw_block_noise(job, reverse->first + i, begin, width, noise);
            add_product(k, k, job->affine->noise, noise[0], CHUNK, width, sum);
        }
        for (size_t a = 0; a < k; a++) memcpy(job->out + (i * k + a) * dim + begin, sum[a], width * sizeof(double));
    }
}

/* Small states are processed several at a time, side by side, so that the inner loops are long enough: variable a of state
 * g begins at [a][g dim]. */
static void gather_states(size_t variables, size_t dim, size_t count, const double *states,
                          double side_by_side[][CHUNK])
{
    for (size_t g = 0; g < count; g++)
        for (size_t a = 0; a < variables; a++)
            for (size_t j = 0; j < dim; j++) side_by_side[a][g * dim + j] = *states++;
}

static void scatter_states(size_t variables, size_t dim, size_t count, double side_by_side[][CHUNK], double *states)
{
    for (size_t g = 0; g < count; g++)
        for (size_t a = 0; a < variables; a++)
            for (size_t j = 0; j < dim; j++) *states++ = side_by_side[a][g * dim + j];
}

/* The same sums in the same order as in affine_one_state, for states i ... i + count - 1. */
static void affine_small_states(const affine_job *job, size_t i, size_t count)
{
    const psld_reverse *reverse = job->reverse;
    size_t k = reverse->k, dim = reverse->dim, state = k * dim, width = count * dim;
    double sum[PSLD_MAX_K][CHUNK], in[PSLD_MAX_K][CHUNK], noise[CHUNK];
    if (job->base) gather_states(k, dim, count, job->base + i * state, sum);
    for (size_t a = 0; !job->base && a < k; a++) memset(sum[a], 0, width * sizeof(double));
    gather_states(k, dim, count, job->z + i * state, in);
    add_product(k, k, job->affine->state, in[0], CHUNK, width, sum);
    gather_states(reverse->predicted, dim, count, reverse->eps + i * reverse->predicted * dim, in);
    add_product(k, reverse->predicted, job->affine->eps, in[0], CHUNK, width, sum);
    if (job->any_noise) {
        for (size_t g = 0; g < count; g++) draw_sample_noise(job, reverse->first + i + g, 0, state, noise + g * state);
        gather_states(k, dim, count, noise, in);
        add_product(k, k, job->affine->noise, in[0], CHUNK, width, sum);
    }
    scatter_states(k, dim, count, sum, job->out + i * state);
}

static void affine_range(void *context, size_t begin, size_t end)
{
    const affine_job *job = context;
    size_t group = CHUNK / (job->reverse->k * job->reverse->dim);
    if (group < 2)
        for (size_t i = begin; i < end; i++) affine_one_state(job, i);
    else
        for (size_t i = begin; i < end; i += group) affine_small_states(job, i, end - i < group ? end - i : group);
}

void psld_affine_apply(const psld_reverse *reverse, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                       const double *base, const double *z, double *out)
{
    affine_job job = {reverse, affine, purpose, step, base, z, out, {0}, 0};
    for (size_t i = 0; i < reverse->k * reverse->k; i++)
        if (affine->noise[i] != 0) job.draws[i % reverse->k] = job.any_noise = 1;
    psld_parallel(reverse->count, 2048 / (reverse->k * reverse->dim) + 1, affine_range, &job);
}

/* ---- Maps that steps are made of ---------------------------------------------------------------------------------- */

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
