/* Probability flow with Dormand and Prince's pair of orders 5(4) and adaptive steps (dormand_prince.h), from t = 1 down
 * to eps. A group is options->ode_group consecutive samples. */
#include "base/alloc.h"
#include "base/threads.h"
#include "sample/dormand_prince.h"
#include "sample/inpaint.h"

/* What makes a slope of state and eps where a group is. */
typedef struct slope {
    psld_affine map;
    psld_status status;
} slope;

typedef struct ode_flow {
    psld_walk *walk;
    slope *slopes; /* [groups] */
    /* of the evaluation under way: */
    const psld_dp_group *groups;
    double *states, *out;
} ode_flow;

static double *packed_states(const ode_flow *flow, const psld_dp_group *g)
{
    return flow->states + g->packed * flow->walk->k * flow->walk->dim;
}

static void plan_slopes(void *context, size_t begin, size_t end)
{
    const ode_flow *flow = context;
    for (size_t a = begin; a < end; a++) {
        const psld_dp_group *g = &flow->groups[a];
        for (size_t i = 0; i < g->count; i++) flow->walk->t[g->packed + i] = g->t;
        flow->slopes[a].status = psld_affine_flow(flow->walk->recipe, g->t, &flow->slopes[a].map);
    }
}

static void apply_slopes(void *context, size_t begin, size_t end)
{
    const ode_flow *flow = context;
    psld_walk part = *flow->walk;
    for (size_t a = begin; a < end; a++) {
        const psld_dp_group *g = &flow->groups[a];
        part.eps = flow->walk->eps + g->packed * part.predicted * part.dim;
        part.count = g->count;
        psld_walk_affine(&part, &flow->slopes[a].map, PSLD_FOR_STEP, 0, NULL, packed_states(flow, g),
                         flow->out + g->begin * part.k * part.dim);
    }
}

/* The known part of inpainted states follows a smooth path of its own. */
static void inpaint_groups(const ode_flow *flow, size_t count)
{
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &flow->groups[a];
        psld_walk_inpaint(flow->walk, g->begin, g->count, g->t, g->t, 0, packed_states(flow, g));
    }
}

static psld_status watch_groups(const ode_flow *flow, size_t count)
{
    const psld_walk *walk = flow->walk;
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &flow->groups[a];
        PSLD_TRY(psld_walk_watch(walk, g->begin, g->count, g->t, packed_states(flow, g),
                                 walk->eps + g->packed * walk->predicted * walk->dim));
    }
    return PSLD_OK;
}

static psld_status evaluate(void *user, size_t count, const psld_dp_group *groups, double *states, double *slopes)
{
    ode_flow *flow = user;
    size_t samples = 0;
    flow->groups = groups;
    flow->states = states;
    flow->out = slopes;
    psld_parallel(count, 1, plan_slopes, flow);
    for (size_t a = 0; a < count; a++) {
        if (flow->slopes[a].status != PSLD_OK) /* again, in this thread, for the text */
            return psld_affine_flow(flow->walk->recipe, groups[a].t, &flow->slopes[a].map);
        samples += groups[a].count;
    }
    inpaint_groups(flow, count);
    PSLD_TRY(psld_walk_predict_each(flow->walk, samples, states));
    PSLD_TRY(watch_groups(flow, count));
    psld_parallel(count, 1, apply_slopes, flow);
    return PSLD_OK;
}

static psld_status report(void *user, double fraction)
{
    const ode_flow *flow = user;
    return psld_walk_report(flow->walk, fraction);
}

static psld_status run(psld_walk *walk)
{
    ode_flow flow = {.walk = walk};
    size_t groups = psld_dp_groups(walk->count, walk->options->ode_group);
    flow.slopes = psld_alloc(groups, sizeof *flow.slopes);
    if (!flow.slopes) return PSLD_NO_MEMORY;
    psld_dp problem = {.name = "ode",
                       .from = 1,
                       .to = walk->options->eps,
                       .tolerance = walk->options->tolerance,
                       .rows = walk->count,
                       .width = walk->k * walk->dim,
                       .group = walk->options->ode_group,
                       .y = walk->z,
                       .work = walk->work,
                       .slopes = evaluate,
                       .report = report,
                       .user = &flow};
    psld_status status = psld_dp_solve(&problem, &walk->evaluations);
    walk->groups += groups;
    psld_release(flow.slopes);
    return status;
}

const psld_sampler psld_sampler_ode = {.name = "ode",
                                       .summary = "probability flow with Dormand-Prince 5(4) and adaptive steps",
                                       .evaluations = 1,
                                       .work_states = PSLD_DP_WORK,
                                       .deterministic = 1,
                                       .run = run};
