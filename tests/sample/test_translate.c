/* Sources made of others: one recipe as another, clean data kept in range; and the way from data to noise and back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "sample/samplers/multistep.h"
#include "sample/sources/denoiser.h"
#include "targets.h"

/* ---- One recipe as another --------------------------------------------------------------------------------------- */

enum { DRAWS = 6 };

/* The exact source of one recipe, translated, is the exact source of the other, and so is its gradient. */
static void check_translation(const psld_mixture *mixture, const psld_recipe *known, const psld_recipe *wanted)
{
    psld_source *base, *direct, *translated;
    size_t k = (size_t)wanted->spec.k, predicted = (size_t)wanted->predicted;
    double worst = 0;
    assert_int_equal(psld_source_mixture(mixture, known, &base), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, wanted, &direct), PSLD_OK);
    if (psld_source_translate(base, known, wanted, &translated) != PSLD_OK) fail_msg("%s", psld_error_text());
    for (double t = 1; t > fmax(translated->earliest, 2e-3); t *= 0.4) {
        double z[DRAWS * 2 * PSLD_MAX_K], times[DRAWS], eps[2][DRAWS * 2 * PSLD_MAX_K], grad[2][DRAWS * 2 * PSLD_MAX_K];
        double weight[DRAWS * 2 * PSLD_MAX_K];
        for (int i = 0; i < DRAWS; i++) times[i] = i < 4 ? t : 0.9 * t + 0.1; /* two times in one call */
        for (size_t i = 0; i < DRAWS * 2 * predicted; i++) weight[i] = sin((double)(1 + 3 * i));
        assert_int_equal(psld_mixture_draw(mixture, wanted, t, 4, 0, DRAWS, z), PSLD_OK);
        assert_int_equal(psld_source_gradient(direct, &PSLD_STATES(DRAWS, 2, z, times), weight, eps[0], grad[0]),
                         PSLD_OK);
        if (psld_source_gradient(translated, &PSLD_STATES(DRAWS, 2, z, times), weight, eps[1], grad[1]) != PSLD_OK)
            fail_msg("%s", psld_error_text());
        for (size_t i = 0; i < DRAWS * 2 * predicted; i++)
            worst = fmax(worst, fabs(eps[0][i] - eps[1][i]) / (1 + fabs(eps[0][i])));
        double size = 0, off = 0;
        for (size_t i = 0; i < DRAWS * 2 * k; i++) {
            size = fmax(size, fabs(grad[0][i]));
            off = fmax(off, fabs(grad[0][i] - grad[1][i]));
        }
        worst = fmax(worst, off / size);
        assert_int_equal(psld_source_predict(translated, &PSLD_STATES(DRAWS, 2, z, times), eps[0]), PSLD_OK);
        assert_memory_equal(eps[0], eps[1], DRAWS * 2 * predicted * sizeof(double));
    }
    printf("%s as %s: within %.1e\n", known->spec.name, wanted->spec.name, worst);
    assert_true(worst < 1e-6);
    psld_source_free(translated);
    psld_source_free(direct);
    psld_source_free(base);
}

static void recipes_as_others(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"psld gamma=0.02", "vp"},
        {"psld gamma=0.02", "told"},
        {"psld gamma=0.02", "cld"},
        {"cld", "vp"},
        {"vp", "told"},
        {"cld", "told"},
        {"vp", "vp beta=6"},
    };
    psld_mixture *mixture = pair();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        psld_recipe *known = open_recipe(lines[i][0]), *wanted = open_recipe(lines[i][1]);
        check_translation(mixture, known, wanted);
        psld_recipe_free(known);
        psld_recipe_free(wanted);
    }
    psld_mixture_free(mixture);
}

static void noise_beyond_is_refused(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    psld_recipe *psld = open_recipe("psld"), *told = open_recipe("told");
    psld_source *of_psld, *of_told, *translated;
    psld_sample_options o;
    double z[12];
    assert_int_equal(psld_source_mixture(mixture, psld, &of_psld), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, told, &of_told), PSLD_OK);
    assert_int_equal(psld_source_translate(of_told, told, psld, &translated), PSLD_BAD_ARGUMENT);
    assert_null(translated);
    assert_non_null(strstr(psld_error_text(), "starts with effective noise"));
    assert_int_equal(psld_source_translate(of_psld, psld, told, &translated), PSLD_OK);
    o = em_options(); /* at t = 1e-3 told has less noise than psld at 1e-5 */
    o.nfe = 20;
    assert_int_equal(psld_sample(told, translated, &o, 0, 2, 2, NULL, z, NULL), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "set a larger eps"));
    double t = 1e-3;
    assert_int_equal(psld_source_predict(translated, &PSLD_STATES(1, 2, z, &t), z + 6), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "was trained for"));
    o.end_sigma = 0.01;
    assert_int_equal(psld_sample(told, translated, &o, 0, 2, 2, NULL, z, NULL), PSLD_OK);
    psld_source_free(translated);
    psld_source_free(of_psld);
    psld_source_free(of_told);
    psld_mixture_free(mixture);
    psld_recipe_free(psld);
    psld_recipe_free(told);
}

/* ---- Clean data in range ----------------------------------------------------------------------------------------- */

static void clean_data_stay_in_range(void **state)
{
    (void)state;
    psld_mixture *mixture = pair();
    psld_recipe *recipe = open_recipe("cld");
    psld_source *base, *clipped, *scaled;
    enum { N = 40 };
    double z[N * 4], times[N], x[3][N * 2];
    int beyond = 0;
    assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
    assert_int_equal(psld_source_clip(base, recipe, 0.5, 0, &clipped), PSLD_OK);
    assert_int_equal(psld_source_clip(base, recipe, 0.5, 1, &scaled), PSLD_OK);
    for (int i = 0; i < N; i++) times[i] = i < N / 2 ? 0.3 : 0.01;
    assert_int_equal(psld_mixture_draw(mixture, recipe, 0.1, 4, 0, N, z), PSLD_OK);
    assert_int_equal(psld_source_denoise(base, recipe, &PSLD_STATES(N, 2, z, times), x[0]), PSLD_OK);
    assert_int_equal(psld_source_denoise(clipped, recipe, &PSLD_STATES(N, 2, z, times), x[1]), PSLD_OK);
    assert_int_equal(psld_source_denoise(scaled, recipe, &PSLD_STATES(N, 2, z, times), x[2]), PSLD_OK);
    for (int i = 0; i < 2 * N; i++) {
        double largest = fmax(0.5, fmax(fabs(x[0][i / 2 * 2]), fabs(x[0][i / 2 * 2 + 1])));
        beyond += fabs(x[0][i]) > 0.5;
        assert_true(fabs(x[1][i] - fmax(-0.5, fmin(0.5, x[0][i]))) < 1e-9);
        /* the quantile of two numbers at 1 is the larger one */
        assert_true(fabs(x[2][i] - x[0][i] * 0.5 / largest) < 1e-9);
    }
    assert_true(beyond > 10 && beyond < 2 * N);
    psld_source_free(clipped);
    psld_source_free(scaled);
    assert_int_equal(psld_source_clip(base, recipe, -1, 0, &clipped), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_source_clip(base, recipe, 1, 2, &clipped), PSLD_BAD_ARGUMENT);
    psld_source_free(base);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
}

/* eps = 0, but for coordinate 1, where it is what `user` points to. */
static psld_status spoil(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    memset(eps, 0, n * dim * sizeof *eps);
    for (size_t i = 0; i < n; i++) eps[i * dim + 1] = *(const double *)user;
    return PSLD_OK;
}

/* What is not finite stays so, wherever it stands among the numbers, and the others are clipped as ever: NaN counts as
 * the largest number when a quantile is sought. */
static void clipping_hides_nothing(void **state)
{
    (void)state;
    enum { DIM = 5 };
    const double z[DIM] = {4, 1, -3, 0.1, -2}, t = 0.1;
    double bad[3] = {(double)NAN, (double)INFINITY, -(double)INFINITY}, plain[DIM], x[DIM];
    psld_recipe *recipe = open_recipe("vp");
    for (int b = 0; b < 3; b++)
        for (int scaled = 0; scaled < 2; scaled++) {
            psld_source *base, *clipped;
            assert_int_equal(
                psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = spoil, .user = &bad[b]},
                                     &base),
                PSLD_OK);
            assert_int_equal(psld_source_clip(base, recipe, 0.5, scaled ? 0.5 : 0, &clipped), PSLD_OK);
            assert_int_equal(psld_source_denoise(base, recipe, &PSLD_STATES(1, DIM, z, &t), plain), PSLD_OK);
            assert_int_equal(psld_source_denoise(clipped, recipe, &PSLD_STATES(1, DIM, z, &t), x), PSLD_OK);
            double limit = scaled ? fabs(plain[2]) : 0.5; /* of 0.1, 2, 3, 4 and the bad one the middle is 3 */
            for (int j = 0; j < DIM; j++) {
                double expected = fmax(-limit, fmin(limit, plain[j])) * 0.5 / limit;
                if (j == 1)
                    assert_true(!isfinite(x[j]));
                else
                    assert_true(fabs(x[j] - expected) < 1e-9);
            }
            psld_source_free(clipped);
            psld_source_free(base);
        }
    psld_recipe_free(recipe);
}

/* ---- Data to noise and back -------------------------------------------------------------------------------------- */

static void data_come_back(void **state)
{
    (void)state;
    enum { N = 60 };
    static const char *const samplers[] = {"collapsed", "dpm", "heun"};
    psld_mixture *mixture = pair();
    for (int p = 0; p < PRESETS; p++) {
        psld_recipe *recipe = open_recipe(preset_lines[p]);
        psld_source *source;
        size_t k = (size_t)recipe->spec.k;
        double x[N * 2], data[N * 2 * 3], noise[N * 2 * 3], back[N * 2 * 3];
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        assert_int_equal(psld_mixture_draw(mixture, recipe, 0, 8, 0, N, data), PSLD_OK);
        for (size_t i = 0; i < N; i++) memcpy(x + 2 * i, data + i * 2 * k, 2 * sizeof *x);
        for (int s = 0; s < 3; s++) {
            psld_sample_options o = em_options();
            psld_collapsed_frame frame;
            uint64_t nfe;
            double worst = 0, square = 0;
            o.sampler = samplers[s];
            o.nfe = s == 2 ? 600 : 200;
            o.denoise = 0;
            o.end_sigma = 0.01;
            assert_int_equal(psld_encode(recipe, source, &o, 0, N, 2, x, noise, &nfe), PSLD_OK);
            assert_int_equal(nfe, o.nfe);
            assert_int_equal(psld_sample(recipe, source, &o, 0, N, 2, noise, back, NULL), PSLD_OK);
            assert_int_equal(psld_sample_complete(recipe, &o), PSLD_OK);
            assert_int_equal(psld_collapsed_frame_plan(recipe, 1, o.eps, &frame), PSLD_OK);
            for (size_t i = 0; i < N; i++)
                for (size_t j = 0; j < 2; j++) {
                    double y = 0;
                    for (size_t a = 0; a < k; a++) y += frame.sigma * frame.inverse[a] * back[(i * k + a) * 2 + j];
                    worst = fmax(worst, fabs(y - x[i * 2 + j]));
                    square += noise[i * k * 2 + j] * noise[i * k * 2 + j] / (2 * N);
                }
            printf("%s, %s: back within %.1e; variance at t = 1: %.2f\n", preset_lines[p], samplers[s], worst, square);
            assert_true(worst < 5e-3);
            assert_true(square > 0.6 && square < 1.5); /* 120 numbers: six standard errors are 0.77 */
        }
        psld_sample_options o = em_options();
        assert_int_equal(psld_encode(recipe, source, &o, 0, N, 2, x, noise, NULL), PSLD_BAD_ARGUMENT);
        assert_non_null(strstr(psld_error_text(), "em cannot"));
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recipes_as_others), cmocka_unit_test(noise_beyond_is_refused),
                                       cmocka_unit_test(clean_data_stay_in_range),
                                       cmocka_unit_test(clipping_hides_nothing), cmocka_unit_test(data_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
