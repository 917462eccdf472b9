/* A register tile holds TILE_ROWS rows of two vectors of sums; two more vectors hold a row of B and one a broadcast
 * element of A. With AVX2 that is 6 x 16 sums in twelve registers: twelve independent chains cover the latency of two
 * fused multiply-adds a cycle (4 cycles x 2 = 8 chains) with 8 loads for 12 of them. The two vectors are columns next
 * to each other, of one panel or of two (kernels/simd/SET/tile.h).
 *
 * The sums are named variables, not an array: compilers keep an array of vectors in memory. TILE_KEEP makes the
 * compiler forget where b0 and b1 came from; gcc would otherwise fold the loads into the multiply-adds and read B once
 * for every row. After each row's two sums it keeps gcc from moving sums between registers (5 % of the time). */
#include "kernels/simd/gemm.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

SIMD_INLINE vec multiply_add(int pairs, vec a, vec b, vec c)
{
    return pairs ? v_dot(a, b, c) : v_fma(a, b, c);
}

#define DECLARE_ROW(i) vec lo##i = v_zero(), hi##i = v_zero();

/* `second`: from the first vector of a row of B to the other. */
#define LOAD_B(b)                                                     \
    vec b0 = v_load(b), b1 = vectors > 1 ? v_load((b) + second) : b0; \
    TILE_KEEP(b0);                                                    \
    TILE_KEEP(b1)

/* Row i of the tile: A's element at `p`, a number or a pair, times the row of B. */
#define FMA_ROW(i, p)                                                     \
    if (rows > (i)) {                                                     \
        const vec element = v_set(*(p));                                  \
        lo##i = multiply_add(pairs, element, b0, lo##i);                  \
        if (vectors > 1) hi##i = multiply_add(pairs, element, b1, hi##i); \
        TILE_KEEP(lo##i);                                                 \
        TILE_KEEP(hi##i);                                                 \
    }

#define STORE_ROW(i)                                                                                    \
    if (rows > (i)) {                                                                                   \
        v_store_part(c + (i)*ldc, lanes, v_add(lo##i, bias_lo));                                        \
        if (lanes > V_LANES) v_store_part(c + (i)*ldc + apart, lanes - V_LANES, v_add(hi##i, bias_hi)); \
    }

#define STORE_ROW_PLAIN(i)                                                              \
    if (rows > (i)) {                                                                   \
        v_store_part(c + (i)*ldc, lanes, lo##i);                                        \
        if (lanes > V_LANES) v_store_part(c + (i)*ldc + apart, lanes - V_LANES, hi##i); \
    }

#define STORE_TILE                                                                                     \
    if (bias) {                                                                                        \
        const vec bias_lo = v_load_part(bias, lanes);                                                  \
        const vec bias_hi = lanes > V_LANES ? v_load_part(bias + V_LANES, lanes - V_LANES) : v_zero(); \
        EACH_ROW(STORE_ROW)                                                                            \
    } else {                                                                                           \
        EACH_ROW(STORE_ROW_PLAIN)                                                                      \
    }

#define FMA_FROM_POINTER(i) FMA_ROW(i, ROW_POINTER(i) + k + step)

#define STEP(u)                     \
    {                               \
        const ptrdiff_t step = (u); \
        LOAD_B(b + 16 * (u));       \
        EACH_ROW(FMA_FROM_POINTER)  \
    }

#define FETCH(p)           \
    __builtin_prefetch(p); \
    if (TILE_PANELS > 1 && vectors > 1) __builtin_prefetch((p) + 4 * second)

/* Adds the products of `length` rows of b, fetching `pace` bytes from `next` on every four rows: all that they take, or
 * half of it (then two fetches of four are in vain). */
#define SUM_PRODUCTS                                         \
    ptrdiff_t k = 0;                                         \
    for (; k + 4 <= length; k += 4, b += 64, next += pace) { \
        FETCH(next);                                         \
        STEP(0)                                              \
        FETCH(next + pace / 2);                              \
        STEP(1)                                              \
        FETCH(next + 64);                                    \
        STEP(2)                                              \
        FETCH(next + pace / 2 + 64);                         \
        STEP(3)                                              \
    }                                                        \
    for (; k < length; k++, b += 16) STEP(0)

/* Tiles of each height, of one vector and of two, with factors in float and in pairs, are functions of their own, in which
 * these are constants: none has a branch in its loops. With sanitizers they are not inlined: compilers take minutes for a
 * function that holds them all and all checks. */
#ifdef SIMD_SANITIZED
#define TILE_INLINE static __attribute__((noinline))
#else
#define TILE_INLINE SIMD_INLINE
#endif
#define TILE_FUNCTION(rows, name, vectors, pairs, type)                    \
    TILE_INLINE void name##_##rows##_##vectors##_##pairs(const type *tile) \
    {                                                                      \
        name(rows, vectors, pairs, tile);                                  \
    }
#define TILE_FUNCTIONS(name, pairs, type)            \
    EACH_HEIGHT(TILE_FUNCTION, name, 1, pairs, type) \
    EACH_HEIGHT(TILE_FUNCTION, name, 2, pairs, type)
#define TILE_CASE(rows, name, vectors, pairs, tile) \
    case rows:                                      \
        name##_##rows##_##vectors##_##pairs(tile);  \
        break;
/* A tile of two panels may lack the second: then it has one vector. */
#define RUN_TILE(name, pairs, height, tile)              \
    if (TILE_PANELS > 1 && (tile)->lanes <= V_LANES) {   \
        switch (height) {                                \
            EACH_HEIGHT(TILE_CASE, name, 1, pairs, tile) \
        }                                                \
    } else {                                             \
        switch (height) {                                \
            EACH_HEIGHT(TILE_CASE, name, 2, pairs, tile) \
        }                                                \
    }

/* Rows of the next tile when `left` are left: as few tiles as possible, and as even as possible, since few rows cannot
 * fill the multiply-add units. */
static ptrdiff_t tile_height(ptrdiff_t left)
{
    static const signed char height[] = TILE_HEIGHTS;
    return left < (ptrdiff_t)sizeof height ? height[left] : TILE_ROWS;
}

int simd_pairs_run(void)
{
    return v_pairs_run();
}

/* ---- Rows a fixed stride apart, k in one piece ------------------------------------------------------------------- */

#define POINT_PLAIN_ROW(i) \
    if ((i) % ROWS_A_POINTER == 0) row[(i) / ROWS_A_POINTER] = a + (rows > (i) ? (i) : 0) * lda;
#define ROW_POINTER(i) (row[(i) / ROWS_A_POINTER] + (i) % ROWS_A_POINTER * lda)

typedef struct {
    ptrdiff_t length, lda, ldc;
    ptrdiff_t second;          /* from the first vector of a row of B to the second */
    const float *a, *b, *bias; /* bias: NULL: none */
    float *c;
    int lanes;
    const char *next; /* what to fetch, */
    ptrdiff_t pace;   /* so many bytes on every four rows */
} plain_tile;

SIMD_INLINE void plain_rows(int rows, int vectors, int pairs, const plain_tile *t)
{
    enum { apart = V_LANES };
    const ptrdiff_t length = t->length, lda = t->lda, ldc = t->ldc, second = t->second, pace = t->pace;
    const float *a = t->a, *b = t->b, *bias = t->bias, *row[TILE_ROWS];
    float *c = t->c;
    const char *next = t->next;
    const int lanes = t->lanes;
    EACH_ROW(DECLARE_ROW)
    EACH_ROW(POINT_PLAIN_ROW)
    SUM_PRODUCTS
    STORE_TILE
}

TILE_FUNCTIONS(plain_rows, 0, plain_tile)
TILE_FUNCTIONS(plain_rows, 1, plain_tile)

/* From the first vector of a tile's row of B to the second. */
static ptrdiff_t second_vector(ptrdiff_t panel_stride)
{
    return TILE_PANELS > 1 ? panel_stride : V_LANES;
}

/* The columns of a tile at a time. */
static int strip_lanes(int lanes, int first)
{
    return lanes - first < TILE_COLUMNS ? lanes - first : TILE_COLUMNS;
}

void simd_gemm_panel(int pairs, ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *panel,
                     ptrdiff_t panel_stride, float *c, ptrdiff_t ldc, int all_lanes, const float *bias,
                     const float *next)
{
    plain_tile tile = {.length = k, .lda = lda, .ldc = ldc, .second = second_vector(panel_stride)};
    tile.pace = rows <= TILE_ROWS ? 256 : 128;
    for (ptrdiff_t row = 0, height = 0, half = 0; row < rows; row += height, half ^= 1) {
        height = tile_height(rows - row);
        /* A tile's steps fetch half of the next panel: even tiles the first half, odd ones the second. One alone fetches
         * all of it. */
        tile.next = (const char *)(next ? next + half * (k / 2) * 16 : panel);
        tile.a = a + row * lda;
        for (int first = 0; first < all_lanes; first += TILE_COLUMNS) {
            tile.lanes = strip_lanes(all_lanes, first);
            tile.b = panel + first;
            tile.c = c + row * ldc + first;
            tile.bias = bias ? bias + first : NULL;
            if (pairs) {
                RUN_TILE(plain_rows, 1, height, &tile)
            } else {
                RUN_TILE(plain_rows, 0, height, &tile)
            }
        }
    }
}

#undef ROW_POINTER

/* ---- Rows anywhere ----------------------------------------------------------------------------------------------- */

/* A tile sums for each block of `piece` channels, for each tap, for the channels of the block. */
typedef struct {
    ptrdiff_t taps, channels, piece;
    const ptrdiff_t *where;
    ptrdiff_t piece_stride; /* in the panel, from piece to piece */
    const float *const *from;
    const float *panel, *bias;
    const float *next; /* to prefetch, half a line a step; reading beyond the end does no harm */
    float *c;
    ptrdiff_t ldc, second;
    int lanes;
} indirect_tile;

#define POINT_ROW(i)   row[i] = from[rows > (i) ? (i) : 0] + start;
#define ROW_POINTER(i) row[i]

SIMD_INLINE void indirect_rows(int rows, int vectors, int pairs, const indirect_tile *t)
{
    enum { apart = V_LANES, pace = 128 };
    const ptrdiff_t second = t->second, ldc = t->ldc;
    const float *bias = t->bias;
    float *c = t->c;
    const int lanes = t->lanes;
    EACH_ROW(DECLARE_ROW)
    const char *next = (const char *)t->next;
    for (ptrdiff_t start = 0, piece = 0; start < t->channels; start += t->piece, piece++) {
        const ptrdiff_t length = psld_min(t->piece, t->channels - start);
        const float *const *from = t->from;
        for (ptrdiff_t tap = 0; tap < t->taps; tap++, from += TILE_ROWS) {
            const float *b = t->panel + piece * t->piece_stride + t->where[tap] * 256;
            const float *row[TILE_ROWS];
            EACH_ROW(POINT_ROW)
            SUM_PRODUCTS
        }
    }
    STORE_TILE
}

TILE_FUNCTIONS(indirect_rows, 0, indirect_tile)

void simd_gemm_rows(ptrdiff_t rows, const simd_gemm_taps *taps, const float *const *from, const float *panel,
                    ptrdiff_t panel_stride, float *c, ptrdiff_t ldc, int all_lanes, const float *bias)
{
    indirect_tile tile = {.taps = taps->taps,
                          .channels = taps->channels,
                          .piece = 16,
                          .where = taps->where,
                          .piece_stride = taps->block_taps * 256,
                          .from = from,
                          .next = panel,
                          .ldc = ldc,
                          .second = second_vector(panel_stride)};
    for (int first = 0; first < all_lanes; first += TILE_COLUMNS) {
        tile.lanes = strip_lanes(all_lanes, first);
        tile.bias = bias ? bias + first : NULL;
        tile.panel = panel + first;
        tile.c = c + first;
        RUN_TILE(indirect_rows, 0, rows, &tile)
    }
}

#undef ROW_POINTER

/* ---- Both factors in strips of columns --------------------------------------------------------------------------- */

#define LOAD_ROW(i)                                                                     \
    if (accumulate && rows > (i)) {                                                     \
        lo##i = v_load_part(c + (i)*ldc, lanes);                                        \
        if (lanes > V_LANES) hi##i = v_load_part(c + (i)*ldc + apart, lanes - V_LANES); \
    }

#define FMA_COLUMN(i) FMA_ROW(i, a + (i))

typedef struct {
    ptrdiff_t k, lda, ldb, ldc;
    ptrdiff_t second, apart; /* from the first vector of a row to the second, of B and of C */
    const float *a, *b;
    float *c;
    int lanes, accumulate;
} column_tile;

SIMD_INLINE void column_rows(int rows, int vectors, int pairs, const column_tile *t)
{
    const ptrdiff_t lda = t->lda, ldb = t->ldb, ldc = t->ldc, second = t->second, apart = t->apart;
    const float *a = t->a, *b = t->b;
    float *c = t->c;
    const int lanes = t->lanes, accumulate = t->accumulate;
    ptrdiff_t k = t->k;
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

TILE_FUNCTIONS(column_rows, 0, column_tile)
TILE_FUNCTIONS(column_rows, 1, column_tile)

void simd_gemm_tn(int pairs, ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b,
                  ptrdiff_t b_strip, ptrdiff_t ldb, float *c, ptrdiff_t c_strip, ptrdiff_t ldc, int all_lanes,
                  int accumulate)
{
    column_tile tile = {.k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .accumulate = accumulate};
    tile.second = second_vector(b_strip);
    tile.apart = second_vector(c_strip);
    for (ptrdiff_t row = 0, height = 0; row < rows; row += height, tile.a += height, c += height * ldc) {
        height = tile_height(rows - row);
        for (int first = 0; first < all_lanes; first += TILE_COLUMNS) {
            tile.lanes = strip_lanes(all_lanes, first);
            tile.b = b + first;
            tile.c = c + first;
            if (pairs) {
                RUN_TILE(column_rows, 1, height, &tile)
            } else {
                RUN_TILE(column_rows, 0, height, &tile)
            }
        }
    }
}

/* ---- The whole product ------------------------------------------------------------------------------------------- */

/* Tasks are rectangles: blocks of rows that fit into the second cache beside a panel, times groups of panels when
 * there are too few rows to go round. */
typedef struct {
    const simd_gemm *gemm;
    ptrdiff_t panels, block_rows, groups;
    ptrdiff_t rounded_row; /* floats of a row of pairs; an odd number of lines */
    int bias_in_tile;      /* one bias for all images, and nothing is computed between the product and the bias */
} product;

/* Rows of `k` numbers as pairs, with zeros up to a multiple of eight pairs. */
static void round_rows(ptrdiff_t rows, ptrdiff_t k, const float *a, ptrdiff_t lda, float *to, ptrdiff_t stride)
{
    const ptrdiff_t width = psld_round8(k);
    for (ptrdiff_t row = 0; row < rows; row++, a += lda, to += stride)
        for (ptrdiff_t i = 0; i < width; i += V_LANES) v_store_narrow(to + i / 2, v_load_part(a + i, width - i));
}

static void gemm_product_task(void *context, int slot, ptrdiff_t task)
{
    const product *p = context;
    const simd_gemm *g = p->gemm;
    const ptrdiff_t begin = task / p->groups * p->block_rows, end = psld_min(g->rows, begin + p->block_rows);
    const ptrdiff_t group = task % p->groups;
    const ptrdiff_t first = p->panels * group / p->groups, last = p->panels * (group + 1) / p->groups;
    const ptrdiff_t columns = psld_round8(g->columns), k = g->pairs ? psld_round16(g->k) / 2 : g->k;
    const float *a = g->a + begin * g->lda;
    if (g->pairs) {
        float *rounded = g->scratch + slot * p->block_rows * p->rounded_row;
        round_rows(end - begin, g->k, a, g->lda, rounded, p->rounded_row);
        a = rounded;
    }
    for (ptrdiff_t j = first; j < last; j += TILE_PANELS) {
        const float *panel = g->b + j * g->panel_stride;
        simd_gemm_panel(g->pairs, end - begin, k, a, g->pairs ? p->rounded_row : g->lda, panel, g->panel_stride,
                        g->c + begin * g->ldc + 16 * j, g->ldc,
                        (int)psld_min(psld_min(columns, 16 * last) - 16 * j, 16 * TILE_PANELS),
                        p->bias_in_tile ? g->finish->bias + 16 * j : NULL,
                        j + TILE_PANELS < last ? panel + TILE_PANELS * g->panel_stride : NULL);
    }
    if (g->finish)
        simd_finish_rows(g->finish, p->bias_in_tile, g->c, g->ldc, begin, end, g->pixels, 16 * first,
                         psld_min(columns, 16 * last) - 16 * first);
}

enum { MOST_ROWS = 96 };

static ptrdiff_t rounded_row(ptrdiff_t k)
{
    return psld_odd_lines(psld_round16(k) / 2);
}

ptrdiff_t simd_gemm_scratch(ptrdiff_t k, int slots)
{
    return slots * MOST_ROWS * rounded_row(k);
}

void simd_gemm_run(const simd_gemm *gemm)
{
    product p = {.gemm = gemm, .panels = (gemm->columns + 15) / 16, .rounded_row = rounded_row(gemm->k)};
    p.bias_in_tile = gemm->finish && gemm->finish->bias && gemm->finish->bias_stride == 0;
    const ptrdiff_t most = gemm->k > 256 ? MOST_ROWS / 2 : MOST_ROWS;
    /* At least two tasks a slot, in whole tiles. */
    const ptrdiff_t share = (gemm->rows / (2 * gemm->slots) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    p.block_rows = psld_min(most, psld_max(share, 24));
    const ptrdiff_t blocks = (gemm->rows + p.block_rows - 1) / p.block_rows;
    p.groups = psld_max(1, psld_min(p.panels, (2 * gemm->slots + blocks - 1) / blocks));
    if (gemm->slots == 1) p.groups = 1;
    if (blocks > 0 && p.panels > 0) psld_parallel_tasks(gemm->slots, blocks * p.groups, gemm_product_task, &p);
}

void simd_gemm_pack(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                    ptrdiff_t panel_stride)
{
    const ptrdiff_t width = psld_round8(columns);
    for (ptrdiff_t first = 0; first < columns; first += 16, panels += panel_stride)
        for (ptrdiff_t i = 0; i < k; i++)
            for (int lane = 0; lane < 16; lane += V_LANES) {
                const ptrdiff_t left = width - first - lane;
                v_store(panels + 16 * i + lane, left > 0 ? v_load_part(b + i * ldb + first + lane, left) : v_zero());
            }
}

void simd_gemm_pack_pairs(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                          ptrdiff_t panel_stride)
{
    const ptrdiff_t width = psld_round8(columns);
    for (ptrdiff_t first = 0; first < columns; first += 16, panels += panel_stride)
        for (ptrdiff_t i = 0; i < psld_round16(k); i += 2) {
            const float *row = b + i * ldb + first;
            const vec one = i < k ? v_load_part(row, width - first) : v_zero();
            v_store(panels + 8 * i, v_pair(one, i + 1 < k ? v_load_part(row + ldb, width - first) : v_zero()));
        }
}

void simd_gemm_pack_transposed_pairs(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *room,
                                     float *panels, ptrdiff_t panel_stride)
{
    const ptrdiff_t pairs = psld_round16(k) / 2;
    round_rows(columns, k, b, ldb, room, rounded_row(k));
    simd_gemm_pack_transposed(pairs, columns, room, rounded_row(k), panels, panel_stride);
}

/* A vector of columns of the result, of which `rows` exist, k from `from` on: a square block, cut off by b's edges. */
static void pack_corner(ptrdiff_t rows, ptrdiff_t k, const float *b, ptrdiff_t ldb, float *to)
{
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t j = 0; j < V_LANES; j++) to[16 * i + j] = j < rows ? b[j * ldb + i] : 0;
}

void simd_gemm_pack_transposed(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                               ptrdiff_t panel_stride)
{
    for (ptrdiff_t first = 0; first < psld_round16(columns); first += V_LANES) {
        float *panel = panels + first / 16 * panel_stride + first % 16;
        const ptrdiff_t rows = psld_max(0, psld_min(V_LANES, columns - first));
        const float *from = rows ? b + first * ldb : b;
        ptrdiff_t i = 0;
        if (rows == V_LANES)
            for (; i + V_LANES <= k; i += V_LANES) v_transpose(from + i, ldb, panel + 16 * i, 16);
        pack_corner(rows, k - i, from + i, ldb, panel + 16 * i);
    }
}
