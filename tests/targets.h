/* What tests of samplers sample: the presets, and mixtures whose law is known. After <cmocka.h>. */
#ifndef PSLD_TESTS_TARGETS_H
#define PSLD_TESTS_TARGETS_H

#include <math.h>
#include <string.h>

#include "recipes.h"

static const char *const preset_lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
enum { PRESETS = sizeof preset_lines / sizeof *preset_lines };

static inline psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* Eight Gaussians on a ring of radius 1.2. */
static inline psld_mixture *ring(void)
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

/* Two unequal components of unequal scale: nothing is symmetric. */
static inline psld_mixture *pair(void)
{
    const double weights[2] = {0.3, 0.7}, means[4] = {-0.8, 0.5, 0.6, -0.2}, scales[2] = {0.3, 0.15};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 2, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

/* Sampling must fail for what these options are, and say `word`. */
static inline void expect_refused(const psld_sample_options *options, const char *word)
{
    double z[2 * PSLD_MAX_K];
    psld_mixture *mixture = ring();
    psld_recipe *recipe = open_recipe("psld");
    psld_source *source;
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    assert_int_equal(psld_sample(recipe, source, options, 0, 1, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT);
    if (!strstr(psld_error_text(), word)) fail_msg("%s: without %s", psld_error_text(), word);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

#endif
