/* The blocks of U-Nets (Song et al. 2021), parameter for parameter.
 *
 * Two things are done in another order than written there, with the same result: a 1x1 convolution before the
 * upsampling that it would follow, on a quarter of the pixels; and the filter of an upsampling convolution before the
 * convolution, where both are plain (the filter then runs over the border so that nothing is cut off in between). */
#include <math.h>
#include <stdio.h>

#include "model/networks/ncsnpp.h"
#include "nn/ops.h"

enum { MAX_HEADS = 512 };

static const int once[2] = {1, 1}, around[4] = {1, 1, 1, 1}, nowhere[4] = {0, 0, 0, 0};

/* <scope>[<part>.]<what> */
static psld_id parameter(psld_unet *unet, const char *part, const char *what, int rank, const int *shape,
                         psld_init init, double scale)
{
    char name[PSLD_PARAMETER_NAME];
    if (!unet->style.scope) snprintf(unet->scope, sizeof unet->scope, "all_modules.%d.", unet->module);
    snprintf(name, sizeof name, "%s%s%s%s", unet->scope, part, *part ? "." : "", what);
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

psld_id psld_unet_dense(psld_unet *unet, const char *part, psld_id x, int channels)
{
    int shape[2] = {channels, channels_of(unet, x)};
    psld_id w = parameter(unet, part, "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    return add_bias(unet, psld_nn_linear(unet->graph, x, w, 0), part, "bias");
}

/* A map of all pixels: a matrix, [in][out] if `turned` ("network in network") or [out][in], and a vector. */
typedef struct pixel_map {
    psld_id w, b;
    int turned;
} pixel_map;

static pixel_map map_parameters(psld_unet *unet, const char *part, int in, int out, double scale)
{
    const psld_unet_style *style = &unet->style;
    pixel_map made = {.turned = style->maps_turned};
    int shape[4] = {made.turned ? in : out, made.turned ? out : in, 1, 1};
    made.w = parameter(unet, part, style->weight, style->map_rank, shape, PSLD_INIT_UNIFORM, scale);
    made.b = parameter(unet, part, style->bias, 1, &out, PSLD_INIT_ZEROS, 1);
    return made;
}

static psld_id map_pixels(psld_unet *unet, psld_id x, pixel_map map)
{
    return psld_nn_bias(unet->graph, psld_nn_linear(unet->graph, x, map.w, map.turned), map.b);
}

static psld_id norm_in_groups(psld_unet *unet, const char *part, psld_id x, int groups, psld_activation activation)
{
    int channels = channels_of(unet, x);
    if (groups == 0) groups = channels / 4 < 32 ? channels / 4 : 32;
    psld_id weight = parameter(unet, part, "weight", 1, &channels, PSLD_INIT_ONES, 1);
    psld_id bias = parameter(unet, part, "bias", 1, &channels, PSLD_INIT_ZEROS, 1);
    return psld_nn_group_norm(unet->graph, x, weight, bias, groups, unet->style.eps, activation);
}

static psld_id norm(psld_unet *unet, const char *part, psld_id x, psld_activation activation)
{
    return norm_in_groups(unet, part, x, unet->style.groups, activation);
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
    const char *part = unet->style.resize;
    psld_id wide = filter(unet, x, 2, 1, (taps + 1) / 2 + 1, 2);
    return add_bias(unet, convolve(unet, part, wide, channels, 3, 1, once, nowhere), part, "bias");
}

static psld_id filtered_down(psld_unet *unet, psld_id x, int channels)
{
    static const int twice[2] = {2, 2};
    const char *part = unet->style.resize;
    psld_id wide = filter(unet, x, 1, 1, (unet->config->fir_taps + 1) / 2, 1);
    return add_bias(unet, convolve(unet, part, wide, channels, 3, 1, twice, nowhere), part, "bias");
}

psld_id psld_unet_resize(psld_unet *unet, psld_id x, int channels, psld_resize resize, int with_conv)
{
    static const int twice[2] = {2, 2}, behind[4] = {0, 0, 1, 1};
    const char *part = unet->style.resize;
    const int *pad = unet->style.down_pad ? around : behind;
    psld_id y;
    if (!with_conv)
        y = psld_unet_resample(unet, x, resize);
    else if (unet->config->fir)
        y = resize == PSLD_UP ? filtered_up(unet, x, channels) : filtered_down(unet, x, channels);
    else if (resize == PSLD_UP)
        y = conv3(unet, part, psld_unet_resample(unet, x, resize), channels, 1);
    else
        y = add_bias(unet, convolve(unet, part, x, channels, 3, 1, twice, pad), part, "bias");
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
    psld_id y = norm(unet, "", x, unet->style.out_activation);
    unet->module++;
    return y;
}

/* The 1x1 convolution beside a change of size: on the smaller image. The bias goes last where a filter fades at the
 * border. */
static psld_id resized_shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    const char *part = unet->style.shortcut;
    if (resize == PSLD_UP) {
        psld_id y = convolve(unet, part, x, channels, 1, 1, once, nowhere);
        if (!unet->config->fir) return psld_unet_resample(unet, add_bias(unet, y, part, "bias"), resize);
        return add_bias(unet, psld_unet_resample(unet, y, resize), part, "bias");
    }
    x = psld_unet_resample(unet, x, resize);
    return add_bias(unet, convolve(unet, part, x, channels, 1, 1, once, nowhere), part, "bias");
}

static psld_id shortcut(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    int same = channels_of(unet, x) == channels;
    if (same && (resize == PSLD_KEEP || !unet->style.resized_shortcut)) return psld_unet_resample(unet, x, resize);
    if (unet->style.linear_shortcut)
        return map_pixels(unet, x, map_parameters(unet, unet->style.shortcut, channels_of(unet, x), channels, 0.1));
    return resized_shortcut(unet, x, channels, resize);
}

/* The projection of the time embedding is there, unused, even in a network that does not see t. */
static psld_id add_time(psld_unet *unet, psld_id h)
{
    int channels = channels_of(unet, h), shape[2] = {channels, 4 * unet->config->nf};
    const char *part = unet->style.time;
    if (unet->time != PSLD_NONE) return psld_nn_bias(unet->graph, h, psld_unet_dense(unet, part, unet->time, channels));
    parameter(unet, part, "weight", 2, shape, PSLD_INIT_UNIFORM, 1);
    parameter(unet, part, "bias", 1, shape, PSLD_INIT_ZEROS, 1);
    return h;
}

/* The second normalisation, which the time enters before or behind, and the activation. */
static psld_id norm_with_time(psld_unet *unet, psld_id h)
{
    psld_activation activation = unet->config->nonlinearity;
    if (!unet->style.scale_shift) return norm(unet, unet->style.norm1, add_time(unet, h), activation);
    psld_id by = psld_unet_dense(unet, unet->style.time, unet->time, 2 * channels_of(unet, h));
    h = psld_nn_modulate(unet->graph, norm(unet, unet->style.norm1, h, PSLD_LINEAR), by);
    return psld_nn_activate(unet->graph, h, activation);
}

psld_id psld_unet_residual(psld_unet *unet, psld_id x, int channels, psld_resize resize)
{
    const psld_network_config *config = unet->config;
    psld_id h = norm(unet, unet->style.norm0, x, config->nonlinearity);
    h = psld_unet_resample(unet, h, resize);
    h = conv3(unet, unet->style.conv0, h, channels, 1);
    h = norm_with_time(unet, h);
    h = psld_nn_dropout(unet->graph, h, config->dropout);
    h = conv3(unet, unet->style.conv1, h, channels, config->init_scale);
    x = shortcut(unet, x, channels, resize);
    unet->module++;
    return psld_unet_add(unet, x, h);
}

/* The maps of attention. */
typedef struct attention_maps {
    pixel_map q, k, v, o;
    int heads, inner; /* channels of all heads together */
} attention_maps;

/* One of three maps whose rows come in turn. */
static pixel_map every_third(psld_unet *unet, pixel_map all, int which, int count)
{
    psld_graph *graph = unet->graph;
    return (pixel_map){psld_nn_pick(graph, all.w, which, 3, count), psld_nn_pick(graph, all.b, which, 3, count), 0};
}

static attention_maps attention_parameters(psld_unet *unet, int channels)
{
    const psld_unet_style *style = &unet->style;
    attention_maps maps = {.heads = 1, .inner = channels};
    if (style->head_channels) {
        maps.heads = channels / style->head_channels;
        maps.inner = style->heads_share ? channels : maps.heads * style->head_channels;
    }
    if (style->k) {
        maps.q = map_parameters(unet, style->q, channels, maps.inner, 0.1);
        maps.k = map_parameters(unet, style->k, channels, maps.inner, 0.1);
        maps.v = map_parameters(unet, style->v, channels, maps.inner, 0.1);
    } else {
        pixel_map all = map_parameters(unet, style->q, channels, 3 * maps.inner, 0.1);
        maps.q = every_third(unet, all, 0, maps.inner);
        maps.k = every_third(unet, all, 1, maps.inner);
        maps.v = every_third(unet, all, 2, maps.inner);
    }
    maps.o = map_parameters(unet, style->o, maps.inner, channels, unet->config->init_scale);
    return maps;
}

/* With queries, keys and values q = h Wq + bq, k = h Wk + bk, v = h Wv + bv: what is the same for all keys does not
 * change a softmax, and its weights P sum to one. So
 *
 *     q k' = (h Wq Wk' + bq Wk') h' + the same for all keys,    P v Wo + bo = P h (Wv Wo) + (bv Wo + bo),
 *
 * which is two maps of all pixels instead of four. The bias of the keys has no effect. */
static psld_id attend_with_one_head(psld_unet *unet, psld_id h, const attention_maps *m)
{
    psld_graph *graph = unet->graph;
    int turn = !m->q.turned;
    pixel_map qk = {psld_nn_product(graph, m->q.w, turn, m->k.w, !turn),
                    psld_nn_product(graph, m->q.b, 0, m->k.w, !turn), 1};
    pixel_map vo = {psld_nn_product(graph, m->v.w, turn, m->o.w, turn),
                    psld_nn_sum(graph, psld_nn_product(graph, m->v.b, 0, m->o.w, turn), m->o.b, 1), 1};
    return map_pixels(unet, psld_nn_attention(graph, map_pixels(unet, h, qk), h, h), vo);
}

static psld_id attend_with_heads(psld_unet *unet, psld_id h, const attention_maps *m)
{
    psld_graph *graph = unet->graph;
    psld_id q = map_pixels(unet, h, m->q), k = map_pixels(unet, h, m->k), v = map_pixels(unet, h, m->v);
    psld_id parts[MAX_HEADS];
    int width = m->inner / m->heads;
    for (int head = 0; head < m->heads; head++)
        parts[head] = psld_nn_attention(graph, psld_nn_slice(graph, q, head * width, width),
                                        psld_nn_slice(graph, k, head * width, width),
                                        psld_nn_slice(graph, v, head * width, width));
    return map_pixels(unet, psld_nn_join(graph, m->heads, parts), m->o);
}

static psld_id fail_heads(psld_unet *unet, int channels)
{
    return psld_graph_fail(unet->graph,
                           psld_fail(PSLD_BAD_INPUT,
                                     "attention of %d channels in heads of %d: expected 1 to %d heads of equal size",
                                     channels, unet->style.head_channels, MAX_HEADS));
}

psld_id psld_unet_attention(psld_unet *unet, psld_id x)
{
    const psld_unet_style *style = &unet->style;
    int channels = channels_of(unet, x), heads = style->head_channels ? channels / style->head_channels : 1;
    psld_id h = x;
    if (heads == 0 && style->heads_share) return x;
    if (heads < 1 || heads > MAX_HEADS || (style->heads_share && channels % heads)) return fail_heads(unet, channels);
    if (style->attention_groups >= 0)
        h = norm_in_groups(unet, style->attention_norm, x, style->attention_groups, PSLD_LINEAR);
    attention_maps maps = attention_parameters(unet, channels);
    int is_plain = heads == 1 && maps.inner == channels;
    h = is_plain ? attend_with_one_head(unet, h, &maps) : attend_with_heads(unet, h, &maps);
    unet->module++;
    return psld_unet_add(unet, x, h);
}

psld_id psld_unet_combine(psld_unet *unet, psld_id pyramid, psld_id h)
{
    int channels = channels_of(unet, h);
    const char *part = unet->style.scope ? "" : "Conv_0";
    psld_id p = add_bias(unet, convolve(unet, part, pyramid, channels, 1, 1, once, nowhere), part, "bias");
    unet->module++;
    if (unet->config->progressive_combine == PSLD_COMBINE_CAT) return psld_nn_concat(unet->graph, p, h);
    return psld_nn_sum(unet->graph, p, h, 1);
}

/* ---- Encoder ----------------------------------------------------------------------------------------------------- */

static psld_id time_dense(psld_unet *unet, psld_id x, int channels)
{
    psld_id y = psld_unet_dense(unet, "", x, channels);
    unet->module++;
    return y;
}

/* Adds a linear map of what was done to the data to the embedding of the time. Without a bias it adds nothing where
 * nothing was done. */
static psld_id join_augmentation(psld_unet *unet, psld_id x)
{
    int shape[2] = {channels_of(unet, x), PSLD_AUGMENT_INPUTS};
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

static void push(psld_unet *unet, psld_id h)
{
    unet->skips[unet->skip_count++] = h;
}

/* From one level to the next; *pyramid is the input, made smaller along with it. */
static psld_id step_down(psld_unet *unet, psld_id h, int level, psld_id *pyramid)
{
    const psld_network_config *config = unet->config;
    int channels = channels_of(unet, h);
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
static psld_id middle(psld_unet *unet, psld_id h)
{
    const psld_network_config *config = unet->config;
    int channels = channels_of(unet, h), level = config->levels - 1;
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

/* Images with values from 0 to 1 to -1 to 1, for networks that do so themselves. */
static psld_id centred(psld_unet *unet, psld_id z)
{
    psld_graph *graph = unet->graph;
    if (!unet->config->centre_input) return z;
    return psld_nn_sum(graph, psld_nn_scale(graph, z, 2), psld_nn_fill(graph, psld_graph_shape(graph, z), -1), 1);
}

psld_id psld_unet_encode(psld_unet *unet)
{
    const psld_network_config *config = unet->config;
    psld_id pyramid = centred(unet, unet->inputs.z);
    unet->time = unet->style.embed(unet);
    psld_unet_at(unet, PSLD_AT_ENTRY, 0, 0);
    psld_id h = psld_unet_enter(unet, pyramid, unet->style.first_channels);
    push(unet, h);
    for (int level = 0; level < config->levels; level++) {
        for (int block = 0; block < config->num_res_blocks; block++) {
            psld_unet_at(unet, PSLD_AT_DOWN_BLOCK, level, block);
            h = psld_unet_residual(unet, h, psld_unet_channels(unet, level), PSLD_KEEP);
            psld_unet_at(unet, PSLD_AT_DOWN_ATTENTION, level, block);
            if (psld_unet_attends(unet, h, level, 0)) h = psld_unet_attention(unet, h);
            push(unet, h);
        }
        if (level == config->levels - 1) break;
        h = step_down(unet, h, level, &pyramid);
        push(unet, h);
    }
    return middle(unet, h);
}
