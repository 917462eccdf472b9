/* What the processor that runs this can do. */
#ifndef PSLD_KERNELS_CPU_H
#define PSLD_KERNELS_CPU_H

/* 1 when AVX2 and FMA are there, the operating system saves their registers, and kernels/avx2 was compiled for them.
 * Nothing of kernels/avx2 may be called otherwise. */
int psld_cpu_has_avx2(void);

#endif
