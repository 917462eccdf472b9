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

static double horner(const double *c, double x)
{
    return ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0];
}

/* Inverse of the normal distribution function, relative error about 1e-16: the rational approximations of M. J.
 * Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988), for the centre, the flanks and the tails. */
static double normal_quantile(double u)
{
    static const double centre_p[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                       3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double centre_q[8] = {1.0,
                                       4.2313330701600911252e+1,
                                       6.8718700749205790830e+2,
                                       5.3941960214247511077e+3,
                                       2.1213794301586595867e+4,
                                       3.9307895800092710610e+4,
                                       2.8729085735721942674e+4,
                                       5.2264952788528545610e+3};
    static const double flank_p[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                      3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double flank_q[8] = {1.0,
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
    static const double tail_q[8] = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
    double q = u - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(centre_p, r) / horner(centre_q, r);
    }
    double r = sqrt(-log(q < 0 ? u : 1 - u));
    double x =
        r <= 5 ? horner(flank_p, r - 1.6) / horner(flank_q, r - 1.6) : horner(tail_p, r - 5) / horner(tail_q, r - 5);
    return q < 0 ? -x : x;
}

/* Maps the words of elements first ... first + count - 1. The range may begin and end inside a block. */
static void fill_elements(address a, uint64_t first, size_t count, double (*map)(uint64_t), double *out)
{
    size_t done = 0;
    while (done < count) {
        uint64_t element = first + done;
        a.counter.v[0] = element / 4;
        philox4x64_ctr_t words = philox4x64(a.counter, a.key);
        for (unsigned w = element % 4; w < 4 && done < count; w++) out[done++] = map(words.v[w]);
    }
}

static double to_normal(uint64_t word)
{
    return normal_quantile(to_uniform(word));
}

void psld_random_uniform(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                         size_t count, double *out)
{
    fill_elements(make_address(seed, purpose, sample, step), first, count, to_uniform, out);
}

void psld_random_normal(uint64_t seed, enum psld_purpose purpose, uint64_t sample, uint64_t step, uint64_t first,
                        size_t count, double *out)
{
    fill_elements(make_address(seed, purpose, sample, step), first, count, to_normal, out);
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
