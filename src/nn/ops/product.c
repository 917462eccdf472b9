/* Products of matrices that depend only on parameters: two linear maps, one after the other, become one map. With A'
 * for A or its transpose, C = A' B' is linear in each, and its gradients are products again:
 *     dA' = dC B'^T,    dB' = A'^T dC. */
#include <string.h>

#include "nn/ops.h"

static psld_status product_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape a = psld_rule_in(graph, node, 0), b = psld_rule_in(graph, node, 1);
    const int *transposed = node->attributes.product.transposed;
    if (a.n < 1 || b.n < 1 || a.h * a.w * b.h * b.w != 1) return psld_rule_fail(node, "expected two matrices");
    int rows = transposed[0] ? a.c : a.n, length = transposed[0] ? a.n : a.c;
    int columns = transposed[1] ? b.n : b.c, depth = transposed[1] ? b.c : b.n;
    if (length != depth)
        return psld_rule_fail(node, "cannot multiply %d x %d by %d x %d", rows, length, depth, columns);
    node->shape = (psld_shape){rows, columns, 1, 1};
    return PSLD_OK;
}

/* The gradient by a transposed factor is the transpose of the gradient by its transpose. */
static void product_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_id a = node.in[0], b = node.in[1];
    int at = node.attributes.product.transposed[0], bt = node.attributes.product.transposed[1];
    if (want[0]) dx[0] = at ? psld_nn_product(graph, b, bt, dy, 1) : psld_nn_product(graph, dy, 0, b, !bt);
    if (want[1]) dx[1] = bt ? psld_nn_product(graph, dy, 1, a, at) : psld_nn_product(graph, a, !at, dy, 0);
}

const psld_op_rule psld_rule_product = {"product", 2, 2, product_shape, product_gradient, NULL};

psld_id psld_nn_product(psld_graph *graph, psld_id a, int a_transposed, psld_id b, int b_transposed)
{
    psld_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.product.transposed[0] = a_transposed;
    attributes.product.transposed[1] = b_transposed;
    return psld_graph_add(graph, PSLD_OP_PRODUCT, 2, (psld_id[]){a, b}, &attributes, NULL);
}
