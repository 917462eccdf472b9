/* What a network is trained on: states z_t drawn from the kernel at random times, and what it should say of them.
 *
 * Everything is a function of (seed, phase, sample number): it depends neither on batches nor on ranks, and a run that
 * was stopped needs to remember nothing but how many samples it has seen. */
#ifndef PSLD_TRAIN_PERTURB_H
#define PSLD_TRAIN_PERTURB_H

#include "process/recipe.h"

typedef enum psld_phase { PSLD_PHASE_TRAIN = 0, PSLD_PHASE_HELD_OUT = 1 } psld_phase;

typedef struct psld_perturbation {
    const psld_recipe *recipe;
    psld_mode mode;
    size_t dim;   /* numbers of x_0 */
    double eps;   /* times are uniform in [eps, 1], */
    int by_noise; /* 1: but half of them such that log sigma is N(0, 1.2^2), where the data take shape */
    int clean;    /* z is (x_0, 0) and t = 0: for classifiers of clean data */
    uint64_t seed;
} psld_perturbation;

/* n samples with numbers first, first + 1, ...: from x [n][dim] to z [n][k dim], t [n], and, where not NULL, eps of the
 * predicted variables [n][predicted dim] and the metric [n][predicted^2] of the likelihood weighting,
 *     M = L^-1 2 beta D L^-T,  so that  (eps - eps*)' M (eps - eps*) = (s - s*)' 2 beta D (s - s*),  s = -L^-T eps. */
typedef struct psld_perturbed {
    const float *x;
    float *z, *eps, *metric;
    double *t;
} psld_perturbed;

psld_status psld_perturb(const psld_perturbation *how, psld_phase phase, uint64_t first, size_t n,
                         const psld_perturbed *arrays);

#endif
