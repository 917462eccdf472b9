/* An array of the host and its copy on a device. On the CPU both are the same memory, and copying does nothing. */
#ifndef PSLD_DEVICE_MIRROR_H
#define PSLD_DEVICE_MIRROR_H

#include "device/device.h"

typedef struct psld_mirror {
    void *host;
    psld_memory *memory; /* NULL: nothing is mirrored */
    psld_memory wrapped; /* what `memory` is where the device computes in the host's array */
} psld_mirror;

/* The host's array is borrowed. The device's contents are zero until the first upload. NULL for `host`: an empty
 * mirror. A mirror must not be moved once it is open. */
psld_status psld_mirror_open(psld_device *device, void *host, size_t bytes, psld_mirror *mirror);
void psld_mirror_clear(psld_mirror *mirror);

psld_status psld_mirror_upload(psld_mirror *mirror);
psld_status psld_mirror_download(psld_mirror *mirror);

/* A place in a mirror; no place if it is empty. */
static inline psld_place psld_mirror_at(const psld_mirror *mirror, size_t offset)
{
    return (psld_place){mirror->memory, offset};
}

#endif
