/* Steps of plans: which rule computes an operation, and the backends that the planner sees. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/opencl/rules.h"

static const psld_cl_rule *const rules[PSLD_OPS] = {
    [PSLD_OP_CONV] = &psld_cl_rule_conv,
    [PSLD_OP_CONV_DX] = &psld_cl_rule_conv_dx,
    [PSLD_OP_CONV_DW] = &psld_cl_rule_conv_dw,
    [PSLD_OP_PRODUCT] = &psld_cl_rule_product,
    [PSLD_OP_SCORES] = &psld_cl_rule_scores,
    [PSLD_OP_APPLY] = &psld_cl_rule_apply,
    [PSLD_OP_APPLY_T] = &psld_cl_rule_apply_t,
    [PSLD_OP_ATTEND] = &psld_cl_rule_attend,
    [PSLD_OP_FILL] = &psld_cl_rule_fill,
    [PSLD_OP_BIAS] = &psld_cl_rule_bias,
    [PSLD_OP_CHANNEL_SUM] = &psld_cl_rule_channel_sum,
    [PSLD_OP_BROADCAST] = &psld_cl_rule_broadcast,
    [PSLD_OP_MOMENTS] = &psld_cl_rule_moments,
    [PSLD_OP_NORMALISE] = &psld_cl_rule_normalise,
    [PSLD_OP_NORMALISE_SUMS] = &psld_cl_rule_normalise_sums,
    [PSLD_OP_NORMALISE_DX] = &psld_cl_rule_normalise_dx,
    [PSLD_OP_MODULATE] = &psld_cl_rule_modulate,
    [PSLD_OP_MODULATE_DX] = &psld_cl_rule_modulate_dx,
    [PSLD_OP_MODULATE_SUMS] = &psld_cl_rule_modulate_sums,
    [PSLD_OP_ACTIVATE] = &psld_cl_rule_activate,
    [PSLD_OP_ACTIVATE_DX] = &psld_cl_rule_activate_dx,
    [PSLD_OP_SUM] = &psld_cl_rule_sum,
    [PSLD_OP_SCALE] = &psld_cl_rule_scale,
    [PSLD_OP_CONCAT] = &psld_cl_rule_concat,
    [PSLD_OP_SLICE] = &psld_cl_rule_slice,
    [PSLD_OP_SLICE_DX] = &psld_cl_rule_slice_dx,
    [PSLD_OP_RESAMPLE] = &psld_cl_rule_resample,
    [PSLD_OP_RESHAPE] = &psld_cl_rule_reshape,
    [PSLD_OP_POOL] = &psld_cl_rule_pool,
    [PSLD_OP_RESIZE] = &psld_cl_rule_resize,
    [PSLD_OP_SOFTMAX] = &psld_cl_rule_softmax,
    [PSLD_OP_SOFTMAX_DX] = &psld_cl_rule_softmax_dx,
    [PSLD_OP_DROPOUT] = &psld_cl_rule_dropout,
    [PSLD_OP_POSITIONAL] = &psld_cl_rule_positional,
    [PSLD_OP_FOURIER] = &psld_cl_rule_fourier,
    [PSLD_OP_LOSS] = &psld_cl_rule_loss,
    [PSLD_OP_LOSS_DX] = &psld_cl_rule_loss_dx,
    [PSLD_OP_ROOT] = &psld_cl_rule_root,
    [PSLD_OP_ROOT_DX] = &psld_cl_rule_root_dx,
    [PSLD_OP_ENTROPY] = &psld_cl_rule_entropy,
    [PSLD_OP_ENTROPY_DX] = &psld_cl_rule_entropy_dx,
    [PSLD_OP_PICK] = &psld_cl_rule_pick,
    [PSLD_OP_PICK_DX] = &psld_cl_rule_pick_dx,
};

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
    if (call->out.half) length += (size_t)snprintf(options + length, size - length, "-DHALF_OUT=1 ");
    if (!call->out.pixel && !call->in[0].pixel) snprintf(options + length, size - length, "-DDENSE=1 ");
}

psld_status psld_cl_prepare_kernel(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step, int slot,
                                   const char *files, const char *name)
{
    char options[128];
    psld_cl_half_options(call, options, sizeof options);
    return psld_cl_kernel(device, files, name, options, &step->kernel[slot]);
}

psld_status psld_cl_prepare_one(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    return psld_cl_prepare_kernel(device, call, step, 0, step->rule->file, step->rule->kernel.name);
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
