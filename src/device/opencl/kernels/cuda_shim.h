/* The words of OpenCL C that the kernels use, in CUDA, so that nvcc compiles the same sources: to see what a compiler
 * for real hardware makes of them. Nothing is run this way. */
#ifndef PSLD_CUDA_SHIM
#define PSLD_CUDA_SHIM

#include <cuda_fp16.h>

typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned char uchar;

#define __kernel extern "C" __global__
#define __global
#define __local    __shared__
#define __constant __constant__
#define restrict __restrict__
#define inline static __device__ __forceinline__

#define ALIGNED              __align__(16)
#define CLK_LOCAL_MEM_FENCE  1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fence)       __syncthreads()
/* As many groups on a multiprocessor as make a quarter of its threads. */
#if defined(__CUDA_ARCH__) && ((__CUDA_ARCH__ >= 860 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1200)
#define THREADS_WANTED 384
#else
#define THREADS_WANTED 512
#endif
#define GROUP_OF(x, y) __launch_bounds__((x) * (y), (THREADS_WANTED + (x) * (y)-1) / ((x) * (y)))

inline uint dimension(int i, uint3 v)
{
    return i == 0 ? v.x : i == 1 ? v.y : v.z;
}
#define get_local_id(i)    dimension((i), threadIdx)
#define get_group_id(i)    dimension((i), blockIdx)
#define get_local_size(i)  dimension((i), make_uint3(blockDim.x, blockDim.y, blockDim.z))
#define get_num_groups(i)  dimension((i), make_uint3(gridDim.x, gridDim.y, gridDim.z))
#define get_global_id(i)   (get_group_id(i) * get_local_size(i) + get_local_id(i))
#define get_global_size(i) (get_num_groups(i) * get_local_size(i))

#define MAKE4(a, b, c, d)             make_float4((a), (b), (c), (d))
#define SPLAT4(a)                     make_float4((a), (a), (a), (a))
#define FMA(a, b, c)                  fmaf((a), (b), (c))
#define LOCAL_POINTER                 float
#define reqd_work_group_size(x, y, z) launch_bounds((x) * (y) * (z))
#define LOCAL_VECTOR(p)               (*(float4 *)(p))

inline float4 FMA4(float a, float4 b, float4 c)
{
    return make_float4(fmaf(a, b.x, c.x), fmaf(a, b.y, c.y), fmaf(a, b.z, c.z), fmaf(a, b.w, c.w));
}

inline float4 MAX4(float4 a, float4 b)
{
    return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}

inline float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
inline float4 operator-(float4 a, float4 b)
{
    return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}
inline float4 operator*(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

inline float4 load_half4(const __half *p, long i)
{
    const __half2 *from = (const __half2 *)p + 2 * i;
    const float2 a = __half22float2(from[0]), b = __half22float2(from[1]);
    return make_float4(a.x, a.y, b.x, b.y);
}

inline void store4(int half_precision, float4 v, float *p, long i)
{
    if (!half_precision) {
        ((float4 *)p)[i] = v;
        return;
    }
    __half2 *to = (__half2 *)p + 2 * i;
    to[0] = __floats2half2_rn(v.x, v.y);
    to[1] = __floats2half2_rn(v.z, v.w);
}

#define FROM(half, p, i)      ((half) ? (const float *)((const __half *)(p) + (i)) : (p) + (i))
#define LOAD4(half, p, i)     ((half) ? load_half4((const __half *)(p), (i)) : ((const float4 *)(p))[i])
#define STORE4(half, v, p, i) store4((half), (v), (p), (i))

#include "device/opencl/kernels/cuda_words.h"

#endif
