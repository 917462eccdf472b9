/* Resampling: y[j] = sum_k tap[k] X[j down + k - pad], X[i up] = x[i] and 0 elsewhere, along both axes.
 *
 * The adjoint: x[i] takes part in y[j] with tap[k], k = i up + pad - j down. So dx[i] sums over j the values dy[j]
 * that lie at i up + m - pad' of a dy with `down - 1` zeros between its pixels, with k = pad + pad' - m; for pad' =
 * taps - 1 - pad that is tap'[m] = tap[taps - 1 - m]: a resampling with up and down exchanged and the taps reversed. */
#include <string.h>

#include "nn/ops.h"

/* The size of the result is given. */
static psld_status resample_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape x = psld_rule_in(graph, node, 0);
    const psld_attributes *a = &node->attributes;
    if (x.n != 0) return psld_rule_fail(node, "expected one tensor for each sample");
    if (a->resample.up < 1 || a->resample.down < 1) return psld_rule_fail(node, "factors must be at least 1");
    node->shape.n = 0;
    node->shape.c = x.c;
    return PSLD_OK;
}

static void resample_gradient(psld_graph *graph, psld_id id, psld_id dy, const int *want, psld_id *dx)
{
    psld_graph_node node = graph->nodes[id];
    psld_attributes a = node.attributes;
    psld_shape x = psld_graph_shape(graph, node.in[0]);
    int taps = a.resample.taps, size[2] = {x.h, x.w};
    float reversed[PSLD_MAX_TAPS];
    for (int k = 0; k < taps; k++) reversed[k] = a.resample.tap[taps - 1 - k];
    if (want[0])
        dx[0] = psld_nn_resample(graph, dy, a.resample.down, a.resample.up, taps, reversed, taps - 1 - a.resample.pad,
                                 size);
}

static double resample_flops(const psld_shape *in, psld_shape out, const psld_attributes *a)
{
    (void)in;
    return 2.0 * out.c * out.h * out.w * 2 * a->resample.taps / a->resample.up;
}

const psld_op_rule psld_rule_resample = {"resample", 1, 1, resample_shape, resample_gradient, resample_flops};

psld_id psld_nn_resample(psld_graph *graph, psld_id x, int up, int down, int taps, const float *tap, int pad,
                         const int size[2])
{
    psld_attributes a;
    psld_shape s = {0, 1, size[0], size[1]};
    memset(&a, 0, sizeof a);
    if (taps < 1 || taps > PSLD_MAX_TAPS)
        return psld_graph_fail(graph, psld_fail(PSLD_BAD_ARGUMENT, "network: resample: expected 1 to %d taps, found %d",
                                                PSLD_MAX_TAPS, taps));
    a.resample.up = up;
    a.resample.down = down;
    a.resample.pad = pad;
    a.resample.taps = taps;
    memcpy(a.resample.tap, tap, (size_t)taps * sizeof *tap);
    return psld_graph_add(graph, PSLD_OP_RESAMPLE, 1, &x, &a, &s);
}
