/* The fast kernels of one instruction set against naive references in double; their bits for every batch and number of threads; and that
 * they touch nothing but what is theirs: scratch starts as NaN, buffers have guards, lanes beyond a slice keep what
 * they had. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "kernels/cpu.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/norm.h"
#include "kernels/simd/rows.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/update.h"
#include "kernels/simd/winograd.h"
#include "psld.h"
#include "simd_data.h"
#include "skip.h"

/* psld_cpu_has_SET */
#define SIMD_CPU_HAS_JOIN(set) psld_cpu_has_##set
#define SIMD_CPU_HAS_NAME(set) SIMD_CPU_HAS_JOIN(set)
#define SIMD_CPU_HAS           SIMD_CPU_HAS_NAME(SIMD_SET)

/* ---- Products ---------------------------------------------------------------------------------------------------- */

static float rounded_to_pairs(double x)
{
    const float number = (float)x;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

/* A factor as the products see it. */
static double factor(int pairs, double x)
{
    return pairs ? (double)rounded_to_pairs(x) : x;
}

/* Floats or pairs that k numbers of a panel are. */
static ptrdiff_t panel_length(int pairs, ptrdiff_t k)
{
    return pairs ? psld_round16(k) / 2 : k;
}

static float *pack_random(int pairs, ptrdiff_t k, ptrdiff_t columns, tensor b, ptrdiff_t *count)
{
    const ptrdiff_t stride = 16 * panel_length(pairs, k);
    *count = psld_round16(columns) / 16 * stride;
    float *panels = guarded(*count, NAN);
    if (pairs)
        simd_gemm_pack_pairs(k, columns, b.data, b.stride, panels, stride);
    else
        simd_gemm_pack(k, columns, b.data, b.stride, panels, stride);
    return panels;
}

static tensor run_gemm(int pairs, int threads, tensor a, const float *panels, ptrdiff_t columns, ptrdiff_t extra,
                       ptrdiff_t pixels, const simd_finish *finish)
{
    tensor c = tensor_make(a.pixels, columns, extra);
    const ptrdiff_t k = a.channels, scratch_size = pairs ? simd_gemm_scratch(k, threads) : 0;
    float *scratch = scratch_of(scratch_size);
    const simd_gemm gemm = {.rows = a.pixels,
                            .columns = columns,
                            .k = k,
                            .pixels = pixels,
                            .a = a.data,
                            .lda = a.stride,
                            .b = panels,
                            .panel_stride = 16 * panel_length(pairs, k),
                            .c = c.data,
                            .ldc = c.stride,
                            .finish = finish,
                            .slots = threads,
                            .pairs = pairs,
                            .scratch = scratch};
    use_threads(threads);
    simd_gemm_run(&gemm);
    release_guarded(scratch, scratch_size);
    return c;
}

static void gemm_case(int pairs, ptrdiff_t rows, ptrdiff_t k, ptrdiff_t columns, ptrdiff_t extra, int finished)
{
    tensor a = tensor_random(rows, k, extra), b = tensor_random(k, columns, extra), c[3];
    tensor residual = tensor_random(rows, columns, 8);
    ptrdiff_t packed = 0, pixels = rows / 2 + 1;
    float *panels = pack_random(pairs, k, columns, b, &packed), *bias = padded_table(2 * psld_round16(columns));
    for (ptrdiff_t i = 0; i < 2; i++)
        for (ptrdiff_t j = columns; j < psld_round16(columns); j++) bias[i * psld_round16(columns) + j] = 0;
    simd_finish finish = {bias, finished > 1 ? psld_round16(columns) : 0, NULL, residual.stride, 1.0F, 0};
    if (finished > 1) finish.residual = residual.data, finish.scale = 0.75F;
    for (int threads = 1; threads <= 3; threads++) {
        c[threads - 1] = run_gemm(pairs, threads, a, panels, columns, extra, pixels, finished ? &finish : NULL);
        expect_same("gemm, threads", c[0], c[threads - 1]);
    }
    judgement j = {0, 0};
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < columns; i++) {
            double sum = 0, size = 0;
            for (ptrdiff_t l = 0; l < k; l++) {
                const double term = factor(pairs, at(a, r, l)) * factor(pairs, at(b, l, i));
                sum += term;
                size += fabs(term);
            }
            if (finished) sum += (double)bias[(finished > 1 ? r / pixels * psld_round16(columns) : 0) + i];
            if (finished > 1) sum = (sum + at(residual, r, i)) * 0.75;
            j = judge(j, at(c[0], r, i), sum, size + 2);
        }
    expect_close(pairs ? 13 : 0, "gemm", j, 1e-6);
    release_guarded(panels, packed);
    release_guarded(bias, psld_round16(2 * psld_round16(columns)));
    tensor_free(a), tensor_free(b), tensor_free(residual);
    for (int i = 0; i < 3; i++) tensor_free(c[i]);
}

static void gemm_cases(int pairs)
{
    static const ptrdiff_t sizes[] = {1, 3, 6, 16, 17, 48, 128};
    for (ptrdiff_t rows = 1; rows < 16; rows++)
        for (size_t i = 0; i < 7; i++)
            gemm_case(pairs, rows, sizes[i], sizes[(i + (size_t)rows) % 7], 8 * (rows % 2), (int)rows % 3);
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 7; j++) gemm_case(pairs, 111, sizes[i], sizes[j], 0, (int)(i + j) % 3);
    gemm_case(pairs, 111, 301, 33, 8, 2);
}

static void gemm_values(void **state)
{
    (void)state;
    gemm_cases(0);
}

/* The rows of a matrix as simd_gemm_panel takes them: themselves, or their neighbours as pairs. */
static float *panel_rows_of(int pairs, tensor a, ptrdiff_t *stride, ptrdiff_t *count)
{
    *stride = pairs ? panel_length(1, a.channels) : a.stride;
    *count = a.pixels * *stride;
    float *rows = guarded(*count, 0);
    for (ptrdiff_t r = 0; r < a.pixels; r++)
        for (ptrdiff_t c = 0; c < a.channels; c++) {
            float *place = rows + r * *stride + (pairs ? c / 2 : c), number = a.data[r * a.stride + c];
            if (pairs) number = rounded_to_pairs((double)number);
            if (pairs)
                memcpy((char *)place + 2 * (c % 2), (const char *)&number + 2, 2);
            else
                *place = number;
        }
    return rows;
}

/* A row has the same bits whatever rows it is computed with. */
static void check_row_bits(int pairs)
{
    const ptrdiff_t k = 53, rows = 31, columns = 16;
    tensor a = tensor_random(rows, k, 0), b = tensor_random(k, columns, 0), whole = tensor_make(rows, columns, 0);
    ptrdiff_t packed = 0, stride = 0, row_count = 0, length = panel_length(pairs, k);
    float *panels = pack_random(pairs, k, columns, b, &packed), *row = panel_rows_of(pairs, a, &stride, &row_count);
    simd_gemm_panel(pairs, rows, length, row, stride, panels, 0, whole.data, 16, 16, NULL, NULL);
    for (ptrdiff_t count = 1; count <= 12; count++) {
        tensor part = tensor_make(rows, columns, 0);
        for (ptrdiff_t r = 0; r < rows; r += count)
            simd_gemm_panel(pairs, psld_min(count, rows - r), length, row + r * stride, stride, panels, 0,
                            part.data + r * 16, 16, 16, NULL, panels);
        expect_same("rows", whole, part);
        tensor_free(part);
    }
    judgement j = {0, 0};
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < columns; i++) {
            double sum = 0;
            for (ptrdiff_t l = 0; l < k; l++) sum += factor(pairs, at(a, r, l)) * factor(pairs, at(b, l, i));
            j = judge(j, at(whole, r, i), sum, (double)k);
        }
    expect_close(pairs ? 13 : 0, "rows", j, 1e-6);
    release_guarded(panels, packed), release_guarded(row, row_count);
    tensor_free(a), tensor_free(b), tensor_free(whole);
}

static void gemm_row_bits(void **state)
{
    (void)state;
    check_row_bits(0);
}

/* a' b of two strips, with k in one piece and in two, the second of which continues the first; rows split anywhere. */
static void check_tn(int pairs, ptrdiff_t rows, ptrdiff_t k, ptrdiff_t columns)
{
    tensor a = tensor_random(k, rows, 0), b = tensor_random(k, columns, 0);
    ptrdiff_t a_count = 0, b_count = 0;
    const ptrdiff_t length = panel_length(pairs, k), strip = 16 * length, cut = length / 3, wide = psld_round8(columns);
    float *pa = pack_random(pairs, k, rows, a, &a_count), *pb = pack_random(pairs, k, columns, b, &b_count);
    tensor c[2] = {tensor_make(rows, columns, 0), tensor_make(rows, columns, 0)};
    for (ptrdiff_t j = 0; j < wide; j += 16 * TILE_PANELS) {
        const int lanes = (int)psld_min(wide - j, 16 * TILE_PANELS);
        const float *from = pb + j * length;
        simd_gemm_tn(pairs, rows, length, pa, 16, from, strip, 16, c[0].data + j, 16, c[0].stride, lanes, 0);
        for (ptrdiff_t first = 0, count = 1; first < rows; first += count, count += 2) {
            const ptrdiff_t height = psld_min(count, rows - first);
            float *to = c[1].data + first * c[1].stride + j;
            simd_gemm_tn(pairs, height, cut, pa + first, 16, from, strip, 16, to, 16, c[1].stride, lanes, 0);
            simd_gemm_tn(pairs, height, length - cut, pa + cut * 16 + first, 16, from + cut * 16, strip, 16, to, 16,
                         c[1].stride, lanes, 1);
        }
    }
    expect_same("pieces", c[0], c[1]);
    judgement j = {0, 0};
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < columns; i++) {
            double sum = 0, size = 0;
            for (ptrdiff_t l = 0; l < k; l++) {
                const double term = factor(pairs, at(a, l, r)) * factor(pairs, at(b, l, i));
                sum += term, size += fabs(term);
            }
            j = judge(j, at(c[0], r, i), sum, size + 1);
        }
    expect_close(pairs ? 13 : 0, "transposed product", j, 1e-6);
    release_guarded(pa, a_count), release_guarded(pb, b_count);
    tensor_free(a), tensor_free(b), tensor_free(c[0]), tensor_free(c[1]);
}

static void gemm_tn_cases(int pairs)
{
    for (ptrdiff_t rows = 1; rows <= 16; rows += 3)
        for (ptrdiff_t k = 1; k < 60; k += 7) check_tn(pairs, rows, k, 1 + (5 * rows + 3 * k) % 48);
    check_tn(pairs, 16, 301, 64);
}

static void gemm_tn_values(void **state)
{
    (void)state;
    gemm_tn_cases(0);
}

static void gemm_transposed(void **state)
{
    (void)state;
    for (ptrdiff_t k = 1; k < 40; k += 5)
        for (ptrdiff_t columns = 1; columns < 40; columns += 3) {
            tensor b = tensor_random(columns, k, 8);
            const ptrdiff_t count = psld_round16(columns) * k;
            float *panels = guarded(count, NAN);
            simd_gemm_pack_transposed(k, columns, b.data, b.stride, panels, 16 * k);
            for (ptrdiff_t i = 0; i < psld_round16(columns); i++)
                for (ptrdiff_t l = 0; l < k; l++)
                    assert_true((double)panels[i / 16 * 16 * k + l * 16 + i % 16] == (i < columns ? at(b, i, l) : 0));
            release_guarded(panels, count);
            tensor_free(b);
        }
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

/* The tests of pairs are those of floats, with other factors. */
static void require_pairs(void)
{
    if (!simd_pairs_run()) skip_for("no fast products of pairs of bfloat16 by " SIMD_QUOTE(SIMD_SET) " here");
}

static void pairs_gemm_values(void **state)
{
    (void)state;
    require_pairs();
    gemm_cases(1);
}

static void pairs_gemm_row_bits(void **state)
{
    (void)state;
    require_pairs();
    check_row_bits(1);
}

static void pairs_gemm_tn_values(void **state)
{
    (void)state;
    require_pairs();
    gemm_tn_cases(1);
}

/* Number `l` of column `i` in panels of pairs. */
static float pair_member(const float *panels, ptrdiff_t panel_stride, ptrdiff_t l, ptrdiff_t i)
{
    float number = 0;
    const float *place = panels + i / 16 * panel_stride + l / 2 * 16 + i % 16;
    memcpy((char *)&number + 2, (const char *)place + 2 * (l % 2), 2);
    return number;
}

/* Both ways of packing, each with zeros where there is nothing. */
static void pairs_packed(void **state)
{
    (void)state;
    require_pairs();
    for (ptrdiff_t k = 1; k < 40; k += 3)
        for (ptrdiff_t columns = 1; columns < 40; columns += 3)
            for (int transposed = 0; transposed < 2; transposed++) {
                tensor b = transposed ? tensor_random(columns, k, 8) : tensor_random(k, columns, 8);
                const ptrdiff_t stride = 8 * psld_round16(k) + 16, count = psld_round16(columns) / 16 * stride;
                const ptrdiff_t room_size = simd_gemm_scratch(k, 1);
                float *panels = guarded(count, NAN), *room = scratch_of(room_size);
                if (transposed)
                    simd_gemm_pack_transposed_pairs(k, columns, b.data, b.stride, room, panels, stride);
                else
                    simd_gemm_pack_pairs(k, columns, b.data, b.stride, panels, stride);
                for (ptrdiff_t i = 0; i < psld_round16(columns); i++)
                    for (ptrdiff_t l = 0; l < psld_round16(k); l++) {
                        const int exists = i < columns && l < k;
                        const double b_li = !exists ? 0 : transposed ? at(b, i, l) : at(b, l, i);
                        assert_true(pair_member(panels, stride, l, i) == rounded_to_pairs(b_li));
                    }
                release_guarded(panels, count), release_guarded(room, room_size);
                tensor_free(b);
            }
}

/* ---- Convolutions ------------------------------------------------------------------------------------------------ */

typedef struct {
    simd_conv_shape s;
    tensor x, dy;
    float *logical; /* weights [output][input][ky][kx] */
    ptrdiff_t taps, weight_count, block_count;
    float *weights;
    double *y, *y_size, *dx, *dx_size, *dw, *dw_size;
} conv_case;

static double logical_weight(const conv_case *c, ptrdiff_t o, ptrdiff_t i, ptrdiff_t tap)
{
    return (double)c->logical[(o * c->s.inputs + i) * c->taps + tap];
}

/* One product x * w of the convolution and what it adds to each of the three results. */
static void add_term(conv_case *c, ptrdiff_t from, ptrdiff_t to, ptrdiff_t tap)
{
    const ptrdiff_t ci = c->s.inputs, co = c->s.outputs;
    for (ptrdiff_t o = 0; o < co; o++)
        for (ptrdiff_t i = 0; i < ci; i++) {
            const double x = at(c->x, from, i), w = logical_weight(c, o, i, tap), dy = at(c->dy, to, o);
            const ptrdiff_t at_w = (o * ci + i) * c->taps + tap;
            c->y[to * co + o] += x * w;
            c->y_size[to * co + o] += fabs(x * w);
            c->dx[from * ci + i] += dy * w;
            c->dx_size[from * ci + i] += fabs(dy * w);
            c->dw[at_w] += x * dy;
            c->dw_size[at_w] += fabs(x * dy);
        }
}

static void conv_reference(conv_case *c)
{
    const simd_conv_shape *s = &c->s;
    for (ptrdiff_t n = 0; n < s->images; n++)
        for (ptrdiff_t y = 0; y < s->out_height; y++)
            for (ptrdiff_t x = 0; x < s->out_width; x++)
                for (ptrdiff_t tap = 0; tap < c->taps; tap++) {
                    const ptrdiff_t iy = y * s->stride_y + tap / s->kernel_width - s->pad_top;
                    const ptrdiff_t ix = x * s->stride_x + tap % s->kernel_width - s->pad_left;
                    if (iy < 0 || iy >= s->height || ix < 0 || ix >= s->width) continue;
                    add_term(c, (n * s->height + iy) * s->width + ix, (n * s->out_height + y) * s->out_width + x, tap);
                }
}

/* [output / 16][input / 16][tap][16][16], zero where there is no weight */
static void check_blocks(const conv_case *c)
{
    const ptrdiff_t in_blocks = (c->s.inputs + 15) / 16;
    for (ptrdiff_t n = 0; n < c->block_count; n++) {
        const ptrdiff_t o = n % 16 + n / (256 * c->taps * in_blocks) * 16, tap = n / 256 % c->taps;
        const ptrdiff_t i = n / 16 % 16 + n / (256 * c->taps) % in_blocks * 16;
        const double expected = o < c->s.outputs && i < c->s.inputs ? logical_weight(c, o, i, tap) : 0;
        assert_true((double)c->weights[n] == expected);
    }
}

static conv_case conv_make(simd_conv_shape s, ptrdiff_t extra)
{
    conv_case c = {.s = s, .taps = s.kernel_height * s.kernel_width};
    const ptrdiff_t in_pixels = s.images * s.height * s.width, out_pixels = s.images * s.out_height * s.out_width;
    c.x = tensor_random(in_pixels, s.inputs, extra);
    c.dy = tensor_random(out_pixels, s.outputs, extra);
    c.weight_count = s.outputs * s.inputs * c.taps;
    c.logical = guarded(c.weight_count, 0);
    for (ptrdiff_t i = 0; i < c.weight_count; i++) c.logical[i] = uniform();
    c.block_count = simd_conv_weights(&s);
    c.weights = guarded(c.block_count, NAN);
    simd_conv_block(&s, c.logical, c.weights);
    c.y = doubles(out_pixels * s.outputs), c.y_size = doubles(out_pixels * s.outputs);
    c.dx = doubles(in_pixels * s.inputs), c.dx_size = doubles(in_pixels * s.inputs);
    c.dw = doubles(c.weight_count), c.dw_size = doubles(c.weight_count);
    conv_reference(&c);
    check_blocks(&c);
    return c;
}

static void conv_free(conv_case *c)
{
    tensor_free(c->x), tensor_free(c->dy);
    release_guarded(c->logical, c->weight_count);
    release_guarded(c->weights, c->block_count);
    psld_release(c->y), psld_release(c->y_size), psld_release(c->dx);
    psld_release(c->dx_size), psld_release(c->dw), psld_release(c->dw_size);
}

static void check_dw(const conv_case *c, const char *what, int kind, const float *logical, double limit)
{
    judgement j = {0, 0};
    for (ptrdiff_t i = 0; i < c->weight_count; i++) j = judge(j, (double)logical[i], c->dw[i], c->dw_size[i]);
    expect_close(kind, what, j, limit);
}

/* From blocks, whose padding must be zero. */
static void unblock(const conv_case *c, const float *blocks, float *logical)
{
    float *again = guarded(c->block_count, NAN);
    simd_conv_unblock(&c->s, blocks, logical);
    simd_conv_block(&c->s, logical, again);
    assert_memory_equal(blocks, again, (size_t)c->block_count * sizeof *blocks);
    release_guarded(again, c->block_count);
}

/* With U made just in time the bits are the same. */
static void check_in_time(const simd_conv_shape *s, int mirrored, simd_const_pixels x, const float *weights,
                          tensor expected)
{
    const ptrdiff_t size = simd_winograd_in_time_scratch(s);
    float *scratch = scratch_of(size);
    tensor y = tensor_make(expected.pixels, expected.channels, 8);
    simd_winograd_in_time(s, x, mirrored, weights, NULL, out(y), scratch);
    expect_same("in time", expected, y);
    tensor_free(y);
    release_guarded(scratch, size);
}

/* Forward or data gradient, by either algorithm, for images first ... first + count - 1. */
static tensor run_conv(const conv_case *c, int winograd, int backward, int threads, ptrdiff_t first, ptrdiff_t count,
                       ptrdiff_t extra)
{
    simd_conv_shape s = c->s, used;
    s.images = count;
    s.slots = threads;
    use_threads(threads);
    used = backward && winograd ? simd_conv_mirror(&s) : s;
    const ptrdiff_t in_pixels = s.height * s.width, out_pixels = s.out_height * s.out_width;
    const tensor from = backward ? c->dy : c->x;
    simd_const_pixels source = in(from);
    source.data += first * (backward ? out_pixels : in_pixels) * from.stride;
    tensor to = tensor_make(count * (backward ? in_pixels : out_pixels), backward ? s.inputs : s.outputs, extra);
    const ptrdiff_t size = winograd ? simd_winograd_scratch(&used) : simd_conv_scratch(&s);
    float *scratch = scratch_of(size);
    if (winograd) {
        const ptrdiff_t u_size = simd_winograd_weights_size(&used);
        float *u = scratch_of(u_size);
        simd_winograd_weights(&used, backward, c->logical, u);
        simd_winograd(&used, source, u, NULL, out(to), scratch);
        release_guarded(u, u_size);
        check_in_time(&used, backward, source, c->logical, to);
    } else if (backward) {
        float *transposed = scratch_of(c->block_count);
        simd_conv_transpose(&s, c->weights, transposed);
        simd_conv_dx(&s, source, transposed, NULL, out(to), scratch);
        release_guarded(transposed, c->block_count);
    } else {
        simd_conv(&s, source, c->weights, NULL, out(to), scratch);
    }
    release_guarded(scratch, size);
    return to;
}

/* Errors of factors with 8 bits, of the same sum with absolute values. A rounded factor is off by at most 2^-9 of itself,
 * so a direct sum by 3.9e-3; Winograd's transforms make the factors larger than what they add up to. Anything in a wrong
 * place would be off by about 1. */
static const double narrow_sum = 4e-3, narrow_winograd = 3e-2;

static void check_pixels(const conv_case *c, int winograd, int backward, ptrdiff_t extra)
{
    tensor whole = run_conv(c, winograd, backward, 1, 0, c->s.images, extra);
    static const char *const names[] = {"conv y", "conv dx", "winograd y", "winograd dx"};
    const int kind = 2 * winograd + backward, narrow = winograd && c->s.pairs;
    expect_close(narrow ? 14 : 1 + kind, names[kind],
                 judge_tensor(whole, backward ? c->dx : c->y, backward ? c->dx_size : c->y_size),
                 narrow     ? narrow_winograd
                 : winograd ? 5e-6
                            : 1e-6);
    for (int threads = 2; threads <= 3; threads++) {
        tensor again = run_conv(c, winograd, backward, threads, 0, c->s.images, extra);
        expect_same("threads", whole, again);
        tensor_free(again);
    }
    const ptrdiff_t pixels = whole.pixels / c->s.images;
    for (ptrdiff_t n = 0; n < c->s.images && c->s.images > 1; n++) {
        tensor alone = run_conv(c, winograd, backward, 1 + (int)n % 2, n, 1, extra), part = whole;
        part.data += n * pixels * whole.stride;
        part.pixels = pixels;
        expect_same("batch", part, alone);
        tensor_free(alone);
    }
    tensor_free(whole);
}

static void run_dw(const conv_case *c, const simd_conv_shape *s, int winograd, float *logical)
{
    const ptrdiff_t size = winograd ? simd_winograd_dw_scratch(s) : simd_conv_scratch(s);
    float *scratch = scratch_of(size);
    if (winograd) {
        simd_winograd_dw(s, in(c->x), in(c->dy), logical, scratch);
    } else {
        float *blocks = guarded(c->block_count, NAN);
        simd_conv_dw(s, in(c->x), in(c->dy), blocks, 0, scratch);
        unblock(c, blocks, logical);
        release_guarded(blocks, c->block_count);
    }
    release_guarded(scratch, size);
}

static void check_weights(const conv_case *c, int winograd)
{
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        simd_conv_shape s = c->s;
        s.slots = threads;
        use_threads(threads);
        float *dw = guarded(c->weight_count, NAN);
        run_dw(c, &s, winograd, dw);
        if (first) {
            assert_memory_equal(first, dw, (size_t)c->weight_count * sizeof *dw);
            release_guarded(dw, c->weight_count);
        } else {
            first = dw;
        }
    }
    const char *what = winograd ? "winograd dw" : "conv dw";
    if (c->s.pairs)
        check_dw(c, what, winograd ? 15 : 16, first, winograd ? narrow_winograd : narrow_sum);
    else
        check_dw(c, what, winograd ? 6 : 5, first, winograd ? 5e-6 : 1e-6);
    release_guarded(first, c->weight_count);
}

static void check_conv(simd_conv_shape s, ptrdiff_t extra)
{
    conv_case c = conv_make(s, extra);
    const int fits = s.kernel_height == 3 && s.kernel_width == 3 && s.stride_y == 1 && s.stride_x == 1;
    for (int winograd = 0; winograd <= fits; winograd++) {
        check_pixels(&c, winograd, 0, extra);
        check_pixels(&c, winograd, 1, extra);
        check_weights(&c, winograd);
    }
    conv_free(&c);
}

static simd_conv_shape shape3x3(int pairs, ptrdiff_t n, ptrdiff_t h, ptrdiff_t w, ptrdiff_t ci, ptrdiff_t co)
{
    return (simd_conv_shape){n, h, w, ci, h, w, co, 3, 3, 1, 1, 1, 1, 1, pairs};
}

static const ptrdiff_t channel_list[] = {1, 3, 6, 16, 17, 48, 128}, size_list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33};

/* All pairs of sizes and all pairs of channels, the other dimensions changing along; less of the large ones at a
 * time. */
static void conv3x3_cases(int pairs)
{
    static const ptrdiff_t batch[] = {1, 3, 8};
    size_t turn = 0;
    for (size_t h = 0; h < 11; h++)
        for (size_t w = 0; w < 11; w++, turn++) {
            ptrdiff_t n = batch[turn % 3], ci = channel_list[turn % 7], co = channel_list[(turn / 7 + turn) % 7];
            while (n * size_list[h] * size_list[w] * ci * co > 400000) {
                if (n > 1)
                    n = n == 8 ? 3 : 1;
                else if (ci > co)
                    ci = (ci + 1) / 2;
                else
                    co = (co + 1) / 2;
            }
            check_conv(shape3x3(pairs, n, size_list[h], size_list[w], ci, co), 8 * (ptrdiff_t)(turn % 3));
        }
    for (size_t i = 0; i < 7; i++)
        for (size_t o = 0; o < 7; o++)
            for (ptrdiff_t h = 4; h <= 5; h++) /* tiles of 2 x 2 and of 4 x 4 */
                check_conv(shape3x3(pairs, 1 + (ptrdiff_t)(i + o) % 2, h, 4, channel_list[i], channel_list[o]), 8);
}

/* More tiles than a block, and the real width of the network. */
static void conv3x3_large_cases(int pairs)
{
    check_conv(shape3x3(pairs, 2, 33, 36, 20, 24), 0);
    check_conv(shape3x3(pairs, 8, 16, 16, 16, 40), 0);
    check_conv(shape3x3(pairs, 3, 8, 8, 128, 48), 16);
}

static void conv_any_cases(int pairs)
{
    static const simd_conv_shape shapes[] = {
        /* n h w ci, out_h out_w co, kernel, stride, pad, slots, pairs */
        {3, 7, 5, 6, 7, 5, 17, 1, 1, 1, 1, 0, 0, 1, 0},     /* 1 x 1 */
        {1, 8, 8, 17, 4, 4, 16, 3, 3, 2, 2, 0, 0, 1, 0},    /* DDPM's downsampling: pads right and below only */
        {2, 9, 8, 3, 5, 4, 6, 3, 3, 2, 2, 1, 1, 1, 0},      /* uneven with stride */
        {1, 5, 6, 16, 5, 6, 48, 5, 5, 1, 1, 2, 2, 1, 0},    /* 5 x 5 */
        {2, 4, 9, 8, 4, 9, 3, 1, 7, 1, 1, 0, 3, 1, 0},      /* 1 x 7 */
        {1, 9, 4, 24, 9, 4, 8, 7, 1, 1, 1, 3, 0, 1, 0},     /* 7 x 1 */
        {1, 9, 9, 6, 3, 5, 17, 2, 4, 3, 2, 0, 1, 1, 0},     /* gaps between windows */
        {3, 5, 5, 1, 2, 2, 1, 1, 1, 3, 4, 0, 0, 1, 0},      /* most inputs unread: dx is zero there */
        {1, 3, 3, 3, 5, 5, 3, 3, 3, 1, 1, 2, 2, 1, 0},      /* full */
        {1, 6, 7, 3, 4, 5, 17, 3, 3, 1, 1, 0, 0, 1, 0},     /* valid */
        {1, 6, 7, 3, 6, 6, 17, 3, 3, 1, 1, 0, 1, 1, 0},     /* pads below and left only */
        {8, 33, 33, 6, 17, 17, 16, 4, 4, 2, 2, 1, 1, 1, 0}, /* many blocks of pixels */
        {2, 1, 1, 128, 1, 1, 48, 1, 1, 1, 1, 0, 0, 1, 0},   /* linear */
        {2, 9, 8, 3, 5, 4, 32, 3, 3, 2, 2, 1, 1, 1, 0},     /* few channels in, with stride */
        {1, 6, 7, 16, 4, 5, 3, 3, 3, 1, 1, 0, 0, 1, 0},     /* few out: valid, */
        {1, 3, 3, 32, 5, 5, 3, 3, 3, 1, 1, 2, 2, 1, 0},     /* full, */
        {2, 4, 9, 48, 5, 8, 2, 2, 7, 1, 1, 1, 2, 1, 0},     /* and uneven */
        {1, 8, 8, 48, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1, 0},     /* and with stride */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        simd_conv_shape s = shapes[i];
        s.pairs = pairs;
        check_conv(s, 8 * (ptrdiff_t)(i % 2));
    }
}

/* Finish and accumulation, against the same in separate steps. */
static void conv_fused_cases(int pairs)
{
    static const ptrdiff_t sizes[][5] = {{2, 7, 6, 17, 24}, {1, 4, 4, 48, 48}, {3, 16, 16, 16, 8}, {1, 3, 2, 128, 6}};
    for (size_t t = 0; t < 4; t++)
        for (int threads = 1; threads <= 3; threads++) {
            use_threads(threads);
            simd_conv_shape s = shape3x3(pairs, sizes[t][0], sizes[t][1], sizes[t][2], sizes[t][3], sizes[t][4]);
            s.slots = threads;
            conv_case c = conv_make(s, 8);
            const ptrdiff_t stride = psld_round16(s.outputs), pixels = s.height * s.width;
            float *bias = padded_table(s.images * stride);
            for (ptrdiff_t i = 0; i < s.images * stride; i++)
                if (i % stride >= s.outputs) bias[i] = 0;
            tensor residual = tensor_random(c.dy.pixels, s.outputs, 0), y = tensor_make(c.dy.pixels, s.outputs, 8);
            const simd_finish finish = {bias, stride, residual.data, residual.stride, 0.7F, 0};
            const ptrdiff_t size = simd_winograd_scratch(&s), u_size = simd_winograd_weights_size(&s);
            float *scratch = scratch_of(size), *u = scratch_of(u_size);
            simd_winograd_weights(&s, 0, c.logical, u);
            simd_winograd(&s, in(c.x), u, &finish, out(y), scratch);

            tensor plain = tensor_make(c.dy.pixels, s.outputs, 0);
            simd_winograd(&s, in(c.x), u, NULL, out(plain), scratch);
            const ptrdiff_t in_time_size = simd_winograd_in_time_scratch(&s);
            float *in_time_scratch = scratch_of(in_time_size);
            tensor in_time = tensor_make(c.dy.pixels, s.outputs, 0);
            simd_winograd_in_time(&s, in(c.x), 0, c.logical, &finish, out(in_time), in_time_scratch);
            expect_same("in time", y, in_time);
            release_guarded(in_time_scratch, in_time_size);
            tensor_free(in_time);
            for (ptrdiff_t p = 0; p < y.pixels; p++)
                for (ptrdiff_t o = 0; o < s.outputs; o++) {
                    const float sum = plain.data[p * plain.stride + o] + bias[p / pixels * stride + o];
                    const float expected = (sum + residual.data[p * residual.stride + o]) * 0.7F;
                    assert_true(y.data[p * y.stride + o] == expected);
                }

            release_guarded(scratch, size), release_guarded(u, u_size);
            release_guarded(bias, psld_round16(s.images * stride));
            tensor_free(plain), tensor_free(residual), tensor_free(y);
            conv_free(&c);
        }
}

static void conv3x3_values(void **state)
{
    (void)state;
    conv3x3_cases(0);
}

static void conv3x3_large(void **state)
{
    (void)state;
    conv3x3_large_cases(0);
}

static void conv_any_values(void **state)
{
    (void)state;
    conv_any_cases(0);
}

static void conv_fused(void **state)
{
    (void)state;
    conv_fused_cases(0);
}

/* ---- Convolutions by pairs --------------------------------------------------------------------------------------- */

/* Blocks of a 1 x 1 kernel become the panels that the products take, as they are and transposed. */
static void pairs_pointwise_weights(void **state)
{
    (void)state;
    require_pairs();
    for (size_t i = 0; i < 7; i++)
        for (size_t o = 0; o < 7; o++) {
            const ptrdiff_t inputs = channel_list[i], outputs = channel_list[o];
            conv_case c = conv_make((simd_conv_shape){1, 2, 2, inputs, 2, 2, outputs, 1, 1, 1, 1, 0, 0, 1, 1}, 0);
            for (int transposed = 0; transposed < 2; transposed++) {
                const ptrdiff_t k = transposed ? outputs : inputs, columns = transposed ? inputs : outputs;
                float *pairs = guarded(c.block_count / 2, NAN);
                use_threads(1 + (int)(i + o) % 3);
                simd_conv_pairs(&c.s, transposed, c.weights, pairs);
                for (ptrdiff_t l = 0; l < psld_round16(k); l++)
                    for (ptrdiff_t n = 0; n < psld_round16(columns); n++) {
                        const ptrdiff_t output = transposed ? l : n, input = transposed ? n : l;
                        const double w = l < k && n < columns ? logical_weight(&c, output, input, 0) : 0;
                        assert_true(pair_member(pairs, 8 * psld_round16(k), l, n) == rounded_to_pairs(w));
                    }
                release_guarded(pairs, c.block_count / 2);
            }
            conv_free(&c);
        }
}

static void pairs_conv3x3_values(void **state)
{
    (void)state;
    require_pairs();
    conv3x3_cases(1);
}

static void pairs_conv3x3_large(void **state)
{
    (void)state;
    require_pairs();
    conv3x3_large_cases(1);
}

static void pairs_conv_any_values(void **state)
{
    (void)state;
    require_pairs();
    conv_any_cases(1);
}

static void pairs_conv_fused(void **state)
{
    (void)state;
    require_pairs();
    conv_fused_cases(1);
}

/* ---- Elementwise ------------------------------------------------------------------------------------------------- */

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double silu_slope(double x)
{
    const double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

static void silu_values(void **state)
{
    (void)state;
    tensor x = tensor_random(4001, 6, 8), dy = tensor_random(4001, 6, 0), y = tensor_make(4001, 6, 0);
    tensor dx = tensor_make(4001, 6, 16);
    for (ptrdiff_t p = 0; p < x.pixels; p++)
        for (ptrdiff_t c = 0; c < 6; c++) x.data[p * x.stride + c] *= c < 3 ? 5.0F : 60.0F;
    simd_silu(x.pixels, 6, x.data, x.stride, y.data, y.stride);
    simd_silu_dx(x.pixels, 6, x.data, x.stride, dy.data, dy.stride, dx.data, dx.stride);
    judgement value = {0, 0}, slope = {0, 0};
    for (ptrdiff_t p = 0; p < x.pixels; p++)
        for (ptrdiff_t c = 0; c < 6; c++) {
            /* to a few units in the last place of the result or of 1, whichever is larger */
            const double size = fmax(1, fabs(at(x, p, c)));
            value = judge(value, at(y, p, c) / size, silu(at(x, p, c)) / size, 1);
            slope = judge(slope, at(dx, p, c), at(dy, p, c) * silu_slope(at(x, p, c)), 1);
        }
    expect_close(7, "silu", value, 5e-7);
    expect_close(8, "silu dx", slope, 1e-6);
    x.data[0] = NAN;
    simd_silu(1, 6, x.data, x.stride, y.data, y.stride);
    assert_true(isnan(y.data[0]) && !isnan(y.data[1]));
    x.data[0] = 0;
    tensor_free(x), tensor_free(dy), tensor_free(y), tensor_free(dx);
}

static void add_and_sum(void **state)
{
    (void)state;
    for (size_t i = 0; i < 7; i++) {
        const ptrdiff_t pixels = 997, channels = channel_list[i];
        tensor a = tensor_random(pixels, channels, 0), b = tensor_random(pixels, channels, 8);
        tensor y = tensor_make(pixels, channels, 16);
        float *sum = guarded(psld_round8(channels), 0);
        simd_add(pixels, channels, a.data, a.stride, 0.5F, b.data, b.stride, -2, y.data, y.stride);
        for (ptrdiff_t p = 0; p < pixels; p++)
            for (ptrdiff_t c = 0; c < channels; c++)
                assert_true(fabs(at(y, p, c) - (0.5 * at(a, p, c) - 2 * at(b, p, c))) <= 3e-7);
        for (int again = 0; again < 2; again++) simd_sum_pixels(pixels, channels, a.data, a.stride, sum, again);
        for (ptrdiff_t c = 0; c < channels; c++) {
            double truth = 0;
            for (ptrdiff_t p = 0; p < pixels; p++) truth += at(a, p, c);
            assert_true(fabs((double)sum[c] - 2 * truth) < 2e-5);
        }
        tensor_free(a), tensor_free(b), tensor_free(y);
        release_guarded(sum, psld_round8(channels));
    }
}

static void softmax_values(void **state)
{
    (void)state;
    for (ptrdiff_t columns = 1; columns < 40; columns++) {
        const ptrdiff_t ld = psld_odd_lines(columns), rows = 5;
        float *x = guarded(rows * ld, NAN);
        double *truth = doubles(rows * ld);
        for (ptrdiff_t r = 0; r < rows; r++) {
            double largest = -HUGE_VAL, sum = 0;
            for (ptrdiff_t c = 0; c < columns; c++) {
                x[r * ld + c] = 100 * uniform() - 50;
                largest = fmax(largest, (double)x[r * ld + c]);
            }
            for (ptrdiff_t c = 0; c < columns; c++)
                sum += truth[r * ld + c] = exp(0.25 * ((double)x[r * ld + c] - largest));
            for (ptrdiff_t c = 0; c < columns; c++) truth[r * ld + c] /= sum;
        }
        simd_softmax_rows(rows, columns, ld, 0.25F, x, ld);
        judgement j = {0, 0};
        for (ptrdiff_t i = 0; i < rows * ld; i++) j = judge(j, (double)x[i], truth[i], 1);
        expect_close(9, "softmax", j, 1e-6);
        release_guarded(x, rows * ld);
        psld_release(truth);
    }
}

/* ---- GroupNorm --------------------------------------------------------------------------------------------------- */

typedef struct {
    simd_norm norm;
    tensor x, dy;
    float *parameters, *tables;
    double *y, *y_size, *dx, *dx_size, *dgamma, *dbeta;
} norm_case;

/* One group of one image. */
static void norm_reference(norm_case *t, ptrdiff_t image, ptrdiff_t first, ptrdiff_t width)
{
    const simd_norm *n = &t->norm;
    const float *gamma = t->parameters, *beta = gamma + n->stride;
    const double count = (double)(width * n->pixels);
    double mean = 0, variance = 0, a = 0, b = 0;
#define EACH(p, c)                                                          \
    for (ptrdiff_t p = image * n->pixels; p < (image + 1) * n->pixels; p++) \
        for (ptrdiff_t c = first; c < first + width; c++)
    EACH(p, c) mean += at(t->x, p, c) / count;
    EACH(p, c) variance += pow(at(t->x, p, c) - mean, 2) / count;
    const double rstd = 1 / sqrt(variance + (double)n->epsilon);
    EACH(p, c)
    {
        const double h = (at(t->x, p, c) - mean) * rstd, z = h * (double)gamma[c] + (double)beta[c];
        const double d = at(t->dy, p, c) * (n->silu ? silu_slope(z) : 1);
        t->y[p * n->channels + c] = n->silu ? silu(z) : z;
        t->y_size[p * n->channels + c] = t->dx_size[p * n->channels + c] = 1 + fabs(mean) * rstd;
        t->dx[p * n->channels + c] = d;
        t->dgamma[c] += d * h;
        t->dbeta[c] += d;
        a += d * (double)gamma[c] / count;
        b += d * (double)gamma[c] * h / count;
    }
    EACH(p, c)
    {
        const double h = (at(t->x, p, c) - mean) * rstd;
        double *dx = &t->dx[p * n->channels + c];
        *dx = rstd * (*dx * (double)gamma[c] - a - h * b);
        t->dx_size[p * n->channels + c] *= rstd;
    }
#undef EACH
}

static void check_norm(ptrdiff_t images, ptrdiff_t pixels, ptrdiff_t channels, ptrdiff_t groups, int with_silu,
                       float offset)
{
    norm_case t = {.norm = {images, pixels, channels, groups, 1e-6F, psld_round8(channels) + 8, with_silu}};
    const ptrdiff_t table = images * t.norm.stride, scratch_size = simd_norm_dx_scratch(&t.norm);
    t.x = tensor_random(images * pixels, channels, 8);
    for (ptrdiff_t p = 0; p < t.x.pixels; p++)
        for (ptrdiff_t c = 0; c < channels; c++) t.x.data[p * t.x.stride + c] += offset;
    t.dy = tensor_random(images * pixels, channels, 0);
    t.parameters = guarded(2 * t.norm.stride, 0);
    for (ptrdiff_t c = 0; c < channels; c++) t.parameters[c] = uniform(), t.parameters[t.norm.stride + c] = uniform();
    t.y = doubles(t.x.pixels * channels), t.y_size = doubles(t.x.pixels * channels);
    t.dx = doubles(t.x.pixels * channels), t.dx_size = doubles(t.x.pixels * channels);
    t.dgamma = doubles(channels), t.dbeta = doubles(channels);
    for (ptrdiff_t n = 0; n < images; n++)
        for (ptrdiff_t c = 0; c < channels; c += channels / groups) norm_reference(&t, n, c, channels / groups);

    tensor y[3], dx[3];
    float *scratch = scratch_of(scratch_size), *sums[3];
    for (int i = 0; i < 3; i++) {
        use_threads(i + 1);
        t.tables = guarded(6 * table, NAN);
        float *mean = t.tables, *square = mean + table, *scale = square + table, *shift = scale + table;
        float *group_mean = shift + table, *group_rstd = group_mean + table;
        y[i] = tensor_make(t.x.pixels, channels, 0);
        dx[i] = tensor_make(t.x.pixels, channels, 8);
        sums[i] = guarded(2 * table, NAN);
        simd_moments(&t.norm, t.x.data, t.x.stride, mean, square);
        simd_norm_tables(&t.norm, mean, square, t.parameters, t.parameters + t.norm.stride, scale, shift, group_mean,
                         group_rstd);
        const simd_fill fill = {scale, shift, t.norm.stride, with_silu};
        simd_affine(&fill, images, pixels, channels, t.x.data, t.x.stride, y[i].data, y[i].stride);
        simd_norm_gradient g = {.x = t.x.data, .dy = t.dy.data, .x_stride = t.x.stride};
        g.dy_stride = t.dy.stride, g.gamma = t.parameters;
        g.scale = scale, g.shift = shift, g.group_mean = group_mean, g.group_rstd = group_rstd;
        simd_norm_sums(&t.norm, &g, sums[i]);
        simd_norm_dx(&t.norm, &g, sums[i], dx[i].data, dx[i].stride, scratch);
        expect_same("norm", y[0], y[i]);
        expect_same("norm dx", dx[0], dx[i]);
        for (ptrdiff_t n = 0; n < 2 * images; n++)
            assert_memory_equal(sums[0] + n * t.norm.stride, sums[i] + n * t.norm.stride,
                                (size_t)channels * sizeof(float));
        release_guarded(t.tables, 6 * table);
    }
    expect_close(10, "norm", judge_tensor(y[0], t.y, t.y_size), 3e-6);
    expect_close(11, "norm dx", judge_tensor(dx[0], t.dx, t.dx_size), 3e-6);
    judgement j = {0, 0};
    for (ptrdiff_t c = 0; c < channels; c++) {
        const double size = sqrt((double)(images * pixels)) + fabs((double)offset);
        double dgamma = 0, dbeta = 0;
        for (ptrdiff_t n = 0; n < images; n++) {
            dgamma += (double)sums[0][2 * n * t.norm.stride + c];
            dbeta += (double)sums[0][(2 * n + 1) * t.norm.stride + c];
        }
        j = judge(j, dgamma, t.dgamma[c], size);
        j = judge(j, dbeta, t.dbeta[c], size);
    }
    expect_close(12, "norm parameters", j, 1e-5);
    for (int i = 0; i < 3; i++) tensor_free(y[i]), tensor_free(dx[i]), release_guarded(sums[i], 2 * table);
    tensor_free(t.x), tensor_free(t.dy);
    release_guarded(t.parameters, 2 * t.norm.stride), release_guarded(scratch, scratch_size);
    psld_release(t.y), psld_release(t.y_size), psld_release(t.dx), psld_release(t.dx_size);
    psld_release(t.dgamma), psld_release(t.dbeta);
}

static void norm_values(void **state)
{
    (void)state;
    static const ptrdiff_t groups[] = {1, 3, 2, 4, 17, 12, 32};
    for (size_t i = 0; i < 7; i++)
        for (size_t s = 0; s < 11; s++)
            if (size_list[s] * channel_list[i] > groups[i]) /* a group of one number has no variance */
                check_norm(1 + (ptrdiff_t)(s % 3), size_list[s] * size_list[(s + i) % 11], channel_list[i], groups[i],
                           (int)(s % 2), 0);
    /* E[x^2] - m^2 would have no digit left here. */
    check_norm(2, 1024, 48, 12, 1, 3000);
    check_norm(1, 63, 128, 32, 0, -1000);
}

/* ---- Update ------------------------------------------------------------------------------------------------------ */

static void adam_values(void **state)
{
    (void)state;
    for (ptrdiff_t count = 1; count < 100000; count = count * 3 + 1) {
        float *a[3][5];
        double *chunks = doubles((ptrdiff_t)simd_square_chunks((size_t)count)), sums[3];
        const psld_adam adam = {2e-4, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.9999, 1, 3};
        for (int i = 0; i < 3; i++) {
            use_threads(i + 1);
            seed = (uint64_t)count;
            for (int k = 0; k < 5; k++) {
                a[i][k] = guarded(count, 0);
                for (ptrdiff_t n = 0; n < count; n++) a[i][k][n] = k == 3 ? fabsf(uniform()) : uniform();
            }
            sums[i] = simd_sum_squares((size_t)count, a[i][0], chunks);
            simd_adam(&adam, (size_t)count, a[i][0], a[i][1], a[i][2], a[i][3], a[i][4]);
            assert_true(sums[i] == sums[0]);
            for (int k = 0; k < 5; k++) assert_memory_equal(a[0][k], a[i][k], (size_t)count * sizeof(float));
        }
        seed = (uint64_t)count;
        double *start[5], squares = 0;
        for (int k = 0; k < 5; k++) {
            start[k] = doubles(count);
            for (ptrdiff_t n = 0; n < count; n++) start[k][n] = (double)(k == 3 ? fabsf(uniform()) : uniform());
        }
        for (ptrdiff_t n = 0; n < count; n++) {
            squares += start[0][n] * start[0][n];
            const double w = start[1][n], g = 0.5 * start[0][n] + 0.01 * w;
            const double m = 0.9 * start[2][n] + 0.1 * g, v = 0.999 * start[3][n] + 0.001 * g * g;
            const double next = w - 2e-4 / (1 - pow(0.9, 3)) * m / (sqrt(v / (1 - pow(0.999, 3))) + 1e-8);
            const double average = 0.9999 * start[4][n] + 0.0001 * next;
            assert_true(fabs((double)a[0][1][n] - next) < 2e-7 && fabs((double)a[0][2][n] - m) < 2e-7);
            assert_true(fabs((double)a[0][3][n] - v) < 2e-7 && fabs((double)a[0][4][n] - average) < 2e-7);
        }
        assert_true(fabs(sums[0] - squares) <= 1e-12 * squares);
        for (int i = 0; i < 15; i++) release_guarded(a[i / 5][i % 5], count);
        for (int k = 0; k < 5; k++) psld_release(start[k]);
        psld_release(chunks);
    }
}

int main(void)
{
    if (!SIMD_CPU_HAS()) {
        print_message("skipped: this processor has no " SIMD_QUOTE(SIMD_SET) "\n");
        return SKIPPED_PROGRAM;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_values),
        cmocka_unit_test(gemm_row_bits),
        cmocka_unit_test(gemm_transposed),
        cmocka_unit_test(gemm_tn_values),
        cmocka_unit_test(pairs_gemm_values),
        cmocka_unit_test(pairs_gemm_row_bits),
        cmocka_unit_test(pairs_gemm_tn_values),
        cmocka_unit_test(pairs_packed),
        cmocka_unit_test(pairs_pointwise_weights),
        cmocka_unit_test(pairs_conv3x3_values),
        cmocka_unit_test(pairs_conv3x3_large),
        cmocka_unit_test(pairs_conv_any_values),
        cmocka_unit_test(pairs_conv_fused),
        cmocka_unit_test(conv3x3_values),
        cmocka_unit_test(conv3x3_large),
        cmocka_unit_test(conv_any_values),
        cmocka_unit_test(conv_fused),
        cmocka_unit_test(silu_values),
        cmocka_unit_test(add_and_sum),
        cmocka_unit_test(softmax_values),
        cmocka_unit_test(norm_values),
        cmocka_unit_test(adam_values),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const kinds[] = {"gemm",
                                        "conv y",
                                        "conv dx",
                                        "winograd y",
                                        "winograd dx",
                                        "conv dw",
                                        "winograd dw",
                                        "silu",
                                        "silu dx",
                                        "softmax",
                                        "norm",
                                        "norm dx",
                                        "norm parameters",
                                        "pairs",
                                        "pairs by winograd",
                                        "pairs by winograd, dw",
                                        "pairs, conv dw"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        print_message("largest error, %s: %.1e\n", kinds[i], worst_of[i]);
    return failed;
}
