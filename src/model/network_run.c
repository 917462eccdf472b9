/* Running a network, with gradients if wanted: the network's graph once more, differentiated, planned for one size of
 * batch. */
#include <assert.h>

#include "base/alloc.h"
#include "model/networks/network.h"
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"

struct psld_runner {
    const psld_network *network;
    unsigned want;
    psld_graph *graph;
    psld_id z, t, out;
    psld_id seed, label, grad_z; /* PSLD_NONE: not there */
    psld_plan *plan;
    psld_exec *exec;
    void *gradients; /* [parameter_elements], backend's type */
    double *weights; /* a copy, for backends in double; NULL otherwise */
};

/* What is differentiated, and with which weights its elements are summed. */
static psld_id add_objective(psld_runner *r)
{
    psld_graph *graph = r->graph;
    psld_shape s = psld_graph_shape(graph, r->out);
    if (!(r->want & PSLD_WANT_LOG_P)) {
        r->seed = psld_graph_input(graph, s.c, s.h, s.w);
        return r->out;
    }
    r->label = psld_graph_input(graph, 1, 1, 1);
    psld_id entropy = psld_nn_entropy(graph, r->out, r->label);
    r->seed = psld_nn_fill(graph, psld_graph_shape(graph, entropy), -1);
    return entropy;
}

/* Nodes to differentiate by: z first if wanted, then the trained parameters. */
static size_t list_targets(const psld_runner *r, psld_id *by, int *parameter)
{
    size_t count = 0;
    if (r->want & PSLD_WANT_GRADIENT_Z) {
        parameter[count] = PSLD_NONE;
        by[count++] = r->z;
    }
    for (size_t i = 0; (r->want & PSLD_WANT_GRADIENT_PARAMETERS) && i < r->graph->parameter_count; i++) {
        if (!r->graph->parameters[i].trained) continue;
        parameter[count] = (int)i;
        by[count++] = r->graph->parameters[i].id;
    }
    return count;
}

static psld_status differentiate(psld_runner *r, psld_plan_output *outputs, size_t *output_count)
{
    size_t limit = r->graph->parameter_count + 1;
    psld_id *by = psld_alloc(limit, sizeof *by), *gradient = psld_alloc(limit, sizeof *gradient);
    int *parameter = psld_alloc(limit, sizeof *parameter);
    psld_status status = by && gradient && parameter ? PSLD_OK : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        psld_id objective = add_objective(r);
        size_t count = list_targets(r, by, parameter);
        status = psld_gradient(r->graph, objective, r->seed, by, count, gradient);
        for (size_t i = 0; status == PSLD_OK && i < count; i++) {
            if (by[i] == r->z) r->grad_z = gradient[i];
            outputs[(*output_count)++] = (psld_plan_output){gradient[i], parameter[i]};
        }
    }
    psld_release(by);
    psld_release(gradient);
    psld_release(parameter);
    return status;
}

static psld_status make_plan(psld_runner *r, const psld_runner_options *options)
{
    psld_network_config config = r->network->config;
    config.dropout = 0; /* nobody trains here */
    PSLD_TRY(psld_graph_create(&r->graph));
    r->z = psld_graph_input(r->graph, config.in_ch, config.image_size, config.image_size);
    r->t = psld_graph_input(r->graph, 1, 1, 1);
    PSLD_TRY(psld_network_build(&config, r->graph, r->z, r->t, &r->out));
    psld_plan_output *outputs = psld_alloc(r->graph->parameter_count + 2, sizeof *outputs);
    if (!outputs) return PSLD_NO_MEMORY;
    size_t count = 0;
    outputs[count++] = (psld_plan_output){r->out, PSLD_NONE};
    psld_status status = r->want ? differentiate(r, outputs, &count) : PSLD_OK;
    psld_plan_options how = {options->backend, options->batch, PSLD_PASS_ALL, options->store};
    if (status == PSLD_OK) status = psld_plan_create(r->graph, &how, outputs, count, &r->plan);
    psld_release(outputs);
    return status;
}

static psld_status make_memory(psld_runner *r, int poison)
{
    void *weights = r->network->weights;
    if (r->plan->backend->type == PSLD_F64) {
        weights = r->weights = psld_alloc(r->plan->parameters, sizeof *r->weights);
        if (!weights) return PSLD_NO_MEMORY;
    }
    if (r->want & PSLD_WANT_GRADIENT_PARAMETERS) {
        r->gradients = psld_alloc(r->plan->parameters, r->plan->element);
        if (!r->gradients) return PSLD_NO_MEMORY;
    }
    PSLD_TRY(psld_exec_create(r->plan, weights, r->gradients, poison, &r->exec));
    if (!r->weights) psld_exec_spread(r->exec, (const void *const *)r->network->at);
    return PSLD_OK;
}

psld_status psld_runner_open(const psld_network *network, const psld_runner_options *options, psld_runner **runner)
{
    *runner = NULL;
    psld_runner *r = psld_alloc(1, sizeof *r);
    if (!r) return PSLD_NO_MEMORY;
    r->network = network;
    r->want = options->want;
    r->seed = r->label = r->grad_z = PSLD_NONE;
    psld_status status = make_plan(r, options);
    if (status == PSLD_OK) status = make_memory(r, options->poison);
    if (status != PSLD_OK) {
        psld_runner_free(r);
        return status;
    }
    *runner = r;
    return PSLD_OK;
}

psld_status psld_runner_create(const psld_network *network, const psld_backend *backend, int batch, unsigned want,
                               int poison, psld_runner **runner)
{
    psld_runner_options options = {.backend = backend, .batch = batch, .want = want, .poison = poison};
    return psld_runner_open(network, &options, runner);
}

void psld_runner_free(psld_runner *runner)
{
    if (!runner) return;
    psld_exec_free(runner->exec);
    psld_plan_free(runner->plan);
    psld_graph_free(runner->graph);
    psld_release(runner->gradients);
    psld_release(runner->weights);
    psld_release(runner);
}

static const void *row_of(const void *array, psld_type type, size_t row, psld_shape s)
{
    size_t element = type == PSLD_F64 ? sizeof(double) : sizeof(float);
    return (const char *)array + row * psld_shape_count(s) * element;
}

static void *result_row(void *array, psld_type type, size_t row, psld_shape s)
{
    size_t element = type == PSLD_F64 ? sizeof(double) : sizeof(float);
    return (char *)array + row * psld_shape_count(s) * element;
}

static void give(psld_runner *r, psld_id id, size_t first, int n, psld_type type, const void *array)
{
    if (id != PSLD_NONE && array)
        psld_exec_set(r->exec, id, n, type, row_of(array, type, first, psld_graph_shape(r->graph, id)));
}

static void take(psld_runner *r, psld_id id, size_t first, int n, psld_type type, void *array)
{
    if (id != PSLD_NONE && array)
        psld_exec_get(r->exec, id, n, type, result_row(array, type, first, psld_graph_shape(r->graph, id)));
}

static psld_status check_labels(const psld_runner *r, size_t n, const psld_runner_data *data)
{
    for (size_t i = 0; r->label != PSLD_NONE && i < n; i++) {
        double label =
            data->type == PSLD_F64 ? ((const double *)data->label)[i] : (double)((const float *)data->label)[i];
        if (!(label >= 0 && label < r->network->config.out_ch && label == (int)label))
            return psld_fail(PSLD_BAD_ARGUMENT, "label %zu: expected a whole number from 0 to %d, found %g", i,
                             r->network->config.out_ch - 1, label);
    }
    return PSLD_OK;
}

static void widen_weights(psld_runner *r)
{
    for (size_t i = 0; i < r->graph->parameter_count; i++) {
        const psld_parameter *p = &r->graph->parameters[i];
        for (size_t j = 0; j < p->count; j++) r->weights[p->offset + j] = (double)r->network->at[i][j];
    }
}

psld_status psld_runner_run(psld_runner *r, size_t n, const psld_runner_data *data)
{
    psld_run run = {0};
    size_t batch = (size_t)r->plan->batch;
    assert(n <= batch || !r->gradients);
    PSLD_TRY(check_labels(r, n, data));
    if (r->weights) widen_weights(r);
    for (size_t first = 0; first < n; first += batch) {
        int count = (int)(n - first < batch ? n - first : batch);
        give(r, r->z, first, count, data->type, data->z);
        give(r, r->t, first, count, data->type, data->t);
        give(r, r->label, first, count, data->type, data->label);
        if (r->label == PSLD_NONE) give(r, r->seed, first, count, data->type, data->grad_out);
        psld_exec_run(r->exec, count, &run);
        take(r, r->out, first, count, data->type, data->out);
        take(r, r->grad_z, first, count, data->type, data->grad_z);
    }
    return PSLD_OK;
}

void psld_runner_changed(psld_runner *runner)
{
    psld_exec_changed(runner->exec);
}

void psld_runner_time(psld_runner *runner, double *seconds)
{
    psld_exec_time(runner->exec, seconds);
}

const void *psld_runner_gradients(const psld_runner *runner)
{
    return runner->gradients;
}

size_t psld_runner_faults(const psld_runner *runner)
{
    return psld_exec_faults(runner->exec);
}

const struct psld_plan *psld_runner_plan(const psld_runner *runner)
{
    return runner->plan;
}
