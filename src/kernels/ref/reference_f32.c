/* The reference kernels for float. */
typedef float real;

#include "kernels/ref/table.h"

const psld_backend psld_backend_reference = {
    "reference", "reference", "fp32", PSLD_F32, 0, PSLD_REFERENCE_KERNELS, PSLD_REFERENCE_UPDATE, NULL, 0};
