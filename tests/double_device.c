#include "double_device.h"

#include <stdio.h>

#define CPU psld_device_cpu()->does

static psld_status count_call(psld_device *device)
{
    double_device *d = (double_device *)device;
    d->calls++;
    if (d->fail_at == 0 || d->calls < d->fail_at) return PSLD_OK;
    return psld_fail(PSLD_DEVICE_FAILED, "%s: was lost", device->facts.id);
}

static psld_status double_create(psld_device *device, size_t bytes, psld_memory **memory)
{
    double_device *d = (double_device *)device;
    *memory = NULL;
    PSLD_TRY(count_call(device));
    if (bytes > device->facts.largest) return psld_fail(PSLD_NO_MEMORY, "%s: a block too large", device->facts.id);
    if (d->room && d->allocated + bytes > d->room) return psld_fail(PSLD_NO_MEMORY, "%s: is full", device->facts.id);
    PSLD_TRY(CPU->create(device, bytes, memory));
    d->blocks++;
    d->allocated += bytes;
    return PSLD_OK;
}

static void double_free(psld_memory *memory)
{
    if (!memory) return;
    double_device *d = (double_device *)memory->device;
    d->blocks--;
    d->allocated -= memory->bytes;
    CPU->free(memory);
}

static psld_status double_upload(psld_memory *to, size_t offset, size_t bytes, const void *from)
{
    PSLD_TRY(count_call(to->device));
    return CPU->upload(to, offset, bytes, from);
}

static psld_status double_download(psld_memory *from, size_t offset, size_t bytes, void *to)
{
    PSLD_TRY(count_call(from->device));
    return CPU->download(from, offset, bytes, to);
}

static psld_status double_prepare(psld_device *device, const psld_device_call *call, void **prepared)
{
    PSLD_TRY(count_call(device));
    return CPU->prepare(device, call, prepared);
}

static psld_status double_run(psld_device *device, void *prepared, const psld_device_call *call)
{
    PSLD_TRY(count_call(device));
    return CPU->run(device, prepared, call);
}

static psld_status double_set(psld_device *device, const psld_device_operand *to, psld_type own, psld_type type,
                              const void *from)
{
    PSLD_TRY(count_call(device));
    return CPU->set(device, to, own, type, from);
}

static psld_status double_get(psld_device *device, const psld_device_operand *from, psld_type own, psld_type type,
                              void *to)
{
    PSLD_TRY(count_call(device));
    return CPU->get(device, from, own, type, to);
}

static psld_status double_adam(psld_device *device, const psld_backend *backend, const psld_adam *adam, size_t count,
                               psld_place gradient, psld_place weights, psld_place m, psld_place v, psld_place average)
{
    PSLD_TRY(count_call(device));
    return CPU->adam(device, backend, adam, count, gradient, weights, m, v, average);
}

static psld_status double_read_squares(psld_device *device, size_t count, psld_memory *squares, double *sum)
{
    PSLD_TRY(count_call(device));
    return CPU->read_squares(device, count, squares, sum);
}

void double_device_open(double_device *made, const psld_backend *backend, size_t largest)
{
    static psld_device_operations operations;
    operations = *CPU;
    operations.create = double_create;
    operations.free = double_free;
    operations.upload = double_upload;
    operations.download = double_download;
    operations.prepare = double_prepare;
    operations.run = double_run;
    operations.set = double_set;
    operations.get = double_get;
    operations.adam = double_adam;
    operations.read_squares = double_read_squares;
    *made = (double_device){.backend = *backend};
    made->device.does = &operations;
    made->device.facts = (psld_device_facts){
        .kind = PSLD_DEVICE_ACCELERATOR, .memory = UINT64_MAX, .largest = largest ? largest : UINT64_MAX};
    snprintf(made->device.facts.id, sizeof made->device.facts.id, "double:0");
    made->backend.device = &made->device;
}
