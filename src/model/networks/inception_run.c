/* Weights from files, folded, and running the network on images of any size. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/tensors/tensors.h"
#include "model/files/checksum.h"
#include "model/networks/inception.h"
#include "nn/exec.h"
#include "nn/ops.h"

/* Images at a time: enough for all threads, but with activations that stay near the caches. */
enum { BATCH = 8, SIZE = 299 };

#define BATCH_NORM_EPS 1e-3
#define WANTED                                                                                         \
    "the FID network is pt_inception-2015-12-05-6726825d.pth from the releases of pytorch-fid and of " \
    "torch-fidelity, SHA-256 6726825d..."

struct psld_inception {
    const psld_backend *backend;
    psld_graph *graph; /* for images of the size below */
    psld_id x;
    psld_inception_nodes nodes;
    float *weights; /* [graph->parameter_elements]; the same for every size */
    psld_plan *plan;
    psld_exec *exec;
    int height, width; /* 0: not planned yet */
};

/* ---- Graph and plan of one size of image ------------------------------------------------------------------------- */

static psld_status build_inception_graph(psld_inception *net, int height, int width)
{
    psld_graph_free(net->graph);
    net->graph = NULL;
    PSLD_TRY(psld_graph_create(&net->graph));
    net->x = psld_graph_input(net->graph, 3, height, width);
    psld_id resized = height == SIZE && width == SIZE ? net->x : psld_nn_resize(net->graph, net->x, SIZE, SIZE);
    return psld_inception_build(net->graph, resized, &net->nodes);
}

static psld_status plan_inception(psld_inception *net, int height, int width)
{
    if (net->exec && net->height == height && net->width == width) return PSLD_OK;
    psld_exec_free(net->exec);
    psld_plan_free(net->plan);
    net->exec = NULL;
    net->plan = NULL;
    PSLD_TRY(build_inception_graph(net, height, width));
    const psld_plan_output outputs[] = {
        {net->nodes.features, PSLD_NONE}, {net->nodes.logits, PSLD_NONE}, {net->nodes.early, PSLD_NONE}};
    psld_plan_options how = {net->backend, BATCH, PSLD_PASS_ALL, SIZE_MAX};
    PSLD_TRY(psld_plan_create(net->graph, &how, outputs, 3, &net->plan));
    PSLD_TRY(psld_exec_create(net->plan, net->weights, NULL, 0, &net->exec));
    net->height = height;
    net->width = width;
    return PSLD_OK;
}

/* Copies rows of an output from `first` on, if they are wanted. */
static psld_status get_rows(psld_inception *net, psld_id id, size_t first, int n, size_t width, float *to)
{
    return to ? psld_exec_get(net->exec, id, n, PSLD_F32, to + first * width) : PSLD_OK;
}

psld_status psld_inception_run(psld_inception *net, size_t n, size_t height, size_t width, const float *x,
                               const psld_inception_result *result)
{
    const psld_run run = {0};
    if (height < 1 || width < 1 || height > 1 << 14 || width > 1 << 14)
        return psld_fail(PSLD_BAD_INPUT, "images of %zu x %zu: expected 1 x 1 to 16384 x 16384", height, width);
    PSLD_TRY(plan_inception(net, (int)height, (int)width));
    for (size_t first = 0; first < n; first += BATCH) {
        int count = (int)(n - first < BATCH ? n - first : BATCH);
        PSLD_TRY(psld_exec_set(net->exec, net->x, count, PSLD_F32, x + first * 3 * height * width));
        PSLD_TRY(psld_exec_run(net->exec, count, &run));
        PSLD_TRY(get_rows(net, net->nodes.features, first, count, PSLD_INCEPTION_FEATURES, result->features));
        PSLD_TRY(get_rows(net, net->nodes.logits, first, count, PSLD_INCEPTION_LOGITS, result->logits));
        PSLD_TRY(get_rows(net, net->nodes.early, first, count, PSLD_INCEPTION_EARLY, result->early));
    }
    return PSLD_OK;
}

/* ---- Weights ----------------------------------------------------------------------------------------------------- */

/* The tensor `base`.`part` of the given shape, as floats into `to`. */
static psld_status read_part(const psld_tensors *tensors, const char *base, const char *part, int rank,
                             const int *shape, float *to)
{
    char name[2 * PSLD_PARAMETER_NAME];
    snprintf(name, sizeof name, "%s.%s", base, part);
    const psld_tensor *tensor = psld_tensors_find(tensors, name);
    if (!tensor) return psld_fail(PSLD_BAD_INPUT, "these are weights of another network, without %s; " WANTED, name);
    int same = tensor->rank == rank;
    for (int i = 0; same && i < rank; i++) same = tensor->shape[i] == (size_t)shape[i];
    if (!same)
        return psld_fail(PSLD_BAD_INPUT, "these are weights of another network, in which %s has another shape; " WANTED,
                         name);
    psld_tensor_to_f32(tensor, to);
    for (size_t i = 0; i < tensor->count; i++)
        if (!isfinite(to[i])) return psld_fail(PSLD_BAD_INPUT, "%s: number %zu is not finite", name, i);
    return PSLD_OK;
}

/* relu(bn(conv(x))): scale = weight / sqrt(var + eps), bias = bn.bias - mean scale. */
static psld_status fold_norm(const psld_tensors *tensors, const char *base, const psld_parameter *p, float *w,
                             float *bias)
{
    int channels = p->shape[0];
    float *room = psld_alloc((size_t)channels * 4, sizeof *room);
    if (!room) return PSLD_NO_MEMORY;
    float *gain = room, *shift = gain + channels, *mean = shift + channels, *variance = mean + channels;
    psld_status status = read_part(tensors, base, "conv.weight", 4, p->shape, w);
    if (status == PSLD_OK) status = read_part(tensors, base, "bn.weight", 1, p->shape, gain);
    if (status == PSLD_OK) status = read_part(tensors, base, "bn.bias", 1, p->shape, shift);
    if (status == PSLD_OK) status = read_part(tensors, base, "bn.running_mean", 1, p->shape, mean);
    if (status == PSLD_OK) status = read_part(tensors, base, "bn.running_var", 1, p->shape, variance);
    size_t width = p->count / (size_t)channels;
    for (int c = 0; status == PSLD_OK && c < channels; c++) {
        double scale = (double)gain[c] / sqrt((double)variance[c] + BATCH_NORM_EPS);
        if (!isfinite(scale)) status = psld_fail(PSLD_BAD_INPUT, "%s.bn.running_var: negative", base);
        for (size_t i = 0; i < width; i++) w[(size_t)c * width + i] = (float)((double)w[(size_t)c * width + i] * scale);
        bias[c] = (float)((double)shift[c] - (double)mean[c] * scale);
    }
    psld_release(room);
    return status;
}

static psld_status load_weights(psld_inception *net, const psld_tensors *tensors)
{
    static const char end[] = ".conv.weight";
    const psld_graph *graph = net->graph;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        size_t length = strlen(p->name), tail = sizeof end - 1;
        char base[PSLD_PARAMETER_NAME];
        if (length <= tail || strcmp(p->name + length - tail, end) != 0) continue;
        snprintf(base, sizeof base, "%.*s", (int)(length - tail), p->name);
        /* the folded bias is the parameter that follows its convolution's */
        PSLD_TRY(fold_norm(tensors, base, p, net->weights + p->offset, net->weights + graph->parameters[i + 1].offset));
    }
    const psld_parameter *fc = &graph->parameters[graph->parameter_count - 1];
    return read_part(tensors, "fc", "weight", 2, fc->shape, net->weights + fc->offset);
}

static psld_status fill_weights(psld_inception *net, const psld_tensors *tensors, const char *path)
{
    PSLD_TRY(psld_checksum_verify(tensors, path));
    PSLD_TRY(build_inception_graph(net, SIZE, SIZE));
    net->weights = psld_alloc(net->graph->parameter_elements, sizeof *net->weights);
    if (!net->weights) return PSLD_NO_MEMORY;
    return load_weights(net, tensors);
}

psld_status psld_inception_open(const char *path, const psld_backend *backend, psld_inception **inception)
{
    psld_tensors *tensors;
    *inception = NULL;
    if (access(path, R_OK) != 0) return psld_fail(PSLD_IO, "%s: %s; " WANTED, path, strerror(errno));
    PSLD_TRY(psld_tensors_open(path, &tensors));
    psld_inception *net = psld_alloc(1, sizeof *net);
    psld_status status = net ? PSLD_OK : PSLD_NO_MEMORY;
    if (net) net->backend = backend;
    if (net) status = fill_weights(net, tensors, path);
    psld_tensors_free(tensors);
    if (status == PSLD_OK) {
        *inception = net;
        return PSLD_OK;
    }
    psld_inception_free(net);
    return status == PSLD_NO_MEMORY ? status : psld_fail_in(status, "%s", path);
}

void psld_inception_free(psld_inception *inception)
{
    if (!inception) return;
    psld_exec_free(inception->exec);
    psld_plan_free(inception->plan);
    psld_graph_free(inception->graph);
    psld_release(inception->weights);
    psld_release(inception);
}
