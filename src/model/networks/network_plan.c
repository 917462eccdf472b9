#include "model/networks/network_plan.h"

#include "base/alloc.h"
#include "nn/gradient.h"

psld_status psld_network_plan_begin(const psld_network_config *config, int training, psld_network_plan *p)
{
    psld_network_config own = *config;
    *p = (psld_network_plan){.grad_z = PSLD_NONE};
    if (!training) own.dropout = 0;
    PSLD_TRY(psld_graph_create(&p->graph));
    p->inputs = psld_network_add_inputs(&own, p->graph);
    if (training && own.augment) p->inputs.augment = psld_graph_input(p->graph, PSLD_AUGMENT_INPUTS, 1, 1);
    return psld_network_build(&own, p->graph, &p->inputs, &p->out);
}

void psld_network_plan_clear(psld_network_plan *p)
{
    psld_plan_free(p->plan);
    psld_graph_free(p->graph);
    *p = (psld_network_plan){0};
}

/* Nodes to differentiate by: z first if it is wanted, then the trained parameters. */
static size_t list_variables(const psld_network_plan *p, unsigned want, psld_id *by, int *parameter)
{
    size_t count = 0;
    if (want & PSLD_WANT_GRADIENT_Z) {
        parameter[count] = PSLD_NONE;
        by[count++] = p->inputs.z;
    }
    for (size_t i = 0; (want & PSLD_WANT_GRADIENT_PARAMETERS) && i < p->graph->parameter_count; i++) {
        if (!p->graph->parameters[i].trained) continue;
        parameter[count] = (int)i;
        by[count++] = p->graph->parameters[i].id;
    }
    return count;
}

/* Adds the gradients to the graph and to the plan's outputs. */
static psld_status add_gradients(psld_network_plan *p, const psld_network_plan_options *options,
                                 psld_plan_output *outputs, size_t *output_count)
{
    size_t limit = p->graph->parameter_count + 1;
    psld_id *by = psld_alloc(limit, sizeof *by), *gradient = psld_alloc(limit, sizeof *gradient);
    int *parameter = psld_alloc(limit, sizeof *parameter);
    psld_status status = by && gradient && parameter ? PSLD_OK : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        size_t count = list_variables(p, options->want, by, parameter);
        status = psld_gradient(p->graph, options->objective, options->weight, by, count, gradient);
        for (size_t i = 0; status == PSLD_OK && i < count; i++) {
            if (by[i] == p->inputs.z) p->grad_z = gradient[i];
            outputs[(*output_count)++] = (psld_plan_output){gradient[i], parameter[i]};
        }
    }
    psld_release(by);
    psld_release(gradient);
    psld_release(parameter);
    return status;
}

psld_status psld_network_plan_finish(psld_network_plan *p, const psld_network_plan_options *options)
{
    PSLD_TRY(psld_graph_status(p->graph));
    psld_plan_output *outputs = psld_alloc(p->graph->parameter_count + 3, sizeof *outputs);
    if (!outputs) return PSLD_NO_MEMORY;
    size_t count = 0;
    outputs[count++] = (psld_plan_output){p->out, PSLD_NONE};
    if (options->want && options->keeps_value) outputs[count++] = (psld_plan_output){options->objective, PSLD_NONE};
    psld_status status = options->want ? add_gradients(p, options, outputs, &count) : PSLD_OK;
    psld_plan_options how = {options->backend, options->batch, PSLD_PASS_ALL, options->store};
    if (status == PSLD_OK) status = psld_plan_create(p->graph, &how, outputs, count, &p->plan);
    psld_release(outputs);
    return status;
}
