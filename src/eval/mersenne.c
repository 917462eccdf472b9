#include "eval/mersenne.h"

enum { MIDDLE = 397 };

void psld_mersenne_seed(psld_mersenne *state, uint32_t seed)
{
    state->word[0] = seed;
    for (uint32_t i = 1; i < PSLD_MERSENNE_WORDS; i++) {
        uint32_t before = state->word[i - 1];
        state->word[i] = UINT32_C(1812433253) * (before ^ before >> 30) + i;
    }
    state->next = PSLD_MERSENNE_WORDS;
}

static void refill_words(psld_mersenne *state)
{
    uint32_t *word = state->word;
    for (int i = 0; i < PSLD_MERSENNE_WORDS; i++) {
        uint32_t joined = (word[i] & UINT32_C(0x80000000)) | (word[(i + 1) % PSLD_MERSENNE_WORDS] & 0x7fffffff);
        uint32_t twist = joined & 1 ? UINT32_C(0x9908b0df) : 0;
        word[i] = word[(i + MIDDLE) % PSLD_MERSENNE_WORDS] ^ joined >> 1 ^ twist;
    }
    state->next = 0;
}

uint32_t psld_mersenne_next(psld_mersenne *state)
{
    if (state->next == PSLD_MERSENNE_WORDS) refill_words(state);
    uint32_t y = state->word[state->next++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

/* Uniform on 0 ... largest: draws as many bits as `largest` has, until the number is not above it. */
static uint32_t draw_up_to(psld_mersenne *state, uint32_t largest)
{
    uint32_t mask = largest, value;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do value = psld_mersenne_next(state) & mask;
    while (value > largest);
    return value;
}

/* Fisher and Yates, from the end. */
void psld_mersenne_permutation(psld_mersenne *state, size_t count, uint32_t *out)
{
    for (size_t i = 0; i < count; i++) out[i] = (uint32_t)i;
    for (size_t i = count; i-- > 1;) {
        uint32_t j = draw_up_to(state, (uint32_t)i), moved = out[i];
        out[i] = out[j];
        out[j] = moved;
    }
}
