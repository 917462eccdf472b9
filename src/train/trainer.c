/* Steps of a trainer: gradients of micro-batches, Adam, moving averages. trainer_create.c makes the trainer. */
#include <assert.h>
#include <math.h>
#include <string.h>

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

double psld_trainer_rate_at(const psld_trainer *r, long step)
{
    return psld_trainer_rate(&r->options, step);
}

double psld_trainer_rate_now(const psld_trainer *r)
{
    return psld_trainer_rate(&r->options, r->steps);
}

/* ---- Gradients --------------------------------------------------------------------------------------------------- */

/* The sum of the gradients since the last update, at the offsets of the network's weights. */
static psld_memory *gradient_memory(const psld_trainer *r)
{
    return r->sum ? r->sum : r->gradients;
}

/* Adds the gradients of a micro-batch, or a part of them, to the sum of the step; the first ones are copied. */
static psld_status add_to_sum(psld_trainer *r, size_t first, size_t count)
{
    const psld_device_operations *does = r->device->does;
    const size_t element = sizeof(float);
    if (r->pending == 0) return does->copy(r->sum, first * element, r->gradients, first * element, count * element);
    return does->add(r->device, (psld_place){r->sum, first}, (psld_place){r->gradients, first}, count);
}

/* On the CPU: starts the sums of gradients that the last step of the plan has made final. */
static void send_final_gradients(void *user, size_t step)
{
    psld_trainer *r = user;
    for (size_t i = 0; i < r->bucket_count; i++) {
        if (r->buckets[i].ready != step) continue;
        if (r->sum) (void)add_to_sum(r, r->buckets[i].first, r->buckets[i].count); /* cannot fail on the CPU */
        r->options.ranks->begin_sum(r->sums, i, (float *)gradient_memory(r)->host + r->buckets[i].first);
    }
    r->options.ranks->poke_sums(r->sums);
}

/* On other devices: starts all sums, also after a failure, since other ranks wait for them. */
static psld_status send_exchanged_gradients(psld_trainer *r, psld_status status)
{
    size_t bytes = r->plan->parameters * sizeof(float);
    if (status == PSLD_OK) status = r->device->does->download(gradient_memory(r), 0, bytes, r->exchange);
    for (size_t i = 0; i < r->bucket_count; i++)
        r->options.ranks->begin_sum(r->sums, i, r->exchange + r->buckets[i].first);
    return status;
}

/* Waits for the sums over all ranks. */
static psld_status finish_gradients(psld_trainer *r, int wanted)
{
    if (!r->buckets) return PSLD_OK;
    r->options.ranks->finish_sums(r->sums);
    if (!r->exchange || !wanted) return PSLD_OK;
    return r->device->does->upload(gradient_memory(r), 0, r->plan->parameters * sizeof(float), r->exchange);
}

static psld_status begin_squares(psld_trainer *r)
{
    r->squares_begun = 1;
    return r->device->does->begin_squares(r->device, r->options.backend, (psld_place){gradient_memory(r), 0},
                                          r->plan->parameters, r->squares);
}

/* ---- Micro-batches ----------------------------------------------------------------------------------------------- */

psld_status psld_trainer_tell(const psld_trainer *r, psld_exec *exec, const psld_network_inputs *inputs,
                              const psld_microbatch *b, const float *z, const float *time)
{
    int n = (int)b->n;
    PSLD_TRY(psld_exec_set(exec, inputs->z, n, PSLD_F32, z));
    PSLD_TRY(psld_exec_set(exec, inputs->t, n, PSLD_F32, time));
    if (inputs->augment != PSLD_NONE)
        PSLD_TRY(psld_exec_set(exec, inputs->augment, n, PSLD_F32, b->augment ? b->augment : r->zeros));
    if (inputs->label == PSLD_NONE) return PSLD_OK;
    return psld_exec_set(exec, inputs->label, n, PSLD_F32, b->one_hot ? b->one_hot : r->zeros);
}

/* All of a micro-batch except the sums over ranks. */
static psld_status run_microbatch(psld_trainer *r, const psld_microbatch *b, int shared)
{
    psld_run run = {.seed = r->options.seed, .step = (uint64_t)r->steps, .first = b->in_step, .training = 1};
    int n = (int)b->n;
    PSLD_TRY(psld_trainer_tell(r, r->exec, &r->network_plan.inputs, b, b->z, b->time));
    PSLD_TRY(psld_exec_set(r->exec, r->target, n, PSLD_F32, b->target));
    if (r->metric != PSLD_NONE) PSLD_TRY(psld_exec_set(r->exec, r->metric, n, PSLD_F32, b->metric));
    if (r->soft != PSLD_NONE) PSLD_TRY(psld_exec_set(r->exec, r->soft, n, PSLD_F32, b->soft));
    PSLD_TRY(psld_exec_set(r->exec, r->loss_weight, n, PSLD_F32, b->weight));
    psld_exec_watch(r->exec, shared && !r->exchange ? send_final_gradients : NULL, r);
    PSLD_TRY(psld_exec_run(r->exec, n, &run));
    if (r->sum && (!shared || r->exchange)) PSLD_TRY(add_to_sum(r, 0, r->plan->parameters));
    /* Started before waiting for the device, so that it always has work. */
    if (b->last && !r->buckets) PSLD_TRY(begin_squares(r));
    PSLD_TRY(psld_exec_get(r->exec, r->loss, n, PSLD_F32, b->loss));
    if (b->by_z && r->options.by_z) PSLD_TRY(psld_exec_get(r->exec, r->network_plan.grad_z, n, PSLD_F32, b->by_z));
    return b->out ? psld_exec_get(r->exec, r->network_plan.out, n, PSLD_F32, b->out) : PSLD_OK;
}

psld_status psld_trainer_add(psld_trainer *r, const psld_microbatch *b)
{
    int shared = r->buckets && b->last;
    assert(r->pending < r->options.microbatches);
    psld_status status = run_microbatch(r, b, shared);
    if (shared && r->exchange) status = send_exchanged_gradients(r, status);
    r->pending++;
    return status;
}

void psld_trainer_drop(psld_trainer *r)
{
    (void)finish_gradients(r, 0);
    r->pending = r->squares_begun = 0;
}

/* ---- Updates ----------------------------------------------------------------------------------------------------- */

static psld_place state_at(const psld_trainer *r, int array, size_t offset)
{
    return psld_mirror_at(&r->state[array], offset);
}

/* The averages after the first; the first is updated in Adam's pass over memory. */
static psld_status update_more_averages(psld_trainer *r)
{
    for (int i = 0; i < PSLD_MAX_AVERAGES && r->more[i]; i++)
        for (size_t j = 0; j < r->range_count; j++) {
            size_t at = r->ranges[j].first;
            PSLD_TRY(r->device->does->average(r->device, state_at(r, TRAINER_MORE + i, at),
                                              state_at(r, TRAINER_WEIGHTS, at), r->ranges[j].count,
                                              (float)ema_decay(&r->options, r->more_decays[i], r->steps)));
        }
    return PSLD_OK;
}

static psld_status run_adam(psld_trainer *r, const psld_adam *adam)
{
    for (size_t i = 0; i < r->range_count; i++) {
        size_t at = r->ranges[i].first;
        PSLD_TRY(r->device->does->adam(r->device, r->options.backend, adam, r->ranges[i].count,
                                       (psld_place){gradient_memory(r), at}, state_at(r, TRAINER_WEIGHTS, at),
                                       state_at(r, TRAINER_M, at), state_at(r, TRAINER_V, at),
                                       state_at(r, TRAINER_AVERAGE, at)));
    }
    return PSLD_OK;
}

static psld_status measure_gradient(psld_trainer *r, double *norm)
{
    double squares = 0;
    psld_status status = r->squares_begun ? PSLD_OK : begin_squares(r);
    r->squares_begun = 0;
    if (status == PSLD_OK) status = r->device->does->read_squares(r->device, r->plan->parameters, r->squares, &squares);
    *norm = sqrt(squares);
    return status;
}

psld_status psld_trainer_update(psld_trainer *r, double loss, double *norm)
{
    const psld_trainer_options *o = &r->options;
    psld_status status = finish_gradients(r, 1);
    r->pending = 0;
    if (status == PSLD_OK) status = measure_gradient(r, norm);
    if (status != PSLD_OK) return psld_fail_in(status, "step %ld", r->steps + 1);
    if (!isfinite(loss) || !isfinite(*norm))
        return psld_fail(PSLD_NOT_FINITE, "step %ld: the loss is %g and the norm of its gradient %g", r->steps + 1,
                         loss, *norm);
    double rate = psld_trainer_rate_now(r);
    double ema = ema_decay(o, o->ema, r->steps);
    psld_adam adam = {rate, o->beta1, o->beta2, o->epsilon, o->adamw ? 0 : o->decay, 1, ema, 1, r->steps + 1};
    if (o->adamw) adam.shrink = 1 - rate * o->decay;
    if (o->clip > 0 && *norm > o->clip) adam.clip = o->clip / (*norm + 1e-6);
    r->stale = r->half_updated = 1;
    PSLD_TRY(run_adam(r, &adam));
    PSLD_TRY(update_more_averages(r));
    r->half_updated = 0;
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
    PSLD_TRY(psld_trainer_add(r, &batch));
    *loss = 0;
    for (int i = 0; i < n; i++) *loss += (double)r->losses[i] / n;
    return psld_trainer_update(r, *loss, norm);
}

/* ---- State ------------------------------------------------------------------------------------------------------- */

psld_status psld_trainer_fetch(psld_trainer *r)
{
    if (!r->stale) return PSLD_OK;
    if (r->half_updated)
        return psld_fail(PSLD_DEVICE_FAILED, "device %s failed in the middle of step %ld", r->device->facts.id,
                         r->steps + 1);
    for (int i = 0; i < TRAINER_STATE_ARRAYS; i++) PSLD_TRY(psld_mirror_download(&r->state[i]));
    r->stale = 0;
    return PSLD_OK;
}

psld_status psld_trainer_store(psld_trainer *r)
{
    for (int i = 0; i < TRAINER_STATE_ARRAYS; i++) PSLD_TRY(psld_mirror_upload(&r->state[i]));
    r->stale = 0;
    return PSLD_OK;
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
