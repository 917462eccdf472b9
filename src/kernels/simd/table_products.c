/* Products of dense matrices: a task makes sixteen columns. Other widths, and both factors transposed at once, go to
 * the reference kernel. */
#include "kernels/simd/table.h"

#include "kernels/simd/gemm.h"

static int is_fast_product(const psld_call *call)
{
    const int *transposed = call->attributes->product.transposed;
    return call->out.shape.c % 16 == 0 && !(transposed[0] && transposed[1]);
}

/* Numbers that an element of the result is a sum of. */
static ptrdiff_t inner_length(const psld_call *call)
{
    psld_shape a = call->in[0].shape;
    return call->attributes->product.transposed[0] ? a.n : a.c;
}

static size_t tasks_product(const psld_call *call)
{
    return is_fast_product(call) ? (size_t)call->out.shape.c / 16
                                 : psld_backend_reference.kernel[PSLD_OP_PRODUCT].tasks(call);
}

/* A panel of b for each task. */
static size_t scratch_product(const psld_call *call)
{
    return (size_t)inner_length(call) * (size_t)call->out.shape.c * sizeof(float);
}

static void fast_product(const psld_call *call, size_t begin, size_t end)
{
    if (!is_fast_product(call)) {
        psld_backend_reference.kernel[PSLD_OP_PRODUCT].run(call, begin, end);
        return;
    }
    const int *transposed = call->attributes->product.transposed;
    const float *a = call->in[0].data, *b = call->in[1].data;
    const ptrdiff_t rows = call->out.shape.n, columns = call->out.shape.c, k = inner_length(call);
    for (size_t task = begin; task < end; task++) {
        const ptrdiff_t first = 16 * (ptrdiff_t)task;
        float *out = (float *)call->out.data + first, *panel = (float *)call->scratch + first * k;
        if (transposed[0]) {
            simd_gemm_tn(0, rows, k, a, rows, b + first, 0, columns, out, 0, columns, 16, 0);
            continue;
        }
        if (transposed[1])
            simd_gemm_pack_transposed(k, 16, b + first * k, k, panel, 0);
        else
            simd_gemm_pack(k, 16, b + first, columns, panel, 0);
        simd_gemm_panel(0, rows, k, a, k, panel, 0, out, columns, 16, NULL, NULL);
    }
}

void simd_table_products(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_PRODUCT] = (psld_op_kernel){
        .name = SIMD_TEXT("product"), .tasks = tasks_product, .run = fast_product, .scratch = scratch_product};
}
