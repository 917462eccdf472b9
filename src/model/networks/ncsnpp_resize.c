/* Changes of size in U-Nets (Song et al. 2021).
 *
 * The filter of an upsampling convolution comes before the convolution, with the same result where both are plain: the
 * filter then runs over the border so that nothing is cut off in between. */
#include "model/networks/ncsnpp_parts.h"
#include "nn/ops.h"

/* The taps of the filter along one axis, reversed (resampling correlates, the reference convolves), with sum `gain`. */
static void fir_taps(const psld_network_config *config, double gain, float *tap)
{
    double sum = 0;
    for (int i = 0; i < config->fir_taps; i++) sum += config->fir_kernel[i];
    for (int i = 0; i < config->fir_taps; i++)
        tap[i] = (float)(config->fir_kernel[config->fir_taps - 1 - i] * gain / sum);
}

/* The filter with `extra` more zeros before the image and `extra` more pixels of the result behind it. */
static psld_id filter_image(psld_unet *unet, psld_id x, int up, int down, int pad, int extra)
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
        return resize == PSLD_UP ? filter_image(unet, x, 2, 1, (taps - 1) / 2 + 1, 0)
                                 : filter_image(unet, x, 1, 2, (taps - 1) / 2, 0);
    if (resize == PSLD_UP) return psld_nn_resample(unet->graph, x, 2, 1, 2, copies, 1, twice);
    return psld_nn_resample(unet->graph, x, 1, 2, 2, mean, 0, half);
}

/* Zeros between the pixels, the convolution with all of its border, the filter; here the filter comes first. */
static psld_id filtered_up(psld_unet *unet, psld_id x, int channels)
{
    int taps = unet->config->fir_taps;
    const char *part = unet->style.resize;
    psld_id wide = filter_image(unet, x, 2, 1, (taps + 1) / 2 + 1, 2);
    return psld_unet_bias(unet, psld_unet_convolve(unet, part, wide, channels, 3, 1, psld_unet_once, psld_unet_nowhere),
                          part, "bias");
}

static psld_id filtered_down(psld_unet *unet, psld_id x, int channels)
{
    static const int twice[2] = {2, 2};
    const char *part = unet->style.resize;
    psld_id wide = filter_image(unet, x, 1, 1, (unet->config->fir_taps + 1) / 2, 1);
    return psld_unet_bias(unet, psld_unet_convolve(unet, part, wide, channels, 3, 1, twice, psld_unet_nowhere), part,
                          "bias");
}

psld_id psld_unet_resize(psld_unet *unet, psld_id x, int channels, psld_resize resize, int with_conv)
{
    static const int twice[2] = {2, 2}, behind[4] = {0, 0, 1, 1};
    const char *part = unet->style.resize;
    const int *pad = unet->style.down_pad ? psld_unet_around : behind;
    psld_id y;
    if (!with_conv)
        y = psld_unet_resample(unet, x, resize);
    else if (unet->config->fir)
        y = resize == PSLD_UP ? filtered_up(unet, x, channels) : filtered_down(unet, x, channels);
    else if (resize == PSLD_UP)
        y = psld_unet_conv3_part(unet, part, psld_unet_resample(unet, x, resize), channels, 1);
    else
        y = psld_unet_bias(unet, psld_unet_convolve(unet, part, x, channels, 3, 1, twice, pad), part, "bias");
    unet->module++;
    return y;
}
