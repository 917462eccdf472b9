/* A Feistel network is a permutation of the numbers of 2 h bits whatever its round function is: (l, r) becomes
 * (r, l ^ f(r)), which can be undone. Numbers of `count` or more are sent through again until one is below it (at most
 * four times on average, as 2 h bits are at most four times too many); that is a permutation of the numbers below. */
#include "data/order.h"

#include "base/random.h"

enum { ROUNDS = 8, WORDS = 4 };

static uint64_t mix_bits(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

uint64_t psld_order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t place)
{
    uint16_t words[ROUNDS * WORDS];
    uint64_t keys[ROUNDS] = {0};
    unsigned half = 1;
    while (half < 32 && (count - 1) >> 2 * half != 0) half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    psld_random_short(seed, PSLD_FOR_ORDER, epoch, 0, 0, ROUNDS * WORDS, words);
    for (int i = 0; i < ROUNDS * WORDS; i++) keys[i / WORDS] = keys[i / WORDS] << 16 | words[i];
    uint64_t x = place;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t next = left ^ (mix_bits(right + keys[i]) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= count);
    return x;
}
