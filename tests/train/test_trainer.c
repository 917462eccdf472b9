/* Training steps against the golden ones, and the update against its formula. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden_network.h"
#include "kernels/adam.h"
#include "kernels/backend.h"
#include "trace_check.h"
#include "train/trainer.h"

/* ---- The update -------------------------------------------------------------------------------------------------- */

static void check_adam(const psld_update_kernels *update)
{
    enum { COUNT = 100003 };
    float *buffers[5];
    double w = 0.3, m = 0.1, v = 0.02, average = 0.2, g = -0.7;
    const float start[5] = {-0.7f, 0.3f, 0.1f, 0.02f, 0.2f};
    psld_adam adam = {1e-2, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.95, 0.9, 7};
    for (int b = 0; b < 5; b++) {
        buffers[b] = malloc(COUNT * sizeof(float));
        for (size_t i = 0; i < COUNT; i++) buffers[b][i] = start[b];
    }
    update->adam(&adam, COUNT, buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]);
    double clipped = 0.5 * g + 0.01 * w;
    m = 0.9 * m + 0.1 * clipped;
    v = 0.999 * v + 0.001 * clipped * clipped;
    w = 0.9 * w - 1e-2 / (1 - pow(0.9, 7)) * m / (sqrt(v / (1 - pow(0.999, 7))) + 1e-8);
    average = 0.95 * average + 0.05 * w;
    for (size_t i = 0; i < COUNT; i += 777) {
        assert_true(fabs((double)buffers[1][i] - w) < 1e-7 && fabs((double)buffers[2][i] - m) < 1e-7);
        assert_true(fabs((double)buffers[3][i] - v) < 1e-8 && fabs((double)buffers[4][i] - average) < 1e-7);
    }
    double *chunks = malloc(update->square_chunks(COUNT) * sizeof *chunks);
    assert_true(fabs(update->sum_squares(COUNT, buffers[0], chunks) / (0.49 * COUNT) - 1) < 1e-6);
    free(chunks);
    for (int b = 0; b < 5; b++) free(buffers[b]);
}

static void adam_formula(void **state)
{
    (void)state;
    for (int i = 0; psld_backend_number(i); i++) check_adam(&psld_backend_number(i)->update);
}

/* ---- Golden steps ------------------------------------------------------------------------------------------------ */

static void golden_steps(void **state)
{
    (void)state;
    const golden_list *list = golden_find("train.json");
    for (size_t i = 0; i < list->count; i++) trace_check(list->folders[i], psld_backend_fastest(), 2e-6);
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

/* The sums over two ranks that have the same numbers. */
enum { MAX_ARRAYS = 100 };
static size_t array_counts[MAX_ARRAYS], arrays_begun;

static psld_status keep_counts(const size_t *counts, size_t arrays, psld_sum_format format, psld_sums **sums)
{
    (void)format;
    assert_in_range(arrays, 1, MAX_ARRAYS);
    memcpy(array_counts, counts, arrays * sizeof *counts);
    *sums = NULL;
    return PSLD_OK;
}

static void begin_double(psld_sums *sums, size_t i, float *numbers)
{
    (void)sums;
    for (size_t j = 0; j < array_counts[i]; j++) numbers[j] *= 2;
    arrays_begun++;
}

static void nothing(psld_sums *sums)
{
    (void)sums;
}

/* The norm of the gradient and the weights that a step leaves. */
static double step_among(const psld_distribution *ranks, float *weights, size_t room)
{
    enum { SIZE = 8, BATCH = 3 };
    const char *text = "data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, nf: 8, ch_mult: [1, 2], num_res_blocks: 1}";
    psld_yaml *yaml;
    psld_network_config config;
    psld_network *network;
    psld_trainer_options options;
    psld_trainer *trainer;
    float z[BATCH * 2 * SIZE * SIZE], target[BATCH * 2 * SIZE * SIZE], t[BATCH] = {0.1f, 0.5f, 0.9f};
    double loss, norm;
    for (int i = 0; i < BATCH * 2 * SIZE * SIZE; i++) z[i] = sinf((float)i), target[i] = cosf((float)(3 * i));
    assert_int_equal(psld_yaml_parse(text, strlen(text), "small", &yaml), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    psld_yaml_free(yaml);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    psld_network_initialise(network, 4);
    psld_trainer_defaults(&options);
    options.backend = psld_backend_fastest();
    options.batch = BATCH;
    options.ranks = ranks;
    assert_int_equal(psld_trainer_create(network, &options, &trainer), PSLD_OK);
    assert_int_equal(psld_trainer_step(trainer, BATCH, 0, z, t, target, &loss, &norm), PSLD_OK);
    assert_true(network->graph->parameter_elements <= room);
    memcpy(weights, network->weights, network->graph->parameter_elements * sizeof *weights);
    psld_trainer_free(trainer);
    psld_network_free(network);
    return norm;
}

static void equal_ranks(void **state)
{
    (void)state;
    enum { ROOM = 100000 };
    const psld_distribution two = {.count = 2,
                                   .create_sums = keep_counts,
                                   .begin_sum = begin_double,
                                   .poke_sums = nothing,
                                   .finish_sums = nothing,
                                   .free_sums = nothing};
    float *alone = calloc(ROOM, sizeof *alone), *together = calloc(ROOM, sizeof *together);
    double norm = step_among(NULL, alone, ROOM);
    assert_true(norm > 0 && step_among(&two, together, ROOM) == norm); /* twice a half, to the bit */
    assert_memory_equal(alone, together, ROOM * sizeof *alone);
    assert_true(arrays_begun > 0);
    free(alone);
    free(together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adam_formula), cmocka_unit_test(golden_steps),
                                       cmocka_unit_test(equal_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
