#include "network_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "golden_network.h"
#include "nn/exec.h"

static double largest_of(const float *x, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)x[i]));
    return largest;
}

double network_error(const float *found, const float *expected, size_t count, double floor_value)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)found[i] - (double)expected[i]);
        if (!(error <= worst)) worst = error; /* a NaN stays */
    }
    return worst / fmax(largest_of(expected, count), floor_value);
}

/* Tensor by tensor, each against its own largest value; but a bias of keys has gradient 0 (softmax does not see it),
 * of which only rounding is found, so no tensor counts as smaller than 1e-3 of the largest. */
static void check_parameter_gradients(const char *folder, const psld_network *network, const float *gradients)
{
    char path[GOLDEN_PATH];
    psld_tensors *tensors = NULL;
    double worst = 0, largest = 0;
    size_t checked = 0;
    if (!golden_path(folder, "grad_params.safetensors", path)) {
        printf("skipped: %s has grad_out.npy but no grad_params.safetensors\n", folder);
        return;
    }
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    for (size_t i = 0; i < tensors->count; i++) /* float32, in place */
        largest = fmax(largest, largest_of(tensors->items[i].data, tensors->items[i].count));
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        const psld_tensor *tensor = psld_tensors_find(tensors, p->name);
        if (!tensor) continue; /* a part of them may be there */
        assert_true(p->trained);
        float *expected = psld_alloc(p->count, sizeof *expected);
        assert_int_equal(tensor->count, p->count);
        psld_tensor_to_f32(tensor, expected);
        double error = network_error(gradients + p->offset, expected, p->count, 1e-3 * largest);
        if (!(error <= NETWORK_GRADIENT_TOLERANCE)) printf("%s: %g\n", p->name, error);
        worst = error > worst ? error : worst;
        psld_release(expected);
        checked++;
    }
    assert_int_equal(checked, tensors->count);
    psld_tensors_free(tensors);
    golden_report(folder, "grad_params (worst tensor)", worst, NETWORK_GRADIENT_TOLERANCE);
}

void network_check(const char *folder, const char *file, const psld_network *network, const psld_backend *backend,
                   double tolerance)
{
    psld_array *z = golden_array(folder, "z.npy", PSLD_F32), *t = golden_array(folder, "t.npy", PSLD_F32);
    int is_classifier = network->config.kind == PSLD_NET_CLASSIFIER;
    psld_array *expected = golden_array(folder, is_classifier ? "logits.npy" : "eps.npy", PSLD_F32);
    psld_array *grad_out = golden_array(folder, "grad_out.npy", PSLD_F32),
               *label = golden_array(folder, "label.npy", PSLD_F32);
    psld_array *grad_z = golden_array(folder, is_classifier ? "grad_logp.npy" : "grad_z.npy", PSLD_F32);
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
    golden_report(folder, what, network_error(out, expected->data, expected->count, 0), tolerance);
    if (grad_z)
        golden_report(folder, "grad_z", network_error(gradient, grad_z->data, grad_z->count, 0),
                      NETWORK_GRADIENT_TOLERANCE);
    if (grad_out) check_parameter_gradients(folder, network, psld_runner_gradients(runner));
    assert_int_equal(psld_runner_faults(runner), 0);
    psld_runner_free(runner);
    psld_release(out);
    psld_release(gradient);
    psld_array *all[] = {z, t, expected, grad_out, label, grad_z};
    for (int i = 0; i < 6; i++) psld_array_free(all[i]);
}
