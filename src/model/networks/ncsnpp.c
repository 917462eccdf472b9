/* The NCSN++/DDPM++ U-Net: encoder, and a decoder that takes back what the encoder left at each block. */
#include "model/networks/ncsnpp.h"

#include "nn/ops.h"

/* What the decoder has at a level, brought to the pyramid of outputs. */
static psld_id output_branch(psld_unet *unet, psld_id h, int channels, double scale)
{
    return psld_unet_conv3(unet, psld_unet_norm(unet, h), channels, scale);
}

/* Carries the pyramid on through this level. With `residual` it becomes the decoder's own state. */
static psld_id grow_pyramid(psld_unet *unet, psld_id h, int last_level, psld_id *pyramid)
{
    const psld_network_config *config = unet->config;
    int channels = psld_graph_shape(unet->graph, h).c;
    if (config->progressive == PSLD_PROGRESSIVE_SKIP) {
        psld_id grown = last_level ? PSLD_NONE : psld_unet_resample(unet, *pyramid, PSLD_UP);
        psld_id branch = output_branch(unet, h, config->out_ch, config->init_scale);
        *pyramid = last_level ? branch : psld_nn_sum(unet->graph, grown, branch, 1);
    } else if (config->progressive == PSLD_PROGRESSIVE_RESIDUAL) {
        if (last_level) {
            *pyramid = output_branch(unet, h, channels, 1);
        } else {
            *pyramid = psld_unet_resize(unet, *pyramid, channels, PSLD_UP, 1);
            h = *pyramid = psld_unet_add(unet, *pyramid, h);
        }
    }
    return h;
}

static psld_id step_up(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    int channels = psld_graph_shape(unet->graph, h).c;
    if (config->resblock_type == PSLD_BLOCK_DDPM)
        return psld_unet_resize(unet, h, channels, PSLD_UP, config->resamp_with_conv);
    return psld_unet_residual(unet, h, channels, PSLD_UP);
}

static psld_id decode(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    psld_id pyramid = PSLD_NONE;
    for (int level = config->levels - 1; level >= 0; level--) {
        for (int block = 0; block <= config->num_res_blocks; block++) {
            h = psld_nn_concat(unet->graph, h, unet->skips[--unet->skip_count]);
            h = psld_unet_residual(unet, h, config->nf * config->ch_mult[level], PSLD_KEEP);
        }
        if (psld_unet_attends(unet, h)) h = psld_unet_attention(unet, h);
        h = grow_pyramid(unet, h, level == config->levels - 1, &pyramid);
        if (level > 0) h = step_up(unet, h);
    }
    if (config->progressive == PSLD_PROGRESSIVE_SKIP) return pyramid;
    return psld_unet_leave(unet, psld_unet_norm(unet, h), config->out_ch, config->init_scale);
}

psld_status psld_ncsnpp_build(const psld_network_config *config, psld_graph *graph, psld_id z, psld_id t,
                              psld_id augment, psld_id *out)
{
    psld_unet unet = {.graph = graph, .config = config, .augment = augment};
    *out = decode(&unet, psld_unet_encode(&unet, z, t));
    return psld_graph_status(graph);
}
