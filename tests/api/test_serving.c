/* What a program that serves others needs: files in memory, models from text, the process itself, what is predicted along
 * the way. Each against the call that does the same another way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "psld.h"
#include "psld_data.h"

static psld_array *numbered(psld_type type, int rank, const size_t *shape)
{
    psld_array *array;
    assert_int_equal(psld_array_create(type, rank, shape, &array), PSLD_OK);
    for (size_t i = 0; i < array->count; i++) {
        if (type == PSLD_U8) ((unsigned char *)array->data)[i] = (unsigned char)(37 * i);
        if (type == PSLD_F32) ((float *)array->data)[i] = (float)i / 7;
    }
    return array;
}

static void assert_file_is(const char *path, const void *bytes, size_t size)
{
    char *found = malloc(size + 2);
    FILE *file = fopen(path, "rb");
    assert_non_null(found);
    assert_non_null(file);
    assert_int_equal(fread(found, 1, size + 2, file), size);
    assert_memory_equal(found, bytes, size);
    fclose(file);
    free(found);
}

static void test_array(void **state)
{
    const size_t shape[3] = {4, 1, 5}, none[2] = {0, 3};
    void *bytes;
    size_t size;
    (void)state;
    for (int i = 0; i < 2; i++) {
        psld_array *array = i ? numbered(PSLD_U8, 2, none) : numbered(PSLD_F32, 3, shape);
        assert_int_equal(psld_array_save(array, "saved.npy"), PSLD_OK);
        assert_int_equal(psld_array_encode(array, &bytes, &size), PSLD_OK);
        assert_file_is("saved.npy", bytes, size);
        psld_bytes_free(bytes);
        psld_array_free(array);
    }
}

static void test_sheet(void **state)
{
    (void)state;
    for (size_t channels = 1; channels <= 3; channels += 2) {
        const size_t shape[4] = {5, channels, 3, 4};
        psld_array *images = numbered(PSLD_U8, 4, shape), *sheet, *loaded;
        assert_int_equal(psld_image_grid(images, 2, "grid.png"), PSLD_OK);
        assert_int_equal(psld_images_sheet(images, 2, &sheet), PSLD_OK);
        assert_int_equal(psld_image_load("grid.png", &loaded), PSLD_OK);
        assert_int_equal(sheet->count, loaded->count);
        assert_memory_equal(sheet->shape, loaded->shape, 3 * sizeof *sheet->shape);
        assert_memory_equal(sheet->data, loaded->data, sheet->count);
        psld_array_free(images);
        psld_array_free(sheet);
        psld_array_free(loaded);
    }
}

static const char yaml[] = "mixture: {weights: [0.3, 0.7], means: [[1, 0], [-1, 0.5]], scales: [0.1, 0.2]}\n"
                           "process: psld gamma=0.1\n";

static void test_model(void **state)
{
    psld_model *parsed, *opened;
    (void)state;
    assert_int_equal(psld_text_save(yaml, "model.yaml"), PSLD_OK);
    assert_int_equal(psld_model_open("model.yaml", NULL, &opened), PSLD_OK);
    assert_int_equal(psld_model_parse(yaml, "text", NULL, &parsed), PSLD_OK);
    assert_true(psld_model_fingerprint(parsed) == psld_model_fingerprint(opened));
    psld_model_free(parsed);
    psld_model_free(opened);
    /* A text names no files. */
    assert_int_equal(psld_text_save("{D: [[0.5]], Q: [[0]]}", "mine.yaml"), PSLD_OK);
    assert_int_equal(psld_model_parse("{mixture: {weights: [1], means: [[0]], scales: 1}, process: mine.yaml}", "text",
                                      NULL, &parsed),
                     PSLD_BAD_INPUT);
    assert_null(parsed);
    assert_non_null(strstr(psld_error_text(), "text:1"));
    assert_int_equal(psld_model_parse("{mixture: [", "text", NULL, &parsed), PSLD_BAD_INPUT);
}

/* ---- The process itself ------------------------------------------------------------------------------------------ */

enum { COUNT = 20000, DIM = 2 };

/* After some moves from given states the law is that of the kernel, whatever the times between. */
static void check_moves(const char *text, const double *times, int count)
{
    psld_recipe *recipe;
    double mean[PSLD_MAX_K * PSLD_MAX_K], cov[PSLD_MAX_K * PSLD_MAX_K];
    assert_int_equal(psld_recipe_open(text, &recipe), PSLD_OK);
    size_t k = (size_t)psld_recipe_get(recipe)->k;
    double *z = malloc(COUNT * k * DIM * sizeof *z), start[PSLD_MAX_K];
    for (size_t a = 0; a < k; a++) start[a] = 0.5 - (double)a;
    for (size_t i = 0; i < COUNT * k * DIM; i++) z[i] = start[i / DIM % k];
    for (int i = 0; i + 1 < count; i++)
        assert_int_equal(psld_recipe_move(recipe, times[i], times[i + 1], 5, (uint64_t)i, 0, COUNT, DIM, z), PSLD_OK);
    assert_int_equal(psld_recipe_kernel(recipe, times[count - 1], PSLD_DSM, mean, cov, NULL), PSLD_OK);
    for (size_t j = 0; j < DIM; j++)
        for (size_t a = 0; a < k; a++) {
            double expected = 0, sum = 0;
            for (size_t b = 0; b < k; b++) expected += mean[a * k + b] * start[b];
            for (size_t i = 0; i < COUNT; i++) sum += z[(i * k + a) * DIM + j] / COUNT;
            assert_true(fabs(sum - expected) < 5 * sqrt(cov[a * k + a] / COUNT));
            for (size_t b = 0; b <= a; b++) {
                double other = 0, product = 0, scale = sqrt(cov[a * k + a] * cov[b * k + b]);
                for (size_t c = 0; c < k; c++) other += mean[b * k + c] * start[c];
                for (size_t i = 0; i < COUNT; i++)
                    product += (z[(i * k + a) * DIM + j] - expected) * (z[(i * k + b) * DIM + j] - other) / COUNT;
                assert_true(fabs(product - cov[a * k + b]) < 5 * sqrt(2.0 / COUNT) * scale);
            }
        }
    free(z);
    psld_recipe_free(recipe);
}

static void test_moves(void **state)
{
    static const double one[] = {0, 0.3}, many[] = {0, 1e-4, 0.01, 0.01, 0.2, 0.3, 1};
    static const char *const recipes[] = {"vp", "psld gamma=0.3", "told", "vp beta=[0.1, 20]"};
    (void)state;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        check_moves(recipes[i], one, 2);
        check_moves(recipes[i], many, 7);
    }
}

/* Sample i is the same whichever others move with it; no time, no move. */
static void test_addresses(void **state)
{
    psld_recipe *recipe;
    double all[3 * 2 * DIM] = {0}, last[2 * DIM] = {0}, still[2 * DIM] = {1, 2, 3, 4};
    const double before[2 * DIM] = {1, 2, 3, 4};
    (void)state;
    assert_int_equal(psld_recipe_open("psld", &recipe), PSLD_OK);
    assert_int_equal(psld_recipe_move(recipe, 0, 0.5, 7, 1, 10, 3, DIM, all), PSLD_OK);
    assert_int_equal(psld_recipe_move(recipe, 0, 0.5, 7, 1, 12, 1, DIM, last), PSLD_OK);
    assert_memory_equal(all + 2 * 2 * DIM, last, sizeof last);
    assert_int_equal(psld_recipe_move(recipe, 0.5, 0.5, 7, 1, 0, 1, DIM, still), PSLD_OK);
    for (int i = 0; i < 2 * DIM; i++) assert_true(fabs(still[i] - before[i]) < 1e-12);
    assert_int_equal(psld_recipe_move(recipe, 0.5, 0.4, 7, 1, 0, 1, DIM, still), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_move(recipe, 0, 1.1, 7, 1, 0, 1, DIM, still), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_move(recipe, (double)NAN, 1, 7, 1, 0, 1, DIM, still), PSLD_BAD_ARGUMENT);
    psld_recipe_free(recipe);
}

/* ---- What is predicted along the way ----------------------------------------------------------------------------- */

typedef struct watcher {
    psld_model *model;
    int seen;
} watcher;

static psld_status compare_denoised(void *user, const psld_evaluation *evaluation)
{
    watcher *w = user;
    double x[64 * DIM], expected[64 * DIM];
    const psld_recipe *recipe = psld_model_recipe(w->model);
    psld_status status = psld_evaluation_denoise(evaluation, psld_model_source(w->model), recipe, x);
    if (status == PSLD_OK)
        status = psld_source_denoise(psld_model_source(w->model), recipe, evaluation->states, expected);
    if (status != PSLD_OK) return status;
    for (size_t i = 0; i < evaluation->states->n * DIM; i++) assert_true(x[i] == expected[i]);
    w->seen++;
    return PSLD_OK;
}

static void test_evaluation(void **state)
{
    psld_array *x;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    watcher w = {0};
    (void)state;
    assert_int_equal(psld_model_parse(yaml, "text", NULL, &w.model), PSLD_OK);
    options.sampler = "sscs";
    options.nfe = 12;
    options.watch = compare_denoised;
    options.watch_user = &w;
    assert_int_equal(psld_model_sample(w.model, &options, 0, 40, NULL, 0, &x, NULL), PSLD_OK);
    assert_true(w.seen >= 12);
    psld_array_free(x);
    psld_model_free(w.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array), cmocka_unit_test(test_sheet),     cmocka_unit_test(test_model),
        cmocka_unit_test(test_moves), cmocka_unit_test(test_addresses), cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
