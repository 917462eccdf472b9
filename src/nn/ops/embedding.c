/* Time embeddings. Times and the Fourier vector are data: they have no gradient. */
#include <string.h>

#include "nn/ops.h"

static psld_status check_times(const psld_graph *graph, const psld_graph_node *node)
{
    psld_shape t = psld_rule_in(graph, node, 0);
    if (t.n != 0 || psld_shape_count(t) != 1) return psld_rule_fail(node, "expected one time for each sample");
    return PSLD_OK;
}

/* The number of channels is given. */
static psld_status positional_shape(const psld_graph *graph, psld_graph_node *node)
{
    node->shape = (psld_shape){0, node->shape.c, 1, 1};
    if (node->shape.c < 2) return psld_rule_fail(node, "expected at least 2 channels, found %d", node->shape.c);
    return check_times(graph, node);
}

static psld_status fourier_shape(const psld_graph *graph, psld_graph_node *node)
{
    psld_shape w = psld_rule_in(graph, node, 1);
    node->shape = (psld_shape){0, 2 * w.c, 1, 1};
    if (w.n != 1 || w.h != 1 || w.w != 1) return psld_rule_fail(node, "expected a vector of frequencies");
    return check_times(graph, node);
}

const psld_op_rule psld_rule_positional = {"positional", 1, 1, positional_shape, NULL, NULL};
const psld_op_rule psld_rule_fourier = {"fourier", 2, 2, fourier_shape, NULL, NULL};

psld_id psld_nn_positional(psld_graph *graph, psld_id t, int channels)
{
    return psld_nn_positional_shifted(graph, t, channels, 1, 0);
}

psld_id psld_nn_positional_shifted(psld_graph *graph, psld_id t, int channels, double shift, int cos_first)
{
    psld_shape s = {0, channels, 1, 1};
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.embedding.shift = shift;
    a.embedding.cos_first = cos_first;
    return psld_graph_add(graph, PSLD_OP_POSITIONAL, 1, &t, &a, &s);
}

psld_id psld_nn_fourier(psld_graph *graph, psld_id t, psld_id w)
{
    return psld_graph_add(graph, PSLD_OP_FOURIER, 2, (psld_id[]){t, w}, NULL, NULL);
}

psld_id psld_nn_fourier_plain(psld_graph *graph, psld_id t, psld_id w)
{
    psld_attributes a;
    memset(&a, 0, sizeof a);
    a.embedding.plain = 1;
    return psld_graph_add(graph, PSLD_OP_FOURIER, 2, (psld_id[]){t, w}, &a, NULL);
}
