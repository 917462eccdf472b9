/* Fusion of the operations after a convolution.
 *
 * A chain conv, bias, bias, sum (or scale), ReLU, in which each node has one reader, becomes one step at the last
 * node. The step computes relu((y + bias + vector + residual) by) before it writes the result. All other operands
 * have smaller ids than that node, so the order of ids remains an order of computation; the rest of the chain is
 * dead. The backend says what its kernels can fuse. */
#include "base/alloc.h"
#include "nn/work.h"

void psld_plan_nodes_mark(psld_plan_node *work, size_t count)
{
    for (size_t i = 0; i < count; i++) work[i].live = work[i].pinned;
    for (size_t i = count; i-- > 0;)
        for (int j = 0; work[i].live && j < work[i].inputs; j++)
            if (work[i].from[j] != PSLD_NONE) work[work[i].from[j]].live = 1;
}

/* The only reader of each node; PSLD_NONE: there is none, there are several, or the node is an output. */
static void find_readers(const psld_plan_node *work, size_t count, psld_id *reader)
{
    enum { MANY = -2 };
    for (size_t i = 0; i < count; i++) reader[i] = work[i].pinned ? MANY : PSLD_NONE;
    for (size_t i = 0; i < count; i++)
        for (int j = 0; work[i].live && j < work[i].inputs; j++) {
            psld_id from = work[i].from[j];
            if (from != PSLD_NONE) reader[from] = reader[from] == PSLD_NONE ? (psld_id)i : MANY;
        }
    for (size_t i = 0; i < count; i++)
        if (reader[i] == MANY) reader[i] = PSLD_NONE;
}

/* What node `next`, the reader of `tail`, would add to the convolution; 0: it cannot be fused. *operand is the added
 * tensor. */
static unsigned finish_of(const psld_graph *graph, const psld_plan_node *next, psld_id tail, psld_id *operand)
{
    *operand = PSLD_NONE;
    if (next->op == PSLD_OP_BIAS && next->from[0] == tail) {
        *operand = next->from[1];
        return graph->nodes[*operand].shape.n > 0 ? PSLD_FINISH_BIAS : PSLD_FINISH_VECTOR;
    }
    if (next->op == PSLD_OP_SUM) {
        *operand = next->from[next->from[0] == tail];
        return PSLD_FINISH_RESIDUAL | PSLD_FINISH_SCALE;
    }
    if (next->op == PSLD_OP_ACTIVATE && next->attributes.activation.kind == PSLD_RELU) return PSLD_FINISH_RELU;
    return next->op == PSLD_OP_SCALE ? PSLD_FINISH_SCALE : 0;
}

/* Fuses `next` into the convolution if possible: each kind once, only ReLU after the scale, and nothing after ReLU. */
static int take_in(const psld_graph *graph, unsigned able, psld_plan_node *conv, const psld_plan_node *next,
                   psld_id tail)
{
    static const unsigned of_input[PSLD_FINISH_INPUTS] = {0, 0, PSLD_FINISH_BIAS, PSLD_FINISH_VECTOR,
                                                          PSLD_FINISH_RESIDUAL};
    psld_id operand;
    unsigned finish = finish_of(graph, next, tail, &operand), done = conv->attributes.conv.finish;
    if (!finish || (finish & ~able) || (finish & done) || (done & PSLD_FINISH_RELU)) return 0;
    if ((done & PSLD_FINISH_SCALE) && finish != PSLD_FINISH_RELU) return 0;
    for (int i = 2; i < PSLD_FINISH_INPUTS; i++)
        if (finish & of_input[i]) conv->from[i] = operand;
    if (finish & PSLD_FINISH_SCALE) conv->attributes.conv.by = next->attributes.scale.by;
    conv->attributes.conv.finish |= finish;
    return 1;
}

static void fuse_chain(const psld_graph *graph, unsigned able, const psld_id *reader, psld_plan_node *work,
                       psld_id first)
{
    psld_plan_node conv = work[first];
    psld_id tail = first;
    conv.inputs = PSLD_FINISH_INPUTS;
    for (int i = 2; i < PSLD_FINISH_INPUTS; i++) conv.from[i] = PSLD_NONE;
    while (reader[tail] != PSLD_NONE && take_in(graph, able, &conv, &work[reader[tail]], tail)) tail = reader[tail];
    if (tail == first) return;
    conv.pinned = work[tail].pinned;
    work[tail] = conv;
}

psld_status psld_plan_nodes_fuse(const psld_graph *graph, const psld_backend *backend, psld_plan_node *work)
{
    psld_id *reader = psld_alloc(graph->count, sizeof *reader);
    if (!reader) return PSLD_NO_MEMORY;
    find_readers(work, graph->count, reader);
    for (size_t i = 0; i < graph->count; i++) {
        int is_conv = work[i].op == PSLD_OP_CONV || work[i].op == PSLD_OP_CONV_DX;
        if (work[i].live && is_conv && !work[i].attributes.conv.finish)
            fuse_chain(graph, backend->kernel[work[i].op].finish, reader, work, (psld_id)i);
    }
    psld_plan_nodes_mark(work, graph->count);
    psld_plan_nodes_attend(graph, backend, work);
    psld_release(reader);
    return PSLD_OK;
}
