/* Planning: dead nodes are removed, operations are fused, the remaining nodes become steps in the order of their
 * ids, and each result gets a location.
 *
 * A region is as large as the largest batch needs and lives from the step that writes it to the last step that reads
 * it. If a kernel can work in place and an input of the same shape dies at that step, the result takes over the
 * input's region. Regions are placed largest first, each into the smallest gap that fits between the placed regions
 * that are alive at the same time (greedy best fit; within a few per cent of the bound for these networks: the
 * printed plan shows both). */
#include "nn/plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "device/device.h"
#include "nn/work.h"

enum { REGION_ALIGNMENT = 16 }; /* elements: a cache line of floats */

typedef struct maker {
    const psld_graph *graph;
    const psld_plan_output *outputs;
    size_t output_count;
    psld_plan *plan;
    psld_plan_node *work; /* [node_count] */
    int *step_of;         /* [node_count]: -1 for inputs and parameters */
    int *last;            /* [node_count]: step that reads it last; outputs: one past the last step */
} maker;

static int is_leaf(psld_op op)
{
    return op == PSLD_OP_INPUT || op == PSLD_OP_PARAMETER;
}

static size_t round_up(size_t count)
{
    return (count + REGION_ALIGNMENT - 1) / REGION_ALIGNMENT * REGION_ALIGNMENT;
}

static size_t place_size(const psld_location *place, int batch)
{
    psld_shape s = place->shape;
    if (s.n > 0) return round_up(psld_shape_count(s));
    size_t count = (size_t)batch * (size_t)s.h * (size_t)s.w * place->pixel;
    return round_up(place->half ? (count + 1) / 2 : count);
}

/* The first offset, at or after `offset`, at which so many elements are in one block. */
static size_t fit_into_block(const psld_plan *plan, size_t offset, size_t size)
{
    size_t room = plan->block - offset % plan->block;
    return size <= room ? offset : offset + room;
}

/* ---- Which results are live, and how long ------------------------------------------------------------------------ */

static psld_status make_work(maker *m, unsigned passes)
{
    size_t count = m->plan->node_count;
    for (size_t i = 0; i < count; i++) {
        const psld_graph_node *node = &m->graph->nodes[i];
        m->work[i] = (psld_plan_node){.op = node->op, .inputs = node->inputs, .attributes = node->attributes};
        memcpy(m->work[i].from, node->in, sizeof node->in);
    }
    for (size_t i = 0; i < m->output_count; i++) m->work[m->outputs[i].id].pinned = 1;
    psld_plan_nodes_mark(m->work, count);
    return passes & PSLD_PASS_FUSE ? psld_plan_nodes_fuse(m->graph, m->plan->backend, m->work) : PSLD_OK;
}

static void find_lifetimes(maker *m)
{
    size_t steps = 0;
    for (size_t i = 0; i < m->plan->node_count; i++) {
        const psld_plan_node *work = &m->work[i];
        m->step_of[i] = -1;
        m->last[i] = -1;
        if (!work->live || is_leaf(work->op)) continue;
        m->step_of[i] = (int)steps++;
        for (int j = 0; j < work->inputs; j++)
            if (work->from[j] != PSLD_NONE) m->last[work->from[j]] = m->step_of[i];
    }
    m->plan->step_count = steps;
    for (size_t i = 0; i < m->output_count; i++) m->last[m->outputs[i].id] = (int)steps;
}

/* Buffers and layouts of all nodes, without offsets in the arena. */
static psld_status lay_out_nodes(maker *m)
{
    psld_plan *plan = m->plan;
    for (size_t i = 0; i < plan->node_count; i++) {
        const psld_graph_node *node = &m->graph->nodes[i];
        psld_location *place = &plan->places[i];
        plan->region_of[i] = PSLD_NONE;
        place->shape = node->shape;
        place->pixel = node->shape.n > 0 ? 0 : psld_lanes(node->shape.c);
        /* Vectors stay in full precision: they are small, and times, moments and losses need their digits. */
        place->half = plan->backend->half && place->pixel && node->shape.h * node->shape.w > 1;
        if (node->op != PSLD_OP_PARAMETER) continue;
        place->buffer = PSLD_IN_PARAMETERS;
        place->offset = m->graph->parameters[node->parameter].offset;
        place->parameter = node->parameter;
    }
    for (size_t i = 0; i < m->output_count; i++) {
        const psld_plan_output *output = &m->outputs[i];
        psld_location *place = &plan->places[output->id];
        if (output->gradient_of == PSLD_NONE) continue;
        const psld_parameter *parameter = &m->graph->parameters[output->gradient_of];
        if (place->buffer != PSLD_IN_ARENA || psld_shape_count(place->shape) != parameter->count || place->pixel)
            return psld_fail(PSLD_BAD_ARGUMENT, "plan: node %d cannot be the gradient of %s", output->id,
                             parameter->name);
        place->buffer = PSLD_IN_GRADIENTS;
        place->offset = parameter->offset;
    }
    return PSLD_OK;
}

/* Whether the contents change only with the parameters. */
static int is_kept(const psld_location *place)
{
    return place->buffer == PSLD_IN_PARAMETERS || place->buffer == PSLD_IN_KEPT;
}

/* Whether a node depends on parameters alone. */
static int is_constant(const maker *m, psld_id id)
{
    const psld_plan_node *work = &m->work[id];
    if (!work->live || work->pinned || !work->inputs || m->graph->nodes[id].shape.n == 0) return 0;
    for (int i = 0; i < work->inputs; i++)
        if (work->from[i] != PSLD_NONE && !is_kept(&m->plan->places[work->from[i]])) return 0;
    return 1;
}

/* Gives constants permanent locations, while there is room. */
static void keep_constants(maker *m, size_t *left)
{
    psld_plan *plan = m->plan;
    for (size_t i = 0; i < plan->node_count; i++) {
        psld_location *place = &plan->places[i];
        size_t size = place_size(place, plan->batch);
        if (!is_constant(m, (psld_id)i) || size * plan->element > *left) continue;
        *left -= size * plan->element;
        place->buffer = PSLD_IN_KEPT;
        place->offset = fit_into_block(plan, plan->kept, size);
        plan->kept = place->offset + size;
    }
}

/* Whether a step may overwrite its input `at`: the same memory must not be another of its inputs. */
static int may_overlay(const maker *m, const psld_plan_node *work, int at)
{
    unsigned in_place = m->plan->backend->kernel[work->op].in_place;
    for (int i = 0; i < work->inputs; i++)
        if (work->from[i] == work->from[at] && !(in_place >> i & 1)) return 0;
    return 1;
}

/* The region of an input that the result of a node can take over; PSLD_NONE: none. */
static int region_to_take(const maker *m, psld_id id)
{
    const psld_plan_node *work = &m->work[id];
    for (int i = 0; i < work->inputs; i++) {
        psld_id from = work->from[i];
        if (from == PSLD_NONE || m->plan->region_of[from] == PSLD_NONE || !may_overlay(m, work, i)) continue;
        if (m->last[from] != m->step_of[id]) continue;
        if (psld_shape_same(m->graph->nodes[from].shape, m->graph->nodes[id].shape)) return m->plan->region_of[from];
    }
    return PSLD_NONE;
}

static void make_regions(maker *m)
{
    psld_plan *plan = m->plan;
    for (size_t i = 0; i < plan->node_count; i++) {
        if (!m->work[i].live || plan->places[i].buffer != PSLD_IN_ARENA) continue;
        int region = region_to_take(m, (psld_id)i);
        if (region == PSLD_NONE) {
            region = (int)plan->region_count++;
            plan->regions[region] =
                (psld_region){.first = m->step_of[i], .size = place_size(&plan->places[i], plan->batch)};
        }
        /* A result without readers (for example an output written elsewhere) lives while its step runs. */
        plan->regions[region].last = m->last[i] > m->step_of[i] ? m->last[i] : m->step_of[i];
        plan->region_of[i] = region;
    }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* What a kernel would be called with for the largest batch, without pointers. */
static psld_call shape_call(const psld_plan *plan, const psld_step *step)
{
    psld_call call = {.attributes = &step->attributes,
                      .inputs = step->inputs,
                      .threads = plan->threads,
                      .narrow = plan->backend->narrow};
    for (int i = 0; i <= step->inputs; i++) {
        const psld_location *place = i < step->inputs ? &step->in[i] : &step->out;
        psld_operand *operand = i < step->inputs ? &call.in[i] : &call.out;
        operand->shape = place->shape;
        operand->pixel = place->pixel;
        if (place->shape.n == 0) operand->shape.n = plan->batch;
    }
    return call;
}

static size_t elements_of(const psld_plan *plan, size_t bytes)
{
    return round_up((bytes + plan->element - 1) / plan->element);
}

static void fill_step(maker *m, psld_id id)
{
    const psld_plan_node *work = &m->work[id];
    psld_step *step = &m->plan->steps[m->step_of[id]];
    step->op = work->op;
    step->id = id;
    step->kernel = m->plan->backend->kernel[work->op];
    step->attributes = work->attributes;
    step->inputs = work->inputs;
    for (int i = 0; i < work->inputs; i++) {
        step->from[i] = work->from[i];
        if (work->from[i] != PSLD_NONE) step->in[i] = m->plan->places[work->from[i]];
    }
    step->out = m->plan->places[id];
    psld_call call = shape_call(m->plan, step);
    if (step->kernel.scratch) step->scratch.size = elements_of(m->plan, step->kernel.scratch(&call));
    if (step->kernel.packed) step->packed.size = elements_of(m->plan, step->kernel.packed(&call));
}

/* Memory in the arena that is used during one step. */
static void make_extra(psld_plan *plan, int step, psld_step_memory *extra)
{
    extra->region = PSLD_NONE;
    if (!extra->size) return;
    extra->region = (int)plan->region_count++;
    plan->regions[extra->region] = (psld_region){step, step, extra->size, 0};
}

/* Keeps packed weights if they do not change between runs and there is room left. */
static int keep_packed(psld_plan *plan, psld_step *step, size_t *left)
{
    size_t bytes = step->packed.size * plan->element;
    if (!bytes || bytes > *left || !is_kept(&step->in[1])) return 0;
    *left -= bytes;
    step->packed.region = PSLD_NONE;
    step->packed.offset = fit_into_block(plan, plan->kept, step->packed.size);
    plan->kept = step->packed.offset + step->packed.size;
    return 1;
}

/* Makes the steps, without offsets in the arena. */
static void make_steps(maker *m, size_t *left)
{
    psld_plan *plan = m->plan;
    for (size_t i = 0; i < plan->node_count; i++)
        if (m->step_of[i] >= 0) fill_step(m, (psld_id)i);
    for (size_t i = 0; i < plan->step_count; i++) {
        psld_step *step = &plan->steps[i];
        make_extra(plan, (int)i, &step->scratch);
        if (keep_packed(plan, step, left)) continue;
        psld_call call = shape_call(plan, step);
        if (step->kernel.in_time && step->kernel.in_time(&call)) step->packed.size = 0;
        make_extra(plan, (int)i, &step->packed);
    }
}

static void set_offsets(psld_plan *plan)
{
    for (size_t i = 0; i < plan->node_count; i++)
        if (plan->region_of[i] != PSLD_NONE) plan->places[i].offset = plan->regions[plan->region_of[i]].offset;
    for (size_t i = 0; i < plan->step_count; i++) {
        psld_step *step = &plan->steps[i];
        for (int j = 0; j < step->inputs; j++)
            if (step->from[j] != PSLD_NONE) step->in[j] = plan->places[step->from[j]];
        step->out = plan->places[step->id];
        if (step->scratch.region != PSLD_NONE) step->scratch.offset = plan->regions[step->scratch.region].offset;
        if (step->packed.region != PSLD_NONE) step->packed.offset = plan->regions[step->packed.region].offset;
    }
}

/* ---- Places in the arena ----------------------------------------------------------------------------------------- */

static int alive_together(const psld_region *a, const psld_region *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Larger regions first, then by time, so that the order is unique. */
static int compare_region_size(const void *left, const void *right)
{
    const psld_region *const *a = left, *const *b = right;
    if ((*a)->size != (*b)->size) return (*a)->size < (*b)->size ? 1 : -1;
    if ((*a)->first != (*b)->first) return (*a)->first < (*b)->first ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* The smallest gap for `region` among `placed`, which are sorted by offset. */
static size_t best_gap(const psld_plan *plan, psld_region *const *placed, size_t count, const psld_region *region)
{
    size_t end = 0, best = SIZE_MAX, best_gap_size = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const psld_region *other = placed[i];
        size_t at = fit_into_block(plan, end, region->size);
        if (!alive_together(region, other)) continue;
        if (other->offset > at && other->offset - at >= region->size && other->offset - at < best_gap_size) {
            best = at;
            best_gap_size = other->offset - at;
        }
        if (other->offset + other->size > end) end = other->offset + other->size;
    }
    return best == SIZE_MAX ? fit_into_block(plan, end, region->size) : best;
}

static psld_status check_blocks(const psld_plan *plan)
{
    const char *id = psld_device_of(plan->backend)->facts.id;
    size_t largest = 0;
    for (size_t i = 0; i < plan->region_count; i++)
        if (plan->regions[i].size > largest) largest = plan->regions[i].size;
    if (largest <= plan->block) return PSLD_OK;
    int fits = (int)((double)plan->block / (double)largest * plan->batch);
    char advice[64] = "a smaller network is needed", needs[PSLD_DEVICE_AMOUNT], has[PSLD_DEVICE_AMOUNT];
    if (fits > 0) snprintf(advice, sizeof advice, "a batch of %d fits", fits);
    return psld_fail(PSLD_NO_MEMORY, "one tensor needs %s with a batch of %d, device %s has blocks of at most %s: %s",
                     psld_device_amount(largest * plan->element, needs), plan->batch, id,
                     psld_device_amount(plan->block * plan->element, has), advice);
}

static psld_status place_regions(psld_plan *plan)
{
    size_t count = plan->region_count;
    psld_region **order = psld_alloc(2 * count, sizeof *order);
    if (!order) return PSLD_NO_MEMORY;
    psld_region **placed = order + count;
    for (size_t i = 0; i < count; i++) order[i] = &plan->regions[i];
    qsort(order, count, sizeof *order, compare_region_size);
    for (size_t i = 0; i < count; i++) {
        psld_region *region = order[i];
        region->offset = best_gap(plan, placed, i, region);
        size_t at = i;
        for (; at > 0 && placed[at - 1]->offset > region->offset; at--) placed[at] = placed[at - 1];
        placed[at] = region;
        if (region->offset + region->size > plan->arena) plan->arena = region->offset + region->size;
    }
    psld_release(order);
    return PSLD_OK;
}

static psld_status find_bound(psld_plan *plan)
{
    size_t slots = plan->step_count + 3, live = 0; /* -1 ... step_count, and one more */
    size_t *born = psld_alloc(2 * slots, sizeof *born);
    if (!born) return PSLD_NO_MEMORY;
    size_t *dead = born + slots;
    for (size_t i = 0; i < plan->region_count; i++) {
        born[plan->regions[i].first + 1] += plan->regions[i].size;
        dead[plan->regions[i].last + 2] += plan->regions[i].size;
    }
    for (size_t i = 0; i < slots; i++) {
        live += born[i] - dead[i];
        if (live > plan->bound) plan->bound = live;
    }
    psld_release(born);
    return PSLD_OK;
}

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

static psld_status allocate_plan(maker *m)
{
    psld_plan *plan = m->plan;
    size_t nodes = plan->node_count;
    m->work = psld_alloc(nodes, sizeof *m->work);
    m->step_of = psld_alloc(nodes, sizeof *m->step_of);
    m->last = psld_alloc(nodes, sizeof *m->last);
    plan->steps = psld_alloc(nodes, sizeof *plan->steps);
    plan->regions = psld_alloc(3 * nodes, sizeof *plan->regions);
    plan->region_of = psld_alloc(nodes, sizeof *plan->region_of);
    plan->places = psld_alloc(nodes, sizeof *plan->places);
    int all = m->work && m->step_of && m->last && plan->steps && plan->regions && plan->region_of && plan->places;
    return all ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status build_plan(maker *m, const psld_plan_options *options)
{
    size_t left = options->store;
    PSLD_TRY(allocate_plan(m));
    PSLD_TRY(make_work(m, options->passes));
    find_lifetimes(m);
    PSLD_TRY(lay_out_nodes(m));
    keep_constants(m, &left);
    make_regions(m);
    make_steps(m, &left);
    PSLD_TRY(check_blocks(m->plan));
    PSLD_TRY(place_regions(m->plan));
    set_offsets(m->plan);
    return find_bound(m->plan);
}

static size_t block_of(const psld_backend *backend, size_t element)
{
    uint64_t count = psld_device_of(backend)->facts.largest / element;
    return (size_t)(count < SIZE_MAX ? count : SIZE_MAX) / REGION_ALIGNMENT * REGION_ALIGNMENT;
}

psld_status psld_plan_create(const psld_graph *graph, const psld_plan_options *options, const psld_plan_output *outputs,
                             size_t count, psld_plan **plan)
{
    *plan = NULL;
    if (graph->status != PSLD_OK) return graph->status;
    assert(options->batch >= 1);
    psld_plan *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->backend = options->backend;
    made->batch = options->batch;
    made->threads = psld_threads_get();
    made->element = options->backend->type == PSLD_F64 ? sizeof(double) : sizeof(float);
    made->block = block_of(options->backend, made->element);
    made->node_count = graph->count;
    made->parameters = graph->parameter_elements;
    maker m = {.graph = graph, .outputs = outputs, .output_count = count, .plan = made};
    psld_status status = build_plan(&m, options);
    psld_release(m.work);
    psld_release(m.step_of);
    psld_release(m.last);
    if (status != PSLD_OK) {
        psld_plan_free(made);
        return status;
    }
    *plan = made;
    return PSLD_OK;
}

void psld_plan_free(psld_plan *plan)
{
    if (!plan) return;
    psld_release(plan->steps);
    psld_release(plan->regions);
    psld_release(plan->region_of);
    psld_release(plan->places);
    psld_release(plan);
}

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

static psld_status check_extra(const psld_plan *plan, size_t step, const psld_step_memory *extra)
{
    const psld_region *region = extra->region == PSLD_NONE ? NULL : &plan->regions[extra->region];
    if (!extra->size || (!region && extra->offset + extra->size <= plan->kept)) return PSLD_OK;
    if (region && region->offset == extra->offset && region->size >= extra->size && region->first <= (int)step &&
        region->last >= (int)step)
        return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "plan: the scratch of step %zu lies outside its region", step);
}

static psld_status check_place(const psld_plan *plan, size_t step, psld_id id, const psld_location *place)
{
    if (place->buffer != PSLD_IN_ARENA) return PSLD_OK;
    const psld_region *region = plan->region_of[id] == PSLD_NONE ? NULL : &plan->regions[plan->region_of[id]];
    if (!region || place->offset != region->offset || place_size(place, plan->batch) > region->size)
        return psld_fail(PSLD_BAD_ARGUMENT, "plan: node %d of step %zu lies outside its region", id, step);
    if (region->first > (int)step || region->last < (int)step)
        return psld_fail(PSLD_BAD_ARGUMENT, "plan: node %d is used by step %zu, but lives in steps %d to %d", id, step,
                         region->first, region->last);
    return PSLD_OK;
}

psld_status psld_plan_check(const psld_plan *plan)
{
    for (size_t i = 0; i < plan->region_count; i++)
        for (size_t j = 0; j < i; j++) {
            const psld_region *a = &plan->regions[i], *b = &plan->regions[j];
            if (alive_together(a, b) && a->offset < b->offset + b->size && b->offset < a->offset + a->size)
                return psld_fail(PSLD_BAD_ARGUMENT, "plan: regions %zu and %zu overlap", j, i);
        }
    for (size_t i = 0; i < plan->step_count; i++) {
        const psld_step *step = &plan->steps[i];
        PSLD_TRY(check_extra(plan, i, &step->scratch));
        PSLD_TRY(check_extra(plan, i, &step->packed));
        PSLD_TRY(check_place(plan, i, step->id, &step->out));
        for (int j = 0; j < step->inputs; j++)
            if (step->from[j] != PSLD_NONE) PSLD_TRY(check_place(plan, i, step->from[j], &step->in[j]));
    }
    return PSLD_OK;
}
