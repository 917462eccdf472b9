/* The tile holds 6 x 16 sums in twelve registers; two more hold a row of B and one a broadcast element of A. Twelve
 * independent chains cover the latency of two fused multiply-adds a cycle (4 cycles x 2 = 8 chains) with 8 loads for
 * 12 of them.
 *
 * The sums are named variables, not an array: compilers keep an array of vectors in memory. The empty asm statement
 * makes the compiler forget where b0 and b1 came from; gcc would otherwise fold the loads into the multiply-adds and
 * read B once for every row. The one after each row's two sums keeps gcc from moving sums between registers (5 % of
 * the time). */
#include "kernels/avx2/gemm.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/avx2/sizes.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define DECLARE_ROW(i) v8 lo##i = v8_zero(), hi##i = v8_zero();

#define LOAD_B(b)                              \
    v8 b0 = v8_load(b), b1 = v8_load((b) + 8); \
    __asm__("" : "+x"(b0), "+x"(b1))

/* Row i of the tile: A's element at `p` times the row of B. */
#define FMA_ROW(i, p)                              \
    if (rows > (i)) {                              \
        const v8 element = _mm256_broadcast_ss(p); \
        lo##i = v8_fma(element, b0, lo##i);        \
        hi##i = v8_fma(element, b1, hi##i);        \
        __asm__("" : "+x"(lo##i), "+x"(hi##i));    \
    }

#define STORE_ROW(i)                                                      \
    if (rows > (i)) {                                                     \
        v8_store(c + (i)*ldc, v8_add(lo##i, bias_lo));                    \
        if (lanes > 8) v8_store(c + (i)*ldc + 8, v8_add(hi##i, bias_hi)); \
    }

#define STORE_ROW_PLAIN(i)                               \
    if (rows > (i)) {                                    \
        v8_store(c + (i)*ldc, lo##i);                    \
        if (lanes > 8) v8_store(c + (i)*ldc + 8, hi##i); \
    }

#define STORE_TILE                                                                             \
    if (bias) {                                                                                \
        const v8 bias_lo = v8_load(bias), bias_hi = lanes > 8 ? v8_load(bias + 8) : v8_zero(); \
        EACH_ROW(STORE_ROW)                                                                    \
    } else {                                                                                   \
        EACH_ROW(STORE_ROW_PLAIN)                                                              \
    }

#define POINT_ROW(i) const float *a##i = from[rows > (i) ? (i) : 0] + start;

#define STEP(u)                                                                                             \
    {                                                                                                       \
        LOAD_B(b + 16 * (u));                                                                               \
        FMA_ROW(0, a0 + k + (u))                                                                            \
        FMA_ROW(1, a1 + k + (u))                                                                            \
        FMA_ROW(2, a2 + k + (u)) FMA_ROW(3, a3 + k + (u)) FMA_ROW(4, a4 + k + (u)) FMA_ROW(5, a5 + k + (u)) \
    }

/* Adds the products of `length` rows of b, fetching as many bytes from `next` on meanwhile. */
#define SUM_PRODUCTS                                        \
    ptrdiff_t k = 0;                                        \
    for (; k + 4 <= length; k += 4, b += 64, next += 128) { \
        _mm_prefetch(next, _MM_HINT_T0);                    \
        STEP(0)                                             \
        STEP(1)                                             \
        _mm_prefetch(next + 64, _MM_HINT_T0);               \
        STEP(2)                                             \
        STEP(3)                                             \
    }                                                       \
    for (; k < length; k++, b += 16) STEP(0)

/* Calls an inlined function for a tile of `height` rows with that number as a constant: six functions, none of which
 * has a branch in its loops. */
#define CASE_ROWS(label, rows, function, ...) \
    label:                                    \
    function(rows, __VA_ARGS__);              \
    break;
#define WITH_ROWS(height, function, ...)             \
    switch (height) {                                \
        CASE_ROWS(case 6, 6, function, __VA_ARGS__)  \
        CASE_ROWS(case 5, 5, function, __VA_ARGS__)  \
        CASE_ROWS(case 4, 4, function, __VA_ARGS__)  \
        CASE_ROWS(case 3, 3, function, __VA_ARGS__)  \
        CASE_ROWS(case 2, 2, function, __VA_ARGS__)  \
        CASE_ROWS(default, 1, function, __VA_ARGS__) \
    }

/* What a tile sums over: for each block of `piece` channels, for each tap, for the channels of the block. */
typedef struct {
    ptrdiff_t taps, channels, piece;
    const ptrdiff_t *where;
    ptrdiff_t piece_stride; /* in the panel, from piece to piece */
    const float *const *from;
    const float *panel;
    const float *next; /* to prefetch, half a line a step; reading beyond the end does no harm */
} sum_range;

V8_INLINE void tile_rows(int rows, const sum_range *sum, float *c, ptrdiff_t ldc, int lanes, const float *bias)
{
    EACH_ROW(DECLARE_ROW)
    const char *next = (const char *)sum->next;
    for (ptrdiff_t start = 0, piece = 0; start < sum->channels; start += sum->piece, piece++) {
        const ptrdiff_t length = psld_min(sum->piece, sum->channels - start);
        const float *const *from = sum->from;
        for (ptrdiff_t tap = 0; tap < sum->taps; tap++, from += 6) {
            const float *b = sum->panel + piece * sum->piece_stride + sum->where[tap] * 256;
            EACH_ROW(POINT_ROW)
            SUM_PRODUCTS
        }
    }
    STORE_TILE
}

/* Rows of the next tile when `left` are left: as few tiles as possible, and as even as possible, since fewer than four
 * rows cannot fill the multiply-add units. 16 is 6 + 5 + 5, 8 is 4 + 4. */
static ptrdiff_t tile_height(ptrdiff_t left)
{
    static const signed char height[] = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5, 5, 5, 6, 6, 6};
    return left < (ptrdiff_t)sizeof height ? height[left] : 6;
}

/* ---- Rows a fixed stride apart, k in one piece ------------------------------------------------------------------- */

#define POINT_PLAIN_ROW(i) const float *a##i = a + (rows > (i) ? (i) : 0) * lda;

/* The same bits as tile_rows with one tap and one block. With k about 128 the set-up of tile_rows would be
 * noticeable. */
V8_INLINE void plain_rows(int rows, ptrdiff_t length, const float *a, ptrdiff_t lda, const float *b, float *c,
                          ptrdiff_t ldc, int lanes, const float *bias, const char *next)
{
    EACH_ROW(DECLARE_ROW)
    EACH_ROW(POINT_PLAIN_ROW)
    SUM_PRODUCTS
    STORE_TILE
}

void psld_gemm_panel_avx2_6x16(ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *panel, float *c,
                               ptrdiff_t ldc, int lanes, const float *bias, const float *next)
{
    for (ptrdiff_t row = 0, height = 0, half = 0; row < rows; row += height, half ^= 1) {
        height = tile_height(rows - row);
        /* A tile's steps fetch half of the next panel: even tiles the first half, odd ones the second. */
        const char *fetch = (const char *)(next ? next + half * (k / 2) * 16 : panel);
        const float *from = a + row * lda;
        float *to = c + row * ldc;
        WITH_ROWS(height, plain_rows, k, from, lda, panel, to, ldc, lanes, bias, fetch)
    }
}

/* ---- Rows anywhere ----------------------------------------------------------------------------------------------- */

void psld_gemm_taps_avx2_6x16(ptrdiff_t rows, const psld_gemm_taps_avx2 *taps, const float *const *from,
                              const float *panel, float *c, ptrdiff_t ldc, int lanes, const float *bias)
{
    const sum_range sum = {.taps = taps->taps,
                           .channels = taps->channels,
                           .piece = 16,
                           .where = taps->where,
                           .piece_stride = taps->block_taps * 256,
                           .from = from,
                           .panel = panel,
                           .next = panel};
    WITH_ROWS(rows, tile_rows, &sum, c, ldc, lanes, bias)
}

#define LOAD_ROW(i)                                      \
    if (accumulate && rows > (i)) {                      \
        lo##i = v8_load(c + (i)*ldc);                    \
        if (lanes > 8) hi##i = v8_load(c + (i)*ldc + 8); \
    }

#define FMA_COLUMN(i) FMA_ROW(i, a + (i))

V8_INLINE void tile_tn(int rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c,
                       ptrdiff_t ldc, int lanes, int accumulate)
{
    EACH_ROW(DECLARE_ROW)
    EACH_ROW(LOAD_ROW)
    for (; k >= 2; k -= 2) {
        {
            LOAD_B(b);
            EACH_ROW(FMA_COLUMN)
        }
        a += lda;
        b += ldb;
        {
            LOAD_B(b);
            EACH_ROW(FMA_COLUMN)
        }
        a += lda;
        b += ldb;
    }
    if (k) {
        LOAD_B(b);
        EACH_ROW(FMA_COLUMN)
    }
    EACH_ROW(STORE_ROW_PLAIN)
}

void psld_gemm_tn_avx2_6x16(ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb,
                            float *c, ptrdiff_t ldc, int lanes, int accumulate)
{
    for (ptrdiff_t row = 0, height = 0; row < rows; row += height, a += height, c += height * ldc) {
        height = tile_height(rows - row);
        WITH_ROWS(height, tile_tn, k, a, lda, b, ldb, c, ldc, lanes, accumulate)
    }
}

/* ---- The whole product ------------------------------------------------------------------------------------------- */

/* Tasks are rectangles: blocks of rows that fit into the second cache beside a panel, times groups of panels when
 * there are too few rows to go round. */
typedef struct {
    const psld_gemm_avx2 *gemm;
    ptrdiff_t panels, block_rows, groups;
    int bias_in_tile; /* one bias for all images, and nothing is computed between the product and the bias */
} product;

static void gemm_product_task(void *context, int slot, ptrdiff_t task)
{
    (void)slot;
    const product *p = context;
    const psld_gemm_avx2 *g = p->gemm;
    const ptrdiff_t begin = task / p->groups * p->block_rows, end = psld_min(g->rows, begin + p->block_rows);
    const ptrdiff_t group = task % p->groups;
    const ptrdiff_t first = p->panels * group / p->groups, last = p->panels * (group + 1) / p->groups;
    const ptrdiff_t columns = psld_round8(g->columns);
    for (ptrdiff_t j = first; j < last; j++) {
        const float *panel = g->b + j * g->panel_stride;
        psld_gemm_panel_avx2_6x16(end - begin, g->k, g->a + begin * g->lda, g->lda, panel,
                                  g->c + begin * g->ldc + 16 * j, g->ldc, columns - 16 * j > 8 ? 16 : 8,
                                  p->bias_in_tile ? g->finish->bias + 16 * j : NULL,
                                  j + 1 < last ? panel + g->panel_stride : NULL);
    }
    if (g->finish)
        psld_finish_rows_avx2(g->finish, p->bias_in_tile, g->c, g->ldc, begin, end, g->pixels, 16 * first,
                              psld_min(columns, 16 * last) - 16 * first);
}

void psld_gemm_avx2_6x16(const psld_gemm_avx2 *gemm)
{
    product p = {.gemm = gemm, .panels = (gemm->columns + 15) / 16};
    p.bias_in_tile = gemm->finish && gemm->finish->bias && gemm->finish->bias_stride == 0;
    const ptrdiff_t most = gemm->k > 256 ? 48 : 96;
    /* At least two tasks a slot, in multiples of six rows. */
    const ptrdiff_t share = (gemm->rows / (2 * gemm->slots) + 5) / 6 * 6;
    p.block_rows = psld_min(most, psld_max(share, 24));
    const ptrdiff_t blocks = (gemm->rows + p.block_rows - 1) / p.block_rows;
    p.groups = psld_max(1, psld_min(p.panels, (2 * gemm->slots + blocks - 1) / blocks));
    if (gemm->slots == 1) p.groups = 1;
    if (blocks > 0 && p.panels > 0) psld_parallel_tasks(gemm->slots, blocks * p.groups, gemm_product_task, &p);
}

void psld_gemm_pack_avx2(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                         ptrdiff_t panel_stride)
{
    const ptrdiff_t width = psld_round8(columns);
    for (ptrdiff_t first = 0; first < columns; first += 16, panels += panel_stride)
        for (ptrdiff_t i = 0; i < k; i++) {
            v8_store(panels + 16 * i, v8_load(b + i * ldb + first));
            v8_store(panels + 16 * i + 8, first + 8 < width ? v8_load(b + i * ldb + first + 8) : v8_zero());
        }
}

/* Columns first ... first + 7 of the result, k from `from` on: an 8 x 8 block, cut off by the edges of b. */
static void pack_corner(ptrdiff_t rows, ptrdiff_t k, const float *b, ptrdiff_t ldb, float *to)
{
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t j = 0; j < 8; j++) to[16 * i + j] = j < rows ? b[j * ldb + i] : 0;
}

void psld_gemm_pack_transposed_avx2(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                                    ptrdiff_t panel_stride)
{
    for (ptrdiff_t first = 0; first < psld_round16(columns); first += 8) {
        float *panel = panels + first / 16 * panel_stride + first % 16;
        const ptrdiff_t rows = psld_max(0, psld_min(8, columns - first));
        const float *from = rows ? b + first * ldb : b;
        ptrdiff_t i = 0;
        if (rows == 8)
            for (; i + 8 <= k; i += 8) v8_transpose(from + i, ldb, panel + 16 * i, 16);
        pack_corner(rows, k - i, from + i, ldb, panel + 16 * i);
    }
}

#endif
