/* A network for data that is a vector: residual blocks h + B act(A act(h) + T e), e the activated time embedding. */
#include <stdio.h>

#include "model/networks/ncsnpp.h"
#include "nn/ops.h"

static psld_id mlp_linear(psld_graph *graph, const char *name, psld_id x, int width, double scale)
{
    char text[PSLD_PARAMETER_NAME];
    int shape[2] = {width, psld_graph_shape(graph, x).c};
    snprintf(text, sizeof text, "%s.weight", name);
    psld_id w = psld_graph_parameter(graph, text, 2, shape, PSLD_INIT_UNIFORM, scale == 0 ? 1e-10 : scale);
    snprintf(text, sizeof text, "%s.bias", name);
    psld_id b = psld_graph_parameter(graph, text, 1, shape, PSLD_INIT_ZEROS, 1);
    return psld_nn_bias(graph, psld_nn_linear(graph, x, w, 0), b);
}

static psld_id mlp_embed(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs)
{
    psld_id e, t = inputs->t;
    if (config->embedding_type == PSLD_EMBED_FOURIER) {
        psld_id w = psld_graph_fixed(graph, "time.W", 1, &config->nf, PSLD_INIT_NORMAL, config->fourier_scale);
        e = psld_nn_fourier(graph, t, w);
    } else {
        e = psld_nn_positional(graph, t, config->nf);
    }
    if (config->classes) e = psld_join_label(config, graph, inputs->label, e);
    e = psld_nn_activate(graph, mlp_linear(graph, "time.0", e, config->nf, 1), config->nonlinearity);
    return psld_nn_activate(graph, mlp_linear(graph, "time.1", e, config->nf, 1), config->nonlinearity);
}

static psld_id mlp_block(const psld_network_config *config, psld_graph *graph, int number, psld_id h, psld_id e)
{
    char name[32];
    snprintf(name, sizeof name, "blocks.%d.0", number);
    psld_id r = mlp_linear(graph, name, psld_nn_activate(graph, h, config->nonlinearity), config->nf, 1);
    if (e != PSLD_NONE) {
        snprintf(name, sizeof name, "blocks.%d.time", number);
        r = psld_nn_bias(graph, r, mlp_linear(graph, name, e, config->nf, 1));
    }
    r = psld_nn_dropout(graph, psld_nn_activate(graph, r, config->nonlinearity), config->dropout);
    snprintf(name, sizeof name, "blocks.%d.1", number);
    return psld_nn_sum(graph, h, mlp_linear(graph, name, r, config->nf, 1), 1);
}

psld_status psld_mlp_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                           psld_id *out)
{
    psld_id e = config->noise_cond ? mlp_embed(config, graph, inputs) : PSLD_NONE;
    psld_id h = mlp_linear(graph, "in", inputs->z, config->nf, 1);
    for (int i = 0; i < config->num_res_blocks; i++) h = mlp_block(config, graph, i, h, e);
    *out =
        mlp_linear(graph, "out", psld_nn_activate(graph, h, config->nonlinearity), config->out_ch, config->init_scale);
    return psld_graph_status(graph);
}
