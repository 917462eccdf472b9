/* log p(x) by the probability flow.
 *
 * The flow dz/dt = f(z, t) = -beta [(D + Q) P z + D s(z, t)] carries p_eps into p_1, so along it
 *     log p_eps(z_eps) = log p_1(z_1) + int_eps^1 div f dt,      p_1 = N(0, P^-1),
 *     div f = -beta [dim tr(D P) + div(D s)].
 * With D s = E eps (E: k x predicted) the last term is the trace of E J, J the Jacobian of eps by z. A product with J'
 * is what a source can give: sum over directions v of v' J' (E' v), v the unit vectors of the noisy variables (exact) or
 * one random vector of signs (Hutchinson; its mean over v is the trace). Quiet variables have zero rows in E and take no
 * part.
 *
 * Data are x alone. The auxiliary variables m are drawn from q = N(0, init mass), with which the process starts, and
 *     log p(x) >= E_q [log p(x, m) - log q(m)] = E_q [log p(x, m)] + H(q)
 * by Jensen. The first form is used: where the score is exact p(x, m) = p(x) q(m), so that it has no variance.
 *
 * State and integral are solved together, by Dormand and Prince's pair with the step control of sample/ode.c, forward in
 * time: a row of numbers y = (z, integral) for each sample. Groups of samples share their steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/threads.h"
#include "sample/dormand_prince.h"
#include "sample/walk.h"

enum { STAGES = PSLD_DP_STAGES, SLOPES = PSLD_DP_SLOPES, CHEAP_PRODUCTS = 16 };

typedef struct group {
    size_t begin, count; /* samples */
    size_t packed;       /* where they lie among those of the active groups */
    double t, h, h_tried, t_evaluated;
    int rejected;
    uint64_t evaluations;
    psld_affine slope; /* -dz/dt at t_evaluated, of state and eps */
} group;

typedef struct flow {
    const psld_recipe *recipe;
    psld_source *source;
    const psld_likelihood_options *options;
    size_t k, predicted, dim;
    size_t width;  /* of y: k dim + 1 */
    size_t probes; /* directions a sample */
    int exact;
    uint64_t first;
    size_t count; /* samples of this batch */
    group *groups;
    size_t group_count, *active, active_count;
    double *y, *slopes[SLOPES], *trial, *packed; /* [count][width] each */
    double *signs;                               /* [count][probes][predicted dim]; NULL: exact */
    /* of one call of the source, `rows` at most */
    size_t rows;
    double *z, *t, *weight, *eps, *grad;
    uint64_t done, total; /* progress */
    double *memory;
} flow;

/* ---- Slopes ------------------------------------------------------------------------------------------------------ */

/* A row of a call: one sample in one direction. */
typedef struct row {
    const group *group;
    size_t packed, sample, probe;
} row;

static double direction(const flow *f, const row *r, size_t c, size_t j)
{
    if (f->exact) return r->probe == c * f->dim + j;
    return f->signs[((r->sample * f->probes + r->probe) * f->predicted + c) * f->dim + j];
}

static size_t noisy_variable(const flow *f, size_t c)
{
    return (size_t)f->recipe->order[f->k - f->predicted + c];
}

static void fill_row(const flow *f, const row *r, size_t at)
{
    const double *y = f->packed + r->packed * f->width;
    double *weight = f->weight + at * f->predicted * f->dim;
    memcpy(f->z + at * f->k * f->dim, y, f->k * f->dim * sizeof *y);
    f->t[at] = r->group->t_evaluated;
    for (size_t c = 0; c < f->predicted; c++)
        for (size_t j = 0; j < f->dim; j++) {
            double sum = 0;
            for (size_t b = 0; b < f->predicted; b++)
                sum += r->group->slope.eps[noisy_variable(f, b) * f->predicted + c] * direction(f, r, b, j);
            weight[c * f->dim + j] = sum;
        }
}

/* What a row adds to the trace of E J; the first of a sample also gives the slope of its state. */
static void take_row(const flow *f, const row *r, size_t at, double *slope)
{
    const double *grad = f->grad + at * f->k * f->dim, *eps = f->eps + at * f->predicted * f->dim,
                 *z = f->z + at * f->k * f->dim;
    const psld_affine *affine = &r->group->slope;
    double trace = 0;
    for (size_t c = 0; c < f->predicted; c++)
        for (size_t j = 0; j < f->dim; j++) trace += direction(f, r, c, j) * grad[noisy_variable(f, c) * f->dim + j];
    slope[f->width - 1] -= f->exact ? trace : trace / (double)f->probes;
    if (r->probe != 0) return;
    for (size_t a = 0; a < f->k; a++) {
        slope[f->width - 1] -= (double)f->dim * affine->state[a * f->k + a];
        for (size_t j = 0; j < f->dim; j++) {
            double sum = 0;
            for (size_t b = 0; b < f->k; b++) sum += affine->state[a * f->k + b] * z[b * f->dim + j];
            for (size_t c = 0; c < f->predicted; c++) sum += affine->eps[a * f->predicted + c] * eps[c * f->dim + j];
            slope[a * f->dim + j] = -sum;
        }
    }
}

static psld_status plan_slopes(flow *f)
{
    for (size_t a = 0; a < f->active_count; a++) {
        group *g = &f->groups[f->active[a]];
        PSLD_TRY(psld_affine_euler(f->recipe, g->t_evaluated, 1, 1, &g->slope));
        for (size_t i = 0; i < f->k; i++) g->slope.state[i * f->k + i] -= 1;
        g->evaluations++;
    }
    return PSLD_OK;
}

/* Row number `index` of all rows of the active groups, which lie sample after sample. */
static row row_at(const flow *f, size_t index, size_t *group_at)
{
    size_t packed = index / f->probes;
    while (packed >= f->groups[f->active[*group_at]].packed + f->groups[f->active[*group_at]].count) (*group_at)++;
    const group *g = &f->groups[f->active[*group_at]];
    return (row){g, packed, g->begin + packed - g->packed, index % f->probes};
}

/* Slopes of the packed rows of all active groups, each at its t_evaluated, into slopes[stage]. */
static psld_status evaluate(flow *f, int stage)
{
    size_t samples = 0, fill_group = 0, take_group = 0;
    PSLD_TRY(plan_slopes(f));
    for (size_t a = 0; a < f->active_count; a++) {
        const group *g = &f->groups[f->active[a]];
        samples += g->count;
        for (size_t i = 0; i < g->count; i++) f->slopes[stage][(g->begin + i + 1) * f->width - 1] = 0;
    }
    for (size_t first = 0; first < samples * f->probes; first += f->rows) {
        size_t n = samples * f->probes - first < f->rows ? samples * f->probes - first : f->rows;
        for (size_t i = 0; i < n; i++) {
            row r = row_at(f, first + i, &fill_group);
            fill_row(f, &r, i);
        }
        PSLD_TRY(psld_source_gradient(f->source, n, f->dim, f->z, f->t, f->weight, f->eps, f->grad));
        for (size_t i = 0; i < n; i++) {
            row r = row_at(f, first + i, &take_group);
            take_row(f, &r, i, f->slopes[stage] + r.sample * f->width);
        }
    }
    return PSLD_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* Root mean square over a group of (a - b) / scale; b may be NULL. */
static double norm_of(const double *a, const double *b, const double *scale, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (a[i] - (b ? b[i] : 0)) / scale[i];
        sum += x * x;
    }
    return sqrt(sum / (double)n);
}

/* SciPy's first step: from the slope at the start, and how it changes over a small step. */
static psld_status choose_first_steps(flow *f)
{
    double tolerance = f->options->tolerance, end = 1 - f->options->eps;
    for (size_t a = 0; a < f->group_count; a++)
        memcpy(f->packed + f->groups[a].packed * f->width, f->y + f->groups[a].begin * f->width,
               f->groups[a].count * f->width * sizeof *f->y);
    PSLD_TRY(evaluate(f, 0));
    for (size_t a = 0; a < f->group_count; a++) {
        group *g = &f->groups[a];
        size_t n = g->count * f->width, at = g->begin * f->width;
        for (size_t i = 0; i < n; i++) f->trial[at + i] = tolerance + fabs(f->y[at + i]) * tolerance;
        double d0 = norm_of(f->y + at, NULL, f->trial + at, n), d1 = norm_of(f->slopes[0] + at, NULL, f->trial + at, n);
        g->h = fmin(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, end);
        g->t_evaluated = g->t + g->h;
        for (size_t i = 0; i < n; i++) f->packed[g->packed * f->width + i] = f->y[at + i] + g->h * f->slopes[0][at + i];
    }
    PSLD_TRY(evaluate(f, 1));
    for (size_t a = 0; a < f->group_count; a++) {
        group *g = &f->groups[a];
        size_t n = g->count * f->width, at = g->begin * f->width;
        double d1 = norm_of(f->slopes[0] + at, NULL, f->trial + at, n);
        double d2 = norm_of(f->slopes[1] + at, f->slopes[0] + at, f->trial + at, n) / g->h;
        double h1 = d1 <= 1e-15 && d2 <= 1e-15 ? fmax(1e-6, g->h * 1e-3) : pow(0.01 / fmax(d1, d2), 1.0 / 5);
        g->h = fmin(fmin(100 * g->h, h1), end);
    }
    return PSLD_OK;
}

/* Sizes of the steps to try; groups that have arrived are dropped. */
static psld_status choose_steps(flow *f)
{
    size_t kept = 0, packed = 0;
    for (size_t a = 0; a < f->active_count; a++) {
        group *g = &f->groups[f->active[a]];
        if (g->t >= 1) continue;
        double least = 10 * (nextafter(g->t, INFINITY) - g->t);
        if (!(g->h >= least) && g->rejected)
            return psld_fail(PSLD_NOT_FINITE,
                             "likelihood: the step became too small at t = %g: the score is not smooth or not finite",
                             g->t);
        g->h_tried = fmin(fmax(g->h, least), 1 - g->t);
        g->packed = packed;
        packed += g->count;
        f->active[kept++] = f->active[a];
    }
    f->active_count = kept;
    return PSLD_OK;
}

typedef struct stage_work {
    flow *f;
    int stage;
} stage_work;

static void combine_stage(void *context, size_t begin, size_t end)
{
    const stage_work *w = context;
    flow *f = w->f;
    for (size_t a = begin; a < end; a++) {
        group *g = &f->groups[f->active[a]];
        size_t n = g->count * f->width, at = g->begin * f->width;
        double *out = f->packed + g->packed * f->width;
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (int j = 0; j < w->stage; j++) sum += psld_dp_coefficient[w->stage][j] * f->slopes[j][at + i];
            out[i] = f->y[at + i] + g->h_tried * sum;
        }
        g->t_evaluated = fmin(1, g->t + psld_dp_node[w->stage] * g->h_tried);
        if (w->stage == STAGES) memcpy(f->trial + at, out, n * sizeof *out);
    }
}

static double error_of(const flow *f, const group *g)
{
    size_t n = g->count * f->width, at = g->begin * f->width;
    double sum = 0, tolerance = f->options->tolerance;
    for (size_t i = at; i < at + n; i++) {
        double error = 0, scale = tolerance + tolerance * fmax(fabs(f->y[i]), fabs(f->trial[i]));
        for (int j = 0; j < SLOPES; j++) error += psld_dp_error[j] * f->slopes[j][i];
        error *= g->h_tried / scale;
        sum += error * error;
    }
    return sqrt(sum / (double)n);
}

static void judge(const flow *f, group *g)
{
    size_t n = g->count * f->width * sizeof(double), at = g->begin * f->width;
    double error = error_of(f, g);
    if (!(error < 1)) {
        g->h = g->h_tried * (error > 1 ? fmax(0.2, 0.9 * pow(error, -0.2)) : 0.2); /* not a number: 0.2 */
        g->rejected = 1;
        return;
    }
    double factor = error == 0 ? 10 : fmin(10, 0.9 * pow(error, -0.2));
    memcpy(f->y + at, f->trial + at, n);
    memcpy(f->slopes[0] + at, f->slopes[STAGES] + at, n);
    g->t = g->h_tried >= 1 - g->t ? 1 : g->t + g->h_tried;
    g->h = g->h_tried * (g->rejected ? fmin(1, factor) : factor);
    g->rejected = 0;
}

static psld_status report(const flow *f)
{
    double way = 0;
    for (size_t a = 0; a < f->group_count; a++) way += f->groups[a].t * (double)f->groups[a].count;
    return psld_progress(f->options->progress, f->options->progress_user, 1000 * f->done + (uint64_t)(1000 * way),
                         1000 * f->total);
}

static psld_status solve(flow *f)
{
    PSLD_TRY(choose_first_steps(f));
    for (;;) {
        PSLD_TRY(choose_steps(f));
        if (f->active_count == 0) return PSLD_OK;
        for (int stage = 1; stage <= STAGES; stage++) {
            stage_work w = {f, stage};
            psld_parallel(f->active_count, 1, combine_stage, &w);
            PSLD_TRY(evaluate(f, stage));
        }
        for (size_t a = 0; a < f->active_count; a++) judge(f, &f->groups[f->active[a]]);
        PSLD_TRY(report(f));
    }
}

/* ---- Where the flow starts, and what its end says ---------------------------------------------------------------- */

static const double log_2pi = 1.8378770664093454836;

/* (x, m) with m ~ q for sample number i; returns log q(m). */
static double start_sample(flow *f, size_t i, const double *x)
{
    const psld_recipe_spec *spec = &f->recipe->spec;
    double *y = f->y + i * f->width, log_q = 0;
    memcpy(y, x, f->dim * sizeof *y);
    y[f->width - 1] = 0;
    for (size_t a = 1; a < f->k; a++) {
        double variance = spec->init[a - 1] * spec->mass[a - 1], *m = y + a * f->dim;
        psld_random_normal(f->options->seed, PSLD_FOR_AUXILIARY, f->first + i, a, 0, f->dim, m);
        for (size_t j = 0; j < f->dim; j++) {
            log_q -= (m[j] * m[j] + log_2pi + log(variance)) / 2;
            m[j] *= sqrt(variance);
        }
    }
    return log_q;
}

static void draw_signs(flow *f, size_t i)
{
    size_t n = f->probes * f->predicted * f->dim;
    double *signs = f->signs + i * n;
    psld_random_uniform(f->options->seed, PSLD_FOR_PROBE, f->first + i, 0, 0, n, signs);
    for (size_t j = 0; j < n; j++) signs[j] = signs[j] < 0.5 ? -1 : 1;
}

static double log_prior(const flow *f, const double *z)
{
    double sum = 0;
    for (size_t a = 0; a < f->k; a++) {
        double variance = a ? f->recipe->spec.mass[a - 1] : 1;
        for (size_t j = 0; j < f->dim; j++)
            sum -= (z[a * f->dim + j] * z[a * f->dim + j] / variance + log_2pi + log(variance)) / 2;
    }
    return sum;
}

static psld_status run_batch(flow *f, uint64_t first, size_t count, const double *x, double *log_p)
{
    size_t size = f->options->ode_group;
    f->first = first;
    f->count = count;
    f->group_count = f->active_count = (count + size - 1) / size;
    for (size_t a = 0; a < f->group_count; a++) {
        size_t begin = a * size, end = begin + size < count ? begin + size : count;
        f->groups[a] = (group){.begin = begin, .packed = begin, .count = end - begin};
        f->groups[a].t = f->groups[a].t_evaluated = f->options->eps;
        f->active[a] = a;
    }
    for (size_t i = 0; i < count; i++) log_p[i] = -start_sample(f, i, x + i * f->dim);
    for (size_t i = 0; f->signs && i < count; i++) draw_signs(f, i);
    PSLD_TRY(solve(f));
    for (size_t i = 0; i < count; i++) {
        const double *y = f->y + i * f->width;
        log_p[i] += log_prior(f, y) + y[f->width - 1];
        if (!isfinite(log_p[i]))
            return psld_fail(PSLD_NOT_FINITE, "likelihood: not finite at sample %llu", (unsigned long long)(first + i));
    }
    return PSLD_OK;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static psld_status allocate(flow *f, size_t batch)
{
    size_t state = f->k * f->dim, noisy = f->predicted * f->dim, of_signs = f->exact ? 0 : f->probes * noisy;
    size_t sample = (SLOPES + 3) * f->width + of_signs, call = 2 * state + 1 + 2 * noisy;
    f->rows = f->options->batch;
    f->memory = psld_alloc(batch * sample + f->rows * call, sizeof *f->memory);
    f->groups = f->memory ? psld_alloc(batch, sizeof *f->groups) : NULL;
    f->active = f->groups ? psld_alloc(batch, sizeof *f->active) : NULL;
    if (!f->active) return PSLD_NO_MEMORY;
    double *next = f->memory;
    double **const per_sample[] = {&f->y, &f->trial, &f->packed};
    for (int i = 0; i < 3; i++, next += batch * f->width) *per_sample[i] = next;
    for (int i = 0; i < SLOPES; i++, next += batch * f->width) f->slopes[i] = next;
    f->signs = of_signs ? next : NULL;
    next += batch * of_signs;
    f->z = next;
    f->grad = f->z + f->rows * state;
    f->t = f->grad + f->rows * state;
    f->weight = f->t + f->rows;
    f->eps = f->weight + f->rows * noisy;
    return PSLD_OK;
}

static void release(flow *f)
{
    psld_release(f->memory);
    psld_release(f->groups);
    psld_release(f->active);
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

void psld_likelihood_defaults(psld_likelihood_options *options)
{
    *options = (psld_likelihood_options){
        .tolerance = 1e-5, .eps = 1e-5, .exact = -1, .probes = 1, .ode_group = 16, .batch = 1024};
}

static psld_status check(const psld_recipe *recipe, const psld_source *source, const psld_likelihood_options *options)
{
    if (!(options->tolerance > 0 && options->tolerance < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "tolerance: expected a number in (0, 1), found %g", options->tolerance);
    if (!(options->eps > 0 && options->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eps: expected a number in (0, 1), found %g", options->eps);
    if (options->probes < 1 || options->ode_group < 1 || options->batch < 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "likelihood: expected at least one direction, and batches and groups of 1");
    if (!psld_source_has_gradient(source))
        return psld_fail(PSLD_BAD_ARGUMENT, "likelihood: needs a score source that can be differentiated");
    for (int a = 1; a < recipe->spec.k; a++)
        if (!(recipe->spec.init[a - 1] > 0))
            return psld_fail(PSLD_BAD_INPUT,
                             "likelihood: auxiliary variable %d of recipe %s starts without noise (init 0): no density",
                             a, recipe->spec.name);
    return PSLD_OK;
}

static int is_exact(const psld_likelihood_options *options, size_t products)
{
    return options->exact < 0 ? products <= CHEAP_PRODUCTS : options->exact;
}

psld_status psld_likelihood(const psld_recipe *recipe, psld_source *source, const psld_likelihood_options *options,
                            uint64_t first, size_t count, size_t dim, const double *x, double *log_p, uint64_t *nfe)
{
    psld_likelihood_options defaults;
    psld_likelihood_defaults(&defaults);
    if (!options) options = &defaults;
    PSLD_TRY(check(recipe, source, options));
    flow f = {.recipe = recipe, .source = source, .options = options, .dim = dim, .total = count};
    f.k = (size_t)recipe->spec.k;
    f.predicted = (size_t)recipe->predicted;
    f.width = f.k * dim + 1;
    f.exact = is_exact(options, f.predicted * dim);
    f.probes = f.exact ? f.predicted * dim : options->probes;
    uint64_t evaluations = 0, groups = 0;
    /* whole groups, about a call's worth of rows, so that groups are the same whatever the batch */
    size_t batch = (options->batch / f.probes + options->ode_group) / options->ode_group * options->ode_group;
    psld_status status = allocate(&f, batch < count ? batch : count + options->ode_group);
    for (size_t done = 0; status == PSLD_OK && done < count; done += f.count) {
        status = run_batch(&f, first + done, count - done < batch ? count - done : batch, x + done * dim, log_p + done);
        for (size_t a = 0; a < f.group_count; a++, groups++) evaluations += f.groups[a].evaluations;
        f.done += f.count;
    }
    if (nfe) *nfe = groups ? (evaluations + groups - 1) / groups : 0;
    release(&f);
    return status;
}
