/* One Philox block gives four 64-bit words, so element e is word e % 4 of block e / 4. The counter is (block, step,
 * sample, purpose) and the key (seed, 0). A normal number is the inverse distribution function of one uniform
 * number: no pairs, no rejection, hence an address for each. */
#include "base/random.h"

#include <math.h>
#include <string.h>

#include <Random123/philox.h>

typedef struct address {
    philox4x64_ctr_t counter;
    philox4x64_key_t key;
} address;

static address make_address(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step)
{
    address a = {.counter = {{0, step, sample, (uint64_t)purpose}}, .key = {{seed, 0}}};
    return a;
}

/* The middle of one of 2^52 equal cells, so 0 and 1 never occur and u and 1 - u are equally likely. With 2^53 cells,
 * the last middle would not be a double and would round to 1. */
static double to_uniform(uint64_t word)
{
    return ((double)(word >> 12) + 0.5) * 0x1p-52;
}

enum { BLOCK = 256 }; /* numbers at a time: their words stay in the nearest cache */

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* Words of elements first ... first + count - 1. The range may begin and end inside a block. */
static void fill_words(address a, uint64_t first, size_t count, uint64_t *words)
{
    for (size_t done = 0, length; done < count; done += length) {
        unsigned skipped = (first + done) % 4;
        a.counter.v[0] = (first + done) / 4;
        length = 4 - skipped < count - done ? 4 - skipped : count - done;
        philox4x64_ctr_t block = philox4x64(a.counter, a.key);
        for (size_t w = 0; w < length; w++) words[done + w] = block.v[skipped + w];
    }
}

/* ---- Normal numbers ---------------------------------------------------------------------------------------------- */

/* The inverse of the normal distribution function, relative error about 1e-16: the rational approximations of M. J.
 * Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988), for the centre, the flanks and the tails. The centre
 * has 85 % of all numbers, so it is computed for all of them, two at a time, and the others are replaced. */

enum { LANES = 2 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)))); /* every processor has it */

static double horner(const double *c, double x)
{
    return ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0];
}

static lanes horner_lanes(const double *c, lanes x)
{
    return ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0];
}

#define CENTRE 0.425 /* of u - 1/2 */

/* out = the quantiles of the numbers u, as if all were in the centre. */
static void centre_quantiles(size_t count, const double *u, double *out)
{
    static const double p[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double d[8] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    for (size_t i = 0; i < count; i += LANES) {
        lanes q, r, x;
        memcpy(&q, u + i, sizeof q);
        q -= 0.5;
        r = 0.180625 - q * q;
        x = q * horner_lanes(p, r) / horner_lanes(d, r);
        memcpy(out + i, &x, sizeof x);
    }
}

static double outer_quantile(double u)
{
    static const double flank_p[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                      3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double flank_d[8] = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
    static const double tail_p[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double tail_d[8] = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
    double q = u - 0.5, r = sqrt(-log(q < 0 ? u : 1 - u)), flank = r - 1.6, tail = r - 5;
    double x = r <= 5 ? horner(flank_p, flank) / horner(flank_d, flank) : horner(tail_p, tail) / horner(tail_d, tail);
    return q < 0 ? -x : x;
}

/* Replaces `count` words by the normal numbers that they stand for; there is room for a whole number of lanes. */
static void normal_quantiles(size_t count, const uint64_t *words, double *out)
{
    double u[BLOCK], centre[BLOCK];
    unsigned short outer[BLOCK];
    size_t outside = 0;
    for (size_t i = 0; i < count; i++) u[i] = to_uniform(words[i]);
    if (count % LANES) u[count] = 0.5;
    centre_quantiles(count, u, centre);
    memcpy(out, centre, count * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        outer[outside] = (unsigned short)i;
        outside += fabs(u[i] - 0.5) > CENTRE;
    }
    for (size_t i = 0; i < outside; i++) out[outer[i]] = outer_quantile(u[outer[i]]);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

void psld_random_uniform(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                         size_t count, double *out)
{
    uint64_t words[BLOCK];
    for (size_t done = 0, length; done < count; done += length) {
        length = count - done < BLOCK ? count - done : BLOCK;
        fill_words(make_address(seed, purpose, sample, step), first + done, length, words);
        for (size_t i = 0; i < length; i++) out[done + i] = to_uniform(words[i]);
    }
}

void psld_random_normal(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                        size_t count, double *out)
{
    uint64_t words[BLOCK];
    for (size_t done = 0, length; done < count; done += length) {
        length = count - done < BLOCK ? count - done : BLOCK;
        fill_words(make_address(seed, purpose, sample, step), first + done, length, words);
        normal_quantiles(length, words, out + done);
    }
}

void psld_random_normal_each(uint64_t seed, enum psld_purpose purpose, uint64_t sample, size_t samples, uint64_t step,
                             size_t count, double *out)
{
    uint64_t words[BLOCK];
    size_t group = count < BLOCK ? BLOCK / count : 1;
    for (size_t i = 0, length; i < samples; i += length) {
        length = samples - i < group ? samples - i : group;
        if (count > BLOCK) {
            psld_random_normal(seed, purpose, sample + i, step, 0, count, out + i * count);
            continue;
        }
        for (size_t g = 0; g < length; g++)
            fill_words(make_address(seed, purpose, sample + i + g, step), 0, count, words + g * count);
        normal_quantiles(length * count, words, out + i * count);
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
