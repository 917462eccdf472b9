/* Configurations and weights of networks that do not fit: one line that says where and what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "kernels/backend.h"
#include "model/files/process_read.h"
#include "model/networks/network.h"

static psld_status read_text(const char *text, const char *part, psld_network_config *config)
{
    psld_yaml *yaml = NULL;
    assert_int_equal(psld_yaml_parse(text, strlen(text), "my.yaml", &yaml), PSLD_OK);
    psld_status status = psld_network_config_read(psld_yaml_root(yaml), part, config);
    psld_yaml_free(yaml);
    return status;
}

static void expect_refusal(const char *text, const char *message)
{
    psld_network_config config;
    assert_int_equal(read_text(text, NULL, &config), PSLD_BAD_INPUT);
    if (!strstr(psld_error_text(), message)) fail_msg("expected \"%s\" in \"%s\"", message, psld_error_text());
}

/* Keys without effect are refused where a user writes them; a model file that has them still opens. */
static void keys_without_effect(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, n_cls: 3}",
         "my.yaml:2: model.n_cls: has no effect on score networks of images (ncsnpp)"},
        {"model: {name: mlp, in_ch: 2, out_ch: 2, fir: true}", "model.fir: has no effect on score networks of vectors"},
        {"data: {size: 8}\nmodel: {name: ncsnpp_clf, in_ch: 2, n_cls: 2, progressive: none}",
         "model.progressive: has no effect on classifiers (ncsnpp_clf)"},
        {"data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, patch: 2}", NULL},
        {"data: {image_size: 8}\nmodel: {score_fn: {in_ch: 2, out_ch: 2, n_cls: 2}}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        psld_yaml *yaml = NULL;
        psld_network_config config;
        assert_int_equal(read_text(cases[i].text, NULL, &config), PSLD_OK);
        assert_int_equal(psld_yaml_parse(cases[i].text, strlen(cases[i].text), "my.yaml", &yaml), PSLD_OK);
        psld_status status = psld_network_config_check(psld_yaml_root(yaml));
        assert_int_equal(status, cases[i].message ? PSLD_BAD_INPUT : PSLD_OK);
        if (cases[i].message && !strstr(psld_error_text(), cases[i].message))
            fail_msg("expected \"%s\" in \"%s\"", cases[i].message, psld_error_text());
        psld_yaml_free(yaml);
    }
    assert_true(psld_network_uses_key(PSLD_NET_CLASSIFIER, "n_cls") && !psld_network_uses_key(PSLD_NET_UNET, "n_cls"));
    assert_false(psld_network_uses_key(PSLD_NET_UNET, "nothing"));
}

static void refusals(void **state)
{
    (void)state;
    expect_refusal("data: {size: 8}", "the network is missing");
    expect_refusal("data: {size: 8}\nmodel: {nff: 3}", "my.yaml:2: model: unknown key \"nff\"");
    expect_refusal("data: {size: 8}\nmodel: {nf: 2}", "my.yaml:2: model.nf: expected a whole number from 4");
    expect_refusal("data: {size: 8}\nmodel: {nonlinearity: tanh}",
                   "expected swish, relu, elu or lrelu, found \"tanh\"");
    expect_refusal("data: {size: 8}\nmodel: {resblock_type: x}", "expected ddpm or biggan, found \"x\"");
    expect_refusal("data: {size: 8}\nmodel: {dropout: 1.5}", "model.dropout: expected a number from 0 to 0.99");
    expect_refusal("data: {size: 8}\nmodel: {ch_mult: [1, 2.5]}", "model.ch_mult: expected whole numbers");
    expect_refusal("data: {size: 8}\nmodel: {ch_mult: [1,1,1,1,1,1,1,1,1]}", "at most 8 numbers");
    expect_refusal("data: {size: 8}\nmodel: {ch_mult: \"1;2\"}", "expected a list of at most 8 numbers");
    expect_refusal("data: {size: 8}\nmodel: {fir: maybe}", "model.fir: expected true or false");
    expect_refusal("data: {size: 8}\nmodel: {nf: 16}", "in_ch is missing");
    expect_refusal("data: {size: 8}\nmodel: {in_ch: 2}", "out_ch is missing");
    expect_refusal("data: {size: 8}\nmodel: {name: ncsnpp_clf, in_ch: 2}", "n_cls is missing");
    expect_refusal("model: {in_ch: 2, out_ch: 2}", "data.image_size is missing");
    expect_refusal("data: {size: 12}\nmodel: {in_ch: 2, out_ch: 2, ch_mult: [1, 1, 1, 1]}", "cannot be halved 3 times");
    expect_refusal("data: {size: 12}\nmodel: {in_ch: 2, out_ch: 2, patch: 5}", "cannot be cut into patches of 5 x 5");
    expect_refusal("data: {size: 12}\nmodel: {in_ch: 2, out_ch: 2, patch: 2, ch_mult: [1, 1, 1]}",
                   "grids of patches of 6 x 6 cannot be halved 2 times");
    expect_refusal("data: {size: 12}\nmodel: {in_ch: 2, out_ch: 2, patch: 2, progressive: output_skip}",
                   "patch: does not go with progressive");
    expect_refusal("data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, nf: 10, ch_mult: [1, 3]}",
                   "nf: 10 makes 30 channels, which cannot be divided into 7 equal groups; use 8 or 12");
    expect_refusal("data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, ch_mult: []}", "at least one level");
    expect_refusal("data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, fir: true, fir_kernel: [1, -1]}", "with a sum");
    expect_refusal("data: {size: 8}\nmodel: {predicts: noise}",
                   "model.predicts: expected eps or data, found \"noise\"");
    expect_refusal("data: {size: 8}\nmodel: {name: ncsnpp_clf, in_ch: 2, n_cls: 3, predicts: data}",
                   "predicts classes");
    expect_refusal("data: {size: 8}\nmodel: {data_deviation: 0}", "model.data_deviation: expected a number from");
    expect_refusal("data: {size: 8, channels: 3}\nprocess: nothing\nmodel: {nf: 8}", "nothing");
}

/* What goes in and comes out follows from the process, but not for networks of clean data. */
static void channels(void **state)
{
    (void)state;
    psld_network_config config;
    assert_int_equal(read_text("data: {size: 8, channels: 3}\nprocess: told\nmodel: {nf: 8}", NULL, &config), PSLD_OK);
    assert_int_equal(config.in_ch, 9);
    assert_int_equal(config.out_ch, 3);
    assert_int_equal(
        read_text("data: {size: 8, channels: 3}\nprocess: told\nmodel: {nf: 8, predicts: data}", NULL, &config),
        PSLD_OK);
    assert_int_equal(config.in_ch, 3);
    assert_int_equal(config.out_ch, 3);
}

static void published(void **state)
{
    (void)state;
    static const char both[] =
        "diffusion:\n  data:\n    root: ???\n    image_size: 32\n"
        "  model: {score_fn: {name: ncsnpp, in_ch: 6, out_ch: 3, nf: 32, ch_mult: '1,2,', x: y}}\n"
        "clf:\n  data: {image_size: 64}\n"
        "  model: {clf_fn: {in_ch: 4, n_cls: 10, dropout: \"???\", nf: 16}}\n";
    psld_network_config config;
    assert_int_equal(read_text(both, NULL, &config), PSLD_OK);
    assert_int_equal(config.kind, PSLD_NET_UNET);
    assert_int_equal(config.in_ch, 6);
    assert_int_equal(config.out_ch, 3);
    assert_int_equal(config.image_size, 32);
    assert_int_equal(config.levels, 2);
    assert_int_equal(config.ch_mult[1], 2);
    assert_int_equal(read_text(both, "clf_fn", &config), PSLD_OK);
    assert_int_equal(config.kind, PSLD_NET_CLASSIFIER);
    assert_int_equal(config.out_ch, 10);
    assert_int_equal(config.image_size, 64);
    assert_int_equal(
        read_text("clf:\n  data: {image_size: 8}\n  model: {clf_fn: {in_ch: 1, n_cls: null}}", NULL, &config),
        PSLD_BAD_INPUT);
}

/* Channels that follow from the process. */
static void from_process(void **state)
{
    (void)state;
    static const struct {
        const char *process;
        int in, out;
    } rows[] = {{"vp", 3, 3}, {"cld", 6, 3}, {"psld gamma=0.02", 6, 6}, {"told", 9, 3}};
    for (int i = 0; i < 4; i++) {
        char text[256];
        psld_network_config config;
        snprintf(text, sizeof text, "data: {size: 8, channels: 3}\nprocess: %s\nmodel: {nf: 8}", rows[i].process);
        assert_int_equal(read_text(text, NULL, &config), PSLD_OK);
        assert_int_equal(config.in_ch, rows[i].in);
        assert_int_equal(config.out_ch, rows[i].out);
    }
}

/* ---- Weights ----------------------------------------------------------------------------------------------------- */

static const char small[] = "model: {name: mlp, in_ch: 2, out_ch: 1, nf: 4, num_res_blocks: 1, noise_cond: false}";

static psld_network *open_small(void)
{
    psld_network_config config;
    psld_network *network = NULL;
    assert_int_equal(read_text(small, NULL, &config), PSLD_OK);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    return network;
}

/* The tensors of the network but number `except`, which has one more row, or is missing (shape_wrong 0). */
static psld_tensors *collect(const psld_network *network, size_t except, int shape_wrong, const char *more)
{
    static const float zeros[64] = {0};
    psld_tensors *tensors = NULL;
    assert_int_equal(psld_tensors_create(&tensors), PSLD_OK);
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        char name[128];
        size_t shape[4];
        for (int j = 0; j < p->rank; j++) shape[j] = (size_t)p->shape[j];
        if (i == except && !shape_wrong) continue;
        if (i == except) shape[0]++;
        snprintf(name, sizeof name, "net.%s", p->name);
        assert_int_equal(psld_tensors_add(tensors, name, PSLD_ELEMENT_F32, p->rank, shape, zeros), PSLD_OK);
    }
    size_t one = 1;
    if (more) assert_int_equal(psld_tensors_add(tensors, more, PSLD_ELEMENT_F32, 1, &one, zeros), PSLD_OK);
    return tensors;
}

static void expect_load(const psld_network *network, psld_tensors *tensors, const char *message)
{
    psld_network *fresh = open_small();
    (void)network;
    psld_status status = psld_network_load(fresh, tensors, "net.");
    if (!message)
        assert_int_equal(status, PSLD_OK);
    else if (status != PSLD_BAD_INPUT || !strstr(psld_error_text(), message))
        fail_msg("expected \"%s\", found \"%s\"", message, psld_error_text());
    psld_network_free(fresh);
    psld_tensors_free(tensors);
}

static void weights(void **state)
{
    (void)state;
    psld_network *network = open_small();
    expect_load(network, collect(network, 99, 0, NULL), NULL);
    expect_load(network, collect(network, 99, 0, "other.thing"), NULL);
    expect_load(network, collect(network, 2, 0, NULL), "net.blocks.0.0.weight: is missing in the file");
    expect_load(network, collect(network, 2, 1, NULL), "makes it [4, 4], the file has [5, 4]");
    expect_load(network, collect(network, 99, 0, "net.thing"),
                "net.thing: is in the file, but the configuration has no such tensor");
    psld_network_free(network);
}

/* ---- Weights that stay where they are ---------------------------------------------------------------------------- */

static const char wide[] =
    "data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, nf: 64, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}";

static psld_network *open_wide(void)
{
    psld_network_config config;
    psld_network *network = NULL;
    assert_int_equal(read_text(wide, NULL, &config), PSLD_OK);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    return network;
}

/* The weights of `network` at multiples of 64 bytes, but every third one element further. */
static psld_tensors *lay_out(const psld_network *network, float *room)
{
    psld_tensors *tensors = NULL;
    assert_int_equal(psld_tensors_create(&tensors), PSLD_OK);
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        size_t shape[4];
        float *at = room + p->offset + 16 * i + (i % 3 == 0);
        for (int j = 0; j < p->rank; j++) shape[j] = (size_t)p->shape[j];
        memcpy(at, network->weights + p->offset, p->count * sizeof *at);
        assert_int_equal(psld_tensors_add(tensors, p->name, PSLD_ELEMENT_F32, p->rank, shape, at), PSLD_OK);
    }
    return tensors;
}

enum { WIDE_STATE = 2 * 8 * 8 };

static void evaluate(const psld_network *network, const psld_backend *backend, float eps[WIDE_STATE])
{
    psld_runner *runner = NULL;
    float z[WIDE_STATE], t = 0.5F;
    for (int i = 0; i < WIDE_STATE; i++) z[i] = (float)(i % 7 - 3);
    psld_runner_options options = {backend, 1, 0, SIZE_MAX, 0};
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = &t, .out = eps};
    assert_int_equal(psld_runner_open(network, &options, &runner), PSLD_OK);
    assert_int_equal(psld_runner_run(runner, 1, &data), PSLD_OK);
    psld_runner_free(runner);
}

static void expect_same_output(const psld_network *a, const psld_network *b)
{
    const psld_backend *const backends[] = {&psld_backend_reference, psld_backend_fastest()};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        float x[WIDE_STATE], y[WIDE_STATE];
        evaluate(a, backends[i], x);
        evaluate(b, backends[i], y);
        assert_memory_equal(x, y, sizeof x);
    }
}

static void borrowed(void **state)
{
    (void)state;
    psld_network *own = open_wide(), *network = open_wide();
    const psld_graph *graph = own->graph;
    size_t bytes = graph->parameter_elements * sizeof(float), stay = 0, large = 0;
    psld_network_initialise(own, 3);
    float *room = psld_alloc(graph->parameter_elements + 16 * graph->parameter_count + 16, sizeof *room);
    psld_tensors *tensors = lay_out(own, room);
    assert_int_equal(psld_network_borrow(network, tensors, ""), PSLD_OK);
    assert_null(network->weights);
    for (size_t i = 0; i < graph->parameter_count; i++) {
        stay += network->at[i] == tensors->items[i].data;
        large += graph->parameters[i].count >= 1 << 14;
        assert_memory_equal(network->at[i], own->at[i], graph->parameters[i].count * sizeof(float));
        assert_int_equal((uintptr_t)network->at[i] % 64, 0);
    }
    assert_true(stay > large / 2 && stay < large); /* those that are aligned */
    expect_same_output(own, network);
    assert_int_equal(psld_network_own(network), PSLD_OK);
    assert_memory_equal(network->weights, own->weights, bytes);
    psld_tensors_free(tensors);
    psld_release(room);
    expect_same_output(own, network);
    psld_network_free(own);
    psld_network_free(network);
}

/* Every allocation made to fail once. */
static void out_of_memory(void **state)
{
    (void)state;
    psld_network_config config;
    assert_int_equal(
        read_text("data: {size: 4}\nmodel: {in_ch: 2, out_ch: 2, nf: 4, num_res_blocks: 1}", NULL, &config), PSLD_OK);
    psld_runner_options options = {&psld_backend_reference, 1, 0, 1000, 0};
    options.want = PSLD_WANT_GRADIENT_Z | PSLD_WANT_GRADIENT_PARAMETERS;
    long before = psld_alloc_live(), at = 1;
    for (;; at++) {
        psld_network *network = NULL;
        psld_runner *runner = NULL;
        psld_alloc_fail_at(at);
        psld_status status = psld_network_create(&config, &network);
        if (status == PSLD_OK) status = psld_runner_open(network, &options, &runner);
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        psld_runner_free(runner);
        psld_network_free(network);
        assert_int_equal(psld_alloc_live(), before);
        if (!failed) break;
        assert_int_equal(status, PSLD_NO_MEMORY);
    }
    assert_true(at > 20);
}

static void labels(void **state)
{
    (void)state;
    psld_network_config config;
    psld_network *network = NULL;
    psld_runner *runner = NULL;
    static const float z[32] = {0}, t[1] = {0.5F}, wrong[3] = {-1, 2, 0.5F}, right[1] = {1};
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = t};
    assert_int_equal(read_text("data: {size: 4}\nmodel: {name: ncsnpp_clf, in_ch: 2, n_cls: 2, nf: 4}", NULL, &config),
                     PSLD_OK);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    psld_runner_options options = {&psld_backend_reference, 1, PSLD_WANT_GRADIENT_Z | PSLD_WANT_LOG_P, 0, 1};
    assert_int_equal(psld_runner_open(network, &options, &runner), PSLD_OK);
    for (int i = 0; i < 3; i++) {
        data.label = &wrong[i];
        assert_int_equal(psld_runner_run(runner, 1, &data), PSLD_BAD_ARGUMENT);
    }
    data.label = right;
    assert_int_equal(psld_runner_run(runner, 1, &data), PSLD_OK);
    psld_runner_free(runner);
    psld_network_free(network);
}

/* Names of processes in published configurations, as they stand there and no others. */
static void published_processes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        psld_status status;
    } rows[] = {{"vpsde", PSLD_OK}, {"vp", PSLD_OK}, {"psld", PSLD_OK}, {"cld", PSLD_OK}, {"vpx", PSLD_BAD_INPUT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        psld_yaml *yaml;
        psld_recipe *recipe;
        snprintf(text, sizeof text, "{model: {sde: {name: %s, beta_min: 8}}}", rows[i].name);
        assert_int_equal(psld_yaml_parse(text, strlen(text), "my.yaml", &yaml), PSLD_OK);
        assert_int_equal(psld_process_read(psld_yaml_root(yaml), &recipe), rows[i].status);
        psld_recipe_free(recipe);
        psld_yaml_free(yaml);
    }
    assert_non_null(strstr(psld_error_text(), "expected psld, cld or vpsde, found \"vpx\""));
}

/* The table's defaults, written out, are what a configuration without them means; its words are all known. */
static void keys_have_their_defaults(void **state)
{
    (void)state;
    char text[4096] = "data: {size: 8, channels: 1}\nprocess: vp\nmodel:\n  name: ncsnpp\n";
    psld_network_config bare, full;
    psld_key key;
    assert_int_equal(read_text(text, NULL, &bare), PSLD_OK);
    for (int i = 0; psld_network_key(i, &key); i++) {
        char one[256];
        assert_true(*key.type && *key.help);
        if (!*key.initial || strcmp(key.name, "name") == 0) continue;
        snprintf(text + strlen(text), sizeof text - strlen(text), "  %s: %s\n", key.name, key.initial);
        for (const char *w = key.choices; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL) {
            snprintf(one, sizeof one, "data: {size: 8, channels: 1}\nprocess: vp\nmodel: {%s: %.*s}", key.name,
                     (int)strcspn(w, "|"), w);
            assert_int_equal(read_text(one, NULL, &full), PSLD_OK);
        }
    }
    assert_int_equal(read_text(text, NULL, &full), PSLD_OK);
    assert_memory_equal(&bare, &full, sizeof full);
}

/* What is said to do does, and what lies between does not. */
static void widths_that_would_do(void **state)
{
    (void)state;
    static const char form[] = "data: {size: 16, channels: 3}\nprocess: psld\n"
                               "model: {nf: %d, ch_mult: [2, 4, 4], attn_resolutions: [8]}";
    for (int nf = 4; nf < 200; nf++) {
        char text[256];
        psld_network_config config;
        psld_network *network = NULL;
        int below = 0, above = 0;
        snprintf(text, sizeof text, form, nf);
        if (read_text(text, NULL, &config) == PSLD_OK) {
            if (nf < 70) assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
            psld_network_free(network);
            continue;
        }
        const char *said = strstr(psld_error_text(), "groups; ");
        assert_non_null(said);
        if (sscanf(said, "groups; use %d or %d", &below, &above) != 2) continue;
        assert_true(below < nf && nf < above);
        for (int i = 0; i < 2; i++) {
            snprintf(text, sizeof text, form, i ? above : below);
            assert_int_equal(read_text(text, NULL, &config), PSLD_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_their_defaults),
        cmocka_unit_test(widths_that_would_do),
        cmocka_unit_test(refusals),
        cmocka_unit_test(keys_without_effect),
        cmocka_unit_test(channels),
        cmocka_unit_test(published),
        cmocka_unit_test(from_process),
        cmocka_unit_test(weights),
        cmocka_unit_test(borrowed),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(labels),
        cmocka_unit_test(published_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
