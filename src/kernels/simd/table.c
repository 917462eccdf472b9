#include "kernels/simd/table.h"

#include <pthread.h>

#include "kernels/simd/update.h"

static psld_backend exact, narrow;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_backend(void)
{
    exact = psld_backend_reference;
    exact.name = SIMD_QUOTE(SIMD_SET);
    exact.isa = SIMD_QUOTE(SIMD_SET);
    simd_table_convolutions(exact.kernel);
    simd_table_pointwise(exact.kernel);
    simd_table_norms(exact.kernel);
    simd_table_attention(exact.kernel);
    simd_table_moves(exact.kernel);
    simd_table_pools(exact.kernel);
    simd_table_products(exact.kernel);
    exact.update = (psld_update_kernels){simd_adam, simd_square_chunks, simd_sum_squares};
    narrow = exact;
    narrow.name = SIMD_QUOTE(SIMD_SET) " bf16";
    narrow.precision = "bf16";
    narrow.narrow = 1;
}

size_t simd_table_one_task(const psld_call *call)
{
    (void)call;
    return 1;
}

const psld_backend *simd_backend(int bf16)
{
    pthread_once(&once, make_backend);
    return bf16 ? &narrow : &exact;
}
