/* Attention without the whole matrix of weights between pixels, where that is large.
 *
 * With P = softmax(a q k') and dS = P (dP - <P, dP>), dP = b do v', of a softmax P all readers may be
 *     apply (P y), apply_t (P' y), and softmax_dx, which makes dS, with readers apply (dS y) and apply_t (dS' y).
 * Then each of these becomes one step that makes P, and dS, again from q, k, do and v, some rows at a time, and nobody
 * needs P or dS as a whole. The products that make them are computed once more for each; that is the price. */
#include "nn/work.h"

/* Elements of the matrix of an image: 512 pixels with 512, a megabyte. */
enum { LARGE = 1 << 18, MOST_READERS = 8 };

typedef struct readers {
    psld_id id[MOST_READERS];
    int count; /* -1: too many, or an output */
} readers;

static readers find_readers(const psld_plan_node *work, size_t count, psld_id of)
{
    readers found = {.count = work[of].pinned ? -1 : 0};
    for (size_t i = (size_t)of + 1; found.count >= 0 && i < count; i++)
        for (int j = 0; work[i].live && j < work[i].inputs; j++) {
            if (work[i].from[j] != of) continue;
            if (found.count == MOST_READERS) {
                found.count = -1;
                break;
            }
            found.id[found.count++] = (psld_id)i;
        }
    return found;
}

/* A product with a matrix of weights as its first factor. */
static int is_product(const psld_plan_node *node, psld_id weights)
{
    return (node->op == PSLD_OP_APPLY || node->op == PSLD_OP_APPLY_T) && node->from[0] == weights &&
           node->from[1] != weights;
}

static int are_products(const psld_plan_node *work, const readers *r, psld_id weights)
{
    for (int i = 0; i < r->count; i++)
        if (!is_product(&work[r->id[i]], weights)) return 0;
    return r->count > 0;
}

/* softmax_dx (P, dP), where dP is a product of its own and all readers of the result are products. */
static int is_slope(const psld_plan_node *work, size_t count, psld_id slope, psld_id weights)
{
    const psld_plan_node *node = &work[slope];
    if (node->op != PSLD_OP_SOFTMAX_DX || node->from[0] != weights || node->from[1] == weights) return 0;
    if (work[node->from[1]].op != PSLD_OP_SCORES || find_readers(work, count, node->from[1]).count != 1) return 0;
    readers r = find_readers(work, count, slope);
    return are_products(work, &r, slope);
}

/* The step that a product becomes; `dp`: the product that makes dP, or NULL for P itself. */
static void rewrite(psld_plan_node *node, const psld_plan_node *scores, const psld_plan_node *dp)
{
    const psld_id y = node->from[1];
    const int transposed = node->op == PSLD_OP_APPLY_T;
    const double by = dp ? dp->attributes.scale.by * node->attributes.scale.by : 1;
    node->op = PSLD_OP_ATTEND;
    node->inputs = dp ? 5 : 3;
    node->from[0] = scores->from[0];
    node->from[1] = scores->from[1];
    node->from[2] = y;
    if (dp) {
        node->from[3] = dp->from[0];
        node->from[4] = dp->from[1];
    }
    node->attributes = (psld_attributes){
        .attend = {.by = scores->attributes.scale.by, .slope_by = by, .transposed = transposed, .slope = dp != NULL}};
}

static void rewrite_readers(const psld_graph *graph, psld_plan_node *work, psld_id weights)
{
    const psld_plan_node scores = work[work[weights].from[0]];
    readers r = find_readers(work, graph->count, weights);
    for (int i = 0; i < r.count; i++) {
        psld_plan_node *node = &work[r.id[i]];
        if (node->op != PSLD_OP_SOFTMAX_DX) {
            rewrite(node, &scores, NULL);
            continue;
        }
        const psld_plan_node dp = work[node->from[1]];
        readers of_slope = find_readers(work, graph->count, r.id[i]);
        for (int j = 0; j < of_slope.count; j++) rewrite(&work[of_slope.id[j]], &scores, &dp);
    }
}

/* Whether all that reads this softmax can do without it. */
static int can_go(const psld_graph *graph, const psld_plan_node *work, psld_id weights)
{
    psld_shape s = graph->nodes[weights].shape;
    const psld_id scores = work[weights].from[0];
    if (s.n > 0 || (double)s.c * s.h * s.w < LARGE) return 0;
    if (work[scores].op != PSLD_OP_SCORES || find_readers(work, graph->count, scores).count != 1) return 0;
    readers r = find_readers(work, graph->count, weights);
    for (int i = 0; i < r.count; i++) {
        const psld_plan_node *node = &work[r.id[i]];
        int plain = is_product(node, weights) && node->attributes.scale.by == 1;
        if (!plain && !is_slope(work, graph->count, r.id[i], weights)) return 0;
    }
    return r.count > 0;
}

void psld_plan_nodes_attend(const psld_graph *graph, const psld_backend *backend, psld_plan_node *work)
{
    if (!backend->kernel[PSLD_OP_ATTEND].name) return;
    for (size_t i = 0; i < graph->count; i++)
        if (work[i].live && work[i].op == PSLD_OP_SOFTMAX && can_go(graph, work, (psld_id)i))
            rewrite_readers(graph, work, (psld_id)i);
    psld_plan_nodes_mark(work, graph->count);
}
