/* Whatever locale an application has: numbers that files and keys are made of have a '.', and are read so. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"
#include "comma.h"
#include "io/files/file.h"
#include "psld_eval.h"
#include "sample/options.h"
#include "sample/sample.h"
#include "sample/time_grid.h"

static void write_text(const char *path, const char *text)
{
    psld_writer *writer;
    assert_int_equal(psld_writer_open(path, &writer), PSLD_OK);
    psld_writer_put(writer, text, strlen(text));
    assert_int_equal(psld_writer_commit(writer), PSLD_OK);
}

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static void numbers(void **state)
{
    (void)state;
    need_comma();
    char text[32];
    double value = 0;
    with_comma();
    int point = psld_text_number("1.5", &value), comma = psld_text_number("1,5", &value);
    int length = psld_text_print(text, sizeof text, "%.17g %d", 0.5, 3);
    without_comma();
    assert_true(point && !comma);
    assert_true(value == 1.5);
    assert_string_equal(text, "0.5 3");
    assert_int_equal(length, 5);
}

static void grids(void **state)
{
    (void)state;
    need_comma();
    double times[4] = {0}, end = 0;
    with_comma();
    psld_status listed = psld_grid_times(NULL, "1, 0.5,.25,1e-3", 7, 3, 1e-3, times);
    psld_status ended = psld_grid_list_end(NULL, "1, 0.5,.25,1e-3", &end);
    without_comma();
    assert_int_equal(listed, PSLD_OK);
    assert_int_equal(ended, PSLD_OK);
    static const double expected[4] = {1, 0.5, 0.25, 1e-3};
    assert_memory_equal(times, expected, sizeof expected);
    assert_true(end == 1e-3);
    static const char *const bad[] = {"1,0.5,0.25",   "1,0.5,0.25,1e-3,1e-4", "1,0.5,0x1p-3,1e-3",
                                      "1,,0.25,1e-3", "1,0.5,0.25,-1",        "1,0.5,0.25,1e-3 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(psld_grid_times(NULL, bad[i], 7, 3, 1e-3, times), PSLD_BAD_ARGUMENT);
}

/* What a training run leaves behind is the same in every locale, but for the seconds that it took. */
static void trains(const char *folder)
{
    static const char *const overrides[] = {"process=locale-recipe", "train.steps=2"};
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    psld_training *training;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    options.config = "locale.yaml";
    options.overrides = overrides;
    options.override_count = 2;
    must(psld_training_open(folder, &options, &training));
    for (int step = 0; step < 2; step++) must(psld_training_step(training, &report));
    psld_training_free(training);
}

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    must(psld_file_read(path, 1 << 20, &text, &size));
    return text;
}

static void training(void **state)
{
    (void)state;
    need_comma();
    write_text("locale-recipe", "{name: mine, D: [[0.5]], Q: [[0]], beta: [0.1, 20]}\n");
    write_text("locale.yaml", "data: {path: \"toy:moons\", channels: 2}\n"
                              "model: {name: mlp, nf: 8, num_res_blocks: 1, predicts: data}\n"
                              "train: {batch: 8, sample_every: 0, evaluate_every: 1, evaluate_count: 8}\n");
    assert_int_equal(system("rm -rf with without"), 0);
    trains("without");
    with_comma();
    trains("with");
    without_comma();
    char *before = read_text("without/config.yaml"), *after = read_text("with/config.yaml");
    assert_non_null(strstr(before, "0.5"));
    assert_string_equal(before, after);
    psld_release(before);
    psld_release(after);
    char *log = read_text("with/log.jsonl");
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *entry = json_loads(line, 0, NULL);
        assert_true(json_is_real(json_object_get(entry, "loss")));
        json_decref(entry);
    }
    psld_release(log);
}

static void weak_scales(void **state)
{
    (void)state;
    need_comma();
    psld_model *model, *guided, *again;
    write_text("locale-net.yaml", "process: vp\ndata: {size: 1, channels: 2}\n"
                                  "model: {name: mlp, nf: 8, num_res_blocks: 1}\n");
    must(psld_model_create("locale-net.yaml", NULL, 0, &model));
    must(psld_model_save(model, "locale-net.safetensors"));
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.weak = "locale-net.safetensors";
    options.weak_scale = 1.25;
    must(psld_model_open("locale-net.safetensors", &options, &guided));
    with_comma();
    psld_status status = psld_model_save(guided, "locale-guided.safetensors");
    without_comma();
    must(status);
    must(psld_model_open("locale-guided.safetensors", NULL, &again));
    assert_true(psld_model_weak_scale(again) == 1.25);
    psld_model_free(again);
    psld_model_free(guided);
    psld_model_free(model);
}

static void keys_of_sweeps(void **state)
{
    (void)state;
    need_comma();
    psld_sweep *sweep;
    char key[512];
    write_text("locale-mixture.yaml", "mixture: {weights: [1], means: [[0, 0]], scales: [1]}\nprocess: vp\n");
    write_text("locale-sweep.yaml",
               "models: [locale-mixture.yaml]\nmetrics: swd\nsamplers: [ode]\ntolerances: [0.25]\nnumber: 16\n");
    must(psld_sweep_open("locale-sweep.yaml", NULL, 0, &sweep));
    with_comma();
    psld_status status = psld_sweep_key(sweep, 0, key, sizeof key);
    without_comma();
    must(status);
    assert_non_null(strstr(key, "|0.25|"));
    psld_sweep_free(sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),     cmocka_unit_test(grids),          cmocka_unit_test(training),
        cmocka_unit_test(weak_scales), cmocka_unit_test(keys_of_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
