/* The products of attention as matrix products between the pixels of an image. A task is an image, which packs the
 * other matrix; or a quarter of an image's rows where images are few, so that one alone keeps four threads busy, each
 * packing for itself. */
#include "kernels/simd/table.h"

#include "kernels/simd/gemm.h"
#include "kernels/simd/sizes.h"

enum { FEW_IMAGES = 4 };

static ptrdiff_t parts_of(const psld_call *call)
{
    return call->out.shape.n < FEW_IMAGES ? 4 : 1;
}

static ptrdiff_t area_of(const psld_operand *o)
{
    return (ptrdiff_t)o->shape.h * o->shape.w;
}

static float *image_of(const psld_operand *o, ptrdiff_t n)
{
    return (float *)o->data + n * area_of(o) * (ptrdiff_t)o->pixel;
}

static size_t tasks_of_rows(const psld_call *call)
{
    return (size_t)(call->out.shape.n * parts_of(call));
}

/* The most tasks that this many images or fewer make. */
static size_t most_tasks(const psld_call *call)
{
    ptrdiff_t images = call->out.shape.n;
    return (size_t)psld_max(images, 4 * psld_min(images, FEW_IMAGES - 1));
}

typedef struct part {
    ptrdiff_t image, first, count; /* rows of the result; the first is a multiple of 8 */
} part;

static part part_of(const psld_call *call, size_t task)
{
    ptrdiff_t rows = area_of(&call->out), parts = parts_of(call), length = psld_round8((rows + parts - 1) / parts);
    ptrdiff_t first = psld_min((ptrdiff_t)task % parts * length, rows);
    return (part){(ptrdiff_t)task / parts, first, psld_min(length, rows - first)};
}

typedef void (*pack_fn)(ptrdiff_t k, ptrdiff_t columns, const float *b, ptrdiff_t ldb, float *panels,
                        ptrdiff_t panel_stride);

/* Whether the factors are pairs of bfloat16. */
static int in_pairs(const psld_call *call)
{
    return call->narrow && simd_pairs_run();
}

/* Floats of rounded rows of a task with pairs, `k` numbers long: of its own, and of `columns` for panels. */
static ptrdiff_t rounded_rows(const psld_call *call, ptrdiff_t k, ptrdiff_t columns)
{
    return in_pairs(call) ? simd_gemm_scratch(k, 1) * ((columns + 95) / 96 + 1) : 0;
}

/* Rows of the result from rows of in[0], `k` numbers long, and panels for all its columns. */
static void multiply_panels(const psld_call *call, part p, ptrdiff_t k, const float *panels, ptrdiff_t panel_stride,
                            float *rounded)
{
    const psld_operand *a = &call->in[0], *out = &call->out;
    const simd_finish finish = {.scale = (float)call->attributes->scale.by};
    simd_gemm gemm = {.rows = p.count,
                      .columns = out->shape.c,
                      .k = k,
                      .pixels = p.count,
                      .a = image_of(a, p.image) + p.first * (ptrdiff_t)a->pixel,
                      .lda = (ptrdiff_t)a->pixel,
                      .b = panels,
                      .panel_stride = panel_stride,
                      .c = image_of(out, p.image) + p.first * (ptrdiff_t)out->pixel,
                      .ldc = (ptrdiff_t)out->pixel,
                      .finish = call->attributes->scale.by == 1 ? NULL : &finish,
                      .slots = 1,
                      .pairs = in_pairs(call),
                      .scratch = rounded};
    simd_gemm_run(&gemm);
}

/* ---- S = by q k' ------------------------------------------------------------------------------------------------- */

static ptrdiff_t scores_panels(const psld_call *call)
{
    return psld_round16(call->out.shape.c) * psld_round16(call->in[1].shape.c);
}

static ptrdiff_t scores_scratch(const psld_call *call)
{
    return scores_panels(call) + rounded_rows(call, call->in[1].shape.c, call->out.shape.c);
}

static size_t scratch_scores(const psld_call *call)
{
    return most_tasks(call) * (size_t)scores_scratch(call) * sizeof(float);
}

static void fast_scores(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *keys = &call->in[1];
    const int pairs = in_pairs(call);
    ptrdiff_t width = keys->shape.c, columns = call->out.shape.c, stride = (pairs ? 8 : 16) * psld_round16(width);
    for (size_t task = begin; task < end; task++) {
        part p = part_of(call, task);
        float *panels = (float *)call->scratch + (ptrdiff_t)task * scores_scratch(call);
        float *rounded = panels + scores_panels(call);
        const float *key = image_of(keys, p.image);
        if (p.count <= 0) continue;
        if (pairs)
            simd_gemm_pack_transposed_pairs(width, columns, key, (ptrdiff_t)keys->pixel, rounded, panels, stride);
        else
            simd_gemm_pack_transposed(width, columns, key, (ptrdiff_t)keys->pixel, panels, stride);
        multiply_panels(call, p, width, panels, stride, rounded);
    }
}

/* ---- o = by P v -------------------------------------------------------------------------------------------------- */

static ptrdiff_t apply_panels(const psld_call *call)
{
    return psld_round16(call->out.shape.c) * psld_round16(call->in[0].shape.c);
}

static ptrdiff_t apply_scratch(const psld_call *call)
{
    return apply_panels(call) + rounded_rows(call, call->in[0].shape.c, 0);
}

static size_t scratch_apply(const psld_call *call)
{
    return most_tasks(call) * (size_t)apply_scratch(call) * sizeof(float);
}

static void fast_apply(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *values = &call->in[1];
    const int pairs = in_pairs(call);
    ptrdiff_t length = call->in[0].shape.c, stride = (pairs ? 8 : 16) * psld_round16(length);
    for (size_t task = begin; task < end; task++) {
        part p = part_of(call, task);
        float *panels = (float *)call->scratch + (ptrdiff_t)task * apply_scratch(call);
        if (p.count <= 0) continue;
        const pack_fn pack = pairs ? simd_gemm_pack_pairs : simd_gemm_pack;
        pack(length, call->out.shape.c, image_of(values, p.image), (ptrdiff_t)values->pixel, panels, stride);
        multiply_panels(call, p, length, panels, stride, panels + apply_panels(call));
    }
}

/* ---- o = by P' y ------------------------------------------------------------------------------------------------- */

/* Strips of sixteen columns of P's part, then of y. */
static ptrdiff_t apply_t_strips(const psld_call *call)
{
    return (psld_round16(area_of(&call->out)) + psld_round16(call->out.shape.c)) * psld_round16(area_of(&call->in[0]));
}

static size_t scratch_apply_t(const psld_call *call)
{
    return most_tasks(call) * (size_t)apply_t_strips(call) * sizeof(float);
}

static void fast_apply_t(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *weights = &call->in[0], *y = &call->in[1], *out = &call->out;
    const ptrdiff_t lanes = psld_round8(out->shape.c), length = area_of(weights);
    const int pairs = in_pairs(call);
    const ptrdiff_t k = pairs ? psld_round16(length) / 2 : length, stride = 16 * k;
    const float by = (float)call->attributes->scale.by;
    enum { WIDTH = 16 * TILE_PANELS };
    for (size_t task = begin; task < end; task++) {
        part p = part_of(call, task);
        float *a = (float *)call->scratch + (ptrdiff_t)task * apply_t_strips(call);
        float *b = a + psld_round16(area_of(out)) * k;
        float *c = image_of(out, p.image) + p.first * (ptrdiff_t)out->pixel;
        if (p.count <= 0) continue;
        const pack_fn pack = pairs ? simd_gemm_pack_pairs : simd_gemm_pack;
        pack(length, p.count, image_of(weights, p.image) + p.first, (ptrdiff_t)weights->pixel, a, stride);
        pack(length, out->shape.c, image_of(y, p.image), (ptrdiff_t)y->pixel, b, stride);
        for (ptrdiff_t row = 0; row < p.count; row += 16)
            for (ptrdiff_t column = 0; column < lanes; column += WIDTH)
                simd_gemm_tn(pairs, psld_min(16, p.count - row), k, a + row * k, 16, b + column * k, stride, 16,
                             c + row * (ptrdiff_t)out->pixel + column, 16, (ptrdiff_t)out->pixel,
                             (int)psld_min(lanes - column, WIDTH), 0);
        if (by != 1)
            simd_add(p.count, out->shape.c, c, (ptrdiff_t)out->pixel, by, NULL, 0, 0, c, (ptrdiff_t)out->pixel);
    }
}

/* ---- Softmax ----------------------------------------------------------------------------------------------------- */

static size_t tasks_softmax(const psld_call *call)
{
    return (size_t)call->out.shape.n * (size_t)call->out.shape.h;
}

static void fast_softmax(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *s = &call->in[0], *p = &call->out;
    ptrdiff_t columns = p->shape.c, padded = psld_round8(columns), width = p->shape.w;
    for (size_t line = begin; line < end; line++) {
        const float *from = (const float *)s->data + (ptrdiff_t)line * width * (ptrdiff_t)s->pixel;
        float *to = (float *)p->data + (ptrdiff_t)line * width * (ptrdiff_t)p->pixel;
        for (ptrdiff_t i = 0; from != to && i < width; i++)
            for (ptrdiff_t c = 0; c < columns; c++) to[i * (ptrdiff_t)p->pixel + c] = from[i * (ptrdiff_t)s->pixel + c];
        simd_softmax_rows(width, columns, padded, 1, to, (ptrdiff_t)p->pixel);
    }
}

void simd_table_attention(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_SCORES] = (psld_op_kernel){
        .name = SIMD_TEXT("scores"), .tasks = tasks_of_rows, .run = fast_scores, .scratch = scratch_scores};
    kernel[PSLD_OP_APPLY] = (psld_op_kernel){
        .name = SIMD_TEXT("apply"), .tasks = tasks_of_rows, .run = fast_apply, .scratch = scratch_apply};
    kernel[PSLD_OP_APPLY_T] = (psld_op_kernel){
        .name = SIMD_TEXT("apply_t"), .tasks = tasks_of_rows, .run = fast_apply_t, .scratch = scratch_apply_t};
    kernel[PSLD_OP_SOFTMAX] =
        (psld_op_kernel){.name = SIMD_TEXT("softmax"), .tasks = tasks_softmax, .run = fast_softmax, .in_place = 1};
}
