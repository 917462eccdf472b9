/* Reverse accumulation. Nodes are visited from the output down. Ids are an order of computation, so when a node is
 * visited everything that depends on it has contributed to its gradient. Only nodes on a path from one of `by` to
 * the output take part. Contributions are added in the order of visits, which depends on the graph alone. */
#include "nn/gradient.h"

#include <assert.h>

#include "base/alloc.h"
#include "nn/ops.h"

typedef struct sweep {
    psld_graph *graph;
    size_t count; /* nodes when the sweep began */
    char *needed; /* [count]: depends on one of `by`, or is one */
    psld_id *d;   /* [count]: gradient so far; PSLD_NONE: none yet */
} sweep;

static void mark_needed(sweep *s, const psld_id *by, size_t count)
{
    for (size_t i = 0; i < count; i++) s->needed[by[i]] = 1;
    for (size_t i = 0; i < s->count; i++) {
        const psld_graph_node *node = &s->graph->nodes[i];
        for (int j = 0; j < node->inputs; j++) s->needed[i] |= s->needed[node->in[j]];
    }
}

static void contribute(sweep *s, psld_id id, psld_id d)
{
    if (d == PSLD_NONE) return;
    s->d[id] = s->d[id] == PSLD_NONE ? d : psld_nn_sum(s->graph, s->d[id], d, 1);
}

static psld_status visit_node(sweep *s, psld_id id)
{
    psld_graph_node node = s->graph->nodes[id];
    const psld_op_rule *rule = psld_op_rule_of(node.op);
    int want[PSLD_MAX_INPUTS] = {0}, any = 0;
    psld_id dx[PSLD_MAX_INPUTS];
    for (int i = 0; i < node.inputs; i++) {
        want[i] = s->needed[node.in[i]];
        any |= want[i];
        dx[i] = PSLD_NONE;
    }
    if (!any) return PSLD_OK;
    if (!rule->gradient) {
        psld_graph_fail(s->graph, psld_fail(PSLD_BAD_ARGUMENT, "network: %s has no gradient", rule->name));
        return s->graph->status;
    }
    rule->gradient(s->graph, id, s->d[id], want, dx);
    for (int i = 0; i < node.inputs && s->graph->status == PSLD_OK; i++)
        if (want[i]) contribute(s, node.in[i], dx[i]);
    return s->graph->status;
}

/* A copy, for two results that would be one node: each result may need its own location. */
static psld_id copy_node(psld_graph *graph, psld_id x)
{
    psld_attributes by_one = {.scale = {1}};
    return psld_graph_add(graph, PSLD_OP_SCALE, 1, &x, &by_one, NULL);
}

static void collect_gradients(sweep *s, psld_id seed, const psld_id *by, size_t count, psld_id *gradient)
{
    for (size_t i = 0; i < count && s->graph->status == PSLD_OK; i++) {
        int taken = s->d[by[i]] == seed;
        gradient[i] = s->d[by[i]];
        for (size_t j = 0; j < i; j++) taken |= gradient[j] == gradient[i];
        if (gradient[i] == PSLD_NONE)
            gradient[i] = psld_nn_fill(s->graph, psld_graph_shape(s->graph, by[i]), 0);
        else if (taken)
            gradient[i] = copy_node(s->graph, gradient[i]);
    }
}

psld_status psld_gradient(psld_graph *graph, psld_id output, psld_id seed, const psld_id *by, size_t count,
                          psld_id *gradient)
{
    if (graph->status != PSLD_OK) return graph->status;
    sweep s = {.graph = graph, .count = graph->count};
    assert(psld_shape_same(psld_graph_shape(graph, output), psld_graph_shape(graph, seed)));
    s.needed = psld_alloc(s.count, sizeof *s.needed);
    s.d = psld_alloc(s.count, sizeof *s.d);
    psld_status status = s.needed && s.d ? PSLD_OK : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        for (size_t i = 0; i < s.count; i++) s.d[i] = PSLD_NONE;
        mark_needed(&s, by, count);
        s.d[output] = seed;
        for (psld_id id = output; id >= 0 && status == PSLD_OK; id--)
            if (s.d[id] != PSLD_NONE) status = visit_node(&s, id);
    }
    if (status == PSLD_OK) {
        collect_gradients(&s, seed, by, count, gradient);
        status = graph->status;
    }
    psld_release(s.needed);
    psld_release(s.d);
    return status;
}
