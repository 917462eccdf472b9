/* Probability flow ODE (App. B.4.3 of the paper) with the Dormand-Prince pair of orders 5(4) and adaptive steps
 * (dormand_prince.h). It is integrated from t = 1 to the smallest time. A group of options->ode_group consecutive samples
 * shares its steps. */
#include "base/alloc.h"
#include "base/threads.h"
#include "sample/inverse/inpaint.h"
#include "sample/samplers/dormand_prince.h"
#include "sample/samplers/sampler.h"

/* The map from state and eps to the group_slope, at the time of a group. */
typedef struct group_slope {
    psld_affine map;
    psld_status status;
} group_slope;

typedef struct ode_flow {
    psld_reverse *reverse;
    group_slope *slopes; /* [groups] */
    /* of the current evaluation: */
    const psld_dp_group *groups;
    double *states, *out;
} ode_flow;

static double *packed_states(const ode_flow *flow, const psld_dp_group *g)
{
    return flow->states + g->packed * flow->reverse->k * flow->reverse->dim;
}

static void plan_group_slopes(void *context, size_t begin, size_t end)
{
    const ode_flow *flow = context;
    for (size_t a = begin; a < end; a++) {
        const psld_dp_group *g = &flow->groups[a];
        for (size_t i = 0; i < g->count; i++) {
            flow->reverse->t[g->packed + i] = g->t;
            flow->reverse->sample[g->packed + i] = flow->reverse->first + g->begin + i;
        }
        flow->slopes[a].status = psld_affine_flow(flow->reverse->recipe, g->t, &flow->slopes[a].map);
    }
}

static void apply_group_slopes(void *context, size_t begin, size_t end)
{
    const ode_flow *flow = context;
    psld_reverse part = *flow->reverse;
    for (size_t a = begin; a < end; a++) {
        const psld_dp_group *g = &flow->groups[a];
        part.eps = flow->reverse->eps + g->packed * part.predicted * part.dim;
        part.count = g->count;
        psld_affine_apply(&part, &flow->slopes[a].map, PSLD_FOR_STEP, 0, NULL, packed_states(flow, g),
                          flow->out + g->begin * part.k * part.dim);
    }
}

/* The known part of inpainted states follows a smooth trajectory, given in advance (inpaint.h). */
static void inpaint_groups(const ode_flow *flow, size_t count)
{
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &flow->groups[a];
        psld_inpaint_apply(flow->reverse, g->begin, g->count, g->t, g->t, 0, packed_states(flow, g));
    }
}

static psld_status watch_groups(const ode_flow *flow, size_t count)
{
    const psld_reverse *reverse = flow->reverse;
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &flow->groups[a];
        PSLD_TRY(psld_reverse_watch(reverse, g->packed, g->count, packed_states(flow, g)));
    }
    return PSLD_OK;
}

static psld_status evaluate_slopes(void *user, size_t count, const psld_dp_group *groups, double *states,
                                   double *slopes)
{
    ode_flow *flow = user;
    size_t samples = 0;
    flow->groups = groups;
    flow->states = states;
    flow->out = slopes;
    psld_parallel(count, 1, plan_group_slopes, flow);
    for (size_t a = 0; a < count; a++) {
        if (flow->slopes[a].status != PSLD_OK) /* repeated in this thread, for its error text */
            return psld_affine_flow(flow->reverse->recipe, groups[a].t, &flow->slopes[a].map);
        samples += groups[a].count;
    }
    inpaint_groups(flow, count);
    PSLD_TRY(psld_reverse_predict_each(flow->reverse, samples, states));
    PSLD_TRY(watch_groups(flow, count));
    psld_parallel(count, 1, apply_group_slopes, flow);
    return PSLD_OK;
}

static psld_status report_ode_progress(void *user, double fraction)
{
    const ode_flow *flow = user;
    return psld_reverse_report(flow->reverse, fraction);
}

static psld_status ode_integrate(psld_reverse *reverse)
{
    ode_flow flow = {.reverse = reverse};
    size_t groups = psld_dp_groups(reverse->count, (size_t)reverse->options->ode_group);
    flow.slopes = psld_alloc(groups, sizeof *flow.slopes);
    if (!flow.slopes) return PSLD_NO_MEMORY;
    psld_dp problem = {.name = "ode",
                       .from = 1,
                       .to = reverse->options->eps,
                       .tolerance = reverse->options->tolerance,
                       .count = reverse->count,
                       .width = reverse->k * reverse->dim,
                       .group = (size_t)reverse->options->ode_group,
                       .y = reverse->z,
                       .work = reverse->work,
                       .slopes = evaluate_slopes,
                       .report = report_ode_progress,
                       .user = &flow};
    psld_status status = psld_dp_solve(&problem, &reverse->evaluations);
    reverse->groups += groups;
    psld_release(flow.slopes);
    return status;
}

const psld_sampler psld_sampler_ode = {
    .info = {.name = "ode",
             .summary = "probability flow with Dormand-Prince 5(4) and adaptive steps",
             .evaluations = 1,
             .adaptive = 1,
             .deterministic = 1,
             .uses_tolerance = 1},
    .work_states = PSLD_DP_WORK,
    .integrate = ode_integrate,
};
