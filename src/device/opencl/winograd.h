/* Convolutions of 3 x 3 taps, and their gradients by x, by Winograd's algorithm (kernels/winograd.cl). */
#ifndef PSLD_DEVICE_OPENCL_WINOGRAD_H
#define PSLD_DEVICE_OPENCL_WINOGRAD_H

#include "device/opencl/product.h"

/* Whether it is used: the geometry alone decides, not the batch, so that a sample's bits are always the same. */
int psld_cl_winograd_wins(const psld_attributes *a, int in_channels, psld_shape out);
/* Bytes. */
size_t psld_cl_winograd_packed(int in_channels, psld_shape out);
size_t psld_cl_winograd_scratch(int in_channels, psld_shape out);

psld_status psld_cl_winograd_prepare(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step);
/* `sum_step`, `result_step`: from a summed channel, one of the result, to the next in the weights; `flip`: the taps
 * in the opposite order. */
psld_status psld_cl_winograd_pack(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call,
                                  int sum_step, int result_step, int flip);
/* `pad`: rows above, columns before. */
psld_status psld_cl_winograd_run(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call,
                                 const int pad[2]);

#endif
