#include "kernels/avx2/table.h"

#include <pthread.h>

#include "kernels/cpu.h"

#if defined(__AVX2__) && defined(__FMA__)

static psld_backend backend;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_backend(void)
{
    backend = psld_backend_reference;
    backend.name = "avx2";
    psld_table_convolutions_avx2(backend.kernel);
    psld_table_pointwise_avx2(backend.kernel);
    psld_table_norms_avx2(backend.kernel);
    psld_table_attention_avx2(backend.kernel);
    psld_table_moves_avx2(backend.kernel);
    psld_table_pools_avx2(backend.kernel);
    psld_table_products_avx2(backend.kernel);
}

size_t psld_table_one_task_avx2(const psld_call *call)
{
    (void)call;
    return 1;
}

const psld_backend *psld_backend_avx2_get(void)
{
    if (!psld_cpu_has_avx2()) return NULL;
    pthread_once(&once, make_backend);
    return &backend;
}

#else

const psld_backend *psld_backend_avx2_get(void)
{
    return NULL;
}

#endif
