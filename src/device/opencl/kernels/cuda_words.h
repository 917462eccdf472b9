/* More of OpenCL C in CUDA: the words of common.cl, and the functions and operators of the kernels beside the products. */
#ifndef PSLD_CUDA_WORDS
#define PSLD_CUDA_WORDS

#include <cuda_fp16.h>

typedef __half half;

#define FUNCTION       static __device__ __forceinline__
#define LOCAL_OF(type) type
#define MAKE2(a, b)    make_float2((a), (b))

/* Of any alignment of their elements. */
FUNCTION float4 vload4(long i, const float *p)
{
    return make_float4(p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]);
}

FUNCTION void vstore4(float4 v, long i, float *p)
{
    p[4 * i] = v.x;
    p[4 * i + 1] = v.y;
    p[4 * i + 2] = v.z;
    p[4 * i + 3] = v.w;
}

FUNCTION float vload_half(long i, const half *p)
{
    return __half2float(p[i]);
}

FUNCTION float4 vload_half4(long i, const half *p)
{
    p += 4 * i;
    return make_float4(__half2float(p[0]), __half2float(p[1]), __half2float(p[2]), __half2float(p[3]));
}

FUNCTION void vstore_half_rte(float v, long i, half *p)
{
    p[i] = __float2half_rn(v);
}

FUNCTION void vstore_half4_rte(float4 v, long i, half *p)
{
    p += 4 * i;
    p[0] = __float2half_rn(v.x);
    p[1] = __float2half_rn(v.y);
    p[2] = __float2half_rn(v.z);
    p[3] = __float2half_rn(v.w);
}

/* Of the alignment of four. */
FUNCTION float4 vloada_half4(long i, const half *p)
{
    const __half2 *from = (const __half2 *)(p + 4 * i);
    float2 a = __half22float2(from[0]), b = __half22float2(from[1]);
    return make_float4(a.x, a.y, b.x, b.y);
}

FUNCTION void vstorea_half4_rte(float4 v, long i, half *p)
{
    __half2 *to = (__half2 *)(p + 4 * i);
    to[0] = __floats2half2_rn(v.x, v.y);
    to[1] = __floats2half2_rn(v.z, v.w);
}

FUNCTION float4 operator*(float a, float4 b)
{
    return make_float4(a * b.x, a * b.y, a * b.z, a * b.w);
}
FUNCTION float4 operator*(float4 a, float b)
{
    return b * a;
}
FUNCTION float4 operator/(float4 a, float b)
{
    return make_float4(a.x / b, a.y / b, a.z / b, a.w / b);
}
FUNCTION float4 operator+(float a, float4 b)
{
    return make_float4(a + b.x, a + b.y, a + b.z, a + b.w);
}
FUNCTION void operator+=(float4 &a, float4 b)
{
    a = a + b;
}
FUNCTION float4 fmax(float4 a, float4 b)
{
    return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}

FUNCTION ulong mul_hi(ulong a, ulong b)
{
    return __umul64hi(a, b);
}
FUNCTION int clamp(int x, int low, int high)
{
    return x < low ? low : x > high ? high : x;
}

#endif
