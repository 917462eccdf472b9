/* Convolution: y = K(w) x is linear in x and in w, so its adjoints conv_dx (dx = K(w)' dy) and conv_dw are closed
 * among themselves:
 *     <dy, conv(x, w)> = <conv_dx(dy, w), x> = <conv_dw(x, dy), w>. */
#include <limits.h>
#include <string.h>

#include "nn/ops.h"

/* Channels of a weight: [co][ci] or [ci][co]. */
static void weight_channels(psld_shape w, int transposed, int *co, int *ci)
{
    *co = transposed ? w.c : w.n;
    *ci = transposed ? w.n : w.c;
}

/* Rows of y that x with `size` rows has along one axis; 0: none. */
static int output_size(int size, const psld_attributes *a, int axis)
{
    int room = size + a->conv.pad[axis] + a->conv.pad[axis + 2] - a->conv.kernel[axis];
    return room < 0 ? 0 : room / a->conv.stride[axis] + 1;
}

static psld_status check_geometry(const psld_graph_node *node)
{
    const psld_attributes *a = &node->attributes;
    for (int i = 0; i < 2; i++)
        if (a->conv.stride[i] < 1 || a->conv.kernel[i] < 1 || a->conv.kernel[i] > SHRT_MAX)
            return psld_rule_fail(node, "stride %d, kernel %d", a->conv.stride[i], a->conv.kernel[i]);
    for (int i = 0; i < 4; i++)
        if (a->conv.pad[i] < 0 || a->conv.pad[i] > SHRT_MAX) return psld_rule_fail(node, "padding %d", a->conv.pad[i]);
    return PSLD_OK;
}

/* Checks that the sizes of x and y agree with the geometry. */
static psld_status check_sizes(const psld_graph_node *node, psld_shape x, psld_shape y)
{
    const psld_attributes *a = &node->attributes;
    if (x.n != 0 || y.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    if (output_size(x.h, a, 0) != y.h || output_size(x.w, a, 1) != y.w)
        return psld_rule_fail(node, "%d x %d does not become %d x %d by kernel %d x %d and stride %d x %d", x.h, x.w,
                              y.h, y.w, a->conv.kernel[0], a->conv.kernel[1], a->conv.stride[0], a->conv.stride[1]);
    return PSLD_OK;
}

static psld_status check_weights(const psld_graph_node *node, psld_shape w, int *co, int *ci)
{
    const int *kernel = node->attributes.conv.kernel;
    weight_channels(w, node->attributes.conv.transposed, co, ci);
    if (w.n < 1 || w.h != kernel[0] || w.w != kernel[1])
        return psld_rule_fail(node, "expected %d x %d weights, found %d x %d", kernel[0], kernel[1], w.h, w.w);
    return check_geometry(node);
}

static psld_status conv_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    int co, ci;
    PSLD_TRY(check_weights(node, psld_rule_in(graph, node, 1), &co, &ci));
    if (x.c != ci) return psld_rule_fail(node, "the weights expect %d channels, the input has %d", ci, x.c);
    node->shape = (psld_shape){0, co, output_size(x.h, &node->attributes, 0), output_size(x.w, &node->attributes, 1)};
    if (node->shape.h < 1 || node->shape.w < 1)
        return psld_rule_fail(node, "the input, %d x %d, is smaller than the kernel", x.h, x.w);
    return check_sizes(node, x, node->shape);
}

/* The size of dx is given: with a stride it does not follow from that of dy. */
static psld_status conv_dx_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape dy = psld_rule_in(graph, node, 0);
    int co, ci;
    PSLD_TRY(check_weights(node, psld_rule_in(graph, node, 1), &co, &ci));
    if (dy.c != co) return psld_rule_fail(node, "the weights expect %d channels, the input has %d", co, dy.c);
    node->shape.c = ci;
    return check_sizes(node, node->shape, dy);
}

static psld_status conv_dw_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0), dy = psld_rule_in(graph, node, 1);
    const psld_attributes *a = &node->attributes;
    node->shape = (psld_shape){dy.c, x.c, a->conv.kernel[0], a->conv.kernel[1]};
    if (a->conv.transposed) node->shape = (psld_shape){x.c, dy.c, a->conv.kernel[0], a->conv.kernel[1]};
    PSLD_TRY(check_geometry(node));
    return check_sizes(node, x, dy);
}

static psld_id add_conv(psld_graph *graph, psld_id x, psld_id w, const psld_attributes *a)
{
    return psld_graph_add(graph, PSLD_OP_CONV, 2, (psld_id[]){x, w}, a, NULL);
}

static psld_id add_dx(psld_graph *graph, psld_id dy, psld_id w, const psld_attributes *a, psld_shape x)
{
    return psld_graph_add(graph, PSLD_OP_CONV_DX, 2, (psld_id[]){dy, w}, a, &x);
}

static psld_id add_dw(psld_graph *graph, psld_id x, psld_id dy, const psld_attributes *a)
{
    return psld_graph_add(graph, PSLD_OP_CONV_DW, 2, (psld_id[]){x, dy}, a, NULL);
}

static void conv_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = add_dx(graph, dy, node.in[1], &node.attributes, psld_graph_shape(graph, node.in[0]));
    if (want[1]) dx[1] = add_dw(graph, node.in[0], dy, &node.attributes);
}

static void conv_dx_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = add_conv(graph, dy, node.in[1], &node.attributes);
    if (want[1]) dx[1] = add_dw(graph, dy, node.in[0], &node.attributes);
}

static void conv_dw_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = add_dx(graph, node.in[1], dy, &node.attributes, psld_graph_shape(graph, node.in[0]));
    if (want[1]) dx[1] = add_conv(graph, node.in[0], dy, &node.attributes);
}

static double product_flops(psld_shape y, int channels, const psld_attributes *a)
{
    return 2.0 * y.c * y.h * y.w * channels * a->conv.kernel[0] * a->conv.kernel[1];
}

static double conv_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    return product_flops(out, in[0].c, a);
}

static double conv_dx_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    return product_flops(in[0], out.c, a);
}

static double conv_dw_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)out;
    return product_flops(in[1], in[0].c, a);
}

const psld_op_rule psld_rule_conv = {"conv", 2, 2, conv_shape, conv_gradient, conv_flops};
const psld_op_rule psld_rule_conv_dx = {"conv_dx", 2, 2, conv_dx_shape, conv_dx_gradient, conv_dx_flops};
const psld_op_rule psld_rule_conv_dw = {"conv_dw", 2, 2, conv_dw_shape, conv_dw_gradient, conv_dw_flops};

static psld_attributes conv_geometry(psld_shape weights, const int stride[2], const int pad[4])
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.conv.kernel[0] = weights.h;
    a.conv.kernel[1] = weights.w;
    memcpy(a.conv.stride, stride, sizeof a.conv.stride);
    memcpy(a.conv.pad, pad, sizeof a.conv.pad);
    return a;
}

psld_id psld_nn_conv(psld_graph *graph, psld_id x, psld_id w, const int stride[2], const int pad[4], int transposed)
{
    psld_attributes a = conv_geometry(psld_graph_shape(graph, w), stride, pad);
    a.conv.transposed = transposed;
    return add_conv(graph, x, w, &a);
}

psld_id psld_nn_conv_adjoint(psld_graph *graph, psld_id x, psld_id w, const int stride[2], const int pad[4],
                             const int size[2])
{
    psld_attributes a = conv_geometry(psld_graph_shape(graph, w), stride, pad);
    return add_dx(graph, x, w, &a, (psld_shape){0, 1, size[0], size[1]});
}

psld_id psld_nn_linear(psld_graph *graph, psld_id x, psld_id w, int transposed)
{
    static const int stride[2] = {1, 1}, pad[4] = {0};
    return psld_nn_conv(graph, x, w, stride, pad, transposed);
}
