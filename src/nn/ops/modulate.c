/* A scale and a shift for each channel, which a network computes from the time: x (1 + scale) + shift. */
#include "nn/ops.h"

static psld_status check_modulation(const psld_graph_node *node, psld_shape x, psld_shape v)
{
    if (x.n == 0 && v.n == 0 && v.c == 2 * x.c && v.h == 1 && v.w == 1) return PSLD_OK;
    return psld_rule_fail(node, "expected a vector of %d for each sample, found %d x %d x %d", 2 * x.c, v.c, v.h, v.w);
}

static psld_status modulate_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = psld_rule_in(graph, node, 0);
    return check_modulation(node, node->shape, psld_rule_in(graph, node, 1));
}

static psld_status modulate_sums_shape(const psld_graph *graph, psld_graph_node *node)
{
    PSLD_TRY(psld_rule_same(graph, node));
    if (node->shape.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    node->shape = (psld_shape){0, 2 * node->shape.c, 1, 1};
    return PSLD_OK;
}

static void modulate_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_MODULATE_DX, 2, (psld_id[]){dy, node.in[1]}, NULL, NULL);
    if (want[1]) dx[1] = psld_graph_add(graph, PSLD_OP_MODULATE_SUMS, 2, (psld_id[]){node.in[0], dy}, NULL, NULL);
}

const psld_op_rule psld_rule_modulate = {"modulate", 2, 2, modulate_shape, modulate_gradient, NULL};
const psld_op_rule psld_rule_modulate_dx = {"modulate_dx", 2, 2, modulate_shape, NULL, NULL};
const psld_op_rule psld_rule_modulate_sums = {"modulate_sums", 2, 2, modulate_sums_shape, NULL, NULL};

psld_id psld_nn_modulate(psld_graph *graph, psld_id x, psld_id by)
{
    return psld_graph_add(graph, PSLD_OP_MODULATE, 2, (psld_id[]){x, by}, NULL, NULL);
}
