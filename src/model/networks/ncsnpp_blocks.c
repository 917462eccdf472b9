/* The blocks of U-Nets (Song et al. 2021), parameter for parameter.
 *
 * A 1x1 convolution is computed before the upsampling that it would follow, on a quarter of the pixels, with the same
 * result. */
#include "model/networks/ncsnpp_parts.h"
#include "nn/ops.h"

static psld_id norm_part(psld_unet *unet, const char *part, psld_id x, psld_activation activation)
{
    return psld_unet_norm_in_groups(unet, part, x, unet->style.groups, activation);
}

psld_id psld_unet_conv3(psld_unet *unet, psld_id x, int channels, double scale)
{
    psld_id y = psld_unet_conv3_part(unet, "", x, channels, scale);
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
    psld_id h = psld_unet_bias(unet, psld_unet_convolve(unet, "", z, channels, p.size, 1, p.stride, p.pad), "", "bias");
    unet->module++;
    return h;
}

psld_id psld_unet_leave(psld_unet *unet, psld_id h, int channels, double scale)
{
    if (unet->config->patch == 1) return psld_unet_conv3(unet, h, channels, scale);
    patches p = patches_of(unet->config);
    psld_shape s = psld_graph_shape(unet->graph, h);
    int shape[4] = {s.c, channels, p.size, p.size}, pixels[2] = {s.h * p.stride[0], s.w * p.stride[1]};
    psld_id w = psld_unet_parameter(unet, "", "weight", 4, shape, PSLD_INIT_UNIFORM, scale);
    h = psld_unet_bias(unet, psld_nn_conv_adjoint(unet->graph, h, w, p.stride, p.pad, pixels), "", "bias");
    unet->module++;
    return h;
}

psld_id psld_unet_norm(psld_unet *unet, psld_id x)
{
    psld_id y = norm_part(unet, "", x, unet->style.out_activation);
    unet->module++;
    return y;
}

/* The 1x1 convolution beside a change of size: on the smaller image. The bias goes last where a filter fades at the
 * border. */
static psld_id resized_shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    const char *part = unet->style.shortcut;
    if (resize == PSLD_UP) {
        psld_id y = psld_unet_convolve(unet, part, x, channels, 1, 1, psld_unet_once, psld_unet_nowhere);
        if (!unet->config->fir) return psld_unet_resample(unet, psld_unet_bias(unet, y, part, "bias"), resize);
        return psld_unet_bias(unet, psld_unet_resample(unet, y, resize), part, "bias");
    }
    x = psld_unet_resample(unet, x, resize);
    return psld_unet_bias(unet, psld_unet_convolve(unet, part, x, channels, 1, 1, psld_unet_once, psld_unet_nowhere),
                          part, "bias");
}

static psld_id residual_shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    int same = psld_unet_channels_of(unet, x) == channels;
    if (same && (resize == PSLD_KEEP || !unet->style.resized_shortcut)) return psld_unet_resample(unet, x, resize);
    if (unet->style.linear_shortcut)
        return psld_unet_map_pixels(
            unet, x,
            psld_unet_map_parameters(unet, unet->style.shortcut, psld_unet_channels_of(unet, x), channels, 0.1));
    return resized_shortcut(unet, x, channels, resize);
}

/* The projection of the time embedding exists, unused, also in a network without the input t. */
static psld_id add_time(psld_unet *unet, psld_id h)
{
    int channels = psld_unet_channels_of(unet, h), shape[2] = {channels, 4 * unet->config->nf};
    const char *part = unet->style.time;
    if (unet->time != PSLD_NONE) return psld_nn_bias(unet->graph, h, psld_unet_dense(unet, part, unet->time, channels));
    psld_unet_parameter(unet, part, "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    psld_unet_parameter(unet, part, "bias", 1, shape, PSLD_INIT_ZEROS, 1);
    return h;
}

/* The second normalisation, with the time before or after it, and the activation. */
static psld_id norm_with_time(psld_unet *unet, psld_id h)
{
    psld_activation activation = unet->config->nonlinearity;
    if (!unet->style.scale_shift) return norm_part(unet, unet->style.norm1, add_time(unet, h), activation);
    psld_id by = psld_unet_dense(unet, unet->style.time, unet->time, 2 * psld_unet_channels_of(unet, h));
    h = psld_nn_modulate(unet->graph, norm_part(unet, unet->style.norm1, h, PSLD_LINEAR), by);
    return psld_nn_activate(unet->graph, h, activation);
}

psld_id psld_unet_residual(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    const psld_network_config *config = unet->config;
    psld_id h = norm_part(unet, unet->style.norm0, x, config->nonlinearity);
    h = psld_unet_resample(unet, h, resize);
    h = psld_unet_conv3_part(unet, unet->style.conv0, h, channels, 1);
    h = norm_with_time(unet, h);
    h = psld_nn_dropout(unet->graph, h, config->dropout);
    h = psld_unet_conv3_part(unet, unet->style.conv1, h, channels, config->init_scale);
    x = residual_shortcut(unet, x, channels, resize);
    unet->module++;
    return psld_unet_add(unet, x, h);
}

psld_id psld_unet_combine(psld_unet *unet, psld_id pyramid, psld_id h)
{
    int channels = psld_unet_channels_of(unet, h);
    const char *part = unet->style.scope ? "" : "Conv_0";
    psld_id p = psld_unet_bias(
        unet, psld_unet_convolve(unet, part, pyramid, channels, 1, 1, psld_unet_once, psld_unet_nowhere), part, "bias");
    unet->module++;
    if (unet->config->progressive_combine == PSLD_COMBINE_CAT) return psld_nn_concat(unet->graph, p, h);
    return psld_nn_sum(unet->graph, p, h, 1);
}
