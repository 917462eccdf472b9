/* Every reference kernel, by operation. After the functions: where a result may overlay an input, bit i for input i;
 * what a convolution can do on the way (all of it); how its weights are packed. */
#ifndef PSLD_KERNELS_REF_TABLE_H
#define PSLD_KERNELS_REF_TABLE_H

#include "kernels/ref/attention.h"
#include "kernels/ref/channels.h"
#include "kernels/ref/conv.h"
#include "kernels/ref/embedding.h"
#include "kernels/ref/loss.h"
#include "kernels/ref/modulate.h"
#include "kernels/ref/norm.h"
#include "kernels/ref/pick.h"
#include "kernels/ref/pointwise.h"
#include "kernels/ref/pool.h"
#include "kernels/ref/product.h"
#include "kernels/ref/resample.h"
#include "kernels/ref/resize.h"

/* clang-format off */
#define PSLD_REFERENCE_KERNELS { \
    [PSLD_OP_FILL] = {"ref_fill", tasks_rows, ref_fill, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_CONV] = {"ref_conv", tasks_conv, ref_conv, NULL, 16, 31, ref_packed_conv, tasks_conv, ref_pack_conv, NULL}, \
    [PSLD_OP_CONV_DX] = {"ref_conv_dx", tasks_conv, ref_conv_dx, NULL, 16, 31, ref_packed_conv, tasks_conv, ref_pack_conv_dx, NULL}, \
    [PSLD_OP_CONV_DW] = {"ref_conv_dw", tasks_conv_dw, ref_conv_dw, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_PRODUCT] = {"ref_product", tasks_samples, ref_product, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_PICK] = {"ref_pick", tasks_whole, ref_pick, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_PICK_DX] = {"ref_pick_dx", tasks_whole, ref_pick_dx, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_MODULATE] = {"ref_modulate", tasks_rows, ref_modulate, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_MODULATE_DX] = {"ref_modulate_dx", tasks_rows, ref_modulate_dx, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_MODULATE_SUMS] = {"ref_modulate_sums", tasks_samples, ref_modulate_sums, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_BIAS] = {"ref_bias", tasks_rows, ref_bias, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_CHANNEL_SUM] = {"ref_channel_sum", tasks_channel_sum, ref_channel_sum, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_BROADCAST] = {"ref_broadcast", tasks_rows, ref_broadcast, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_MOMENTS] = {"ref_moments", tasks_samples, ref_moments, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_NORMALISE] = {"ref_normalise", tasks_groups, ref_normalise, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_NORMALISE_DX] = {"ref_normalise_dx", tasks_groups, ref_normalise_dx, NULL, 17, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_NORMALISE_SUMS] = {"ref_normalise_sums", tasks_samples, ref_normalise_sums, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ACTIVATE] = {"ref_activate", tasks_rows, ref_activate, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ACTIVATE_DX] = {"ref_activate_dx", tasks_rows, ref_activate_dx, NULL, 3, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SUM] = {"ref_sum", tasks_rows, ref_sum, NULL, 3, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SCALE] = {"ref_scale", tasks_rows, ref_scale, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_CONCAT] = {"ref_concat", tasks_rows, ref_concat, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SLICE] = {"ref_slice", tasks_rows, ref_slice, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SLICE_DX] = {"ref_slice_dx", tasks_rows, ref_slice_dx, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_RESAMPLE] = {"ref_resample", tasks_lines, ref_resample, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_RESHAPE] = {"ref_reshape", tasks_samples, ref_reshape, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_POOL] = {"ref_pool", tasks_lines, ref_pool, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_RESIZE] = {"ref_resize", tasks_lines, ref_resize, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SCORES] = {"ref_scores", tasks_rows, ref_scores, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SOFTMAX] = {"ref_softmax", tasks_rows, ref_softmax, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_SOFTMAX_DX] = {"ref_softmax_dx", tasks_rows, ref_softmax_dx, NULL, 3, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_APPLY] = {"ref_apply", tasks_rows, ref_apply, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_APPLY_T] = {"ref_apply_t", tasks_rows, ref_apply_t, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_DROPOUT] = {"ref_dropout", tasks_rows, ref_dropout, NULL, 1, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_POSITIONAL] = {"ref_positional", tasks_samples, ref_positional, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_FOURIER] = {"ref_fourier", tasks_samples, ref_fourier, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_LOSS] = {"ref_loss", tasks_samples, ref_loss, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_LOSS_DX] = {"ref_loss_dx", tasks_rows, ref_loss_dx, NULL, 3, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ROOT] = {"ref_root", tasks_samples, ref_root, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ROOT_DX] = {"ref_root_dx", tasks_samples, ref_root_dx, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ENTROPY] = {"ref_entropy", tasks_samples, ref_entropy, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
    [PSLD_OP_ENTROPY_DX] = {"ref_entropy_dx", tasks_samples, ref_entropy_dx, NULL, 0, 0, NULL, NULL, NULL, NULL}, \
}
/* clang-format on */

#define PSLD_REFERENCE_UPDATE                                       \
    {                                                               \
        psld_ref_adam, psld_ref_square_chunks, psld_ref_sum_squares \
    }

#endif
