/* Winograd's F(4 x 4, 3 x 3): four results of a filter of three taps from six numbers by six multiplications, along both
 * axes (simd/winograd_transform.h has the derivation; the points are the same). A tile is 4 x 4 results. Between the
 * transforms are 36 products of matrices (product.cl), one for each place of a transformed tile:
 *     V [36][tile][lanes of channels in],   U [36][lanes in][lanes out],   M [36][tile][lanes out] = V U */
#define EDGE   6
#define POINTS 36

#define POINT_A 0.625f
#define POINT_B 1.5f
#define A2      (POINT_A * POINT_A)
#define B2      (POINT_B * POINT_B)

/* d = B' d, six numbers that are `step` apart */
FUNCTION void transform_input(float *d, int step)
{
    const float d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    float even = fma(-B2, d2, d4), odd = fma(-B2, d1, d3);
    d[0] = fma(A2 * B2, d0, fma(-(A2 + B2), d2, d4));
    d[step] = fma(POINT_A, odd, even);
    d[2 * step] = fma(-POINT_A, odd, even);
    even = fma(-A2, d2, d4);
    odd = fma(-A2, d1, d3);
    d[3 * step] = fma(POINT_B, odd, even);
    d[4 * step] = fma(-POINT_B, odd, even);
    d[5 * step] = fma(A2 * B2, d1, fma(-(A2 + B2), d3, d5));
}

/* m = A' m, four numbers from six */
FUNCTION void transform_output(float *m, int step)
{
    const float s1 = m[step] + m[2 * step], d1 = m[step] - m[2 * step];
    const float s2 = m[3 * step] + m[4 * step], d2 = m[3 * step] - m[4 * step], m5 = m[5 * step];
    m[0] = m[0] + s1 + s2;
    m[step] = fma(POINT_B, d2, POINT_A * d1);
    m[2 * step] = fma(B2, s2, A2 * s1);
    m[3 * step] = fma(B2 * POINT_B, d2, fma(A2 * POINT_A, d1, m5));
}

/* u = G g, six numbers from three */
FUNCTION void transform_weights(float *u, int step)
{
    const float n = 1 / (2 * A2 * (A2 - B2)), m = 1 / (2 * B2 * (B2 - A2));
    const float g0 = u[0], g1 = u[step], g2 = u[2 * step];
    const float even_a = fma(A2, g2, g0), even_b = fma(B2, g2, g0);
    u[0] = g0 * (1 / (A2 * B2));
    u[step] = n * fma(POINT_A, g1, even_a);
    u[2 * step] = n * fma(-POINT_A, g1, even_a);
    u[3 * step] = m * fma(POINT_B, g1, even_b);
    u[4 * step] = m * fma(-POINT_B, g1, even_b);
    u[5 * step] = g2;
}

/* An item is a channel of the sum and one of the result; arguments as of pack_weights in weights.cl. */
__kernel void winograd_weights(const __global float *w, ulong w_at, __global float *packed, ulong packed_at, int sums,
                               int sum_lanes, int results, int result_lanes, int sum_step, int result_step, int flip)
{
    const int result = (int)get_global_id(0), sum = (int)get_global_id(1);
    if (result >= result_lanes || sum >= sum_lanes) return;
    float u[POINTS];
    const int inside = result < results && sum < sums;
#pragma unroll
    for (int y = 0; y < 3; y++)
#pragma unroll
        for (int x = 0; x < 3; x++) {
            const int tap = flip ? 8 - 3 * y - x : 3 * y + x;
            u[y * EDGE + x] = inside ? w[w_at + (ulong)result * result_step + (ulong)sum * sum_step + tap] : 0;
        }
#pragma unroll
    for (int x = 0; x < 3; x++) transform_weights(u + x, EDGE);
#pragma unroll
    for (int y = 0; y < EDGE; y++) transform_weights(u + y * EDGE, 1);
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        packed[packed_at + ((ulong)p * sum_lanes + sum) * result_lanes + result] = u[p];
}

/* An item is a channel of a tile: (channel, tile). `first` is the first image; v_at begins V. */
__kernel void winograd_input(input_data a, ulong a_at, int a_pixel, __global float *v, ulong v_at, int first, int tiles,
                             int tiles_y, int tiles_x, int lanes, int height, int width, int pad_y, int pad_x)
{
    const int channel = (int)get_global_id(0), tile = (int)get_global_id(1);
    if (channel >= lanes || tile >= tiles) return;
    const int left = tile % tiles_x * 4 - pad_x, top = tile / tiles_x % tiles_y * 4 - pad_y;
    const ulong image = a_at + (ulong)(first + tile / tiles_x / tiles_y) * height * width * a_pixel + channel;
    float d[POINTS];
#pragma unroll
    for (int y = 0; y < EDGE; y++)
#pragma unroll
        for (int x = 0; x < EDGE; x++) {
            const int inside = (uint)(top + y) < (uint)height && (uint)(left + x) < (uint)width;
            d[y * EDGE + x] = inside ? LOAD_A(a, image + (ulong)((top + y) * width + left + x) * a_pixel) : 0;
        }
#pragma unroll
    for (int x = 0; x < EDGE; x++) transform_input(d + x, EDGE);
#pragma unroll
    for (int y = 0; y < EDGE; y++) transform_input(d + y * EDGE, 1);
#pragma unroll
    for (int p = 0; p < POINTS; p++) v[v_at + ((ulong)p * tiles + tile) * lanes + channel] = d[p];
}

/* As product.cl finishes: bias is C, dense; the vector of a sample D; the residual E. */
#define FINISH_BIAS     1
#define FINISH_VECTOR   2
#define FINISH_RESIDUAL 4
#define FINISH_SCALE    8
#define FINISH_RELU     16

__kernel void winograd_output(const __global float *m, ulong m_at, const __global float *c, ulong c_at, input_data d,
                              ulong d_at, int d_pixel, input_data e, ulong e_at, int e_pixel, output_data out,
                              ulong out_at, int out_pixel, int first, int tiles, int tiles_y, int tiles_x, int channels,
                              int lanes, int height, int width, int finish, float by)
{
    const int channel = (int)get_global_id(0), tile = (int)get_global_id(1);
    if (channel >= lanes || tile >= tiles) return;
    const int left = tile % tiles_x * 4, top = tile / tiles_x % tiles_y * 4;
    const int sample = first + tile / tiles_x / tiles_y;
    float r[POINTS], add = 0;
#pragma unroll
    for (int p = 0; p < POINTS; p++) r[p] = m[m_at + ((ulong)p * tiles + tile) * lanes + channel];
#pragma unroll
    for (int x = 0; x < EDGE; x++) transform_output(r + x, EDGE);
#pragma unroll
    for (int y = 0; y < 4; y++) transform_output(r + y * EDGE, 1);
    if ((finish & FINISH_BIAS) && channel < channels) add = c[c_at + channel];
    if (finish & FINISH_VECTOR) add += LOAD_D(d, d_at + (ulong)sample * d_pixel + channel);
#pragma unroll
    for (int y = 0; y < 4; y++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            if (top + y >= height || left + x >= width) continue;
            const ulong pixel = ((ulong)sample * height + top + y) * width + left + x;
            float value = r[y * EDGE + x] + add;
            if (finish & FINISH_RESIDUAL) value += LOAD_E(e, e_at + pixel * e_pixel + channel);
            if (finish & FINISH_SCALE) value *= by;
            if (finish & FINISH_RELU) value = fmax(value, 0.0f);
            STORE_OUT(out, out_at + pixel * out_pixel + channel, value);
        }
}
