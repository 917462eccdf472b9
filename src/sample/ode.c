/* Probability flow with Dormand and Prince's pair of orders 5(4) and adaptive steps.
 *
 * Step control, first step and the count of evaluations are those of SciPy's RK45 (solve_ivp), so that numbers of
 * evaluations can be compared with published ones: error norm = root mean square, over all numbers of a group, of
 * err / (tol + tol max(|y0|, |y1|)); factor 0.9 err^(-1/5) between 0.2 and 10; no growth after a rejection. The
 * independent variable is s = 1 - t, from 0 to 1 - eps.
 *
 * A group is options->ode_group consecutive samples that share their steps. Groups know nothing of each other; those
 * of a batch only have their evaluations done together. `work` holds, for each state: seven slopes, the state being
 * tried, and the packed states to evaluate. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/dormand_prince.h"
#include "sample/inpaint.h"

enum { STAGES = PSLD_DP_STAGES, SLOPES = PSLD_DP_SLOPES, TRIAL = SLOPES, PACKED = TRIAL + 1, WORK_STATES = PACKED + 1 };

typedef struct group {
    size_t begin, count; /* states of the batch */
    size_t packed;       /* where its states lie among those of the active groups */
    double s, h;         /* where it is, and the size of step to try */
    double h_tried;
    int rejected; /* since the last accepted step */
    uint64_t evaluations;
    double s_evaluated; /* of the evaluation under way, */
    psld_affine slope;  /* what makes a slope of state and eps there */
    psld_status status;
} group;

typedef struct ode_solver {
    psld_walk *walk;
    group *groups;
    size_t count, state; /* groups; numbers a state */
    size_t *active;      /* [count]: groups that are still on their way */
    size_t active_count;
    double end, tolerance;
    int stage; /* of the parallel loop under way */
} ode_solver;

/* Room of index w for the states of the batch. */
static double *room(const ode_solver *ode, int w)
{
    return ode->walk->work + (size_t)w * ode->walk->count * ode->state;
}

static double mean_square(const double *a, const double *b, const double *scale, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (a[i] - (b ? b[i] : 0)) / scale[i];
        sum += x * x;
    }
    return sqrt(sum / (double)n);
}

static double *packed_states(const ode_solver *ode, const group *g)
{
    return room(ode, PACKED) + g->packed * ode->state;
}

/* ---- Evaluating slopes of many groups at once -------------------------------------------------------------------- */

/* The slope dz/ds = beta [(D + Q) P z + D score] at the group's s_evaluated, as an affine map. */
static void plan_slopes(void *context, size_t begin, size_t end)
{
    const ode_solver *ode = context;
    const psld_recipe *recipe = ode->walk->recipe;
    for (size_t a = begin; a < end; a++) {
        group *g = &ode->groups[ode->active[a]];
        double t = 1 - g->s_evaluated;
        for (size_t i = 0; i < g->count; i++) ode->walk->t[g->packed + i] = t;
        g->status = psld_affine_euler(recipe, t, 1, 1, &g->slope);
        for (int i = 0; i < recipe->spec.k; i++) g->slope.state[i * recipe->spec.k + i] -= 1;
    }
}

static void apply_slopes(void *context, size_t begin, size_t end)
{
    const ode_solver *ode = context;
    psld_walk part = *ode->walk;
    for (size_t a = begin; a < end; a++) {
        group *g = &ode->groups[ode->active[a]];
        part.eps = ode->walk->eps + g->packed * part.predicted * part.dim;
        part.count = g->count;
        psld_walk_affine(&part, &g->slope, PSLD_FOR_STEP, 0, NULL, packed_states(ode, g),
                         room(ode, ode->stage) + g->begin * ode->state);
        g->evaluations++;
    }
}

static psld_status watch_groups(const ode_solver *ode)
{
    const psld_walk *walk = ode->walk;
    for (size_t a = 0; a < ode->active_count; a++) {
        const group *g = &ode->groups[ode->active[a]];
        PSLD_TRY(psld_walk_watch(walk, g->begin, g->count, 1 - g->s_evaluated, packed_states(ode, g),
                                 walk->eps + g->packed * walk->predicted * walk->dim));
    }
    return PSLD_OK;
}

/* The known part of inpainted states follows a smooth path of its own. */
static void inpaint_groups(const ode_solver *ode)
{
    for (size_t a = 0; a < ode->active_count; a++) {
        const group *g = &ode->groups[ode->active[a]];
        double t = 1 - g->s_evaluated;
        psld_walk_inpaint(ode->walk, g->begin, g->count, t, t, 0, packed_states(ode, g));
    }
}

/* Evaluates every active group's packed states at its s_evaluated and puts the slopes into room `stage`. */
static psld_status evaluate(ode_solver *ode, int stage)
{
    size_t states = 0;
    psld_parallel(ode->active_count, 1, plan_slopes, ode);
    for (size_t a = 0; a < ode->active_count; a++) {
        const group *g = &ode->groups[ode->active[a]];
        if (g->status != PSLD_OK)
            return psld_affine_euler(ode->walk->recipe, 1 - g->s_evaluated, 1, 1, &ode->groups[0].slope);
        states += g->count;
    }
    inpaint_groups(ode);
    PSLD_TRY(psld_walk_predict_each(ode->walk, states, room(ode, PACKED)));
    PSLD_TRY(watch_groups(ode));
    ode->stage = stage;
    psld_parallel(ode->active_count, 1, apply_slopes, ode);
    return PSLD_OK;
}

/* ---- First step -------------------------------------------------------------------------------------------------- */

typedef struct first_guess {
    double d1, h0;
} first_guess;

/* SciPy's select_initial_step (Hairer, Norsett, Wanner, II.4): a small trial h0 from the sizes of state and slope
 * ... */
static void guess_first_step(ode_solver *ode, size_t a, first_guess *guess)
{
    group *g = &ode->groups[ode->active[a]];
    size_t n = g->count * ode->state, offset = g->begin * ode->state;
    const double *z = ode->walk->z + offset, *f = room(ode, 0) + offset;
    double *scale = room(ode, TRIAL) + offset, *packed = packed_states(ode, g);
    for (size_t i = 0; i < n; i++) scale[i] = ode->tolerance + fabs(z[i]) * ode->tolerance;
    double d0 = mean_square(z, NULL, scale, n);
    guess->d1 = mean_square(f, NULL, scale, n);
    guess->h0 = d0 < 1e-5 || guess->d1 < 1e-5 ? 1e-6 : 0.01 * d0 / guess->d1;
    guess->h0 = fmin(guess->h0, ode->end);
    for (size_t i = 0; i < n; i++) packed[i] = z[i] + guess->h0 * f[i];
    g->s_evaluated = guess->h0;
}

/* ... and from how much the slope changes over it, the step to begin with. */
static void choose_first_step(ode_solver *ode, size_t a, const first_guess *guess)
{
    group *g = &ode->groups[ode->active[a]];
    size_t n = g->count * ode->state, offset = g->begin * ode->state;
    double d2 = mean_square(room(ode, 1) + offset, room(ode, 0) + offset, room(ode, TRIAL) + offset, n) / guess->h0;
    double h1 =
        guess->d1 <= 1e-15 && d2 <= 1e-15 ? fmax(1e-6, guess->h0 * 1e-3) : pow(0.01 / fmax(guess->d1, d2), 1.0 / 5);
    g->h = fmin(fmin(100 * guess->h0, h1), ode->end);
}

static psld_status begin(ode_solver *ode)
{
    first_guess *guesses = psld_alloc(ode->count, sizeof *guesses);
    if (!guesses) return PSLD_NO_MEMORY;
    for (size_t a = 0; a < ode->count; a++) {
        const group *g = &ode->groups[a];
        memcpy(packed_states(ode, g), ode->walk->z + g->begin * ode->state, g->count * ode->state * sizeof(double));
    }
    psld_status status = evaluate(ode, 0);
    if (status == PSLD_OK) {
        for (size_t a = 0; a < ode->count; a++) guess_first_step(ode, a, &guesses[a]);
        status = evaluate(ode, 1);
    }
    for (size_t a = 0; status == PSLD_OK && a < ode->count; a++) choose_first_step(ode, a, &guesses[a]);
    psld_release(guesses);
    return status;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static double smallest_step(double s)
{
    return 10 * (nextafter(s, INFINITY) - s);
}

/* The state at the stage under way of the step that a group tries; the last stage is the step's result. */
static void combine_stage(const ode_solver *ode, group *g)
{
    size_t n = g->count * ode->state, offset = g->begin * ode->state;
    const double *z = ode->walk->z + offset;
    double *out = packed_states(ode, g);
    memset(out, 0, n * sizeof(double));
    for (int j = 0; j < ode->stage; j++) {
        const double *slope = room(ode, j) + offset;
        for (size_t i = 0; i < n; i++) out[i] += psld_dp_coefficient[ode->stage][j] * slope[i];
    }
    for (size_t i = 0; i < n; i++) out[i] = z[i] + g->h_tried * out[i];
    g->s_evaluated = g->s + psld_dp_node[ode->stage] * g->h_tried;
    if (ode->stage == STAGES) memcpy(room(ode, TRIAL) + offset, out, n * sizeof(double));
}

static void combine_range(void *context, size_t begin, size_t end)
{
    const ode_solver *ode = context;
    for (size_t a = begin; a < end; a++) combine_stage(ode, &ode->groups[ode->active[a]]);
}

static double error_norm(const ode_solver *ode, const group *g)
{
    size_t n = g->count * ode->state, offset = g->begin * ode->state;
    const double *z = ode->walk->z + offset, *tried = room(ode, TRIAL) + offset;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double error = 0, scale = ode->tolerance + ode->tolerance * fmax(fabs(z[i]), fabs(tried[i]));
        for (int j = 0; j < SLOPES; j++) error += psld_dp_error[j] * room(ode, j)[offset + i];
        error *= g->h_tried / scale;
        sum += error * error;
    }
    return sqrt(sum / (double)n);
}

/* Accepts a group's step or makes it smaller. The last slope of an accepted step is the first of the next. */
static void judge(const ode_solver *ode, group *g)
{
    size_t n = g->count * ode->state * sizeof(double), offset = g->begin * ode->state;
    double error = error_norm(ode, g);
    if (!(error < 1)) {
        g->h = g->h_tried * fmax(0.2, 0.9 * pow(error, -0.2));
        g->rejected = 1;
        return;
    }
    double factor = error == 0 ? 10 : fmin(10, 0.9 * pow(error, -0.2));
    if (g->rejected) factor = fmin(1, factor);
    memcpy(ode->walk->z + offset, room(ode, TRIAL) + offset, n);
    memcpy(room(ode, 0) + offset, room(ode, STAGES) + offset, n);
    g->s = g->s + g->h_tried >= ode->end ? ode->end : g->s + g->h_tried;
    g->h = g->h_tried * factor;
    g->rejected = 0;
}

static void judge_range(void *context, size_t begin, size_t end)
{
    const ode_solver *ode = context;
    for (size_t a = begin; a < end; a++) judge(ode, &ode->groups[ode->active[a]]);
}

/* Sets the size of the steps to try, and drops the groups that have arrived. */
static psld_status choose_steps(ode_solver *ode)
{
    size_t kept = 0, packed = 0;
    for (size_t a = 0; a < ode->active_count; a++) {
        group *g = &ode->groups[ode->active[a]];
        if (g->s >= ode->end) continue;
        if (g->h < smallest_step(g->s)) {
            if (g->rejected)
                return psld_fail(PSLD_NOT_FINITE,
                                 "ode: the step became too small at t = %g: the score is not smooth or not finite",
                                 1 - g->s);
            g->h = smallest_step(g->s);
        }
        g->h_tried = g->s + g->h > ode->end ? ode->end - g->s : g->h;
        g->packed = packed;
        packed += g->count;
        ode->active[kept++] = ode->active[a];
    }
    ode->active_count = kept;
    return PSLD_OK;
}

static psld_status report(const ode_solver *ode)
{
    double way = 0;
    for (size_t a = 0; a < ode->count; a++) way += ode->groups[a].s * (double)ode->groups[a].count;
    return psld_walk_report(ode->walk, way / ode->end / (double)ode->walk->count);
}

static psld_status solve(ode_solver *ode)
{
    PSLD_TRY(begin(ode));
    for (;;) {
        PSLD_TRY(choose_steps(ode));
        if (ode->active_count == 0) return PSLD_OK;
        for (int stage = 1; stage <= STAGES; stage++) {
            ode->stage = stage;
            psld_parallel(ode->active_count, 1, combine_range, ode);
            PSLD_TRY(evaluate(ode, stage));
        }
        psld_parallel(ode->active_count, 1, judge_range, ode);
        PSLD_TRY(report(ode));
    }
}

static psld_status run(psld_walk *walk)
{
    size_t size = walk->options->ode_group;
    ode_solver ode = {.walk = walk, .state = walk->k * walk->dim, .end = 1 - walk->options->eps};
    ode.tolerance = walk->options->tolerance;
    ode.count = ode.active_count = (walk->count + size - 1) / size;
    ode.groups = psld_alloc(ode.count, sizeof *ode.groups);
    ode.active = ode.groups ? psld_alloc(ode.count, sizeof *ode.active) : NULL;
    psld_status status = ode.active ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t a = 0; status == PSLD_OK && a < ode.count; a++) {
        ode.groups[a].begin = ode.groups[a].packed = a * size;
        ode.groups[a].count = a + 1 < ode.count ? size : walk->count - a * size;
        ode.active[a] = a;
    }
    if (status == PSLD_OK) status = solve(&ode);
    for (size_t a = 0; status == PSLD_OK && a < ode.count; a++) {
        walk->evaluations += ode.groups[a].evaluations;
        walk->groups++;
    }
    psld_release(ode.active);
    psld_release(ode.groups);
    return status;
}

const psld_sampler psld_sampler_ode = {.name = "ode",
                                       .summary = "probability flow with Dormand-Prince 5(4) and adaptive steps",
                                       .evaluations = 1,
                                       .work_states = WORK_STATES,
                                       .deterministic = 1,
                                       .run = run};
