/* Running a network, with gradients if wanted: the network's graph once more, differentiated, planned for one size of
 * batch. */
#include <assert.h>

#include "base/alloc.h"
#include "model/networks/network_plan.h"
#include "nn/exec.h"
#include "nn/ops.h"

struct psld_runner {
    const psld_network *network;
    unsigned want;
    psld_network_plan network_plan;
    psld_id seed, label; /* PSLD_NONE: not used */
    psld_exec *exec;
    void *gradients; /* [parameter_elements], backend's type */
    double *weights; /* a copy, for backends in double; NULL otherwise */
};

/* What is differentiated, and the weights by which its elements are summed. */
static psld_id add_objective(psld_runner *r)
{
    psld_graph *graph = r->network_plan.graph;
    psld_shape s = psld_graph_shape(graph, r->network_plan.out);
    if (!(r->want & PSLD_WANT_LOG_P)) {
        r->seed = psld_graph_input(graph, s.c, s.h, s.w);
        return r->network_plan.out;
    }
    r->label = psld_graph_input(graph, 1, 1, 1);
    psld_id entropy = psld_nn_entropy(graph, r->network_plan.out, r->label);
    r->seed = psld_nn_fill(graph, psld_graph_shape(graph, entropy), -1);
    return entropy;
}

static psld_status plan_runner(psld_runner *r, const psld_runner_options *options)
{
    psld_network_plan_options how = {
        .backend = options->backend, .batch = options->batch, .store = options->store, .want = r->want};
    PSLD_TRY(psld_network_plan_begin(&r->network->config, 0, &r->network_plan));
    if (r->want) how.objective = add_objective(r);
    how.weight = r->seed;
    return psld_network_plan_finish(&r->network_plan, &how);
}

/* Memory of a size that the batch has no say in. */
static uint64_t fixed_bytes(const psld_runner *r)
{
    const psld_plan *plan = r->network_plan.plan;
    uint64_t copies = r->want & PSLD_WANT_GRADIENT_PARAMETERS ? 2 : 1;
    return (copies * plan->parameters + plan->kept) * plan->element;
}

static uint64_t batch_bytes(const psld_runner *r)
{
    return (uint64_t)r->network_plan.plan->arena * r->network_plan.plan->element;
}

uint64_t psld_runner_bytes(const psld_runner *runner)
{
    return fixed_bytes(runner) + batch_bytes(runner);
}

static psld_status allocate_runner(psld_runner *r, int poison)
{
    const psld_plan *plan = r->network_plan.plan;
    PSLD_TRY(
        psld_device_check_room(psld_device_of(plan->backend), fixed_bytes(r), batch_bytes(r), plan->batch, "--batch "));
    if (r->network_plan.plan->backend->type == PSLD_F64) {
        r->weights = psld_alloc(r->network_plan.plan->parameters, sizeof *r->weights);
        if (!r->weights) return PSLD_NO_MEMORY;
    }
    if (r->want & PSLD_WANT_GRADIENT_PARAMETERS) {
        r->gradients = psld_alloc(r->network_plan.plan->parameters, r->network_plan.plan->element);
        if (!r->gradients) return PSLD_NO_MEMORY;
    }
    if (r->weights) return psld_exec_create(r->network_plan.plan, r->weights, r->gradients, poison, &r->exec);
    return psld_exec_create_spread(r->network_plan.plan, (const void *const *)r->network->at, r->gradients, poison,
                                   &r->exec);
}

psld_status psld_runner_open(const psld_network *network, const psld_runner_options *options, psld_runner **runner)
{
    *runner = NULL;
    psld_runner *r = psld_alloc(1, sizeof *r);
    if (!r) return PSLD_NO_MEMORY;
    r->network = network;
    r->want = options->want;
    r->seed = r->label = PSLD_NONE;
    psld_status status = plan_runner(r, options);
    if (status == PSLD_OK) status = allocate_runner(r, options->poison);
    if (status != PSLD_OK) {
        psld_runner_free(r);
        return status;
    }
    *runner = r;
    return PSLD_OK;
}

void psld_runner_free(psld_runner *runner)
{
    if (!runner) return;
    psld_exec_free(runner->exec);
    psld_network_plan_clear(&runner->network_plan);
    psld_release(runner->gradients);
    psld_release(runner->weights);
    psld_release(runner);
}

static const void *sample_of(const void *array, psld_type type, size_t row, psld_shape s)
{
    size_t element = type == PSLD_F64 ? sizeof(double) : sizeof(float);
    return (const char *)array + row * psld_shape_count(s) * element;
}

static void *result_row(void *array, psld_type type, size_t row, psld_shape s)
{
    size_t element = type == PSLD_F64 ? sizeof(double) : sizeof(float);
    return (char *)array + row * psld_shape_count(s) * element;
}

static psld_status set_input(psld_runner *r, psld_id id, size_t first, int n, psld_type type, const void *array)
{
    if (id == PSLD_NONE || !array) return PSLD_OK;
    return psld_exec_set(r->exec, id, n, type,
                         sample_of(array, type, first, psld_graph_shape(r->network_plan.graph, id)));
}

static psld_status read_output(psld_runner *r, psld_id id, size_t first, int n, psld_type type, void *array)
{
    if (id == PSLD_NONE || !array) return PSLD_OK;
    return psld_exec_get(r->exec, id, n, type,
                         result_row(array, type, first, psld_graph_shape(r->network_plan.graph, id)));
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
    for (size_t i = 0; i < r->network_plan.graph->parameter_count; i++) {
        const psld_parameter *p = &r->network_plan.graph->parameters[i];
        for (size_t j = 0; j < p->count; j++) r->weights[p->offset + j] = (double)r->network->at[i][j];
    }
}

static psld_status run_batch(psld_runner *r, size_t first, int n, const psld_runner_data *data)
{
    const psld_run run = {0};
    PSLD_TRY(set_input(r, r->network_plan.inputs.z, first, n, data->type, data->z));
    PSLD_TRY(set_input(r, r->network_plan.inputs.t, first, n, data->type, data->t));
    PSLD_TRY(set_input(r, r->network_plan.inputs.label, first, n, data->type, data->one_hot));
    PSLD_TRY(set_input(r, r->label, first, n, data->type, data->label));
    if (r->label == PSLD_NONE) PSLD_TRY(set_input(r, r->seed, first, n, data->type, data->grad_out));
    PSLD_TRY(psld_exec_run(r->exec, n, &run));
    PSLD_TRY(read_output(r, r->network_plan.out, first, n, data->type, data->out));
    return read_output(r, r->network_plan.grad_z, first, n, data->type, data->grad_z);
}

psld_status psld_runner_run(psld_runner *r, size_t n, const psld_runner_data *data)
{
    size_t batch = (size_t)r->network_plan.plan->batch;
    assert(n <= batch || !r->gradients);
    PSLD_TRY(check_labels(r, n, data));
    if (r->weights) widen_weights(r);
    for (size_t first = 0; first < n; first += batch) {
        int count = (int)(n - first < batch ? n - first : batch);
        PSLD_TRY(run_batch(r, first, count, data));
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
    return runner->network_plan.plan;
}
