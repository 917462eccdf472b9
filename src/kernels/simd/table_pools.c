/* Pooling and bilinear resizing, in whole vectors of channels: zero lanes stay zero by themselves. */
#include "kernels/simd/sizes.h"
#include "kernels/simd/table.h"
#include "kernels/simd/vec.h"

static float *pooled_pixel(const psld_operand *o, ptrdiff_t n, ptrdiff_t y, ptrdiff_t x)
{
    return (float *)o->data + ((n * o->shape.h + y) * o->shape.w + x) * (ptrdiff_t)o->pixel;
}

static size_t tasks_of_pools(const psld_call *call)
{
    return (size_t)call->out.shape.n * (size_t)call->out.shape.h;
}

/* ---- Pooling ----------------------------------------------------------------------------------------------------- */

/* The part of a window that lies in the image, along one axis. */
typedef struct span {
    ptrdiff_t begin, end;
} span;

static span span_of(const psld_attributes *a, int axis, ptrdiff_t j, ptrdiff_t size)
{
    ptrdiff_t begin = j * a->pool.stride[axis] - a->pool.pad[axis];
    return (span){psld_max(0, begin), psld_min(size, begin + a->pool.kernel[axis])};
}

static void window_max(const psld_operand *x, ptrdiff_t n, span rows, span columns, ptrdiff_t lanes, float *out)
{
    for (ptrdiff_t c = 0; c < lanes; c += V_LANES) {
        const ptrdiff_t left = lanes - c;
        vec largest = v_load_part(pooled_pixel(x, n, rows.begin, columns.begin) + c, left);
        for (ptrdiff_t y = rows.begin; y < rows.end; y++)
            for (ptrdiff_t column = columns.begin; column < columns.end; column++)
                largest = v_max(largest, v_load_part(pooled_pixel(x, n, y, column) + c, left));
        v_store_part(out + c, left, largest);
    }
}

static void window_mean(const psld_operand *x, ptrdiff_t n, span rows, span columns, ptrdiff_t lanes, float *out)
{
    const vec share = v_set(1.0F / (float)((rows.end - rows.begin) * (columns.end - columns.begin)));
    for (ptrdiff_t c = 0; c < lanes; c += V_LANES) {
        vec sum = v_zero();
        for (ptrdiff_t y = rows.begin; y < rows.end; y++)
            for (ptrdiff_t column = columns.begin; column < columns.end; column++)
                sum = v_add(sum, v_load_part(pooled_pixel(x, n, y, column) + c, lanes - c));
        v_store_part(out + c, lanes - c, v_mul(sum, share));
    }
}

static void fast_pool(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    const psld_attributes *a = call->attributes;
    psld_shape s = call->out.shape;
    ptrdiff_t lanes = psld_round8(s.c);
    for (ptrdiff_t task = (ptrdiff_t)begin; task < (ptrdiff_t)end; task++) {
        ptrdiff_t n = task / s.h, y = task % s.h;
        span rows = span_of(a, 0, y, x->shape.h);
        for (ptrdiff_t column = 0; column < s.w; column++)
            (a->pool.mean ? window_mean : window_max)(x, n, rows, span_of(a, 1, column, x->shape.w), lanes,
                                                      pooled_pixel(&call->out, n, y, column));
    }
}

/* ---- Resizing ---------------------------------------------------------------------------------------------------- */

/* The two pixels that an output pixel lies between, and the share of the second. */
typedef struct between {
    ptrdiff_t first, second;
    float share;
} between;

static between between_of(ptrdiff_t j, ptrdiff_t in, ptrdiff_t out)
{
    double at = (double)j * (double)in / (double)out;
    ptrdiff_t first = (ptrdiff_t)at;
    return (between){first, psld_min(first + 1, in - 1), (float)(at - (double)first)};
}

static vec mix_pixels(const float *a, const float *b, vec share, ptrdiff_t left)
{
    const vec first = v_load_part(a, left);
    return v_fma(v_sub(v_load_part(b, left), first), share, first);
}

static void fast_resize(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *x = &call->in[0];
    psld_shape s = call->out.shape;
    ptrdiff_t lanes = psld_round8(s.c);
    for (ptrdiff_t task = (ptrdiff_t)begin; task < (ptrdiff_t)end; task++) {
        ptrdiff_t n = task / s.h, y = task % s.h;
        between rows = between_of(y, x->shape.h, s.h);
        const float *upper = pooled_pixel(x, n, rows.first, 0), *lower = pooled_pixel(x, n, rows.second, 0);
        for (ptrdiff_t column = 0; column < s.w; column++) {
            between columns = between_of(column, x->shape.w, s.w);
            ptrdiff_t left = columns.first * (ptrdiff_t)x->pixel, right = columns.second * (ptrdiff_t)x->pixel;
            float *out = pooled_pixel(&call->out, n, y, column);
            for (ptrdiff_t c = 0; c < lanes; c += V_LANES) {
                const ptrdiff_t rest = lanes - c;
                const vec share = v_set(columns.share);
                const vec above = mix_pixels(upper + left + c, upper + right + c, share, rest);
                const vec below = mix_pixels(lower + left + c, lower + right + c, share, rest);
                v_store_part(out + c, rest, v_fma(v_sub(below, above), v_set(rows.share), above));
            }
        }
    }
}

void simd_table_pools(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_POOL] = (psld_op_kernel){.name = SIMD_TEXT("pool"), .tasks = tasks_of_pools, .run = fast_pool};
    kernel[PSLD_OP_RESIZE] = (psld_op_kernel){.name = SIMD_TEXT("resize"), .tasks = tasks_of_pools, .run = fast_resize};
}
