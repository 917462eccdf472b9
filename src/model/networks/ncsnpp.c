/* U-Nets: encoder, and a decoder that uses the skips of the encoder at each block. */
#include "model/networks/ncsnpp.h"

#include "nn/ops.h"

/* Output channels of the last convolution: some networks also predict a variance, which is not used here. */
static int out_channels(const psld_network_config *config)
{
    return config->learned_variance ? 2 * config->out_ch : config->out_ch;
}

/* Converts the decoder's state at a level to channels of the pyramid of outputs. */
static psld_id output_branch(psld_unet *unet, psld_id h, int level, int channels, double scale)
{
    psld_unet_at(unet, PSLD_AT_OUT_NORM, level, 0);
    h = psld_unet_norm(unet, h);
    psld_unet_at(unet, PSLD_AT_OUT_CONV, level, 0);
    return psld_unet_conv3(unet, h, channels, scale);
}

/* Continues the pyramid through this level. With `residual` it becomes the decoder's state. */
static psld_id grow_pyramid(psld_unet *unet, psld_id h, int level, psld_id *pyramid)
{
    const psld_network_config *config = unet->config;
    int last_level = level == config->levels - 1, channels = psld_graph_shape(unet->graph, h).c;
    if (config->progressive == PSLD_PROGRESSIVE_SKIP) {
        psld_id grown = last_level ? PSLD_NONE : psld_unet_resample(unet, *pyramid, PSLD_UP);
        psld_id branch = output_branch(unet, h, level, out_channels(config), config->init_scale);
        *pyramid = last_level ? branch : psld_nn_sum(unet->graph, grown, branch, 1);
    } else if (config->progressive == PSLD_PROGRESSIVE_RESIDUAL) {
        if (last_level) {
            *pyramid = output_branch(unet, h, level, channels, 1);
        } else {
            *pyramid = psld_unet_resize(unet, *pyramid, channels, PSLD_UP, 1);
            h = *pyramid = psld_unet_add(unet, *pyramid, h);
        }
    }
    return h;
}

static psld_id step_up(psld_unet *unet, psld_id h, int level)
{
    int channels = psld_graph_shape(unet->graph, h).c;
    psld_unet_at(unet, PSLD_AT_UP, level, 0);
    if (psld_unet_blocks_resize(unet, level, 1)) return psld_unet_residual(unet, h, channels, PSLD_UP);
    return psld_unet_resize(unet, h, channels, PSLD_UP, unet->config->resamp_with_conv);
}

static psld_id rise_through_level(psld_unet *unet, psld_id h, int level)
{
    int blocks = unet->config->num_res_blocks;
    for (int block = 0; block <= blocks; block++) {
        psld_unet_at(unet, PSLD_AT_UP_BLOCK, level, block);
        h = psld_nn_concat(unet->graph, h, unet->skips[--unet->skip_count]);
        h = psld_unet_residual(unet, h, psld_unet_channels(unet, level), PSLD_KEEP);
        psld_unet_at(unet, PSLD_AT_UP_ATTENTION, level, block);
        int due = block == blocks || unet->style.attends_every_time;
        if (due && psld_unet_attends(unet, h, level, 1)) h = psld_unet_attention(unet, h);
    }
    return h;
}

static psld_id unet_leave(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    psld_unet_at(unet, PSLD_AT_OUT_NORM, 0, 0);
    h = psld_unet_norm(unet, h);
    psld_unet_at(unet, PSLD_AT_OUT_CONV, 0, 0);
    return psld_unet_leave(unet, h, out_channels(config), config->init_scale);
}

static psld_id unet_decode(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    psld_id pyramid = PSLD_NONE;
    for (int level = config->levels - 1; level >= 0; level--) {
        h = rise_through_level(unet, h, level);
        h = grow_pyramid(unet, h, level, &pyramid);
        if (level > 0) h = step_up(unet, h, level);
    }
    return config->progressive == PSLD_PROGRESSIVE_SKIP ? pyramid : unet_leave(unet, h);
}

psld_status psld_ncsnpp_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                              psld_id *out)
{
    psld_unet unet;
    psld_unet_begin(&unet, config, graph, inputs);
    *out = unet_decode(&unet, psld_unet_encode(&unet));
    if (config->learned_variance) *out = psld_nn_slice(graph, *out, 0, config->out_ch);
    return psld_graph_status(graph);
}
