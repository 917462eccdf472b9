/* Operations that make one row, or one number, of many: softmax, losses, embeddings of times. */

#define SAMPLES_GROUP 64
#define SAMPLES_KERNEL __kernel GROUP_OF(SAMPLES_GROUP, 1) void

/* Of the numbers that the items of a group have, for each of them. */
FUNCTION float add_items(float mine, LOCAL_OF(float) *part)
{
    uint item = get_local_id(0);
    part[item] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint items = SAMPLES_GROUP / 2; items > 0; items /= 2) {
        if (item < items) part[item] += part[item + items];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

FUNCTION float largest_item(float mine, LOCAL_OF(float) *part)
{
    uint item = get_local_id(0);
    part[item] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint items = SAMPLES_GROUP / 2; items > 0; items /= 2) {
        if (item < items) part[item] = fmax(part[item], part[item + items]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float most = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return most;
}

/* ---- Softmax: a work group has a pixel -------------------------------------------------------------------------- */

SAMPLES_KERNEL softmax(OPERAND(input_data, a), OPERAND(output_data, out), int width, int lanes)
{
    __local float part[SAMPLES_GROUP];
    int item = get_local_id(0);
    ulong from = a_at + (ulong)get_group_id(0) * a_pixel, to = out_at + (ulong)get_group_id(0) * out_pixel;
    float most = -INFINITY, sum = 0;
    for (int i = item; i < width; i += SAMPLES_GROUP) most = fmax(most, LOAD_A(a, from + i));
    most = largest_item(most, part);
    for (int i = item; i < width; i += SAMPLES_GROUP) sum += exp(LOAD_A(a, from + i) - most);
    sum = add_items(sum, part);
    for (int i = item; i < lanes; i += SAMPLES_GROUP)
        STORE_OUT(out, to + i, i < width ? exp(LOAD_A(a, from + i) - most) / sum : 0);
}

/* ds = p (dp - <p, dp>) */
SAMPLES_KERNEL softmax_dx(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(output_data, out), int width,
                          int lanes)
{
    __local float part[SAMPLES_GROUP];
    int item = get_local_id(0);
    ulong row = get_group_id(0), p = a_at + row * a_pixel, dp = b_at + row * b_pixel, to = out_at + row * out_pixel;
    float sum = 0;
    for (int i = item; i < width; i += SAMPLES_GROUP) sum = fma(LOAD_A(a, p + i), LOAD_B(b, dp + i), sum);
    sum = add_items(sum, part);
    for (int i = item; i < lanes; i += SAMPLES_GROUP)
        STORE_OUT(out, to + i, i < width ? LOAD_A(a, p + i) * (LOAD_B(b, dp + i) - sum) : 0);
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

#define MOST_VARIABLES 24

/* A number and the zeros behind it. */
FUNCTION void put_number(output_floats p, float value)
{
    p[0] = value;
    for (int i = 1; i < LANES; i++) p[i] = 0;
}

/* Half the derivative of the square by the error of variable v; without a metric there is one variable. */
FUNCTION float weigh_error(input_floats metric, int measured, int variables, const float *error, int v)
{
    float sum = 0;
    if (!measured) return error[v];
    for (int i = 0; i < variables; i++) sum += (metric[v * variables + i] + metric[i * variables + v]) * error[i];
    return sum / 2;
}

/* Channels are `variables` one behind the other, `each` wide. A work group has a sample. */
SAMPLES_KERNEL loss(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(input_floats, metric),
                    OPERAND(output_floats, out), int pixels, int variables, int each, int measured, int power)
{
    __local float part[SAMPLES_GROUP];
    float error[MOST_VARIABLES], sum = 0, lost = 0;
    uint n = get_group_id(0);
    for (int i = get_local_id(0); i < pixels * each; i += SAMPLES_GROUP) {
        ulong pixel = (ulong)n * pixels + i / each;
        int place = i % each;
        for (int v = 0; v < variables; v++)
            error[v] = LOAD_A(a, a_at + pixel * a_pixel + v * each + place) -
                       LOAD_B(b, b_at + pixel * b_pixel + v * each + place);
        for (int v = 0; v < variables; v++) {
            float x = power == 2 ? error[v] * weigh_error(metric + metric_at + (ulong)n * metric_pixel, measured,
                                                          variables, error, v)
                                 : fabs(error[v]);
            float whole = sum + x, back = whole - sum;
            lost += (sum - (whole - back)) + (x - back);
            sum = whole;
        }
    }
    float all = add_items(sum + lost, part);
    if (get_local_id(0) == 0)
        put_number(out + out_at + (ulong)n * out_pixel, all / ((float)pixels * (float)(variables * each)));
}

/* A work item has one place of a pixel, and reads all of it before it writes: the result may lie where a or b lies. */
SAMPLES_KERNEL loss_dx(OPERAND(input_data, a), OPERAND(input_data, b), OPERAND(input_floats, dy),
                       OPERAND(input_floats, metric), OPERAND(output_data, out), int samples, int pixels,
                       int variables, int each, int measured, int power)
{
    float error[MOST_VARIABLES];
    uint item = get_global_id(0), n = item / each / pixels;
    int place = item % each, channels = variables * each;
    ulong pixel = item / each;
    if (n >= (uint)samples) return;
    float by = dy[dy_at + (ulong)n * dy_pixel] / ((float)channels * (float)pixels);
    for (int v = 0; v < variables; v++)
        error[v] = LOAD_A(a, a_at + pixel * a_pixel + v * each + place) -
                   LOAD_B(b, b_at + pixel * b_pixel + v * each + place);
    for (int v = 0; v < variables; v++) {
        float d = weigh_error(metric + metric_at + (ulong)n * metric_pixel, measured, variables, error, v);
        float slope = power == 2 ? 2 * d : (float)((d > 0) - (d < 0));
        STORE_OUT(out, out_at + pixel * out_pixel + v * each + place, by * slope);
    }
    for (int c = channels; place == 0 && c % LANES; c++) STORE_OUT(out, out_at + pixel * out_pixel + c, 0);
}

/* x / (sqrt(x + a^2) + a), which does not cancel. */
SAMPLES_KERNEL root(OPERAND(input_floats, x), OPERAND(input_floats, a), OPERAND(output_floats, out), int samples)
{
    uint n = get_global_id(0);
    if (n >= (uint)samples) return;
    float value = x[x_at + (ulong)n * x_pixel], by = a[a_at + (ulong)n * a_pixel];
    put_number(out + out_at + (ulong)n * out_pixel, value > 0 ? value / (sqrt(value + by * by) + by) : 0);
}

SAMPLES_KERNEL root_dx(OPERAND(input_floats, x), OPERAND(input_floats, a), OPERAND(input_floats, dy),
                       OPERAND(output_floats, out), int samples)
{
    uint n = get_global_id(0);
    if (n >= (uint)samples) return;
    float by = a[a_at + (ulong)n * a_pixel], below = sqrt(x[x_at + (ulong)n * x_pixel] + by * by);
    put_number(out + out_at + (ulong)n * out_pixel, below > 0 ? dy[dy_at + (ulong)n * dy_pixel] / (2 * below) : 0);
}

/* Logarithm of the sum of exp(x), the largest taken out. */
FUNCTION float log_sum(input_floats x, int count)
{
    float most = x[0], sum = 0;
    for (int i = 1; i < count; i++) most = fmax(most, x[i]);
    for (int i = 0; i < count; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

/* A label that is none would be read from elsewhere: the nearest class stands for it. */
FUNCTION int label_of(input_floats label, int classes)
{
    return clamp((int)label[0], 0, classes - 1);
}

SAMPLES_KERNEL entropy(OPERAND(input_floats, x), OPERAND(input_floats, label), OPERAND(output_floats, out), int samples,
                       int classes)
{
    uint n = get_global_id(0);
    if (n >= (uint)samples) return;
    input_floats row = x + x_at + (ulong)n * x_pixel;
    int right = label_of(label + label_at + (ulong)n * label_pixel, classes);
    put_number(out + out_at + (ulong)n * out_pixel, log_sum(row, classes) - row[right]);
}

SAMPLES_KERNEL entropy_dx(OPERAND(input_floats, x), OPERAND(input_floats, label), OPERAND(input_floats, dy),
                          OPERAND(output_floats, out), int samples, int classes)
{
    uint n = get_global_id(0);
    if (n >= (uint)samples) return;
    input_floats row = x + x_at + (ulong)n * x_pixel;
    output_floats to = out + out_at + (ulong)n * out_pixel;
    int right = label_of(label + label_at + (ulong)n * label_pixel, classes);
    float by = dy[dy_at + (ulong)n * dy_pixel], all = log_sum(row, classes);
    for (int c = 0; c < classes || c % LANES; c++) to[c] = c < classes ? by * (exp(row[c] - all) - (c == right)) : 0;
}

/* ---- Embeddings of times: a work item has a lane of a sample ------------------------------------------------------ */

/* The host has computed the frequencies: an error there would grow with the time. */
SAMPLES_KERNEL positional(OPERAND(input_floats, t), OPERAND(output_floats, out), const __global float *frequency,
                          int samples, int lanes, int each, int cos_first)
{
    uint item = get_global_id(0), n = item / lanes;
    int c = item % lanes, second = c >= each;
    if (n >= (uint)samples) return;
    float value = 0;
    if (c < 2 * each) {
        float angle = t[t_at + (ulong)n * t_pixel] * frequency[c - second * each];
        value = second == cos_first ? sin(angle) : cos(angle);
    }
    out[out_at + (ulong)n * out_pixel + c] = value;
}

/* log(x) to half a unit in the last place, for x > 0: it is multiplied by large numbers. x = m 2^e, s = (m - 1) / (m + 1),
 * log m = 2 (s + s^3 / 3 + ...); what is large is kept in two floats. */
FUNCTION float exact_log(float x)
{
    int e;
    float m = frexp(x, &e);
    if (m < 0.70710678f) {
        m *= 2;
        e--;
    }
    float f = m - 1, below = 2 + f, below_lost = f - (below - 2);
    float s = f / below, s_lost = (fma(-s, below, f) - s * below_lost) / below, z = s * s;
    float rest = z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9 + z * (1.0f / 11)))));
    float power = e * 0.693145751953125f, sum = power + 2 * s, back = sum - power;
    float lost = (power - (sum - back)) + (2 * s - back);
    return sum + (lost + (2 * s_lost + 2 * s * rest + e * 1.42860682030941723212e-6f));
}

SAMPLES_KERNEL fourier(OPERAND(input_floats, t), OPERAND(input_floats, w), OPERAND(output_floats, out), int samples,
                       int lanes, int each, int plain)
{
    uint item = get_global_id(0), n = item / lanes;
    int c = item % lanes, second = c >= each;
    if (n >= (uint)samples) return;
    const float pi = 3.14159265358979323846f;
    float value = 0;
    if (c < 2 * each) {
        float time = t[t_at + (ulong)n * t_pixel], weight = w[w_at + c - second * each];
        float angle = plain ? time * (weight * (2 * pi)) : exact_log(time) * weight * 2 * pi;
        value = second ? cos(angle) : sin(angle);
    }
    out[out_at + (ulong)n * out_pixel + c] = value;
}
