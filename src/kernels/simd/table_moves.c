/* Resampling, concatenation and slices: pixels are moved or added up in whole vectors of channels. */
#include "kernels/simd/table.h"

#include <string.h>

#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

static float *moved_pixel(const psld_operand *o, ptrdiff_t n, ptrdiff_t y, ptrdiff_t x)
{
    return (float *)o->data + ((n * o->shape.h + y) * o->shape.w + x) * (ptrdiff_t)o->pixel;
}

/* ---- Resampling -------------------------------------------------------------------------------------------------- */

/* Where the taps of an output row or column look: only those that meet a pixel. */
typedef struct reach {
    int count;
    int source[PSLD_MAX_TAPS];
    float tap[PSLD_MAX_TAPS];
} reach;

static reach reach_of(const psld_attributes *a, int j, int size)
{
    reach r = {0};
    for (int k = 0; k < a->resample.taps; k++) {
        int at = j * a->resample.down + k - a->resample.pad;
        if (at < 0 || at % a->resample.up != 0 || at / a->resample.up >= size) continue;
        r.source[r.count] = at / a->resample.up;
        r.tap[r.count++] = a->resample.tap[k];
    }
    return r;
}

static void resample_pixel(const psld_operand *x, ptrdiff_t n, const reach *rows, const reach *columns, ptrdiff_t lanes,
                           float *out)
{
    for (ptrdiff_t c = 0; c < lanes; c += V_LANES) {
        vec sum = v_zero();
        for (int i = 0; i < rows->count; i++)
            for (int j = 0; j < columns->count; j++)
                sum = v_fma(v_set(rows->tap[i] * columns->tap[j]),
                            v_load_part(moved_pixel(x, n, rows->source[i], columns->source[j]) + c, lanes - c), sum);
        v_store_part(out + c, lanes - c, sum);
    }
}

static size_t tasks_of_moves(const psld_call *call)
{
    return (size_t)call->out.shape.n * (size_t)call->out.shape.h;
}

/* Some columns at a time, which reach the same pixels in every line. */
static void fast_resample(const psld_call *call, size_t begin, size_t end)
{
    enum { COLUMNS = 32 };
    psld_shape s = call->out.shape, in = call->in[0].shape;
    ptrdiff_t lanes = psld_round8(s.c);
    for (int first = 0; first < s.w; first += COLUMNS) {
        reach columns[COLUMNS];
        int count = s.w - first < COLUMNS ? s.w - first : COLUMNS;
        for (int i = 0; i < count; i++) columns[i] = reach_of(call->attributes, first + i, in.w);
        for (size_t task = begin; task < end; task++) {
            ptrdiff_t n = (ptrdiff_t)task / s.h, y = (ptrdiff_t)task % s.h;
            reach rows = reach_of(call->attributes, (int)y, in.h);
            for (int i = 0; i < count; i++)
                resample_pixel(&call->in[0], n, &rows, &columns[i], lanes, moved_pixel(&call->out, n, y, first + i));
        }
    }
}

/* ---- Concatenation and slices ------------------------------------------------------------------------------------ */

/* Zeros behind the channels of every pixel of a line. */
static void clear_line_lanes(const psld_operand *o, float *line)
{
    ptrdiff_t lanes = psld_round8(o->shape.c);
    for (ptrdiff_t x = 0; x < o->shape.w && lanes != o->shape.c; x++)
        for (ptrdiff_t c = o->shape.c; c < lanes; c++) line[x * (ptrdiff_t)o->pixel + c] = 0;
}

static void fast_concat(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    for (size_t task = begin; task < end; task++) {
        ptrdiff_t n = (ptrdiff_t)task / s.h, y = (ptrdiff_t)task % s.h, first = 0;
        float *out = moved_pixel(&call->out, n, y, 0);
        for (int i = 0; i < call->inputs; i++) {
            const psld_operand *in = &call->in[i];
            const float *from = moved_pixel(in, n, y, 0);
            for (ptrdiff_t x = 0; x < s.w; x++)
                memcpy(out + x * (ptrdiff_t)call->out.pixel + first, from + x * (ptrdiff_t)in->pixel,
                       (size_t)in->shape.c * sizeof(float));
            first += in->shape.c;
        }
        clear_line_lanes(&call->out, out);
    }
}

static void fast_slice(const psld_call *call, size_t begin, size_t end)
{
    psld_shape s = call->out.shape;
    const psld_operand *in = &call->in[0];
    for (size_t task = begin; task < end; task++) {
        ptrdiff_t n = (ptrdiff_t)task / s.h, y = (ptrdiff_t)task % s.h;
        float *out = moved_pixel(&call->out, n, y, 0);
        const float *from = moved_pixel(in, n, y, 0) + call->attributes->slice.first;
        for (ptrdiff_t x = 0; x < s.w; x++)
            memcpy(out + x * (ptrdiff_t)call->out.pixel, from + x * (ptrdiff_t)in->pixel, (size_t)s.c * sizeof(float));
        clear_line_lanes(&call->out, out);
    }
}

void simd_table_moves(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_RESAMPLE] =
        (psld_op_kernel){.name = SIMD_TEXT("resample"), .tasks = tasks_of_moves, .run = fast_resample};
    kernel[PSLD_OP_CONCAT] = (psld_op_kernel){.name = SIMD_TEXT("concat"), .tasks = tasks_of_moves, .run = fast_concat};
    kernel[PSLD_OP_SLICE] = (psld_op_kernel){.name = SIMD_TEXT("slice"), .tasks = tasks_of_moves, .run = fast_slice};
}
