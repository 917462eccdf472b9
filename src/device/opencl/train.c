/* Operations of training. The kernels are the device's own, so their arguments are set under its lock. */
#include <math.h>

#include "base/alloc.h"
#include "device/opencl/opencl.h"

enum { GROUP = 128, SQUARES = GROUP * 64 }; /* as in update.cl */

enum { ADD, AVERAGE, ADAM, SQUARE };

/* Under the lock until end_update. */
static psld_status begin_update(psld_cl_device *d, int which, psld_cl_launch *launch)
{
    static const char *const names[] = {"add_floats", "average_floats", "adam", "square_floats"};
    cl_kernel kernel = NULL;
    PSLD_TRY(psld_cl_check(d));
    if (!d->update[which]) PSLD_TRY(psld_cl_kernel(d, "update.cl", names[which], NULL, &kernel));
    pthread_mutex_lock(&d->lock);
    if (!d->update[which]) {
        d->update[which] = kernel;
        kernel = NULL;
    }
    psld_cl_kernel_free(d, &kernel); /* another thread was faster */
    *launch = psld_cl_begin(d, d->update[which]);
    return PSLD_OK;
}

static psld_status end_update(psld_cl_device *d, psld_cl_launch *launch, size_t items)
{
    psld_status status = psld_cl_run(launch, 1, (const size_t[]){items}, (const size_t[]){GROUP});
    pthread_mutex_unlock(&d->lock);
    return status;
}

psld_status psld_cl_fill(psld_device *device, psld_place to, size_t count, float value)
{
    psld_cl_device *d = psld_cl_of(device);
    PSLD_TRY(psld_cl_check(d));
    if (!count) return PSLD_OK;
    return psld_cl_result(d,
                          d->cl->EnqueueFillBuffer(d->queue, psld_cl_block(to.memory), &value, sizeof value,
                                                   to.offset * sizeof value, count * sizeof value, 0, NULL, NULL),
                          "fill a block of memory");
}

psld_status psld_cl_add(psld_device *device, psld_place to, psld_place by, size_t count)
{
    psld_cl_launch launch;
    PSLD_TRY(begin_update(psld_cl_of(device), ADD, &launch));
    psld_cl_arg_place(&launch, to);
    psld_cl_arg_place(&launch, by);
    psld_cl_arg_long(&launch, count);
    return end_update(psld_cl_of(device), &launch, count);
}

psld_status psld_cl_average(psld_device *device, psld_place average, psld_place weights, size_t count, float decay)
{
    psld_cl_launch launch;
    PSLD_TRY(begin_update(psld_cl_of(device), AVERAGE, &launch));
    psld_cl_arg_place(&launch, average);
    psld_cl_arg_place(&launch, weights);
    psld_cl_arg_long(&launch, count);
    psld_cl_arg_float(&launch, (double)decay);
    return end_update(psld_cl_of(device), &launch, count);
}

psld_status psld_cl_adam(psld_device *device, const psld_backend *backend, const psld_adam *adam, size_t count,
                         psld_place gradient, psld_place weights, psld_place m, psld_place v, psld_place average)
{
    psld_cl_launch launch;
    (void)backend;
    PSLD_TRY(begin_update(psld_cl_of(device), ADAM, &launch));
    const psld_place places[] = {gradient, weights, m, v, average};
    for (int i = 0; i < 5; i++) psld_cl_arg_place(&launch, places[i].memory ? places[i] : weights);
    psld_cl_arg_long(&launch, count);
    psld_cl_arg_int(&launch, average.memory != NULL);
    const double numbers[] = {adam->clip,
                              adam->decay,
                              adam->beta1,
                              adam->beta2,
                              adam->rate / (1 - pow(adam->beta1, (double)adam->step)),
                              1 / sqrt(1 - pow(adam->beta2, (double)adam->step)),
                              adam->epsilon,
                              adam->ema,
                              adam->shrink};
    for (int i = 0; i < 9; i++) psld_cl_arg_float(&launch, numbers[i]);
    return end_update(psld_cl_of(device), &launch, count);
}

/* ---- Sums of squares ----------------------------------------------------------------------------------------------- */

/* Two floats for each group of SQUARES numbers; the host adds them up in order. */
static size_t groups_of(size_t count)
{
    return count ? (count - 1) / SQUARES + 1 : 0;
}

size_t psld_cl_squares_bytes(const psld_backend *backend, size_t count)
{
    (void)backend;
    return groups_of(count) * 2 * sizeof(float);
}

psld_status psld_cl_begin_squares(psld_device *device, const psld_backend *backend, psld_place x, size_t count,
                                  psld_memory *squares)
{
    psld_cl_launch launch;
    (void)backend;
    PSLD_TRY(begin_update(psld_cl_of(device), SQUARE, &launch));
    psld_cl_arg_place(&launch, x);
    psld_cl_arg_long(&launch, count);
    psld_cl_arg_memory(&launch, squares);
    return end_update(psld_cl_of(device), &launch, groups_of(count) * GROUP);
}

psld_status psld_cl_read_squares(psld_device *device, size_t count, psld_memory *squares, double *sum)
{
    size_t parts = groups_of(count) * 2;
    (void)device;
    *sum = 0;
    float *part = psld_alloc(parts, sizeof *part);
    if (!part) return PSLD_NO_MEMORY;
    psld_status status = psld_cl_download(squares, 0, parts * sizeof *part, part);
    for (size_t i = 0; status == PSLD_OK && i < parts; i++) *sum += (double)part[i];
    psld_release(part);
    return status;
}
