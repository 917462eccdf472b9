#include "kernels/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bit `bit` of one of the registers that CPUID fills: 0 eax, 1 ebx, 2 ecx, 3 edx. */
static int cpuid_bit(unsigned leaf, unsigned subleaf, int which, int bit)
{
    unsigned r[4];
    return __get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[which] >> bit & 1);
}

int psld_cpu_has_avx2(void)
{
    __builtin_cpu_init();
    const int half = cpuid_bit(1, 0, 2, 29); /* F16C */
    return half && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

int psld_cpu_has_avx512(void)
{
    return psld_cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

/* Linux gives a process the 8 KB of tile registers when it asks for them. */
static int amx;
static pthread_once_t amx_once = PTHREAD_ONCE_INIT;

static void look_for_amx(void)
{
    enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };
    const int tile = cpuid_bit(7, 0, 3, 24) && cpuid_bit(7, 0, 3, 22), bf16 = cpuid_bit(7, 1, 0, 5);
    amx = psld_cpu_has_avx512() && tile && bf16 && syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
}

/* Zen 4 and later do two of them where they do two fused multiply-adds. Intel's do half as many; and a rule, unlike a
 * measurement at the start, gives the same bits in every run. Looked up once: kernels ask for it at every call, and a
 * hypervisor takes tens of microseconds for CPUID. */
static int fast_dot;
static pthread_once_t fast_dot_once = PTHREAD_ONCE_INIT;

static void look_for_fast_dot(void)
{
    fast_dot = psld_cpu_has_avx512() && cpuid_bit(7, 1, 0, 5) && __builtin_cpu_is("amd");
}

int psld_cpu_has_fast_dot(void)
{
    pthread_once(&fast_dot_once, look_for_fast_dot);
    return fast_dot;
}

int psld_cpu_has_amx(void)
{
    pthread_once(&amx_once, look_for_amx);
    return amx;
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
