#include "nn/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/ops.h"

/* Each parameter begins at a cache line, as vector loads need. */
enum { PARAMETER_ALIGNMENT = 16, MAX_NODES = 1 << 24, MAX_SIDE = 1 << 24 };
static const size_t max_elements = (size_t)1 << 40; /* elements of one tensor per sample; larger tensors are mistakes */

psld_status psld_graph_create(psld_graph **graph)
{
    *graph = psld_alloc(1, sizeof **graph);
    return *graph ? PSLD_OK : PSLD_NO_MEMORY;
}

void psld_graph_free(psld_graph *graph)
{
    if (!graph) return;
    psld_release(graph->nodes);
    psld_release(graph->parameters);
    psld_release(graph);
}

psld_status psld_graph_status(const psld_graph *graph)
{
    return graph->status;
}

psld_id psld_graph_fail(psld_graph *graph, psld_status status)
{
    if (graph->status == PSLD_OK) graph->status = status;
    return PSLD_NONE;
}

size_t psld_shape_count(psld_shape s)
{
    return (size_t)(s.n > 0 ? s.n : 1) * (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

int psld_shape_same(psld_shape a, psld_shape b)
{
    return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}

psld_shape psld_graph_shape(const psld_graph *graph, psld_id id)
{
    if (id < 0 || (size_t)id >= graph->count) return (psld_shape){0, 1, 1, 1};
    return graph->nodes[id].shape;
}

static psld_status check_tensor_size(psld_shape s)
{
    int side[4] = {s.n > 0 ? s.n : 1, s.c, s.h, s.w};
    size_t count = 1;
    for (int i = 0; i < 4; i++) {
        if (side[i] < 1 || side[i] > MAX_SIDE || count > max_elements / (size_t)side[i])
            return psld_fail(PSLD_BAD_ARGUMENT, "network: a tensor of %d x %d x %d x %d is too large or empty", s.n,
                             s.c, s.h, s.w);
        count *= (size_t)side[i];
    }
    return PSLD_OK;
}

static psld_status append_node(psld_graph *graph, const psld_graph_node *node)
{
    void *nodes = graph->nodes;
    PSLD_TRY(check_tensor_size(node->shape));
    if (graph->count >= MAX_NODES)
        return psld_fail(PSLD_BAD_ARGUMENT, "network: has more than %d operations", MAX_NODES);
    PSLD_TRY(psld_grow(&nodes, &graph->capacity, graph->count + 1, sizeof *graph->nodes));
    graph->nodes = nodes;
    graph->nodes[graph->count++] = *node;
    return PSLD_OK;
}

psld_id psld_graph_add(psld_graph *graph, psld_op op, int inputs, const psld_id *in, const psld_attributes *attributes,
                       const psld_shape *shape)
{
    const psld_op_rule *rule = psld_op_rule_of(op);
    psld_graph_node node = {.op = op, .inputs = inputs, .parameter = PSLD_NONE};
    if (graph->status != PSLD_OK) return PSLD_NONE;
    assert(rule && inputs >= rule->min_inputs && inputs <= rule->max_inputs);
    for (int i = 0; i < inputs; i++) {
        assert(in[i] >= 0 && (size_t)in[i] < graph->count);
        node.in[i] = in[i];
    }
    if (attributes) node.attributes = *attributes;
    if (shape) node.shape = *shape;
    psld_status status = rule->shape(graph, &node);
    if (status == PSLD_OK) status = append_node(graph, &node);
    return status == PSLD_OK ? (psld_id)graph->count - 1 : psld_graph_fail(graph, status);
}

psld_id psld_graph_input(psld_graph *graph, int c, int h, int w)
{
    psld_graph_node node = {.op = PSLD_OP_INPUT, .shape = {0, c, h, w}, .parameter = PSLD_NONE};
    if (graph->status != PSLD_OK) return PSLD_NONE;
    psld_status status = append_node(graph, &node);
    return status == PSLD_OK ? (psld_id)graph->count - 1 : psld_graph_fail(graph, status);
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

static psld_status make_parameter(const char *name, int rank, const int *shape, psld_init init, double scale,
                                  psld_parameter *p, psld_graph_node *node)
{
    int side[4] = {1, 1, 1, 1};
    assert(rank >= 1 && rank <= 4);
    if (strlen(name) >= sizeof p->name)
        return psld_fail(PSLD_BAD_ARGUMENT, "parameter %s: the name is longer than %zu bytes", name,
                         sizeof p->name - 1);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->rank = rank;
    p->init = init;
    p->scale = scale;
    p->trained = 1;
    for (int i = 0; i < rank; i++) p->shape[i] = side[rank == 1 ? 1 : i] = shape[i];
    *node = (psld_graph_node){.op = PSLD_OP_PARAMETER, .shape = {side[0], side[1], side[2], side[3]}};
    PSLD_TRY(check_tensor_size(node->shape));
    p->count = psld_shape_count(node->shape);
    return PSLD_OK;
}

static psld_id find_parameter(psld_graph *graph, const char *name, int rank, const int *shape)
{
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        if (strcmp(p->name, name) != 0) continue;
        if (p->rank != rank || memcmp(p->shape, shape, (size_t)rank * sizeof *shape) != 0)
            return psld_graph_fail(graph,
                                   psld_fail(PSLD_BAD_ARGUMENT, "parameter %s: used with two different shapes", name));
        return p->id;
    }
    return PSLD_NONE;
}

static psld_status add_parameter(psld_graph *graph, psld_parameter *p, psld_graph_node *node)
{
    void *list = graph->parameters;
    PSLD_TRY(psld_grow(&list, &graph->parameter_capacity, graph->parameter_count + 1, sizeof *graph->parameters));
    graph->parameters = list;
    node->parameter = (int)graph->parameter_count;
    PSLD_TRY(append_node(graph, node));
    p->id = (psld_id)graph->count - 1;
    p->offset = graph->parameter_elements;
    graph->parameter_elements += (p->count + PARAMETER_ALIGNMENT - 1) / PARAMETER_ALIGNMENT * PARAMETER_ALIGNMENT;
    graph->parameters[graph->parameter_count++] = *p;
    return PSLD_OK;
}

psld_id psld_graph_parameter(psld_graph *graph, const char *name, int rank, const int *shape, psld_init init,
                             double scale)
{
    psld_parameter p;
    psld_graph_node node;
    if (graph->status != PSLD_OK) return PSLD_NONE;
    psld_id found = find_parameter(graph, name, rank, shape);
    if (found >= 0 || graph->status != PSLD_OK) return found;
    psld_status status = make_parameter(name, rank, shape, init, scale, &p, &node);
    if (status == PSLD_OK) status = add_parameter(graph, &p, &node);
    return status == PSLD_OK ? p.id : psld_graph_fail(graph, status);
}

psld_id psld_graph_fixed(psld_graph *graph, const char *name, int rank, const int *shape, psld_init init, double scale)
{
    psld_id id = psld_graph_parameter(graph, name, rank, shape, init, scale);
    if (id >= 0) graph->parameters[graph->nodes[id].parameter].trained = 0;
    return id;
}
