/* The networks of golden/: outputs and gradients against an independent implementation, from every kind of file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "golden_network.h"
#include "kernels/backend.h"
#include "network_check.h"
#include "nn/exec.h"
#include "sanitized.h"

/* Errors are relative to the largest value. */
#define OUTPUT_TOLERANCE 1e-5

/* ---- One folder -------------------------------------------------------------------------------------------------- */

/* The order of the parameters is that of the state_dict if the formula, which counts through it, gives the file. */
static void check_order(const char *folder, const psld_network *network)
{
    psld_network *formula = NULL;
    assert_int_equal(psld_network_create(&network->config, &formula), PSLD_OK);
    formula_weights(formula);
    size_t count = network->graph->parameter_elements;
    golden_report(folder, "weights by formula", network_error(formula->weights, network->weights, count, 0), 1e-7);
    psld_network_free(formula);
}

static void check_file(const char *folder, const char *name, const char *path)
{
    psld_network_config config = golden_config(folder);
    psld_network *network = golden_network(&config, path);
    if (strncmp(golden_name(folder), "tiny-", 5) == 0) check_order(folder, network); /* others may be trained */
    network_check(folder, name, network, &psld_backend_reference, OUTPUT_TOLERANCE);
    network_check(folder, name, network, psld_backend_fastest(), OUTPUT_TOLERANCE);
    psld_network_free(network);
}

/* From each file of weights, or by the formula where there is none. Returns how many there were. */
static int check_folder(const char *folder)
{
    static const char *const files[] = {"model.safetensors", "model.ckpt"};
    char path[GOLDEN_PATH];
    int checked = 0;
    for (int i = 0; i < 2; i++) {
        if (!golden_path(folder, files[i], path)) continue;
        check_file(folder, files[i], path);
        checked++;
    }
    if (checked) return checked;
    golden_write_formula(folder, path);
    check_file(folder, "the formula", path);
    return 1;
}

/* Every folder that has a network's configuration, its input and its output. */
static void golden_networks(void **state)
{
    (void)state;
    char path[GOLDEN_PATH];
    int checked = 0;
    const golden_list *list = golden_find("z.npy");
    for (size_t i = 0; i < list->count; i++) {
        const char *folder = list->folders[i];
        if (!golden_path(folder, "config.yaml", path)) continue;
        if (!golden_path(folder, "eps.npy", path) && !golden_path(folder, "logits.npy", path)) continue;
        checked += check_folder(folder);
    }
    printf("%d golden networks\n", checked);
    if (!checked) fail_msg("no golden folder has a network to check");
}

/* ---- The networks of the paper ----------------------------------------------------------------------------------- */

/* Parameters in millions, to the digits that the paper's authors' networks have. */
static const struct {
    const char *config;
    double millions;
} sizes[] = {
    {"cifar10-psld-39m", 39.40},   {"cifar10-cld-39m", 39.39},   {"cifar10-vp-39m", 39.39},
    {"cifar10-psld-55m", 56.41},   {"cifar10-psld-97m", 97.63},  {"celeba64-psld-62m", 62.77},
    {"celeba64-psld-66m", 66.72},  {"celeba64-cld-66m", 66.72},  {"afhq128-psld-68m", 65.82},
    {"afhq128-psld-128m", 128.45}, {"afhq128-cld-128m", 128.45}, {"cifar10-classifier", 56.67},
    {"afhq128-classifier", 57.76},
};

static void paper_networks(void **state)
{
    (void)state;
    const char *source = getenv("PSLD_SOURCE");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char path[1024];
        psld_yaml *yaml = NULL;
        psld_network_config config;
        psld_graph *graph = NULL;
        psld_id out;
        snprintf(path, sizeof path, "%s/configs/%s.yaml", source ? source : ".", sizes[i].config);
        if (psld_yaml_load(path, &yaml) != PSLD_OK) fail_msg("%s", psld_error_text());
        if (psld_network_config_read(psld_yaml_root(yaml), NULL, &config) != PSLD_OK) fail_msg("%s", psld_error_text());
        assert_int_equal(psld_graph_create(&graph), PSLD_OK);
        psld_network_inputs inputs = psld_network_add_inputs(&config, graph);
        assert_int_equal(psld_network_build(&config, graph, &inputs, &out), PSLD_OK);
        double millions = (double)psld_network_size(graph) * 1e-6;
        printf("%s: %.4fM parameters\n", sizes[i].config, millions);
        assert_true(fabs(millions - sizes[i].millions) <= 0.005);
        psld_graph_free(graph);
        psld_yaml_free(yaml);
    }
}

/* ---- Reference and fast kernels on networks of full size --------------------------------------------------------- */

static void evaluate_large(const psld_network *network, const psld_backend *backend, const float *z, float *out)
{
    psld_runner *runner = NULL;
    const float t = 0.37f;
    psld_runner_options options = {.backend = backend, .batch = 1};
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = &t, .out = out};
    assert_int_equal(psld_runner_open(network, &options, &runner), PSLD_OK);
    assert_int_equal(psld_runner_run(runner, 1, &data), PSLD_OK);
    psld_runner_free(runner);
}

static void compare_large(const char *name)
{
    char path[1024];
    const char *source = getenv("PSLD_SOURCE");
    psld_yaml *yaml = NULL;
    psld_network_config config;
    psld_network *network = NULL;
    snprintf(path, sizeof path, "%s/configs/%s.yaml", source ? source : ".", name);
    assert_int_equal(psld_yaml_load(path, &yaml), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    formula_weights(network);
    size_t pixels = (size_t)config.image_size * (size_t)config.image_size, count = (size_t)config.out_ch * pixels;
    float *z = psld_alloc((size_t)config.in_ch * pixels, sizeof *z), *out = psld_alloc(2 * count, sizeof *out);
    for (size_t i = 0; i < (size_t)config.in_ch * pixels; i++) z[i] = (float)sin(1.7 * (double)i);
    evaluate_large(network, &psld_backend_reference, z, out);
    evaluate_large(network, psld_backend_fastest(), z, out + count);
    golden_report(name, "eps, fast kernels against reference kernels", network_error(out + count, out, count, 0), 5e-5);
    psld_release(z);
    psld_release(out);
    psld_network_free(network);
    psld_yaml_free(yaml);
}

/* PSLD_TEST_LARGE=1 asks for all sizes; one alone is what there is time for. */
static void large_networks(void **state)
{
    (void)state;
    if (PSLD_SANITIZED) skip_for("a large network takes too long with a sanitizer");
    compare_large("cifar10-psld-39m");
    if (!getenv("PSLD_TEST_LARGE")) return;
    compare_large("cifar10-psld-55m");
    compare_large("cifar10-psld-97m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_networks),
        cmocka_unit_test(paper_networks),
        cmocka_unit_test(large_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
