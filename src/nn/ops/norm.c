/* Group normalisation in two nodes: the moments of x per channel, and the normalised result. The gradient of the
 * second includes the dependence on the moments, so the first needs no gradient of its own. The backward pass needs
 * x and its moments: no normalised or activated value is kept. It uses sums over the pixels of each sample, which
 * are also the gradients by weight and bias before samples are added up. */
#include <string.h>

#include "nn/ops.h"

static psld_status moments_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    if (x.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    node->shape = (psld_shape){0, 2 * x.c, 1, 1};
    return PSLD_OK;
}

static psld_status check_norm(const psld_graph *graph, const psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0), m = psld_rule_in(graph, node, 1);
    int groups = node->attributes.norm.groups;
    if (x.n != 0 || m.n != 0 || m.c != 2 * x.c) return psld_rule_fail(node, "expected a tensor and its moments");
    if (groups < 1 || x.c % groups != 0) return psld_rule_fail(node, "%d channels in %d groups", x.c, groups);
    for (int i = 2; i < 4; i++) {
        psld_shape v = psld_rule_in(graph, node, i);
        if (v.n != 1 || v.c != x.c || v.h != 1 || v.w != 1) return psld_rule_fail(node, "expected a vector of %d", x.c);
    }
    if (node->inputs > 4 && !psld_shape_same(psld_rule_in(graph, node, 4), x))
        return psld_rule_fail(node, "the gradient has another shape than the tensor");
    if (node->inputs > 5 && !psld_shape_same(psld_rule_in(graph, node, 5), m))
        return psld_rule_fail(node, "expected %d sums", m.c);
    return PSLD_OK;
}

static psld_status normalise_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = psld_rule_in(graph, node, 0);
    return check_norm(graph, node);
}

static psld_status normalise_sums_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = (psld_shape){0, 2 * psld_rule_in(graph, node, 0).c, 1, 1};
    return check_norm(graph, node);
}

static void normalise_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_id in[6] = {node.in[0], node.in[1], node.in[2], node.in[3], dy};
    in[5] = psld_graph_add(graph, PSLD_OP_NORMALISE_SUMS, 5, in, &node.attributes, NULL);
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_NORMALISE_DX, 6, in, &node.attributes, NULL);
    if (!want[2] && !want[3]) return;
    psld_id both = psld_nn_channel_sum(graph, in[5], 1);
    if (want[2]) dx[2] = psld_nn_slice(graph, both, 0, node.shape.c);
    if (want[3]) dx[3] = psld_nn_slice(graph, both, node.shape.c, node.shape.c);
}

const psld_op_rule psld_rule_moments = {"moments", 1, 1, moments_shape, NULL, NULL};
const psld_op_rule psld_rule_normalise = {"normalise", 4, 4, normalise_shape, normalise_gradient, NULL};
const psld_op_rule psld_rule_normalise_sums = {"normalise_sums", 5, 5, normalise_sums_shape, NULL, NULL};
const psld_op_rule psld_rule_normalise_dx = {"normalise_dx", 6, 6, normalise_shape, NULL, NULL};

psld_id psld_nn_group_norm(psld_graph *graph, psld_id x, psld_id weight, psld_id bias, int groups, double eps,
                           psld_activation activation)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.norm.groups = groups;
    a.norm.activation = activation;
    a.norm.eps = eps;
    psld_id moments = psld_graph_add(graph, PSLD_OP_MOMENTS, 1, &x, NULL, NULL);
    return psld_graph_add(graph, PSLD_OP_NORMALISE, 4, (psld_id[]){x, moments, weight, bias}, &a, NULL);
}
