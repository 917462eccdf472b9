/* The inverse of the normal distribution function by the rational approximations of M. J. Wichura, Algorithm AS 241
 * (PPND16), Applied Statistics 37 (1988), for the centre, the flanks and the tails. The centre has 85 % of all numbers, so
 * it is computed for all of them side by side. Then the others are gathered, and their flanks computed side by side; one
 * number in 10^11 is in a tail.
 *
 * The loops are compiled for several instruction sets. None of them may fuse a product with a sum, and vectors are
 * divided and rooted as single numbers are: so all have the same bits. */
#include "base/quantile.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, ROOM = PSLD_QUANTILES + LANES };

/* What the processor cannot do with eight at once the compiler does with fewer. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef uint64_t lane_words __attribute__((vector_size(LANES * sizeof(double))));

#define EACH static inline __attribute__((always_inline)) /* part of each of the functions compiled for a set */

/* A polynomial of degree 7, of a number or of lanes. */
#define HORNER_3(c, x) ((((c)[7] * (x) + (c)[6]) * (x) + (c)[5]) * (x) + (c)[4])
#define HORNER(c, x)   ((((HORNER_3(c, x) * (x) + (c)[3]) * (x) + (c)[2]) * (x) + (c)[1]) * (x) + (c)[0])

#define CENTRE 0.425 /* of u - 1/2 */
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

#define FLANK 5.0 /* the square root of -log u at which the tail begins */
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

double psld_word_uniform(uint64_t word)
{
    return ((double)(word >> 12) + 0.5) * 0x1p-52;
}

/* ---- Side by side: up to LANES - 1 numbers after the last are computed and not used ------------------------------ */

/* The 52 bits become the fraction of a double in [2^52, 2^53): no instruction for integers of 64 bits is needed. */
EACH void fill_uniform(size_t count, const uint64_t *words, double *u)
{
    for (size_t i = 0; i < count; i += LANES) {
        lane_words bits;
        lanes x;
        memcpy(&bits, words + i, sizeof bits);
        bits = bits >> 12 | UINT64_C(0x4330000000000000);
        memcpy(&x, &bits, sizeof x);
        x = (x - 0x1p52 + 0.5) * 0x1p-52;
        memcpy(u + i, &x, sizeof x);
    }
}

EACH void fill_centre(size_t count, const double *u, double *out)
{
    for (size_t i = 0; i < count; i += LANES) {
        lanes q, r, x;
        memcpy(&q, u + i, sizeof q);
        q -= 0.5;
        r = 0.180625 - q * q;
        x = q * HORNER(centre_p, r) / HORNER(centre_q, r);
        memcpy(out + i, &x, sizeof x);
    }
}

EACH void fill_flanks(size_t count, const double *r, double *out)
{
    for (size_t i = 0; i < count; i += LANES) {
        lanes y, x;
        memcpy(&y, r + i, sizeof y);
        y -= 1.6;
        x = HORNER(flank_p, y) / HORNER(flank_q, y);
        memcpy(out + i, &x, sizeof x);
    }
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

/* Numbers of u that are outside of the centre. */
EACH size_t find_outer(size_t count, const double *u, unsigned short *outer)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        outer[found] = (unsigned short)i;
        found += fabs(u[i] - 0.5) > CENTRE;
    }
    return found;
}

EACH void replace_outer(size_t count, const unsigned short *outer, const double *u, double *out)
{
    double r[ROOM] = {0}, flank[ROOM];
    for (size_t i = 0; i < count; i++) r[i] = -log(u[outer[i]] < 0.5 ? u[outer[i]] : 1 - u[outer[i]]);
    for (size_t i = 0; i < count; i++) r[i] = sqrt(r[i]);
    fill_flanks(count, r, flank);
    for (size_t i = 0; i < count; i++) {
        double tail = r[i] - FLANK, x = r[i] <= FLANK ? flank[i] : HORNER(tail_p, tail) / HORNER(tail_q, tail);
        out[outer[i]] = u[outer[i]] < 0.5 ? -x : x;
    }
}

EACH void fill_normals(size_t count, const uint64_t *words, double *out)
{
    uint64_t padded[ROOM] = {0};
    double u[ROOM], centre[ROOM];
    unsigned short outer[ROOM];
    memcpy(padded, words, count * sizeof *words);
    fill_uniform(count, padded, u);
    fill_centre(count, u, centre);
    memcpy(out, centre, count * sizeof *out);
    replace_outer(find_outer(count, u, outer), outer, u, out);
}

static void fill_plain(size_t count, const uint64_t *words, double *out)
{
    fill_normals(count, words, out);
}

/* ---- One form per instruction set -------------------------------------------------------------------------------- */

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void fill_avx2(size_t count, const uint64_t *words, double *out)
{
    fill_normals(count, words, out);
}

__attribute__((target("avx512f,avx512dq"))) static void fill_avx512(size_t count, const uint64_t *words, double *out)
{
    fill_normals(count, words, out);
}

psld_word_normals_fn psld_word_normals_form(int form)
{
    if (form == 2) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? fill_avx512 : NULL;
    if (form == 1) return __builtin_cpu_supports("avx2") ? fill_avx2 : NULL;
    return form == 0 ? fill_plain : NULL;
}

#else

psld_word_normals_fn psld_word_normals_form(int form)
{
    return form == 0 ? fill_plain : NULL;
}

#endif

void psld_word_normals(size_t count, const uint64_t *words, double *out)
{
    psld_word_normals_fn fill = NULL;
    for (int form = PSLD_WORD_NORMALS_FORMS - 1; !fill; form--) fill = psld_word_normals_form(form);
    fill(count, words, out);
}
