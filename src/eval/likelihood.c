/* log p(x) by the probability flow.
 *
 * The flow dz/dt = f(z, t) = -beta [(D + Q) P z + D s(z, t)] carries p_eps into p_1, so along it
 *     log p_eps(z_eps) = log p_1(z_1) + int_eps^1 div f dt,      p_1 = N(0, P^-1),
 *     div f = -beta [dim tr(D P) + div(D s)].
 * With D s = E eps (E: k x predicted) the last term is the trace of E J, J the Jacobian of eps by z. A source can
 * compute products with J', so the trace is the sum over directions v of v' J' (E' v). v are the unit vectors of the
 * noisy variables (exact), or one random vector of signs (Hutchinson; its mean over v is the trace). Variables without
 * noise have zero rows in E and do not count.
 *
 * Data are x alone. The auxiliary variables m are drawn from q = N(0, init mass), with which the process starts, and
 *     log p(x) >= E_q [log p(x, m) - log q(m)] = E_q [log p(x, m)] + H(q)
 * by Jensen. The first form is used: where the score is exact p(x, m) = p(x) q(m), so that it has no variance.
 *
 * State and integral are solved together, forward in time (sample/samplers/dormand_prince.h): a row of numbers y = (z,
 * integral) for each sample. Groups of samples share their steps. */
#include "eval/likelihood.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/sized.h"
#include "sample/sample.h"
#include "sample/samplers/dormand_prince.h"

enum { CHEAP_PRODUCTS = 16, MAX_PROBES = 1 << 20 };

typedef struct flow {
    const psld_recipe *recipe;
    psld_source *source;
    const psld_likelihood_options *options;
    size_t k, predicted, dim;
    size_t width;  /* of y: k dim + 1 */
    size_t probes; /* directions per sample */
    int exact;
    uint64_t first;
    size_t count;        /* samples in this batch */
    double *y;           /* [count][width] */
    double *work;        /* of the stepper */
    double *signs;       /* [count][probes][predicted dim]; NULL: exact */
    psld_affine *slopes; /* [groups]: -dz/dt, of state and eps */
    /* of the evaluation under way: */
    const psld_dp_group *groups;
    const double *packed;
    /* of one call of the source, `rows` at most: */
    size_t rows;
    double *z, *t, *weight, *eps, *grad;
    uint64_t *sample;
    uint64_t done, total; /* progress */
    uint64_t evaluations;
} flow;

/* ---- Slopes ------------------------------------------------------------------------------------------------------ */

/* A row of a call of the source: one sample in one direction. */
typedef struct row {
    size_t group, packed, sample, probe;
} row;

static double probe_direction(const flow *f, const row *r, size_t c, size_t j)
{
    if (f->exact) return r->probe == c * f->dim + j;
    return f->signs[((r->sample * f->probes + r->probe) * f->predicted + c) * f->dim + j];
}

static size_t noisy_variable(const flow *f, size_t c)
{
    return (size_t)f->recipe->variable[c];
}

static void fill_row(const flow *f, const row *r, size_t at)
{
    const double *y = f->packed + r->packed * f->width;
    double *weight = f->weight + at * f->predicted * f->dim;
    const psld_affine *slope = &f->slopes[r->group];
    memcpy(f->z + at * f->k * f->dim, y, f->k * f->dim * sizeof *y);
    f->t[at] = f->groups[r->group].t;
    f->sample[at] = f->first + r->sample;
    for (size_t c = 0; c < f->predicted; c++)
        for (size_t j = 0; j < f->dim; j++) {
            double sum = 0;
            for (size_t b = 0; b < f->predicted; b++)
                sum += slope->eps[noisy_variable(f, b) * f->predicted + c] * probe_direction(f, r, b, j);
            weight[c * f->dim + j] = sum;
        }
}

/* What a row adds to the trace of E J. The first row of a sample also gives the slope of its state. */
static void add_row_result(const flow *f, const row *r, size_t at, double *slope)
{
    const double *grad = f->grad + at * f->k * f->dim, *eps = f->eps + at * f->predicted * f->dim,
                 *z = f->z + at * f->k * f->dim;
    const psld_affine *affine = &f->slopes[r->group];
    double trace = 0;
    for (size_t c = 0; c < f->predicted; c++)
        for (size_t j = 0; j < f->dim; j++)
            trace += probe_direction(f, r, c, j) * grad[noisy_variable(f, c) * f->dim + j];
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

/* Row `index`; rows are ordered by sample. `group` is that of the previous row, or 0. */
static row row_of_index(const flow *f, size_t index, size_t group)
{
    size_t packed = index / f->probes;
    while (packed >= f->groups[group].packed + f->groups[group].count) group++;
    const psld_dp_group *g = &f->groups[group];
    return (row){group, packed, g->begin + packed - g->packed, index % f->probes};
}

/* Rows first ... first + n - 1 in one call of the source. */
static psld_status evaluate_rows(const flow *f, size_t first, size_t n, double *slopes)
{
    row r = {0};
    for (size_t i = 0; i < n; i++) {
        r = row_of_index(f, first + i, r.group);
        fill_row(f, &r, i);
    }
    psld_states states = PSLD_STATES(n, f->dim, f->z, f->t);
    states.sample = f->sample;
    PSLD_TRY(psld_source_gradient(f->source, &states, f->weight, f->eps, f->grad));
    r.group = 0;
    for (size_t i = 0; i < n; i++) {
        r = row_of_index(f, first + i, r.group);
        add_row_result(f, &r, i, slopes + r.sample * f->width);
    }
    return PSLD_OK;
}

static psld_status flow_slope(void *user, size_t count, const psld_dp_group *groups, double *states, double *slopes)
{
    flow *f = user;
    size_t rows = 0;
    f->groups = groups;
    f->packed = states;
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &groups[a];
        PSLD_TRY(psld_affine_flow(f->recipe, g->t, &f->slopes[a]));
        for (size_t i = 0; i < g->count; i++) slopes[(g->begin + i + 1) * f->width - 1] = 0;
        rows += g->count * f->probes;
    }
    for (size_t first = 0; first < rows; first += f->rows)
        PSLD_TRY(evaluate_rows(f, first, rows - first < f->rows ? rows - first : f->rows, slopes));
    return PSLD_OK;
}

static psld_status report_likelihood(void *user, double fraction)
{
    const flow *f = user;
    uint64_t here = (uint64_t)(1000 * fraction * (double)f->count);
    return psld_progress(f->options->progress, f->options->progress_user, 1000 * f->done + here, 1000 * f->total);
}

static psld_status solve_flow(flow *f)
{
    psld_dp problem = {.name = "likelihood",
                       .from = f->options->eps,
                       .to = 1,
                       .tolerance = f->options->tolerance,
                       .count = f->count,
                       .width = f->width,
                       .group = (size_t)f->options->ode_group,
                       .y = f->y,
                       .work = f->work,
                       .slopes = flow_slope,
                       .report = report_likelihood,
                       .user = f};
    return psld_dp_solve(&problem, &f->evaluations);
}

/* ---- Start of the flow, and log p from its end ------------------------------------------------------------------- */

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
    f->first = first;
    f->count = count;
    for (size_t i = 0; i < count; i++) log_p[i] = -start_sample(f, i, x + i * f->dim);
    for (size_t i = 0; f->signs && i < count; i++) draw_signs(f, i);
    PSLD_TRY(solve_flow(f));
    for (size_t i = 0; i < count; i++) {
        const double *y = f->y + i * f->width;
        log_p[i] += log_prior(f, y) + y[f->width - 1];
        if (!isfinite(log_p[i]))
            return psld_fail(PSLD_NOT_FINITE, "likelihood: not finite at sample %llu", (unsigned long long)(first + i));
    }
    return PSLD_OK;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* `rows` is limited to those of a batch, since the numbers of the options may be of any size. */
static psld_status allocate_batch(flow *f, size_t batch)
{
    size_t state = f->k * f->dim, noisy = f->predicted * f->dim, of_signs = f->exact ? 0 : f->probes * noisy;
    size_t sample = (1 + PSLD_DP_WORK) * f->width + of_signs, call = 2 * state + 1 + 2 * noisy;
    size_t asked = (size_t)f->options->batch;
    f->rows = asked / f->probes < batch ? asked : batch * f->probes;
    f->y = psld_alloc(batch, sample * sizeof *f->y);
    f->z = f->y ? psld_alloc(f->rows, call * sizeof *f->z) : NULL;
    f->sample = f->z ? psld_alloc(f->rows, sizeof *f->sample) : NULL;
    f->slopes = f->sample ? psld_alloc(psld_dp_groups(batch, (size_t)f->options->ode_group), sizeof *f->slopes) : NULL;
    if (!f->slopes) return PSLD_NO_MEMORY;
    f->work = f->y + batch * f->width;
    f->signs = of_signs ? f->work + PSLD_DP_WORK * batch * f->width : NULL;
    f->grad = f->z + f->rows * state;
    f->t = f->grad + f->rows * state;
    f->weight = f->t + f->rows;
    f->eps = f->weight + f->rows * noisy;
    return PSLD_OK;
}

static void release_batch(flow *f)
{
    psld_release(f->y);
    psld_release(f->z);
    psld_release(f->sample);
    psld_release(f->slopes);
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

psld_status psld_likelihood_options_read(const psld_likelihood_options *options, psld_likelihood_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_likelihood_options, options, own, PSLD_LIKELIHOOD_DEFAULTS));
    PSLD_FILL_ZERO(own->tolerance, 1e-5);
    PSLD_FILL_ZERO(own->eps, 1e-5);
    PSLD_FILL_ZERO(own->probes, 1);
    PSLD_FILL_ZERO(own->ode_group, 16);
    PSLD_FILL_ZERO(own->batch, 1024);
    if (own->ode_group > 0 && own->batch > 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "likelihood: expected batches and groups of at least 1");
}

static psld_status check_likelihood(const psld_recipe *recipe, const psld_source *source,
                                    const psld_likelihood_options *options)
{
    if (!(options->tolerance > 0 && options->tolerance < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "tolerance: expected a number in (0, 1), found %g", options->tolerance);
    if (!(options->eps > 0 && options->eps < 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "eps: expected a number in (0, 1), found %g", options->eps);
    if (options->probes < 1 || options->probes > MAX_PROBES)
        return psld_fail(PSLD_BAD_ARGUMENT, "probes: expected 1 to %d, found %d", MAX_PROBES, options->probes);
    if (!psld_source_has_gradient(source))
        return psld_fail(PSLD_BAD_ARGUMENT, "likelihood: needs a score source that can be differentiated");
    PSLD_TRY(psld_source_check(source, recipe));
    for (int a = 1; a < recipe->spec.k; a++)
        if (!(recipe->spec.init[a - 1] > 0))
            return psld_fail(PSLD_BAD_INPUT,
                             "likelihood: auxiliary variable %d of recipe %s starts without noise (init 0): no density",
                             a, recipe->spec.name);
    return PSLD_OK;
}

int psld_likelihood_is_exact(const psld_recipe *recipe, const psld_likelihood_options *options, size_t dim)
{
    return options->exact < 0 ? (size_t)recipe->predicted * dim <= CHEAP_PRODUCTS : options->exact;
}

psld_status psld_likelihood(const psld_recipe *recipe, psld_source *source, const psld_likelihood_options *options,
                            uint64_t first, size_t count, size_t dim, const double *x, double *log_p, uint64_t *nfe)
{
    psld_likelihood_options own;
    PSLD_TRY(psld_likelihood_options_read(options, &own));
    PSLD_TRY(check_likelihood(recipe, source, &own));
    PSLD_TRY(psld_check_doubles("likelihood", count, (size_t)recipe->spec.k, dim));
    flow f = {.recipe = recipe, .source = source, .options = &own, .dim = dim, .total = count};
    f.k = (size_t)recipe->spec.k;
    f.predicted = (size_t)recipe->predicted;
    f.width = f.k * dim + 1;
    f.exact = psld_likelihood_is_exact(recipe, &own, dim);
    f.probes = f.exact ? f.predicted * dim : (size_t)own.probes;
    size_t group = (size_t)own.ode_group;
    size_t batch = psld_batch_size(count, (size_t)own.batch / f.probes, group);
    psld_status status = allocate_batch(&f, batch);
    for (size_t done = 0; status == PSLD_OK && done < count; done += f.count) {
        status = run_batch(&f, first + done, count - done < batch ? count - done : batch, x + done * dim, log_p + done);
        f.done += f.count;
    }
    uint64_t groups = psld_dp_groups(count, group);
    if (nfe) *nfe = groups ? (f.evaluations + groups - 1) / groups : 0;
    release_batch(&f);
    return status;
}
