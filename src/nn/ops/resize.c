/* Bilinear resizing to any size (see kernels/ref/resize.h). Only input images are resized here, so it has no
 * gradient. */
#include "nn/ops.h"

/* The size of the result is given. */
static psld_status resize_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    if (x.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    if (node->shape.h < 1 || node->shape.w < 1) return psld_rule_fail(node, "to %d x %d", node->shape.h, node->shape.w);
    node->shape = (psld_shape){0, x.c, node->shape.h, node->shape.w};
    return PSLD_OK;
}

static double resize_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)in, (void)a;
    return 9.0 * out.c * out.h * out.w;
}

const psld_op_rule psld_rule_resize = {"resize", 1, 1, resize_shape, NULL, resize_flops};

psld_id psld_nn_resize(psld_graph *graph, psld_id x, int height, int width)
{
    psld_shape s = {0, 1, height, width};
    return psld_graph_add(graph, PSLD_OP_RESIZE, 1, &x, NULL, &s);
}
