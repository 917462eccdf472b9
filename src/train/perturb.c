#include "train/perturb.h"

#include <math.h>
#include <stdatomic.h>

#include "base/random.h"
#include "base/threads.h"
#include "model/networks/precondition.h"
#include "train/bins.h"

enum { BLOCK = 256 }; /* coordinates at a time: their noise stays in the cache */

typedef struct perturb_job {
    const psld_perturbation *how;
    psld_phase phase;
    psld_microbatch *batch;
    atomic_int failed;
} perturb_job;

/* The constants of one sample: z = mean z_0 + factor eps. */
typedef struct sample_kernel {
    psld_gaussian exact;
    double factor[PSLD_MATRIX_SIZE]; /* with the stabiliser */
    psld_precondition network;       /* for networks of clean data */
} sample_kernel;

/* One number per variable and coordinate of a block. */
typedef double block[PSLD_MAX_K][BLOCK];

/* The states at the start: of data and auxiliary variables, as far as the kernel is given them. */
static size_t draw_start(const perturb_job *job, uint64_t sample, size_t index, size_t at, size_t count, block start)
{
    const psld_perturbation *how = job->how;
    const psld_recipe *recipe = how->recipe;
    size_t dim = how->dim, known = how->mode == PSLD_DSM ? (size_t)recipe->spec.k : 1;
    for (size_t j = 0; j < count; j++) start[0][j] = (double)job->batch->x[index * dim + at + j];
    for (size_t b = 1; b < known; b++) {
        double deviation = sqrt(recipe->spec.init[b - 1] * recipe->spec.mass[b - 1]);
        psld_random_normal(how->seed, PSLD_FOR_MOMENTUM, sample, (uint64_t)job->phase, b * dim + at, count, start[b]);
        for (size_t j = 0; j < count; j++) start[b][j] *= deviation;
    }
    return known;
}

static void store_floats(const double *from, size_t count, float *to)
{
    for (size_t j = 0; j < count; j++) to[j] = (float)from[j];
}

/* Input and target of a network of eps. */
static void store_state(const perturb_job *job, size_t index, size_t at, size_t count, block z, block noise)
{
    const psld_recipe *recipe = job->how->recipe;
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted, dim = job->how->dim;
    for (size_t a = 0; a < k; a++) store_floats(z[a], count, job->batch->z + (index * k + a) * dim + at);
    for (size_t i = 0; job->batch->target && i < predicted; i++)
        store_floats(noise[recipe->variable[i]], count, job->batch->target + (index * predicted + i) * dim + at);
    for (size_t a = 0; job->batch->eps && a < k; a++)
        store_floats(noise[a], count, job->batch->eps + (index * k + a) * dim + at);
}

/* The same for a network of clean data. */
static void store_clean(const perturb_job *job, size_t index, const psld_precondition *p, size_t at, size_t count,
                        block z, const double *x)
{
    float *in = job->batch->z + index * job->how->dim + at, *target = job->batch->target + index * job->how->dim + at;
    for (size_t j = 0; j < count; j++) {
        double u = 0;
        for (int a = 0; a < p->k; a++) u += p->input[a] * z[a][j];
        in[j] = (float)u;
        target[j] = (float)((x[j] - p->keep * u) / p->scale);
    }
}

/* Coordinates at ... at + count - 1. */
static void perturb_block(const perturb_job *job, uint64_t sample, size_t index, const sample_kernel *kernel, size_t at,
                          size_t count)
{
    const psld_perturbation *how = job->how;
    size_t k = (size_t)how->recipe->spec.k;
    block noise, start, z;
    size_t known = draw_start(job, sample, index, at, count, start);
    for (size_t b = 0; b < k; b++)
        psld_random_normal(how->seed, PSLD_FOR_NOISE, sample, (uint64_t)job->phase, b * how->dim + at, count, noise[b]);
    for (size_t a = 0; a < k; a++)
        for (size_t j = 0; j < count; j++) {
            double sum = 0;
            for (size_t b = 0; b < known; b++) sum += kernel->exact.mean[a * k + b] * start[b][j];
            for (size_t b = 0; b < k; b++) sum += kernel->factor[a * k + b] * noise[b][j];
            z[a][j] = sum;
        }
    if (how->data_deviation > 0)
        store_clean(job, index, &kernel->network, at, count, z, start[0]);
    else
        store_state(job, index, at, count, z, noise);
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
            int row = recipe->variable[i], column = recipe->variable[j];
            metric[i * predicted + j] = (float)(2 * psld_beta(recipe, t) * whole[row * k + column]);
        }
}

/* States with much more noise than DATA_SIGMA_MOST contain almost no information on the data, for any weight. */
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

static int is_uneven(const psld_perturbation *how)
{
    return how->by_noise > 0 || how->by_trace;
}

/* The plain loss of eps, where the plan has a metric all the same. */
static void weigh_plain(int predicted, float *metric)
{
    for (int i = 0; i < predicted * predicted; i++) metric[i] = i % (predicted + 1) == 0;
}

/* For networks of clean data the metric is the number gain' M gain: their error moves eps by gain. The bound on the
 * likelihood is a mean over uniform times, so other laws of the times need a weight; the other losses use the law of
 * the times without correction. */
static psld_status fill_metric(const psld_perturbation *how, double t, double time_weight, const double *inverse,
                               const double *gain, float *metric)
{
    size_t predicted = (size_t)how->recipe->predicted;
    float whole[PSLD_MATRIX_SIZE], *full = how->data_deviation > 0 ? whole : metric;
    if (how->weighting == PSLD_WEIGH_DATA)
        PSLD_TRY(weigh_data(how->recipe, t, full));
    else if (how->weighting == PSLD_WEIGH_EPS)
        weigh_plain(how->recipe->predicted, full);
    else
        weigh_likelihood(how->recipe, t, inverse, full);
    for (size_t i = 0; how->weighting == PSLD_WEIGH_LIKELIHOOD && is_uneven(how) && i < predicted * predicted; i++)
        full[i] = (float)(time_weight * (double)full[i]);
    if (full == metric) return PSLD_OK;
    double sum = 0;
    for (size_t i = 0; i < predicted * predicted; i++)
        sum += (double)whole[i] * gain[i / predicted] * gain[i % predicted];
    *metric = (float)sum;
    return PSLD_OK;
}

static void copy_clean(const perturb_job *job, size_t index)
{
    size_t k = (size_t)job->how->recipe->spec.k, dim = job->how->dim;
    for (size_t j = 0; j < k * dim; j++)
        job->batch->z[index * k * dim + j] = j < dim ? job->batch->x[index * dim + j] : 0;
    job->batch->t[index] = 0;
    job->batch->time[index] = 0;
}

/* Log t of a node, or between nodes. */
static double log_time_at(const psld_perturbation *how, double node)
{
    return log(how->t_min) * (1 - node / (PSLD_NOISE_NODES - 1));
}

psld_status psld_perturbation_tabulate(psld_perturbation *how)
{
    for (int i = 0; i < PSLD_NOISE_NODES; i++) {
        double sigma;
        PSLD_TRY(psld_recipe_sigma(how->recipe, exp(log_time_at(how, i)), &sigma));
        how->noise_at[i] = log(sigma);
    }
    return PSLD_OK;
}

/* The time in [eps, 1] with this sigma, by interpolation: accurate enough for a law of times, at a hundredth of the
 * cost of psld_recipe_time. */
static double time_of_noise(const psld_perturbation *how, double log_sigma)
{
    int low = 0, high = PSLD_NOISE_NODES - 1;
    if (!(log_sigma > how->noise_at[low])) return how->t_min;
    if (!(log_sigma < how->noise_at[high])) return 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (how->noise_at[middle] <= log_sigma)
            low = middle;
        else
            high = middle;
    }
    double part = (log_sigma - how->noise_at[low]) / (how->noise_at[high] - how->noise_at[low]);
    return exp(log_time_at(how, low + part));
}

/* Log sigma at t and its slope, as time_of_noise has them: linear in log t between nodes. */
static double log_noise_at(const psld_perturbation *how, double t, double *slope)
{
    double node = (1 - log(t) / log(how->t_min)) * (PSLD_NOISE_NODES - 1);
    int low = node < PSLD_NOISE_NODES - 2 ? (int)fmax(node, 0) : PSLD_NOISE_NODES - 2;
    double rise = how->noise_at[low + 1] - how->noise_at[low];
    *slope = rise * (PSLD_NOISE_NODES - 1) / (-log(how->t_min) * t);
    return how->noise_at[low] + (node - low) * rise;
}

/* ---- Times by the trace of the metric ---------------------------------------------------------------------------- */

/* 2 beta tr(D S^-1), times t: the density of log t, but for a factor. Variables without noise add nothing to it. */
static psld_status trace_at(const psld_recipe *recipe, double t, double *density)
{
    psld_gaussian kernel;
    double factor[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE], half[PSLD_MATRIX_SIZE], sum = 0;
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    PSLD_TRY(psld_kernel_factor(recipe, &kernel, t, factor, inverse));
    psld_matrix_multiply(k, inverse, recipe->spec.D, half);
    for (int i = 0; i < k * k; i++) sum += half[i] * inverse[i];
    *density = 2 * psld_beta(recipe, t) * sum * t;
    if (isfinite(*density) && *density > 0) return PSLD_OK;
    return psld_fail_singular(recipe, t);
}

typedef struct trace_job {
    psld_perturbation *how;
    atomic_int failed;
} trace_job;

static double trace_time(const psld_perturbation *how, double node)
{
    return exp(log(how->t_min) * (1 - node / (PSLD_TRACE_NODES - 1)));
}

static void trace_range(void *context, size_t begin, size_t end)
{
    trace_job *job = context;
    for (size_t i = begin; i < end; i++)
        if (trace_at(job->how->recipe, trace_time(job->how, (double)i), &job->how->trace_at[i]) != PSLD_OK)
            atomic_store(&job->failed, 1);
}

psld_status psld_perturbation_tabulate_trace(psld_perturbation *how)
{
    trace_job job = {.how = how};
    double step = -log(how->t_min) / (PSLD_TRACE_NODES - 1), density;
    psld_parallel(PSLD_TRACE_NODES, 8, trace_range, &job);
    for (int i = 0; atomic_load(&job.failed) && i < PSLD_TRACE_NODES; i++) /* in this thread, for its error text */
        PSLD_TRY(trace_at(how->recipe, trace_time(how, i), &density));
    double *at = how->trace_at, *before = how->trace_before;
    before[0] = 0;
    for (int i = 1; i < PSLD_TRACE_NODES; i++) before[i] = before[i - 1] + step * (at[i - 1] + at[i]) / 2;
    double whole = before[PSLD_TRACE_NODES - 1];
    for (int i = 0; i < PSLD_TRACE_NODES; i++) {
        at[i] /= whole;
        before[i] /= whole;
    }
    return PSLD_OK;
}

/* The cell of the table that log t lies in, and how far in. */
static int trace_cell(const psld_perturbation *how, double t, double *part)
{
    double node = (1 - log(t) / log(how->t_min)) * (PSLD_TRACE_NODES - 1);
    int cell = node < PSLD_TRACE_NODES - 2 ? (int)fmax(node, 0) : PSLD_TRACE_NODES - 2;
    *part = node - cell;
    return cell;
}

/* Density of t, straight in log t between nodes. */
static double trace_density(const psld_perturbation *how, double t)
{
    double part;
    int i = trace_cell(how, t, &part);
    return (how->trace_at[i] + part * (how->trace_at[i + 1] - how->trace_at[i])) / t;
}

static double trace_until(const psld_perturbation *how, double t)
{
    double part, step = -log(how->t_min) / (PSLD_TRACE_NODES - 1);
    int i = trace_cell(how, t, &part);
    double low = how->trace_at[i], rise = how->trace_at[i + 1] - low;
    return how->trace_before[i] + step * part * (low + part * rise / 2);
}

/* The time before which the part u of them lies. */
static double time_of_trace(const psld_perturbation *how, double u)
{
    int low = 0, high = PSLD_TRACE_NODES - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (how->trace_before[middle] <= u)
            low = middle;
        else
            high = middle;
    }
    double step = -log(how->t_min) / (PSLD_TRACE_NODES - 1), rest = (u - how->trace_before[low]) / step;
    double first = how->trace_at[low], rise = how->trace_at[low + 1] - first;
    double part = 2 * rest / (first + sqrt(fmax(first * first + 2 * rise * rest, 0)));
    return fmin(fmax(trace_time(how, low + part), how->t_min), 1);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* The fraction of training times up to t. */
static double part_until(const psld_perturbation *how, double t)
{
    if (t <= how->t_min) return 0;
    if (t >= 1) return 1;
    if (how->by_trace) return trace_until(how, t);
    double uniform = (t - how->t_min) / (1 - how->t_min), slope;
    if (how->by_noise <= 0) return uniform;
    double away = log_noise_at(how, t, &slope) - log(how->noise_middle), spread = how->noise_spread;
    double by_noise = spread > 0 ? 0.5 * erfc(-away / (spread * sqrt(2))) : away >= 0;
    return how->by_noise * by_noise + (1 - how->by_noise) * uniform;
}

double psld_perturbation_share(const psld_perturbation *how, int bin)
{
    if (how->clean) return bin == 0;
    if (how->process) return sqrt((bin + 1.0) / PSLD_BINS) - sqrt((double)bin / PSLD_BINS);
    return part_until(how, (bin + 1.0) / PSLD_BINS) - part_until(how, (double)bin / PSLD_BINS);
}

/* The quantile u of the training times in a bin. */
static double time_in_bin(const psld_perturbation *how, int bin, double u)
{
    double low = fmax((double)bin / PSLD_BINS, how->t_min), high = (bin + 1.0) / PSLD_BINS;
    if (!is_uneven(how)) return low + u * (high - low);
    double wanted = part_until(how, low) + u * psld_perturbation_share(how, bin);
    for (int i = 0; i < 50; i++) {
        double middle = how->by_trace ? sqrt(low * high) : 0.5 * (low + high);
        if (part_until(how, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* The times drawn are of the mixture of both laws. At the ends of the range, and
 * without a spread in its middle, the law by noise has atoms, which uniform times have not: their weight is 0. Then the
 * mean of weight f over the times drawn is the mean of f over uniform ones, whatever f. */
static double weigh_by_noise(const psld_perturbation *how, double t)
{
    double slope, away = log_noise_at(how, t, &slope) - log(how->noise_middle), spread = how->noise_spread;
    if (t <= how->t_min * (1 + 1e-9) || t >= 1 - 1e-12 || (spread == 0 && fabs(away) < 1e-9)) return 0;
    double uniform = 1 / (1 - how->t_min), noise = 0, x = spread > 0 ? away / spread : 0;
    if (spread > 0) noise = exp(-x * x / 2) / (2.50662827463100050242 * spread) * slope;
    return uniform / ((1 - how->by_noise) * uniform + how->by_noise * noise);
}

double psld_perturbation_time_weight(const psld_perturbation *how, double t)
{
    if (how->by_trace) return 1 / ((1 - how->t_min) * trace_density(how, t));
    return how->by_noise > 0 ? weigh_by_noise(how, t) : 1;
}

/* One uniform number chooses between the two laws of the time, and is then rescaled for the first of them. */
double psld_perturbation_time(const psld_perturbation *how, uint64_t sample, psld_phase phase)
{
    double u, n;
    psld_random_uniform(how->seed, PSLD_FOR_TIME, sample, (uint64_t)phase, 0, 1, &u);
    if (phase >= PSLD_PHASE_HELD_OUT) return time_in_bin(how, (int)phase - PSLD_PHASE_HELD_OUT, u);
    if (how->by_trace) return time_of_trace(how, u);
    if (u < how->by_noise) {
        psld_random_normal(how->seed, PSLD_FOR_TIME, sample, (uint64_t)phase, 1, 1, &n);
        return time_of_noise(how, log(how->noise_middle) + how->noise_spread * n);
    }
    if (how->by_noise > 0) u = (u - how->by_noise) / (1 - how->by_noise);
    return how->t_min + (1 - how->t_min) * u;
}

static int perturb_sample(const perturb_job *job, size_t index)
{
    const psld_perturbation *how = job->how;
    const psld_recipe *recipe = how->recipe;
    uint64_t sample = job->batch->first + index;
    double inverse[PSLD_MATRIX_SIZE], *t = &job->batch->t[index];
    sample_kernel kernel;
    if (how->clean) {
        copy_clean(job, index);
        return 1;
    }
    *t = psld_perturbation_time(how, sample, job->phase);
    psld_kernel(recipe, *t, how->mode, 0, &kernel.exact);
    if (psld_kernel_factor(recipe, &kernel.exact, *t, kernel.factor, inverse) != PSLD_OK) return 0;
    int is_clean = how->data_deviation > 0;
    if (is_clean && how->mode != recipe->spec.mode && /* gain belongs to the eps of the recipe itself */
        psld_recipe_factor(recipe, *t, recipe->spec.mode, NULL, inverse) != PSLD_OK)
        return 0;
    if (is_clean && psld_precondition_plan(recipe, how->data_deviation, *t, &kernel.network) != PSLD_OK) return 0;
    size_t square = is_clean ? 1 : (size_t)(recipe->predicted * recipe->predicted);
    float *metric = job->batch->metric ? job->batch->metric + index * square : NULL;
    if (metric &&
        fill_metric(how, *t, psld_perturbation_time_weight(how, *t), inverse, kernel.network.gain, metric) != PSLD_OK)
        return 0;
    job->batch->time[index] = (float)(is_clean ? kernel.network.time : *t);
    for (size_t at = 0; at < how->dim; at += BLOCK)
        perturb_block(job, sample, index, &kernel, at, how->dim - at < BLOCK ? how->dim - at : BLOCK);
    return 1;
}

static void perturb_range(void *context, size_t begin, size_t end)
{
    perturb_job *job = context;
    for (size_t i = begin; i < end; i++)
        if (!perturb_sample(job, i)) atomic_store(&job->failed, 1);
}

psld_status psld_perturb(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    perturb_job job = {.how = how, .phase = phase, .batch = batch};
    psld_parallel(batch->n, 1, perturb_range, &job);
    if (!atomic_load(&job.failed)) return PSLD_OK;
    return psld_fail(PSLD_NOT_FINITE,
                     "recipe %s: the kernel has no factor at some time above %g; a larger train.eps helps",
                     how->recipe->spec.name, how->t_min);
}
