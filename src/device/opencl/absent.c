/* What stands for the rest of this folder in a build without the headers of OpenCL: no device. */
#include <stdio.h>

#include "device/device.h"
#include "device/opencl/vendors.h"

static size_t opencl_count(char *why, size_t size)
{
    if (why) snprintf(why, size, "this build has no OpenCL (its headers were not installed)");
    return 0;
}

static psld_status opencl_describe(size_t index, psld_device_facts *facts)
{
    *facts = (psld_device_facts){0};
    return psld_fail(PSLD_DEVICE_FAILED, "opencl:%zu: this build has no OpenCL (its headers were not installed)",
                     index);
}

static psld_status opencl_open(size_t index, psld_device **device)
{
    *device = NULL;
    return psld_fail(PSLD_DEVICE_FAILED, "opencl:%zu: this build has no OpenCL (its headers were not installed)",
                     index);
}

static void opencl_close(psld_device *device)
{
    (void)device;
}

const psld_device_family psld_opencl_family = {"opencl",    opencl_count, opencl_describe,
                                               opencl_open, opencl_close, psld_opencl_may_have_gpu};
