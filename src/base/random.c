/* One Philox block gives four 64-bit words, so element e is word e % 4 of block e / 4. The counter is (block, step,
 * sample, purpose) and the key (seed, 0). A normal number is the inverse distribution function of one uniform
 * number: no pairs, no rejection, hence an address for each. */
#include "base/random.h"

#include <string.h>

#include <Random123/philox.h>

#include "base/quantile.h"

typedef struct address {
    philox4x64_ctr_t counter;
    philox4x64_key_t key;
} address;

static address make_address(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step)
{
    address a = {.counter = {{0, step, sample, (uint64_t)purpose}}, .key = {{seed, 0}}};
    return a;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* Words of elements first ... first + count - 1. The range may begin and end inside a block. */
static void fill_words(address a, uint64_t first, size_t count, uint64_t *words)
{
    size_t done = 0;
    if (first % 4 == 0) /* whole blocks, mostly all of them */
        for (; done + 4 <= count; done += 4) {
            a.counter.v[0] = (first + done) / 4;
            philox4x64_ctr_t block = philox4x64(a.counter, a.key);
            memcpy(words + done, block.v, sizeof block.v);
        }
    for (size_t length; done < count; done += length) {
        unsigned skipped = (first + done) % 4;
        a.counter.v[0] = (first + done) / 4;
        length = 4 - skipped < count - done ? 4 - skipped : count - done;
        philox4x64_ctr_t block = philox4x64(a.counter, a.key);
        for (size_t w = 0; w < length; w++) words[done + w] = block.v[skipped + w];
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

void psld_random_uniform(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                         size_t count, double *out)
{
    uint64_t words[PSLD_QUANTILES];
    for (size_t done = 0, length; done < count; done += length) {
        length = count - done < PSLD_QUANTILES ? count - done : PSLD_QUANTILES;
        fill_words(make_address(seed, purpose, sample, step), first + done, length, words);
        for (size_t i = 0; i < length; i++) out[done + i] = psld_word_uniform(words[i]);
    }
}

void psld_random_normal(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                        size_t count, double *out)
{
    uint64_t words[PSLD_QUANTILES];
    for (size_t done = 0, length; done < count; done += length) {
        length = count - done < PSLD_QUANTILES ? count - done : PSLD_QUANTILES;
        fill_words(make_address(seed, purpose, sample, step), first + done, length, words);
        psld_word_normals(length, words, out + done);
    }
}

void psld_random_normal_each(uint64_t seed, enum psld_purpose purpose, uint64_t sample, size_t samples, uint64_t step,
                             size_t count, double *out)
{
    uint64_t words[PSLD_QUANTILES];
    size_t group = count < PSLD_QUANTILES ? PSLD_QUANTILES / count : 1;
    for (size_t i = 0, length; i < samples; i += length) {
        length = samples - i < group ? samples - i : group;
        if (count > PSLD_QUANTILES) {
            psld_random_normal(seed, purpose, sample + i, step, 0, count, out + i * count);
            continue;
        }
        for (size_t g = 0; g < length; g++)
            fill_words(make_address(seed, purpose, sample + i + g, step), 0, count, words + g * count);
        psld_word_normals(length * count, words, out + i * count);
    }
}

/* The sixteen numbers of a block, the lowest bits of each word first. This is their memory order on most machines. */
static void unpack_shorts(philox4x64_ctr_t words, uint16_t *out)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, words.v, 16 * sizeof *out);
#else
    for (unsigned w = 0; w < 16; w++) out[w] = (uint16_t)(words.v[w / 4] >> (16 * (w % 4)));
#endif
}

void psld_random_short(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                       size_t count, uint16_t *out)
{
    address a = make_address(seed, purpose, sample, step);
    for (size_t done = 0, length; done < count; done += length) {
        uint64_t element = first + done;
        unsigned skipped = element % 16;
        a.counter.v[0] = element / 16;
        length = 16 - skipped < count - done ? 16 - skipped : count - done;
        philox4x64_ctr_t words = philox4x64(a.counter, a.key);
        if (length == 16) {
            unpack_shorts(words, out + done);
        } else {
            uint16_t block[16];
            unpack_shorts(words, block);
            memcpy(out + done, block + skipped, length * sizeof *out);
        }
    }
}
