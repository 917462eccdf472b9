/* Inpainting: what is known comes back to the bit, what is unknown is independent of how the work is cut, and its
 * distribution is measured against the exact conditional of a mixture. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/recipe.h"
#include "sample/walk.h"

static const char *const preset_lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
enum { PRESETS = sizeof preset_lines / sizeof *preset_lines };

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* Two clusters in three dimensions: the first coordinate tells which of them. */
static psld_mixture *clusters(void)
{
    const double weights[2] = {0.4, 0.6}, means[6] = {-0.8, 0.6, 0.3, 0.8, -0.4, -0.5}, scales[2] = {0.3, 0.3};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(2, 3, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

static psld_sample_options options_for(const char *sampler, int nfe, const psld_inpainting *inpainting)
{
    psld_sample_options options;
    psld_sample_defaults(&options);
    options.sampler = sampler;
    options.nfe = nfe;
    options.seed = 11;
    options.inpainting = inpainting;
    return options;
}

static void known_comes_back(void **state)
{
    (void)state;
    const double x[6] = {0.123456789, 0, -0.5, 0.7, 0.25, 0};
    const unsigned char known[6] = {1, 0, 1, 1, 1, 0};
    psld_mixture *mixture = clusters();
    psld_inpainting inpainting;
    psld_inpainting_defaults(&inpainting);
    inpainting.images = 2;
    inpainting.each = 3;
    inpainting.x = x;
    inpainting.known = known;
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        size_t k = (size_t)recipe->spec.k;
        double *z = malloc(12 * 3 * k * sizeof *z);
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (int s = 0; psld_sampler_name(s); s++) {
            psld_sample_options options = options_for(psld_sampler_name(s), 21, &inpainting);
            options.tolerance = 1e-3;
            if (psld_sample(recipe, source, &options, 0, 12, 3, NULL, z, NULL) != PSLD_OK)
                fail_msg("%s: %s", options.sampler, psld_error_text());
            for (size_t i = 0; i < 12; i++)
                for (size_t j = 0; j < 3; j++) {
                    size_t image = i / 3 % 2;
                    if (known[image * 3 + j]) assert_true(z[i * 3 * k + j] == x[image * 3 + j]);
                }
        }
        free(z);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

static void same_bits_however_cut(void **state)
{
    (void)state;
    const double x[3] = {0.4, 0, 0};
    const unsigned char known[3] = {1, 0, 0};
    enum { N = 24 };
    psld_mixture *mixture = clusters();
    psld_recipe *recipe = open_recipe("psld");
    psld_source *source;
    double whole[N * 6], part[N * 6];
    psld_inpainting inpainting;
    psld_inpainting_defaults(&inpainting);
    inpainting.x = x;
    inpainting.known = known;
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    for (inpainting.repeats = 1; inpainting.repeats <= 3; inpainting.repeats += 2) {
        psld_sample_options options = options_for("sscs", 31, &inpainting);
        options.corrector = 1;
        inpainting.jump = 2;
        uint64_t nfe;
        assert_int_equal(psld_sample(recipe, source, &options, 0, N, 3, NULL, whole, &nfe), PSLD_OK);
        assert_true(nfe == 1 + 30 * (uint64_t)inpainting.repeats);
        options.batch = 5;
        assert_int_equal(psld_sample(recipe, source, &options, 0, 10, 3, NULL, part, NULL), PSLD_OK);
        assert_int_equal(psld_sample(recipe, source, &options, 10, 14, 3, NULL, part + 60, NULL), PSLD_OK);
        assert_memory_equal(whole, part, sizeof whole);
    }
    psld_source_free(source);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void bad_options(void **state)
{
    (void)state;
    const double x = 0;
    const unsigned char known = 1;
    double z;
    const double one = 1, zero = 0;
    psld_recipe *recipe = open_recipe("vp");
    psld_mixture *mixture;
    psld_source *source;
    psld_inpainting inpainting;
    psld_inpainting_defaults(&inpainting);
    inpainting.x = &x;
    inpainting.known = &known;
    assert_int_equal(psld_mixture_create(1, 1, &one, &zero, &one, &mixture), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
    inpainting.repeats = 5;
    psld_sample_options options = options_for("ode", 20, &inpainting);
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "resampling: ode chooses its own steps and cannot walk them again");
    options.sampler = "em";
    options.nfe = 1;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "nfe: em needs at least 2 evaluations here, found 1");
    inpainting.repeats = 0;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    inpainting.repeats = 1;
    inpainting.each = 0;
    assert_int_equal(psld_sample(recipe, source, &options, 0, 1, 1, NULL, &z, NULL), PSLD_BAD_ARGUMENT);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_comes_back), cmocka_unit_test(same_bits_however_cut),
                                       cmocka_unit_test(bad_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
