/* The families of U-Nets: names of parameters, embedding of time, and other properties. */
#include <math.h>
#include <stdio.h>

#include "model/networks/ncsnpp.h"
#include "nn/ops.h"

/* A name with a number for each @, and another for each #. */
static void fill_in(const char *name, int first, int second, char *text, size_t size)
{
    size_t used = 0;
    for (*text = 0; *name && used + 16 < size; name++)
        used += (size_t)(*name == '@'   ? snprintf(text + used, size - used, "%d", first)
                         : *name == '#' ? snprintf(text + used, size - used, "%d", second)
                                        : snprintf(text + used, size - used, "%c", *name));
}

/* ---- NCSN++ and DDPM++ ------------------------------------------------------------------------------------------- */

static psld_unet_style ncsnpp_style(const psld_network_config *c)
{
    int ddpm = c->resblock_type == PSLD_BLOCK_DDPM;
    return (psld_unet_style){
        .norm0 = "GroupNorm_0",
        .conv0 = "Conv_0",
        .time = "Dense_0",
        .norm1 = "GroupNorm_1",
        .conv1 = "Conv_1",
        .shortcut = ddpm ? "NIN_0" : "Conv_2",
        .resize = c->fir ? "Conv2d_0" : "Conv_0",
        .attention_norm = "GroupNorm_0",
        .q = "NIN_0",
        .k = "NIN_1",
        .v = "NIN_2",
        .o = "NIN_3",
        .weight = "W",
        .bias = "b",
        .maps_turned = 1,
        .map_rank = 2,
        .linear_shortcut = ddpm,
        .resized_shortcut = 1,
        .eps = 1e-6,
        .sum = c->skip_rescale ? sqrt(0.5) : 1,
        .first_channels = c->nf,
        .out_activation = c->nonlinearity,
        .embed = psld_unet_embed,
    };
}

/* ---- SongUNet and DhariwalUNet ----------------------------------------------------------------------------------- */

/* Modules are named after the height of their level. The last block of a level and its attention are one module. */
static void edm_scope(const psld_network_config *c, psld_unet_place place, int level, int number, char *text,
                      size_t size)
{
    static const struct {
        const char *name;
        int step; /* height of the level in its name */
    } names[PSLD_UNET_PLACES] = {
        [PSLD_AT_ENTRY] = {"enc.@x@_conv.", 0},
        [PSLD_AT_DOWN_BLOCK] = {"enc.@x@_block#.", 0},
        [PSLD_AT_DOWN_ATTENTION] = {"enc.@x@_block#.", 0},
        [PSLD_AT_DOWN] = {"enc.@x@_down.", 1},
        [PSLD_AT_DOWN_PYRAMID] = {"enc.@x@_aux_residual.", 1},
        [PSLD_AT_MIDDLE_BLOCK] = {"dec.@x@_in#.", 0},
        [PSLD_AT_MIDDLE_ATTENTION] = {"dec.@x@_in#.", 0},
        [PSLD_AT_UP_BLOCK] = {"dec.@x@_block#.", 0},
        [PSLD_AT_UP_ATTENTION] = {"dec.@x@_block#.", 0},
        [PSLD_AT_UP] = {"dec.@x@_up.", -1},
        [PSLD_AT_OUT_NORM] = {"dec.@x@_aux_norm.", 0},
        [PSLD_AT_OUT_CONV] = {"dec.@x@_aux_conv.", 0},
    };
    int height = c->image_size >> (level + names[place].step);
    const char *name = names[place].name;
    if (place == PSLD_AT_DOWN_PYRAMID && c->progressive_input == PSLD_PROGRESSIVE_SKIP) name = "enc.@x@_aux_skip.";
    if (c->kind == PSLD_NET_ADM && place == PSLD_AT_OUT_NORM) name = "out_norm.";
    if (c->kind == PSLD_NET_ADM && place == PSLD_AT_OUT_CONV) name = "out_conv.";
    fill_in(name, height, number, text, size);
}

/* The weight of a map whose input is zero or absent: only the parameter exists. */
static void unused_map(psld_unet *unet, const char *name, int in, int out)
{
    if (in) psld_graph_parameter(unet->graph, name, 2, (int[]){out, in}, PSLD_INIT_UNIFORM, 1);
}

static psld_id add_label(psld_unet *unet, psld_id x)
{
    const psld_network_config *c = unet->config;
    psld_graph *graph = unet->graph;
    int channels = psld_graph_shape(graph, x).c, is_song = c->kind == PSLD_NET_SONGUNET;
    if (!c->classes) return x;
    psld_id w = psld_graph_parameter(graph, "map_label.weight", 2, (int[]){channels, c->classes}, PSLD_INIT_UNIFORM, 1);
    psld_id label = is_song ? psld_nn_scale(graph, unet->inputs.label, sqrt(c->classes)) : unet->inputs.label;
    psld_id joined = psld_nn_sum(graph, x, psld_nn_linear(graph, label, w, 0), 1);
    if (!is_song) return joined;
    return psld_nn_bias(graph, joined, psld_graph_parameter(graph, "map_label.bias", 1, &channels, PSLD_INIT_ZEROS, 1));
}

static psld_id edm_embed(psld_unet *unet)
{
    const psld_network_config *c = unet->config;
    psld_graph *graph = unet->graph;
    int is_song = c->kind == PSLD_NET_SONGUNET, half = c->embedding_channels / 2;
    psld_id x, t = unet->inputs.t;
    if (c->embedding_type == PSLD_EMBED_FOURIER)
        x = psld_nn_fourier_plain(
            graph, t, psld_graph_fixed(graph, "map_noise.freqs", 1, &half, PSLD_INIT_NORMAL, c->fourier_scale));
    else
        x = psld_nn_positional_shifted(graph, t, c->embedding_channels, is_song ? 1 : 0, !is_song);
    if (is_song) x = add_label(unet, x);
    unused_map(unet, "map_augment.weight", c->augment_inputs, c->embedding_channels);
    unet->scope[0] = 0;
    x = psld_nn_activate(graph, psld_unet_dense(unet, "map_layer0", x, c->time_channels), PSLD_SILU);
    x = psld_unet_dense(unet, "map_layer1", x, c->time_channels);
    if (!is_song) x = add_label(unet, x);
    return psld_nn_activate(graph, x, PSLD_SILU);
}

static psld_unet_style edm_style(const psld_network_config *c)
{
    int is_song = c->kind == PSLD_NET_SONGUNET;
    return (psld_unet_style){
        .norm0 = "norm0",
        .conv0 = "conv0",
        .time = "affine",
        .norm1 = "norm1",
        .conv1 = "conv1",
        .shortcut = "skip",
        .resize = "",
        .attention_norm = "norm2",
        .q = "qkv",
        .o = "proj",
        .weight = "weight",
        .bias = "bias",
        .map_rank = 4,
        .resized_shortcut = is_song,
        .scale_shift = !is_song,
        .eps = is_song ? 1e-6 : 1e-5,
        .sum = is_song ? sqrt(0.5) : 1,
        .head_channels = is_song ? 0 : c->head_channels,
        .heads_share = 1,
        .first_channels = is_song ? c->nf : c->nf * c->ch_mult[0],
        .attends_every_time = !is_song,
        .out_activation = PSLD_SILU,
        .embed = edm_embed,
        .scope = edm_scope,
    };
}

/* ---- UNet2DModel ------------------------------------------------------------------------------------------------- */

static void unet2d_scope(const psld_network_config *c, psld_unet_place place, int level, int number, char *text,
                         size_t size)
{
    static const char *const names[PSLD_UNET_PLACES] = {
        [PSLD_AT_ENTRY] = "conv_in.",
        [PSLD_AT_DOWN_BLOCK] = "down_blocks.@.resnets.#.",
        [PSLD_AT_DOWN_ATTENTION] = "down_blocks.@.attentions.#.",
        [PSLD_AT_DOWN] = "down_blocks.@.downsamplers.0.",
        [PSLD_AT_DOWN_PYRAMID] = "",
        [PSLD_AT_MIDDLE_BLOCK] = "mid_block.resnets.#.",
        [PSLD_AT_MIDDLE_ATTENTION] = "mid_block.attentions.0.",
        [PSLD_AT_UP_BLOCK] = "up_blocks.@.resnets.#.",
        [PSLD_AT_UP_ATTENTION] = "up_blocks.@.attentions.#.",
        [PSLD_AT_UP] = "up_blocks.@.upsamplers.0.",
        [PSLD_AT_OUT_NORM] = "conv_norm_out.",
        [PSLD_AT_OUT_CONV] = "conv_out.",
    };
    int rises = place == PSLD_AT_UP_BLOCK || place == PSLD_AT_UP_ATTENTION || place == PSLD_AT_UP;
    fill_in(names[place], rises ? c->levels - 1 - level : level, number, text, size);
}

static psld_id two_maps(psld_unet *unet, const char *part, psld_id x)
{
    int channels = unet->config->time_channels;
    snprintf(unet->scope, sizeof unet->scope, "%s.", part);
    x = psld_nn_activate(unet->graph, psld_unet_dense(unet, "linear_1", x, channels), PSLD_SILU);
    return psld_unet_dense(unet, "linear_2", x, channels);
}

static psld_id unet2d_embed(psld_unet *unet)
{
    const psld_network_config *c = unet->config;
    psld_graph *graph = unet->graph;
    int channels = c->embedding_channels;
    psld_id x = psld_nn_positional_shifted(graph, unet->inputs.t, channels, c->freq_shift, c->cos_first), label;
    x = two_maps(unet, "time_embedding", x);
    if (c->classes && c->class_embedding == PSLD_CLASS_TIMESTEP) {
        label = psld_nn_positional_shifted(graph, unet->inputs.label, channels, c->freq_shift, c->cos_first);
        x = psld_nn_sum(graph, x, two_maps(unet, "class_embedding", label), 1);
    } else if (c->classes) {
        label = psld_graph_parameter(graph, "class_embedding.weight", 2, (int[]){c->classes, c->time_channels},
                                     PSLD_INIT_UNIFORM, 1);
        x = psld_nn_sum(graph, x, psld_nn_linear(graph, unet->inputs.label, label, 1), 1);
    }
    return psld_nn_activate(graph, x, c->nonlinearity);
}

static psld_unet_style unet2d_style(const psld_network_config *c)
{
    return (psld_unet_style){
        .norm0 = "norm1",
        .conv0 = "conv1",
        .time = "time_emb_proj",
        .norm1 = "norm2",
        .conv1 = "conv2",
        .shortcut = "conv_shortcut",
        .resize = "conv",
        .attention_norm = "group_norm",
        .q = "to_q",
        .k = "to_k",
        .v = "to_v",
        .o = "to_out.0",
        .weight = "weight",
        .bias = "bias",
        .map_rank = 2,
        .scale_shift = c->scale_shift,
        .groups = c->norm_groups,
        .attention_groups = c->norm_groups,
        .eps = c->norm_eps,
        .sum = 1,
        .head_channels = c->head_channels,
        .first_channels = c->nf * c->ch_mult[0],
        .attends_every_time = 1,
        .down_pad = c->down_pad,
        .out_activation = PSLD_SILU,
        .embed = unet2d_embed,
        .scope = unet2d_scope,
    };
}

/* ------------------------------------------------------------------------------------------------------------------ */

void psld_unet_begin(psld_unet *unet, const psld_network_config *config, psld_graph *graph,
                     const psld_network_inputs *inputs)
{
    *unet = (psld_unet){.graph = graph, .config = config, .inputs = *inputs};
    if (config->kind == PSLD_NET_UNET2D)
        unet->style = unet2d_style(config);
    else if (config->kind == PSLD_NET_SONGUNET || config->kind == PSLD_NET_ADM)
        unet->style = edm_style(config);
    else
        unet->style = ncsnpp_style(config);
}
