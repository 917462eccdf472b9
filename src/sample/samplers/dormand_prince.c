/* The step control, the first step and the count of evaluations are those of SciPy's RK45 (solve_ivp), so that numbers of
 * evaluations can be compared with published ones. Error scaled_rms: the root mean square over all numbers of a group of
 *     err / (tol + tol max(|y0|, |y1|)).
 * Step factor 0.9 err^(-1/5), between 0.2 and 10, and at most 1 after a rejection.
 *
 * The independent variable always increases: it is t if time rises and 1 - t if it falls. */
#include "sample/samplers/dormand_prince.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"

/* Blocks of `work`, [count][width] each: the slopes, the states being tried, and the packed states to evaluate_stage. */
enum { STAGES = 6, SLOPES = STAGES + 1, TRIAL = SLOPES, PACKED = TRIAL + 1 };
_Static_assert(PSLD_DP_WORK == PACKED + 1, "one block for each");

/* Dormand and Prince (1980), table 2: nodes, coefficients (the last row is the solution of order 5), and the
 * difference to the embedded solution of order 4. */
static const double node[SLOPES] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
static const double coefficient[SLOPES][STAGES] = {
    {0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double difference[SLOPES] = {-71.0 / 57600,    0,           71.0 / 16695, -71.0 / 1920,
                                          17253.0 / 339200, -22.0 / 525, 1.0 / 40};

typedef struct dp_solver {
    const psld_dp *problem;
    psld_dp_group *groups; /* the unfinished ones */
    size_t count;
    int falls;         /* whether time falls */
    double begin, end; /* of the independent variable */
    int stage;         /* of the current parallel loop */
    uint64_t evaluations;
} dp_solver;

static double *states_of(const dp_solver *s, const psld_dp_group *g)
{
    return s->problem->y + g->begin * s->problem->width;
}

/* A group's part of block number b. */
static double *block_of_group(const dp_solver *s, int b, const psld_dp_group *g)
{
    const psld_dp *p = s->problem;
    return p->work + ((size_t)b * p->count + (b == PACKED ? g->packed : g->begin)) * p->width;
}

static size_t numbers_of(const dp_solver *s, const psld_dp_group *g)
{
    return g->count * s->problem->width;
}

static double time_at(const dp_solver *s, double at)
{
    return s->falls ? 1 - at : at;
}

/* Sets the time of evaluation to this fraction of the current step. Never beyond the end, where a source may have no
 * score: sums and 1 - (1 - to) are rounded. */
static void set_evaluation_time(const dp_solver *s, psld_dp_group *g, double part)
{
    double t = time_at(s, fmin(s->end, g->at + part * g->tried));
    g->t = s->falls ? fmax(s->problem->to, t) : t;
}

static psld_status evaluate_stage(dp_solver *s, int stage)
{
    const psld_dp *p = s->problem;
    size_t block = p->count * p->width;
    s->evaluations += s->count;
    return p->slopes(p->user, s->count, s->groups, p->work + PACKED * block, p->work + (size_t)stage * block);
}

/* ---- First step -------------------------------------------------------------------------------------------------- */

/* Root mean square of (a - b) / scale; b may be NULL. */
static double scaled_rms(const double *a, const double *b, const double *scale, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (a[i] - (b ? b[i] : 0)) / scale[i];
        sum += x * x;
    }
    return sqrt(sum / (double)n);
}

/* SciPy's select_initial_step (Hairer, Norsett, Wanner, II.4): a small trial from the sizes of state and slope ... */
static void try_first_step(const dp_solver *s, psld_dp_group *g)
{
    size_t n = numbers_of(s, g);
    const double *y = states_of(s, g), *slope = block_of_group(s, 0, g);
    double *scale = block_of_group(s, TRIAL, g), *packed = block_of_group(s, PACKED, g),
           tolerance = s->problem->tolerance;
    for (size_t i = 0; i < n; i++) scale[i] = tolerance + fabs(y[i]) * tolerance;
    double d0 = scaled_rms(y, NULL, scale, n), d1 = scaled_rms(slope, NULL, scale, n);
    g->tried = fmin(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, s->end - s->begin);
    for (size_t i = 0; i < n; i++) packed[i] = y[i] + g->tried * slope[i];
    set_evaluation_time(s, g, 1);
}

/* ... and from how much the slope changes over it, the step to begin with. */
static void choose_first_step(const dp_solver *s, psld_dp_group *g)
{
    size_t n = numbers_of(s, g);
    const double *scale = block_of_group(s, TRIAL, g);
    double d1 = scaled_rms(block_of_group(s, 0, g), NULL, scale, n),
           d2 = scaled_rms(block_of_group(s, 1, g), block_of_group(s, 0, g), scale, n) / g->tried;
    double h1 = d1 <= 1e-15 && d2 <= 1e-15 ? fmax(1e-6, g->tried * 1e-3) : pow(0.01 / fmax(d1, d2), 1.0 / 5);
    g->step = fmin(fmin(100 * g->tried, h1), s->end - s->begin);
}

static psld_status choose_first_steps(dp_solver *s)
{
    for (size_t a = 0; a < s->count; a++) {
        psld_dp_group *g = &s->groups[a];
        memcpy(block_of_group(s, PACKED, g), states_of(s, g), numbers_of(s, g) * sizeof(double));
        set_evaluation_time(s, g, 0);
    }
    PSLD_TRY(evaluate_stage(s, 0));
    for (size_t a = 0; a < s->count; a++) try_first_step(s, &s->groups[a]);
    PSLD_TRY(evaluate_stage(s, 1));
    for (size_t a = 0; a < s->count; a++) choose_first_step(s, &s->groups[a]);
    return PSLD_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* Ten times the distance to the next double, as in SciPy. Doubles near 0 are so dense that a score which is never finite
 * would be evaluated thousands of times before a step is too small. So the distance is taken at 1e-6 of the interval or
 * beyond. */
static double smallest_step(const dp_solver *s, const psld_dp_group *g)
{
    double at = fmax(g->at, 1e-6 * (s->end - s->begin));
    return 10 * (nextafter(at, INFINITY) - at);
}

/* Sets the step sizes to try, and removes the groups that have reached the end. */
static psld_status choose_steps(dp_solver *s)
{
    size_t kept = 0, packed = 0;
    for (size_t a = 0; a < s->count; a++) {
        psld_dp_group *g = &s->groups[kept];
        *g = s->groups[a];
        if (g->at >= s->end) continue;
        double least = smallest_step(s, g);
        if (!(g->step >= least) && g->rejected)
            return psld_fail(
                PSLD_NOT_FINITE,
                "%s: the step became too small at t = %g: the score is not smooth or not finite; try a larger "
                "tolerance or another sampler",
                s->problem->name, time_at(s, g->at));
        g->tried = fmin(fmax(g->step, least), s->end - g->at);
        g->packed = packed;
        packed += g->count;
        kept++;
    }
    s->count = kept;
    return PSLD_OK;
}

/* The states at the current stage of a group's step. Those of the last stage are the result of the step. */
static void combine_stage(const dp_solver *s, psld_dp_group *g)
{
    size_t n = numbers_of(s, g);
    const double *y = states_of(s, g);
    double *out = block_of_group(s, PACKED, g);
    memset(out, 0, n * sizeof *out);
    for (int j = 0; j < s->stage; j++) {
        const double *slope = block_of_group(s, j, g);
        for (size_t i = 0; i < n; i++) out[i] += coefficient[s->stage][j] * slope[i];
    }
    for (size_t i = 0; i < n; i++) out[i] = y[i] + g->tried * out[i];
    if (s->stage == STAGES) memcpy(block_of_group(s, TRIAL, g), out, n * sizeof *out);
    set_evaluation_time(s, g, node[s->stage]);
}

static void combine_range(void *context, size_t begin, size_t end)
{
    const dp_solver *s = context;
    for (size_t a = begin; a < end; a++) combine_stage(s, &s->groups[a]);
}

static double error_norm(const dp_solver *s, const psld_dp_group *g)
{
    size_t n = numbers_of(s, g);
    const double *y = states_of(s, g), *tried = block_of_group(s, TRIAL, g);
    double sum = 0, tolerance = s->problem->tolerance;
    for (size_t i = 0; i < n; i++) {
        double error = 0, scale = tolerance + tolerance * fmax(fabs(y[i]), fabs(tried[i]));
        for (int j = 0; j < SLOPES; j++) error += difference[j] * block_of_group(s, j, g)[i];
        error *= g->tried / scale;
        sum += error * error;
    }
    return sqrt(sum / (double)n);
}

/* Accepts a group's step or reduces its size. The last slope of an accepted step is the first slope of the next. */
static void accept_or_shrink(const dp_solver *s, psld_dp_group *g)
{
    size_t bytes = numbers_of(s, g) * sizeof(double);
    double error = error_norm(s, g);
    if (!(error < 1)) { /* true for NaN, too, which fmax ignores */
        g->step = g->tried * fmax(0.2, 0.9 * pow(error, -0.2));
        g->rejected = 1;
        return;
    }
    double factor = error == 0 ? 10 : fmin(10, 0.9 * pow(error, -0.2));
    memcpy(states_of(s, g), block_of_group(s, TRIAL, g), bytes);
    memcpy(block_of_group(s, 0, g), block_of_group(s, STAGES, g), bytes);
    g->at = g->tried < s->end - g->at ? fmin(s->end, g->at + g->tried) : s->end;
    g->step = g->tried * (g->rejected ? fmin(1, factor) : factor);
    g->rejected = 0;
}

static void accept_range(void *context, size_t begin, size_t end)
{
    const dp_solver *s = context;
    for (size_t a = begin; a < end; a++) accept_or_shrink(s, &s->groups[a]);
}

static psld_status report_dp_progress(const dp_solver *s)
{
    double left = 0;
    for (size_t a = 0; a < s->count; a++) left += (s->end - s->groups[a].at) * (double)s->groups[a].count;
    return s->problem->report(s->problem->user, 1 - left / (s->end - s->begin) / (double)s->problem->count);
}

static psld_status dp_steps(dp_solver *s)
{
    PSLD_TRY(choose_first_steps(s));
    for (;;) {
        PSLD_TRY(choose_steps(s));
        if (s->count == 0) return PSLD_OK;
        for (int stage = 1; stage <= STAGES; stage++) {
            s->stage = stage;
            psld_parallel(s->count, 1, combine_range, s);
            PSLD_TRY(evaluate_stage(s, stage));
        }
        psld_parallel(s->count, 1, accept_range, s);
        PSLD_TRY(report_dp_progress(s));
    }
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

size_t psld_dp_groups(size_t count, size_t group)
{
    return count / group + (count % group != 0); /* without a sum, which could overflow */
}

psld_status psld_dp_solve(const psld_dp *problem, uint64_t *evaluations)
{
    dp_solver s = {.problem = problem, .falls = problem->to < problem->from};
    s.begin = time_at(&s, problem->from);
    s.end = time_at(&s, problem->to);
    s.count = psld_dp_groups(problem->count, problem->group);
    s.groups = psld_alloc(s.count, sizeof *s.groups);
    if (!s.groups) return PSLD_NO_MEMORY;
    for (size_t a = 0; a < s.count; a++) {
        size_t begin = a * problem->group, left = problem->count - begin;
        s.groups[a] = (psld_dp_group){.begin = begin, .packed = begin, .at = s.begin};
        s.groups[a].count = left < problem->group ? left : problem->group;
    }
    psld_status status = dp_steps(&s);
    *evaluations += s.evaluations;
    psld_release(s.groups);
    return status;
}
