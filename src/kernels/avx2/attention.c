/* With P = softmax(factor q k') and out = P v the gradients are
 *
 *     dv = P' dout,    dP = dout v',    dS = factor P (dP - sum(P dP) of the row),    dq = dS k,    dk = dS' q.
 *
 * Images and heads ("pairs") are taken as many at a time as there are slots. For these all operands are packed first;
 * then blocks of queries are shared out, and in the gradient blocks of keys after them. */
#include "kernels/avx2/attention.h"

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/tasks.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

enum { QUERIES = 48, KEYS = 16, MOST_PACKS = 4 };

typedef struct {
    const psld_attention_avx2 *a;
    psld_const_pixels_avx2 dout;
    psld_pixels_avx2 out, dq, dk, dv;
    const float *weights; /* of the gradient */
    float *kept;          /* of the forward pass, or NULL */

    ptrdiff_t ld, depth;          /* floats of a row of scores; channels of a head, whole vectors */
    ptrdiff_t blocks, key_blocks; /* of a pair */
    ptrdiff_t pair, pairs;        /* first of the pairs at hand, and how many */
    float *packs, *scores;        /* scratch: [pair][pack]; [slot][QUERIES][ld] forward, [pair][length][ld] backward */
    ptrdiff_t pack_size, scores_size;
    int pack_count;
} job;

static ptrdiff_t round_pack(ptrdiff_t length, ptrdiff_t width)
{
    return psld_round16(length) * psld_round16(width);
}

static job open_job(const psld_attention_avx2 *a, int pack_count, ptrdiff_t score_rows, float *scratch)
{
    job j = {.a = a, .ld = psld_odd_lines(a->length), .depth = psld_round8(a->width), .pack_count = pack_count};
    j.blocks = (a->length + QUERIES - 1) / QUERIES;
    j.key_blocks = (a->length + KEYS - 1) / KEYS;
    j.pack_size = round_pack(a->length, a->width);
    j.scores_size = score_rows * j.ld;
    j.packs = scratch;
    j.scores = scratch + a->slots * pack_count * j.pack_size;
    return j;
}

static ptrdiff_t scratch_size(const psld_attention_avx2 *a, int pack_count, ptrdiff_t score_rows)
{
    return a->slots * (pack_count * round_pack(a->length, a->width) + score_rows * psld_odd_lines(a->length));
}

ptrdiff_t psld_attention_weights_avx2(const psld_attention_avx2 *attention)
{
    return attention->images * attention->heads * attention->length * psld_odd_lines(attention->length);
}

ptrdiff_t psld_attention_scratch_avx2(const psld_attention_avx2 *attention)
{
    return scratch_size(attention, 2, QUERIES);
}

ptrdiff_t psld_attention_dx_scratch_avx2(const psld_attention_avx2 *attention)
{
    return scratch_size(attention, MOST_PACKS, attention->length);
}

/* Where a pair's first row starts in a buffer of pixels. */
static ptrdiff_t pair_start(const job *j, ptrdiff_t pair, ptrdiff_t stride)
{
    return pair / j->a->heads * j->a->length * stride + pair % j->a->heads * j->a->width;
}

static const float *pack_of(const job *j, ptrdiff_t pair, int which)
{
    return j->packs + ((pair - j->pair) * j->pack_count + which) * j->pack_size;
}

static int lanes_of(const job *j, ptrdiff_t panel)
{
    return j->depth - 16 * panel > 8 ? 16 : 8;
}

/* The rows of one operand of a pair in panels, [depth / 16][length][16], or their transpose,
 * [length / 16][depth][16]. */
static void pack_rows(const job *j, ptrdiff_t pair, int which, psld_const_pixels_avx2 from, int transposed)
{
    float *to = j->packs + ((pair - j->pair) * j->pack_count + which) * j->pack_size;
    const float *rows = from.data + pair_start(j, pair, from.stride);
    if (transposed)
        psld_gemm_pack_transposed_avx2(j->depth, j->a->length, rows, from.stride, to, 16 * j->depth);
    else
        psld_gemm_pack_avx2(j->a->length, j->depth, rows, from.stride, to, 16 * j->a->length);
}

/* rows x length: a (rows of `depth`) times the transposed pack. */
static void times_transposed(const job *j, ptrdiff_t rows, const float *a, ptrdiff_t lda, const float *pack, float *c)
{
    for (ptrdiff_t panel = 0; 16 * panel < j->a->length; panel++, pack += 16 * j->depth)
        psld_gemm_panel_avx2_6x16(rows, j->depth, a, lda, pack, c + 16 * panel, j->ld, 16, NULL, pack + 16 * j->depth);
}

/* rows x depth: scores (rows of `length`) times the pack. */
static void times_rows(const job *j, ptrdiff_t rows, const float *scores, const float *pack, float *c, ptrdiff_t ldc)
{
    for (ptrdiff_t panel = 0; 16 * panel < j->depth; panel++, pack += 16 * j->a->length)
        psld_gemm_panel_avx2_6x16(rows, j->a->length, scores, j->ld, pack, c + 16 * panel, ldc, lanes_of(j, panel),
                                  NULL, pack + 16 * j->a->length);
}

/* Runs the tasks of each step for one set of pairs after the other. */
static void run_pairs(job *j, psld_task_fn pack, psld_task_fn queries, psld_task_fn keys)
{
    const psld_attention_avx2 *a = j->a;
    const ptrdiff_t all = a->images * a->heads;
    for (j->pair = 0; j->pair < all; j->pair += j->pairs) {
        j->pairs = psld_least(a->slots, all - j->pair);
        psld_tasks_avx2(a->slots, j->pairs * j->pack_count, pack, j);
        psld_tasks_avx2(a->slots, j->pairs * j->blocks, queries, j);
        if (keys) psld_tasks_avx2(a->slots, j->pairs * j->key_blocks, keys, j);
    }
}

/* ---- Forward ----------------------------------------------------------------------------------------------------- */

static void forward_pack_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const job *j = context;
    if (task % 2)
        pack_rows(j, j->pair + task / 2, 1, j->a->v, 0);
    else
        pack_rows(j, j->pair + task / 2, 0, j->a->k, 1);
}

static void forward_queries_task(void *context, int slot, ptrdiff_t task)
{
    const job *j = context;
    const psld_attention_avx2 *a = j->a;
    const ptrdiff_t pair = j->pair + task / j->blocks, first = task % j->blocks * QUERIES;
    const ptrdiff_t rows = psld_least(QUERIES, a->length - first);
    float *scores = j->scores + slot * j->scores_size;
    if (j->kept) scores = j->kept + (pair * a->length + first) * j->ld;
    const float *q = a->q.data + pair_start(j, pair, a->q.stride) + first * a->q.stride;
    times_transposed(j, rows, q, a->q.stride, pack_of(j, pair, 0), scores);
    psld_softmax_rows_avx2(rows, a->length, j->ld, a->factor, scores, j->ld);
    times_rows(j, rows, scores, pack_of(j, pair, 1),
               j->out.data + pair_start(j, pair, j->out.stride) + first * j->out.stride, j->out.stride);
}

void psld_attention_avx2_6x16(const psld_attention_avx2 *attention, float *weights, psld_pixels_avx2 out,
                              float *scratch)
{
    job j = open_job(attention, 2, QUERIES, scratch);
    j.out = out;
    j.kept = weights;
    run_pairs(&j, forward_pack_task, forward_queries_task, NULL);
}

/* ---- Gradient ---------------------------------------------------------------------------------------------------- */

enum { PACK_V_TRANSPOSED, PACK_K, PACK_Q, PACK_DOUT };

static void backward_pack_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const job *j = context;
    const psld_attention_avx2 *a = j->a;
    const psld_const_pixels_avx2 from[MOST_PACKS] = {a->v, a->k, a->q, j->dout};
    const int which = (int)(task % MOST_PACKS);
    pack_rows(j, j->pair + task / MOST_PACKS, which, from[which], which == PACK_V_TRANSPOSED);
}

/* ds = factor p (dp - sum(p dp)), in place of dp. */
static void softmax_gradient_row(ptrdiff_t length, float factor, const float *p, float *dp)
{
    v8 sum = v8_zero();
    for (ptrdiff_t i = 0; i < length; i += 8) sum = v8_fma(v8_load(p + i), v8_load(dp + i), sum);
    const v8 dot = v8_set(v8_sum(sum)), scale = v8_set(factor);
    for (ptrdiff_t i = 0; i < length; i += 8)
        v8_store(dp + i, v8_mul(v8_mul(v8_load(p + i), scale), v8_sub(v8_load(dp + i), dot)));
}

static void backward_queries_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const job *j = context;
    const psld_attention_avx2 *a = j->a;
    const ptrdiff_t pair = j->pair + task / j->blocks, first = task % j->blocks * QUERIES;
    const ptrdiff_t rows = psld_least(QUERIES, a->length - first);
    float *ds = j->scores + (pair - j->pair) * j->scores_size + first * j->ld;
    const float *dout = j->dout.data + pair_start(j, pair, j->dout.stride) + first * j->dout.stride;
    times_transposed(j, rows, dout, j->dout.stride, pack_of(j, pair, PACK_V_TRANSPOSED), ds);
    for (ptrdiff_t row = 0; row < rows; row++)
        softmax_gradient_row(a->length, a->factor, j->weights + (pair * a->length + first + row) * j->ld,
                             ds + row * j->ld);
    times_rows(j, rows, ds, pack_of(j, pair, PACK_K),
               j->dq.data + pair_start(j, pair, j->dq.stride) + first * j->dq.stride, j->dq.stride);
}

/* Rows first ... first + 15 of scores' times the pack. */
static void keys_product(const job *j, ptrdiff_t first, const float *scores, const float *pack, float *c, ptrdiff_t ldc)
{
    const ptrdiff_t rows = psld_least(KEYS, j->a->length - first);
    for (ptrdiff_t panel = 0; 16 * panel < j->depth; panel++, pack += 16 * j->a->length)
        psld_gemm_tn_avx2_6x16(rows, j->a->length, scores + first, j->ld, pack, 16, c + first * ldc + 16 * panel, ldc,
                               lanes_of(j, panel), 0);
}

static void backward_keys_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const job *j = context;
    const ptrdiff_t pair = j->pair + task / j->key_blocks, first = task % j->key_blocks * KEYS;
    const float *ds = j->scores + (pair - j->pair) * j->scores_size;
    keys_product(j, first, ds, pack_of(j, pair, PACK_Q), j->dk.data + pair_start(j, pair, j->dk.stride), j->dk.stride);
    keys_product(j, first, j->weights + pair * j->a->length * j->ld, pack_of(j, pair, PACK_DOUT),
                 j->dv.data + pair_start(j, pair, j->dv.stride), j->dv.stride);
}

void psld_attention_dx_avx2_6x16(const psld_attention_avx2 *attention, const float *weights,
                                 psld_const_pixels_avx2 dout, psld_pixels_avx2 dq, psld_pixels_avx2 dk,
                                 psld_pixels_avx2 dv, float *scratch)
{
    job j = open_job(attention, MOST_PACKS, attention->length, scratch);
    j.weights = weights;
    j.dout = dout;
    j.dq = dq, j.dk = dk, j.dv = dv;
    run_pairs(&j, backward_pack_task, backward_queries_task, backward_keys_task);
}

#endif
