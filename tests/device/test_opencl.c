/* The OpenCL device: memory, what goes in and out, operations of training. Skipped where there is no device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "device/device.h"
#include "kernels/backend.h"
#include "opencl_test.h"

static psld_device *device;

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static float number(size_t i)
{
    return (float)sin(1.0 + 0.7 * (double)i);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void blocks(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    psld_memory *a, *b;
    float there[COUNT], back[COUNT];
    for (size_t i = 0; i < COUNT; i++) there[i] = number(i);
    must(device->does->create(device, sizeof there, &a));
    must(device->does->create(device, sizeof there, &b));
    must(device->does->download(a, 0, sizeof back, back));
    for (size_t i = 0; i < COUNT; i++) assert_true(back[i] == 0);
    must(device->does->upload(a, 0, sizeof there, there));
    must(device->does->copy(b, 40, a, 80, 400));
    must(device->does->download(b, 0, sizeof back, back));
    assert_memory_equal(back + 10, there + 20, 400);
    assert_true(back[9] == 0 && back[110] == 0);
    /* what was handed over may be changed at once */
    for (int i = 0; i < 40; i++) {
        float value = (float)i;
        must(device->does->upload(a, 4 * (size_t)i, sizeof value, &value));
    }
    must(device->does->download(a, 0, 40 * sizeof *back, back));
    for (int i = 0; i < 40; i++) assert_true(back[i] == (float)i);
    must(device->does->wait(device));
    device->does->free(a);
    device->does->free(b);
    device->does->free(NULL);
    must(device->does->create(device, 0, &a));
    device->does->free(a);
    assert_int_equal(device->does->create(device, SIZE_MAX / 4, &a), PSLD_NO_MEMORY);
    assert_null(a);
    if (!strstr(psld_error_text(), "GB, device opencl:")) fail_msg("%s", psld_error_text());
}

/* A tensor set and read again, alone and as part of wider pixels; lanes behind the channels are zero, others untouched. */
static void check_tensor(int channels, int half, size_t pixel, psld_type type)
{
    enum { N = 2, H = 3, W = 5 };
    size_t count = (size_t)channels * N * H * W, element = half ? 2 : 4, lanes = psld_lanes(channels);
    size_t bytes = (pixel ? pixel * N * H * W : count) * element + 64;
    double wide[17 * N * H * W], wide_back[17 * N * H * W];
    float flat[17 * N * H * W], flat_back[17 * N * H * W];
    psld_memory *memory;
    unsigned char *raw = psld_alloc(bytes, 1);
    for (size_t i = 0; i < count; i++) wide[i] = (double)(flat[i] = floorf(number(i) * 1024) / 1024);
    must(device->does->create(device, bytes, &memory));
    must(device->does->fill(device, (psld_place){memory, 0}, bytes / 4, 1.0F));
    psld_device_operand o = {{memory, 64 / element}, {N, channels, H, W}, pixel, half};
    must(device->does->set(device, &o, PSLD_F32, type, type == PSLD_F64 ? (void *)wide : (void *)flat));
    must(device->does->get(device, &o, PSLD_F32, PSLD_F64, wide_back));
    must(device->does->get(device, &o, PSLD_F32, PSLD_F32, flat_back));
    assert_memory_equal(wide, wide_back, count * sizeof *wide);
    assert_memory_equal(flat, flat_back, count * sizeof *flat);
    must(device->does->download(memory, 0, bytes, raw));
    for (size_t i = 0; pixel && i < N * H * W; i++)
        for (size_t c = (size_t)channels * element; c < pixel * element; c++) {
            static const unsigned char one[] = {0, 0, 0x80, 0x3f};
            unsigned char expected = c < lanes * element ? 0 : one[c % 4];
            assert_int_equal(raw[64 + i * pixel * element + c], expected);
        }
    device->does->free(memory);
    psld_release(raw);
}

static void tensors(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 8, 17};
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            check_tensor(channels[i], half, psld_lanes(channels[i]), PSLD_F32);
            check_tensor(channels[i], half, psld_lanes(channels[i]) + 16, PSLD_F64);
            if (!half) check_tensor(channels[i], 0, 0, PSLD_F64);
        }
}

/* What is too large to be kept aside is written as well. */
static void large_tensors(void **state)
{
    (void)state;
    enum { SIDE = 800, CHANNELS = 1 };
    size_t count = (size_t)SIDE * SIDE;
    psld_memory *memory;
    float *there = psld_alloc(count, sizeof *there), *back = psld_alloc(count, sizeof *back);
    for (size_t i = 0; i < count; i++) there[i] = (float)i;
    must(device->does->create(device, count * 8 * sizeof *there, &memory));
    psld_device_operand o = {{memory, 0}, {1, CHANNELS, SIDE, SIDE}, 8, 0};
    for (int i = 0; i < 2; i++) must(device->does->set(device, &o, PSLD_F32, PSLD_F32, there));
    must(device->does->get(device, &o, PSLD_F32, PSLD_F32, back));
    assert_memory_equal(there, back, count * sizeof *there);
    device->does->free(memory);
    psld_release(there);
    psld_release(back);
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

enum { COUNT = 20011, FROM = 3 };

typedef struct arrays {
    float g[COUNT], w[COUNT], m[COUNT], v[COUNT], average[COUNT];
} arrays;

static void make_arrays(arrays *a)
{
    for (size_t i = 0; i < COUNT; i++) {
        a->g[i] = number(i);
        a->w[i] = number(2 * i);
        a->m[i] = number(3 * i);
        a->v[i] = fabsf(number(4 * i));
        a->average[i] = number(5 * i);
    }
}

static void same_numbers(const float *a, const float *b)
{
    for (size_t i = 0; i < COUNT; i++)
        if (!(fabsf(a[i] - b[i]) <= 2e-6F * (1 + fabsf(b[i]))))
            fail_msg("number %zu: %g, expected %g", i, (double)a[i], (double)b[i]);
}

static psld_memory *upload(const float *x)
{
    psld_memory *memory;
    must(device->does->create(device, (COUNT + FROM) * sizeof *x, &memory));
    must(device->does->upload(memory, FROM * sizeof *x, COUNT * sizeof *x, x));
    return memory;
}

static void check_numbers(psld_memory *memory, const float *expected)
{
    float *back = psld_alloc(COUNT, sizeof *back);
    must(device->does->download(memory, FROM * sizeof *back, COUNT * sizeof *back, back));
    same_numbers(back, expected);
    psld_release(back);
}

static void updates(void **state)
{
    (void)state;
    static arrays a;
    const psld_backend *backend;
    psld_adam adam = {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.99, 0.999, 3};
    make_arrays(&a);
    must(device->does->backend(device, NULL, &backend));
    psld_memory *g = upload(a.g), *w = upload(a.w), *m = upload(a.m), *v = upload(a.v), *average = upload(a.average);
    for (int averaged = 0; averaged < 2; averaged++) {
        must(device->does->adam(device, backend, &adam, COUNT, (psld_place){g, FROM}, (psld_place){w, FROM},
                                (psld_place){m, FROM}, (psld_place){v, FROM},
                                (psld_place){averaged ? average : NULL, averaged ? FROM : 0}));
        psld_ref_adam(&adam, COUNT, a.g, a.w, a.m, a.v, averaged ? a.average : NULL);
    }
    must(device->does->average(device, (psld_place){average, FROM}, (psld_place){m, FROM}, COUNT, 0.75F));
    for (int i = 0; i < COUNT; i++) a.average[i] = 0.75F * a.average[i] + 0.25F * a.m[i];
    must(device->does->add(device, (psld_place){g, FROM}, (psld_place){v, FROM}, COUNT));
    for (int i = 0; i < COUNT; i++) a.g[i] += a.v[i];
    check_numbers(g, a.g);
    check_numbers(w, a.w);
    check_numbers(m, a.m);
    check_numbers(v, a.v);
    check_numbers(average, a.average);
    must(device->does->fill(device, (psld_place){g, FROM}, COUNT, 0.25F));
    for (int i = 0; i < COUNT; i++) a.g[i] = 0.25F;
    check_numbers(g, a.g);
    psld_memory *all[] = {g, w, m, v, average};
    for (int i = 0; i < 5; i++) device->does->free(all[i]);
}

static void squares(void **state)
{
    (void)state;
    static arrays a;
    const psld_backend *backend;
    double sum, again, expected = 0;
    psld_memory *part;
    make_arrays(&a);
    must(device->does->backend(device, NULL, &backend));
    for (int i = 0; i < COUNT; i++) expected += (double)a.g[i] * (double)a.g[i];
    psld_memory *g = upload(a.g);
    must(device->does->create(device, device->does->squares_bytes(backend, COUNT), &part));
    must(device->does->begin_squares(device, backend, (psld_place){g, FROM}, COUNT, part));
    must(device->does->read_squares(device, COUNT, part, &sum));
    must(device->does->begin_squares(device, backend, (psld_place){g, FROM}, COUNT, part));
    must(device->does->read_squares(device, COUNT, part, &again));
    assert_true(sum == again);
    if (!(fabs(sum - expected) <= 1e-10 * expected)) fail_msg("%.15g, expected %.15g", sum, expected);
    device->does->free(part);
    device->does->free(g);
}

static void backends(void **state)
{
    (void)state;
    const psld_backend *backend;
    must(device->does->backend(device, "fp16", &backend));
    assert_true(backend->half && backend->device == device);
    assert_int_equal(device->does->backend(device, "bf16", &backend), PSLD_BAD_ARGUMENT);
    assert_null(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks),        cmocka_unit_test(tensors),
                                       cmocka_unit_test(large_tensors), cmocka_unit_test(updates),
                                       cmocka_unit_test(squares),       cmocka_unit_test(backends)};
    device = opencl_for_test();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    psld_device_close(device);
    return failed;
}
