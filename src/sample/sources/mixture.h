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
};

psld_status psld_mixture_copy(const psld_mixture *mixture, psld_mixture **copy);

#endif
