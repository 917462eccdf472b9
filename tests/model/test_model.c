/* Models that are networks: opening, saving, evaluating, sampling. Golden numbers of the networks themselves are in
 * test_networks.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "flow_check.h"
#include "io/yaml/yaml.h"
#include "psld.h"

static const char score_config[] =
    "process: psld gamma=0.02\n"
    "data: {size: 8, channels: 1}\n"
    "model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}\n";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static psld_model *create_model(const char *config, uint64_t seed)
{
    psld_model *model;
    write_file("model-config.yaml", config);
    if (psld_model_create("model-config.yaml", NULL, seed, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    return model;
}

static psld_array *numbers(int rank, const size_t *shape, double frequency)
{
    psld_array *array;
    assert_int_equal(psld_array_create(PSLD_F32, rank, shape, &array), PSLD_OK);
    for (size_t i = 0; i < array->count; i++)
        ((float *)array->data)[i] = (float)(0.5 + 0.45 * sin(frequency * (double)i));
    return array;
}

/* Two models give the same bits on the same states. */
static void check_same(psld_model *a, psld_model *b)
{
    const size_t shape[4] = {3, 2, 8, 8};
    psld_array *z = numbers(4, shape, 0.7), *t = numbers(1, shape, 1.3), *out_a, *out_b;
    assert_int_equal(psld_model_evaluate(a, z, t, NULL, NULL, &out_a, NULL), PSLD_OK);
    assert_int_equal(psld_model_evaluate(b, z, t, NULL, NULL, &out_b, NULL), PSLD_OK);
    assert_int_equal(out_a->rank, 4);
    assert_int_equal(out_a->count, 3 * 2 * 64);
    assert_memory_equal(out_a->data, out_b->data, out_a->count * sizeof(float));
    psld_array_free(z);
    psld_array_free(t);
    psld_array_free(out_a);
    psld_array_free(out_b);
}

static void files_keep_the_model(void **state)
{
    (void)state;
    psld_model *model = create_model(score_config, 5), *again;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    size_t shape[PSLD_MAX_RANK];
    assert_int_equal(psld_model_kind_of(model), PSLD_SCORE_MODEL);
    assert_int_equal(psld_model_shape(model, shape), 3);
    assert_true(shape[0] == 1 && shape[1] == 8 && shape[2] == 8);
    assert_true(psld_model_parameters(model) > 1000 && psld_model_flops(model) > 1e5);
    assert_int_equal(psld_model_classes(model), 0);
    assert_int_equal(psld_model_save(model, "model.safetensors"), PSLD_OK);
    assert_int_equal(psld_model_open("model.safetensors", NULL, &again), PSLD_OK);
    assert_string_equal(psld_recipe_get(psld_model_recipe(again))->name, "psld");
    check_same(model, again);
    psld_model_free(again);
    assert_int_equal(psld_model_save(model, "model.pt"), PSLD_OK);
    assert_int_equal(psld_model_open("model.pt", NULL, &again), PSLD_OK); /* the configuration is in there as well */
    check_same(model, again);
    psld_model_free(again);
    assert_int_equal(psld_tensors_convert("model.pt", "plain.safetensors"), PSLD_OK);
    options.config = "model-config.yaml";
    assert_int_equal(psld_model_open("plain.safetensors", &options, &again), PSLD_OK);
    check_same(model, again);
    psld_model_free(again);
    assert_int_equal(psld_model_save(model, "model.txt"), PSLD_BAD_ARGUMENT);
    psld_model_free(model);
}

static void reference_and_fast_agree(void **state)
{
    (void)state;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_model *model = create_model(score_config, 6), *plain;
    const size_t shape[4] = {2, 2, 8, 8};
    psld_array *z = numbers(4, shape, 0.3), *t = numbers(1, shape, 2.3), *fast, *reference;
    options.reference = 1;
    assert_int_equal(psld_model_create("model-config.yaml", &options, 6, &plain), PSLD_OK);
    assert_int_equal(psld_model_evaluate(model, z, t, NULL, NULL, &fast, NULL), PSLD_OK);
    assert_int_equal(psld_model_evaluate(plain, z, t, NULL, NULL, &reference, NULL), PSLD_OK);
    double largest = 0, worst = 0;
    for (size_t i = 0; i < fast->count; i++) {
        double a = (double)((float *)fast->data)[i], b = (double)((float *)reference->data)[i];
        largest = fmax(largest, fabs(b));
        worst = fmax(worst, fabs(a - b));
    }
    assert_true(worst <= 2e-5 * largest);
    psld_array_free(z);
    psld_array_free(t);
    psld_array_free(fast);
    psld_array_free(reference);
    psld_model_free(model);
    psld_model_free(plain);
}

static void refused(void **state)
{
    (void)state;
    psld_model *model;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    write_file("bad.yaml", "process: cld\ndata: {size: 8, channels: 1}\nmodel: {name: ncsnpp, nf: 8, ch_mult: [1], "
                           "in_ch: 2, out_ch: 2}\n");
    assert_int_equal(psld_model_create("bad.yaml", NULL, 0, &model), PSLD_BAD_INPUT); /* cld predicts one channel */
    assert_non_null(strstr(psld_error_text(), "needs 2 and 1"));
    write_file("bad.yaml",
               "data: {size: 8, channels: 1}\nmodel: {name: ncsnpp, nf: 8, ch_mult: [1], in_ch: 2, out_ch: 2}\n");
    assert_int_equal(psld_model_create("bad.yaml", NULL, 0, &model), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "process is missing"));
    model = create_model(score_config, 1);
    assert_int_equal(psld_model_save(model, "small.safetensors"), PSLD_OK);
    const char *wider = "model.nf=16";
    options.overrides = &wider;
    options.override_count = 1;
    psld_model *wrong;
    assert_int_equal(psld_model_open("small.safetensors", &options, &wrong), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "small.safetensors"));
    assert_non_null(strstr(psld_error_text(), "all_modules"));
    size_t shape[4] = {2, 2, 8, 7};
    psld_array *z = numbers(4, shape, 1), *t = numbers(1, shape, 1), *out = (psld_array *)8;
    assert_int_equal(psld_model_evaluate(model, z, t, NULL, NULL, &out, NULL), PSLD_BAD_ARGUMENT);
    assert_null(out);
    psld_array_free(z);
    shape[3] = 8;
    z = numbers(4, shape, 1);
    psld_array *gradient;
    assert_int_equal(psld_model_evaluate(model, z, t, NULL, NULL, &out, &gradient), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "grad_out"));
    psld_array_free(z);
    psld_array_free(t);
    psld_model_free(model);
}

static void samples_have_the_same_bits(void **state)
{
    (void)state;
    enum { N = 20, WIDTH = 2 * 64 };
    static const size_t batches[] = {1, 7, 64};
    psld_model *model = create_model(score_config, 9);
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    static double z[N * WIDTH], reference[N * WIDTH];
    for (int s = 0; s < 3; s++) {
        options.sampler = s == 0 ? "em" : s == 1 ? "sscs" : "ode";
        options.nfe = 4;
        options.tolerance = 0.5;
        for (int b = 0; b < 3; b++) {
            options.batch = (int)batches[b];
            assert_int_equal(psld_threads_set(b + 1), PSLD_OK);
            assert_int_equal(
                psld_sample(psld_model_recipe(model), psld_model_source(model), &options, 0, N, 64, NULL, z, NULL),
                PSLD_OK);
            if (b == 0) memcpy(reference, z, sizeof z);
            assert_memory_equal(z, reference, sizeof z);
        }
    }
    psld_threads_set(0);
    psld_model_free(model);
}

static void golden_flow(void **state)
{
    (void)state;
    flow_check(NULL);
}

/* A tree written as text reads back as itself. */
static void yaml_text(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "{}", "a: 1\nb: [1, 2, [x, y]]\nc: {d: {e: 'f: g'}, h: []}\n", "- 1\n- {a: b}\n",
        "k: \"line\\nbreak \\\" \\\\ #\"\n\"odd: key\": '- x'\nn: '---'\nm: ' s '\ne: ''\n", "just text"};
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        psld_yaml *first, *second;
        char *text, *again;
        assert_int_equal(psld_yaml_parse(documents[i], strlen(documents[i]), "text", &first), PSLD_OK);
        assert_int_equal(psld_yaml_text(first, &text), PSLD_OK);
        if (psld_yaml_parse(text, strlen(text), "again", &second) != PSLD_OK)
            fail_msg("%s\n%s", psld_error_text(), text);
        assert_int_equal(psld_yaml_text(second, &again), PSLD_OK);
        assert_string_equal(text, again);
        psld_release(text);
        psld_release(again);
        psld_yaml_free(first);
        psld_yaml_free(second);
    }
    psld_yaml *yaml;
    const char *value;
    char *text;
    assert_int_equal(psld_yaml_parse(documents[3], strlen(documents[3]), "text", &yaml), PSLD_OK);
    assert_int_equal(psld_yaml_text(yaml, &text), PSLD_OK);
    psld_yaml_free(yaml);
    assert_int_equal(psld_yaml_parse(text, strlen(text), "text", &yaml), PSLD_OK);
    assert_int_equal(psld_node_text(psld_node_get(psld_yaml_root(yaml), "k"), &value), PSLD_OK);
    assert_string_equal(value, "line\nbreak \" \\ #");
    assert_int_equal(psld_node_text(psld_node_get(psld_yaml_root(yaml), "m"), &value), PSLD_OK);
    assert_string_equal(value, " s ");
    psld_yaml_free(yaml);
    psld_release(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_keep_the_model),
        cmocka_unit_test(reference_and_fast_agree),
        cmocka_unit_test(refused),
        cmocka_unit_test(samples_have_the_same_bits),
        cmocka_unit_test(golden_flow),
        cmocka_unit_test(yaml_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
