/* The device that tests of OpenCL run on: the first there is. */
#ifndef PSLD_TESTS_OPENCL_TEST_H
#define PSLD_TESTS_OPENCL_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"

/* Ends the test as skipped where there is none. */
static inline psld_device *opencl_for_test(void)
{
    psld_device *device;
    char why[256] = "";
    if (psld_opencl_family.count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        exit(77);
    }
    if (psld_device_open("opencl:0", &device) == PSLD_OK) return device;
    printf("%s\n", psld_error_text());
    exit(1);
}

#endif
