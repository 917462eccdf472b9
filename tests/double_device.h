/* A device for tests: the CPU's kernels behind memory of its own that is copied to and fro, in blocks of any size, which
 * can fail at any call. What it computes are the CPU's bits. */
#ifndef PSLD_TESTS_DOUBLE_DEVICE_H
#define PSLD_TESTS_DOUBLE_DEVICE_H

#include "device/device.h"
#include "kernels/backend.h"

typedef struct double_device {
    psld_device device;
    psld_backend backend;
    long calls, fail_at; /* calls so far that may fail, and the first that does; 0: none. All later ones fail, too */
    long blocks;         /* of memory that are not freed */
    size_t allocated;    /* bytes of them, */
    size_t room;         /* of at most so many; 0: any */
} double_device;

/* `largest`: bytes of a block, 0: any. */
void double_device_open(double_device *made, const psld_backend *backend, size_t largest);

#endif
