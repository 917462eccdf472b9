#include "kernels/cpu.h"

#if defined(__x86_64__)

int psld_cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

int psld_cpu_has_avx512(void)
{
    return psld_cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

#endif

#if defined(__aarch64__)

/* Part of every such processor. */
int psld_cpu_has_neon(void)
{
    return 1;
}

#endif

int psld_cpu_has_generic(void)
{
    return 1;
}
