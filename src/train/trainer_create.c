/* Making a trainer: the plan of network and loss, the buffers, the buckets of gradients. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/adam.h"
#include "nn/ops.h"
#include "train/trainer_private.h"

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
    r->metric = r->soft = PSLD_NONE;
    if (r->options.entropy) {
        r->target = psld_graph_input(graph, 1, 1, 1);
        r->loss = psld_nn_entropy(graph, out, r->target);
    } else {
        int variables = r->options.metric;
        r->target = psld_graph_input(graph, s.c, s.h, s.w);
        if (variables) r->metric = psld_graph_input(graph, variables * variables, 1, 1);
        r->loss = psld_nn_loss(graph, out, r->target, r->metric, r->options.power);
    }
    if (r->options.root) {
        r->soft = psld_graph_input(graph, 1, 1, 1);
        r->loss = psld_nn_root(graph, r->loss, r->soft);
    }
    r->loss_weight = psld_graph_input(graph, 1, 1, 1);
}

/* The network's graph followed by the loss, differentiated by all trained parameters. */
static psld_status plan_trainer(psld_trainer *r)
{
    PSLD_TRY(psld_network_plan_begin(&r->network->config, 1, &r->network_plan));
    add_loss(r);
    unsigned by_z = r->options.by_z ? PSLD_WANT_GRADIENT_Z : 0;
    psld_network_plan_options how = {.backend = r->options.backend,
                                     .batch = r->options.batch,
                                     .want = PSLD_WANT_GRADIENT_PARAMETERS | by_z,
                                     .objective = r->loss,
                                     .weight = r->loss_weight,
                                     .keeps_value = 1};
    PSLD_TRY(psld_network_plan_finish(&r->network_plan, &how));
    r->plan = r->network_plan.plan;
    return PSLD_OK;
}

/* Parameters that are not trained must not be updated: decay would shrink them. */
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

/* Numbers of the smallest bucket: a megabyte, or 64 KB for each rank, is past the size where latency counts. */
static size_t bucket_size(const psld_distribution *ranks)
{
    enum { ONE = 1 << 18, OF_RANK = 1 << 14 };
    size_t of_all = (size_t)OF_RANK * (size_t)ranks->count;
    return of_all > ONE ? of_all : ONE;
}

static psld_status create_sums(psld_trainer *r)
{
    size_t *counts = psld_alloc(r->bucket_count, sizeof *counts);
    if (!counts) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < r->bucket_count; i++) counts[i] = r->buckets[i].count;
    psld_status status = r->options.ranks->create_sums(counts, r->bucket_count, r->options.format, &r->sums);
    psld_release(counts);
    return status;
}

static psld_status make_gradient_buckets(psld_trainer *r)
{
    const psld_graph *graph = r->network_plan.graph;
    size_t end = r->plan->parameters;
    if (!r->options.ranks || r->options.ranks->count < 2) return PSLD_OK;
    r->buckets = psld_alloc(graph->parameter_count, sizeof *r->buckets);
    if (!r->buckets) return PSLD_NO_MEMORY;
    for (size_t i = graph->parameter_count, ready = 0; i-- > 0;) {
        size_t first = i ? graph->parameters[i].offset : 0, step = final_step(r->plan, &graph->parameters[i]);
        if (step > ready) ready = step;
        if (end - first < bucket_size(r->options.ranks) && i > 0) continue;
        r->buckets[r->bucket_count++] = (bucket){first, end - first, ready};
        end = first;
        ready = 0;
    }
    return create_sums(r);
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

static psld_status allocate_floats(size_t count, float **array)
{
    *array = psld_alloc(count, sizeof **array);
    return *array ? PSLD_OK : PSLD_NO_MEMORY;
}

/* Memory of the host: the state in a checkpoint, and averages. */
static psld_status allocate_state(psld_trainer *r)
{
    size_t count = r->plan->parameters;
    PSLD_TRY(allocate_floats(count, &r->m));
    PSLD_TRY(allocate_floats(count, &r->v));
    if (r->options.ema > 0) {
        if (!r->options.average) PSLD_TRY(allocate_floats(count, &r->own_average));
        r->average = r->own_average ? r->own_average : r->options.average;
        memcpy(r->average, r->network->weights, count * sizeof(float));
    }
    return make_more_averages(r, count);
}

/* The same memory on the device. */
static psld_status mirror_state(psld_trainer *r)
{
    float *const arrays[TRAINER_MORE] = {r->network->weights, r->m, r->v, r->average};
    for (int i = 0; i < TRAINER_STATE_ARRAYS; i++)
        PSLD_TRY(psld_mirror_open(r->device, i < TRAINER_MORE ? arrays[i] : r->more[i - TRAINER_MORE],
                                  r->plan->parameters * sizeof(float), &r->state[i]));
    return psld_trainer_store(r);
}

/* Memory that is used within steps. */
static psld_status allocate_work(psld_trainer *r)
{
    size_t bytes = r->plan->parameters * sizeof(float), batch = (size_t)r->options.batch;
    const psld_device_operations *does = r->device->does;
    PSLD_TRY(does->create(r->device, bytes, &r->gradients));
    if (r->options.microbatches > 1) PSLD_TRY(does->create(r->device, bytes, &r->sum));
    PSLD_TRY(does->create(r->device, does->squares_bytes(r->options.backend, r->plan->parameters), &r->squares));
    PSLD_TRY(allocate_floats(batch, &r->weights));
    PSLD_TRY(allocate_floats(batch, &r->losses));
    size_t told = r->network_plan.inputs.augment != PSLD_NONE ? PSLD_AUGMENT_INPUTS : 0;
    if (told < (size_t)r->network->config.classes) told = (size_t)r->network->config.classes;
    return told ? allocate_floats(batch * told, &r->zeros) : PSLD_OK;
}

static size_t fixed_bytes(const psld_trainer *r)
{
    size_t copies = (size_t)(4 + (r->options.ema > 0) + (r->options.microbatches > 1)) + r->options.more_count;
    return copies * r->plan->parameters * sizeof(float);
}

/* Memory that is as large as the batch. */
static size_t batch_bytes(const psld_trainer *r)
{
    size_t look = r->look_plan.plan ? r->look_plan.plan->arena : 0;
    return (r->plan->arena + look) * r->plan->element;
}

size_t psld_trainer_bytes(const psld_trainer *r)
{
    size_t sums = r->buckets ? r->plan->parameters * sizeof(float) : 0;
    return fixed_bytes(r) + batch_bytes(r) + sums;
}

static psld_status allocate_trainer(psld_trainer *r)
{
    PSLD_TRY(psld_device_check_room(r->device, fixed_bytes(r), batch_bytes(r), r->options.batch, "train.batch="));
    PSLD_TRY(allocate_state(r));
    PSLD_TRY(mirror_state(r));
    PSLD_TRY(allocate_work(r));
    PSLD_TRY(find_trained_ranges(r));
    PSLD_TRY(make_gradient_buckets(r));
    if (r->buckets && !r->gradients->host) PSLD_TRY(allocate_floats(r->plan->parameters, &r->exchange));
    if (r->options.root) PSLD_TRY(psld_trainer_plan_look(r));
    return psld_exec_create_on(r->plan, r->state[TRAINER_WEIGHTS].memory, r->gradients, &r->exec);
}

psld_status psld_trainer_create(psld_network *network, const psld_trainer_options *options, psld_trainer **trainer)
{
    *trainer = NULL;
    psld_trainer *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->options = *options;
    made->network = network;
    made->device = psld_device_of(options->backend);
    psld_status status = plan_trainer(made);
    if (status == PSLD_OK) status = allocate_trainer(made);
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
    psld_exec_free(trainer->look_exec);
    psld_network_plan_clear(&trainer->look_plan);
    psld_network_plan_clear(&trainer->network_plan);
    for (int i = 0; i < TRAINER_STATE_ARRAYS; i++) psld_mirror_clear(&trainer->state[i]);
    trainer->device->does->free(trainer->gradients);
    trainer->device->does->free(trainer->sum);
    trainer->device->does->free(trainer->squares);
    psld_release(trainer->m);
    psld_release(trainer->v);
    psld_release(trainer->own_average);
    for (int i = 0; i < PSLD_MAX_AVERAGES; i++) psld_release(trainer->more[i]);
    psld_release(trainer->ranges);
    if (trainer->sums) trainer->options.ranks->free_sums(trainer->sums);
    psld_release(trainer->buckets);
    psld_release(trainer->exchange);
    psld_release(trainer->weights);
    psld_release(trainer->losses);
    psld_release(trainer->zeros);
    psld_release(trainer);
}
