/* Products of dense matrices: a task makes sixteen columns. Other widths, and both factors transposed at once, go to
 * the reference kernel. */
#include "kernels/avx2/table.h"

#include "kernels/avx2/gemm.h"

#if defined(__AVX2__) && defined(__FMA__)

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

static void avx2_product(const psld_call *call, size_t begin, size_t end)
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
            psld_gemm_tn_avx2_6x16(rows, k, a, rows, b + first, columns, out, columns, 16, 0);
            continue;
        }
        if (transposed[1])
            psld_gemm_pack_transposed_avx2(k, 16, b + first * k, k, panel, 0);
        else
            psld_gemm_pack_avx2(k, 16, b + first, columns, panel, 0);
        psld_gemm_panel_avx2_6x16(rows, k, a, k, panel, out, columns, 16, NULL, NULL);
    }
}

void psld_table_products_avx2(psld_op_kernel *kernel)
{
    kernel[PSLD_OP_PRODUCT] = (psld_op_kernel){
        .name = "avx2_product", .tasks = tasks_product, .run = avx2_product, .scratch = scratch_product};
}

#endif
