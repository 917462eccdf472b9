/* Operations that see one element, or one pixel, at a time.
 *
 * A batched tensor is a row for each pixel, a dense one a single row: `width` elements that count and zeros up to
 * `lanes`. A work item has four neighbours of a row. */

#define ROWS_GROUP 128
#define ROWS_KERNEL __kernel GROUP_OF(ROWS_GROUP, 1) void

/* Sets `row` and `c`, the first of the four elements. */
#define BEGIN_ROWS                                                       \
    uint item = get_global_id(0), groups = (lanes + 3) / 4, row = item / groups; \
    uint c = item % groups * 4;                                          \
    if (row >= rows) return
#define AT(name) (name##_at + (ulong)row * (uint)name##_pixel + c)
#define SIZES uint rows, uint width, uint lanes

/* The result of a function of float4: whole, or element by element at the end of a dense tensor. */
#define WRITE_ROWS(whole, single)                                                          \
    if (c + 4 <= lanes)                                                                    \
        STORE4_OUT(out, AT(out), behind_zero(whole, c, width));                            \
    else                                                                                   \
        for (; c < lanes; c++) STORE_OUT(out, AT(out), (single).x)

FUNCTION float4 behind_zero(float4 x, uint c, uint width)
{
    if (c + 4 <= width) return x;
    return MAKE4(c < width ? x.x : 0, c + 1 < width ? x.y : 0, c + 2 < width ? x.z : 0, 0);
}

/* Four numbers of which the first `left` are there. */
FUNCTION float4 load_some(const __global float *p, int left)
{
    if (left >= 4) return vload4(0, p);
    return MAKE4(left > 0 ? p[0] : 0, left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, 0);
}

ROWS_KERNEL activate_rows(SIZES, OPERAND(input_data, a), OPERAND(output_data, out), int kind)
{
    BEGIN_ROWS;
    WRITE_ROWS(activate(kind, LOAD4_A(a, AT(a))), SPLAT4(activate_one(kind, LOAD_A(a, AT(a)))));
}

ROWS_KERNEL activate_dx_rows(SIZES, OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out),
                             int kind)
{
    BEGIN_ROWS;
    WRITE_ROWS(LOAD4_B(b, AT(b)) * activate_slope(kind, LOAD4_A(a, AT(a))),
               SPLAT4(LOAD_B(b, AT(b)) * slope_of_one(kind, LOAD_A(a, AT(a)))));
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

ROWS_KERNEL sum_rows(SIZES, OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out), float by)
{
    BEGIN_ROWS;
    WRITE_ROWS((LOAD4_A(a, AT(a)) + LOAD4_B(b, AT(b))) * by, SPLAT4((LOAD_A(a, AT(a)) + LOAD_B(b, AT(b))) * by));
}

ROWS_KERNEL scale_rows(SIZES, OPERAND(input_data, a), OPERAND(output_data, out), float by)
{
    BEGIN_ROWS;
    WRITE_ROWS(LOAD4_A(a, AT(a)) * by, SPLAT4(LOAD_A(a, AT(a)) * by));
}

ROWS_KERNEL fill_rows(SIZES, OPERAND(output_data, out), float value)
{
    BEGIN_ROWS;
    WRITE_ROWS(SPLAT4(value), SPLAT4(value));
}

/* ---- Numbers of channels ------------------------------------------------------------------------------------------ */

/* `pixels` of a sample; `b_sample`: elements from the bias of a sample to the next, 0: it is the same for all. */
ROWS_KERNEL bias_rows(SIZES, OPERAND(input_data, a), const __global float *b, ulong b_at, int b_sample,
                      OPERAND(output_data, out), int pixels)
{
    BEGIN_ROWS;
    float4 bias = load_some(b + b_at + (ulong)(row / pixels) * b_sample + c, (int)width - (int)c);
    WRITE_ROWS(LOAD4_A(a, AT(a)) + bias, bias);
}

ROWS_KERNEL broadcast_rows(SIZES, const __global float *b, ulong b_at, int b_sample, OPERAND(output_data, out),
                           int pixels)
{
    BEGIN_ROWS;
    float4 bias = load_some(b + b_at + (ulong)(row / pixels) * b_sample + c, (int)width - (int)c);
    WRITE_ROWS(bias, bias);
}

/* A scale and a shift for each channel of each sample. */
ROWS_KERNEL modulate_rows(SIZES, OPERAND(input_data, a), const __global float *b, ulong b_at, int b_sample,
                          OPERAND(output_data, out), int pixels)
{
    BEGIN_ROWS;
    const __global float *by = b + b_at + (ulong)(row / pixels) * b_sample + c;
    float4 scale = load_some(by, (int)width - (int)c), shift = load_some(by + width, (int)width - (int)c);
    WRITE_ROWS(LOAD4_A(a, AT(a)) * (1 + scale) + shift, scale);
}

ROWS_KERNEL modulate_dx_rows(SIZES, OPERAND(input_data, a), const __global float *b, ulong b_at, int b_sample,
                             OPERAND(output_data, out), int pixels)
{
    BEGIN_ROWS;
    float4 scale = load_some(b + b_at + (ulong)(row / pixels) * b_sample + c, (int)width - (int)c);
    WRITE_ROWS(LOAD4_A(a, AT(a)) * (1 + scale), scale);
}

/* ---- Parts of channels, one by one: they begin anywhere ---------------------------------------------------------- */

/* Elements c of a row, c from `first` to `last`: those of `a` from `from` on. What lies behind `count` is zero. */
ROWS_KERNEL take_rows(uint rows, OPERAND(input_data, a), OPERAND(output_data, out), int first, int last, int from,
                      int count)
{
    uint item = get_global_id(0), wide = last - first, row = item / wide;
    int c = item % wide;
    if (row >= rows) return;
    float value = c < count ? LOAD_A(a, a_at + (ulong)row * a_pixel + from + c) : 0;
    STORE_OUT(out, out_at + (ulong)row * out_pixel + first + c, value);
}

/* The same where all of these are multiples of four. */
ROWS_KERNEL take4_rows(uint rows, OPERAND(input_data, a), OPERAND(output_data, out), int first, int last, int from,
                       int count)
{
    uint item = get_global_id(0), wide = (last - first) / 4, row = item / wide;
    int c = item % wide * 4;
    if (row >= rows) return;
    float4 value = c < count ? LOAD4_A(a, a_at + (ulong)row * a_pixel + from + c) : SPLAT4(0);
    STORE4_OUT(out, out_at + (ulong)row * out_pixel + first + c, value);
}

/* Channels `first` to `first + count` are those of `a`, the others are zero. */
ROWS_KERNEL slice_dx_rows(SIZES, OPERAND(input_data, a), OPERAND(output_data, out), int first, int count)
{
    uint item = get_global_id(0), row = item / lanes;
    int c = item % lanes;
    if (row >= rows) return;
    int inside = c >= first && c < first + count;
    STORE_OUT(out, out_at + (ulong)row * out_pixel + c,
              inside ? LOAD_A(a, a_at + (ulong)row * a_pixel + c - first) : 0);
}

/* The same numbers in the order c, h, w: `plane` pixels of a sample, here and there. */
ROWS_KERNEL reshape_rows(SIZES, OPERAND(input_data, a), OPERAND(output_data, out), uint plane, uint a_plane)
{
    uint item = get_global_id(0), row = item / lanes, c = item % lanes;
    if (row >= rows) return;
    uint sample = row / plane, number = c * plane + row % plane;
    ulong from = a_at + ((ulong)sample * a_plane + number % a_plane) * a_pixel + number / a_plane;
    STORE_OUT(out, out_at + (ulong)row * out_pixel + c, c < width ? LOAD_A(a, from) : 0);
}

/* ---- Rows of dense matrices --------------------------------------------------------------------------------------- */

ROWS_KERNEL pick(const __global float *a, ulong a_at, __global float *out, ulong out_at, uint count, uint width,
                 uint first, uint step)
{
    uint i = get_global_id(0);
    if (i < count) out[out_at + i] = a[a_at + (ulong)(first + i / width * step) * width + i % width];
}

/* `picked` rows of `a`; all `count` elements of the result are written. */
ROWS_KERNEL pick_dx(const __global float *a, ulong a_at, __global float *out, ulong out_at, uint count, uint width,
                    uint first, uint step, uint picked)
{
    uint i = get_global_id(0);
    if (i >= count) return;
    uint row = i / width, from = row - first;
    int inside = row >= first && from % step == 0 && from / step < picked;
    out[out_at + i] = inside ? a[a_at + (ulong)(from / step) * width + i % width] : 0;
}

/* ---- Dropout ------------------------------------------------------------------------------------------------------ */

/* Philox 4x64 with ten rounds, as base/random.c has it: changes the counter into four random words. */
FUNCTION void philox(ulong counter[4], ulong key)
{
    ulong second = 0;
    for (int round = 0; round < 10; round++) {
        ulong low0 = 0xD2E7470EE14C6C93UL * counter[0], high0 = mul_hi(0xD2E7470EE14C6C93UL, counter[0]);
        ulong low1 = 0xCA5A826395121157UL * counter[2], high1 = mul_hi(0xCA5A826395121157UL, counter[2]);
        counter[0] = high1 ^ counter[1] ^ key;
        counter[1] = low1;
        counter[2] = high0 ^ counter[3] ^ second;
        counter[3] = low0;
        key += 0x9E3779B97F4A7C15UL;
        second += 0xBB67AE8584CAA73BUL;
    }
}

/* An item has the sixteen elements of a sample whose random numbers one block of the generator gives: element number
 * pixel * width + channel. `first`: the number of the first sample. */
ROWS_KERNEL dropout_rows(SIZES, OPERAND(input_data, a), OPERAND(output_data, out), uint pixels, uint blocks, ulong seed,
                         ulong purpose, ulong first, ulong address, uint dropped, float kept)
{
    uint item = get_global_id(0), sample = item / blocks, block = item % blocks;
    if (sample * pixels >= rows) return;
    ulong words[4] = {block, address, first + sample, purpose};
    philox(words, seed);
    for (uint i = 0; i < 16; i++) {
        uint element = block * 16 + i, pixel = element / width, c = element % width;
        if (pixel >= pixels) return;
        ulong row = (ulong)sample * pixels + pixel;
        uint number = (uint)(words[i / 4] >> (16 * (i % 4))) & 0xffff;
        float x = LOAD_A(a, a_at + row * a_pixel + c);
        STORE_OUT(out, out_at + row * out_pixel + c, number < dropped ? 0 : x * kept);
        if (c + 1 < width) continue;
        for (c++; c < lanes; c++) STORE_OUT(out, out_at + row * out_pixel + c, 0);
    }
}
