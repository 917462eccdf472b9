/* Steps of a trainer: gradients of micro-batches, Adam, moving averages. trainer_create.c makes the trainer. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/adam.h"
#include "train/trainer_private.h"

double psld_trainer_rate(const psld_trainer_options *o, long step)
{
    if (step < o->warmup) return o->rate * (double)step / (double)o->warmup;
    if (o->schedule == PSLD_SCHEDULE_CONSTANT) return o->rate;
    if (o->schedule == PSLD_SCHEDULE_INVERSE_SQRT)
        return step > o->warmup ? o->rate * sqrt((double)o->warmup / (double)step) : o->rate;
    if (o->total <= o->warmup) return o->rate;
    double part = (double)(step - o->warmup) / (double)(o->total - o->warmup);
    if (part >= 1) return 0;
    return o->rate * (o->schedule == PSLD_SCHEDULE_COSINE ? 0.5 + 0.5 * cos(acos(-1) * part) : 1 - part);
}

/* The decay of a moving average at step k, from 0: `ema`, or with warm-up min(ema, (1 + k) / (10 + k)), so that the
 * average does not remember the initial weights for 1 / (1 - ema) steps. */
static double ema_decay(const psld_trainer_options *o, double ema, long step)
{
    return o->ema_warmup ? fmin(ema, (1 + (double)step) / (10 + (double)step)) : ema;
}

double psld_trainer_rate_now(const psld_trainer *r)
{
    return psld_trainer_rate(&r->options, r->steps);
}

typedef struct add_job {
    float *sum;
    const float *gradients;
} add_job;

static void add_range(void *context, size_t begin, size_t end)
{
    const add_job *job = context;
    for (size_t i = begin; i < end; i++) job->sum[i] += job->gradients[i];
}

/* Adds the gradients of a micro-batch, or of part of the parameters, to the sum of the step; the first is copied. */
static void add_to_sum(psld_trainer *r, size_t first, size_t count)
{
    add_job job = {r->sum + first, r->gradients + first};
    if (r->pending == 0)
        memcpy(r->sum + first, r->gradients + first, count * sizeof(float));
    else
        psld_parallel(count, 1 << 14, add_range, &job);
}

/* Sends off what the step of the plan that is just done has made final. */
static void send_final_gradients(void *user, size_t step)
{
    psld_trainer *r = user;
    for (size_t i = 0; i < r->bucket_count; i++) {
        if (r->buckets[i].ready != step) continue;
        if (r->sum) add_to_sum(r, r->buckets[i].first, r->buckets[i].count);
        r->options.ranks->begin_sum(r->sums, i, (r->sum ? r->sum : r->gradients) + r->buckets[i].first);
    }
    r->options.ranks->poke_sums(r->sums);
}

/* What the micro-batches since the last update add up to, on all ranks, at the offsets of the network's weights. */
static const float *step_gradient(psld_trainer *r)
{
    if (r->buckets) r->options.ranks->finish_sums(r->sums);
    return r->sum ? r->sum : r->gradients;
}

void psld_trainer_tell(const psld_trainer *r, psld_exec *exec, const psld_network_inputs *inputs,
                       const psld_microbatch *b, const float *z, const float *time)
{
    int n = (int)b->n;
    psld_exec_set(exec, inputs->z, n, PSLD_F32, z);
    psld_exec_set(exec, inputs->t, n, PSLD_F32, time);
    if (inputs->augment != PSLD_NONE)
        psld_exec_set(exec, inputs->augment, n, PSLD_F32, b->augment ? b->augment : r->zeros);
    if (inputs->label != PSLD_NONE) psld_exec_set(exec, inputs->label, n, PSLD_F32, b->one_hot ? b->one_hot : r->zeros);
}

void psld_trainer_add(psld_trainer *r, const psld_microbatch *b)
{
    psld_run run = {.seed = r->options.seed, .step = (uint64_t)r->steps, .first = b->in_step, .training = 1};
    int n = (int)b->n, shared = r->buckets && b->last;
    assert(r->pending < r->options.microbatches);
    psld_trainer_tell(r, r->exec, &r->network_plan.inputs, b, b->z, b->time);
    psld_exec_set(r->exec, r->target, n, PSLD_F32, b->target);
    if (r->metric != PSLD_NONE) psld_exec_set(r->exec, r->metric, n, PSLD_F32, b->metric);
    if (r->soft != PSLD_NONE) psld_exec_set(r->exec, r->soft, n, PSLD_F32, b->soft);
    psld_exec_set(r->exec, r->loss_weight, n, PSLD_F32, b->weight);
    psld_exec_watch(r->exec, shared ? send_final_gradients : NULL, r);
    psld_exec_run(r->exec, n, &run);
    psld_exec_get(r->exec, r->loss, n, PSLD_F32, b->loss);
    if (b->out) psld_exec_get(r->exec, r->network_plan.out, n, PSLD_F32, b->out);
    if (r->sum && !shared) add_to_sum(r, 0, r->plan->parameters);
    r->pending++;
}

typedef struct average_job {
    float decay, *average;
    const float *weights;
} average_job;

static void average_range(void *context, size_t begin, size_t end)
{
    const average_job *job = context;
    for (size_t i = begin; i < end; i++)
        job->average[i] = job->decay * job->average[i] + (1 - job->decay) * job->weights[i];
}

/* The averages beside the first, which Adam's pass over memory takes along. */
static void update_more_averages(psld_trainer *r)
{
    for (int i = 0; i < PSLD_MAX_AVERAGES && r->more[i]; i++)
        for (size_t j = 0; j < r->range_count; j++) {
            size_t at = r->ranges[j].first;
            average_job job = {(float)ema_decay(&r->options, r->more_decays[i], r->steps), r->more[i] + at,
                               r->network->weights + at};
            psld_parallel(r->ranges[j].count, 1 << 14, average_range, &job);
        }
}

void psld_trainer_drop(psld_trainer *r)
{
    (void)step_gradient(r);
    r->pending = 0;
}

psld_status psld_trainer_update(psld_trainer *r, double loss, double *norm)
{
    const psld_trainer_options *o = &r->options;
    const float *g = step_gradient(r);
    r->pending = 0;
    *norm = sqrt(r->options.backend->update.sum_squares(r->plan->parameters, g, r->chunks));
    if (!isfinite(loss) || !isfinite(*norm))
        return psld_fail(PSLD_NOT_FINITE, "step %ld: the loss is %g and the norm of its gradient %g", r->steps + 1,
                         loss, *norm);
    double rate = psld_trainer_rate_now(r);
    double ema = ema_decay(o, o->ema, r->steps);
    psld_adam adam = {rate, o->beta1, o->beta2, o->epsilon, o->adamw ? 0 : o->decay, 1, ema, 1, r->steps + 1};
    if (o->adamw) adam.shrink = 1 - rate * o->decay;
    if (o->clip > 0 && *norm > o->clip) adam.clip = o->clip / (*norm + 1e-6);
    for (size_t i = 0; i < r->range_count; i++) {
        size_t at = r->ranges[i].first;
        r->options.backend->update.adam(&adam, r->ranges[i].count, g + at, r->network->weights + at, r->m + at,
                                        r->v + at, r->average ? r->average + at : NULL);
    }
    update_more_averages(r);
    r->steps++;
    return PSLD_OK;
}

psld_status psld_trainer_step(psld_trainer *r, int n, uint64_t first, float *z, float *t, float *target, double *loss,
                              double *norm)
{
    psld_microbatch batch = {.n = (size_t)n,
                             .in_step = first,
                             .z = z,
                             .time = t,
                             .target = target,
                             .weight = r->weights,
                             .loss = r->losses,
                             .last = 1};
    int ranks = r->buckets ? r->options.ranks->count : 1;
    for (int i = 0; i < n; i++) r->weights[i] = 1 / (float)(n * ranks);
    psld_trainer_add(r, &batch);
    *loss = 0;
    for (int i = 0; i < n; i++) *loss += (double)r->losses[i] / n;
    return psld_trainer_update(r, *loss, norm);
}

psld_trainer_state psld_trainer_state_of(psld_trainer *r)
{
    psld_trainer_state state = {
        .count = r->plan->parameters, .m = r->m, .v = r->v, .average = r->average, .steps = &r->steps};
    memcpy(state.more, r->more, sizeof state.more);
    return state;
}

long psld_trainer_steps(const psld_trainer *trainer)
{
    return trainer->steps;
}

const float *psld_trainer_average(const psld_trainer *trainer)
{
    return trainer->average;
}

size_t psld_trainer_bytes(const psld_trainer *r)
{
    size_t copies =
        (size_t)(4 + (r->average != NULL) + (r->sum != NULL) + (r->buckets != NULL)) + r->options.more_count;
    size_t look = r->look_exec ? r->look_plan.plan->arena : 0;
    return (copies * r->plan->parameters + r->plan->arena + look) * sizeof(float);
}
