#include "train/trainer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/adam.h"
#include "model/networks/network_plan.h"
#include "nn/exec.h"
#include "nn/ops.h"

/* Parameters that are trained and lie side by side. */
typedef struct parameter_range {
    size_t first, count;
} parameter_range;

/* Neighbouring parameters whose gradients are summed over ranks together, and the step of the plan after which all of
 * them are final. Gradients become final from the last parameters to the first, roughly, so while one bucket is on its
 * way the steps before it are still computing. */
typedef struct bucket {
    size_t first, count, ready;
} bucket;

struct psld_trainer {
    psld_trainer_options options;
    psld_network *network;
    psld_network_plan network_plan;
    const psld_plan *plan; /* of it */
    psld_id target, metric, loss;
    psld_id loss_weight; /* what the loss of each sample counts in the sum */
    psld_exec *exec;
    float *gradients, *m, *v; /* [parameter_elements] each */
    float *sum;               /* of the gradients of micro-batches; NULL: there is one per step */
    float *average, *own_average;
    double more_decays[PSLD_MAX_AVERAGES];
    float *more[PSLD_MAX_AVERAGES]; /* further averages, [parameter_elements] each; NULL behind the last */
    parameter_range *ranges;
    size_t range_count;
    bucket *buckets; /* the last parameters first; NULL: this process is alone */
    size_t bucket_count;
    double *chunks;
    float *weights, *losses; /* [batch] */
    float *zeros;            /* [batch][PSLD_AUGMENT_INPUTS], or NULL where the network does not ask */
    int pending;             /* micro-batches since the last update */
    long steps;
};

void psld_trainer_defaults(psld_trainer_options *options)
{
    memset(options, 0, sizeof *options);
    options->batch = options->microbatches = 1;
    options->power = 2;
    options->rate = 2e-4;
    options->beta1 = 0.9;
    options->beta2 = 0.999;
    options->epsilon = 1e-8;
    options->warmup = 5000;
    options->clip = 1;
    options->ema = 0.9999;
}

static void add_loss(psld_trainer *r)
{
    psld_graph *graph = r->network_plan.graph;
    psld_id out = r->network_plan.out;
    psld_shape s = psld_graph_shape(graph, out);
    r->metric = PSLD_NONE;
    if (r->options.entropy) {
        r->target = psld_graph_input(graph, 1, 1, 1);
        r->loss = psld_nn_entropy(graph, out, r->target);
    } else {
        int variables = r->options.metric;
        r->target = psld_graph_input(graph, s.c, s.h, s.w);
        if (variables) r->metric = psld_graph_input(graph, variables * variables, 1, 1);
        r->loss = psld_nn_loss(graph, out, r->target, r->metric, r->options.power);
    }
    r->loss_weight = psld_graph_input(graph, 1, 1, 1);
}

/* The network's graph with a loss behind it, differentiated by all that is trained. */
static psld_status make_plan(psld_trainer *r)
{
    PSLD_TRY(psld_network_plan_begin(&r->network->config, 1, &r->network_plan));
    add_loss(r);
    psld_network_plan_options how = {.backend = r->options.backend,
                                     .batch = r->options.batch,
                                     .want = PSLD_WANT_GRADIENT_PARAMETERS,
                                     .objective = r->loss,
                                     .weight = r->loss_weight,
                                     .keeps_value = 1};
    PSLD_TRY(psld_network_plan_finish(&r->network_plan, &how));
    r->plan = r->network_plan.plan;
    return PSLD_OK;
}

/* What is not trained is not touched: decay would shrink it. */
static psld_status find_trained_ranges(psld_trainer *r)
{
    const psld_graph *graph = r->network_plan.graph;
    r->ranges = psld_alloc(graph->parameter_count, sizeof *r->ranges);
    if (!r->ranges) return PSLD_NO_MEMORY;
    int open = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        if (p->trained && !open) r->ranges[r->range_count++].first = p->offset;
        open = p->trained;
        if (open) r->ranges[r->range_count - 1].count = p->offset + p->count - r->ranges[r->range_count - 1].first;
    }
    return PSLD_OK;
}

/* The last step that writes the gradient of a parameter. */
static size_t final_step(const psld_plan *plan, const psld_parameter *p)
{
    size_t last = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].out.buffer == PSLD_IN_GRADIENTS && plan->steps[i].out.offset == p->offset) last = i;
    return last;
}

static psld_status make_buckets(psld_trainer *r)
{
    enum { BUCKET = 1 << 18 }; /* numbers: a megabyte is past the size where latency counts */
    const psld_graph *graph = r->network_plan.graph;
    size_t end = r->plan->parameters;
    if (!r->options.ranks || r->options.ranks->count < 2) return PSLD_OK;
    r->buckets = psld_alloc(graph->parameter_count, sizeof *r->buckets);
    if (!r->buckets) return PSLD_NO_MEMORY;
    for (size_t i = graph->parameter_count, ready = 0; i-- > 0;) {
        size_t first = i ? graph->parameters[i].offset : 0, step = final_step(r->plan, &graph->parameters[i]);
        if (step > ready) ready = step;
        if (end - first < BUCKET && i > 0) continue;
        r->buckets[r->bucket_count++] = (bucket){first, end - first, ready};
        end = first;
        ready = 0;
    }
    return PSLD_OK;
}

static psld_status make_more_averages(psld_trainer *r, size_t count)
{
    assert(r->options.more_count < PSLD_MAX_AVERAGES);
    for (size_t i = 0; i < r->options.more_count; i++) {
        r->more_decays[i] = r->options.more[i];
        r->more[i] = psld_alloc(count, sizeof(float));
        if (!r->more[i]) return PSLD_NO_MEMORY;
        memcpy(r->more[i], r->network->weights, count * sizeof(float));
    }
    r->options.more = NULL;
    return PSLD_OK;
}

static psld_status make_buffers(psld_trainer *r)
{
    size_t count = r->plan->parameters, batch = (size_t)r->options.batch;
    int own = r->options.ema > 0 && !r->options.average;
    r->gradients = psld_alloc(count, sizeof(float));
    r->m = psld_alloc(count, sizeof(float));
    r->v = psld_alloc(count, sizeof(float));
    r->sum = r->options.microbatches > 1 ? psld_alloc(count, sizeof(float)) : NULL;
    r->own_average = own ? psld_alloc(count, sizeof(float)) : NULL;
    r->average = r->options.ema > 0 ? own ? r->own_average : r->options.average : NULL;
    r->chunks = psld_alloc(psld_adam_chunks(count), sizeof(double));
    r->weights = psld_alloc(batch, sizeof(float));
    r->losses = psld_alloc(batch, sizeof(float));
    int told = r->network_plan.augment != PSLD_NONE;
    r->zeros = told ? psld_alloc(batch * PSLD_AUGMENT_INPUTS, sizeof(float)) : NULL;
    int all = r->gradients && r->m && r->v && (r->sum || r->options.microbatches <= 1) && (r->own_average || !own) &&
              r->chunks && r->weights && r->losses && (r->zeros || !told);
    if (!all) return PSLD_NO_MEMORY;
    if (r->average) memcpy(r->average, r->network->weights, count * sizeof(float));
    PSLD_TRY(make_more_averages(r, count));
    PSLD_TRY(find_trained_ranges(r));
    PSLD_TRY(make_buckets(r));
    return psld_exec_create(r->plan, r->network->weights, r->gradients, 0, &r->exec);
}

psld_status psld_trainer_create(psld_network *network, const psld_trainer_options *options, psld_trainer **trainer)
{
    *trainer = NULL;
    psld_trainer *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->options = *options;
    made->network = network;
    psld_status status = make_plan(made);
    if (status == PSLD_OK) status = make_buffers(made);
    if (status != PSLD_OK) {
        psld_trainer_free(made);
        return status;
    }
    *trainer = made;
    return PSLD_OK;
}

void psld_trainer_free(psld_trainer *trainer)
{
    if (!trainer) return;
    psld_exec_free(trainer->exec);
    psld_network_plan_clear(&trainer->network_plan);
    psld_release(trainer->gradients);
    psld_release(trainer->m);
    psld_release(trainer->v);
    psld_release(trainer->sum);
    psld_release(trainer->own_average);
    for (int i = 0; i < PSLD_MAX_AVERAGES; i++) psld_release(trainer->more[i]);
    psld_release(trainer->ranges);
    psld_release(trainer->buckets);
    psld_release(trainer->chunks);
    psld_release(trainer->weights);
    psld_release(trainer->losses);
    psld_release(trainer->zeros);
    psld_release(trainer);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

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
        r->options.ranks->begin_sum((r->sum ? r->sum : r->gradients) + r->buckets[i].first, r->buckets[i].count);
    }
    r->options.ranks->poke();
}

/* What the micro-batches since the last update add up to, on all ranks, at the offsets of the network's weights. */
static const float *step_gradient(psld_trainer *r)
{
    if (r->buckets) r->options.ranks->finish();
    return r->sum ? r->sum : r->gradients;
}

void psld_trainer_add(psld_trainer *r, const psld_microbatch *b)
{
    psld_run run = {.seed = r->options.seed, .step = (uint64_t)r->steps, .first = b->in_step, .training = 1};
    int n = (int)b->n, shared = r->buckets && b->last;
    assert(r->pending < r->options.microbatches);
    psld_exec_set(r->exec, r->network_plan.z, n, PSLD_F32, b->z);
    psld_exec_set(r->exec, r->network_plan.t, n, PSLD_F32, b->time);
    psld_exec_set(r->exec, r->target, n, PSLD_F32, b->target);
    if (r->metric != PSLD_NONE) psld_exec_set(r->exec, r->metric, n, PSLD_F32, b->metric);
    if (r->network_plan.augment != PSLD_NONE)
        psld_exec_set(r->exec, r->network_plan.augment, n, PSLD_F32, b->augment ? b->augment : r->zeros);
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
    *norm = sqrt(psld_adam_sum_squares(r->plan->parameters, g, r->chunks));
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
        psld_adam_update(&adam, r->ranges[i].count, g + at, r->network->weights + at, r->m + at, r->v + at,
                         r->average ? r->average + at : NULL);
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
    size_t copies = (size_t)(4 + (r->average != NULL) + (r->sum != NULL)) + r->options.more_count;
    return (copies * r->plan->parameters + r->plan->arena) * sizeof(float);
}
