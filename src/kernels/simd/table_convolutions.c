/* Convolutions, their two adjoints, and linear maps. Which algorithm computes one follows from its geometry alone,
 * never from the batch, so that bits do not depend on it:
 *     1 x 1, stride 1        a matrix product of pixels and weights,
 *     3 x 3, stride 1        Winograd, unless there are too few channels to fill its tiles,
 *     all else               by indirection.
 * With 16-bit factors those of stride 1 go by direct products on a matrix unit where there is one (direct.h), and else
 * Winograd's U is kept in half precision.
 * Packed weights are blocks (conv.h), those of the data gradient transposed, or U (winograd.h). Where U is not kept and
 * tiles are few, none is made: Winograd makes it panel by panel. Scratch begins with the table of biases that a product
 * is finished with; making packed weights uses all of it for weights in another order. */
#include "kernels/simd/table.h"

#include <string.h>

#include "kernels/simd/direct.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/winograd.h"

enum { MIN_WINOGRAD_CHANNELS = 16, MAX_TILES_IN_TIME = 64, MIN_NARROW_PIXELS = 16 };

typedef enum algorithm { BY_PRODUCT, BY_WINOGRAD, BY_HALF_WINOGRAD, BY_INDIRECTION, BY_DIRECT } algorithm;

static algorithm exact_algorithm(const simd_conv_shape *s)
{
    if (s->stride_y != 1 || s->stride_x != 1) return BY_INDIRECTION;
    if (s->kernel_height == 1 && s->kernel_width == 1 && s->pad_top == 0 && s->pad_left == 0 &&
        s->height == s->out_height && s->width == s->out_width)
        return BY_PRODUCT;
    if (s->kernel_height == 3 && s->kernel_width == 3 && s->pad_top <= 2 && s->pad_left <= 2 &&
        s->inputs >= MIN_WINOGRAD_CHANNELS && s->outputs >= MIN_WINOGRAD_CHANNELS)
        return BY_WINOGRAD;
    return BY_INDIRECTION;
}

/* Whether factors of 16 bits are accurate enough: not if there are few channels, as in the first and the last layer,
 * nor in maps of vectors such as the time embedding. These layers cost little, and their errors would affect the whole
 * network. */
static int may_be_narrow(const psld_call *call, const simd_conv_shape *s)
{
    return call->narrow && s->stride_y == 1 && s->stride_x == 1 && s->out_height * s->out_width >= MIN_NARROW_PIXELS &&
           s->inputs >= MIN_WINOGRAD_CHANNELS && s->outputs >= MIN_WINOGRAD_CHANNELS;
}

static algorithm algorithm_for(const psld_call *call, const simd_conv_shape *s)
{
    const algorithm exact = exact_algorithm(s);
    if (!may_be_narrow(call, s)) return exact;
    if (simd_direct_runs() && s->kernel_height * s->kernel_width <= SIMD_MAX_TAPS) return BY_DIRECT;
    return exact == BY_WINOGRAD && !s->pairs ? BY_HALF_WINOGRAD : exact;
}

static simd_conv_shape shape_between(const psld_call *call, const psld_operand *x, const psld_operand *y)
{
    const psld_attributes *a = call->attributes;
    simd_conv_shape s = {.images = x->shape.n,
                         .height = x->shape.h,
                         .width = x->shape.w,
                         .inputs = x->shape.c,
                         .out_height = y->shape.h,
                         .out_width = y->shape.w,
                         .outputs = y->shape.c,
                         .kernel_height = a->conv.kernel[0],
                         .kernel_width = a->conv.kernel[1],
                         .stride_y = a->conv.stride[0],
                         .stride_x = a->conv.stride[1],
                         .pad_top = a->conv.pad[0],
                         .pad_left = a->conv.pad[1],
                         .slots = call->threads};
    s.pairs = simd_pairs_run() && may_be_narrow(call, &s);
    return s;
}

static simd_const_pixels read_pixels(const psld_operand *o)
{
    return (simd_const_pixels){o->data, (ptrdiff_t)o->pixel};
}

static simd_pixels write_pixels(const psld_operand *o)
{
    return (simd_pixels){o->data, (ptrdiff_t)o->pixel};
}

/* ---- Weights ----------------------------------------------------------------------------------------------------- */

static ptrdiff_t block_offset(const simd_conv_shape *s, ptrdiff_t output, ptrdiff_t input)
{
    ptrdiff_t in_blocks = (s->inputs + 15) / 16;
    return (output / 16 * in_blocks + input / 16) * s->kernel_height * s->kernel_width * 256 + input % 16 * 16 +
           output % 16;
}

/* Whether blocks of weights [input][output] are made of whole rows: sixteen outputs of an input lie together in both. */
static int has_whole_rows(const simd_conv_shape *s)
{
    return s->kernel_height * s->kernel_width == 1 && s->inputs % 16 == 0 && s->outputs % 16 == 0;
}

/* Weights that lie as [input][output][taps], as those of linear maps do in some layers. */
static void block_transposed(const simd_conv_shape *s, const float *logical, float *blocks)
{
    ptrdiff_t taps = s->kernel_height * s->kernel_width;
    if (has_whole_rows(s)) {
        for (ptrdiff_t o = 0; o < s->outputs; o += 16)
            for (ptrdiff_t i = 0; i < s->inputs; i++)
                memcpy(blocks + (o * s->inputs + i * 16), logical + i * s->outputs + o, 16 * sizeof *blocks);
        return;
    }
    memset(blocks, 0, (size_t)simd_conv_weights(s) * sizeof *blocks);
    for (ptrdiff_t i = 0; i < s->inputs; i++)
        for (ptrdiff_t o = 0; o < s->outputs; o++)
            for (ptrdiff_t tap = 0; tap < taps; tap++)
                blocks[block_offset(s, o, i) + tap * 256] = logical[(i * s->outputs + o) * taps + tap];
}

static void unblock_transposed(const simd_conv_shape *s, const float *blocks, float *logical)
{
    ptrdiff_t taps = s->kernel_height * s->kernel_width;
    if (has_whole_rows(s)) {
        for (ptrdiff_t i = 0; i < s->inputs; i++)
            for (ptrdiff_t o = 0; o < s->outputs; o += 16)
                memcpy(logical + i * s->outputs + o, blocks + (o * s->inputs + i * 16), 16 * sizeof *blocks);
        return;
    }
    for (ptrdiff_t i = 0; i < s->inputs; i++)
        for (ptrdiff_t o = 0; o < s->outputs; o++)
            for (ptrdiff_t tap = 0; tap < taps; tap++)
                logical[(i * s->outputs + o) * taps + tap] = blocks[block_offset(s, o, i) + tap * 256];
}

static void block_weights(const psld_call *call, const simd_conv_shape *s, float *blocks)
{
    if (call->attributes->conv.transposed)
        block_transposed(s, call->in[1].data, blocks);
    else
        simd_conv_block(s, call->in[1].data, blocks);
}

/* Weights as [output][input][taps]: in place, or put into that order in `room`. */
static const float *logical_weights(const psld_call *call, const simd_conv_shape *s, float *room)
{
    const float *weights = call->in[1].data;
    if (!call->attributes->conv.transposed) return weights;
    ptrdiff_t taps = s->kernel_height * s->kernel_width;
    for (ptrdiff_t o = 0; o < s->outputs; o++)
        for (ptrdiff_t i = 0; i < s->inputs; i++)
            for (ptrdiff_t tap = 0; tap < taps; tap++)
                room[(o * s->inputs + i) * taps + tap] = weights[(i * s->outputs + o) * taps + tap];
    return room;
}

/* The other way, for their gradient. */
static void transpose_logical(const simd_conv_shape *s, const float *logical, float *transposed)
{
    ptrdiff_t taps = s->kernel_height * s->kernel_width;
    for (ptrdiff_t i = 0; i < s->inputs; i++)
        for (ptrdiff_t o = 0; o < s->outputs; o++)
            for (ptrdiff_t tap = 0; tap < taps; tap++)
                transposed[(i * s->outputs + o) * taps + tap] = logical[(o * s->inputs + i) * taps + tap];
}

/* Whether U is better made panel by panel than before the run (the bits are the same). */
static int is_in_time(const psld_call *call, const simd_conv_shape *s)
{
    if (algorithm_for(call, s) != BY_WINOGRAD || call->attributes->conv.transposed) return 0;
    return s->images * ((s->out_height + 3) / 4) * ((s->out_width + 3) / 4) <= MAX_TILES_IN_TIME;
}

/* Bytes of packed weights of a convolution of shape `s` that is run as one of shape `run`: the same, or its mirror. */
static size_t packed_bytes(algorithm how, const simd_conv_shape *s, const simd_conv_shape *run)
{
    if (how == BY_DIRECT) return (size_t)simd_direct_weights_size(run);
    if (how == BY_HALF_WINOGRAD) return (size_t)simd_winograd_half_size(run);
    if (how == BY_PRODUCT && s->pairs) return (size_t)simd_conv_weights(s) / 2 * sizeof(float);
    return (size_t)(how == BY_WINOGRAD ? simd_winograd_weights_size(run) : simd_conv_weights(s)) * sizeof(float);
}

/* Packs what is made of logical weights: all but blocks. */
static void pack_transformed(algorithm how, const simd_conv_shape *run, int mirrored, const float *weights,
                             void *packed)
{
    if (how == BY_DIRECT)
        simd_direct_weights(run, mirrored, weights, packed);
    else if (how == BY_HALF_WINOGRAD)
        simd_winograd_weights_half(run, mirrored, weights, packed);
    else
        simd_winograd_weights(run, mirrored, weights, packed);
}

/* ---- Finishing of products --------------------------------------------------------------------------------------- */

/* Floats of the table of biases, [image][channels padded to 16]. */
static ptrdiff_t table_size(const psld_call *call)
{
    return call->out.shape.n * psld_round16(call->out.shape.c);
}

static void fill_table(const psld_call *call, float *table)
{
    const psld_operand *bias = &call->in[2], *vector = &call->in[3];
    unsigned finish = call->attributes->conv.finish;
    ptrdiff_t channels = call->out.shape.c, stride = psld_round16(channels);
    memset(table, 0, (size_t)table_size(call) * sizeof *table);
    for (ptrdiff_t n = 0; n < call->out.shape.n; n++)
        for (ptrdiff_t c = 0; c < channels; c++) {
            float sum = finish & PSLD_FINISH_BIAS ? ((const float *)bias->data)[c] : 0;
            if (finish & PSLD_FINISH_VECTOR) sum += ((const float *)vector->data)[n * (ptrdiff_t)vector->pixel + c];
            table[n * stride + c] = sum;
        }
}

/* NULL when there is nothing to do. */
static const simd_finish *finish_for(const psld_call *call, float *table, simd_finish *finish)
{
    unsigned wanted = call->attributes->conv.finish;
    if (!wanted) return NULL;
    *finish = (simd_finish){.scale = wanted & PSLD_FINISH_SCALE ? (float)call->attributes->conv.by : 1,
                            .relu = (wanted & PSLD_FINISH_RELU) != 0};
    if (wanted & (PSLD_FINISH_BIAS | PSLD_FINISH_VECTOR)) {
        fill_table(call, table);
        finish->bias = table;
        finish->bias_stride = psld_round16(call->out.shape.c);
    }
    if (wanted & PSLD_FINISH_RESIDUAL) {
        finish->residual = call->in[4].data;
        finish->residual_stride = (ptrdiff_t)call->in[4].pixel;
    }
    return finish;
}

static void fast_product(const psld_call *call, const simd_conv_shape *s, ptrdiff_t k, const simd_finish *finish,
                         float *scratch)
{
    const ptrdiff_t width = psld_round16(k);
    simd_gemm gemm = {.rows = s->images * s->height * s->width,
                      .columns = call->out.shape.c,
                      .k = k,
                      .pixels = s->height * s->width,
                      .a = call->in[0].data,
                      .lda = (ptrdiff_t)call->in[0].pixel,
                      .b = call->packed,
                      .panel_stride = (s->pairs ? 8 : 16) * width,
                      .c = call->out.data,
                      .ldc = (ptrdiff_t)call->out.pixel,
                      .finish = finish,
                      .slots = s->slots,
                      .pairs = s->pairs,
                      .scratch = scratch};
    simd_gemm_run(&gemm);
}

/* ---- Forward ----------------------------------------------------------------------------------------------------- */

static simd_conv_shape forward_shape(const psld_call *call)
{
    return shape_between(call, &call->in[0], &call->out);
}

static size_t fast_packed_conv(const psld_call *call)
{
    simd_conv_shape s = forward_shape(call);
    return packed_bytes(algorithm_for(call, &s), &s, &s);
}

static void fast_pack_conv(const psld_call *call, size_t begin, size_t end)
{
    simd_conv_shape s = forward_shape(call);
    (void)begin, (void)end;
    const algorithm how = algorithm_for(call, &s);
    if (how == BY_PRODUCT && s.pairs) {
        block_weights(call, &s, call->scratch);
        simd_conv_pairs(&s, 0, call->scratch, call->packed);
    } else if (how == BY_PRODUCT || how == BY_INDIRECTION)
        block_weights(call, &s, call->packed);
    else
        pack_transformed(how, &s, 0, logical_weights(call, &s, call->scratch), call->packed);
}

/* Scratch of a convolution of shape `s` that is run as Winograd's of shape `tiled`: the same, or its mirror. */
static size_t conv_scratch(const psld_call *call, const simd_conv_shape *s, const simd_conv_shape *tiled)
{
    algorithm how = algorithm_for(call, s);
    ptrdiff_t run = how == BY_WINOGRAD        ? simd_winograd_scratch(tiled)
                    : how == BY_HALF_WINOGRAD ? simd_winograd_half_scratch(tiled)
                    : how == BY_DIRECT        ? simd_direct_scratch(tiled)
                    : how == BY_INDIRECTION   ? simd_conv_scratch(s)
                    : s->pairs                ? simd_gemm_scratch(tiled->inputs, s->slots)
                                              : 0;
    if (is_in_time(call, s)) run = psld_max(run, simd_winograd_in_time_scratch(tiled));
    return (size_t)psld_max(psld_round16(table_size(call)) + run, simd_conv_weights(s)) * sizeof(float);
}

typedef void (*indirect_fn)(const simd_conv_shape *shape, simd_const_pixels x, const float *weights,
                            const simd_finish *finish, simd_pixels y, float *scratch);

/* From in[0], with `k` channels, to the result. */
static void run_conv_shape(const psld_call *call, const simd_conv_shape *s, const simd_conv_shape *tiled, ptrdiff_t k,
                           indirect_fn indirect)
{
    simd_finish room;
    float *scratch = (float *)call->scratch + psld_round16(table_size(call));
    const simd_finish *finish = finish_for(call, call->scratch, &room);
    switch (algorithm_for(call, s)) {
    case BY_PRODUCT:
        fast_product(call, s, k, finish, scratch);
        break;
    case BY_WINOGRAD:
        if (call->packed)
            simd_winograd(tiled, read_pixels(&call->in[0]), call->packed, finish, write_pixels(&call->out), scratch);
        else
            simd_winograd_in_time(tiled, read_pixels(&call->in[0]), tiled != s, call->in[1].data, finish,
                                  write_pixels(&call->out), scratch);
        break;
    case BY_HALF_WINOGRAD:
        simd_winograd_half(tiled, read_pixels(&call->in[0]), call->packed, finish, write_pixels(&call->out), scratch);
        break;
    case BY_DIRECT:
        simd_direct(tiled, read_pixels(&call->in[0]), call->packed, finish, write_pixels(&call->out), scratch);
        break;
    case BY_INDIRECTION:
        indirect(s, read_pixels(&call->in[0]), call->packed, finish, write_pixels(&call->out), scratch);
        break;
    }
}

static int in_time_conv(const psld_call *call)
{
    simd_conv_shape s = forward_shape(call);
    return is_in_time(call, &s);
}

static size_t scratch_conv(const psld_call *call)
{
    simd_conv_shape s = forward_shape(call);
    return conv_scratch(call, &s, &s);
}

static void fast_conv(const psld_call *call, size_t begin, size_t end)
{
    simd_conv_shape s = forward_shape(call);
    (void)begin, (void)end;
    run_conv_shape(call, &s, &s, s.inputs, simd_conv);
}

/* ---- Data gradient ----------------------------------------------------------------------------------------------- */

/* The convolution whose adjoint it is: from its result to dy. */
static simd_conv_shape adjoint_shape(const psld_call *call)
{
    return shape_between(call, &call->out, &call->in[0]);
}

static size_t fast_packed_conv_dx(const psld_call *call)
{
    simd_conv_shape s = adjoint_shape(call), mirror = simd_conv_mirror(&s);
    return packed_bytes(algorithm_for(call, &s), &s, &mirror);
}

static void fast_pack_conv_dx(const psld_call *call, size_t begin, size_t end)
{
    simd_conv_shape s = adjoint_shape(call), mirror = simd_conv_mirror(&s);
    (void)begin, (void)end;
    const algorithm how = algorithm_for(call, &s);
    if (how != BY_PRODUCT && how != BY_INDIRECTION) {
        pack_transformed(how, &mirror, 1, logical_weights(call, &s, call->scratch), call->packed);
        return;
    }
    block_weights(call, &s, call->scratch);
    if (how == BY_PRODUCT && s.pairs)
        simd_conv_pairs(&s, 1, call->scratch, call->packed);
    else
        simd_conv_transpose(&s, call->scratch, call->packed);
}

static int in_time_conv_dx(const psld_call *call)
{
    simd_conv_shape s = adjoint_shape(call);
    return is_in_time(call, &s);
}

static size_t scratch_conv_dx(const psld_call *call)
{
    simd_conv_shape s = adjoint_shape(call), mirror = simd_conv_mirror(&s);
    return conv_scratch(call, &s, &mirror);
}

static void fast_conv_dx(const psld_call *call, size_t begin, size_t end)
{
    simd_conv_shape s = adjoint_shape(call), mirror = simd_conv_mirror(&s);
    (void)begin, (void)end;
    run_conv_shape(call, &s, &mirror, s.outputs, simd_conv_dx);
}

/* ---- Weight gradient --------------------------------------------------------------------------------------------- */

static simd_conv_shape weight_shape(const psld_call *call)
{
    return shape_between(call, &call->in[0], &call->in[1]);
}

static size_t scratch_conv_dw(const psld_call *call)
{
    simd_conv_shape s = weight_shape(call);
    ptrdiff_t run = exact_algorithm(&s) == BY_WINOGRAD ? simd_winograd_dw_scratch(&s) : simd_conv_scratch(&s);
    return (size_t)(simd_conv_weights(&s) + run) * sizeof(float);
}

static void fast_conv_dw(const psld_call *call, size_t begin, size_t end)
{
    simd_conv_shape s = weight_shape(call);
    int transposed = call->attributes->conv.transposed;
    float *room = call->scratch, *scratch = room + simd_conv_weights(&s), *out = call->out.data;
    (void)begin, (void)end;
    if (exact_algorithm(&s) == BY_WINOGRAD) {
        simd_winograd_dw(&s, read_pixels(&call->in[0]), read_pixels(&call->in[1]), transposed ? room : out, scratch);
        if (transposed) transpose_logical(&s, room, out);
        return;
    }
    simd_conv_dw(&s, read_pixels(&call->in[0]), read_pixels(&call->in[1]), room, 0, scratch);
    if (transposed)
        unblock_transposed(&s, room, out);
    else
        simd_conv_unblock(&s, room, out);
}

void simd_table_convolutions(psld_op_kernel *kernel)
{
    const unsigned all =
        PSLD_FINISH_BIAS | PSLD_FINISH_VECTOR | PSLD_FINISH_RESIDUAL | PSLD_FINISH_SCALE | PSLD_FINISH_RELU;
    kernel[PSLD_OP_CONV] = (psld_op_kernel){.name = SIMD_TEXT("conv"),
                                            .tasks = simd_table_one_task,
                                            .run = fast_conv,
                                            .scratch = scratch_conv,
                                            .finish = all,
                                            .packed = fast_packed_conv,
                                            .pack_tasks = simd_table_one_task,
                                            .pack = fast_pack_conv,
                                            .in_time = in_time_conv};
    kernel[PSLD_OP_CONV_DX] = (psld_op_kernel){.name = SIMD_TEXT("conv_dx"),
                                               .tasks = simd_table_one_task,
                                               .run = fast_conv_dx,
                                               .scratch = scratch_conv_dx,
                                               .finish = all,
                                               .packed = fast_packed_conv_dx,
                                               .pack_tasks = simd_table_one_task,
                                               .pack = fast_pack_conv_dx,
                                               .in_time = in_time_conv_dx};
    kernel[PSLD_OP_CONV_DW] = (psld_op_kernel){
        .name = SIMD_TEXT("conv_dw"), .tasks = simd_table_one_task, .run = fast_conv_dw, .scratch = scratch_conv_dw};
}
