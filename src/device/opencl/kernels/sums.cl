/* Sums over the pixels of a sample, and group normalisation (kernels/ref/norm.h has the formulas).
 *
 * A work group has a sample and 16 channels: four items abreast have four channels each, and SLOTS of these rows share
 * the pixels. Every sum is made in an order that the number of pixels fixes: each item's in turn, with what rounding
 * loses kept beside it, then those of the items pair by pair. */

#define SLOTS 32
#define SUMS_GROUP (4 * SLOTS)
#define SUMS_KERNEL __kernel GROUP_OF(SUMS_GROUP, 1) void

typedef struct kept_sum {
    float4 sum, lost;
} kept_sum;

#define NO_SUM {SPLAT4(0), SPLAT4(0)}

FUNCTION void add_kept(kept_sum *s, float4 x)
{
    float4 sum = s->sum + x, back = sum - s->sum;
    s->lost += (s->sum - (sum - back)) + (x - back);
    s->sum = sum;
}

/* The sum of all slots, for every item of a column. */
FUNCTION float4 add_slots(kept_sum mine, LOCAL_OF(float4) *part)
{
    uint item = get_local_id(0);
    part[item] = mine.sum + mine.lost;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint slots = SLOTS / 2; slots > 0; slots /= 2) {
        if (item / 4 < slots) part[item] += part[item + 4 * slots];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 sum = part[item % 4];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* The first `left` of four numbers. */
FUNCTION void store_some(output_floats p, float4 x, int left)
{
    if (left > 0) p[0] = x.x;
    if (left > 1) p[1] = x.y;
    if (left > 2) p[2] = x.z;
    if (left > 3) p[3] = x.w;
}

FUNCTION float4 load_some(input_floats p, int left)
{
    return MAKE4(left > 0 ? p[0] : 0, left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, left > 3 ? p[3] : 0);
}

/* Sets the sample, the first of the item's channels, its first pixel. Items may have no channels at all. */
#define BEGIN_SUMS                                                              \
    __local float4 part[SUMS_GROUP];                                            \
    uint item = get_local_id(0), sample = get_global_id(1), slot = item / 4;    \
    int c = get_group_id(0) * 16 + item % 4 * 4
#define AT(name, pixel) (name##_at + ((ulong)sample * pixels + (pixel)) * name##_pixel + c)

/* ---- Sums of channels ---------------------------------------------------------------------------------------------- */

/* To [n][out_pixel]: the lanes of a vector, or scratch for the sum over samples. */
SUMS_KERNEL channel_sum(OPERAND(input_data, a), OPERAND(output_floats, out), uint pixels, int lanes)
{
    BEGIN_SUMS;
    kept_sum sum = NO_SUM;
    for (uint i = slot; i < pixels && c < lanes; i += SLOTS) add_kept(&sum, LOAD4_A(a, AT(a, i)));
    float4 all = add_slots(sum, part);
    if (slot == 0 && c < lanes) vstore4(all, 0, out + out_at + (ulong)sample * out_pixel + c);
}

/* In the order of samples. */
__kernel GROUP_OF(64, 1) void
sample_sum(OPERAND(input_floats, a), output_floats out, ulong out_at, int samples, int channels)
{
    int c = get_global_id(0);
    float sum = 0, lost = 0;
    if (c >= channels) return;
    for (int n = 0; n < samples; n++) {
        float x = a[a_at + (ulong)n * a_pixel + c], whole = sum + x, back = whole - sum;
        lost += (sum - (whole - back)) + (x - back);
        sum = whole;
    }
    out[out_at + c] = sum + lost;
}

/* Zeros behind the 2c numbers of a sample. */
FUNCTION void clear_behind(output_floats p, int count)
{
    if (get_group_id(0) != 0 || get_local_id(0) != 0) return;
    for (int i = count; i % LANES; i++) p[i] = 0;
}

/* [n][2c]: gradients by scale and by shift. */
SUMS_KERNEL modulate_sums(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_floats, out), uint pixels,
                          int channels)
{
    BEGIN_SUMS;
    kept_sum by_scale = NO_SUM, by_shift = NO_SUM;
    for (uint i = slot; i < pixels && c < channels; i += SLOTS) {
        float4 dy = LOAD4_B(b, AT(b, i));
        add_kept(&by_scale, dy * LOAD4_A(a, AT(a, i)));
        add_kept(&by_shift, dy);
    }
    output_floats to = out + out_at + (ulong)sample * out_pixel;
    float4 scale = add_slots(by_scale, part), shift = add_slots(by_shift, part);
    if (slot == 0) {
        store_some(to + c, scale, channels - c);
        store_some(to + channels + c, shift, channels - c);
    }
    clear_behind(to, 2 * channels);
}

/* ---- Moments ------------------------------------------------------------------------------------------------------ */

/* [n][2c]: mean and variance of each channel. Two passes: differences from the mean lose nothing where it is large. */
SUMS_KERNEL moments(OPERAND(input_data, a), OPERAND(output_floats, out), uint pixels, int channels)
{
    BEGIN_SUMS;
    kept_sum sum = NO_SUM, squares = NO_SUM;
    for (uint i = slot; i < pixels && c < channels; i += SLOTS) add_kept(&sum, LOAD4_A(a, AT(a, i)));
    float4 mean = add_slots(sum, part) / (float)pixels;
    for (uint i = slot; i < pixels && c < channels; i += SLOTS) {
        float4 d = LOAD4_A(a, AT(a, i)) - mean;
        add_kept(&squares, d * d);
    }
    output_floats to = out + out_at + (ulong)sample * out_pixel;
    float4 variance = add_slots(squares, part) / (float)pixels;
    if (slot == 0) {
        store_some(to + c, mean, channels - c);
        store_some(to + channels + c, variance, channels - c);
    }
    clear_behind(to, 2 * channels);
}

/* ---- Group normalisation ------------------------------------------------------------------------------------------- */

/* Mean and 1 / sqrt(variance + eps) of a group of `count` channels, from those of its channels. */
FUNCTION float2 group_moments(input_floats means, int channels, int first, int count, float eps)
{
    input_floats variances = means + channels;
    float m = 0, v = 0;
    for (int i = first; i < first + count; i++) m += means[i];
    m /= count;
    for (int i = first; i < first + count; i++) v += variances[i] + (means[i] - m) * (means[i] - m);
    return MAKE2(m, 1 / sqrt(v / count + eps));
}

/* Of the groups that the 16 channels of a work group belong to, channel by channel. */
FUNCTION void find_moments(input_floats means, int channels, int count, float eps, LOCAL_OF(float) *mean, LOCAL_OF(float) *r)
{
    int item = get_local_id(0), c = get_group_id(0) * 16 + item;
    if (item < 16 && c < channels) {
        float2 of_group = group_moments(means, channels, c / count * count, count, eps);
        mean[item] = of_group.x;
        r[item] = of_group.y;
    } else if (item < 16) {
        mean[item] = r[item] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Operands of normalise and its gradients: x, moments, weight, bias. `count` channels are a group. */
#define NORM_INPUTS                                                                                              \
    OPERAND(input_data, a), OPERAND(input_floats, b), OPERAND(input_floats, weight), OPERAND(input_floats, bias)
#define NORM_SIZES uint pixels, int channels, int lanes, int count, float eps, int kind
#define BEGIN_NORM                                                                                     \
    __local float means[16], roots[16];                                                                \
    find_moments(b + b_at + (ulong)sample * b_pixel, channels, count, eps, means, roots);              \
    float4 mean = vload4(item % 4, means), r = vload4(item % 4, roots);                                \
    float4 w = load_some(weight + weight_at + c, channels - c), add = load_some(bias + bias_at + c, channels - c)

/* Pixels of a work group, of which there are several for the same sample and channels. */
#define NORM_PIXELS (SLOTS * 8)
#define FIRST_PIXEL (get_global_id(2) * NORM_PIXELS + slot)
#define LAST_PIXEL min((uint)pixels, (uint)(get_global_id(2) + 1) * NORM_PIXELS)

FUNCTION float4 of_channels(float4 x, int left)
{
    if (left >= 4) return x;
    return MAKE4(left > 0 ? x.x : 0, left > 1 ? x.y : 0, left > 2 ? x.z : 0, 0);
}

SUMS_KERNEL normalise(NORM_INPUTS, OPERAND(output_data, out), NORM_SIZES)
{
    uint item = get_local_id(0), sample = get_global_id(1), slot = item / 4;
    int c = get_group_id(0) * 16 + item % 4 * 4;
    BEGIN_NORM;
    for (uint i = FIRST_PIXEL; i < LAST_PIXEL && c < lanes; i += SLOTS) {
        float4 h = (LOAD4_A(a, AT(a, i)) - mean) * r;
        STORE4_OUT(out, AT(out, i), of_channels(activate(kind, h * w + add), channels - c));
    }
}

/* [n][2c]: gradients by weight and by bias, of a sample. */
SUMS_KERNEL normalise_sums(NORM_INPUTS, OPERAND(input_data, e), OPERAND(output_floats, out), NORM_SIZES)
{
    BEGIN_SUMS;
    BEGIN_NORM;
    kept_sum by_weight = NO_SUM, by_bias = NO_SUM;
    for (uint i = slot; i < pixels && c < lanes; i += SLOTS) {
        float4 h = (LOAD4_A(a, AT(a, i)) - mean) * r;
        float4 slope = LOAD4_E(e, AT(e, i)) * activate_slope(kind, h * w + add);
        add_kept(&by_weight, slope * h);
        add_kept(&by_bias, slope);
    }
    output_floats to = out + out_at + (ulong)sample * out_pixel;
    float4 weights = add_slots(by_weight, part), biases = add_slots(by_bias, part);
    if (slot == 0) {
        store_some(to + c, weights, channels - c);
        store_some(to + channels + c, biases, channels - c);
    }
    clear_behind(to, 2 * channels);
}

/* Means of the gradient by h, and of that times h, over the groups of the 16 channels: from the sums of the pixels. */
FUNCTION void find_means(input_floats sums, input_floats weight, int channels, int count, uint pixels, LOCAL_OF(float) *mean,
                LOCAL_OF(float) *mean_h)
{
    int item = get_local_id(0), c = get_group_id(0) * 16 + item;
    if (item < 16) mean[item] = mean_h[item] = 0;
    if (item < 16 && c < channels) {
        float sum = 0, sum_h = 0;
        for (int i = c / count * count; i < c / count * count + count; i++) {
            sum += weight[i] * sums[channels + i];
            sum_h += weight[i] * sums[i];
        }
        mean[item] = sum / ((float)count * (float)pixels);
        mean_h[item] = sum_h / ((float)count * (float)pixels);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

SUMS_KERNEL normalise_dx(NORM_INPUTS, OPERAND(input_data, e), OPERAND(input_floats, f), OPERAND(output_data, out),
                         NORM_SIZES)
{
    uint item = get_local_id(0), sample = get_global_id(1), slot = item / 4;
    int c = get_group_id(0) * 16 + item % 4 * 4;
    __local float local_mean[16], local_mean_h[16];
    BEGIN_NORM;
    find_means(f + f_at + (ulong)sample * f_pixel, weight + weight_at, channels, count, pixels, local_mean,
               local_mean_h);
    float4 mean_g = vload4(item % 4, local_mean), mean_h = vload4(item % 4, local_mean_h);
    for (uint i = FIRST_PIXEL; i < LAST_PIXEL && c < lanes; i += SLOTS) {
        float4 h = (LOAD4_A(a, AT(a, i)) - mean) * r;
        float4 slope = LOAD4_E(e, AT(e, i)) * activate_slope(kind, h * w + add) * w;
        STORE4_OUT(out, AT(out, i), of_channels(r * (slope - mean_g - h * mean_h), channels - c));
    }
}
