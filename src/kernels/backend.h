#ifndef PSLD_KERNELS_BACKEND_H
#define PSLD_KERNELS_BACKEND_H

#include "kernels/kernels.h"

/* The fastest backend in float that this CPU runs. */
const psld_backend *psld_backend_fastest(void);

#endif
