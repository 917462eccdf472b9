/* Operations that look at several pixels of an image: a work item has four channels of an output pixel. */

#define IMAGE_GROUP 128
#define IMAGE_KERNEL __kernel GROUP_OF(IMAGE_GROUP, 1) void

/* Samples, channels, lanes; then height and width of the input and of the result. */
#define IMAGE_SIZES int samples, int channels, int lanes, int ih, int iw, int oh, int ow
#define BEGIN_IMAGE                                                                        \
    uint item = get_global_id(0), quads = lanes / 4, place = item / quads;                 \
    int c = item % quads * 4, ox = place % ow, oy = place / ow % oh, n = place / ow / oh;  \
    if (n >= samples) return
#define IN(y, x) LOAD4_A(a, a_at + (((ulong)n * ih + (y)) * iw + (x)) * a_pixel + c)
#define OUT_AT (out_at + (ulong)place * out_pixel + c)

FUNCTION float4 of_channels(float4 x, int left)
{
    if (left >= 4) return x;
    return MAKE4(left > 0 ? x.x : 0, left > 1 ? x.y : 0, left > 2 ? x.z : 0, 0);
}

/* The input row that tap k of output row j looks at; -1: a zero. */
FUNCTION int resample_source(int j, int k, int up, int down, int pad, int size)
{
    int at = j * down + k - pad;
    if (at < 0 || at % up != 0) return -1;
    return at / up < size ? at / up : -1;
}

IMAGE_KERNEL resample(OPERAND(input_data, a), OPERAND(output_data, out), IMAGE_SIZES, const __global float *tap,
                      int taps, int up, int down, int pad)
{
    BEGIN_IMAGE;
    float4 sum = SPLAT4(0);
    for (int ky = 0; ky < taps; ky++) {
        int iy = resample_source(oy, ky, up, down, pad, ih);
        if (iy < 0) continue;
        float4 line = SPLAT4(0);
        for (int kx = 0; kx < taps; kx++) {
            int ix = resample_source(ox, kx, up, down, pad, iw);
            if (ix >= 0) line += tap[kx] * IN(iy, ix);
        }
        sum += tap[ky] * line;
    }
    STORE4_OUT(out, OUT_AT, of_channels(sum, channels - c));
}

IMAGE_KERNEL pool(OPERAND(input_data, a), OPERAND(output_data, out), IMAGE_SIZES, int kh, int kw, int sh, int sw,
                  int top, int left, int mean)
{
    BEGIN_IMAGE;
    float4 sum = SPLAT4(0), largest = SPLAT4(-INFINITY);
    int count = 0;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++) {
            int iy = oy * sh + ky - top, ix = ox * sw + kx - left;
            if (iy < 0 || iy >= ih || ix < 0 || ix >= iw) continue;
            float4 x = IN(iy, ix);
            sum += x;
            largest = fmax(largest, x);
            count++;
        }
    STORE4_OUT(out, OUT_AT, of_channels(mean ? sum / (float)count : largest, channels - c));
}

/* Pixel j lies at j in / out: the fraction is a quotient of whole numbers. */
IMAGE_KERNEL resize(OPERAND(input_data, a), OPERAND(output_data, out), IMAGE_SIZES)
{
    BEGIN_IMAGE;
    int y0 = oy * ih / oh, x0 = ox * iw / ow, y1 = min(y0 + 1, ih - 1), x1 = min(x0 + 1, iw - 1);
    float down = (float)(oy * ih % oh) / (float)oh, across = (float)(ox * iw % ow) / (float)ow;
    float4 above = IN(y0, x0) * (1 - across) + IN(y0, x1) * across;
    float4 below = IN(y1, x0) * (1 - across) + IN(y1, x1) * across;
    STORE4_OUT(out, OUT_AT, of_channels(above * (1 - down) + below * down, channels - c));
}
