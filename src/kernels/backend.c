#include "kernels/backend.h"

#include "kernels/avx2/table.h"

const psld_backend *psld_backend_fastest(void)
{
    const psld_backend *avx2 = psld_backend_avx2_get();
    return avx2 ? avx2 : &psld_backend_reference;
}
