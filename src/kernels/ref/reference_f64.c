/* The reference kernels for double: the derivatives of all others are tested with them. */
typedef double real;

#include "kernels/ref/table.h"

const psld_backend psld_backend_reference_f64 = {"reference in double",  "reference",           "fp64", PSLD_F64, 0,
                                                 PSLD_REFERENCE_KERNELS, PSLD_REFERENCE_UPDATE, NULL,   0};
