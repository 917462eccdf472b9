/* Operations on one element, or one pixel, at a time. */
#ifndef PSLD_KERNELS_REF_POINTWISE_H
#define PSLD_KERNELS_REF_POINTWISE_H

#include "base/random.h"
#include "kernels/ref/view.h"

static double activate(psld_activation kind, double x)
{
    switch (kind) {
    case PSLD_SILU:
        return x / (1 + exp(-x));
    case PSLD_RELU:
        return x > 0 ? x : 0;
    case PSLD_ELU:
        return x > 0 ? x : expm1(x);
    case PSLD_LEAKY_RELU:
        return x > 0 ? x : 0.2 * x;
    case PSLD_LINEAR:
        break;
    }
    return x;
}

static double activate_slope(psld_activation kind, double x)
{
    double s;
    switch (kind) {
    case PSLD_SILU:
        s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    case PSLD_RELU:
        return x > 0 ? 1 : 0;
    case PSLD_ELU:
        return x > 0 ? 1 : exp(x);
    case PSLD_LEAKY_RELU:
        return x > 0 ? 1 : 0.2;
    case PSLD_LINEAR:
        break;
    }
    return 1;
}

static void ref_activate(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r);
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i++)
            y[i] = (real)activate(call->attributes->activation.kind, (double)x[i]);
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_activate_dx(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), above = rows_of(&call->in[1]), out = rows_of(&call->out);
    psld_activation kind = call->attributes->activation.kind;
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r), *dy = row_at(&call->in[1], above, r);
        real *dx = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i++) dx[i] = (real)((double)dy[i] * activate_slope(kind, (double)x[i]));
        ref_clear_lanes(dx, out.width, out.lanes);
    }
}

static void ref_sum(const psld_call *call, size_t begin, size_t end)
{
    row_view first = rows_of(&call->in[0]), second = rows_of(&call->in[1]), out = rows_of(&call->out);
    real by = (real)call->attributes->scale.by;
    for (size_t r = begin; r < end; r++) {
        const real *a = row_at(&call->in[0], first, r), *b = row_at(&call->in[1], second, r);
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i++) y[i] = (a[i] + b[i]) * by;
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_scale(const psld_call *call, size_t begin, size_t end)
{
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    real by = (real)call->attributes->scale.by;
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r);
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i++) y[i] = x[i] * by;
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

static void ref_fill(const psld_call *call, size_t begin, size_t end)
{
    row_view out = rows_of(&call->out);
    for (size_t r = begin; r < end; r++) {
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i++) y[i] = (real)call->attributes->fill.value;
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

/* Number `pixel c + channel` of (step and dropout, sample) says whether that element is kept: the rate is one in 65536 parts. */
static void ref_dropout(const psld_call *call, size_t begin, size_t end)
{
    enum { PIECE = 256 };
    row_view in = rows_of(&call->in[0]), out = rows_of(&call->out);
    double rate = call->attributes->dropout.rate;
    long dropped = lround(rate * 65536);
    uint16_t drawn[PIECE];
    real kept = (real)(1 / (1 - rate));
    uint64_t address = call->run->step << 16 | (uint64_t)call->attributes->dropout.number;
    size_t pixels = (size_t)ref_pixels_of(call->out.shape);
    for (size_t r = begin; r < end; r++) {
        const real *x = row_at(&call->in[0], in, r);
        real *y = row_at(&call->out, out, r);
        for (ptrdiff_t i = 0; i < out.width; i += PIECE) {
            ptrdiff_t count = out.width - i < PIECE ? out.width - i : PIECE;
            uint64_t first = r % pixels * (uint64_t)out.width + (uint64_t)i;
            if (call->run->training)
                psld_random_short(call->run->seed, PSLD_FOR_DROPOUT, call->run->first + r / pixels, address, first,
                                  (size_t)count, drawn);
            for (ptrdiff_t j = 0; j < count; j++) {
                if (!call->run->training)
                    y[i + j] = x[i + j];
                else
                    y[i + j] = drawn[j] < dropped ? 0 : x[i + j] * kept;
            }
        }
        ref_clear_lanes(y, out.width, out.lanes);
    }
}

#endif
