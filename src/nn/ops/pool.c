/* Pooling, the largest or the mean of a window. For networks that are only evaluated (Inception): no gradient. */
#include <limits.h>
#include <string.h>

#include "nn/ops.h"

static psld_status pool_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    const psld_attributes *a = &node->attributes;
    int size[2] = {x.h, x.w}, result[2];
    if (x.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    for (int i = 0; i < 2; i++) {
        int kernel = a->pool.kernel[i], stride = a->pool.stride[i];
        if (kernel < 1 || kernel > SHRT_MAX || stride < 1)
            return psld_rule_fail(node, "stride %d, kernel %d", stride, kernel);
        /* A window in the padding would not overlap the image. */
        for (int side = i; side < 4; side += 2)
            if (a->pool.pad[side] < 0 || a->pool.pad[side] >= kernel)
                return psld_rule_fail(node, "padding %d of a kernel of %d", a->pool.pad[side], kernel);
        int room = size[i] + a->pool.pad[i] + a->pool.pad[i + 2] - kernel;
        if (room < 0) return psld_rule_fail(node, "the input, %d x %d, is smaller than the kernel", x.h, x.w);
        result[i] = room / stride + 1;
        if ((result[i] - 1) * stride - a->pool.pad[i] >= size[i])
            return psld_rule_fail(node, "the last window lies outside the input, %d x %d", x.h, x.w);
    }
    node->shape = (psld_shape){0, x.c, result[0], result[1]};
    return PSLD_OK;
}

static double pool_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)in;
    return (double)out.c * out.h * out.w * a->pool.kernel[0] * a->pool.kernel[1];
}

const psld_op_rule psld_rule_pool = {"pool", 1, 1, pool_shape, NULL, pool_flops};

psld_id psld_nn_pool(psld_graph *graph, psld_id x, const int kernel[2], const int stride[2], const int pad[4], int mean)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    memcpy(a.pool.kernel, kernel, sizeof a.pool.kernel);
    memcpy(a.pool.stride, stride, sizeof a.pool.stride);
    memcpy(a.pool.pad, pad, sizeof a.pool.pad);
    a.pool.mean = mean;
    return psld_graph_add(graph, PSLD_OP_POOL, 1, &x, &a, NULL);
}
