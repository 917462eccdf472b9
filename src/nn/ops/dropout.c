/* Dropout: multiplication by random numbers that are addressed, not stored. So its adjoint is the same operation. */
#include <string.h>

#include "nn/ops.h"

static psld_id add_dropout(psld_graph *graph, psld_id x, const psld_attributes *a)
{
    return psld_graph_add(graph, PSLD_OP_DROPOUT, 1, &x, a, NULL);
}

static psld_status dropout_shape(const psld_graph *graph, psld_graph_node *node)
{
    double rate = node->attributes.dropout.rate;
    node->shape = psld_rule_in(graph, node, 0);
    if (!(rate >= 0 && rate < 1)) return psld_rule_fail(node, "expected a rate from 0 to less than 1, found %g", rate);
    return node->shape.n == 0 ? PSLD_OK : psld_rule_fail(node, "expected one tensor for each sample");
}

static void dropout_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_attributes a = graph->nodes[id].attributes;
    if (want[0]) dx[0] = add_dropout(graph, dy, &a);
}

const psld_op_rule psld_rule_dropout = {"dropout", 1, 1, dropout_shape, dropout_gradient, NULL};

psld_id psld_nn_dropout(psld_graph *graph, psld_id x, double rate)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.dropout.rate = rate;
    a.dropout.number = graph->dropouts++;
    return rate == 0 ? x : add_dropout(graph, x, &a);
}
