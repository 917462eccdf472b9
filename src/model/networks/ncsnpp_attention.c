/* Attention in U-Nets. */
#include "model/networks/ncsnpp_parts.h"
#include "nn/ops.h"

enum { MAX_HEADS = 512 };

/* The maps of attention. */
typedef struct attention_maps {
    psld_unet_map q, k, v, o;
    int heads, inner; /* channels of all heads together */
} attention_maps;

/* One of three maps with alternating rows. */
static psld_unet_map every_third(psld_unet *unet, psld_unet_map all, int which, int count)
{
    psld_graph *graph = unet->graph;
    return (psld_unet_map){psld_nn_pick(graph, all.w, which, 3, count), psld_nn_pick(graph, all.b, which, 3, count), 0};
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
        maps.q = psld_unet_map_parameters(unet, style->q, channels, maps.inner, 0.1);
        maps.k = psld_unet_map_parameters(unet, style->k, channels, maps.inner, 0.1);
        maps.v = psld_unet_map_parameters(unet, style->v, channels, maps.inner, 0.1);
    } else {
        psld_unet_map all = psld_unet_map_parameters(unet, style->q, channels, 3 * maps.inner, 0.1);
        maps.q = every_third(unet, all, 0, maps.inner);
        maps.k = every_third(unet, all, 1, maps.inner);
        maps.v = every_third(unet, all, 2, maps.inner);
    }
    maps.o = psld_unet_map_parameters(unet, style->o, maps.inner, channels, unet->config->init_scale);
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
    psld_unet_map qk = {psld_nn_product(graph, m->q.w, turn, m->k.w, !turn),
                        psld_nn_product(graph, m->q.b, 0, m->k.w, !turn), 1};
    psld_unet_map vo = {psld_nn_product(graph, m->v.w, turn, m->o.w, turn),
                        psld_nn_sum(graph, psld_nn_product(graph, m->v.b, 0, m->o.w, turn), m->o.b, 1), 1};
    return psld_unet_map_pixels(unet, psld_nn_attention(graph, psld_unet_map_pixels(unet, h, qk), h, h), vo);
}

static psld_id attend_with_heads(psld_unet *unet, psld_id h, const attention_maps *m)
{
    psld_graph *graph = unet->graph;
    psld_id q = psld_unet_map_pixels(unet, h, m->q), k = psld_unet_map_pixels(unet, h, m->k),
            v = psld_unet_map_pixels(unet, h, m->v);
    psld_id parts[MAX_HEADS];
    int width = m->inner / m->heads;
    for (int head = 0; head < m->heads; head++)
        parts[head] = psld_nn_attention(graph, psld_nn_slice(graph, q, head * width, width),
                                        psld_nn_slice(graph, k, head * width, width),
                                        psld_nn_slice(graph, v, head * width, width));
    return psld_unet_map_pixels(unet, psld_nn_join(graph, m->heads, parts), m->o);
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
    int channels = psld_unet_channels_of(unet, x), heads = style->head_channels ? channels / style->head_channels : 1;
    psld_id h = x;
    if (heads == 0 && style->heads_share) return x;
    if (heads < 1 || heads > MAX_HEADS || (style->heads_share && channels % heads)) return fail_heads(unet, channels);
    if (style->attention_groups >= 0)
        h = psld_unet_norm_in_groups(unet, style->attention_norm, x, style->attention_groups, PSLD_LINEAR);
    attention_maps maps = attention_parameters(unet, channels);
    int is_plain = heads == 1 && maps.inner == channels;
    h = is_plain ? attend_with_one_head(unet, h, &maps) : attend_with_heads(unet, h, &maps);
    unet->module++;
    return psld_unet_add(unet, x, h);
}
