/* Samples of models as arrays: the same bits however they are cut into batches, calls and threads; trajectories;
 * fingerprints. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "nn/plan.h"
#include "psld.h"
#include "psld_train.h"

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static psld_model *network(const char *process, const char *rest, uint64_t seed)
{
    psld_model *model;
    char text[512];
    snprintf(text, sizeof text, "process: %s\n%s", process, rest);
    write_file("sample-config.yaml", text);
    must(psld_model_create("sample-config.yaml", NULL, seed, &model));
    return model;
}

static psld_model *exact(const char *text)
{
    psld_model *model;
    write_file("sample-exact.yaml", text);
    must(psld_model_open("sample-exact.yaml", NULL, &model));
    return model;
}

static const char grey[] = "data: {size: 4, channels: 1}\n"
                           "model: {name: ncsnpp, nf: 4, ch_mult: [1, 1], num_res_blocks: 1, attn_resolutions: [2]}\n";
static const char colour[] = "data: {size: 4, channels: 3}\n"
                             "model: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: []}\n";

static psld_sample_options short_walk(const char *sampler)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = sampler;
    options.nfe = 6;
    options.tolerance = 0.05;
    options.ode_group = 3;
    options.seed = 11;
    return options;
}

/* ---- Bits -------------------------------------------------------------------------------------------------------- */

enum { N = 11 };

/* What psld_sample says, all in one batch. */
static psld_array *truth(psld_model *model, psld_sample_options options, int state)
{
    size_t shape[PSLD_MAX_RANK] = {0}, dim = 1, k = (size_t)psld_recipe_get(psld_model_recipe(model))->k;
    int rank = psld_model_shape(model, shape);
    for (int i = 0; i < rank; i++) dim *= shape[i];
    double *z = calloc(N * k * dim, sizeof *z);
    assert_non_null(z);
    options.batch = 1000;
    must(psld_sample(psld_model_recipe(model), psld_model_source(model), &options, 0, N, dim, NULL, z, NULL));
    size_t kept = state ? k * dim : dim, flat[2] = {N, kept};
    psld_array *x;
    must(psld_array_create(PSLD_F32, 2, flat, &x));
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < kept; j++) ((float *)x->data)[i * kept + j] = (float)z[i * k * dim + j];
    free(z);
    return x;
}

/* Samples first ... first + count - 1 in one call are those of the whole. */
static void check_part(psld_model *model, const psld_sample_options *options, int state, const psld_array *whole,
                       uint64_t first, size_t count)
{
    psld_array *x;
    size_t each = whole->count / N, shape[PSLD_MAX_RANK], k = (size_t)psld_recipe_get(psld_model_recipe(model))->k;
    int rank = psld_model_shape(model, shape);
    must(psld_model_sample(model, options, first, count, NULL, state, &x, NULL));
    assert_int_equal(x->type, PSLD_F32);
    assert_int_equal(x->rank, rank + 1);
    assert_int_equal(x->shape[0], count);
    assert_int_equal(x->shape[1], shape[0] * (state ? k : 1));
    for (int i = 1; i < rank; i++) assert_int_equal(x->shape[i + 1], shape[i]);
    assert_memory_equal(x->data, (float *)whole->data + first * each, count * each * sizeof(float));
    psld_array_free(x);
}

static void check_bits(psld_model *model)
{
    static const size_t batches[] = {0, 1, 2, 7, 1000};
    for (int s = 0; psld_sampler_at(s); s++) {
        if (psld_sampler_at(s)->consistency) continue; /* the model is not tuned for it */
        psld_sample_options options = short_walk(psld_sampler_at(s)->name);
        for (int state = 0; state < 2; state++) {
            must(psld_threads_set(1));
            psld_array *whole = truth(model, options, state);
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                options.batch = (int)batches[b];
                must(psld_threads_set(1 + (int)b % 2));
                check_part(model, &options, state, whole, 0, N);
                check_part(model, &options, state, whole, 6, N - 6); /* a group begins at 6 */
                check_part(model, &options, state, whole, 3, 3);
            }
            psld_array_free(whole);
        }
    }
    must(psld_threads_set(0));
    psld_model_free(model);
}

static void same_bits_grey(void **state)
{
    (void)state;
    check_bits(network("psld gamma=0.02", grey, 1));
}

static void same_bits_colour(void **state)
{
    (void)state;
    check_bits(network("cld", colour, 2));
    check_bits(network("vp", colour, 2));
}

static void same_bits_points(void **state)
{
    (void)state;
    check_bits(network("psld", "data: {channels: 2}\nmodel: {name: mlp, nf: 16, num_res_blocks: 2}\n", 3));
    check_bits(exact("mixture: {weights: [0.5, 0.5], means: [[-1, 0], [1, 0]], scales: [0.1, 0.2]}\nprocess: told\n"));
}

/* ---- Pieces, starts, refusals ------------------------------------------------------------------------------------ */

typedef struct pieces {
    uint64_t next;
    int calls, stop_after;
} pieces;

static psld_status take_piece(void *user, uint64_t first, const psld_array *x)
{
    pieces *p = user;
    assert_int_equal(first, p->next);
    p->next += x->shape[0];
    assert_int_equal(x->count, x->shape[0] * 16);
    return ++p->calls == p->stop_after ? PSLD_IO : PSLD_OK;
}

static int never_back(void *user, uint64_t done, uint64_t total)
{
    uint64_t *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
    return 0;
}

static int cancel_late(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return 2 * done > total;
}

static void pieces_arrive_in_order(void **state)
{
    (void)state;
    psld_model *model = network("psld", grey, 1);
    psld_sample_options options = short_walk("em");
    uint64_t nfe = 0, last = 0;
    pieces all = {.next = 5}, some = {.next = 5, .stop_after = 2}, early = {.next = 0};
    options.batch = 3;
    options.progress = never_back;
    options.progress_user = &last;
    must(psld_model_draw(model, &options, 5, 10, NULL, 0, take_piece, &all, &nfe));
    assert_int_equal(all.next, 15);
    assert_int_equal(all.calls, 4);
    assert_int_equal(nfe, 6);
    assert_true(last > 0);
    options.progress = NULL;
    assert_int_equal(psld_model_draw(model, &options, 5, 10, NULL, 0, take_piece, &some, NULL), PSLD_IO);
    assert_int_equal(some.next, 11);
    options.progress = cancel_late;
    assert_int_equal(psld_model_draw(model, &options, 0, 9, NULL, 0, take_piece, &early, NULL), PSLD_CANCELLED);
    assert_int_equal(early.next, 3); /* the first of three batches was whole */
    psld_model_free(model);
}

static void given_starts(void **state)
{
    (void)state;
    psld_model *model = network("psld", grey, 1);
    psld_sample_options options = short_walk("heun");
    psld_array *z, *a, *b, *x = NULL;
    const size_t shape[4] = {5, 2, 4, 4}, short_shape[4] = {4, 2, 4, 4};
    must(psld_array_create(PSLD_F32, 4, shape, &z));
    for (size_t i = 0; i < z->count; i++) ((float *)z->data)[i] = (float)sin((double)i);
    must(psld_model_sample(model, &options, 0, 5, z, 0, &a, NULL));
    options.seed = 99;
    options.batch = 2;
    must(psld_model_sample(model, &options, 70, 5, z, 0, &b, NULL)); /* deterministic: the start is all that counts */
    assert_memory_equal(a->data, b->data, a->count * sizeof(float));
    psld_array_free(z);
    must(psld_array_create(PSLD_F32, 4, short_shape, &z));
    assert_int_equal(psld_model_sample(model, &options, 0, 5, z, 0, &x, NULL), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "start: expected 5 states of 32 numbers"));
    assert_null(x);
    assert_int_equal(psld_model_sample(model, &options, 0, 0, NULL, 0, &x, NULL), PSLD_BAD_ARGUMENT);
    psld_array_free(a);
    psld_array_free(b);
    psld_array_free(z);
    psld_model_free(model);
}

/* ---- Trajectories ------------------------------------------------------------------------------------------------ */

/* Data that is one point is predicted right from everywhere. */
static void trajectory_of_a_point(void **state)
{
    (void)state;
    static const char *const processes[] = {"vp", "cld", "psld gamma=0.02", "told"};
    for (int p = 0; p < 4; p++)
        for (int s = 0; psld_sampler_at(s); s++) {
            char text[256];
            if (psld_sampler_at(s)->consistency) continue; /* the model is not tuned for it */
            snprintf(text, sizeof text, "mixture: {weights: [1], means: [[0.3, -0.7]], scales: 0}\nprocess: %s\n",
                     processes[p]);
            psld_model *model = exact(text);
            psld_sample_options options = short_walk(psld_sampler_at(s)->name);
            options.nfe = 60;
            psld_trajectory *path;
            psld_array *x;
            must(psld_trajectory_create(model, 2, 4, 5, &path));
            psld_trajectory_watch(path, &options);
            must(psld_model_sample(model, &options, 0, 8, NULL, 0, &x, NULL));
            const psld_array *frames = psld_trajectory_frames(path);
            assert_int_equal(frames->rank, 3);
            assert_int_equal(frames->shape[0] * 100 + frames->shape[1] * 10 + frames->shape[2], 452);
            for (size_t i = 0; i < frames->count; i++)
                assert_true(fabs((double)((const float *)frames->data)[i] - (i % 2 ? -0.7 : 0.3)) < 1e-3);
            psld_array_free(x);
            psld_trajectory_free(path);
            psld_model_free(model);
        }
}

/* Two modes: far from both the model believes in their middle, at the end in where the sample is. */
static void trajectory_decides(void **state)
{
    (void)state;
    psld_model *model = exact("mixture: {weights: [0.5, 0.5], means: [[-1], [1]], scales: 0.01}\nprocess: psld\n");
    psld_sample_options options = short_walk("em");
    options.nfe = 100;
    psld_trajectory *path;
    psld_array *x;
    must(psld_trajectory_create(model, 0, 20, 8, &path));
    psld_trajectory_watch(path, &options);
    must(psld_model_sample(model, &options, 0, 20, NULL, 0, &x, NULL));
    const float *frames = psld_trajectory_frames(path)->data, *end = x->data;
    for (int i = 0; i < 20; i++) {
        assert_true(fabs((double)frames[8 * i]) < 0.3);
        assert_true(fabs((double)(frames[8 * i + 7] - end[i])) < 0.1);
    }
    psld_array_free(x);
    psld_trajectory_free(path);
    psld_model_free(model);
}

/* The last moment is where the walk ends, whichever option says so. */
static void trajectory_ends_with_the_walk(void **state)
{
    (void)state;
    enum { SAMPLES = 6, FRAMES = 4 };
    psld_model *model = exact("mixture: {weights: [0.5, 0.5], means: [[-1], [1]], scales: 0.1}\nprocess: cld\n");
    psld_sample_options by_eps = short_walk("euler-ode"), by_list, by_sigma;
    float frames[3][SAMPLES * FRAMES];
    by_eps.nfe = 5;
    by_eps.grid = "uniform";
    by_list = by_sigma = by_eps;
    by_eps.eps = 0.5;
    by_list.grid = "1,0.875,0.75,0.625,0.5";
    by_list.batch = 0;
    must(psld_recipe_sigma(psld_model_recipe(model), 0.5, &by_sigma.end_sigma));
    psld_sample_options *const ways[3] = {&by_eps, &by_list, &by_sigma};
    for (int w = 0; w < 3; w++) {
        psld_trajectory *path;
        psld_array *x;
        must(psld_trajectory_create(model, 0, SAMPLES, FRAMES, &path));
        psld_trajectory_watch(path, ways[w]);
        must(psld_model_sample(model, ways[w], 0, SAMPLES, NULL, 0, &x, NULL));
        memcpy(frames[w], psld_trajectory_frames(path)->data, sizeof frames[w]);
        psld_array_free(x);
        psld_trajectory_free(path);
    }
    assert_memory_equal(frames[0], frames[1], sizeof *frames);
    for (int i = 0; i < SAMPLES * FRAMES; i++) {
        assert_true(fabs((double)(frames[0][i] - frames[2][i])) < 1e-5);
        assert_true(i % FRAMES == 0 || frames[0][i] != frames[0][i - 1]); /* each moment has its own */
    }
    psld_model_free(model);
}

static void trajectories_are_checked(void **state)
{
    (void)state;
    psld_model *model = exact("mixture: {weights: [1], means: [[0.3, -0.7]], scales: 0.1}\nprocess: vp\n");
    psld_trajectory *path = NULL;
    assert_int_equal(psld_trajectory_create(model, 0, 0, 8, &path), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_trajectory_create(model, 0, SIZE_MAX / 4, 8, &path), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "the sizes of an array are too large");
    assert_null(path);
    psld_model_free(model);
}

/* ---- Fingerprints ------------------------------------------------------------------------------------------------ */

static void fingerprints(void **state)
{
    (void)state;
    psld_model *models[6], *again;
    models[0] = network("psld", grey, 1);
    models[1] = network("psld", grey, 2);
    models[2] = network("psld gamma=0.02", grey, 1);
    models[3] = network("psld", colour, 1);
    models[4] = exact("mixture: {weights: [1], means: [[0]], scales: 1}\nprocess: psld\n");
    models[5] = exact("mixture: {weights: [1], means: [[0]], scales: 2}\nprocess: psld\n");
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) assert_true(psld_model_fingerprint(models[i]) != psld_model_fingerprint(models[j]));
    must(psld_model_save(models[1], "sample-saved.safetensors"));
    must(psld_model_open("sample-saved.safetensors", NULL, &again));
    assert_true(psld_model_fingerprint(again) == psld_model_fingerprint(models[1]));
    psld_model_free(again);
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.process = "psld beta=7";
    must(psld_model_open("sample-saved.safetensors", &options, &again));
    assert_true(psld_model_fingerprint(again) != psld_model_fingerprint(models[1]));
    psld_model_free(again);
    for (int i = 0; i < 6; i++) psld_model_free(models[i]);
}

#define SMALL_IMAGES                                                                                        \
    "data: {image_size: 8, channels: 1}\nmodel: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, " \
    "attn_resolutions: [4]}\n"

/* Threads may be raised when a network has long been used: it makes use of them, and computes the same bits. */
static void threads_change_between_calls(void **state)
{
    (void)state;
    psld_model *model = network("psld", SMALL_IMAGES, 3);
    psld_sample_options options = short_walk("em");
    psld_array *x[4];
    const int threads[4] = {1, 3, 2, 4};
    for (int i = 0; i < 4; i++) {
        must(psld_threads_set(threads[i]));
        must(psld_model_sample(model, &options, 0, 3, NULL, 0, &x[i], NULL));
        assert_true(psld_runner_plan(model->runners[0])->threads >= threads[i]);
        assert_memory_equal(x[i]->data, x[0]->data, x[0]->count * sizeof(float));
    }
    for (int i = 0; i < 4; i++) psld_array_free(x[i]);
    psld_model_free(model);
    must(psld_threads_set(0));
}

static void timing_a_training_leaves_the_weights(void **state)
{
    (void)state;
    psld_model *model = network("psld", SMALL_IMAGES, 3);
    psld_sample_options options = short_walk("em");
    psld_array *before, *after;
    uint64_t fingerprint = psld_model_fingerprint(model);
    double seconds;
    size_t bytes;
    must(psld_model_sample(model, &options, 0, 2, NULL, 0, &before, NULL));
    must(psld_model_time_training(model, 2, 1, &seconds, &bytes));
    must(psld_model_sample(model, &options, 0, 2, NULL, 0, &after, NULL));
    assert_true(psld_model_fingerprint(model) == fingerprint);
    assert_memory_equal(after->data, before->data, before->count * sizeof(float));
    psld_array_free(before);
    psld_array_free(after);
    psld_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_grey),
        cmocka_unit_test(same_bits_colour),
        cmocka_unit_test(same_bits_points),
        cmocka_unit_test(pieces_arrive_in_order),
        cmocka_unit_test(given_starts),
        cmocka_unit_test(trajectory_of_a_point),
        cmocka_unit_test(trajectory_decides),
        cmocka_unit_test(trajectory_ends_with_the_walk),
        cmocka_unit_test(trajectories_are_checked),
        cmocka_unit_test(fingerprints),
        cmocka_unit_test(threads_change_between_calls),
        cmocka_unit_test(timing_a_training_leaves_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
