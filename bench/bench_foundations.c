/* Speed of the parts below any network: kernels, random numbers, exact scores, samplers. One line each; the
 * machine's noise is in them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "process/recipe.h"
#include "psld.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Best of several repetitions: others can only slow us down. */
#define BEST(best, repetitions, work)                                        \
    do {                                                                     \
        best = 1e30;                                                         \
        for (int repetition = 0; repetition < (repetitions); repetition++) { \
            double began = seconds();                                        \
            work;                                                            \
            double took = seconds() - began;                                 \
            if (took < best) best = took;                                    \
        }                                                                    \
    } while (0)

static void bench_kernels(void)
{
    static const char *const lines[] = {"vp", "cld", "psld", "told"};
    for (int i = 0; i < 4; i++) {
        psld_recipe *recipe;
        double factor[64], inverse[64], best;
        enum { CALLS = 2000 };
        if (psld_recipe_open(lines[i], &recipe) != PSLD_OK) exit(1);
        BEST(best, 7,
             for (int c = 1; c <= CALLS; c++) psld_recipe_factor(recipe, (double)c / CALLS, PSLD_HSM, factor, inverse));
        printf("kernel and factor, %-6s %8.2f us a time\n", lines[i], 1e6 * best / CALLS);
        psld_recipe_free(recipe);
    }
}

static void bench_random(void)
{
    enum { COUNT = 100000 };
    double *numbers = malloc(COUNT * sizeof *numbers), best;
    BEST(best, 9, psld_random_normal(1, PSLD_FOR_STEP, 2, 3, 0, COUNT, numbers));
    printf("normal numbers             %8.2f ns each, one thread\n", 1e9 * best / COUNT);
    free(numbers);
}

static void bench_samplers(void)
{
    enum { SAMPLES = 4000, NFE = 50 };
    const double weights[4] = {0.25, 0.25, 0.25, 0.25}, means[8] = {1, 0, 0, 1, -1, 0, 0, -1},
                 scales[4] = {0.1, 0.1, 0.1, 0.1};
    psld_mixture *mixture;
    psld_recipe *recipe;
    psld_source *source;
    double *z = malloc(SAMPLES * 4 * sizeof *z), best;
    if (psld_recipe_open("psld", &recipe) != PSLD_OK ||
        psld_mixture_create(4, 2, weights, means, scales, &mixture) != PSLD_OK ||
        psld_source_mixture(mixture, recipe, &source) != PSLD_OK)
        exit(1);
    for (int i = 0; psld_sampler_at(i); i++) {
        psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
        uint64_t nfe = 0;
        options.sampler = psld_sampler_at(i)->name;
        options.nfe = NFE;
        options.tolerance = 1e-3;
        options.batch = SAMPLES;
        BEST(best, 3, if (psld_sample(recipe, source, &options, 0, SAMPLES, 2, NULL, z, &nfe) != PSLD_OK) exit(1));
        printf("%-9s on a mixture of 4 %7.1f ns a sample and evaluation, %d threads\n", options.sampler,
               1e9 * best / SAMPLES / (double)nfe, psld_threads_get());
    }
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    free(z);
}

int main(void)
{
    bench_kernels();
    bench_random();
    bench_samplers();
    return 0;
}
