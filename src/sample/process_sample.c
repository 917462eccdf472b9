#include "sample/process_sample.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sized.h"
#include "process/process_run.h"
#include "sample/options.h"
#include "sample/samplers/dormand_prince.h"
#include "sample/time_grid.h"

enum { DEFAULT_NFE = 250, DEFAULT_BATCH = 4096 };
#define DEFAULT_EPS       1e-3
#define DEFAULT_TOLERANCE 1e-5

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* Options that only processes of matrices have. */
static psld_status check_meaning(const psld_sample_options *o)
{
    const struct {
        int set;
        const char *name;
    } rows[] = {{o->order > 0, "order"},
                {o->eta != PSLD_UNSET, "eta"},
                {o->detail != PSLD_UNSET, "detail"},
                {o->end_sigma != PSLD_UNSET && o->end_sigma != 0, "end_sigma"},
                {o->clip != PSLD_UNSET && o->clip != 0, "clip"},
                {o->threshold != PSLD_UNSET && o->threshold != 0, "threshold"},
                {o->corrector > 0, "corrector"},
                {o->noise != NULL, "noise"},
                {o->watch != NULL, "watch"},
                {o->inpainting != NULL, "inpainting"},
                {o->labels != NULL, "labels"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].set)
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: has no meaning for a recipe with formulas", rows[i].name);
    return PSLD_OK;
}

psld_status psld_process_options_complete(const psld_process *process, psld_sample_options *o)
{
    (void)process;
    PSLD_TRY(check_meaning(o));
    if (!o->sampler) o->sampler = "em";
    int adaptive = strcmp(o->sampler, "ode") == 0;
    if (!adaptive && strcmp(o->sampler, "em") != 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "sampler: expected em or ode for a recipe with formulas, found \"%s\"",
                         o->sampler);
    if (!o->grid) o->grid = "quadratic";
    const psld_grid_info *grid = psld_grid_is_list(o->grid, &(int){0}) ? NULL : psld_grid_find(o->grid);
    if (grid && grid->in_sigma)
        return psld_fail(
            PSLD_BAD_ARGUMENT,
            "grid: a recipe with formulas has no effective noise; expected uniform, quadratic or sqrt, found "
            "\"%s\"",
            o->grid);
    PSLD_FILL_ZERO(o->nfe, DEFAULT_NFE);
    PSLD_FILL_ZERO(o->eps, DEFAULT_EPS);
    PSLD_FILL_ZERO(o->tolerance, DEFAULT_TOLERANCE);
    PSLD_FILL_UNSET(o->denoise, 1);
    PSLD_FILL_ZERO(o->ode_group, 16);
    PSLD_FILL_ZERO(o->batch, DEFAULT_BATCH);
    if (!(o->eps > 0 && o->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eps: expected a time in (0, 1), found %g", o->eps);
    if (!(o->tolerance > 0)) return psld_fail(PSLD_BAD_ARGUMENT, "tolerance: expected a positive number");
    if (o->batch < 1 || o->ode_group < 1) return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected at least 1");
    if (!adaptive && o->nfe < 1 + (o->denoise != 0))
        return psld_fail(PSLD_BAD_ARGUMENT, "nfe: em needs at least %d evaluations here, found %d",
                         1 + (o->denoise != 0), o->nfe);
    return PSLD_OK;
}

/* ---- A batch ----------------------------------------------------------------------------------------------------- */

typedef struct backward {
    const psld_process *process;
    psld_score_fn score;
    void *user;
    const psld_sample_options *options;
    uint64_t first;
    size_t count, n;
    double *z, *s, *t; /* [count][n], [count][noisy], [count] */
    uint64_t *sample;
    double *slope;          /* [count][n]: of the flow */
    size_t before, samples; /* of earlier batches, and in all */
} backward;

/* Scores of `count` states, whose times are in b->t. */
static psld_status ask_scores(backward *b, size_t count, const double *z)
{
    uint64_t before = psld_fail_count();
    psld_states states = PSLD_STATES(count, (size_t)b->process->data, z, b->t);
    states.sample = b->sample;
    return psld_fail_callback("score", before, b->score(b->user, &states, b->s));
}

/* (part 2) f - div D - D s or with 2: lane l of variable i. */
static double reverse_drift(const psld_process *p, const double *scratch, const double *s, size_t lane, size_t i,
                            double part)
{
    size_t at = PSLD_MOTION_DIFFUSION(p);
    double sum = psld_formulas_output(p->motion, scratch, PSLD_MOTION_DRIFT(p) + i)[lane];
    sum -= part * psld_formulas_output(p->motion, scratch, PSLD_MOTION_DIVERGENCE(p) + i)[lane];
    for (int v = 0; v < p->noisy_count; v++) {
        size_t j = (size_t)p->noisy[v], row = i > j ? i : j, column = i > j ? j : i;
        sum -= part * psld_formulas_output(p->motion, scratch, at + row * (row + 1) / 2 + column)[lane] * s[v];
    }
    return sum;
}

typedef struct backward_step {
    const backward *b;
    double beta, dt, part; /* part 2: the reverse SDE, 1: the flow */
    int noise;
    uint64_t number;
} backward_step;

static psld_status step_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const backward_step *step = user;
    const backward *b = step->b;
    const psld_process *p = b->process;
    size_t n = b->n, noisy = (size_t)p->noisy_count;
    double lower[PSLD_PROCESS_SQUARE], xi[PSLD_MAX_VARIABLES], scale = step->beta * step->dt;
    int finite = 1;
    psld_lanes_load(n, count, b->z + first * n, lanes->array[0]);
    psld_formulas_run(p->motion, lanes->array[0], lanes->scratch);
    for (size_t l = 0; l < count; l++) {
        double *z = b->z + (first + l) * n;
        for (size_t i = 0; i < n; i++)
            z[i] -= scale * reverse_drift(p, lanes->scratch, b->s + (first + l) * noisy, l, i, step->part);
        if (step->noise) {
            finite &= psld_process_factor(p, lanes->scratch, l, 2 * scale, lower);
            psld_random_normal(b->options->seed, PSLD_FOR_REVERSE, b->first + first + l, step->number, 0, n, xi);
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j <= i; j++) z[i] += lower[i * n + j] * xi[j];
        }
        for (size_t i = 0; i < n; i++) finite &= isfinite(z[i]);
    }
    return finite ? PSLD_OK : PSLD_NOT_FINITE;
}

static psld_status fail_backward(const psld_process *p, psld_status status)
{
    if (status == PSLD_NO_MEMORY) return psld_fail(status, "out of memory");
    return psld_fail(status, "recipe %s: samples leave where its formulas are finite; more evaluations may help",
                     p->name);
}

/* One evaluation and one step from time t. */
static psld_status take_step(backward *b, double t, double dt, double part, int noise, uint64_t number)
{
    backward_step step = {b, psld_process_beta(b->process, t), dt, part, noise, number};
    for (size_t i = 0; i < b->count; i++) {
        b->t[i] = t;
        b->sample[i] = b->first + i;
    }
    PSLD_TRY(ask_scores(b, b->count, b->z));
    psld_status status = psld_lanes_run(b->process, b->process->motion, b->count, step_lanes, &step);
    return status == PSLD_OK ? PSLD_OK : fail_backward(b->process, status);
}

/* Reports progress of this batch as progress of the whole. */
static psld_status report_part(void *user, double part)
{
    enum { UNITS = 1000 }; /* per sample */
    const backward *b = user;
    uint64_t done = (uint64_t)(part * UNITS * (double)b->count);
    return psld_progress(b->options->progress, b->options->progress_user, UNITS * (uint64_t)b->before + done,
                         UNITS * (uint64_t)b->samples);
}

static psld_status run_em(backward *b, double *times, uint64_t *evaluations)
{
    const psld_sample_options *o = b->options;
    int steps = o->nfe - (o->denoise != 0);
    PSLD_TRY(psld_grid_times(NULL, o->grid, 0, steps, o->eps, times));
    for (int i = 0; i < steps; i++) PSLD_TRY(take_step(b, times[i], times[i] - times[i + 1], 2, 1, (uint64_t)i));
    *evaluations += (uint64_t)steps * psld_dp_groups(b->count, (size_t)o->ode_group);
    return PSLD_OK;
}

/* ---- The flow ---------------------------------------------------------------------------------------------------- */

typedef struct slope_job {
    const backward *b;
    const double *states, *t;
    double *out; /* packed */
} slope_job;

static psld_status slope_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const slope_job *job = user;
    const psld_process *p = job->b->process;
    size_t n = job->b->n, noisy = (size_t)p->noisy_count;
    psld_lanes_load(n, count, job->states + first * n, lanes->array[0]);
    psld_formulas_run(p->motion, lanes->array[0], lanes->scratch);
    for (size_t l = 0; l < count; l++)
        for (size_t i = 0; i < n; i++) /* time falls: the slope has the other sign */
            job->out[(first + l) * n + i] = -psld_process_beta(p, job->t[first + l]) *
                                            reverse_drift(p, lanes->scratch, job->b->s + (first + l) * noisy, l, i, 1);
    return PSLD_OK;
}

static psld_status flow_slopes(void *user, size_t count, const psld_dp_group *groups, double *states, double *slopes)
{
    backward *b = user;
    size_t packed = 0, width = b->n;
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++, packed++) {
            b->t[packed] = groups[g].t;
            b->sample[packed] = b->first + groups[g].begin + i;
        }
    PSLD_TRY(ask_scores(b, packed, states));
    slope_job job = {b, states, b->t, b->slope};
    psld_status status = psld_lanes_run(b->process, b->process->motion, packed, slope_lanes, &job);
    if (status != PSLD_OK) return fail_backward(b->process, status);
    for (size_t g = 0; g < count; g++)
        memcpy(slopes + groups[g].begin * width, b->slope + groups[g].packed * width,
               groups[g].count * width * sizeof *slopes);
    return PSLD_OK;
}

static psld_status run_ode(backward *b, uint64_t *evaluations)
{
    const psld_sample_options *o = b->options;
    double *work = psld_alloc(PSLD_DP_WORK * b->count, b->n * sizeof *work);
    if (!work) return PSLD_NO_MEMORY;
    psld_dp problem = {.name = "ode",
                       .from = 1,
                       .to = o->eps,
                       .tolerance = o->tolerance,
                       .count = b->count,
                       .width = b->n,
                       .group = (size_t)o->ode_group,
                       .y = b->z,
                       .work = work,
                       .slopes = flow_slopes,
                       .report = report_part,
                       .user = b};
    psld_status status = psld_dp_solve(&problem, evaluations);
    psld_release(work);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static psld_status run_batch(backward *b, double *times, uint64_t *evaluations)
{
    const psld_sample_options *o = b->options;
    int flow = strcmp(o->sampler, "ode") == 0;
    PSLD_TRY(flow ? run_ode(b, evaluations) : run_em(b, times, evaluations));
    if (!o->denoise) return PSLD_OK;
    *evaluations += psld_dp_groups(b->count, (size_t)o->ode_group);
    return take_step(b, o->eps, o->eps, flow ? 1 : 2, 0, 0);
}

static psld_status allocate_batch(backward *b, size_t batch)
{
    size_t noisy = (size_t)b->process->noisy_count;
    b->z = psld_alloc(batch * (2 * b->n + noisy + 1), sizeof *b->z);
    b->sample = b->z ? psld_alloc(batch, sizeof *b->sample) : NULL;
    if (!b->sample) return PSLD_NO_MEMORY;
    b->slope = b->z + batch * b->n;
    b->s = b->slope + batch * b->n;
    b->t = b->s + batch * noisy;
    return PSLD_OK;
}

psld_status psld_process_sample_batches(const psld_process *process, psld_score_fn score, void *score_user,
                                        const psld_sample_options *o, uint64_t first, size_t count, const double *start,
                                        psld_process_batch_fn done, void *user, uint64_t *nfe)
{
    size_t n = (size_t)process->variables, group = (size_t)o->ode_group, batch = (size_t)o->batch;
    backward b = {.process = process, .score = score, .user = score_user, .options = o, .n = n, .samples = count};
    uint64_t evaluations = 0, groups = 0;
    batch = (batch + group - 1) / group * group; /* whole groups: the result does not depend on the batch */
    if (batch > count) batch = count;
    double *times = psld_alloc((size_t)o->nfe + 2, sizeof *times);
    psld_status status = times ? allocate_batch(&b, batch) : PSLD_NO_MEMORY;
    for (size_t at = 0; status == PSLD_OK && at < count; at += b.count) {
        b.count = count - at < batch ? count - at : batch;
        b.first = first + at;
        b.before = at;
        if (start)
            memcpy(b.z, start + at * n, b.count * n * sizeof *b.z);
        else
            status = psld_process_draw(process, o->seed, b.first, b.count, b.z);
        groups += psld_dp_groups(b.count, group);
        if (status == PSLD_OK) status = run_batch(&b, times, &evaluations);
        if (status == PSLD_OK) status = done(user, b.first, b.count, b.z);
        if (status == PSLD_OK) status = report_part(&b, 1);
    }
    if (nfe && groups) *nfe = (evaluations + groups - 1) / groups;
    psld_release(times);
    psld_release(b.z);
    psld_release(b.sample);
    return status;
}

typedef struct copy_sink {
    uint64_t first;
    size_t n;
    double *z;
} copy_sink;

static psld_status copy_batch(void *user, uint64_t first, size_t count, const double *z)
{
    const copy_sink *sink = user;
    memcpy(sink->z + (first - sink->first) * sink->n, z, count * sink->n * sizeof *z);
    return PSLD_OK;
}

psld_status psld_process_sample(const psld_process *process, psld_score_fn score, void *user,
                                const psld_sample_options *options, uint64_t first, size_t count, const double *start,
                                double *z, uint64_t *nfe)
{
    psld_sample_options own;
    copy_sink sink = {first, (size_t)process->variables, z};
    PSLD_TRY(psld_sample_options_copy(options, &own));
    PSLD_TRY(psld_process_options_complete(process, &own));
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample");
    return psld_process_sample_batches(process, score, user, &own, first, count, start, copy_batch, &sink, nfe);
}

psld_status psld_process_sample_complete(const psld_process *process, psld_sample_options *options)
{
    psld_sample_options own;
    PSLD_TRY(psld_sample_options_copy(options, &own));
    PSLD_TRY(psld_process_options_complete(process, &own));
    psld_sized_write(options, &own);
    return PSLD_OK;
}
