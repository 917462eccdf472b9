/* Random numbers by address, not by order.
 *
 * Each number is a pure function of (seed, purpose, sample, step, element): Philox 4x64 (Salmon et al. 2011) of a
 * counter made of these, so it does not depend on batch sizes, threads, ranks or what was drawn before. */
#ifndef PSLD_BASE_RANDOM_H
#define PSLD_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* What a number is for; part of its address. The values are fixed: changing one would change what a seed gives. */
enum psld_purpose {
    PSLD_FOR_START = 1,        /* initial states of the reverse process */
    PSLD_FOR_STEP = 2,         /* noise of a sampler's step */
    PSLD_FOR_CORRECTOR = 3,    /* noise of Langevin corrections */
    PSLD_FOR_CHOICE = 4,       /* which component of a mixture a sample comes from */
    PSLD_FOR_DATA = 5,         /* the position of the sample in that component */
    PSLD_FOR_DROPOUT = 6,      /* which elements a network drops; step: optimisation step and number of the dropout */
    PSLD_FOR_WEIGHTS = 7,      /* initial weights; step: number of the parameter */
    PSLD_FOR_DIRECTION = 8,    /* directions of random projections */
    PSLD_FOR_ORDER = 16,       /* order of the data; sample: epoch */
    PSLD_FOR_FLIP = 17,        /* which samples are mirrored; sample: number of the training sample */
    PSLD_FOR_AUGMENT = 19,     /* parameters of augmentations; sample as above; step 0: uniform, 1: normal numbers */
    PSLD_FOR_TOY = 18,         /* toy data; sample: number of the item, step: number of the set */
    PSLD_FOR_PROBE = 30,       /* directions of the divergence estimator */
    PSLD_FOR_AUXILIARY = 31,   /* initial auxiliary variables of data whose likelihood is computed */
    PSLD_FOR_DEQUANTISE = 32,  /* the position of a pixel's value within its quantisation cell */
    PSLD_FOR_KNOWN = 20,       /* noise on the known part of a state that is inpainted */
    PSLD_FOR_JUMP = 21,        /* noise that moves a state forward in time, to repeat reverse steps */
    PSLD_FOR_MEASURING = 22,   /* measurement noise of restoration */
    PSLD_FOR_MOVE = 25,        /* the process itself; step: number of the move */
    PSLD_FOR_LABEL = 23,       /* which class a sample gets; in training: which samples lose their label */
    PSLD_FOR_REST = 50,        /* what a state holds beyond the data; step 0: added by translation, 1: by encoding */
    PSLD_FOR_TIME = 40,        /* training times; step: 0, or 1 + the time bin for held-out data */
    PSLD_FOR_NOISE = 41,       /* training noise eps; step as above */
    PSLD_FOR_PATH = 60,        /* noise of simulated paths */
    PSLD_FOR_EQUILIBRIUM = 61, /* draws from exp(-H); step: 0 the start, then two for each move */
    PSLD_FOR_REVERSE = 62,     /* noise of the reverse of a process with formulas; step as it is */
    PSLD_FOR_MOMENTUM = 42,    /* initial auxiliary variables in training; step as above */
    PSLD_FOR_SEARCH = 24,      /* steps of a search; sample: the search, step: the trial */
};

/* Elements first ... first + count - 1 at an address. Uniform numbers are odd multiples of 2^-53 inside (0, 1).
 * Normal numbers are the inverse normal distribution function of these. */
void psld_random_uniform(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                         size_t count, double *out);
void psld_random_normal(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                        size_t count, double *out);

/* Normal numbers 0 ... count - 1 of each of several samples, one sample after the other. */
void psld_random_normal_each(uint64_t seed, enum psld_purpose purpose, uint64_t sample, size_t samples, uint64_t step,
                             size_t count, double *out);

/* Integers from 0 to 65535, sixteen per block of the generator: for decisions that need no more bits. */
void psld_random_short(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                       size_t count, uint16_t *out);

#endif
