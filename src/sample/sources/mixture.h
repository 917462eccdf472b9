/* Data distributed as a mixture of isotropic Gaussians. Its score under any recipe is known in closed form
 * (mixture_score.c). */
#ifndef PSLD_SAMPLE_MIXTURE_H
#define PSLD_SAMPLE_MIXTURE_H

#include "sample/sources/source.h"

struct psld_mixture {
    size_t components, dim;
    double *log_weights; /* [components] */
    double *means;       /* [components][dim] */
    size_t classes;      /* number of distinct scales */
    double *scales;      /* [classes] */
    size_t *class_of;    /* [components] */
    size_t labels;       /* number of labels; 0: none */
    int32_t *label;      /* [components]; NULL: none */
};

/* The probability of a class. */
double psld_mixture_frequency(const psld_mixture *mixture, size_t label);

/* The denoiser: x [dim] = E[x_0 | x_0 + sigma n = y], for the components of a class, or for all (label -1). With weights
 * [dim], not NULL, also the gradient of sum(weight x) by y. sigma must be positive. */
void psld_mixture_denoise(const psld_mixture *mixture, const double *y, double sigma, int32_t label,
                          const double *weight, double *x, double *grad);

psld_status psld_mixture_copy(const psld_mixture *mixture, psld_mixture **copy);

#endif
