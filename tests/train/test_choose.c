/* What is chosen for data that come without a configuration: networks that can be built for every size, larger ones the
 * more time there is, and as many steps as the time has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "io/yaml/yaml.h"
#include "model/model.h"
#include "train/choose.h"
#include "train/settings.h"

/* A choice for images of `size` pixels a side. */
static psld_yaml *choose_images(size_t size, size_t classes, double seconds, const char *said, psld_choice *choice)
{
    size_t shape[3] = {3, size, size};
    psld_yaml *yaml;
    *choice =
        (psld_choice){.rank = 3, .shape = shape, .items = 1000, .classes = classes, .seconds = seconds, .ranks = 1};
    assert_int_equal(psld_yaml_parse(said, strlen(said), "test", &yaml), PSLD_OK);
    if (psld_choose(yaml, choice) != PSLD_OK) fail_msg("size %zu: %s", size, psld_error_text());
    return yaml;
}

static const char *text_at(const psld_yaml *yaml, const char *section, const char *key)
{
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(yaml), section), key);
    const char *text = "";
    if (node) assert_int_equal(psld_node_text(node, &text), PSLD_OK);
    return text;
}

static double number_at(const psld_yaml *yaml, const char *section, const char *key)
{
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(yaml), section), key);
    double number = 0;
    if (node) assert_int_equal(psld_node_number(node, &number), PSLD_OK);
    return number;
}

/* Building the network is part of choosing it: what cannot be built fails here. */
static void every_size_has_a_network(void **state)
{
    static const struct {
        size_t size, brought_to, patch;
    } cases[] = {{1, 1, 1},   {2, 2, 1},    {3, 3, 1},     {5, 5, 1},    {7, 6, 1},   {8, 8, 1},
                 {13, 12, 1}, {28, 28, 1},  {32, 32, 1},   {33, 32, 1},  {50, 48, 2}, {64, 64, 2},
                 {65, 64, 2}, {100, 96, 4}, {128, 128, 4}, {256, 256, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t classes = 0; classes <= 3; classes += 3) {
            psld_choice choice;
            psld_yaml *yaml = choose_images(cases[i].size, classes, 60, "{train: {steps: 1, batch: 1}}", &choice);
            double patch = number_at(yaml, "model", "patch");
            if (number_at(yaml, "data", "size") != (double)cases[i].brought_to ||
                (patch > 0 ? patch : 1) != (double)cases[i].patch)
                fail_msg("%zu pixels: size %g, patch %g", cases[i].size, number_at(yaml, "data", "size"), patch);
            psld_yaml_free(yaml);
        }
}

/* Images of 8 pixels, for which every network is quick to measure. */
static void more_time_larger_networks(void **state)
{
    psld_choice choice;
    (void)state;
    psld_yaml *short_one = choose_images(8, 0, 1e-3, "{train: {batch: 2}}", &choice);
    assert_string_equal(text_at(short_one, "model", "nf"), "16");
    assert_true(number_at(short_one, "train", "steps") >= 1);
    psld_yaml *long_one = choose_images(8, 0, 1e12, "{train: {batch: 2}}", &choice);
    assert_string_equal(text_at(long_one, "model", "nf"), "128");
    assert_true(number_at(long_one, "train", "steps") == 1000 * 1000 / 2); /* a thousand passes are enough */
    assert_non_null(strstr(choice.reasons, "500000 steps of 2 samples"));
    psld_yaml_free(short_one);
    psld_yaml_free(long_one);
}

static void what_was_said_stays(void **state)
{
    psld_choice choice;
    (void)state;
    psld_yaml *yaml = choose_images(
        8, 0, 1e12, "{process: vp, model: {nf: 8, num_res_blocks: 1}, train: {batch: 2, steps: 7, lr: 0.5}}", &choice);
    assert_string_equal(text_at(yaml, "model", "nf"), "8");
    assert_string_equal(text_at(yaml, "train", "lr"), "0.5");
    assert_string_equal(text_at(yaml, "train", "steps"), "7");
    assert_non_null(strstr(choice.reasons, "7 steps of 2 samples"));
    psld_yaml_free(yaml);
    yaml = choose_images(8, 0, 1e12, "{train: {batch: 2, steps: 7}}", &choice); /* few samples: the smallest network */
    assert_string_equal(text_at(yaml, "model", "nf"), "16");
    psld_yaml_free(yaml);
}

/* Grey images are learned about more noise than colour images. */
static void noise_of_grey_images(void **state)
{
    (void)state;
    for (size_t channels = 1; channels <= 3; channels += 2) {
        size_t shape[3] = {channels, 8, 8};
        psld_choice choice = {.rank = 3, .shape = shape, .items = 1000, .seconds = 1e-3, .ranks = 1};
        psld_yaml *yaml;
        assert_int_equal(psld_yaml_parse("{}", 2, "test", &yaml), PSLD_OK);
        assert_int_equal(psld_choose(yaml, &choice), PSLD_OK);
        assert_string_equal(text_at(yaml, "train", "noise_middle"), channels == 1 ? "2" : "");
        psld_yaml_free(yaml);
    }
}

/* Vectors need no more than twenty thousand steps, and a configuration gets the steps that the time has room for. */
static void steps_of_vectors(void **state)
{
    static const char config[] = "{process: vp, data: {channels: 2}, model: {name: mlp, nf: 8, num_res_blocks: 1}, "
                                 "train: {batch: 4, steps: 1000000000}}";
    size_t shape[1] = {2};
    psld_choice choice = {.rank = 1, .shape = shape, .items = UINT64_MAX, .seconds = 1e12, .ranks = 1};
    psld_yaml *yaml;
    (void)state;
    assert_int_equal(psld_yaml_parse("{}", 2, "test", &yaml), PSLD_OK);
    assert_int_equal(psld_choose(yaml, &choice), PSLD_OK);
    assert_string_equal(text_at(yaml, "train", "steps"), "20000");
    psld_yaml_free(yaml);
    choice.seconds = 0.1;
    assert_int_equal(psld_yaml_parse(config, strlen(config), "test", &yaml), PSLD_OK);
    assert_int_equal(psld_choose_steps(yaml, &choice), PSLD_OK);
    double steps = number_at(yaml, "train", "steps");
    assert_true(steps >= 100 && steps < 1e8);
    assert_string_equal(text_at(yaml, "model", "nf"), "8");
    psld_yaml_free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_has_a_network), cmocka_unit_test(more_time_larger_networks),
        cmocka_unit_test(what_was_said_stays),      cmocka_unit_test(noise_of_grey_images),
        cmocka_unit_test(steps_of_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
