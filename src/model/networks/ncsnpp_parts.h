/* The parts of which modules of U-Nets are made, for the files ncsnpp_*.c. */
#ifndef PSLD_MODEL_NCSNPP_PARTS_H
#define PSLD_MODEL_NCSNPP_PARTS_H

#include "model/networks/ncsnpp.h"

/* Strides and pads of convolutions. */
static const int psld_unet_once[2] = {1, 1};
static const int psld_unet_around[4] = {1, 1, 1, 1}, psld_unet_nowhere[4] = {0, 0, 0, 0};

/* A parameter with the name <scope>[<part>.]<what>. */
psld_id psld_unet_parameter(psld_unet *unet, const char *part, const char *what, int rank, const int *shape,
                            psld_init init, double scale);
int psld_unet_channels_of(const psld_unet *unet, psld_id x);

psld_id psld_unet_bias(psld_unet *unet, psld_id x, const char *part, const char *what);
/* A convolution without its bias; the weight is registered first, as in files. */
psld_id psld_unet_convolve(psld_unet *unet, const char *part, psld_id x, int channels, int size, double scale,
                           const int stride[2], const int pad[4]);
/* A 3 x 3 convolution with its bias. */
psld_id psld_unet_conv3_part(psld_unet *unet, const char *part, psld_id x, int channels, double scale);
/* Group normalisation; groups = 0: one for four channels, at most 32. */
psld_id psld_unet_norm_in_groups(psld_unet *unet, const char *part, psld_id x, int groups, psld_activation activation);

/* A map of all pixels: a matrix, [in][out] if `turned` ("network in network") or [out][in], and a vector. */
typedef struct psld_unet_map {
    psld_id w, b;
    int turned;
} psld_unet_map;

psld_unet_map psld_unet_map_parameters(psld_unet *unet, const char *part, int in, int out, double scale);
psld_id psld_unet_map_pixels(psld_unet *unet, psld_id x, psld_unet_map map);

#endif
