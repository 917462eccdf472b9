/* Rows of a parameter at equal distances, and the adjoint. One tensor may contain the weights of several maps, whose
 * rows alternate. A matrix of one row has the shape of a vector, so it is treated as one: its numbers are picked. */
#include <string.h>

#include "nn/ops.h"

static int is_vector(psld_shape s)
{
    return s.n == 1 && s.h == 1 && s.w == 1;
}

static int rows_in(psld_shape s)
{
    return is_vector(s) ? s.c : s.n;
}

/* Checks that `count` rows at the places of the attributes are within `all`. */
static psld_status check_pick(const psld_graph_node *node, int count, int all)
{
    int first = node->attributes.pick.first, step = node->attributes.pick.step;
    if (first >= 0 && step >= 1 && count >= 1 && first < all && (count - 1) <= (all - 1 - first) / step) return PSLD_OK;
    return psld_rule_fail(node, "%d rows from %d in steps of %d, of %d", count, first, step, all);
}

/* The number of rows is given as n, for vectors, too. */
static psld_status pick_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    int count = node->shape.n;
    if (x.n == 0) return psld_rule_fail(node, "expected a parameter");
    PSLD_TRY(check_pick(node, count, rows_in(x)));
    if (!is_vector(x) && count == 1) return psld_rule_fail(node, "expected more than one row of a matrix");
    node->shape = is_vector(x) ? (psld_shape){1, count, 1, 1} : (psld_shape){count, x.c, x.h, x.w};
    return PSLD_OK;
}

/* All of the shape is given. */
static psld_status pick_dx_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape dy = psld_rule_in(graph, node, 0);
    if (dy.n == 0 || node->shape.n == 0) return psld_rule_fail(node, "expected a parameter");
    return check_pick(node, rows_in(dy), rows_in(node->shape));
}

static void pick_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_shape x = psld_graph_shape(graph, node.in[0]);
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_PICK_DX, 1, &dy, &node.attributes, &x);
}

static void pick_dx_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    int count = rows_in(psld_graph_shape(graph, node.in[0]));
    if (want[0]) dx[0] = psld_nn_pick(graph, dy, node.attributes.pick.first, node.attributes.pick.step, count);
}

const psld_op_rule psld_rule_pick = {"pick", 1, 1, pick_shape, pick_gradient, NULL};
const psld_op_rule psld_rule_pick_dx = {"pick_dx", 1, 1, pick_dx_shape, pick_dx_gradient, NULL};

psld_id psld_nn_pick(psld_graph *graph, psld_id w, int first, int step, int count)
{
    psld_attributes a;
    psld_shape s = {count, 1, 1, 1};
    memset(&a, 0, sizeof a);
    a.pick.first = first;
    a.pick.step = step;
    return psld_graph_add(graph, PSLD_OP_PICK, 1, &w, &a, &s);
}
