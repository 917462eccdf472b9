/* The encoder of U-Nets: embedding of time and label, all levels down, and the middle. */
#include <math.h>
#include <stdio.h>

#include "model/networks/ncsnpp_parts.h"
#include "nn/ops.h"

/* ---- Embedding --------------------------------------------------------------------------------------------------- */

static psld_id time_dense(psld_unet *unet, psld_id x, int channels)
{
    psld_id y = psld_unet_dense(unet, "", x, channels);
    unet->module++;
    return y;
}

/* Adds a linear map of the augmentation to the embedding of the time. It has no bias, so it adds nothing for images
 * without augmentation. */
static psld_id join_augmentation(psld_unet *unet, psld_id x)
{
    int shape[2] = {psld_unet_channels_of(unet, x), PSLD_AUGMENT_INPUTS};
    psld_id w = psld_graph_parameter(unet->graph, "augment.weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    if (unet->inputs.augment == PSLD_NONE) return x;
    return psld_nn_sum(unet->graph, x, psld_nn_linear(unet->graph, unet->inputs.augment, w, 0), 1);
}

/* The vector of a class is a column of the weight, times sqrt(classes): initial weights are smaller for more classes, and
 * the vectors are to be as large as the embedding (Karras et al. 2022). */
psld_id psld_join_label(const psld_network_config *config, psld_graph *graph, psld_id label, psld_id embedding)
{
    int shape[2] = {psld_graph_shape(graph, embedding).c, config->classes};
    psld_id w = psld_graph_parameter(graph, "label.weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    if (label == PSLD_NONE) return embedding;
    label = psld_nn_scale(graph, label, sqrt(config->classes));
    return psld_nn_sum(graph, embedding, psld_nn_linear(graph, label, w, 0), 1);
}

psld_id psld_unet_embed(psld_unet *unet)
{
    const psld_network_config *config = unet->config;
    psld_id x, t = unet->inputs.t;
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
    if (config->classes) x = psld_join_label(config, unet->graph, unet->inputs.label, x);
    x = time_dense(unet, x, 4 * config->nf);
    x = time_dense(unet, psld_nn_activate(unet->graph, x, config->nonlinearity), 4 * config->nf);
    return psld_nn_activate(unet->graph, x, config->nonlinearity);
}

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

static void push_skip(psld_unet *unet, psld_id h)
{
    unet->skips[unet->skip_count++] = h;
}

/* From one level to the next; *pyramid is the input in the size of the level. */
static psld_id encode_step_down(psld_unet *unet, psld_id h, int level, psld_id *pyramid)
{
    const psld_network_config *config = unet->config;
    int channels = psld_unet_channels_of(unet, h);
    psld_unet_at(unet, PSLD_AT_DOWN, level, 0);
    if (psld_unet_blocks_resize(unet, level, 0))
        h = psld_unet_residual(unet, h, channels, PSLD_DOWN);
    else
        h = psld_unet_resize(unet, h, channels, PSLD_DOWN, config->resamp_with_conv);
    psld_unet_at(unet, PSLD_AT_DOWN_PYRAMID, level, 0);
    if (config->progressive_input == PSLD_PROGRESSIVE_SKIP) {
        *pyramid = psld_unet_resample(unet, *pyramid, PSLD_DOWN);
        h = psld_unet_combine(unet, *pyramid, h);
    } else if (config->progressive_input == PSLD_PROGRESSIVE_RESIDUAL) {
        *pyramid = psld_unet_resize(unet, *pyramid, channels, PSLD_DOWN, 1);
        h = *pyramid = psld_unet_add(unet, *pyramid, h);
    }
    return h;
}

/* Two blocks with attention between them. */
static psld_id encode_middle(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    int channels = psld_unet_channels_of(unet, h), level = config->levels - 1;
    psld_unet_style style = unet->style;
    if (config->without_middle) return h;
    if (config->mid_scale != 0) unet->style.sum /= config->mid_scale;
    unet->style.attention_groups = config->mid_attn_groups ? config->mid_attn_groups : style.attention_groups;
    psld_unet_at(unet, PSLD_AT_MIDDLE_BLOCK, level, 0);
    h = psld_unet_residual(unet, h, channels, PSLD_KEEP);
    psld_unet_at(unet, PSLD_AT_MIDDLE_ATTENTION, level, 0);
    if (!config->without_mid_attention) h = psld_unet_attention(unet, h);
    psld_unet_at(unet, PSLD_AT_MIDDLE_BLOCK, level, 1);
    h = psld_unet_residual(unet, h, channels, PSLD_KEEP);
    unet->style = style;
    return h;
}

/* Maps values from [0, 1] to [-1, 1], for networks that do this themselves. */
static psld_id centre_input(psld_unet *unet, psld_id z)
{
    psld_graph *graph = unet->graph;
    if (!unet->config->centre_input) return z;
    return psld_nn_sum(graph, psld_nn_scale(graph, z, 2), psld_nn_fill(graph, psld_graph_shape(graph, z), -1), 1);
}

psld_id psld_unet_encode(psld_unet *unet)
{
    const psld_network_config *config = unet->config;
    psld_id pyramid = centre_input(unet, unet->inputs.z);
    unet->time = unet->style.embed(unet);
    psld_unet_at(unet, PSLD_AT_ENTRY, 0, 0);
    psld_id h = psld_unet_enter(unet, pyramid, unet->style.first_channels);
    push_skip(unet, h);
    for (int level = 0; level < config->levels; level++) {
        for (int block = 0; block < config->num_res_blocks; block++) {
            psld_unet_at(unet, PSLD_AT_DOWN_BLOCK, level, block);
            h = psld_unet_residual(unet, h, psld_unet_channels(unet, level), PSLD_KEEP);
            psld_unet_at(unet, PSLD_AT_DOWN_ATTENTION, level, block);
            if (psld_unet_attends(unet, h, level, 0)) h = psld_unet_attention(unet, h);
            push_skip(unet, h);
        }
        if (level == config->levels - 1) break;
        h = encode_step_down(unet, h, level, &pyramid);
        push_skip(unet, h);
    }
    return encode_middle(unet, h);
}
