/* Steps of plans: which rule computes an operation, and the backends that the planner sees. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/opencl/opencl.h"

static const psld_cl_rule *const rules[PSLD_OPS] = {NULL};

psld_status psld_cl_prepare(psld_device *device, const psld_device_call *call, void **prepared)
{
    psld_cl_device *d = psld_cl_of(device);
    *prepared = NULL;
    PSLD_TRY(psld_cl_check(d));
    if (!rules[call->op])
        return psld_fail(PSLD_DEVICE_FAILED, "%s: has no kernel for operation %d", device->facts.id, (int)call->op);
    psld_cl_step *step = psld_alloc(1, sizeof *step);
    if (!step) return PSLD_NO_MEMORY;
    step->rule = rules[call->op];
    psld_status status = step->rule->prepare(d, call, step);
    if (status == PSLD_OK)
        *prepared = step;
    else
        psld_cl_forget(device, step);
    return status;
}

void psld_cl_forget(psld_device *device, void *prepared)
{
    psld_cl_step *step = prepared;
    if (!step) return;
    for (int i = 0; i < PSLD_CL_STEP_KERNELS; i++) psld_cl_kernel_free(psld_cl_of(device), &step->kernel[i]);
    psld_cl_free(step->table);
    psld_release(step);
}

psld_status psld_cl_pack(psld_device *device, void *prepared, const psld_device_call *call)
{
    psld_cl_step *step = prepared;
    PSLD_TRY(psld_cl_check(psld_cl_of(device)));
    return step->rule->pack(psld_cl_of(device), step, call);
}

psld_status psld_cl_run_step(psld_device *device, void *prepared, const psld_device_call *call)
{
    psld_cl_step *step = prepared;
    PSLD_TRY(psld_cl_check(psld_cl_of(device)));
    return step->rule->run(psld_cl_of(device), step, call);
}

void psld_cl_half_options(const psld_device_call *call, char *options, size_t size)
{
    size_t length = 0;
    options[0] = 0;
    for (int i = 0; i < call->inputs; i++)
        if (call->in[i].at.memory && call->in[i].half)
            length += (size_t)snprintf(options + length, size - length, "-DHALF_%c=1 ", 'A' + i);
    if (call->out.half) snprintf(options + length, size - length, "-DHALF_OUT=1 ");
}

void psld_cl_make_backends(psld_cl_device *device)
{
    for (int half = 0; half < 2; half++) {
        psld_backend *b = &device->backends[half];
        *b = (psld_backend){.name = half ? "opencl fp16" : "opencl",
                            .isa = "opencl",
                            .precision = half ? "fp16" : "fp32",
                            .type = PSLD_F32,
                            .device = &device->device,
                            .half = half};
        for (int op = 0; op < PSLD_OPS; op++)
            if (rules[op]) b->kernel[op] = rules[op]->kernel;
    }
}
