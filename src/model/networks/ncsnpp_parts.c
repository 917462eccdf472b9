/* Parameters, convolutions, maps of pixels and normalisation, with the names that files have for them. */
#include <stdio.h>

#include "model/networks/ncsnpp_parts.h"
#include "nn/ops.h"

psld_id psld_unet_parameter(psld_unet *unet, const char *part, const char *what, int rank, const int *shape,
                            psld_init init, double scale)
{
    char name[PSLD_PARAMETER_NAME];
    if (!unet->style.scope) snprintf(unet->scope, sizeof unet->scope, "all_modules.%d.", unet->module);
    snprintf(name, sizeof name, "%s%s%s%s", unet->scope, part, *part ? "." : "", what);
    return psld_graph_parameter(unet->graph, name, rank, shape, init, scale == 0 ? 1e-10 : scale);
}

int psld_unet_channels_of(const psld_unet *unet, psld_id x)
{
    return psld_graph_shape(unet->graph, x).c;
}

psld_id psld_unet_bias(psld_unet *unet, psld_id x, const char *part, const char *what)
{
    int channels = psld_unet_channels_of(unet, x);
    return psld_nn_bias(unet->graph, x, psld_unet_parameter(unet, part, what, 1, &channels, PSLD_INIT_ZEROS, 1));
}

psld_id psld_unet_convolve(psld_unet *unet, const char *part, psld_id x, int channels, int size, double scale,
                           const int stride[2], const int pad[4])
{
    int shape[4] = {channels, psld_unet_channels_of(unet, x), size, size};
    psld_id w = psld_unet_parameter(unet, part, "weight", 4, shape, PSLD_INIT_UNIFORM, scale);
    return psld_nn_conv(unet->graph, x, w, stride, pad, 0);
}

psld_id psld_unet_conv3_part(psld_unet *unet, const char *part, psld_id x, int channels, double scale)
{
    return psld_unet_bias(unet, psld_unet_convolve(unet, part, x, channels, 3, scale, psld_unet_once, psld_unet_around),
                          part, "bias");
}

psld_id psld_unet_dense(psld_unet *unet, const char *part, psld_id x, int channels)
{
    int shape[2] = {channels, psld_unet_channels_of(unet, x)};
    psld_id w = psld_unet_parameter(unet, part, "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    return psld_unet_bias(unet, psld_nn_linear(unet->graph, x, w, 0), part, "bias");
}

psld_unet_map psld_unet_map_parameters(psld_unet *unet, const char *part, int in, int out, double scale)
{
    const psld_unet_style *style = &unet->style;
    psld_unet_map made = {.turned = style->maps_turned};
    int shape[4] = {made.turned ? in : out, made.turned ? out : in, 1, 1};
    made.w = psld_unet_parameter(unet, part, style->weight, style->map_rank, shape, PSLD_INIT_UNIFORM, scale);
    made.b = psld_unet_parameter(unet, part, style->bias, 1, &out, PSLD_INIT_ZEROS, 1);
    return made;
}

psld_id psld_unet_map_pixels(psld_unet *unet, psld_id x, psld_unet_map map)
{
    return psld_nn_bias(unet->graph, psld_nn_linear(unet->graph, x, map.w, map.turned), map.b);
}

psld_id psld_unet_norm_in_groups(psld_unet *unet, const char *part, psld_id x, int groups, psld_activation activation)
{
    int channels = psld_unet_channels_of(unet, x);
    if (groups == 0) groups = channels / 4 < 32 ? channels / 4 : 32;
    psld_id weight = psld_unet_parameter(unet, part, "weight", 1, &channels, PSLD_INIT_ONES, 1);
    psld_id bias = psld_unet_parameter(unet, part, "bias", 1, &channels, PSLD_INIT_ZEROS, 1);
    return psld_nn_group_norm(unet->graph, x, weight, bias, groups, unet->style.eps, activation);
}

psld_id psld_unet_add(psld_unet *unet, psld_id a, psld_id b)
{
    return psld_nn_sum(unet->graph, a, b, unet->style.sum);
}

static int is_listed(int value, const int *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == value) return 1;
    return 0;
}

int psld_unet_attends(const psld_unet *unet, psld_id x, int level, int going_up)
{
    const psld_network_config *c = unet->config;
    if (is_listed(psld_graph_shape(unet->graph, x).w, c->attn_resolutions, c->attn_count)) return 1;
    return going_up ? is_listed(level + 1, c->attn_up, c->attn_up_count)
                    : is_listed(level + 1, c->attn_down, c->attn_down_count);
}

int psld_unet_blocks_resize(const psld_unet *unet, int level, int going_up)
{
    const psld_network_config *c = unet->config;
    if (c->resblock_type == PSLD_BLOCK_BIGGAN) return 1;
    return going_up ? is_listed(level + 1, c->block_up, c->block_up_count)
                    : is_listed(level + 1, c->block_down, c->block_down_count);
}

int psld_unet_channels(const psld_unet *unet, int level)
{
    return unet->config->nf * unet->config->ch_mult[level];
}

void psld_unet_at(psld_unet *unet, psld_unet_place place, int level, int number)
{
    if (unet->style.scope) unet->style.scope(unet->config, place, level, number, unet->scope, sizeof unet->scope);
}
