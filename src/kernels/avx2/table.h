/* The AVX2 kernels in the form that plans call: each file gives some rows of the backend's table. What a fast kernel
 * cannot do (another activation, a dense operand) it hands to the reference kernel of the same operation. */
#ifndef PSLD_KERNELS_AVX2_TABLE_H
#define PSLD_KERNELS_AVX2_TABLE_H

#include "kernels/kernels.h"

/* Overwrite their rows of a table. */
void psld_table_convolutions_avx2(psld_op_kernel *kernel);
void psld_table_pointwise_avx2(psld_op_kernel *kernel);
void psld_table_norms_avx2(psld_op_kernel *kernel);
void psld_table_attention_avx2(psld_op_kernel *kernel);
void psld_table_moves_avx2(psld_op_kernel *kernel);
void psld_table_pools_avx2(psld_op_kernel *kernel);
void psld_table_products_avx2(psld_op_kernel *kernel);

/* The backend; NULL where it cannot run. */
const psld_backend *psld_backend_avx2_get(void);

/* One task: the kernel shares out its work itself. */
size_t psld_table_one_task_avx2(const psld_call *call);

#endif
