/* Which OpenCL drivers are installed, without loading any. */
#ifndef PSLD_DEVICE_OPENCL_VENDORS_H
#define PSLD_DEVICE_OPENCL_VENDORS_H

/* Whether there are other drivers than those that are known to compute on the CPU alone. */
int psld_opencl_may_have_gpu(void);

#endif
