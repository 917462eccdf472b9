/* Concatenation along channels, and its adjoint, a slice of channels. */
#include <string.h>

#include "nn/ops.h"

static psld_status concat_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = psld_rule_in(graph, node, 0);
    for (int i = 1; i < node->inputs; i++) {
        psld_shape s = psld_rule_in(graph, node, i), all = node->shape;
        if (s.n != 0 || all.n != 0 || s.h != all.h || s.w != all.w)
            return psld_rule_fail(node, "cannot concatenate %d x %d and %d x %d", s.h, s.w, all.h, all.w);
        node->shape.c += s.c;
    }
    return PSLD_OK;
}

static void concat_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    int first = 0;
    for (int i = 0; i < node.inputs; i++) {
        int count = graph->nodes[node.in[i]].shape.c;
        if (want[i]) dx[i] = psld_nn_slice(graph, dy, first, count);
        if (graph->status != PSLD_OK) return;
        first += count;
    }
}

/* The number of channels is given. A dense tensor must be one row, [1][c]. */
static psld_status slice_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    int first = node->attributes.slice.first, count = node->shape.c;
    if (first < 0 || count < 1 || first > x.c - count || x.n > 1 || (x.n == 1 && (x.h != 1 || x.w != 1)))
        return psld_rule_fail(node, "channels %d to %d of %d", first, first + count - 1, x.c);
    node->shape = (psld_shape){x.n, count, x.h, x.w};
    return PSLD_OK;
}

/* The number of channels of the whole is given. */
static psld_status slice_dx_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape dy = psld_rule_in(graph, node, 0);
    if (node->attributes.slice.first < 0 || node->attributes.slice.first > node->shape.c - dy.c)
        return psld_rule_fail(node, "%d channels at %d of %d", dy.c, node->attributes.slice.first, node->shape.c);
    node->shape = (psld_shape){dy.n, node->shape.c, dy.h, dy.w};
    return PSLD_OK;
}

static void slice_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_shape x = psld_graph_shape(graph, node.in[0]);
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_SLICE_DX, 1, &dy, &node.attributes, &x);
}

static void slice_dx_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    int count = psld_graph_shape(graph, node.in[0]).c;
    if (want[0]) dx[0] = psld_nn_slice(graph, dy, node.attributes.slice.first, count);
}

const psld_op_rule psld_rule_concat = {"concat", 2, PSLD_MAX_INPUTS, concat_shape, concat_gradient, NULL};
const psld_op_rule psld_rule_slice = {"slice", 1, 1, slice_shape, slice_gradient, NULL};
const psld_op_rule psld_rule_slice_dx = {"slice_dx", 1, 1, slice_dx_shape, slice_dx_gradient, NULL};

psld_id psld_nn_concat(psld_graph *graph, psld_id a, psld_id b)
{
    return psld_graph_add(graph, PSLD_OP_CONCAT, 2, (psld_id[]){a, b}, NULL, NULL);
}

psld_id psld_nn_concat_all(psld_graph *graph, int count, const psld_id *parts)
{
    return psld_graph_add(graph, PSLD_OP_CONCAT, count, parts, NULL, NULL);
}

/* As a tree, so that each channel is copied only a few times. */
psld_id psld_nn_join(psld_graph *graph, int count, psld_id *parts)
{
    while (count > 1) {
        int made = 0;
        for (int first = 0; first < count; first += PSLD_MAX_INPUTS) {
            int size = count - first < PSLD_MAX_INPUTS ? count - first : PSLD_MAX_INPUTS;
            parts[made++] = size == 1 ? parts[first] : psld_nn_concat_all(graph, size, parts + first);
        }
        count = made;
    }
    return parts[0];
}

psld_id psld_nn_slice(psld_graph *graph, psld_id x, int first, int count)
{
    psld_attributes a;
    psld_shape s = {0, count, 1, 1};
    memset(&a, 0, sizeof a);
    a.slice.first = first;
    return psld_graph_add(graph, PSLD_OP_SLICE, 1, &x, &a, &s);
}
