/* Samplers made of clean data, with eta from none to all, together with what changes a source or a walk: restoration
 * against the posterior that is known; guidance and inpainting at once, the same bits however the work is cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/threads.h"
#include "sample/options.h"
#include "sample/sample.h"
#include "sanitized.h"
#include "targets.h"

static const struct way {
    const char *sampler;
    double eta;
} ways[] = {{"dpm", 1},       {"collapsed", 1},   {"collapsed-heun", 1},
            {"ancestral", 1}, {"ancestral", 0.5}, {"ancestral", 0}};
enum { WAYS = sizeof ways / sizeof *ways, N = PSLD_SANITIZED ? 200 : 1000, WIDTH = 2 * 3 };

static psld_sample_options options_of(const struct way *way)
{
    psld_sample_options o = PSLD_SAMPLE_DEFAULTS;
    o.sampler = way->sampler;
    o.eta = way->eta;
    o.nfe = strcmp(way->sampler, "collapsed-heun") == 0 ? 100 : 60;
    o.denoise = 0;
    o.end_sigma = 0.01;
    o.seed = 3;
    return o;
}

typedef struct scene {
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_classifier *classifier;
    psld_source *base;
} scene;

static scene open_scene(const char *line, psld_mixture *mixture)
{
    scene s = {.recipe = open_recipe(line), .mixture = mixture};
    assert_int_equal(psld_source_mixture(mixture, s.recipe, &s.base), PSLD_OK);
    assert_int_equal(psld_classifier_mixture(mixture, s.recipe, &s.classifier), PSLD_OK);
    return s;
}

static void close_scene(scene *s)
{
    psld_classifier_free(s->classifier);
    psld_source_free(s->base);
    psld_mixture_free(s->mixture);
    psld_recipe_free(s->recipe);
}

static void draw(const scene *s, psld_source *source, const psld_sample_options *o, double *z)
{
    if (psld_sample(s->recipe, source, o, 0, N, 2, NULL, z, NULL) != PSLD_OK)
        fail_msg("%s, %s: %s", s->recipe->spec.name, o->sampler, psld_error_text());
}

/* How far mean and deviation of coordinate j of x are from those of p_eps of a Gaussian, in deviations. */
static double off_by(const scene *s, const psld_sample_options *o, const double *z, size_t j, double mean, double scale)
{
    psld_sample_options resolved = *o;
    psld_gaussian kernel;
    size_t width = 2 * (size_t)s->recipe->spec.k;
    double sum = 0, square = 0;
    assert_int_equal(psld_sample_complete(s->recipe, &resolved), PSLD_OK);
    psld_kernel(s->recipe, resolved.eps, PSLD_HSM, scale * scale, &kernel);
    for (size_t i = 0; i < N; i++) sum += z[i * width + j] / N;
    for (size_t i = 0; i < N; i++) square += (z[i * width + j] - sum) * (z[i * width + j] - sum) / N;
    double deviation = sqrt(kernel.cov[0]);
    return fmax(fabs(sum - kernel.mean[0] * mean), fabs(sqrt(square) - deviation)) / deviation;
}

static void expect_law(const scene *s, const struct way *way, const psld_sample_options *o, const double *z,
                       const double *mean, double scale, double slack)
{
    double worst = fmax(off_by(s, o, z, 0, mean[0], scale), off_by(s, o, z, 1, mean[1], scale));
    printf("  %-14s eta %.1f: %.3f", way->sampler, way->eta, worst);
    /* the mean has a standard error of 1 / sqrt(N) of these deviations, the deviation less */
    if (!(worst < 4.5 / sqrt(N) + slack))
        fail_msg("%s, %s, eta %g: off by %g deviations", s->recipe->spec.name, way->sampler, way->eta, worst);
}

static psld_operator *open_denoising(void)
{
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_operator *op;
    task.name = "denoise";
    task.rank = 1;
    task.shape[0] = 2;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_OK);
    return op;
}

/* A Gaussian seen with noise: its posterior is one, and the method `posterior` is exact. */
static void restoration(void **state)
{
    (void)state;
    const double one = 1, prior[2] = {0.3, -0.4}, width = 0.3, noise = 0.2, y[2] = {0.7, -0.1};
    double gain = width * width / (width * width + noise * noise), mean[2], scale = noise * sqrt(gain);
    static double z[N * WIDTH];
    psld_operator *op = open_denoising();
    psld_restore_options how = PSLD_RESTORE_DEFAULTS;
    how.noise = noise;
    for (int j = 0; j < 2; j++) mean[j] = prior[j] + gain * (y[j] - prior[j]);
    for (int p = 0; p < PRESETS; p++) {
        psld_mixture *mixture;
        psld_source *restored;
        assert_int_equal(psld_mixture_create(1, 2, &one, prior, &width, &mixture), PSLD_OK);
        scene s = open_scene(preset_lines[p], mixture);
        assert_int_equal(psld_source_restore(s.base, s.recipe, op, y, &how, &restored), PSLD_OK);
        printf("%-16s", preset_lines[p]);
        for (int w = 0; w < WAYS; w++) {
            psld_sample_options o = options_of(&ways[w]);
            draw(&s, restored, &o, z);
            expect_law(&s, &ways[w], &o, z, mean, scale, 0.05);
        }
        printf("\n");
        psld_source_free(restored);
        close_scene(&s);
    }
    psld_operator_free(op);
}

/* Guided and inpainted at once, in every batch and by every number of threads. */
static void same_bits(void **state)
{
    (void)state;
    enum { FEW = 40 };
    static const struct {
        size_t batch;
        int threads;
    } cuts[] = {{1, 1}, {7, 2}, {1000, 3}};
    const double x[2] = {0.5, 0};
    const unsigned char known[2] = {1, 0};
    psld_inpainting in = PSLD_INPAINTING_DEFAULTS;
    in.x = x;
    in.known = known;
    for (int p = 0; p < PRESETS; p++) {
        scene s = open_scene(preset_lines[p], pair());
        size_t width = 2 * (size_t)s.recipe->spec.k;
        psld_source *guided;
        assert_int_equal(psld_source_guide(s.base, s.recipe, s.classifier, 1, 2, &guided), PSLD_OK);
        for (int w = 0; w < WAYS; w++)
            for (in.repeats = 1; in.repeats <= 3; in.repeats += 2) {
                double z[FEW * WIDTH], reference[FEW * WIDTH];
                psld_sample_options o = options_of(&ways[w]);
                o.inpainting = &in;
                o.nfe = 13;
                for (int c = 0; c < 3; c++) {
                    o.batch = (int)cuts[c].batch;
                    assert_int_equal(psld_threads_set(cuts[c].threads), PSLD_OK);
                    assert_int_equal(psld_sample(s.recipe, guided, &o, 0, FEW, 2, NULL, z, NULL), PSLD_OK);
                    if (c == 0) memcpy(reference, z, sizeof z);
                    assert_memory_equal(z, reference, FEW * width * sizeof *z);
                }
                o.batch = 7;
                assert_int_equal(psld_sample(s.recipe, guided, &o, 11, 9, 2, NULL, z, NULL), PSLD_OK);
                assert_memory_equal(z, reference + 11 * width, 9 * width * sizeof *z);
            }
        psld_source_free(guided);
        close_scene(&s);
    }
    psld_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(restoration), cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
