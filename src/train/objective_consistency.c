/* A network that draws in one evaluation: along a path of the probability flow it predicts the same clean data f(x_0 +
 * sigma n, sigma) for every noise sigma. It is tuned without a teacher (easy consistency tuning): the target at sigma
 * is its own prediction, without gradient, at less noise r of the same x_0, in the same direction n,
 *     loss = ( sqrt(|f(x_0 + sigma n, sigma) - f(x_0 + r n, r)|^2 + c^2) - c ) / (sigma - r),     f(., 0) = x_0.
 * At first r is 0 for most sigma, and the target is the clean data; then r moves closer to sigma from stage to stage:
 *     r = sigma (1 - q^-(stage + 1) (1 + 8 sigmoid(-sigma / (2 deviation)))), or 0 where that is negative.
 *
 * This is in the coordinate y = x_0 + sigma n of collapsed_frame.h, which every recipe has. A network of clean data is
 * given y. One of eps is given z = mean x_0 + S (n, xi), S being the collapsed frame, with the same xi on both sides.
 * In both cases the clean data are linear in the network's output:
 *     f = keep . input + gain . out.
 * So the squared error of f is e' gain gain' e, a loss with a metric, where e is the error of the output. The mean over
 * the numbers of a sample is taken here, not the sum: the loss is the one above divided by the root of the
 * dimension. */
#include <math.h>
#include <stdatomic.h>

#include "base/random.h"
#include "base/threads.h"
#include "sample/collapsed_frame.h"
#include "sample/sources/denoiser.h"
#include "train/objective.h"

enum { BLOCK = 256 }; /* coordinates at a time */

/* The maps between data with a noise and the network's input and output. */
typedef struct consistency_side {
    double sigma, time;
    size_t rows, outputs; /* numbers per coordinate in the network's input and in its output */
    double mean[PSLD_MAX_K], frame[PSLD_MATRIX_SIZE]; /* input = mean x_0 + frame noise */
    double keep[PSLD_MAX_K], gain[PSLD_MAX_K];
} consistency_side;

/* Both sides of a sample. at_data: less.sigma is 0, and its other fields are not set. */
typedef struct consistency_pair {
    double t;
    consistency_side more, less;
    int at_data;
} consistency_pair;

static void plan_clean_side(const psld_perturbation *how, double sigma, consistency_side *side)
{
    psld_scaling s;
    psld_conditioning ours = psld_conditioning_ours(how->data_deviation);
    psld_conditioning_within(&ours, sigma, &s);
    *side = (consistency_side){.sigma = sigma, .time = s.time, .rows = 1, .outputs = 1};
    side->mean[0] = 1 / s.divide;
    side->frame[0] = sigma / s.divide;
    side->keep[0] = s.keep;
    side->gain[0] = s.scale;
}

static psld_status plan_state_side(const psld_perturbation *how, double t, consistency_side *side)
{
    psld_collapsed_frame frame;
    psld_denoiser denoiser;
    PSLD_TRY(psld_collapsed_frame_plan(how->recipe, 0, t, &frame));
    PSLD_TRY(psld_denoiser_plan(how->recipe, 0, t, &denoiser));
    *side = (consistency_side){.sigma = frame.sigma, .time = t};
    side->rows = (size_t)denoiser.k;
    side->outputs = (size_t)denoiser.predicted;
    psld_matrix_copy(denoiser.k, frame.frame, side->frame);
    for (int a = 0; a < denoiser.k; a++) {
        side->mean[a] = frame.frame[a * denoiser.k] / frame.sigma;
        side->keep[a] = denoiser.state[a];
    }
    for (int i = 0; i < denoiser.predicted; i++) side->gain[i] = denoiser.eps[i];
    return PSLD_OK;
}

/* Held-out samples are measured at the last stage. */
static int64_t stage_of(const psld_consistency *c, psld_phase phase, uint64_t sample)
{
    uint64_t step = sample / c->batch, stages = (uint64_t)c->stages;
    if (phase != PSLD_PHASE_TRAIN || step >= c->steps) return c->stages - 1;
    return (int64_t)((long double)step * (long double)stages / (long double)c->steps);
}

double psld_consistency_less(const psld_consistency *c, int64_t stage, double sigma)
{
    double step = 1 + 8 / (1 + exp(sigma / (2 * c->deviation)));
    return fmax(0, sigma * (1 - pow(c->q, -(double)(stage + 1)) * step));
}

static psld_status plan_pair(const psld_perturbation *how, psld_phase phase, uint64_t sample, consistency_pair *pair)
{
    psld_collapsed_frame frame;
    int is_clean = how->data_deviation > 0;
    pair->t = psld_perturbation_time(how, sample, phase);
    PSLD_TRY(psld_collapsed_frame_plan(how->recipe, 0, pair->t, &frame));
    double less = psld_consistency_less(&how->consistency, stage_of(&how->consistency, phase, sample), frame.sigma);
    pair->at_data = !(less > exp(how->noise_at[0]));
    if (is_clean) {
        plan_clean_side(how, frame.sigma, &pair->more);
        plan_clean_side(how, pair->at_data ? frame.sigma : less, &pair->less);
    } else {
        double t = pair->t; /* exact: a table's error may be larger than the distance of both sides in late stages */
        if (!pair->at_data) PSLD_TRY(psld_recipe_time(how->recipe, less, &t));
        PSLD_TRY(plan_state_side(how, pair->t, &pair->more));
        PSLD_TRY(plan_state_side(how, t, &pair->less));
    }
    if (pair->at_data) pair->less.sigma = 0;
    if (pair->less.sigma < pair->more.sigma) return PSLD_OK;
    return psld_fail(PSLD_NOT_FINITE, "recipe %s: its effective noise does not increase from t = %g on",
                     how->recipe->spec.name, pair->t);
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

typedef struct consistency_job {
    const psld_perturbation *how;
    psld_phase phase;
    psld_microbatch *batch;
    psld_status (*body)(const struct consistency_job *job, const consistency_pair *pair, size_t index);
    atomic_int failed;
} consistency_job;

static void fill_side(const consistency_side *side, size_t dim, size_t at, size_t count, const float *x,
                      double noise[][BLOCK], float *input)
{
    for (size_t a = 0; a < side->rows; a++)
        for (size_t j = 0; j < count; j++) {
            double sum = side->mean[a] * (double)x[at + j];
            for (size_t b = 0; b < side->rows; b++) sum += side->frame[a * side->rows + b] * noise[b][j];
            input[a * dim + at + j] = (float)sum;
        }
}

static void fill_loss(const consistency_job *job, const consistency_pair *pair, size_t index)
{
    psld_microbatch *b = job->batch;
    size_t outputs = pair->more.outputs;
    double gap = pair->more.sigma - pair->less.sigma;
    const double *gain = pair->more.gain;
    for (size_t i = 0; i < outputs * outputs; i++)
        b->metric[index * outputs * outputs + i] =
            (float)((double)outputs * gain[i / outputs] * gain[i % outputs] / (gap * gap));
    b->soft[index] = (float)(job->how->consistency.huber / gap);
}

static psld_status fill_sample(const consistency_job *job, const consistency_pair *pair, size_t index)
{
    psld_microbatch *b = job->batch;
    const psld_perturbation *how = job->how;
    size_t dim = how->dim, rows = pair->more.rows;
    const float *x = b->x + index * dim;
    double noise[PSLD_MAX_K][BLOCK];
    b->t[index] = pair->t;
    b->time[index] = (float)pair->more.time;
    b->other_time[index] = (float)pair->less.time;
    for (size_t at = 0; at < dim; at += BLOCK) {
        size_t count = dim - at < BLOCK ? dim - at : BLOCK;
        for (size_t a = 0; a < rows; a++)
            psld_random_normal(how->seed, PSLD_FOR_NOISE, b->first + index, (uint64_t)job->phase, a * dim + at, count,
                               noise[a]);
        fill_side(&pair->more, dim, at, count, x, noise, b->z + index * rows * dim);
        fill_side(&pair->less, dim, at, count, x, noise, b->other_z + index * rows * dim);
    }
    fill_loss(job, pair, index);
    return PSLD_OK;
}

/* Where the smaller noise is 0, f is x_0 itself. */
static double clean_value(const consistency_pair *pair, size_t dim, size_t j, const float *x, const float *input,
                          const float *out)
{
    double sum = 0;
    if (pair->at_data) return (double)x[j];
    for (size_t a = 0; a < pair->less.rows; a++) sum += pair->less.keep[a] * (double)input[a * dim + j];
    for (size_t i = 0; i < pair->less.outputs; i++) sum += pair->less.gain[i] * (double)out[i * dim + j];
    return sum;
}

/* Of all outputs that give these clean data, the one that is a multiple of gain. */
static psld_status aim_sample(const consistency_job *job, const consistency_pair *pair, size_t index)
{
    psld_microbatch *b = job->batch;
    size_t dim = job->how->dim, rows = pair->more.rows, outputs = pair->more.outputs;
    const float *z = b->z + index * rows * dim;
    double square = 0;
    for (size_t i = 0; i < outputs; i++) square += pair->more.gain[i] * pair->more.gain[i];
    for (size_t j = 0; j < dim; j++) {
        double rest = clean_value(pair, dim, j, b->x + index * dim, b->other_z + index * rows * dim,
                                  b->other + index * outputs * dim);
        for (size_t a = 0; a < rows; a++) rest -= pair->more.keep[a] * (double)z[a * dim + j];
        for (size_t i = 0; i < outputs; i++)
            b->target[(index * outputs + i) * dim + j] = (float)(rest * pair->more.gain[i] / square);
    }
    return PSLD_OK;
}

static psld_status run_one(const consistency_job *job, size_t index)
{
    consistency_pair pair;
    PSLD_TRY(plan_pair(job->how, job->phase, job->batch->first + index, &pair));
    return job->body(job, &pair, index);
}

static void run_range(void *context, size_t begin, size_t end)
{
    consistency_job *job = context;
    for (size_t i = begin; i < end; i++)
        if (run_one(job, i) != PSLD_OK) atomic_store(&job->failed, 1);
}

static psld_status run_samples(consistency_job *job)
{
    psld_status status = PSLD_OK;
    psld_parallel(job->batch->n, 1, run_range, job);
    if (!atomic_load(&job->failed)) return PSLD_OK;
    for (size_t i = 0; i < job->batch->n && status == PSLD_OK; i++)
        status = run_one(job, i); /* repeated in this thread, for its error text */
    return status;
}

static psld_status consistency_fill(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    consistency_job job = {.how = how, .phase = phase, .batch = batch, .body = fill_sample};
    if (how->classes) psld_objective_fill_labels(how, phase, batch);
    return run_samples(&job);
}

static psld_status consistency_aim(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    consistency_job job = {.how = how, .phase = phase, .batch = batch, .body = aim_sample};
    return run_samples(&job);
}

/* ---- The objective ----------------------------------------------------------------------------------------------- */

static size_t consistency_target_size(const psld_model *model)
{
    return psld_model_size(model) * psld_objective_variables(model);
}

static void consistency_set_options(const psld_settings *settings, const psld_model *model,
                                    psld_trainer_options *options)
{
    (void)settings;
    options->power = 2;
    options->metric = (int)psld_objective_variables(model);
    options->root = 1;
}

static void consistency_judge(const psld_settings *settings, const psld_model *model, psld_microbatch *b)
{
    size_t dim = psld_model_size(model), variables = psld_objective_variables(model);
    (void)settings;
    for (size_t i = 0; i < b->n; i++) {
        double square = psld_objective_error(b, i, dim, variables, 2), soft = (double)b->soft[i];
        b->loss[i] = square > 0 ? (float)(square / (sqrt(square + soft * soft) + soft)) : 0;
    }
}

const psld_objective psld_objective_consistency = {
    .name = "consistency network",
    .prefix = "score_fn.",
    .set_options = consistency_set_options,
    .target_size = consistency_target_size,
    .fill = consistency_fill,
    .aim = consistency_aim,
    .judge = consistency_judge,
};
