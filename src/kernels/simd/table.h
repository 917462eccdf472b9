/* The fast kernels in the form that plans call: each file gives some rows of the backend's table. What a fast kernel
 * cannot do (another activation, a dense operand) it hands to the reference kernel of the same operation. */
#ifndef PSLD_KERNELS_SIMD_TABLE_H
#define PSLD_KERNELS_SIMD_TABLE_H

#include "kernels/kernels.h"
#include "kernels/simd/names.h"

/* Overwrite their rows of a table. */
void simd_table_convolutions(psld_op_kernel *kernel);
void simd_table_pointwise(psld_op_kernel *kernel);
void simd_table_norms(psld_op_kernel *kernel);
void simd_table_attention(psld_op_kernel *kernel);
void simd_table_moves(psld_op_kernel *kernel);
void simd_table_pools(psld_op_kernel *kernel);
void simd_table_products(psld_op_kernel *kernel);

/* The backend, exact or with 16-bit products: only where the CPU has the instruction set. */
const psld_backend *simd_backend(int bf16);

/* One task: the kernel shares out its work itself. */
size_t simd_table_one_task(const psld_call *call);

#endif
