/* Adding a vector to every pixel, and its adjoint, the sum over pixels. */
#include "nn/ops.h"

static psld_status bias_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0), b = psld_rule_in(graph, node, 1);
    node->shape = x;
    if (x.n != 0 || b.n > 1 || b.c != x.c || b.h != 1 || b.w != 1)
        return psld_rule_fail(node, "expected a vector of %d, found %d x %d x %d", x.c, b.c, b.h, b.w);
    return PSLD_OK;
}

static void bias_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = dy;
    if (want[1]) dx[1] = psld_nn_channel_sum(graph, dy, graph->nodes[node.in[1]].shape.n > 0);
}

/* node->shape.n is given: 1 for the sum over samples. */
static psld_status channel_sum_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    if (x.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    node->shape = (psld_shape){node->shape.n, x.c, 1, 1};
    return PSLD_OK;
}

static void channel_sum_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_shape x = psld_graph_shape(graph, graph->nodes[id].in[0]);
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_BROADCAST, 1, &dy, NULL, &x);
}

/* h and w are given. */
static psld_status broadcast_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape b = psld_rule_in(graph, node, 0);
    if (b.n > 1 || b.h != 1 || b.w != 1) return psld_rule_fail(node, "expected a vector");
    node->shape.n = 0;
    node->shape.c = b.c;
    return PSLD_OK;
}

static void broadcast_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    int dense = psld_graph_shape(graph, graph->nodes[id].in[0]).n > 0;
    if (want[0]) dx[0] = psld_nn_channel_sum(graph, dy, dense);
}

const psld_op_rule psld_rule_bias = {"bias", 2, 2, bias_shape, bias_gradient, NULL};
const psld_op_rule psld_rule_channel_sum = {"channel_sum", 1, 1, channel_sum_shape, channel_sum_gradient, NULL};
const psld_op_rule psld_rule_broadcast = {"broadcast", 1, 1, broadcast_shape, broadcast_gradient, NULL};

psld_id psld_nn_bias(psld_graph *graph, psld_id x, psld_id b)
{
    return psld_graph_add(graph, PSLD_OP_BIAS, 2, (psld_id[]){x, b}, NULL, NULL);
}

psld_id psld_nn_channel_sum(psld_graph *graph, psld_id x, int dense)
{
    psld_shape s = {dense ? 1 : 0, 1, 1, 1};
    return psld_graph_add(graph, PSLD_OP_CHANNEL_SUM, 1, &x, NULL, &s);
}
