/* The time-dependent classifier: the U-Net's encoder, then one linear map of everything that it gives. */
#include <stdio.h>

#include "model/networks/ncsnpp.h"
#include "nn/ops.h"

psld_status psld_classifier_parts(const psld_network_config *config, psld_graph *graph,
                                  const psld_network_inputs *inputs, psld_id *encoded, psld_id *out)
{
    psld_unet unet;
    psld_unet_begin(&unet, config, graph, inputs);
    char name[PSLD_PARAMETER_NAME];
    *encoded = psld_unet_encode(&unet);
    int shape[2] = {config->out_ch, (int)psld_shape_count(psld_graph_shape(graph, *encoded))};
    psld_id h = psld_nn_reshape(graph, *encoded, shape[1], 1, 1);
    snprintf(name, sizeof name, "all_modules.%d.weight", unet.module);
    *out = psld_nn_linear(graph, h, psld_graph_parameter(graph, name, 2, shape, PSLD_INIT_UNIFORM, 1), 0);
    return psld_graph_status(graph);
}

psld_status psld_classifier_build(const psld_network_config *config, psld_graph *graph,
                                  const psld_network_inputs *inputs, psld_id *out)
{
    psld_id encoded;
    return psld_classifier_parts(config, graph, inputs, &encoded, out);
}
