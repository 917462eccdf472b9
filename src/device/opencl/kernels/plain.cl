/* Products, written to be read: a work item sums all of one number, or of four channels. */

#define PLAIN_GROUP 64
#define PLAIN_KERNEL __attribute__((reqd_work_group_size(PLAIN_GROUP, 1, 1))) __kernel void

#define OPERAND(type, name) type name, ulong name##_at, int name##_pixel

typedef const __global void *input_data;
typedef __global void *output_data;
typedef const __global float *input_floats;
typedef __global float *output_floats;

/* kernels/ref/conv.h: input row = output row * stride + tap - pad. Steps in the weights: from an output channel to the
 * next, from an input channel. */
#define CONV_SIZES                                                                                               \
    int samples, int ci, int co, int ih, int iw, int oh, int ow, int kh, int kw, int sh, int sw, int top, int left, \
        int co_step, int ci_step

PLAIN_KERNEL plain_conv(OPERAND(input_data, a), input_floats w, ulong w_at, OPERAND(output_data, out), CONV_SIZES)
{
    int lanes = (co + LANES - 1) / LANES * LANES;
    uint item = get_global_id(0), place = item / lanes;
    int c = item % lanes, ox = place % ow, oy = place / ow % oh, n = place / ow / oh;
    if (n >= samples) return;
    float sum = 0;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++) {
            int iy = oy * sh + ky - top, ix = ox * sw + kx - left;
            if (c >= co || iy < 0 || iy >= ih || ix < 0 || ix >= iw) continue;
            ulong from = a_at + (((ulong)n * ih + iy) * iw + ix) * a_pixel;
            ulong weight = w_at + (ulong)c * co_step + ky * kw + kx;
            for (int i = 0; i < ci; i++) sum = fma(LOAD_A(a, from + i), w[weight + (ulong)i * ci_step], sum);
        }
    STORE_OUT(out, out_at + (ulong)place * out_pixel + c, sum);
}

/* ih and iw are those of the result, oh and ow of dy. */
PLAIN_KERNEL plain_conv_dx(OPERAND(input_data, a), input_floats w, ulong w_at, OPERAND(output_data, out), CONV_SIZES)
{
    int lanes = (ci + LANES - 1) / LANES * LANES;
    uint item = get_global_id(0), place = item / lanes;
    int c = item % lanes, ix = place % iw, iy = place / iw % ih, n = place / iw / ih;
    if (n >= samples) return;
    float sum = 0;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++) {
            int y = iy + top - ky, x = ix + left - kx, oy = y / sh, ox = x / sw;
            if (c >= ci || y < 0 || x < 0 || y % sh || x % sw || oy >= oh || ox >= ow) continue;
            ulong from = a_at + (((ulong)n * oh + oy) * ow + ox) * a_pixel;
            ulong weight = w_at + (ulong)c * ci_step + ky * kw + kx;
            for (int o = 0; o < co; o++) sum = fma(LOAD_A(a, from + o), w[weight + (ulong)o * co_step], sum);
        }
    STORE_OUT(out, out_at + (ulong)place * out_pixel + c, sum);
}

PLAIN_KERNEL plain_conv_dw(OPERAND(input_data, a), OPERAND(input_data, b), output_floats out, ulong out_at, CONV_SIZES)
{
    uint item = get_global_id(0);
    int tap = item % (kh * kw), i = item / (kh * kw) % ci, o = item / (kh * kw) / ci, ky = tap / kw, kx = tap % kw;
    if (o >= co) return;
    float sum = 0;
    for (int n = 0; n < samples; n++) {
        float line = 0;
        for (int oy = 0; oy < oh; oy++)
            for (int ox = 0; ox < ow; ox++) {
                int iy = oy * sh + ky - top, ix = ox * sw + kx - left;
                if (iy < 0 || iy >= ih || ix < 0 || ix >= iw) continue;
                float x = LOAD_A(a, a_at + (((ulong)n * ih + iy) * iw + ix) * a_pixel + i);
                line = fma(x, LOAD_B(b, b_at + (((ulong)n * oh + oy) * ow + ox) * b_pixel + o), line);
            }
        sum += line;
    }
    out[out_at + (ulong)o * co_step + (ulong)i * ci_step + tap] = sum;
}

/* Steps: from a row to the next, from a column. */
PLAIN_KERNEL plain_product(input_floats a, ulong a_at, input_floats b, ulong b_at, output_floats out, ulong out_at,
                           int rows, int columns, int length, int a_row, int a_column, int b_row, int b_column)
{
    uint item = get_global_id(0);
    int row = item / columns, column = item % columns;
    if (row >= rows) return;
    float sum = 0;
    for (int k = 0; k < length; k++)
        sum = fma(a[a_at + (ulong)row * a_row + (ulong)k * a_column],
                  b[b_at + (ulong)k * b_row + (ulong)column * b_column], sum);
    out[out_at + item] = sum;
}

/* Matrices between pixels: A is [here][there], there being its channels, or, for apply_t, the other way round. */
PLAIN_KERNEL plain_scores(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out), int samples,
                          int here, int there, int channels, int lanes, float by)
{
    uint item = get_global_id(0), row = item / lanes, n = row / here;
    int j = item % lanes;
    if (n >= (uint)samples) return;
    float sum = 0;
    for (int c = 0; j < there && c < channels; c++)
        sum = fma(LOAD_A(a, a_at + (ulong)row * a_pixel + c), LOAD_B(b, b_at + ((ulong)n * there + j) * b_pixel + c),
                  sum);
    STORE_OUT(out, out_at + (ulong)row * out_pixel + j, sum * by);
}

PLAIN_KERNEL plain_apply(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out), int samples,
                         int here, int there, int channels, int lanes, float by)
{
    uint item = get_global_id(0), row = item / lanes, n = row / here;
    int c = item % lanes;
    if (n >= (uint)samples) return;
    float sum = 0;
    for (int j = 0; c < channels && j < there; j++)
        sum = fma(LOAD_A(a, a_at + (ulong)row * a_pixel + j), LOAD_B(b, b_at + ((ulong)n * there + j) * b_pixel + c),
                  sum);
    STORE_OUT(out, out_at + (ulong)row * out_pixel + c, sum * by);
}

PLAIN_KERNEL plain_apply_t(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out), int samples,
                           int here, int there, int channels, int lanes, float by)
{
    uint item = get_global_id(0), row = item / lanes, n = row / here;
    int c = item % lanes, j = row % here;
    if (n >= (uint)samples) return;
    float sum = 0;
    for (int i = 0; c < channels && i < there; i++) {
        ulong pixel = (ulong)n * there + i;
        sum = fma(LOAD_A(a, a_at + pixel * a_pixel + j), LOAD_B(b, b_at + pixel * b_pixel + c), sum);
    }
    STORE_OUT(out, out_at + (ulong)row * out_pixel + c, sum * by);
}
