/* U-Nets of all families, and the classifier on the encoder of one: a builder, its blocks, the encoder and the decoder.
 *
 * The families differ only in some properties (psld_unet_style) and in the names of their parameters (unet_style.c):
 * NCSN++ and DDPM++ (Song et al. 2021), SongUNet and DhariwalUNet (Karras et al. 2022), UNet2DModel (the diffusers
 * package). */
#ifndef PSLD_MODEL_NCSNPP_H
#define PSLD_MODEL_NCSNPP_H

#include "model/networks/network.h"

enum { PSLD_MAX_SKIPS = PSLD_MAX_LEVELS * (PSLD_MAX_BLOCKS + 1) + 1 };

/* The place of a module in the network; most also have a level and a number. */
typedef enum psld_unet_place {
    PSLD_AT_ENTRY,
    PSLD_AT_DOWN_BLOCK,
    PSLD_AT_DOWN_ATTENTION,
    PSLD_AT_DOWN,         /* from a level to the next */
    PSLD_AT_DOWN_PYRAMID, /* the same for the pyramid of images */
    PSLD_AT_MIDDLE_BLOCK,
    PSLD_AT_MIDDLE_ATTENTION,
    PSLD_AT_UP_BLOCK,
    PSLD_AT_UP_ATTENTION,
    PSLD_AT_UP,
    PSLD_AT_OUT_NORM,
    PSLD_AT_OUT_CONV,
    PSLD_UNET_PLACES
} psld_unet_place;

typedef struct psld_unet psld_unet;
typedef psld_id (*psld_embed_fn)(psld_unet *unet);

/* What differs between the families. */
typedef struct psld_unet_style {
    /* Parts of modules. A part "" is the module itself. */
    const char *norm0, *conv0, *time, *norm1, *conv1, *shortcut; /* residual blocks */
    const char *resize;                                          /* the convolution of a change of size */
    const char *attention_norm, *q, *k, *v, *o; /* `k` NULL: `q` contains all three, in alternating rows */
    const char *weight, *bias;                  /* of q, k, v, o */
    int maps_turned;                            /* q, k, v, o are [in][out], not [out][in] */
    int map_rank;                               /* rank of their weights: 2, or 4 as 1x1 convolutions */
    /* Other properties. */
    int linear_shortcut;    /* shortcuts are maps like those of attention, not convolutions */
    int resized_shortcut;   /* a change of size is enough for a convolution in the shortcut */
    int scale_shift;        /* the time scales and shifts the output of norm1, instead of being added before it */
    int groups;             /* of normalisations; 0: one for four channels, at most 32 */
    int attention_groups;   /* the same for attention; -1: it has no normalisation */
    double eps;             /* of normalisations */
    double sum;             /* factor of sums of two branches */
    int head_channels;      /* of attention; 0: one head */
    int heads_share;        /* heads share all channels, each head_channels or more; with fewer: no attention */
    int first_channels;     /* output channels of the first convolution */
    int attends_every_time; /* in the decoder: attention after each block, not after the last of a level */
    psld_activation out_activation; /* before the last convolution */
    int down_pad;                   /* padding of a convolution that halves; 1: on all sides, 0: only right and below */
    psld_embed_fn embed; /* the embedding of time and label, activated; PSLD_NONE: the network does not see t */
    /* Names: the prefix of the parts of a module, from a level and a number. NULL: modules are counted, and are named
     * all_modules.<number>. */
    void (*scope)(const psld_network_config *config, psld_unet_place place, int level, int number, char *text,
                  size_t size);
} psld_unet_style;

struct psld_unet {
    psld_graph *graph;
    const psld_network_config *config;
    psld_unet_style style;
    int module; /* its number, if modules are counted */
    char scope[PSLD_PARAMETER_NAME / 2];
    psld_network_inputs inputs;
    psld_id time; /* activated time embedding [4 nf]; PSLD_NONE: the network does not see t */
    psld_id skips[PSLD_MAX_SKIPS];
    int skip_count;
};

/* Sets the style of the configuration's family. */
void psld_unet_begin(psld_unet *unet, const psld_network_config *config, psld_graph *graph,
                     const psld_network_inputs *inputs);
/* Sets the place of the next module. */
void psld_unet_at(psld_unet *unet, psld_unet_place place, int level, int number);

typedef enum psld_resize { PSLD_KEEP, PSLD_UP, PSLD_DOWN } psld_resize;

/* Modules: each has the next number. */
psld_id psld_unet_conv3(psld_unet *unet, psld_id x, int channels, double scale);
/* Between pixels and positions: the first and the last convolution, which make `patch` x `patch` pixels one
 * position. */
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

/* (a + b), divided by sqrt 2 if the configuration rescales. */
psld_id psld_unet_add(psld_unet *unet, psld_id a, psld_id b);

/* Whether attention follows a block of this level. */
int psld_unet_attends(const psld_unet *unet, psld_id x, int level, int going_up);
/* Whether the size changes after a level by a residual block, and not by a convolution. */
int psld_unet_blocks_resize(const psld_unet *unet, int level, int going_up);
int psld_unet_channels(const psld_unet *unet, int level);

/* A linear map of vectors, with bias. */
psld_id psld_unet_dense(psld_unet *unet, const char *part, psld_id x, int channels);
/* The embedding of time of NCSN++. */
psld_id psld_unet_embed(psld_unet *unet);

/* Time embedding, first convolution, all levels down, and the middle; fills the skips. */
psld_id psld_unet_encode(psld_unet *unet);

/* Adds a learned vector per class to an embedding; nothing if there is no label. */
psld_id psld_join_label(const psld_network_config *config, psld_graph *graph, psld_id label, psld_id embedding);

psld_status psld_ncsnpp_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                              psld_id *out);
psld_status psld_classifier_build(const psld_network_config *config, psld_graph *graph,
                                  const psld_network_inputs *inputs, psld_id *out);
/* The same, also with the input of the head. */
psld_status psld_classifier_parts(const psld_network_config *config, psld_graph *graph,
                                  const psld_network_inputs *inputs, psld_id *encoded, psld_id *out);
psld_status psld_mlp_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                           psld_id *out);

#endif
