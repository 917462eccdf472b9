/* Data of the tests of one instruction set's kernels: buffers with guards, pixels with a stride of their own, and how far
 * results may be from the truth. */
#ifndef PSLD_TESTS_KERNELS_SIMD_DATA_H
#define PSLD_TESTS_KERNELS_SIMD_DATA_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/sizes.h"
#include "psld.h"

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

enum { GUARD = 64 };

static const float guard_value = 12345.0F;
static const float foreign_value = -777.0F; /* in lanes that belong to somebody else */

static uint64_t seed = 1;

static float uniform(void)
{
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (float)(seed >> 40) * 0x1p-23F - 1.0F;
}

/* A buffer of `count` floats of `value` between guards. */
static float *guarded(ptrdiff_t count, float value)
{
    float *block = psld_alloc((size_t)(count + 2 * GUARD), sizeof *block);
    assert_non_null(block);
    for (ptrdiff_t i = 0; i < count + 2 * GUARD; i++) block[i] = i < GUARD || i >= GUARD + count ? guard_value : value;
    return block + GUARD;
}

static void release_guarded(float *data, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < GUARD; i++)
        if (data[-1 - i] != guard_value || data[count + i] != guard_value) fail_msg("written outside a buffer");
    psld_release(data - GUARD);
}

static float *scratch_of(ptrdiff_t count)
{
    return guarded(count, NAN);
}

/* Pixels of `channels` with a stride of their own. */
typedef struct {
    float *data;
    ptrdiff_t pixels, channels, stride, count;
} tensor;

static tensor tensor_make(ptrdiff_t pixels, ptrdiff_t channels, ptrdiff_t extra)
{
    tensor t = {.pixels = pixels, .channels = channels, .stride = psld_round8(channels) + extra};
    /* The last pixel ends with its own lanes, so that reading on would be seen by the address sanitizer. */
    t.count = pixels ? (pixels - 1) * t.stride + psld_round8(channels) : 0;
    t.data = guarded(t.count, NAN);
    for (ptrdiff_t p = 0; p < pixels; p++)
        for (ptrdiff_t c = psld_round8(channels); c < t.stride && p + 1 < pixels; c++)
            t.data[p * t.stride + c] = foreign_value;
    return t;
}

static tensor tensor_random(ptrdiff_t pixels, ptrdiff_t channels, ptrdiff_t extra)
{
    tensor t = tensor_make(pixels, channels, extra);
    for (ptrdiff_t p = 0; p < pixels; p++)
        for (ptrdiff_t c = 0; c < psld_round8(channels); c++)
            t.data[p * t.stride + c] = c < channels ? uniform() : 0.0F;
    return t;
}

/* Lanes of nobody must be zero, lanes of others untouched. */
static void tensor_free(tensor t)
{
    for (ptrdiff_t p = 0; p < t.pixels; p++)
        for (ptrdiff_t c = t.channels; c < t.stride; c++) {
            if (p + 1 == t.pixels && c >= psld_round8(t.channels)) break;
            const float expected = c < psld_round8(t.channels) ? 0.0F : foreign_value;
            if (t.data[p * t.stride + c] != expected)
                fail_msg("pixel %td lane %td: %g", p, c, (double)t.data[p * t.stride + c]);
        }
    release_guarded(t.data, t.count);
}

static simd_const_pixels in(tensor t)
{
    return (simd_const_pixels){t.data, t.stride};
}

static simd_pixels out(tensor t)
{
    return (simd_pixels){t.data, t.stride};
}

static double at(tensor t, ptrdiff_t pixel, ptrdiff_t channel)
{
    return (double)t.data[pixel * t.stride + channel];
}

static double *doubles(ptrdiff_t count)
{
    double *block = psld_alloc((size_t)count, sizeof *block);
    assert_non_null(block);
    return block;
}

static float *padded_table(ptrdiff_t count)
{
    float *table = guarded(psld_round16(count), 0);
    for (ptrdiff_t i = 0; i < count; i++) table[i] = uniform();
    return table;
}

/* ---- Comparison -------------------------------------------------------------------------------------------------- */

/* `size` is the same sum with absolute values: what rounding errors are proportional to. A direct sum in float is
 * good to about sqrt(K) 6e-8 of it at worst and mostly far better; the transforms of Winograd's algorithm cost a
 * factor of about ten. */
typedef struct {
    double error, size;
} judgement;

static judgement judge(judgement j, double found, double truth, double size)
{
    const double error = fabs(found - truth);
    if (!(error <= j.error)) j.error = error; /* a NaN stays */
    if (size > j.size) j.size = size;
    return j;
}

static double worst_of[17];

static void expect_close(int kind, const char *what, judgement j, double limit)
{
    const double relative = j.size > 0 ? j.error / j.size : j.error;
    if (!(relative <= limit)) fail_msg("%s: error %g of %g, at most %g", what, j.error, j.size, limit);
    if (relative > worst_of[kind]) worst_of[kind] = relative;
}

static judgement judge_tensor(tensor t, const double *truth, const double *size)
{
    judgement j = {0, 0};
    for (ptrdiff_t p = 0; p < t.pixels; p++)
        for (ptrdiff_t c = 0; c < t.channels; c++)
            j = judge(j, at(t, p, c), truth[p * t.channels + c], size[p * t.channels + c]);
    return j;
}

static void use_threads(int count)
{
    assert_int_equal(psld_threads_set(count), PSLD_OK);
}

static void expect_same(const char *what, tensor a, tensor b)
{
    for (ptrdiff_t p = 0; p < a.pixels; p++)
        if (memcmp(a.data + p * a.stride, b.data + p * b.stride, (size_t)a.channels * sizeof(float)) != 0)
            fail_msg("%s: bits of pixel %td differ", what, p);
}

#endif
