#include "kernels/backend.h"

const psld_backend *psld_backend_fastest(void)
{
    return &psld_backend_reference;
}
