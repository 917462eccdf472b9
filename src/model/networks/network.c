#include "model/networks/network.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "model/networks/ncsnpp.h"

int psld_network_label_width(const psld_network_config *config)
{
    return config->class_embedding == PSLD_CLASS_TIMESTEP && config->classes ? 1 : config->classes;
}

psld_network_inputs psld_network_add_inputs(const psld_network_config *config, psld_graph *graph)
{
    psld_network_inputs inputs = {.label = PSLD_NONE, .augment = PSLD_NONE};
    inputs.z = psld_graph_input(graph, config->in_ch, config->image_size, config->image_size);
    inputs.t = psld_graph_input(graph, 1, 1, 1);
    if (config->classes) inputs.label = psld_graph_input(graph, psld_network_label_width(config), 1, 1);
    return inputs;
}

psld_status psld_network_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                               psld_id *out)
{
    switch (config->kind) {
    case PSLD_NET_CLASSIFIER:
        return psld_classifier_build(config, graph, inputs, out);
    case PSLD_NET_MLP:
        return psld_mlp_build(config, graph, inputs, out);
    case PSLD_NET_UNET:
    case PSLD_NET_SONGUNET:
    case PSLD_NET_ADM:
    case PSLD_NET_UNET2D:
        break;
    }
    return psld_ncsnpp_build(config, graph, inputs, out);
}

static void point_at_own(psld_network *network)
{
    const psld_graph *graph = network->graph;
    for (size_t i = 0; i < graph->parameter_count; i++) network->at[i] = network->weights + graph->parameters[i].offset;
}

static psld_status build_network(psld_network *network)
{
    PSLD_TRY(psld_graph_create(&network->graph));
    psld_graph *graph = network->graph;
    network->inputs = psld_network_add_inputs(&network->config, graph);
    PSLD_TRY(psld_network_build(&network->config, graph, &network->inputs, &network->out));
    network->weights = psld_alloc(graph->parameter_elements, sizeof *network->weights);
    network->at = psld_alloc(graph->parameter_count, sizeof *network->at);
    if (!network->weights || !network->at) return PSLD_NO_MEMORY;
    point_at_own(network);
    return PSLD_OK;
}

psld_status psld_network_create(const psld_network_config *config, psld_network **network)
{
    *network = NULL;
    psld_network *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->config = *config;
    psld_status status = build_network(made);
    if (status != PSLD_OK) {
        psld_network_free(made);
        return status;
    }
    *network = made;
    return PSLD_OK;
}

void psld_network_free(psld_network *network)
{
    if (!network) return;
    psld_graph_free(network->graph);
    psld_release(network->weights);
    psld_release(network->at);
    psld_release(network->copies);
    psld_release(network);
}

size_t psld_network_size(const psld_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) count += graph->parameters[i].count;
    return count;
}

/* ---- Initialisation ---------------------------------------------------------------------------------------------- */

/* Variance scaling: uniform on +-sqrt(3 scale / fan), fan = (fan_in + fan_out) / 2. */
static double uniform_limit(const psld_parameter *p)
{
    double count = (double)p->count, fan = (count / p->shape[0] + count / p->shape[1]) / 2;
    return sqrt(3 * p->scale / fan);
}

static void fill_parameter(const psld_parameter *p, uint64_t seed, uint64_t number, float *w)
{
    enum { PIECE = 256 };
    double x[PIECE], limit = p->init == PSLD_INIT_UNIFORM ? uniform_limit(p) : 0;
    for (size_t first = 0; first < p->count; first += PIECE) {
        size_t count = p->count - first < PIECE ? p->count - first : PIECE;
        if (p->init == PSLD_INIT_UNIFORM) psld_random_uniform(seed, PSLD_FOR_WEIGHTS, 0, number, first, count, x);
        if (p->init == PSLD_INIT_NORMAL) psld_random_normal(seed, PSLD_FOR_WEIGHTS, 0, number, first, count, x);
        for (size_t i = 0; i < count; i++) {
            if (p->init == PSLD_INIT_UNIFORM) w[first + i] = (float)((2 * x[i] - 1) * limit);
            if (p->init == PSLD_INIT_NORMAL) w[first + i] = (float)(x[i] * p->scale);
            if (p->init == PSLD_INIT_ZEROS) w[first + i] = 0;
            if (p->init == PSLD_INIT_ONES) w[first + i] = 1;
        }
    }
}

void psld_network_initialise(psld_network *network, uint64_t seed)
{
    const psld_graph *graph = network->graph;
    for (size_t i = 0; i < graph->parameter_count; i++)
        fill_parameter(&graph->parameters[i], seed, i, network->weights + graph->parameters[i].offset);
}

/* ---- Weights from files ------------------------------------------------------------------------------------------ */

static psld_status check_shape(const psld_parameter *p, const psld_tensor *tensor)
{
    int same = tensor->rank == p->rank;
    for (int i = 0; same && i < p->rank; i++) same = tensor->shape[i] == (size_t)p->shape[i];
    if (same) return PSLD_OK;
    char found[128] = "", expected[128] = "";
    for (int i = 0; i < tensor->rank; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%zu", i ? ", " : "", tensor->shape[i]);
    for (int i = 0; i < p->rank; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%d", i ? ", " : "", p->shape[i]);
    return psld_fail(PSLD_BAD_INPUT, "%s: the configuration makes it [%s], the file has [%s]", tensor->name, expected,
                     found);
}

static const psld_parameter *find_parameter_named(const psld_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (strcmp(graph->parameters[i].name, name) == 0) return &graph->parameters[i];
    return NULL;
}

/* The tensor of each parameter, in their order. */
static psld_status match_tensors(const psld_graph *graph, const psld_tensors *tensors, const char *prefix,
                                 const psld_tensor **found)
{
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        char name[2 * PSLD_PARAMETER_NAME];
        snprintf(name, sizeof name, "%.90s%s", prefix, p->name);
        found[i] = psld_tensors_find(tensors, name);
        if (!found[i])
            return psld_fail(PSLD_BAD_INPUT, "%s: is missing in the file, but the configuration has it", name);
        PSLD_TRY(check_shape(p, found[i]));
    }
    size_t length = strlen(prefix);
    for (size_t i = 0; i < tensors->count; i++) {
        const char *name = tensors->items[i].name;
        if (strncmp(name, prefix, length) == 0 && !find_parameter_named(graph, name + length))
            return psld_fail(PSLD_BAD_INPUT, "%s: is in the file, but the configuration has no such tensor", name);
    }
    return PSLD_OK;
}

/* Elements from the beginning of a parameter to that of the next. */
static size_t room_of(const psld_graph *graph, size_t number)
{
    size_t end = number + 1 < graph->parameter_count ? graph->parameters[number + 1].offset : graph->parameter_elements;
    return end - graph->parameters[number].offset;
}

/* Whether a tensor can be used in place: it is aligned and followed by zeros, like a parameter in the buffer, and so
 * large that a copy should be avoided. */
static int may_stay(const psld_tensor *tensor)
{
    enum { ALIGNMENT = 64, LARGE = 1 << 16 };
    return tensor->type == PSLD_ELEMENT_F32 && tensor->bytes >= LARGE && tensor->bytes % ALIGNMENT == 0 &&
           (uintptr_t)tensor->data % ALIGNMENT == 0;
}

/* Copies the tensors that cannot be used in place. */
static psld_status borrow_tensors(psld_network *network, const psld_tensor *const *from)
{
    const psld_graph *graph = network->graph;
    size_t elements = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) elements += may_stay(from[i]) ? 0 : room_of(graph, i);
    network->copies = psld_alloc(elements, sizeof *network->copies);
    if (!network->copies) return PSLD_NO_MEMORY;
    float *copy = network->copies;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        network->at[i] = may_stay(from[i]) ? from[i]->data : copy;
        if (may_stay(from[i])) continue;
        psld_tensor_to_f32(from[i], copy);
        copy += room_of(graph, i);
    }
    psld_release(network->weights);
    network->weights = NULL;
    return PSLD_OK;
}

static psld_status load_parameters(psld_network *network, const psld_tensor *const *from)
{
    for (size_t i = 0; i < network->graph->parameter_count; i++)
        psld_tensor_to_f32(from[i], network->weights + network->graph->parameters[i].offset);
    return PSLD_OK;
}

static psld_status load_network(psld_network *network, const psld_tensors *tensors, const char *prefix,
                                psld_status (*how)(psld_network *, const psld_tensor *const *))
{
    const psld_tensor **found = psld_alloc(network->graph->parameter_count, sizeof *found);
    if (!found) return PSLD_NO_MEMORY;
    psld_status status = match_tensors(network->graph, tensors, prefix, found);
    if (status == PSLD_OK) status = how(network, found);
    psld_release(found);
    return status;
}

psld_status psld_network_load(psld_network *network, const psld_tensors *tensors, const char *prefix)
{
    return load_network(network, tensors, prefix, load_parameters);
}

psld_status psld_network_borrow(psld_network *network, const psld_tensors *tensors, const char *prefix)
{
    return load_network(network, tensors, prefix, borrow_tensors);
}

void psld_network_gather(const psld_network *network, float *weights)
{
    const psld_graph *graph = network->graph;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        memcpy(weights + p->offset, network->at[i], p->count * sizeof *weights);
    }
}

psld_status psld_network_own(psld_network *network)
{
    if (network->weights) return PSLD_OK;
    float *weights = psld_alloc(network->graph->parameter_elements, sizeof *weights);
    if (!weights) return PSLD_NO_MEMORY;
    psld_network_gather(network, weights);
    network->weights = weights;
    point_at_own(network);
    psld_release(network->copies);
    network->copies = NULL;
    return PSLD_OK;
}
