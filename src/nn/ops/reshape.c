/* The same numbers of a sample, in the order c, h, w, under another shape. */
#include "nn/ops.h"

/* All of the shape is given. */
static psld_status reshape_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    node->shape.n = 0;
    if (x.n != 0 || psld_shape_count(x) != psld_shape_count(node->shape))
        return psld_rule_fail(node, "%d x %d x %d does not have as many numbers as %d x %d x %d", x.c, x.h, x.w,
                              node->shape.c, node->shape.h, node->shape.w);
    return PSLD_OK;
}

static void reshape_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_shape x = psld_graph_shape(graph, graph->nodes[id].in[0]);
    if (want[0]) dx[0] = psld_nn_reshape(graph, dy, x.c, x.h, x.w);
}

const psld_op_rule psld_rule_reshape = {"reshape", 1, 1, reshape_shape, reshape_gradient, NULL};

psld_id psld_nn_reshape(psld_graph *graph, psld_id x, int c, int h, int w)
{
    psld_shape s = {0, c, h, w};
    return psld_graph_add(graph, PSLD_OP_RESHAPE, 1, &x, NULL, &s);
}
