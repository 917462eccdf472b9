/* Arguments and ranges of kernels. */
#include "device/opencl/opencl.h"

psld_cl_launch psld_cl_begin(psld_cl_device *device, cl_kernel kernel)
{
    return (psld_cl_launch){.device = device, .kernel = kernel, .error = CL_SUCCESS};
}

static void add(psld_cl_launch *launch, size_t size, const void *value)
{
    cl_int error = launch->device->cl->SetKernelArg(launch->kernel, launch->next++, size, value);
    if (launch->error == CL_SUCCESS) launch->error = error;
}

void psld_cl_arg_memory(psld_cl_launch *launch, const psld_memory *memory)
{
    cl_mem block = memory ? psld_cl_block(memory) : NULL;
    add(launch, sizeof block, &block);
}

void psld_cl_arg_place(psld_cl_launch *launch, psld_place place)
{
    psld_cl_arg_memory(launch, place.memory);
    psld_cl_arg_long(launch, place.offset);
}

void psld_cl_arg_operand(psld_cl_launch *launch, const psld_device_operand *operand)
{
    psld_cl_arg_place(launch, operand->at);
    psld_cl_arg_int(launch, (int)operand->pixel);
}

void psld_cl_arg_int(psld_cl_launch *launch, int value)
{
    cl_int number = value;
    add(launch, sizeof number, &number);
}

void psld_cl_arg_long(psld_cl_launch *launch, uint64_t value)
{
    cl_ulong number = value;
    add(launch, sizeof number, &number);
}

void psld_cl_arg_float(psld_cl_launch *launch, double value)
{
    cl_float number = (cl_float)value;
    add(launch, sizeof number, &number);
}

void psld_cl_arg_local(psld_cl_launch *launch, size_t bytes)
{
    add(launch, bytes, NULL);
}

void psld_cl_arg_bytes(psld_cl_launch *launch, const void *bytes, size_t size)
{
    add(launch, size, bytes);
}

psld_status psld_cl_run(psld_cl_launch *launch, unsigned dimensions, const size_t *global, const size_t *group)
{
    psld_cl_device *device = launch->device;
    size_t whole[3];
    for (unsigned i = 0; i < dimensions; i++) {
        if (global[i] == 0) return PSLD_OK;
        if (global[i] > UINT32_MAX) /* kernels count in 32 bits */
            return psld_fail(PSLD_NO_MEMORY, "%s: a step of %zu elements is too large: a smaller batch may fit",
                             device->device.facts.id, global[i]);
        whole[i] = (global[i] + group[i] - 1) / group[i] * group[i];
    }
    PSLD_TRY(psld_cl_result(device, launch->error, "set the arguments of a kernel"));
    return psld_cl_result(
        device,
        device->cl->EnqueueNDRangeKernel(device->queue, launch->kernel, dimensions, NULL, whole, group, 0, NULL, NULL),
        "start a kernel");
}
