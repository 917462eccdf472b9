#include "device/mirror.h"

psld_status psld_mirror_open(psld_device *device, void *host, size_t bytes, psld_mirror *mirror)
{
    *mirror = (psld_mirror){.host = host};
    if (!host) return PSLD_OK;
    if (device != psld_device_cpu()) return device->does->create(device, bytes, &mirror->memory);
    mirror->wrapped = (psld_memory){device, bytes, host};
    mirror->memory = &mirror->wrapped;
    return PSLD_OK;
}

void psld_mirror_clear(psld_mirror *mirror)
{
    if (mirror->memory && mirror->memory != &mirror->wrapped) mirror->memory->device->does->free(mirror->memory);
    *mirror = (psld_mirror){0};
}

static int is_copy(const psld_mirror *mirror)
{
    return mirror->memory && mirror->memory != &mirror->wrapped;
}

psld_status psld_mirror_upload(psld_mirror *mirror)
{
    if (!is_copy(mirror)) return PSLD_OK;
    return mirror->memory->device->does->upload(mirror->memory, 0, mirror->memory->bytes, mirror->host);
}

psld_status psld_mirror_download(psld_mirror *mirror)
{
    if (!is_copy(mirror)) return PSLD_OK;
    return mirror->memory->device->does->download(mirror->memory, 0, mirror->memory->bytes, mirror->host);
}
