/* Weights as the products take them, and their gradients back. Dense weights may begin anywhere. */

/* Lines [tap][summed channel], columns are channels of the result; zeros behind both. `flip` counts taps from the end:
 * the gradient of a convolution is one again. */
__kernel void pack_weights(__global const float *w, ulong w_at, __global float *packed, ulong packed_at, int sums,
                           int sum_lanes, int results, int result_lanes, int taps, int sum_step, int result_step,
                           int flip)
{
    const int result = (int)get_global_id(0), line = (int)get_global_id(1);
    const int tap = line / sum_lanes, sum = line % sum_lanes;
    if (result >= result_lanes || tap >= taps) return;
    float value = 0;
    if (result < results && sum < sums)
        value = w[w_at + (ulong)result * result_step + (ulong)sum * sum_step + (flip ? taps - 1 - tap : tap)];
    packed[packed_at + (ulong)line * result_lanes + result] = value;
}

/* Adds the parts of a gradient, [part][co][tap][lanes of ci], in their order. */
__kernel void add_parts(__global const float *part, ulong part_at, __global float *dw, ulong dw_at, int parts, int out,
                        int in, int in_lanes, int taps, int out_step, int in_step)
{
    const int column = (int)get_global_id(0), co = (int)get_global_id(1);
    const int tap = column / in_lanes, ci = column % in_lanes;
    const ulong size = (ulong)out * taps * in_lanes;
    if (tap >= taps || ci >= in || co >= out) return;
    __global const float *from = part + part_at + (ulong)co * taps * in_lanes + column;
    float sum = 0;
    for (int i = 0; i < parts; i++) sum += from[i * size];
    dw[dw_at + (ulong)co * out_step + (ulong)ci * in_step + tap] = sum;
}

/* The product of two small matrices that begin anywhere: element (i, k) of A is i a_row + k a_column, and so on. */
__kernel void multiply_small(__global const float *a, ulong a_at, __global const float *b, ulong b_at,
                             __global float *out, ulong out_at, int rows, int columns, int length, int a_row,
                             int a_column, int b_row, int b_column)
{
    const int column = (int)get_global_id(0), row = (int)get_global_id(1);
    if (row >= rows || column >= columns) return;
    float sum = 0;
    for (int k = 0; k < length; k++)
        sum = fma(a[a_at + (ulong)row * a_row + (ulong)k * a_column], b[b_at + (ulong)k * b_row + (ulong)column * b_column],
                  sum);
    out[out_at + (ulong)row * columns + column] = sum;
}
