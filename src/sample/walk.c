#include "sample/walk.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/threads.h"
#include "sample/denoiser.h"
#include "sample/inpaint.h"
#include "sample/multistep.h"

/* ---- The affine primitive ---------------------------------------------------------------------------------------- */

enum { CHUNK = 256 }; /* coordinates at a time: k rows of state, eps and noise stay in the first cache */

typedef struct affine_job {
    const psld_walk *walk;
    const psld_affine *affine;
    enum psld_purpose purpose;
    uint64_t step;
    const double *base, *z;
    double *out;
    int draws[PSLD_MAX_K]; /* whether variable b's noise is used */
    int any_noise;
} affine_job;

/* Adds matrix (rows x columns) times `in` to `out`: both hold a row of `width` numbers for each variable. */
static void add_product(size_t rows, size_t columns, const double *matrix, const double *in, size_t in_stride,
                        size_t width, double out[][CHUNK])
{
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < columns; b++) {
            double f = matrix[a * columns + b];
            if (f == 0) continue;
            const double *row = in + b * in_stride;
            for (size_t j = 0; j < width; j++) out[a][j] += f * row[j];
        }
}

/* Numbers first ... first + count - 1 of a sample's noise. */
static void draw_numbers(const affine_job *job, uint64_t sample, size_t first, size_t count, double *out)
{
    const psld_sample_options *options = job->walk->options;
    if (options->noise && job->purpose == PSLD_FOR_STEP)
        options->noise(options->noise_user, sample, job->step, first, count, out);
    else
        psld_random_normal(options->seed, job->purpose, sample, job->step, first, count, out);
}

/* Noise of coordinates begin ... begin + width - 1 for each variable. */
static void draw_noise(const affine_job *job, uint64_t sample, size_t begin, size_t width, double noise[][CHUNK])
{
    size_t k = job->walk->k, dim = job->walk->dim;
    for (size_t b = 0; b < k; b++)
        if (job->draws[b]) draw_numbers(job, sample, b * dim + begin, width, noise[b]);
}

static void affine_state(const affine_job *job, size_t i)
{
    const psld_walk *walk = job->walk;
    size_t k = walk->k, dim = walk->dim;
    const double *z = job->z + i * k * dim, *eps = walk->eps + i * walk->predicted * dim;
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
        add_product(k, walk->predicted, job->affine->eps, eps + begin, dim, width, sum);
        if (job->any_noise) {
            draw_noise(job, walk->first + i, begin, width, noise);
            add_product(k, k, job->affine->noise, noise[0], CHUNK, width, sum);
        }
        for (size_t a = 0; a < k; a++) memcpy(job->out + (i * k + a) * dim + begin, sum[a], width * sizeof(double));
    }
}

/* Several small states side by side, so that rows are long enough to be worth a loop: row a of state g begins at
 * [a][g dim]. */
static void gather(size_t rows, size_t dim, size_t count, const double *states, double side_by_side[][CHUNK])
{
    for (size_t g = 0; g < count; g++)
        for (size_t a = 0; a < rows; a++)
            for (size_t j = 0; j < dim; j++) side_by_side[a][g * dim + j] = *states++;
}

static void scatter(size_t rows, size_t dim, size_t count, double side_by_side[][CHUNK], double *states)
{
    for (size_t g = 0; g < count; g++)
        for (size_t a = 0; a < rows; a++)
            for (size_t j = 0; j < dim; j++) *states++ = side_by_side[a][g * dim + j];
}

/* The same sums in the same order as in affine_state, for states i ... i + count - 1. */
static void affine_group(const affine_job *job, size_t i, size_t count)
{
    const psld_walk *walk = job->walk;
    size_t k = walk->k, dim = walk->dim, state = k * dim, width = count * dim;
    double sum[PSLD_MAX_K][CHUNK], in[PSLD_MAX_K][CHUNK], noise[CHUNK];
    if (job->base) gather(k, dim, count, job->base + i * state, sum);
    for (size_t a = 0; !job->base && a < k; a++) memset(sum[a], 0, width * sizeof(double));
    gather(k, dim, count, job->z + i * state, in);
    add_product(k, k, job->affine->state, in[0], CHUNK, width, sum);
    gather(walk->predicted, dim, count, walk->eps + i * walk->predicted * dim, in);
    add_product(k, walk->predicted, job->affine->eps, in[0], CHUNK, width, sum);
    if (job->any_noise) {
        for (size_t g = 0; g < count; g++) draw_numbers(job, walk->first + i + g, 0, state, noise + g * state);
        gather(k, dim, count, noise, in);
        add_product(k, k, job->affine->noise, in[0], CHUNK, width, sum);
    }
    scatter(k, dim, count, sum, job->out + i * state);
}

static void affine_range(void *context, size_t begin, size_t end)
{
    const affine_job *job = context;
    size_t group = CHUNK / (job->walk->k * job->walk->dim);
    if (group < 2)
        for (size_t i = begin; i < end; i++) affine_state(job, i);
    else
        for (size_t i = begin; i < end; i += group) affine_group(job, i, end - i < group ? end - i : group);
}

void psld_walk_affine(const psld_walk *walk, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                      const double *base, const double *z, double *out)
{
    affine_job job = {walk, affine, purpose, step, base, z, out, {0}, 0};
    for (size_t i = 0; i < walk->k * walk->k; i++)
        if (affine->noise[i] != 0) job.draws[i % walk->k] = job.any_noise = 1;
    psld_parallel(walk->count, 2048 / (walk->k * walk->dim) + 1, affine_range, &job);
}

void psld_affine_identity(const psld_recipe *recipe, psld_affine *affine)
{
    memset(affine, 0, sizeof *affine);
    psld_matrix_identity(recipe->spec.k, affine->state);
}

/* s = -inverse' eps, of which only the predicted variables' eps are known. They suffice: inverse is triangular in
 * `order` and they are its end, so the scores of the noisy variables, the only ones that weight picks, contain no
 * other. The factor is that of the kernel that eps belongs to (denoiser.h); the score is the same for both. */
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
    psld_reverse_linear(recipe, linear);
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

psld_status psld_affine_clean(const psld_recipe *recipe, int exact, double t, psld_affine *affine)
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
            affine->state[a * k + b] = variance * gain[a * k + b]; /* regression of m_0 on z - mu x_0 */
            clean -= variance * gain[a * k + b] * kernel.mean[b * k];
        }
        for (int b = 0; b < k; b++) affine->state[a * k + b] += clean * denoiser.state[b];
        for (int c = 0; c < predicted; c++) affine->eps[a * predicted + c] = clean * denoiser.eps[c];
    }
    return PSLD_OK;
}

/* ---- Evaluating the source --------------------------------------------------------------------------------------- */

psld_status psld_walk_predict_each(psld_walk *walk, size_t n, const double *z)
{
    size_t batch = walk->options->batch, predicted = walk->predicted * walk->dim;
    for (size_t begin = 0; begin < n; begin += batch) {
        size_t now = n - begin < batch ? n - begin : batch;
        PSLD_TRY(psld_source_predict(walk->source, now, walk->dim, z + begin * walk->k * walk->dim, walk->t + begin,
                                     walk->eps + begin * predicted));
    }
    return PSLD_OK;
}

psld_status psld_walk_predict(psld_walk *walk, const double *z, double t)
{
    for (size_t i = 0; i < walk->count; i++) walk->t[i] = t;
    PSLD_TRY(psld_walk_predict_each(walk, walk->count, z));
    return psld_walk_watch(walk, 0, walk->count, t, z, walk->eps);
}

psld_status psld_walk_watch(const psld_walk *walk, size_t begin, size_t count, double t, const double *z,
                            const double *eps)
{
    const psld_sample_options *o = walk->options;
    uint64_t before = psld_fail_count();
    if (!o->watch) return PSLD_OK;
    return psld_fail_callback("watch", before,
                              o->watch(o->watch_user, walk->first + begin, count, walk->dim, t, z, eps));
}

psld_status psld_single_take(psld_walk *walk, uint64_t index, const void *table)
{
    const psld_single *step = table;
    PSLD_TRY(psld_walk_predict(walk, walk->z, step->t));
    psld_walk_affine(walk, &step->move, PSLD_FOR_STEP, index, NULL, walk->z, walk->z);
    return PSLD_OK;
}

psld_status psld_walk_report(const psld_walk *walk, double fraction)
{
    /* a thousand units a sample are fine enough for any display */
    uint64_t here = (uint64_t)(fraction * 1000 * (double)walk->count);
    return psld_progress(walk->options->progress, walk->options->progress_user, walk->done_before + here, walk->total);
}

/* ---- A plan for the whole walk ----------------------------------------------------------------------------------- */

typedef struct route {
    const psld_sampler *sampler;
    int upward; /* from data to noise */
    int steps, repeats;
    int truncated;           /* the last step has one evaluation fewer: see psld_sampler */
    double *times;           /* [steps + 1] */
    char *tables;            /* [steps][sampler->table_size] */
    psld_affine *correctors; /* [steps], at the time that a step reaches */
    psld_affine last;        /* the denoising step */
} route;

static void release_route(route *r)
{
    psld_release(r->times);
    psld_release(r->tables);
    psld_release(r->correctors);
}

/* How many steps a budget buys. A sampler of two evaluations a step may end with a step of one. */
static psld_status count_steps(const psld_sample_options *options, route *r)
{
    int budget = options->nfe - (options->denoise != 0), cost = r->sampler->evaluations + options->corrector;
    r->repeats = options->inpainting ? options->inpainting->repeats : 1;
    r->steps = budget / cost;
    r->truncated = r->sampler->evaluations > 1 && r->repeats == 1 && budget - r->steps * cost >= cost - 1;
    r->steps += r->truncated;
    if (r->steps >= 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "nfe: %s needs at least %d evaluations here, found %d", r->sampler->name,
                     (options->denoise != 0) + cost - (r->sampler->evaluations > 1), options->nfe);
}

static void reverse(double *numbers, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        double kept = numbers[i];
        numbers[i] = numbers[count - 1 - i];
        numbers[count - 1 - i] = kept;
    }
}

static psld_status plan_steps(const psld_recipe *recipe, const psld_sample_options *options, int exact, route *r)
{
    PSLD_TRY(count_steps(options, r));
    size_t steps = (size_t)r->steps;
    r->times = psld_alloc(steps + 1, sizeof *r->times);
    r->tables = r->times ? psld_alloc(steps, r->sampler->table_size) : NULL;
    r->correctors = r->tables ? psld_alloc(options->corrector ? steps : 0, sizeof *r->correctors) : NULL;
    if (!r->correctors) return PSLD_NO_MEMORY;
    PSLD_TRY(psld_grid_times(recipe, options->grid, options->rho, r->steps, options->eps, r->times));
    if (r->upward) reverse(r->times, steps + 1);
    for (size_t i = 0; options->corrector && i < steps; i++)
        PSLD_TRY(psld_corrector_plan(recipe, r->times[i + 1], options->corrector_size, &r->correctors[i]));
    if (r->sampler->prepare) {
        psld_path path = {recipe, options, exact, r->times, r->steps, r->truncated};
        return r->sampler->prepare(&path, r->tables);
    }
    for (size_t i = 0; i < steps; i++)
        PSLD_TRY(r->sampler->plan(recipe, r->times[i], r->times[i + 1], r->truncated && i + 1 == steps,
                                  r->tables + i * r->sampler->table_size));
    return PSLD_OK;
}

static psld_status plan_route(const psld_recipe *recipe, const psld_sample_options *options, int exact, route *r)
{
    PSLD_TRY(psld_inpaint_check(options->inpainting, r->sampler));
    if (!r->sampler->run) PSLD_TRY(plan_steps(recipe, options, exact, r));
    if (r->sampler->predicts_data) return psld_affine_clean(recipe, exact, options->eps, &r->last);
    return psld_affine_euler(recipe, options->eps, options->eps, r->sampler->deterministic ? 1 : 2, &r->last);
}

/* ---- Walking ----------------------------------------------------------------------------------------------------- */

/* Step i of the route; `visit` counts all steps that a sample has taken, those taken again included. */
static psld_status take_step(psld_walk *walk, const route *r, int i, uint64_t visit)
{
    uint64_t correctors = (uint64_t)walk->options->corrector, draw = 1 + visit * (1 + correctors);
    double from = r->times[i], t = r->times[i + 1];
    PSLD_TRY(r->sampler->step(walk, visit, r->tables + (size_t)i * r->sampler->table_size));
    psld_walk_inpaint(walk, 0, walk->count, from, t, draw, walk->z);
    for (uint64_t c = 0; c < correctors; c++) {
        PSLD_TRY(psld_walk_predict(walk, walk->z, t));
        psld_walk_affine(walk, &r->correctors[i], PSLD_FOR_CORRECTOR, visit * correctors + c, NULL, walk->z, walk->z);
        psld_walk_inpaint(walk, 0, walk->count, from, t, draw + 1 + c, walk->z);
    }
    return PSLD_OK;
}

static psld_status take_steps(psld_walk *walk, const route *r)
{
    int jump = r->repeats > 1 ? walk->options->inpainting->jump : r->steps, all = r->steps * r->repeats;
    uint64_t visit = 0, jumps = 0;
    for (int begin = 0, end; begin < r->steps; begin = end) {
        end = r->steps - begin < jump ? r->steps : begin + jump;
        for (int pass = 0; pass < r->repeats; pass++) {
            if (pass > 0) PSLD_TRY(psld_walk_diffuse(walk, r->times[end], r->times[begin], jumps++));
            for (int i = begin; i < end; i++) {
                PSLD_TRY(take_step(walk, r, i, visit++));
                PSLD_TRY(psld_walk_report(walk, (double)visit / all));
            }
        }
    }
    walk->evaluations += (uint64_t)(all * (r->sampler->evaluations + walk->options->corrector) - r->truncated);
    walk->groups++;
    return PSLD_OK;
}

static psld_status check_states(const psld_walk *walk)
{
    for (size_t i = 0; i < walk->count * walk->k * walk->dim; i++)
        if (!isfinite(walk->z[i]))
            return psld_fail(PSLD_NOT_FINITE,
                             "sample %llu left the range of numbers: try more steps or another sampler",
                             (unsigned long long)(walk->first + i / (walk->k * walk->dim)));
    return PSLD_OK;
}

static psld_status walk_batch(psld_walk *walk, const route *r)
{
    double eps = walk->options->eps;
    psld_walk_inpaint(walk, 0, walk->count, 1, 1, 0, walk->z);
    PSLD_TRY(r->sampler->run ? r->sampler->run(walk) : take_steps(walk, r));
    if (r->sampler->run) psld_walk_inpaint(walk, 0, walk->count, eps, eps, 0, walk->z);
    if (walk->options->denoise) {
        PSLD_TRY(psld_walk_predict(walk, walk->z, eps));
        psld_walk_affine(walk, &r->last, PSLD_FOR_STEP, 0, NULL, walk->z, walk->z);
        psld_walk_inpaint(walk, 0, walk->count, eps, 0, 0, walk->z);
    }
    return check_states(walk);
}

/* The stationary law, variable by variable. */
static void draw_start(const psld_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        double *z = walk->z + i * walk->k * walk->dim;
        psld_random_normal(walk->options->seed, PSLD_FOR_START, walk->first + i, 0, 0, walk->k * walk->dim, z);
        for (size_t a = 1; a < walk->k; a++)
            for (size_t j = 0; j < walk->dim; j++) z[a * walk->dim + j] *= walk->recipe->deviation[a];
    }
}

size_t psld_walk_batch(size_t count, size_t batch, size_t group)
{
    if (batch >= count || group >= count) return count; /* before any sum, which might wrap */
    if (group < 1) group = 1;
    batch = ((batch - (batch > 0)) / group + 1) * group;
    return batch < count ? batch : count;
}

static psld_status allocate_walk(psld_walk *walk, size_t batch, const psld_sampler *sampler)
{
    size_t state = walk->k * walk->dim;
    walk->eps = psld_alloc(batch, walk->predicted * walk->dim * sizeof(double));
    walk->t = walk->eps ? psld_alloc(batch, sizeof(double)) : NULL;
    walk->work = walk->t ? psld_alloc(batch * (size_t)sampler->work_states, state * sizeof(double)) : NULL;
    return walk->work ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status walk_all(psld_walk *walk, const route *r, uint64_t first, size_t count, const double *start,
                            double *z)
{
    size_t group = r->sampler->run ? walk->options->ode_group : 1, state = walk->k * walk->dim;
    size_t batch = psld_walk_batch(count, walk->options->batch, group);
    PSLD_TRY(allocate_walk(walk, batch, r->sampler));
    walk->total = (uint64_t)count * 1000;
    PSLD_TRY(psld_walk_report(walk, 0));
    for (size_t begin = 0; begin < count; begin += batch) {
        walk->first = first + begin;
        walk->count = count - begin < batch ? count - begin : batch;
        walk->z = z + begin * state;
        walk->done_before = (uint64_t)begin * 1000;
        if (start)
            memmove(walk->z, start + begin * state, walk->count * state * sizeof(double));
        else
            draw_start(walk);
        PSLD_TRY(walk_batch(walk, r));
        PSLD_TRY(psld_walk_report(walk, 1));
    }
    return PSLD_OK;
}

/* Starting from the stationary law is an approximation; where it is a bad one, say so. */
void psld_sample_warn(const psld_recipe *recipe)
{
    double distance;
    if (psld_recipe_distance(recipe, 1, &distance) != PSLD_OK || distance <= PSLD_DISTANCE_LIMIT) return;
    psld_log(
        PSLD_LOG_WARNING,
        "recipe %s is still %.2g nats a coordinate from stationary at t = 1, where sampling starts as if it were not: "
        "raise beta",
        recipe->spec.name, distance);
}

/* Whether a walk with complete options may ask this source. */
static psld_status check_source(const psld_recipe *recipe, const psld_source *source,
                                const psld_sample_options *options)
{
    if (options->eps < source->earliest)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "eps: the model can be asked for times of recipe %s from %.4g on, found %.4g: end earlier, by "
                         "eps or end_sigma",
                         recipe->spec.name, source->earliest, options->eps);
    return psld_source_check(source, recipe);
}

psld_status psld_sample_check(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options)
{
    psld_sample_options resolved;
    route r = {0};
    PSLD_TRY(psld_sample_resolve(recipe, options, &r.sampler, &resolved));
    PSLD_TRY(check_source(recipe, source, &resolved));
    psld_status status = plan_route(recipe, &resolved, source->exact, &r);
    release_route(&r);
    return status;
}

static psld_status check_walk(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options,
                              size_t count, size_t dim)
{
    if (count < 1 || dim < 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample of at least one number");
    PSLD_TRY(psld_check_doubles("samples", count, (size_t)recipe->spec.k, dim));
    return check_source(recipe, source, options);
}

/* A walk with options that are complete, along a route that knows its sampler and direction. */
static psld_status walk_route(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                              route *r, uint64_t first, size_t count, size_t dim, const double *start, double *z,
                              psld_sample_cost *cost)
{
    psld_walk walk = {.recipe = recipe, .source = source, .options = options, .dim = dim};
    walk.k = (size_t)recipe->spec.k;
    walk.predicted = (size_t)recipe->predicted;
    psld_status status = plan_route(recipe, options, source->exact, r);
    if (status == PSLD_OK) status = walk_all(&walk, r, first, count, start, z);
    cost->evaluations += walk.evaluations;
    cost->groups += walk.groups;
    psld_release(walk.eps);
    psld_release(walk.t);
    psld_release(walk.work);
    release_route(r);
    return status;
}

psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                uint64_t first, size_t count, size_t dim, const double *start, double *z,
                                psld_sample_cost *cost)
{
    psld_sample_options resolved;
    psld_source *clipped = NULL;
    route r = {0};
    PSLD_TRY(psld_sample_resolve(recipe, options, &r.sampler, &resolved));
    PSLD_TRY(check_walk(recipe, source, &resolved, count, dim));
    if (options->clip > 0 || options->threshold > 0)
        PSLD_TRY(psld_source_clip(source, recipe, options->clip > 0 ? options->clip : 1, options->threshold, &clipped));
    psld_status status =
        walk_route(recipe, clipped ? clipped : source, &resolved, &r, first, count, dim, start, z, cost);
    psld_source_free(clipped);
    return status;
}

psld_status psld_encode(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                        uint64_t first, size_t count, size_t dim, const double *x, double *z, uint64_t *nfe)
{
    psld_sample_options upwards = *options, resolved;
    psld_sample_cost cost = {0};
    route r = {.upward = 1};
    upwards.denoise = 0;
    upwards.corrector = 0;
    upwards.inpainting = NULL;
    PSLD_TRY(psld_sample_resolve(recipe, &upwards, &r.sampler, &resolved));
    if (!r.sampler->reversible)
        return psld_fail(PSLD_BAD_ARGUMENT, "sampler: %s cannot walk from data to noise", r.sampler->name);
    PSLD_TRY(check_walk(recipe, source, &resolved, count, dim));
    PSLD_TRY(psld_encode_start(recipe, source->exact, resolved.eps, resolved.seed, first, count, dim, x, z));
    PSLD_TRY(walk_route(recipe, source, &resolved, &r, first, count, dim, z, z, &cost));
    if (nfe) *nfe = psld_sample_nfe(&resolved, &cost);
    return PSLD_OK;
}

uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost)
{
    return (cost->evaluations + cost->groups - 1) / cost->groups + (options->denoise != 0);
}

psld_status psld_sample(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                        uint64_t first, size_t count, size_t dim, const double *start, double *z, uint64_t *nfe)
{
    psld_sample_cost cost = {0};
    if (!start) psld_sample_warn(recipe);
    PSLD_TRY(psld_sample_counted(recipe, source, options, first, count, dim, start, z, &cost));
    if (nfe) *nfe = psld_sample_nfe(options, &cost);
    return PSLD_OK;
}
