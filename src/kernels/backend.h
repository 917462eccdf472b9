/* Which kernels run on this processor, and the choice among them. */
#ifndef PSLD_KERNELS_BACKEND_H
#define PSLD_KERNELS_BACKEND_H

#include "base/status.h"
#include "kernels/kernels.h"

/* The fastest backend in float that this CPU runs. */
const psld_backend *psld_backend_fastest(void);

/* The backend of an instruction set ("reference": the plain kernels; NULL: the fastest) and a precision ("fp32", "bf16";
 * NULL: fp32). Fails with one line if there is no such thing, or not on this processor. */
psld_status psld_backend_find(const char *isa, const char *precision, const psld_backend **backend);

/* Number `i` of the backends in float that this CPU runs, the fastest first, the reference kernels last; NULL beyond. */
const psld_backend *psld_backend_number(int i);

/* Number `i` of the fast ones with 16-bit weights. */
const psld_backend *psld_backend_number_bf16(int i);

#endif
