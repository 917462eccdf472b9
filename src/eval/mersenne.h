/* NumPy's RandomState: the Mersenne Twister MT19937 (Matsumoto & Nishimura 1998) as NumPy seeds it and as its
 * `permutation` uses it. It serves only published definitions that depend on such a permutation: our own random numbers
 * have addresses (base/random.h). */
#ifndef PSLD_EVAL_MERSENNE_H
#define PSLD_EVAL_MERSENNE_H

#include <stddef.h>
#include <stdint.h>

enum { PSLD_MERSENNE_WORDS = 624 };

typedef struct psld_mersenne {
    uint32_t word[PSLD_MERSENNE_WORDS];
    int next; /* the next word to use */
} psld_mersenne;

/* RandomState(seed) */
void psld_mersenne_seed(psld_mersenne *state, uint32_t seed);
uint32_t psld_mersenne_next(psld_mersenne *state);

/* permutation(count), count below 2^32. */
void psld_mersenne_permutation(psld_mersenne *state, size_t count, uint32_t *out);

#endif
