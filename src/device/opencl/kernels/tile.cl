/* Vectors of four floats in memory of either precision, and what differs between OpenCL and CUDA (cuda_shim.h has the
 * other half). Every multiplication that is part of a sum is a fused one: the same bits whatever the compiler does. */
#ifndef PSLD_CUDA_SHIM
#ifdef FP_FAST_FMAF
#define FMA(a, b, c) fma((a), (b), (c))
#else
#define FMA(a, b, c) mad((a), (b), (c))
#endif
#define FMA4(a, b, c)        FMA(SPLAT4(a), (b), (c))
#define MAX4(a, b)           fmax((a), (b))
#define ALIGNED              __attribute__((aligned(16)))
#define LOCAL_POINTER        __local float
#define LOCAL_VECTOR(p)      (*(__local float4 *)(p))
/* Vector number i. */
#define STORE4(half, v, p, i) store4((half), (v), (p), (i))

/* Where element i begins, of a tensor in either precision. */
#define FROM(half_precision, p, i) ((half_precision) ? (__global const float *)((__global const half *)(p) + (i)) : (p) + (i))
#define LOAD4(half_precision, p, i) ((half_precision) ? vload_half4((i), (__global const half *)(p)) : ((__global const float4 *)(p))[i])

inline void store4(int half_precision, float4 v, __global float *p, long i)
{
    if (half_precision)
        vstore_half4(v, i, (__global half *)p);
    else
        ((__global float4 *)p)[i] = v;
}
#endif
