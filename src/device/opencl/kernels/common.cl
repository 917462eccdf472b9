/* In front of every source: how operands are loaded and stored.
 *
 * Tensors are those of kernels/kernels.h. Operand A is input 0, B input 1 and so on; OUT is the result. One that is kept
 * in half precision has HALF_A=1 (and so on) among the options; everything is computed in float. Indices count
 * elements. */
#pragma OPENCL FP_CONTRACT OFF

#define LANES 8

/* CUDA has other words: cuda_shim.h, cuda_words.h. */
#ifndef PSLD_CUDA_SHIM
#define FUNCTION
#define GROUP_OF(x, y)    __attribute__((reqd_work_group_size(x, y, 1)))
#define LOCAL_OF(type)    __local type
#define MAKE2(a, b)       ((float2)((a), (b)))
#define MAKE4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define SPLAT4(a)         ((float4)(a))
#endif

typedef const __global void *input_data;
typedef __global void *output_data;
typedef const __global float *input_floats;
typedef __global float *output_floats;

/* An operand of a kernel: its block, where it begins there, elements from a pixel to the next. */
#define OPERAND(type, name) type name, ulong name##_at, int name##_pixel

#ifndef HALF_A
#define HALF_A 0
#endif
#ifndef HALF_B
#define HALF_B 0
#endif
#ifndef HALF_C
#define HALF_C 0
#endif
#ifndef HALF_D
#define HALF_D 0
#endif
#ifndef HALF_E
#define HALF_E 0
#endif
#ifndef HALF_F
#define HALF_F 0
#endif
#ifndef HALF_OUT
#define HALF_OUT 0
#endif

/* Four neighbours. Those of a pixel begin at a multiple of four and are loaded at once; dense tensors (DENSE=1) may begin
 * anywhere. */
#define LOAD_FLOAT(p, i) (((const __global float *)(p))[i])
#define LOAD_HALF(p, i) vload_half(0, (const __global half *)(p) + (i))
#ifdef DENSE
#define LOAD4_FLOAT(p, i) vload4(0, (const __global float *)(p) + (i))
#define STORE4_FLOAT(p, i, x) vstore4((x), 0, (__global float *)(p) + (i))
#define LOAD4_HALF(p, i) vload_half4(0, (const __global half *)(p) + (i))
#define STORE4_HALF(p, i, x) vstore_half4_rte((x), 0, (__global half *)(p) + (i))
#else
#define LOAD4_FLOAT(p, i) (*(const __global float4 *)((const __global float *)(p) + (i)))
#define STORE4_FLOAT(p, i, x) (*(__global float4 *)((__global float *)(p) + (i)) = (x))
#define LOAD4_HALF(p, i) vloada_half4(0, (const __global half *)(p) + (i))
#define STORE4_HALF(p, i, x) vstorea_half4_rte((x), 0, (__global half *)(p) + (i))
#endif

#if HALF_A
#define LOAD_A(p, i) LOAD_HALF(p, i)
#define LOAD4_A(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_A(p, i) LOAD_FLOAT(p, i)
#define LOAD4_A(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_B
#define LOAD_B(p, i) LOAD_HALF(p, i)
#define LOAD4_B(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_B(p, i) LOAD_FLOAT(p, i)
#define LOAD4_B(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_C
#define LOAD_C(p, i) LOAD_HALF(p, i)
#define LOAD4_C(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_C(p, i) LOAD_FLOAT(p, i)
#define LOAD4_C(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_D
#define LOAD_D(p, i) LOAD_HALF(p, i)
#define LOAD4_D(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_D(p, i) LOAD_FLOAT(p, i)
#define LOAD4_D(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_E
#define LOAD_E(p, i) LOAD_HALF(p, i)
#define LOAD4_E(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_E(p, i) LOAD_FLOAT(p, i)
#define LOAD4_E(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_F
#define LOAD_F(p, i) LOAD_HALF(p, i)
#define LOAD4_F(p, i) LOAD4_HALF(p, i)
#else
#define LOAD_F(p, i) LOAD_FLOAT(p, i)
#define LOAD4_F(p, i) LOAD4_FLOAT(p, i)
#endif
#if HALF_OUT
#define STORE_OUT(p, i, x) vstore_half_rte((float)(x), 0, (__global half *)(p) + (i))
#define STORE4_OUT(p, i, x) STORE4_HALF(p, i, x)
#else
#define STORE_OUT(p, i, x) (((__global float *)(p))[i] = (float)(x))
#define STORE4_OUT(p, i, x) STORE4_FLOAT(p, i, x)
#endif
