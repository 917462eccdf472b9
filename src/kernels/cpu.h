/* The capabilities of this processor: whether it has what an instruction set of sets.def needs, and the operating system
 * saves the registers. Otherwise nothing that was compiled for the set may be called. */
#ifndef PSLD_KERNELS_CPU_H
#define PSLD_KERNELS_CPU_H

#define PSLD_SET(name, options) int psld_cpu_has_##name(void);
#include "kernels/sets.def"
#undef PSLD_SET

#if defined(__x86_64__)
/* Products of bfloat16 by AMX, with AVX512_BF16; asks the operating system for its registers. */
int psld_cpu_has_amx(void);
/* Dot products of pairs of bfloat16 (AVX512_BF16) at the speed of fused multiply-adds in float, or nearly so. */
int psld_cpu_has_fast_dot(void);
#endif

#endif
