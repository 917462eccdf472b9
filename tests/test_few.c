/* Few-step samplers against truth: errors on exact mixtures, limits that have closed forms, moments, and bad options. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recipes.h"
#include "sample/multistep.h"
#include "sanitized.h"

static const char *const preset_lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
enum { PRESETS = sizeof preset_lines / sizeof *preset_lines, SAMPLES = 500 };

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* Eight Gaussians on a ring of radius 1.2. */
static psld_mixture *ring(void)
{
    double weights[8], means[16], scales[8];
    psld_mixture *mixture;
    for (int c = 0; c < 8; c++) {
        weights[c] = 0.125;
        means[2 * c] = 1.2 * cos(c * 0.78539816339744830962);
        means[2 * c + 1] = 1.2 * sin(c * 0.78539816339744830962);
        scales[c] = 0.12;
    }
    assert_int_equal(psld_mixture_create(8, 2, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

/* ---- Errors against the converged flow --------------------------------------------------------------------------- */

static void walk(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options, double *z)
{
    if (psld_sample(recipe, source, options, 0, SAMPLES, 2, NULL, z, NULL) != PSLD_OK)
        fail_msg("%s, %s: %s", recipe->spec.name, options->sampler, psld_error_text());
}

static double distance(const psld_recipe *recipe, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        for (size_t j = 0; j < 2; j++) {
            double difference = a[i * (size_t)recipe->spec.k * 2 + j] - b[i * (size_t)recipe->spec.k * 2 + j];
            sum += difference * difference;
        }
    return sqrt(sum / (2 * SAMPLES));
}

static void dpm_errors(void **state)
{
    (void)state;
    psld_mixture *mixture = ring();
    for (int p = 0; p < PRESETS; p++) {
        static double truth[SAMPLES * 6], z[SAMPLES * 6];
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source;
        psld_sample_options o;
        psld_sample_defaults(&o);
        o.denoise = 0;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        o.sampler = "ode";
        o.tolerance = 1e-9;
        walk(recipe, source, &o, truth);
        o.grid = "sqrt";
        for (o.nfe = 20; o.nfe <= 50; o.nfe += 30) {
            o.sampler = "euler-ode";
            o.order = 0;
            walk(recipe, source, &o, z);
            printf("%-16s %d  %.4g", preset_lines[p], o.nfe, distance(recipe, z, truth));
            o.sampler = "dpm";
            for (o.order = 1; o.order <= 3; o.order++) {
                walk(recipe, source, &o, z);
                printf("  %.4g", distance(recipe, z, truth));
            }
            printf("\n");
        }
        o.grid = "log";
        o.sampler = "collapsed";
        o.order = 3;
        o.nfe = 2000;
        walk(recipe, source, &o, truth);
        const int few[] = {10, 20, 50};
        for (int i = 0; i < 3; i++) {
            o.nfe = few[i];
            walk(recipe, source, &o, z);
            printf("  collapsed %d: %.4g", o.nfe, distance(recipe, z, truth));
        }
        printf("\n");
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dpm_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
