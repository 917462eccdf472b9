#include "nn/ops.h"

#include <stdarg.h>
#include <stdio.h>

static const psld_op_rule rule_input = {.name = "input"}, rule_parameter = {.name = "parameter"};

static const psld_op_rule *const rules[PSLD_OPS] = {
    [PSLD_OP_INPUT] = &rule_input,
    [PSLD_OP_PARAMETER] = &rule_parameter,
    [PSLD_OP_FILL] = &psld_rule_fill,
    [PSLD_OP_CONV] = &psld_rule_conv,
    [PSLD_OP_CONV_DX] = &psld_rule_conv_dx,
    [PSLD_OP_CONV_DW] = &psld_rule_conv_dw,
    [PSLD_OP_PRODUCT] = &psld_rule_product,
    [PSLD_OP_PICK] = &psld_rule_pick,
    [PSLD_OP_PICK_DX] = &psld_rule_pick_dx,
    [PSLD_OP_MODULATE] = &psld_rule_modulate,
    [PSLD_OP_MODULATE_DX] = &psld_rule_modulate_dx,
    [PSLD_OP_MODULATE_SUMS] = &psld_rule_modulate_sums,
    [PSLD_OP_BIAS] = &psld_rule_bias,
    [PSLD_OP_CHANNEL_SUM] = &psld_rule_channel_sum,
    [PSLD_OP_BROADCAST] = &psld_rule_broadcast,
    [PSLD_OP_MOMENTS] = &psld_rule_moments,
    [PSLD_OP_NORMALISE] = &psld_rule_normalise,
    [PSLD_OP_NORMALISE_SUMS] = &psld_rule_normalise_sums,
    [PSLD_OP_NORMALISE_DX] = &psld_rule_normalise_dx,
    [PSLD_OP_ACTIVATE] = &psld_rule_activate,
    [PSLD_OP_ACTIVATE_DX] = &psld_rule_activate_dx,
    [PSLD_OP_SUM] = &psld_rule_sum,
    [PSLD_OP_SCALE] = &psld_rule_scale,
    [PSLD_OP_CONCAT] = &psld_rule_concat,
    [PSLD_OP_SLICE] = &psld_rule_slice,
    [PSLD_OP_SLICE_DX] = &psld_rule_slice_dx,
    [PSLD_OP_RESAMPLE] = &psld_rule_resample,
    [PSLD_OP_RESHAPE] = &psld_rule_reshape,
    [PSLD_OP_POOL] = &psld_rule_pool,
    [PSLD_OP_RESIZE] = &psld_rule_resize,
    [PSLD_OP_SCORES] = &psld_rule_scores,
    [PSLD_OP_SOFTMAX] = &psld_rule_softmax,
    [PSLD_OP_SOFTMAX_DX] = &psld_rule_softmax_dx,
    [PSLD_OP_APPLY] = &psld_rule_apply,
    [PSLD_OP_APPLY_T] = &psld_rule_apply_t,
    [PSLD_OP_DROPOUT] = &psld_rule_dropout,
    [PSLD_OP_POSITIONAL] = &psld_rule_positional,
    [PSLD_OP_FOURIER] = &psld_rule_fourier,
    [PSLD_OP_LOSS] = &psld_rule_loss,
    [PSLD_OP_LOSS_DX] = &psld_rule_loss_dx,
    [PSLD_OP_ROOT] = &psld_rule_root,
    [PSLD_OP_ROOT_DX] = &psld_rule_root_dx,
    [PSLD_OP_ENTROPY] = &psld_rule_entropy,
    [PSLD_OP_ENTROPY_DX] = &psld_rule_entropy_dx,
    [PSLD_OP_ATTEND] = &psld_rule_attend,
};

const psld_op_rule *psld_op_rule_of(psld_op op)
{
    return rules[op];
}

psld_shape psld_rule_in(const psld_graph *graph, const psld_graph_node *node, int i)
{
    return graph->nodes[node->in[i]].shape;
}

psld_status psld_rule_fail(const psld_graph_node *node, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return psld_fail(PSLD_BAD_ARGUMENT, "network: %s: %s", rules[node->op]->name, what);
}

psld_status psld_rule_same(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = psld_rule_in(graph, node, 0);
    for (int i = 1; i < node->inputs; i++) {
        psld_shape s = psld_rule_in(graph, node, i);
        if (!psld_shape_same(s, node->shape))
            return psld_rule_fail(node, "input 0 is %d x %d x %d, but input %d is %d x %d x %d", node->shape.c,
                                  node->shape.h, node->shape.w, i, s.c, s.h, s.w);
    }
    return PSLD_OK;
}
