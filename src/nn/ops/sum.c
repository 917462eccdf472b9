/* Sums, multiples and constants. */
#include <string.h>

#include "nn/ops.h"

static psld_attributes scale_by(double by)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.scale.by = by;
    return a;
}

static void sum_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_id scaled = psld_nn_scale(graph, dy, graph->nodes[id].attributes.scale.by);
    for (int i = 0; i < 2; i++)
        if (want[i]) dx[i] = scaled;
}

static void scale_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    if (want[0]) dx[0] = psld_nn_scale(graph, dy, graph->nodes[id].attributes.scale.by);
}

/* All of the shape is given. */
static psld_status fill_shape(const psld_graph *graph, psld_graph_node *node)
{
    (void)graph, (void)node;
    return PSLD_OK;
}

const psld_op_rule psld_rule_sum = {"sum", 2, 2, psld_rule_same, sum_gradient, NULL};
const psld_op_rule psld_rule_scale = {"scale", 1, 1, psld_rule_same, scale_gradient, NULL};
const psld_op_rule psld_rule_fill = {"fill", 0, 0, fill_shape, NULL, NULL};

psld_id psld_nn_sum(psld_graph *graph, psld_id a, psld_id b, double by)
{
    psld_attributes attributes = scale_by(by);
    return psld_graph_add(graph, PSLD_OP_SUM, 2, (psld_id[]){a, b}, &attributes, NULL);
}

psld_id psld_nn_scale(psld_graph *graph, psld_id x, double by)
{
    psld_attributes attributes = scale_by(by);
    return by == 1 ? x : psld_graph_add(graph, PSLD_OP_SCALE, 1, &x, &attributes, NULL);
}

psld_id psld_nn_fill(psld_graph *graph, psld_shape shape, double value)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.fill.value = value;
    return psld_graph_add(graph, PSLD_OP_FILL, 0, NULL, &a, &shape);
}
