/* Losses, [n][1]: one number per sample. The weight of a sample (1/batch, for example) is in the gradient that
 * starts the backward pass, so parts of a batch on several ranks, or one after the other, add up. */
#include <string.h>

#include "nn/ops.h"

/* A loss is one number per sample. Its derivative by the first input has that input's shape and takes the gradient
 * as the third input. */
static psld_status set_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = (psld_shape){0, 1, 1, 1};
    if (node->op == PSLD_OP_LOSS || node->op == PSLD_OP_ROOT || node->op == PSLD_OP_ENTROPY) return PSLD_OK;
    node->shape = psld_rule_in(graph, node, 0);
    psld_shape dy = psld_rule_in(graph, node, 2);
    return dy.n == 0 && psld_shape_count(dy) == 1 ? PSLD_OK
                                                  : psld_rule_fail(node, "expected one number for each sample");
}

/* The metric, the last input: variables x variables numbers for each sample. */
static psld_status check_metric(const psld_graph *graph, const psld_graph_node *node, int channels)
{
    psld_shape metric = psld_rule_in(graph, node, node->inputs - 1);
    int variables = node->attributes.loss.variables;
    if (metric.n != 0 || metric.c != variables * variables || psld_shape_count(metric) != (size_t)metric.c)
        return psld_rule_fail(node, "expected a metric of %d x %d numbers for each sample", variables, variables);
    if (variables > PSLD_MAX_METRIC || channels % variables != 0 || node->attributes.loss.power != 2)
        return psld_rule_fail(node, "a metric of %d variables for %d channels and power %d", variables, channels,
                              node->attributes.loss.power);
    return PSLD_OK;
}

static psld_status loss_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape a = psld_rule_in(graph, node, 0), b = psld_rule_in(graph, node, 1);
    int power = node->attributes.loss.power;
    if (a.n != 0 || !psld_shape_same(a, b))
        return psld_rule_fail(node, "%d x %d x %d against %d x %d x %d", a.c, a.h, a.w, b.c, b.h, b.w);
    if (power != 1 && power != 2) return psld_rule_fail(node, "expected power 1 or 2, found %d", power);
    PSLD_TRY(set_shape(graph, node));
    return node->attributes.loss.variables ? check_metric(graph, node, a.c) : PSLD_OK;
}

static void loss_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_id in[4] = {node.in[0], node.in[1], dy, node.inputs > 2 ? node.in[2] : PSLD_NONE};
    psld_id by_a = psld_graph_add(graph, PSLD_OP_LOSS_DX, node.inputs + 1, in, &node.attributes, NULL);
    if (want[0]) dx[0] = by_a;
    if (want[1]) dx[1] = psld_nn_scale(graph, by_a, -1);
}

static psld_status root_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0), a = psld_rule_in(graph, node, 1);
    if (x.n != 0 || psld_shape_count(x) != 1 || !psld_shape_same(x, a))
        return psld_rule_fail(node, "expected two numbers for each sample");
    return set_shape(graph, node);
}

static void root_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_ROOT_DX, 3, (psld_id[]){node.in[0], node.in[1], dy}, NULL, NULL);
}

static psld_status entropy_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0), label = psld_rule_in(graph, node, 1);
    if (x.n != 0 || x.h != 1 || x.w != 1 || label.n != 0 || psld_shape_count(label) != 1)
        return psld_rule_fail(node, "expected logits and one label for each sample");
    return set_shape(graph, node);
}

static void entropy_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0])
        dx[0] = psld_graph_add(graph, PSLD_OP_ENTROPY_DX, 3, (psld_id[]){node.in[0], node.in[1], dy}, NULL, NULL);
}

const psld_op_rule psld_rule_loss = {"loss", 2, 3, loss_shape, loss_gradient, NULL};
const psld_op_rule psld_rule_loss_dx = {"loss_dx", 3, 4, loss_shape, NULL, NULL};
const psld_op_rule psld_rule_root = {"root", 2, 2, root_shape, root_gradient, NULL};
const psld_op_rule psld_rule_root_dx = {"root_dx", 3, 3, root_shape, NULL, NULL};
const psld_op_rule psld_rule_entropy = {"entropy", 2, 2, entropy_shape, entropy_gradient, NULL};
const psld_op_rule psld_rule_entropy_dx = {"entropy_dx", 3, 3, entropy_shape, NULL, NULL};

psld_id psld_nn_loss(psld_graph *graph, psld_id a, psld_id b, psld_id metric, int power)
{
    psld_attributes attributes;
    int weighed = metric != PSLD_NONE;
    memset(&attributes, 0, sizeof attributes);
    attributes.loss.power = power;
    while (weighed && attributes.loss.variables * attributes.loss.variables < psld_graph_shape(graph, metric).c)
        attributes.loss.variables++;
    return psld_graph_add(graph, PSLD_OP_LOSS, 2 + weighed, (psld_id[]){a, b, metric}, &attributes, NULL);
}

psld_id psld_nn_root(psld_graph *graph, psld_id x, psld_id a)
{
    return psld_graph_add(graph, PSLD_OP_ROOT, 2, (psld_id[]){x, a}, NULL, NULL);
}

psld_id psld_nn_entropy(psld_graph *graph, psld_id logits, psld_id label)
{
    return psld_graph_add(graph, PSLD_OP_ENTROPY, 2, (psld_id[]){logits, label}, NULL, NULL);
}
