/* Plans of networks and their cost: counted, and measured on artificial states. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "model/model.h"
#include "nn/plan.h"

double psld_model_flops(psld_model *model)
{
    if (!model->network || psld_model_prepare(model, 0, 1) != PSLD_OK) return 0;
    return psld_plan_flops(psld_runner_plan(model->runners[0]), 1);
}

static psld_status check_batch(size_t batch)
{
    if (batch >= 1 && batch <= PSLD_LARGEST_BATCH) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "batch: expected 1 to %d, found %zu", PSLD_LARGEST_BATCH, batch);
}

psld_status psld_model_plan(psld_model *model, size_t batch, char **text)
{
    *text = NULL;
    if (!model->network) return psld_fail(PSLD_BAD_ARGUMENT, "plan: this model is not a network");
    PSLD_TRY(check_batch(batch));
    PSLD_TRY(psld_model_prepare(model, 0, batch));
    return psld_plan_text(psld_runner_plan(model->runners[0]), NULL, 0, text);
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

typedef struct rehearsal {
    psld_model *model;
    size_t batch, dim;
    double *room, *z, *t, *eps;
} rehearsal;

/* Plans, and evaluates once to fill the caches. */
static psld_status time_begin(psld_model *model, size_t batch, int repetitions, rehearsal *r)
{
    *r = (rehearsal){.model = model, .batch = batch};
    if (!model->source || !model->network)
        return psld_fail(PSLD_BAD_ARGUMENT, "time: this model is not a score network");
    PSLD_TRY(check_batch(batch));
    psld_model_ask_batch(model, (int)batch);
    if (repetitions < 1) return psld_fail(PSLD_BAD_ARGUMENT, "repetitions: expected at least 1, found %d", repetitions);
    r->dim = psld_model_size(model);
    size_t in = r->dim * (size_t)model->recipe->spec.k, out = r->dim * (size_t)model->recipe->predicted;
    r->room = psld_alloc(batch, (in + out + 1) * sizeof *r->room);
    if (!r->room) return PSLD_NO_MEMORY;
    r->z = r->room;
    r->t = r->z + batch * in;
    r->eps = r->t + batch;
    for (size_t i = 0; i < batch * in; i++) r->z[i] = sin((double)i);
    for (size_t i = 0; i < batch; i++) r->t[i] = 0.5;
    return psld_source_predict(model->source, &PSLD_STATES(batch, r->dim, r->z, r->t), r->eps);
}

static psld_status time_evaluate(const rehearsal *r, double *seconds)
{
    double began = psld_seconds();
    psld_status status = psld_source_predict(r->model->source, &PSLD_STATES(r->batch, r->dim, r->z, r->t), r->eps);
    *seconds = psld_seconds() - began;
    return status;
}

psld_status psld_model_time(psld_model *model, size_t batch, int repetitions, double *seconds, size_t *bytes)
{
    rehearsal r;
    double now;
    psld_status status = time_begin(model, batch, repetitions, &r);
    *seconds = (double)INFINITY;
    for (int i = 0; i < repetitions && status == PSLD_OK; i++) {
        status = time_evaluate(&r, &now);
        *seconds = fmin(*seconds, now);
    }
    if (status == PSLD_OK) *bytes = (size_t)psld_runner_bytes(model->runners[0]);
    psld_release(r.room);
    return status;
}

/* Seconds per step of the fastest of several evaluations, in the first half of `steps`. */
static psld_status time_steps(const rehearsal *r, int repetitions, size_t count, double *steps)
{
    double best = (double)INFINITY, now, *these = steps + count;
    psld_status status = PSLD_OK;
    psld_runner_time(r->model->runners[0], these);
    for (int i = 0; i < repetitions && status == PSLD_OK; i++) {
        memset(these, 0, count * sizeof *these);
        status = time_evaluate(r, &now);
        if (now >= best) continue;
        best = now;
        memcpy(steps, these, count * sizeof *steps);
    }
    psld_runner_time(r->model->runners[0], NULL);
    return status;
}

static psld_status visit_kernels(const psld_plan *plan, const double *steps, size_t batch, psld_kernel_time_fn visit,
                                 void *user)
{
    psld_kernel_time *kinds = psld_alloc(plan->step_count, sizeof *kinds);
    if (!kinds) return PSLD_NO_MEMORY;
    size_t count = psld_plan_kinds(plan, steps, (int)batch, plan->step_count, kinds);
    for (size_t i = 0; i < count; i++) visit(user, &kinds[i]);
    psld_release(kinds);
    return PSLD_OK;
}

psld_status psld_model_profile(psld_model *model, size_t batch, int repetitions, psld_kernel_time_fn visit, void *user,
                               char **text)
{
    rehearsal r;
    size_t most = psld_model_batch(model);
    *text = NULL;
    psld_status status = time_begin(model, batch < most ? batch : most, repetitions, &r);
    const psld_plan *plan = status == PSLD_OK ? psld_runner_plan(model->runners[0]) : NULL;
    double *steps = plan ? psld_alloc(2 * plan->step_count, sizeof *steps) : NULL;
    if (status == PSLD_OK) status = steps ? time_steps(&r, repetitions, plan->step_count, steps) : PSLD_NO_MEMORY;
    if (status == PSLD_OK && visit) status = visit_kernels(plan, steps, r.batch, visit, user);
    if (status == PSLD_OK) status = psld_plan_text(plan, steps, (int)r.batch, text);
    psld_release(steps);
    psld_release(r.room);
    return status;
}
