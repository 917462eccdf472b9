/* The operations of training: on floats, `count` of them, at any place. */

#define UPDATE_GROUP 128
#define SQUARES_EACH 64 /* numbers of a work item; a group makes one sum of UPDATE_GROUP times as many */

__kernel GROUP_OF(UPDATE_GROUP, 1) void
add_floats(__global float *to, ulong to_at, const __global float *by, ulong by_at, ulong count)
{
    ulong i = get_global_id(0);
    if (i < count) to[to_at + i] += by[by_at + i];
}

__kernel GROUP_OF(UPDATE_GROUP, 1) void
average_floats(__global float *to, ulong to_at, const __global float *by, ulong by_at, ulong count, float decay)
{
    ulong i = get_global_id(0);
    if (i < count) to[to_at + i] = decay * to[to_at + i] + (1 - decay) * by[by_at + i];
}

/* kernels/adam.h; step and root have the corrections of the first steps in them. */
__kernel GROUP_OF(UPDATE_GROUP, 1) void
adam(const __global float *gradient, ulong gradient_at, __global float *weights, ulong weights_at, __global float *m,
     ulong m_at, __global float *v, ulong v_at, __global float *average, ulong average_at, ulong count, int averaged,
     float clip, float decay, float beta1, float beta2, float step, float root, float epsilon, float ema, float shrink)
{
    ulong i = get_global_id(0);
    if (i >= count) return;
    float w = weights[weights_at + i], g = clip * gradient[gradient_at + i] + decay * w;
    float first = beta1 * m[m_at + i] + (1 - beta1) * g, second = beta2 * v[v_at + i] + (1 - beta2) * g * g;
    w = shrink * w - step * first / (sqrt(second) * root + epsilon);
    m[m_at + i] = first;
    v[v_at + i] = second;
    weights[weights_at + i] = w;
    if (averaged) average[average_at + i] = ema * average[average_at + i] + (1 - ema) * w;
}

/* A sum is two floats, the second what the first has lost. */
FUNCTION float2 add_exactly(float2 a, float2 b)
{
    float sum = a.x + b.x, back = sum - a.x;
    float lost = (a.x - (sum - back)) + (b.x - back) + a.y + b.y;
    float whole = sum + lost;
    return MAKE2(whole, lost - (whole - sum));
}

__kernel GROUP_OF(UPDATE_GROUP, 1) void
square_floats(const __global float *x, ulong x_at, ulong count, __global float2 *sums)
{
    __local float2 part[UPDATE_GROUP];
    uint item = get_local_id(0);
    ulong first = (ulong)get_group_id(0) * (UPDATE_GROUP * SQUARES_EACH) + item;
    float2 sum = MAKE2(0, 0);
    for (int i = 0; i < SQUARES_EACH; i++) {
        ulong at = first + (ulong)i * UPDATE_GROUP;
        float value = at < count ? x[x_at + at] : 0, square = value * value;
        sum = add_exactly(sum, MAKE2(square, fma(value, value, -square)));
    }
    part[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_of = UPDATE_GROUP / 2; half_of > 0; half_of /= 2) {
        if (item < half_of) part[item] = add_exactly(part[item], part[item + half_of]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[get_group_id(0)] = part[0];
}
