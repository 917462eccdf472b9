/* Models that were learned: points drawn from a small network, trained here, lie where the data do, measured by the
 * distance that two sets of data have from each other. PSLD_LONG=1 in the environment trains longer and asks for more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "psld.h"
#include "psld_eval.h"

enum { MOST = 10000 };

static void read_data(psld_data *data, uint64_t first, size_t n, double *points)
{
    static uint64_t items[MOST];
    static float x[2 * MOST];
    for (size_t i = 0; i < n; i++) items[i] = first + i;
    assert_int_equal(psld_data_read(data, n, items, x, NULL), PSLD_OK);
    for (size_t i = 0; i < 2 * n; i++) points[i] = (double)x[i];
}

static double distance_to_data(psld_model *model, size_t n, const double *fresh)
{
    static double drawn[2 * MOST];
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_array *x;
    double distance;
    options.sampler = "sscs";
    options.nfe = 100;
    options.batch = 0;
    assert_int_equal(psld_model_sample(model, &options, 0, n, NULL, 0, &x, NULL), PSLD_OK);
    for (size_t i = 0; i < 2 * n; i++) drawn[i] = (double)((const float *)x->data)[i];
    psld_array_free(x);
    assert_int_equal(psld_sliced_wasserstein(2, n, drawn, n, fresh, 64, 0, &distance), PSLD_OK);
    return distance;
}

static void learned(void **state)
{
    (void)state;
    static const char *const processes[] = {"process=vp", "process=cld", "process=psld gamma=0.25", "process=told"};
    static double fresh[2 * MOST], other[2 * MOST];
    int is_long = getenv("PSLD_LONG") != NULL;
    size_t n = is_long ? MOST : 1000;
    psld_data *data;
    double between;
    assert_int_equal(psld_data_open("toy:moons", NULL, &data), PSLD_OK);
    read_data(data, (uint64_t)1 << 30, n, fresh); /* far from where training begins */
    read_data(data, (uint64_t)1 << 31, n, other);
    assert_int_equal(psld_sliced_wasserstein(2, n, fresh, n, other, 64, 0, &between), PSLD_OK);
    for (int i = 0; i < 4; i++) {
        const char *brief[] = {processes[i],      "model.predicts=data",    "train.times=noise", "model.nf=32",
                               "train.batch=128", "model.num_res_blocks=2", "train.steps=400",   "train.warmup=20",
                               "train.ema=0.95",  "train.lr=3e-3"};
        const char *full[] = {processes[i],      "model.predicts=data",    "train.times=noise", "model.nf=64",
                              "train.batch=256", "model.num_res_blocks=3", "train.steps=10000", "train.warmup=200",
                              "train.ema=0.999", "train.lr=2e-3"};
        psld_training_options options = PSLD_TRAINING_DEFAULTS;
        psld_training *training;
        options.data = "toy:moons";
        options.overrides = is_long ? full : brief;
        options.override_count = sizeof brief / sizeof *brief;
        if (psld_training_open(NULL, &options, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
        double before = distance_to_data(psld_training_model(training), n, fresh);
        assert_int_equal(psld_training_run(training, NULL, NULL), PSLD_OK);
        double after = distance_to_data(psld_training_model(training), n, fresh);
        printf("%s: distance %.4f, untrained %.4f, of two data sets %.4f\n", processes[i], after, before, between);
        assert_true(after < before && after <= (is_long ? 2 : 3) * between);
        psld_training_free(training);
    }
    psld_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(learned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
