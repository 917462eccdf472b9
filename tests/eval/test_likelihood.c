/* Likelihood against the exact density of Gaussians and mixtures, the ways to measure a divergence against each other,
 * and the same bits however the work is cut. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "psld_eval.h"
#include "sanitized.h"
#include "skip.h"
#include "starve.h"

static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "psld gamma=0.25", "told"};
enum { LINES = sizeof lines / sizeof *lines };

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

typedef struct subject {
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *source;
    size_t dim, count;
    double *x, *log_p;
} subject;

static psld_mixture *gaussian(void)
{
    const double weights[1] = {1}, means[3] = {0.3, -0.5, 0.1}, scales[1] = {0.4};
    psld_mixture *mixture;
    must(psld_mixture_create(1, 3, weights, means, scales, &mixture));
    return mixture;
}

static psld_mixture *pair(void)
{
    const double weights[2] = {0.3, 0.7}, means[4] = {-0.8, 0.5, 0.6, -0.2}, scales[2] = {0.3, 0.15};
    psld_mixture *mixture;
    must(psld_mixture_create(2, 2, weights, means, scales, &mixture));
    return mixture;
}

/* Draws of the mixture itself, as data. */
static subject make_subject(const char *line, psld_mixture *mixture, size_t count)
{
    subject s = {.mixture = mixture, .dim = psld_mixture_dim(mixture), .count = count};
    must(psld_recipe_open(line, &s.recipe));
    must(psld_source_mixture(mixture, s.recipe, &s.source));
    size_t k = (size_t)psld_recipe_get(s.recipe)->k;
    double *z = malloc(count * k * s.dim * sizeof *z);
    s.x = malloc(count * s.dim * sizeof *s.x);
    s.log_p = malloc(count * sizeof *s.log_p);
    must(psld_mixture_draw(mixture, s.recipe, 0, 11, 0, count, z));
    for (size_t i = 0; i < count; i++) memcpy(s.x + i * s.dim, z + i * k * s.dim, s.dim * sizeof *z);
    free(z);
    return s;
}

static void free_subject(subject *s)
{
    psld_source_free(s->source);
    psld_recipe_free(s->recipe);
    psld_mixture_free(s->mixture);
    free(s->x);
    free(s->log_p);
}

/* What is left is what N(0, P^-1) and p_1 differ by, most for told, which forgets slowest, and the lower limit of time
 * (docs/explanation/likelihood.md): at single points up to some hundredths, on average far less. */
static void every_point(const char *line, psld_mixture *mixture)
{
    subject s = make_subject(line, mixture, PSLD_SANITIZED ? 32 : 200);
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    uint64_t nfe;
    double worst = 0, mean = 0;
    must(psld_likelihood(s.recipe, s.source, &options, 0, s.count, s.dim, s.x, s.log_p, &nfe));
    for (size_t i = 0; i < s.count; i++) {
        double error = s.log_p[i] - log(psld_mixture_density(mixture, s.x + i * s.dim));
        worst = fmax(worst, fabs(error));
        mean += error / (double)s.count;
    }
    printf("%-16s %zu-D: log p off by %.1e nats at most, %.1e on average, %llu evaluations\n", line, s.dim, worst, mean,
           (unsigned long long)nfe);
    assert_true(worst < 0.15 && fabs(mean) < (PSLD_SANITIZED ? 2e-2 : 5e-3)); /* few points average less */
    assert_true(nfe > 20 && nfe < 2000);
    free_subject(&s);
}

static void exact_densities(void **state)
{
    (void)state;
    for (int i = 0; i < LINES; i++) {
        every_point(lines[i], gaussian());
        every_point(lines[i], pair());
    }
}

/* The claim in figures: bits per dimension over many points, against the exact density at the same points. */
static void many_points(void **state)
{
    enum { MANY = 10000 };
    (void)state;
    if (!getenv("PSLD_LONG")) skip_for("%d points take minutes; PSLD_LONG=1 asks for them", MANY);
    for (int i = 0; i < 2 * LINES; i++) {
        subject s = make_subject(lines[i / 2], i % 2 ? pair() : gaussian(), MANY);
        double found = 0, exact = 0, scale = -1 / ((double)MANY * (double)s.dim * log(2));
        must(psld_likelihood(s.recipe, s.source, NULL, 0, s.count, s.dim, s.x, s.log_p, NULL));
        for (size_t n = 0; n < s.count; n++) {
            found += scale * s.log_p[n];
            exact += scale * log(psld_mixture_density(s.mixture, s.x + n * s.dim));
        }
        printf("%-16s %s: %.5f bits per dimension, exactly %.5f\n", lines[i / 2], i % 2 ? "mixture " : "gaussian",
               found, exact);
        assert_true(fabs(found - exact) < 0.01);
        free_subject(&s);
    }
}

/* One direction is right on average: over many seeds its mean is the exact value. */
static void hutchinson_is_unbiased(void **state)
{
    enum { SEEDS = 24 };
    (void)state;
    subject s = make_subject("psld gamma=0.02", pair(), 64);
    double exact[64], mean = 0, square = 0;
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    options.tolerance = 1e-4;
    must(psld_likelihood(s.recipe, s.source, &options, 0, s.count, s.dim, s.x, exact, NULL));
    options.exact = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        double difference = 0;
        options.seed = (uint64_t)seed;
        must(psld_likelihood(s.recipe, s.source, &options, 0, s.count, s.dim, s.x, s.log_p, NULL));
        for (size_t i = 0; i < s.count; i++) difference += (s.log_p[i] - exact[i]) / (double)s.count;
        mean += difference / SEEDS;
        square += difference * difference / SEEDS;
    }
    double error = sqrt((square - mean * mean) / (SEEDS - 1));
    assert_true(square > 1e-8); /* it does vary */
    if (!(fabs(mean) < 4 * error + 1e-3)) fail_msg("mean %g, standard error %g", mean, error);
    options.seed = 0, options.probes = 64; /* many directions come near the exact value */
    must(psld_likelihood(s.recipe, s.source, &options, 0, s.count, s.dim, s.x, s.log_p, NULL));
    double many = 0;
    for (size_t i = 0; i < s.count; i++) many += pow(s.log_p[i] - exact[i], 2) / (double)s.count;
    assert_true(many < square * (double)s.count / 8);
    free_subject(&s);
}

static void same_bits(void **state)
{
    enum { N = 50 };
    double whole[N], cut[N];
    (void)state;
    subject s = make_subject("cld", pair(), N);
    for (int exact = 0; exact < 2; exact++) {
        psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
        options.exact = exact;
        options.tolerance = 1e-3;
        must(psld_likelihood(s.recipe, s.source, &options, 0, N, s.dim, s.x, whole, NULL));
        for (int batch = 1; batch < 100; batch = 3 * batch + 1) {
            options.batch = batch;
            psld_threads_set((int)(batch % 3) + 1);
            must(psld_likelihood(s.recipe, s.source, &options, 0, N, s.dim, s.x, cut, NULL));
            assert_memory_equal(whole, cut, sizeof whole);
        }
        must(psld_likelihood(s.recipe, s.source, &options, 32, N - 32, s.dim, s.x + 32 * s.dim, cut, NULL));
        assert_memory_equal(whole + 32, cut, (N - 32) * sizeof *cut);
        psld_threads_set(0);
    }
    free_subject(&s);
}

/* Batches and groups that are as large as a number can be are all the points there are. */
static void endless_batches(void **state)
{
    enum { N = 20 };
    static const int large[] = {N, 1 << 20, INT_MAX / 2 + 1, INT_MAX - 15, INT_MAX};
    (void)state;
    subject s = make_subject("cld", pair(), N);
    for (int way = 0; way < 4; way++) {
        double reference[N];
        uint64_t nfe, reference_nfe = 0;
        psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
        options.exact = way % 2;
        options.tolerance = 1e-2;
        for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
            options.batch = large[i];
            if (way / 2) options.ode_group = large[i];
            must(psld_likelihood(s.recipe, s.source, &options, 0, N, s.dim, s.x, s.log_p, &nfe));
            if (i == 0) memcpy(reference, s.log_p, sizeof reference), reference_nfe = nfe;
            assert_memory_equal(s.log_p, reference, sizeof reference);
            assert_int_equal(nfe, reference_nfe);
        }
    }
    free_subject(&s);
}

static psld_status no_score(void *user, const psld_states *states, double *eps)
{
    (void)user, (void)eps, (void)states;
    return PSLD_OK;
}

static int stop(void *user, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)user == 3;
}

static void refusals(void **state)
{
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    psld_source *plain;
    psld_recipe *still;
    int calls = 0;
    (void)state;
    subject s = make_subject("cld", pair(), 8);
    must(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = no_score}, &plain));
    assert_int_equal(psld_likelihood(s.recipe, plain, NULL, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_BAD_ARGUMENT);
    psld_source_free(plain);
    must(psld_recipe_open("cld init=[0]", &still));
    assert_int_equal(psld_likelihood(still, s.source, NULL, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "starts without noise"));
    psld_recipe_free(still);
    options.progress = stop;
    options.progress_user = &calls;
    assert_int_equal(psld_likelihood(s.recipe, s.source, &options, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_CANCELLED);
    options.tolerance = 2;
    assert_int_equal(psld_likelihood(s.recipe, s.source, &options, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_BAD_ARGUMENT);
    options = (psld_likelihood_options)PSLD_LIKELIHOOD_DEFAULTS;
    options.probes = INT_MAX;
    assert_int_equal(psld_likelihood(s.recipe, s.source, &options, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "probes"));
    s.x[3] = NAN;
    assert_int_equal(psld_likelihood(s.recipe, s.source, NULL, 0, 8, s.dim, s.x, s.log_p, NULL), PSLD_NOT_FINITE);
    free_subject(&s);
}

static subject starved;

static psld_status starved_likelihood(void)
{
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    options.tolerance = 0.1;
    options.exact = 0;
    psld_source *source; /* of its own: it keeps memory from call to call */
    PSLD_TRY(psld_source_mixture(starved.mixture, starved.recipe, &source));
    psld_status status =
        psld_likelihood(starved.recipe, source, &options, 0, 4, starved.dim, starved.x, starved.log_p, NULL);
    psld_source_free(source);
    return status;
}

static void starving(void **state)
{
    (void)state;
    psld_threads_set(1);
    starved = make_subject("psld", pair(), 4);
    starve(starved_likelihood);
    free_subject(&starved);
    psld_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_densities), cmocka_unit_test(many_points),     cmocka_unit_test(hutchinson_is_unbiased),
        cmocka_unit_test(same_bits),       cmocka_unit_test(endless_batches), cmocka_unit_test(refusals),
        cmocka_unit_test(starving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
