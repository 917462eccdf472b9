/* Activations: SiLU, ReLU, ELU, leaky ReLU. */
#include <string.h>

#include "nn/ops.h"

static void activate_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0])
        dx[0] = psld_graph_add(graph, PSLD_OP_ACTIVATE_DX, 2, (psld_id[]){node.in[0], dy}, &node.attributes, NULL);
}

const psld_op_rule psld_rule_activate = {"activate", 1, 1, psld_rule_same, activate_gradient, NULL};
const psld_op_rule psld_rule_activate_dx = {"activate_dx", 2, 2, psld_rule_same, NULL, NULL};

psld_id psld_nn_activate(psld_graph *graph, psld_id x, psld_activation kind)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.activation.kind = kind;
    return psld_graph_add(graph, PSLD_OP_ACTIVATE, 1, &x, &a, NULL);
}
