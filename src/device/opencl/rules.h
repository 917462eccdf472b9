/* How each operation is computed: one rule for each, and what rules share. */
#ifndef PSLD_DEVICE_OPENCL_RULES_H
#define PSLD_DEVICE_OPENCL_RULES_H

#include "device/opencl/opencl.h"

enum { PSLD_CL_ROWS_GROUP = 128 }; /* work items of a group, as in rows.cl */

/* Operations that see pixels one by one: a batched tensor is a row for each pixel, a dense one a single row. */
typedef struct psld_cl_rows {
    size_t count;
    size_t width; /* elements of a row that count */
    size_t lanes; /* elements to write: zeros behind `width` */
} psld_cl_rows;

psld_cl_rows psld_cl_rows_of(const psld_device_operand *operand);

/* Kernel `slot` of a step, for the operands that the call has in half precision. */
psld_status psld_cl_prepare_kernel(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step, int slot,
                                   const char *files, const char *name);
/* One kernel, of the rule's own name, in the rule's file. */
psld_status psld_cl_prepare_one(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step);

/* A table of floats of the step's own (step->table). */
psld_status psld_cl_make_table(psld_cl_device *device, const float *values, size_t count, psld_cl_step *step);

/* rows.c */
extern const psld_cl_rule psld_cl_rule_activate, psld_cl_rule_activate_dx, psld_cl_rule_sum, psld_cl_rule_scale,
    psld_cl_rule_fill, psld_cl_rule_bias, psld_cl_rule_broadcast, psld_cl_rule_modulate, psld_cl_rule_modulate_dx,
    psld_cl_rule_slice, psld_cl_rule_slice_dx, psld_cl_rule_reshape, psld_cl_rule_pick, psld_cl_rule_pick_dx,
    psld_cl_rule_concat, psld_cl_rule_dropout;
/* sums.c */
extern const psld_cl_rule psld_cl_rule_channel_sum, psld_cl_rule_modulate_sums, psld_cl_rule_moments,
    psld_cl_rule_normalise, psld_cl_rule_normalise_sums, psld_cl_rule_normalise_dx;
/* image.c */
extern const psld_cl_rule psld_cl_rule_resample, psld_cl_rule_pool, psld_cl_rule_resize;
/* samples.c */
extern const psld_cl_rule psld_cl_rule_softmax, psld_cl_rule_softmax_dx, psld_cl_rule_loss, psld_cl_rule_loss_dx,
    psld_cl_rule_root, psld_cl_rule_root_dx, psld_cl_rule_entropy, psld_cl_rule_entropy_dx, psld_cl_rule_positional,
    psld_cl_rule_fourier;
/* products.c */
extern const psld_cl_rule psld_cl_rule_conv, psld_cl_rule_conv_dx, psld_cl_rule_conv_dw, psld_cl_rule_product;
/* attention.c */
extern const psld_cl_rule psld_cl_rule_scores, psld_cl_rule_apply, psld_cl_rule_apply_t;
/* attend.c */
extern const psld_cl_rule psld_cl_rule_attend;

#endif
