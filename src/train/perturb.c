#include "train/perturb.h"

#include <math.h>
#include <stdatomic.h>

#include "base/random.h"
#include "base/threads.h"

enum { PIECE = 256 }; /* coordinates at a time: their noise stays in the cache */

/* Images of unit scale take shape between sigma 0.1 and 10: two deviations. */
#define LOG_SIGMA_DEVIATION 1.2

typedef struct perturb_job {
    const psld_perturbation *how;
    psld_phase phase;
    uint64_t first;
    const psld_perturbed *to;
    atomic_int failed;
} perturb_job;

/* That of one sample: z = mean z_0 + factor eps. */
typedef struct sample_kernel {
    psld_gaussian exact;
    double factor[PSLD_MATRIX_SIZE]; /* with the stabiliser */
} sample_kernel;

/* z, and eps of the predicted variables, for coordinates at ... at + count - 1. */
static void perturb_piece(const perturb_job *job, uint64_t sample, size_t row, const sample_kernel *kernel, size_t at,
                          size_t count)
{
    const psld_perturbation *how = job->how;
    const psld_recipe *recipe = how->recipe;
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted, dim = how->dim;
    double noise[PSLD_MAX_K][PIECE], start[PSLD_MAX_K][PIECE];
    for (size_t b = 0; b < k; b++)
        psld_random_normal(how->seed, PSLD_FOR_NOISE, sample, (uint64_t)job->phase, b * dim + at, count, noise[b]);
    for (size_t j = 0; j < count; j++) start[0][j] = (double)job->to->x[row * dim + at + j];
    size_t known = how->mode == PSLD_DSM ? k : 1; /* variables whose start is given */
    for (size_t b = 1; b < known; b++) {
        double deviation = sqrt(recipe->spec.init[b - 1] * recipe->spec.mass[b - 1]);
        psld_random_normal(how->seed, PSLD_FOR_MOMENTUM, sample, (uint64_t)job->phase, b * dim + at, count, start[b]);
        for (size_t j = 0; j < count; j++) start[b][j] *= deviation;
    }
    for (size_t a = 0; a < k; a++) {
        float *z = job->to->z + (row * k + a) * dim + at;
        for (size_t j = 0; j < count; j++) {
            double sum = 0;
            for (size_t b = 0; b < known; b++) sum += kernel->exact.mean[a * k + b] * start[b][j];
            for (size_t b = 0; b < k; b++) sum += kernel->factor[a * k + b] * noise[b][j];
            z[j] = (float)sum;
        }
    }
    for (size_t i = 0; job->to->eps && i < predicted; i++) {
        const double *eps = noise[recipe->order[k - predicted + i]];
        float *out = job->to->eps + (row * predicted + i) * dim + at;
        for (size_t j = 0; j < count; j++) out[j] = (float)eps[j];
    }
}

/* The block of L^-1 2 beta D L^-T that belongs to the predicted variables. */
static void weigh_likelihood(const psld_recipe *recipe, double t, const double *inverse, float *metric)
{
    int k = recipe->spec.k, predicted = recipe->predicted;
    double left[PSLD_MATRIX_SIZE], whole[PSLD_MATRIX_SIZE];
    psld_matrix_multiply(k, inverse, recipe->spec.D, left);
    psld_matrix_multiply_t(k, left, inverse, whole);
    for (int i = 0; i < predicted; i++)
        for (int j = 0; j < predicted; j++) {
            int row = recipe->order[k - predicted + i], column = recipe->order[k - predicted + j];
            metric[i * predicted + j] = (float)(2 * psld_beta(recipe, t) * whole[row * k + column]);
        }
}

/* States far above DATA_SIGMA_MOST show next to nothing of the data, whatever the weight. */
#define DATA_DEVIATION  0.5
#define DATA_SIGMA_MOST 2.5

static psld_status weigh_data(const psld_recipe *recipe, double t, float *metric)
{
    int predicted = recipe->predicted;
    double sigma;
    PSLD_TRY(psld_recipe_sigma(recipe, t, &sigma));
    double ratio = fmin(sigma, DATA_SIGMA_MOST) / DATA_DEVIATION;
    for (int i = 0; i < predicted * predicted; i++)
        metric[i] = i % (predicted + 1) == 0 ? (float)(1 + ratio * ratio) : 0;
    return PSLD_OK;
}

static psld_status fill_metric(const psld_perturbation *how, double t, const double *inverse, float *metric)
{
    if (how->weighting == PSLD_WEIGH_DATA) return weigh_data(how->recipe, t, metric);
    weigh_likelihood(how->recipe, t, inverse, metric);
    return PSLD_OK;
}

static void copy_clean(const perturb_job *job, size_t row)
{
    size_t k = (size_t)job->how->recipe->spec.k, dim = job->how->dim;
    for (size_t j = 0; j < k * dim; j++) job->to->z[row * k * dim + j] = j < dim ? job->to->x[row * dim + j] : 0;
    job->to->t[row] = 0;
}

/* A uniform number chooses between the two laws of the time and is then stretched for the first of them. */
static psld_status draw_time(const psld_perturbation *how, uint64_t sample, psld_phase phase, double *t)
{
    double u, n, sigma, low, high;
    psld_random_uniform(how->seed, PSLD_FOR_TIME, sample, (uint64_t)phase, 0, 1, &u);
    if (how->by_noise && u < 0.5) {
        psld_random_normal(how->seed, PSLD_FOR_TIME, sample, (uint64_t)phase, 1, 1, &n);
        PSLD_TRY(psld_recipe_sigma(how->recipe, how->eps, &low));
        PSLD_TRY(psld_recipe_sigma(how->recipe, 1, &high));
        sigma = exp(LOG_SIGMA_DEVIATION * n);
        return psld_recipe_time(how->recipe, fmin(fmax(sigma, low), high), t);
    }
    if (how->by_noise) u = 2 * u - 1;
    *t = how->eps + (1 - how->eps) * u;
    return PSLD_OK;
}

static int perturb_sample(const perturb_job *job, size_t row)
{
    const psld_perturbation *how = job->how;
    const psld_recipe *recipe = how->recipe;
    uint64_t sample = job->first + row;
    double inverse[PSLD_MATRIX_SIZE], *t = &job->to->t[row];
    sample_kernel kernel;
    if (how->clean) {
        copy_clean(job, row);
        return 1;
    }
    if (draw_time(how, sample, job->phase, t) != PSLD_OK) return 0;
    psld_kernel(recipe, *t, how->mode, 0, &kernel.exact);
    if (psld_kernel_factor(recipe, &kernel.exact, *t, kernel.factor, inverse) != PSLD_OK) return 0;
    size_t square = (size_t)(recipe->predicted * recipe->predicted);
    if (job->to->metric && fill_metric(how, *t, inverse, job->to->metric + row * square) != PSLD_OK) return 0;
    for (size_t at = 0; at < how->dim; at += PIECE)
        perturb_piece(job, sample, row, &kernel, at, how->dim - at < PIECE ? how->dim - at : PIECE);
    return 1;
}

static void perturb_range(void *context, size_t begin, size_t end)
{
    perturb_job *job = context;
    for (size_t row = begin; row < end; row++)
        if (!perturb_sample(job, row)) atomic_store(&job->failed, 1);
}

psld_status psld_perturb(const psld_perturbation *how, psld_phase phase, uint64_t first, size_t n,
                         const psld_perturbed *arrays)
{
    perturb_job job = {.how = how, .phase = phase, .first = first, .to = arrays};
    psld_parallel(n, 1, perturb_range, &job);
    if (!atomic_load(&job.failed)) return PSLD_OK;
    return psld_fail(PSLD_NOT_FINITE,
                     "recipe %s: the kernel has no factor at some time above %g; a larger train.eps helps",
                     how->recipe->spec.name, how->eps);
}
