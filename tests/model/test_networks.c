/* The networks of golden/: outputs and gradients against an independent implementation, from every kind of file. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "formula.h"
#include "golden.h"
#include "kernels/backend.h"
#include "model/networks/network.h"
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"
#include "sanitized.h"

/* Errors are relative to the largest value. Both sides round to float32 at each operation, about 60 deep. */
#define OUTPUT_TOLERANCE   1e-5
#define GRADIENT_TOLERANCE 5e-5

static int golden_exists(const char *folder, const char *name, char *path, size_t size)
{
    struct stat info;
    snprintf(path, size, "%s/%s/%s", golden_folder(), folder, name);
    return stat(path, &info) == 0;
}

/* NULL when the file is not there. */
static psld_array *golden_array(const char *folder, const char *name)
{
    char path[1024];
    psld_array *array = NULL, *numbers = NULL;
    if (!golden_exists(folder, name, path, sizeof path)) return NULL;
    assert_int_equal(psld_array_load(path, &array), PSLD_OK);
    assert_int_equal(psld_array_convert(array, PSLD_F32, &numbers), PSLD_OK);
    psld_array_free(array);
    return numbers;
}

static double largest_of(const float *x, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)x[i]));
    return largest;
}

/* Largest difference over the largest value, or over `floor` where that is more. */
static double error_of(const float *found, const float *expected, size_t count, double floor_value)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)found[i] - (double)expected[i]);
        if (!(error <= worst)) worst = error; /* a NaN stays */
    }
    return worst / fmax(largest_of(expected, count), floor_value);
}

static void report(const char *folder, const char *what, double error, double tolerance)
{
    printf("%s: %s off by %.2g (%.0e)\n", folder, what, error, tolerance);
    if (!(error <= tolerance)) fail_msg("%s: %s off by %g", folder, what, error);
}

/* ---- One folder -------------------------------------------------------------------------------------------------- */

static psld_network *open_network(const char *folder, const char *file, const char *prefix)
{
    char path[1024];
    psld_yaml *yaml = NULL;
    psld_network_config config;
    psld_network *network = NULL;
    psld_tensors *tensors = NULL;
    golden_exists(folder, "config.yaml", path, sizeof path);
    assert_int_equal(psld_yaml_load(path, &yaml), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    psld_yaml_free(yaml);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    golden_exists(folder, file, path, sizeof path);
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    if (psld_network_load(network, tensors, prefix) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_tensors_free(tensors);
    return network;
}

/* Tensor by tensor, each against its own largest value; but a bias of keys has gradient 0 (softmax does not see it),
 * of which only rounding is found, so no tensor counts as smaller than 1e-3 of the largest. */
static void check_parameter_gradients(const char *folder, const psld_network *network, const float *gradients)
{
    char path[1024];
    psld_tensors *tensors = NULL;
    double worst = 0, largest = 0;
    size_t checked = 0;
    if (!golden_exists(folder, "grad_params.safetensors", path, sizeof path)) {
        printf("skipped: %s has grad_out.npy but no grad_params.safetensors\n", folder);
        return;
    }
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    for (size_t i = 0; i < tensors->count; i++) /* float32, in place */
        largest = fmax(largest, largest_of(tensors->items[i].data, tensors->items[i].count));
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        const psld_tensor *tensor = psld_tensors_find(tensors, p->name);
        if (!tensor) {
            assert_false(p->trained);
            continue;
        }
        float *expected = psld_alloc(p->count, sizeof *expected);
        assert_int_equal(tensor->count, p->count);
        psld_tensor_to_f32(tensor, expected);
        double error = error_of(gradients + p->offset, expected, p->count, 1e-3 * largest);
        if (!(error <= GRADIENT_TOLERANCE)) printf("%s: %g\n", p->name, error);
        worst = error > worst ? error : worst;
        psld_release(expected);
        checked++;
    }
    assert_int_equal(checked, tensors->count);
    psld_tensors_free(tensors);
    report(folder, "grad_params (worst tensor)", worst, GRADIENT_TOLERANCE);
}

static void check_values(const char *folder, const char *file, const psld_network *network, const psld_backend *backend)
{
    psld_array *z = golden_array(folder, "z.npy"), *t = golden_array(folder, "t.npy");
    int is_classifier = network->config.kind == PSLD_NET_CLASSIFIER;
    psld_array *expected = golden_array(folder, is_classifier ? "logits.npy" : "eps.npy");
    psld_array *grad_out = golden_array(folder, "grad_out.npy"), *label = golden_array(folder, "label.npy");
    psld_array *grad_z = golden_array(folder, is_classifier ? "grad_logp.npy" : "grad_z.npy");
    unsigned want = grad_z ? PSLD_WANT_GRADIENT_Z : 0;
    if (grad_z && label) want |= PSLD_WANT_LOG_P;
    if (grad_out) want |= PSLD_WANT_GRADIENT_PARAMETERS;
    psld_runner *runner = NULL;
    char what[64];
    int n = (int)t->count;
    psld_runner_options options = {.backend = backend, .batch = n, .want = want, .poison = 1};
    float *out = psld_alloc(expected->count, sizeof *out), *gradient = psld_alloc(z->count, sizeof *gradient);
    psld_runner_data data = {.type = PSLD_F32, .z = z->data, .t = t->data, .out = out, .grad_z = gradient};
    if (grad_out) data.grad_out = grad_out->data;
    if (label) data.label = label->data;
    assert_int_equal(psld_runner_open(network, &options, &runner), PSLD_OK);
    assert_int_equal(psld_plan_check(psld_runner_plan(runner)), PSLD_OK);
    assert_int_equal(psld_runner_run(runner, (size_t)n, &data), PSLD_OK);
    snprintf(what, sizeof what, "%s from %s, %s", is_classifier ? "logits" : "eps", file, backend->name);
    report(folder, what, error_of(out, expected->data, expected->count, 0), OUTPUT_TOLERANCE);
    if (grad_z) report(folder, "grad_z", error_of(gradient, grad_z->data, grad_z->count, 0), GRADIENT_TOLERANCE);
    if (grad_out) check_parameter_gradients(folder, network, psld_runner_gradients(runner));
    assert_int_equal(psld_runner_faults(runner), 0);
    psld_runner_free(runner);
    psld_release(out);
    psld_release(gradient);
    psld_array *all[] = {z, t, expected, grad_out, label, grad_z};
    for (int i = 0; i < 6; i++) psld_array_free(all[i]);
}

/* The order of the parameters is that of the state_dict if the formula, which counts through it, gives the file. */
static void check_order(const char *folder, const psld_network *network)
{
    psld_network *formula = NULL;
    assert_int_equal(psld_network_create(&network->config, &formula), PSLD_OK);
    formula_weights(formula);
    size_t count = network->graph->parameter_elements;
    report(folder, "weights by formula", error_of(formula->weights, network->weights, count, 0), 1e-7);
    psld_network_free(formula);
}

/* Returns how many files of weights there were. */
static int check_folder(const char *folder)
{
    static const char *const files[] = {"model.safetensors", "model.ckpt"};
    char path[1024];
    int checked = 0;
    for (int i = 0; i < 2; i++) {
        if (!golden_exists(folder, files[i], path, sizeof path)) continue;
        const char *prefix = "";
        psld_tensors *tensors = NULL;
        assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
        static const char *const prefixes[] = {"ema_score_fn.", "clf_fn.", "score_fn."};
        for (int j = 3; j-- > 0;)
            for (size_t k = 0; k < tensors->count; k++)
                if (strncmp(tensors->items[k].name, prefixes[j], strlen(prefixes[j])) == 0) prefix = prefixes[j];
        psld_tensors_free(tensors);
        psld_network *network = open_network(folder, files[i], prefix);
        if (i == 0 && strncmp(folder, "tiny-", 5) == 0) check_order(folder, network); /* others may be trained */
        check_values(folder, files[i], network, &psld_backend_reference);
        check_values(folder, files[i], network, psld_backend_fastest());
        psld_network_free(network);
        checked++;
    }
    return checked;
}

/* Every subfolder that has a network's configuration, its input and its output. */
static void golden_networks(void **state)
{
    (void)state;
    char path[1024];
    int checked = 0;
    DIR *dir = opendir(golden_folder());
    if (!dir) skip_for("no %s", golden_folder());
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || !golden_exists(entry->d_name, "config.yaml", path, sizeof path)) continue;
        if (!golden_exists(entry->d_name, "z.npy", path, sizeof path)) continue;
        if (!golden_exists(entry->d_name, "eps.npy", path, sizeof path) &&
            !golden_exists(entry->d_name, "logits.npy", path, sizeof path))
            continue;
        checked += check_folder(entry->d_name);
    }
    closedir(dir);
    printf("%d golden networks\n", checked);
    if (!checked) fail_msg("%s has no network to check", golden_folder());
}

/* ---- Training: loss and gradient --------------------------------------------------------------------------------- */

/* The learning rate of the first step is 0: the first two losses and gradients are those of the weights in the file. */
enum { TRAIN_STEPS = 2 };

typedef struct training {
    psld_network *network;
    psld_graph *graph;
    psld_id z, t, eps, seed, loss, gradient[512];
    psld_plan *plan;
    psld_exec *exec;
    float *gradients;
} training;

static void make_training(training *m, int batch)
{
    psld_id out, by[512];
    psld_plan_output outputs[513];
    psld_shape s = psld_graph_shape(m->network->graph, m->network->z);
    assert_int_equal(psld_graph_create(&m->graph), PSLD_OK);
    m->z = psld_graph_input(m->graph, s.c, s.h, s.w);
    m->t = psld_graph_input(m->graph, 1, 1, 1);
    assert_int_equal(psld_network_build(&m->network->config, m->graph, m->z, m->t, &out), PSLD_OK);
    m->eps = psld_graph_input(m->graph, s.c, s.h, s.w);
    m->loss = psld_nn_loss(m->graph, out, m->eps, PSLD_NONE, 2);
    m->seed = psld_graph_input(m->graph, 1, 1, 1);
    size_t count = m->graph->parameter_count;
    for (size_t i = 0; i < count; i++) by[i] = m->graph->parameters[i].id;
    assert_int_equal(psld_gradient(m->graph, m->loss, m->seed, by, count, m->gradient), PSLD_OK);
    for (size_t i = 0; i < count; i++) outputs[i] = (psld_plan_output){m->gradient[i], (int)i};
    outputs[count] = (psld_plan_output){m->loss, PSLD_NONE};
    psld_plan_options options = {psld_backend_fastest(), batch, PSLD_PASS_ALL, 0};
    assert_int_equal(psld_plan_create(m->graph, &options, outputs, count + 1, &m->plan), PSLD_OK);
    m->gradients = psld_alloc(m->plan->parameters, sizeof *m->gradients);
    assert_int_equal(psld_exec_create(m->plan, m->network->weights, m->gradients, 1, &m->exec), PSLD_OK);
}

/* z_t of one sample from x_0 and eps [2][dim]: mean map of (x_0, 0) and the stabilised factor. */
static void perturb(const psld_recipe *recipe, double t, size_t dim, const float *x0, const float *eps, float *z)
{
    double mean[4], factor[4], inverse[4];
    assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, mean, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, factor, inverse), PSLD_OK);
    for (size_t v = 0; v < 2; v++)
        for (size_t i = 0; i < dim; i++)
            z[v * dim + i] = (float)(mean[2 * v] * (double)x0[i] + factor[2 * v] * (double)eps[i] +
                                     factor[2 * v + 1] * (double)eps[dim + i]);
}

static void golden_training(void **state)
{
    (void)state;
    training m = {0};
    json_t *golden = golden_json("tiny-ddpmpp/train.json");
    if (!golden) skip();
    psld_array *x0 = golden_array("tiny-ddpmpp", "train_x0.npy"), *t = golden_array("tiny-ddpmpp", "train_t.npy"),
               *eps = golden_array("tiny-ddpmpp", "train_eps.npy");
    psld_recipe *recipe = NULL;
    assert_int_equal(psld_recipe_open("psld gamma=0.01", &recipe), PSLD_OK);
    m.network = open_network("tiny-ddpmpp", "model.safetensors", "");
    size_t batch = t->shape[1], state_size = eps->count / t->count, dim = state_size / 2;
    make_training(&m, (int)batch);
    float *z = psld_alloc(batch * state_size, sizeof *z), seed[64], loss[64];
    for (size_t step = 0; step < TRAIN_STEPS; step++) {
        const float *noise = (const float *)eps->data + step * batch * state_size,
                    *time = (const float *)t->data + step * batch;
        for (size_t i = 0; i < batch; i++) {
            perturb(recipe, (double)time[i], dim, (const float *)x0->data + (step * batch + i) * dim,
                    noise + i * state_size, z + i * state_size);
            seed[i] = 1 / (float)batch;
        }
        psld_exec_set(m.exec, m.z, (int)batch, PSLD_F32, z);
        psld_exec_set(m.exec, m.t, (int)batch, PSLD_F32, time);
        psld_exec_set(m.exec, m.eps, (int)batch, PSLD_F32, noise);
        psld_exec_set(m.exec, m.seed, (int)batch, PSLD_F32, seed);
        psld_exec_run(m.exec, (int)batch, &(psld_run){0});
        psld_exec_get(m.exec, m.loss, (int)batch, PSLD_F32, loss);
        double mean = 0, square = 0;
        for (size_t i = 0; i < batch; i++) mean += (double)loss[i] / (double)batch;
        for (size_t i = 0; i < m.plan->parameters; i++) square += (double)m.gradients[i] * (double)m.gradients[i];
        double expected = golden_number(json_array_get(json_object_get(golden, "loss"), step));
        double norm = golden_number(json_array_get(json_object_get(golden, "grad_norm"), step));
        report("tiny-ddpmpp", "loss of a training step", fabs(mean / expected - 1), OUTPUT_TOLERANCE);
        report("tiny-ddpmpp", "its gradient norm", fabs(sqrt(square) / norm - 1), GRADIENT_TOLERANCE);
    }
    psld_release(z);
    psld_release(m.gradients);
    psld_exec_free(m.exec);
    psld_plan_free(m.plan);
    psld_graph_free(m.graph);
    psld_network_free(m.network);
    psld_recipe_free(recipe);
    psld_array_free(x0);
    psld_array_free(t);
    psld_array_free(eps);
    json_decref(golden);
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
        psld_id z = psld_graph_input(graph, config.in_ch, config.image_size, config.image_size);
        assert_int_equal(psld_network_build(&config, graph, z, psld_graph_input(graph, 1, 1, 1), &out), PSLD_OK);
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
    report(name, "eps, fast kernels against reference kernels", error_of(out + count, out, count, 0), 5e-5);
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
        cmocka_unit_test(golden_training),
        cmocka_unit_test(paper_networks),
        cmocka_unit_test(large_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
