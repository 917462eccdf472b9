/* Random numbers by address, not by order.
 *
 * Each number is a pure function of (seed, purpose, sample, step, element): Philox 4x64 (Salmon et al. 2011) of a
 * counter made of these, so it does not depend on batch sizes, threads, ranks or what was drawn before. */
#ifndef PSLD_BASE_RANDOM_H
#define PSLD_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* What a number is for; part of its address. Values are fixed: they are part of what a seed means. */
enum psld_purpose {
    PSLD_FOR_START = 1,      /* initial states of the reverse process */
    PSLD_FOR_STEP = 2,       /* noise of a sampler's step */
    PSLD_FOR_CORRECTOR = 3,  /* noise of Langevin corrections */
    PSLD_FOR_CHOICE = 4,     /* which component a draw of a mixture comes from */
    PSLD_FOR_DATA = 5,       /* the draw from that component */
    PSLD_FOR_DROPOUT = 6,    /* which elements a network drops; step: optimisation step and number of the dropout */
    PSLD_FOR_WEIGHTS = 7,    /* initial weights; step: number of the parameter */
    PSLD_FOR_DIRECTION = 8,  /* directions of projections */
    PSLD_FOR_ORDER = 16,     /* order of the data; sample: epoch */
    PSLD_FOR_FLIP = 17,      /* which samples are mirrored; sample: number of the training sample */
    PSLD_FOR_AUGMENT = 19,   /* what is done to a training image; sample as above; step 0: uniform, 1: normal numbers */
    PSLD_FOR_TOY = 18,       /* toy data; sample: number of the item, step: of the set */
    PSLD_FOR_PROBE = 30,     /* directions along which a divergence is measured */
    PSLD_FOR_AUXILIARY = 31, /* auxiliary variables that data are given for their likelihood */
    PSLD_FOR_DEQUANTISE = 32, /* where in its cell a pixel's value lies */
    PSLD_FOR_KNOWN = 20,      /* the known part of a state that is inpainted */
    PSLD_FOR_JUMP = 21,       /* noise that takes a state back up, to walk a stretch again */
    PSLD_FOR_MEASURING = 22,  /* noise of a measurement that a sample is restored from */
    PSLD_FOR_REST =
        50, /* what states hold that tells nothing of the data; step 0: put in by translation, 1: encoding */
    PSLD_FOR_TIME = 40,     /* times of training; step: 0, or 1 + the bin of time for held-out data */
    PSLD_FOR_NOISE = 41,    /* eps of training; step as above */
    PSLD_FOR_MOMENTUM = 42, /* start of the auxiliary variables in training; step as above */
};

/* Elements first ... first + count - 1 of the address. Uniform numbers are odd multiples of 2^-53 inside (0, 1);
 * normal ones are their image under the inverse of the normal distribution function. */
void psld_random_uniform(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                         size_t count, double *out);
void psld_random_normal(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                        size_t count, double *out);

/* Whole numbers from 0 to 65535, sixteen to a block of the generator: for decisions that need no more. */
void psld_random_short(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                       size_t count, uint16_t *out);

#endif
