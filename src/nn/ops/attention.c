/* Attention as products of matrices between pixels. With S = a q k', P = softmax(S) by rows, o = P v:
 *     dP = do v',   dv = P' do,   dS = P (dP - <P, dP>),   dq = a dS k,   dk = a dS' q,
 * so scores (a x y'), apply (a P v) and apply_t (a P' y) are closed under differentiation. */
#include <math.h>
#include <string.h>

#include "nn/ops.h"

static psld_id attention_product(psld_graph *graph, psld_op op, psld_id a, psld_id b, double by,
                                 const psld_shape *shape)
{
    psld_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.scale.by = by;
    return psld_graph_add(graph, op, 2, (psld_id[]){a, b}, &attributes, shape);
}

static psld_status scores_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape q = psld_rule_in(graph, node, 0), k = psld_rule_in(graph, node, 1);
    if (q.n != 0 || k.n != 0 || q.c != k.c) return psld_rule_fail(node, "queries have %d channels, keys %d", q.c, k.c);
    node->shape = (psld_shape){0, k.h * k.w, q.h, q.w};
    return PSLD_OK;
}

static void scores_gradient(psld_graph *graph, psld_id id, psld_id ds, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_shape k = psld_graph_shape(graph, node.in[1]);
    if (want[0]) dx[0] = attention_product(graph, PSLD_OP_APPLY, ds, node.in[1], node.attributes.scale.by, NULL);
    if (want[1]) dx[1] = attention_product(graph, PSLD_OP_APPLY_T, ds, node.in[0], node.attributes.scale.by, &k);
}

static psld_status apply_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape p = psld_rule_in(graph, node, 0), v = psld_rule_in(graph, node, 1);
    if (p.n != 0 || v.n != 0 || p.c != v.h * v.w)
        return psld_rule_fail(node, "%d weights for %d x %d pixels", p.c, v.h, v.w);
    node->shape = (psld_shape){0, v.c, p.h, p.w};
    return PSLD_OK;
}

static void apply_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_shape v = psld_graph_shape(graph, node.in[1]);
    if (want[0]) dx[0] = attention_product(graph, PSLD_OP_SCORES, dy, node.in[1], node.attributes.scale.by, NULL);
    if (want[1]) dx[1] = attention_product(graph, PSLD_OP_APPLY_T, node.in[0], dy, node.attributes.scale.by, &v);
}

/* h and w are given. */
static psld_status apply_t_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape p = psld_rule_in(graph, node, 0), y = psld_rule_in(graph, node, 1);
    node->shape = (psld_shape){0, y.c, node->shape.h, node->shape.w};
    if (p.n != 0 || y.n != 0 || p.h != y.h || p.w != y.w || p.c != node->shape.h * node->shape.w)
        return psld_rule_fail(node, "%d weights for %d x %d pixels", p.c, node->shape.h, node->shape.w);
    return PSLD_OK;
}

/* z_j = a sum_i p_ij y_i:   dp_ij = a <y_i, dz_j>,   dy_i = a sum_j p_ij dz_j */
static void apply_t_gradient(psld_graph *graph, psld_id id, psld_id dz, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    if (want[0]) dx[0] = attention_product(graph, PSLD_OP_SCORES, node.in[1], dz, node.attributes.scale.by, NULL);
    if (want[1]) dx[1] = attention_product(graph, PSLD_OP_APPLY, node.in[0], dz, node.attributes.scale.by, NULL);
}

static void softmax_gradient(psld_graph *graph, psld_id id, psld_id dp, const int *want, psld_id *dx)
{
    if (want[0]) dx[0] = psld_graph_add(graph, PSLD_OP_SOFTMAX_DX, 2, (psld_id[]){id, dp}, NULL, NULL);
}

static double scores_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)a;
    return 2.0 * out.c * out.h * out.w * in[0].c;
}

static double apply_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)a;
    return 2.0 * in[0].c * in[0].h * in[0].w * out.c;
}

/* Three or two products; the shape of the result is that of the operation which it stands for. */
static double attend_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    double pairs = (double)in[0].h * in[0].w * in[1].h * in[1].w;
    return 2 * pairs * (in[0].c + out.c + (a->attend.slope ? in[3].c : 0));
}

static psld_status attend_shape(const psld_graph *graph, psld_graph_node *node)
{
    (void)graph;
    return psld_rule_fail(node, "is made by plans alone");
}

const psld_op_rule psld_rule_attend = {"attend", 3, 5, attend_shape, NULL, attend_flops};
const psld_op_rule psld_rule_scores = {"scores", 2, 2, scores_shape, scores_gradient, scores_flops};
const psld_op_rule psld_rule_apply = {"apply", 2, 2, apply_shape, apply_gradient, apply_flops};
const psld_op_rule psld_rule_apply_t = {"apply_t", 2, 2, apply_t_shape, apply_t_gradient, apply_flops};
const psld_op_rule psld_rule_softmax = {"softmax", 1, 1, psld_rule_same, softmax_gradient, NULL};
const psld_op_rule psld_rule_softmax_dx = {"softmax_dx", 2, 2, psld_rule_same, NULL, NULL};

psld_id psld_nn_softmax(psld_graph *graph, psld_id x)
{
    return psld_graph_add(graph, PSLD_OP_SOFTMAX, 1, &x, NULL, NULL);
}

psld_id psld_nn_attention(psld_graph *graph, psld_id q, psld_id k, psld_id v)
{
    double by = 1 / sqrt((double)psld_graph_shape(graph, q).c);
    psld_id p = psld_nn_softmax(graph, attention_product(graph, PSLD_OP_SCORES, q, k, by, NULL));
    return attention_product(graph, PSLD_OP_APPLY, p, v, 1, NULL);
}
