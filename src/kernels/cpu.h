/* The capabilities of this processor. */
#ifndef PSLD_KERNELS_CPU_H
#define PSLD_KERNELS_CPU_H

/* 1 if AVX2 and FMA are available, the operating system saves their registers, and kernels/avx2 was compiled for
 * them. Otherwise nothing in kernels/avx2 may be called. */
int psld_cpu_has_avx2(void);

#endif
