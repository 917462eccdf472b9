/* What the U-Net and the classifier share: a builder that numbers modules as the reference does, its blocks, and the
 * encoder. */
#ifndef PSLD_MODEL_NCSNPP_H
#define PSLD_MODEL_NCSNPP_H

#include "model/networks/network.h"

enum { PSLD_MAX_SKIPS = PSLD_MAX_LEVELS * (PSLD_MAX_BLOCKS + 1) + 1 };

/* `module` is the number of the module that is built: parameters are named all_modules.<module>.<part>.<what>. */
typedef struct psld_unet {
    psld_graph *graph;
    const psld_network_config *config;
    int module;
    psld_id augment; /* what was done to the data; PSLD_NONE: not told */
    psld_id time;    /* activated time embedding [4 nf]; PSLD_NONE: the network does not see t */
    psld_id skips[PSLD_MAX_SKIPS];
    int skip_count;
} psld_unet;

typedef enum psld_resize { PSLD_KEEP, PSLD_UP, PSLD_DOWN } psld_resize;

/* Modules: each takes its number and counts on. */
psld_id psld_unet_conv3(psld_unet *unet, psld_id x, int channels, double scale);
/* Between pixels and places: the first convolution and the last, which take `patch` pixels each way for one place. */
psld_id psld_unet_enter(psld_unet *unet, psld_id z, int channels);
psld_id psld_unet_leave(psld_unet *unet, psld_id h, int channels, double scale);
psld_id psld_unet_norm(psld_unet *unet, psld_id x);
psld_id psld_unet_residual(psld_unet *unet, psld_id x, int channels, psld_resize resize);
psld_id psld_unet_attention(psld_unet *unet, psld_id x);
/* Half or twice the size, to `channels`; with a convolution or, keeping the channels, without. */
psld_id psld_unet_resize(psld_unet *unet, psld_id x, int channels, psld_resize resize, int with_conv);
psld_id psld_unet_combine(psld_unet *unet, psld_id pyramid, psld_id h);

/* The same as the first part of psld_unet_resize, without a module: filtered or nearest. */
psld_id psld_unet_resample(psld_unet *unet, psld_id x, psld_resize resize);

/* (a + b), over sqrt 2 if the configuration rescales. */
psld_id psld_unet_add(psld_unet *unet, psld_id a, psld_id b);

int psld_unet_attends(const psld_unet *unet, psld_id x);

/* Time embedding, first convolution, all levels down, and the middle; leaves the skips. */
psld_id psld_unet_encode(psld_unet *unet, psld_id z, psld_id t);

psld_status psld_ncsnpp_build(const psld_network_config *config, psld_graph *graph, psld_id z, psld_id t,
                              psld_id augment, psld_id *out);
psld_status psld_classifier_build(const psld_network_config *config, psld_graph *graph, psld_id z, psld_id t,
                                  psld_id *out);
/* The same with what the head sees. */
psld_status psld_classifier_parts(const psld_network_config *config, psld_graph *graph, psld_id z, psld_id t,
                                  psld_id *encoded, psld_id *out);
psld_status psld_mlp_build(const psld_network_config *config, psld_graph *graph, psld_id z, psld_id t, psld_id *out);

#endif
