/* The blocks of the NCSN++/DDPM++ U-Net (Song et al. 2021), parameter for parameter.
 *
 * Two things are done in another order than written there, with the same result: a 1x1 convolution before the
 * upsampling that it would follow, on a quarter of the pixels; and the filter of an upsampling convolution before the
 * convolution, where both are plain (the filter then runs over the border so that nothing is cut off in between). */
#include <math.h>
#include <stdio.h>

#include "model/networks/ncsnpp.h"
#include "nn/ops.h"

static const int once[2] = {1, 1}, around[4] = {1, 1, 1, 1}, nowhere[4] = {0, 0, 0, 0};

/* all_modules.<module>.[<part>.]<what> */
static psld_id parameter(psld_unet *unet, const char *part, const char *what, int rank, const int *shape,
                         psld_init init, double scale)
{
    char name[PSLD_PARAMETER_NAME];
    snprintf(name, sizeof name, "all_modules.%d.%s%s%s", unet->module, part, *part ? "." : "", what);
    return psld_graph_parameter(unet->graph, name, rank, shape, init, scale == 0 ? 1e-10 : scale);
}

static int channels_of(const psld_unet *unet, psld_id x)
{
    return psld_graph_shape(unet->graph, x).c;
}

static psld_id add_bias(psld_unet *unet, psld_id x, const char *part, const char *what)
{
    int channels = channels_of(unet, x);
    return psld_nn_bias(unet->graph, x, parameter(unet, part, what, 1, &channels, PSLD_INIT_ZEROS, 1));
}

/* A convolution without its bias; the weight is registered first, as in files. */
static psld_id convolve(psld_unet *unet, const char *part, psld_id x, int channels, int size, double scale,
                        const int stride[2], const int pad[4])
{
    int shape[4] = {channels, channels_of(unet, x), size, size};
    psld_id w = parameter(unet, part, "weight", 4, shape, PSLD_INIT_UNIFORM, scale);
    return psld_nn_conv(unet->graph, x, w, stride, pad, 0);
}

static psld_id conv3(psld_unet *unet, const char *part, psld_id x, int channels, double scale)
{
    return add_bias(unet, convolve(unet, part, x, channels, 3, scale, once, around), part, "bias");
}

static psld_id dense(psld_unet *unet, const char *part, psld_id x, int channels)
{
    int shape[2] = {channels, channels_of(unet, x)};
    psld_id w = parameter(unet, part, "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    return add_bias(unet, psld_nn_linear(unet->graph, x, w, 0), part, "bias");
}

/* "Network in network": a matrix [in][out] and a vector for every pixel. */
typedef struct nin_weights {
    psld_id w, b;
} nin_weights;

static nin_weights nin_parameters(psld_unet *unet, const char *part, int in, int out, double scale)
{
    nin_weights made;
    made.w = parameter(unet, part, "W", 2, (int[]){in, out}, PSLD_INIT_UNIFORM, scale);
    made.b = parameter(unet, part, "b", 1, &out, PSLD_INIT_ZEROS, 1);
    return made;
}

static psld_id nin(psld_unet *unet, psld_id x, nin_weights weights)
{
    return psld_nn_bias(unet->graph, psld_nn_linear(unet->graph, x, weights.w, 1), weights.b);
}

static psld_id norm(psld_unet *unet, const char *part, psld_id x, psld_activation activation)
{
    int channels = channels_of(unet, x), groups = channels / 4 < 32 ? channels / 4 : 32;
    psld_id weight = parameter(unet, part, "weight", 1, &channels, PSLD_INIT_ONES, 1);
    psld_id bias = parameter(unet, part, "bias", 1, &channels, PSLD_INIT_ZEROS, 1);
    return psld_nn_group_norm(unet->graph, x, weight, bias, groups, 1e-6, activation);
}

psld_id psld_unet_add(psld_unet *unet, psld_id a, psld_id b)
{
    return psld_nn_sum(unet->graph, a, b, unet->config->skip_rescale ? sqrt(0.5) : 1);
}

int psld_unet_attends(const psld_unet *unet, psld_id x)
{
    int size = psld_graph_shape(unet->graph, x).w;
    for (int i = 0; i < unet->config->attn_count; i++)
        if (unet->config->attn_resolutions[i] == size) return 1;
    return 0;
}

/* ---- Change of size ---------------------------------------------------------------------------------------------- */

/* The taps of the filter along one axis, reversed (resampling correlates, the reference convolves), with sum `gain`. */
static void fir_taps(const psld_network_config *config, double gain, float *tap)
{
    double sum = 0;
    for (int i = 0; i < config->fir_taps; i++) sum += config->fir_kernel[i];
    for (int i = 0; i < config->fir_taps; i++)
        tap[i] = (float)(config->fir_kernel[config->fir_taps - 1 - i] * gain / sum);
}

/* The filter with `extra` more zeros before the image and `extra` more pixels of the result behind it. */
static psld_id filter(psld_unet *unet, psld_id x, int up, int down, int pad, int extra)
{
    psld_shape s = psld_graph_shape(unet->graph, x);
    int size[2] = {s.h * up / down + extra, s.w * up / down + extra};
    float tap[PSLD_MAX_TAPS];
    fir_taps(unet->config, up, tap);
    return psld_nn_resample(unet->graph, x, up, down, unet->config->fir_taps, tap, pad, size);
}

psld_id psld_unet_resample(psld_unet *unet, psld_id x, psld_resize resize)
{
    static const float copies[2] = {1, 1}, mean[2] = {0.5F, 0.5F};
    psld_shape s = psld_graph_shape(unet->graph, x);
    int twice[2] = {2 * s.h, 2 * s.w}, half[2] = {s.h / 2, s.w / 2}, taps = unet->config->fir_taps;
    if (resize == PSLD_KEEP) return x;
    if (unet->config->fir)
        return resize == PSLD_UP ? filter(unet, x, 2, 1, (taps - 1) / 2 + 1, 0)
                                 : filter(unet, x, 1, 2, (taps - 1) / 2, 0);
    if (resize == PSLD_UP) return psld_nn_resample(unet->graph, x, 2, 1, 2, copies, 1, twice);
    return psld_nn_resample(unet->graph, x, 1, 2, 2, mean, 0, half);
}

/* Zeros between the pixels, the convolution with all of its border, the filter; here the filter comes first. */
static psld_id filtered_up(psld_unet *unet, psld_id x, int channels)
{
    int taps = unet->config->fir_taps;
    psld_id wide = filter(unet, x, 2, 1, (taps + 1) / 2 + 1, 2);
    return add_bias(unet, convolve(unet, "Conv2d_0", wide, channels, 3, 1, once, nowhere), "Conv2d_0", "bias");
}

static psld_id filtered_down(psld_unet *unet, psld_id x, int channels)
{
    static const int twice[2] = {2, 2};
    psld_id wide = filter(unet, x, 1, 1, (unet->config->fir_taps + 1) / 2, 1);
    return add_bias(unet, convolve(unet, "Conv2d_0", wide, channels, 3, 1, twice, nowhere), "Conv2d_0", "bias");
}

psld_id psld_unet_resize(psld_unet *unet, psld_id x, int channels, psld_resize resize, int with_conv)
{
    static const int twice[2] = {2, 2}, behind[4] = {0, 0, 1, 1};
    psld_id y;
    if (!with_conv)
        y = psld_unet_resample(unet, x, resize);
    else if (unet->config->fir)
        y = resize == PSLD_UP ? filtered_up(unet, x, channels) : filtered_down(unet, x, channels);
    else if (resize == PSLD_UP)
        y = conv3(unet, "Conv_0", psld_unet_resample(unet, x, resize), channels, 1);
    else
        y = add_bias(unet, convolve(unet, "Conv_0", x, channels, 3, 1, twice, behind), "Conv_0", "bias");
    unet->module++;
    return y;
}

/* ---- Modules ----------------------------------------------------------------------------------------------------- */

psld_id psld_unet_conv3(psld_unet *unet, psld_id x, int channels, double scale)
{
    psld_id y = conv3(unet, "", x, channels, scale);
    unet->module++;
    return y;
}

/* Patches overlap by half of one on each side: no seams. */
typedef struct patches {
    int stride[2], pad[4], size;
} patches;

static patches patches_of(const psld_network_config *config)
{
    int side = config->patch, more = side / 2;
    return (patches){{side, side}, {more, more, more, more}, side + 2 * more};
}

psld_id psld_unet_enter(psld_unet *unet, psld_id z, int channels)
{
    if (unet->config->patch == 1) return psld_unet_conv3(unet, z, channels, 1);
    patches p = patches_of(unet->config);
    psld_id h = add_bias(unet, convolve(unet, "", z, channels, p.size, 1, p.stride, p.pad), "", "bias");
    unet->module++;
    return h;
}

psld_id psld_unet_leave(psld_unet *unet, psld_id h, int channels, double scale)
{
    if (unet->config->patch == 1) return psld_unet_conv3(unet, h, channels, scale);
    patches p = patches_of(unet->config);
    psld_shape s = psld_graph_shape(unet->graph, h);
    int shape[4] = {s.c, channels, p.size, p.size}, pixels[2] = {s.h * p.stride[0], s.w * p.stride[1]};
    psld_id w = parameter(unet, "", "weight", 4, shape, PSLD_INIT_UNIFORM, scale);
    h = add_bias(unet, psld_nn_conv_adjoint(unet->graph, h, w, p.stride, p.pad, pixels), "", "bias");
    unet->module++;
    return h;
}

psld_id psld_unet_norm(psld_unet *unet, psld_id x)
{
    psld_id y = norm(unet, "", x, unet->config->nonlinearity);
    unet->module++;
    return y;
}

/* The 1x1 convolution beside a change of size: on the smaller image. The bias goes last where a filter fades at the
 * border. */
static psld_id resized_shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    if (resize == PSLD_UP) {
        psld_id y = convolve(unet, "Conv_2", x, channels, 1, 1, once, nowhere);
        if (!unet->config->fir) return psld_unet_resample(unet, add_bias(unet, y, "Conv_2", "bias"), resize);
        return add_bias(unet, psld_unet_resample(unet, y, resize), "Conv_2", "bias");
    }
    x = psld_unet_resample(unet, x, resize);
    return add_bias(unet, convolve(unet, "Conv_2", x, channels, 1, 1, once, nowhere), "Conv_2", "bias");
}

static psld_id shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    int same = channels_of(unet, x) == channels && resize == PSLD_KEEP;
    if (same) return x;
    if (unet->config->resblock_type == PSLD_BLOCK_DDPM)
        return nin(unet, x, nin_parameters(unet, "NIN_0", channels_of(unet, x), channels, 0.1));
    return resized_shortcut(unet, x, channels, resize);
}

/* The projection of the time embedding is there, unused, even in a network that does not see t. */
static psld_id add_time(psld_unet *unet, psld_id h)
{
    int channels = channels_of(unet, h), shape[2] = {channels, 4 * unet->config->nf};
    if (unet->time != PSLD_NONE) return psld_nn_bias(unet->graph, h, dense(unet, "Dense_0", unet->time, channels));
    parameter(unet, "Dense_0", "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    parameter(unet, "Dense_0", "bias", 1, shape, PSLD_INIT_ZEROS, 1);
    return h;
}

psld_id psld_unet_residual(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    const psld_network_config *config = unet->config;
    psld_id h = norm(unet, "GroupNorm_0", x, config->nonlinearity);
    h = psld_unet_resample(unet, h, resize);
    h = conv3(unet, "Conv_0", h, channels, 1);
    h = add_time(unet, h);
    h = norm(unet, "GroupNorm_1", h, config->nonlinearity);
    h = psld_nn_dropout(unet->graph, h, config->dropout);
    h = conv3(unet, "Conv_1", h, channels, config->init_scale);
    x = shortcut(unet, x, channels, resize);
    unet->module++;
    return psld_unet_add(unet, x, h);
}

/* With queries, keys and values q = h Wq + bq, k = h Wk + bk, v = h Wv + bv: what is the same for all keys does not
 * change a softmax, and its weights P sum to one. So
 *
 *     q k' = (h Wq Wk' + bq Wk') h' + the same for all keys,    P v Wo + bo = P h (Wv Wo) + (bv Wo + bo),
 *
 * which is two maps of all pixels instead of four. The bias of the keys has no effect. */
psld_id psld_unet_attention(psld_unet *unet, psld_id x)
{
    psld_graph *graph = unet->graph;
    int channels = channels_of(unet, x);
    psld_id h = norm(unet, "GroupNorm_0", x, PSLD_LINEAR);
    nin_weights q = nin_parameters(unet, "NIN_0", channels, channels, 0.1);
    nin_weights k = nin_parameters(unet, "NIN_1", channels, channels, 0.1);
    nin_weights v = nin_parameters(unet, "NIN_2", channels, channels, 0.1);
    nin_weights o = nin_parameters(unet, "NIN_3", channels, channels, unet->config->init_scale);
    nin_weights qk = {psld_nn_product(graph, q.w, 0, k.w, 1), psld_nn_product(graph, q.b, 0, k.w, 1)};
    nin_weights vo = {psld_nn_product(graph, v.w, 0, o.w, 0),
                      psld_nn_sum(graph, psld_nn_product(graph, v.b, 0, o.w, 0), o.b, 1)};
    h = nin(unet, psld_nn_attention(graph, nin(unet, h, qk), h, h), vo);
    unet->module++;
    return psld_unet_add(unet, x, h);
}

psld_id psld_unet_combine(psld_unet *unet, psld_id pyramid, psld_id h)
{
    int channels = channels_of(unet, h);
    psld_id p = add_bias(unet, convolve(unet, "Conv_0", pyramid, channels, 1, 1, once, nowhere), "Conv_0", "bias");
    unet->module++;
    if (unet->config->progressive_combine == PSLD_COMBINE_CAT) return psld_nn_concat(unet->graph, p, h);
    return psld_nn_sum(unet->graph, p, h, 1);
}

/* ---- Encoder ----------------------------------------------------------------------------------------------------- */

static psld_id time_dense(psld_unet *unet, psld_id x, int channels)
{
    psld_id y = dense(unet, "", x, channels);
    unet->module++;
    return y;
}

/* Adds a linear map of what was done to the data to the embedding of the time. Without a bias it adds nothing where
 * nothing was done. */
static psld_id join_augmentation(psld_unet *unet, psld_id x)
{
    int shape[2] = {channels_of(unet, x), PSLD_AUGMENT_INPUTS};
    psld_id w = psld_graph_parameter(unet->graph, "augment.weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    if (unet->augment == PSLD_NONE) return x;
    return psld_nn_sum(unet->graph, x, psld_nn_linear(unet->graph, unet->augment, w, 0), 1);
}

static psld_id embed_time(psld_unet *unet, psld_id t)
{
    const psld_network_config *config = unet->config;
    psld_id x;
    if (config->embedding_type == PSLD_EMBED_FOURIER) {
        char name[PSLD_PARAMETER_NAME];
        snprintf(name, sizeof name, "all_modules.%d.W", unet->module++);
        x = psld_nn_fourier(
            unet->graph, t,
            psld_graph_fixed(unet->graph, name, 1, &config->nf, PSLD_INIT_NORMAL, config->fourier_scale));
    } else {
        x = psld_nn_positional(unet->graph, t, config->nf);
    }
    if (!config->noise_cond) return PSLD_NONE;
    if (config->augment) x = join_augmentation(unet, x);
    x = time_dense(unet, x, 4 * config->nf);
    x = time_dense(unet, psld_nn_activate(unet->graph, x, config->nonlinearity), 4 * config->nf);
    return psld_nn_activate(unet->graph, x, config->nonlinearity);
}

static void push(psld_unet *unet, psld_id h)
{
    unet->skips[unet->skip_count++] = h;
}

/* From one level to the next; *pyramid is the input, made smaller along with it. */
static psld_id step_down(psld_unet *unet, psld_id h, psld_id *pyramid)
{
    const psld_network_config *config = unet->config;
    int channels = channels_of(unet, h);
    if (config->resblock_type == PSLD_BLOCK_DDPM)
        h = psld_unet_resize(unet, h, channels, PSLD_DOWN, config->resamp_with_conv);
    else
        h = psld_unet_residual(unet, h, channels, PSLD_DOWN);
    if (config->progressive_input == PSLD_PROGRESSIVE_SKIP) {
        *pyramid = psld_unet_resample(unet, *pyramid, PSLD_DOWN);
        h = psld_unet_combine(unet, *pyramid, h);
    } else if (config->progressive_input == PSLD_PROGRESSIVE_RESIDUAL) {
        *pyramid = psld_unet_resize(unet, *pyramid, channels, PSLD_DOWN, 1);
        h = *pyramid = psld_unet_add(unet, *pyramid, h);
    }
    return h;
}

psld_id psld_unet_encode(psld_unet *unet, psld_id z, psld_id t)
{
    const psld_network_config *config = unet->config;
    psld_id pyramid = z;
    unet->time = embed_time(unet, t);
    psld_id h = psld_unet_enter(unet, z, config->nf);
    push(unet, h);
    for (int level = 0; level < config->levels; level++) {
        for (int block = 0; block < config->num_res_blocks; block++) {
            h = psld_unet_residual(unet, h, config->nf * config->ch_mult[level], PSLD_KEEP);
            if (psld_unet_attends(unet, h)) h = psld_unet_attention(unet, h);
            push(unet, h);
        }
        if (level == config->levels - 1) break;
        h = step_down(unet, h, &pyramid);
        push(unet, h);
    }
    int channels = channels_of(unet, h);
    h = psld_unet_residual(unet, h, channels, PSLD_KEEP);
    h = psld_unet_attention(unet, h);
    return psld_unet_residual(unet, h, channels, PSLD_KEEP);
}
