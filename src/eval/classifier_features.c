#include "eval/classifier_features.h"

#include <string.h>

#include "base/alloc.h"
#include "model/model.h"
#include "model/networks/ncsnpp.h"
#include "nn/exec.h"
#include "nn/ops.h"

enum { BATCH = 16 };

#define SMALLEST_TIME 1e-5F

struct psld_classifier_features {
    psld_model *model;
    psld_graph *graph;
    psld_id z, t, mean, logits;
    psld_plan *plan;
    psld_exec *exec;
    float *states; /* [BATCH][in_ch size size]: auxiliary variables stay 0 */
    float times[BATCH];
};

static psld_status make_feature_plan(psld_classifier_features *f)
{
    psld_network_config config = f->model->network->config;
    psld_id encoded;
    config.dropout = 0;
    PSLD_TRY(psld_graph_create(&f->graph));
    psld_network_inputs inputs = psld_network_add_inputs(&config, f->graph);
    f->z = inputs.z;
    f->t = inputs.t;
    PSLD_TRY(psld_classifier_parts(&config, f->graph, &inputs, &encoded, &f->logits));
    psld_shape s = psld_graph_shape(f->graph, encoded);
    f->mean = psld_nn_scale(f->graph, psld_nn_channel_sum(f->graph, encoded, 0), 1.0 / ((double)s.h * s.w));
    PSLD_TRY(psld_graph_status(f->graph));
    const psld_plan_output outputs[] = {{f->mean, PSLD_NONE}, {f->logits, PSLD_NONE}};
    psld_plan_options how = {f->model->backend, BATCH, PSLD_PASS_ALL, SIZE_MAX};
    PSLD_TRY(psld_plan_create(f->graph, &how, outputs, 2, &f->plan));
    return psld_exec_create_spread(f->plan, (const void *const *)f->model->network->at, NULL, 0, &f->exec);
}

static psld_status fill_inputs(psld_classifier_features *f, const char *path, const char *device)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.device = device;
    PSLD_TRY(psld_model_open(path, &options, &f->model));
    if (f->model->kind != PSLD_CLASSIFIER)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: is a score network; features come from a classifier or from the FID network", path);
    const psld_network_config *config = &f->model->network->config;
    f->states = psld_alloc((size_t)BATCH * (size_t)config->in_ch,
                           (size_t)config->image_size * (size_t)config->image_size * sizeof *f->states);
    if (!f->states) return PSLD_NO_MEMORY;
    for (int i = 0; i < BATCH; i++) f->times[i] = SMALLEST_TIME;
    return make_feature_plan(f);
}

psld_status psld_classifier_features_open(const char *path, const char *device, psld_classifier_features **features)
{
    *features = NULL;
    psld_classifier_features *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = fill_inputs(made, path, device);
    if (status != PSLD_OK)
        psld_classifier_features_free(made);
    else
        *features = made;
    return status;
}

void psld_classifier_features_free(psld_classifier_features *features)
{
    if (!features) return;
    psld_exec_free(features->exec);
    psld_plan_free(features->plan);
    psld_graph_free(features->graph);
    psld_model_free(features->model);
    psld_release(features->states);
    psld_release(features);
}

size_t psld_classifier_features_dim(const psld_classifier_features *features)
{
    return (size_t)psld_graph_shape(features->graph, features->mean).c;
}

size_t psld_classifier_features_classes(const psld_classifier_features *features)
{
    return (size_t)features->model->network->config.out_ch;
}

psld_status psld_classifier_features_run(psld_classifier_features *f, size_t n, const size_t shape[3], const float *x,
                                         float *out, float *logits)
{
    const psld_network_config *config = &f->model->network->config;
    const size_t *own = f->model->shape, size = shape[0] * shape[1] * shape[2];
    const size_t state = (size_t)config->in_ch * shape[1] * shape[2];
    const psld_run run = {0};
    if (memcmp(own, shape, 3 * sizeof *own) != 0)
        return psld_fail(PSLD_BAD_INPUT, "the classifier takes images of %zu x %zu x %zu, these are %zu x %zu x %zu",
                         own[0], own[1], own[2], shape[0], shape[1], shape[2]);
    for (size_t first = 0; first < n; first += BATCH) {
        int count = (int)(n - first < BATCH ? n - first : BATCH);
        for (int i = 0; i < count; i++)
            memcpy(f->states + (size_t)i * state, x + (first + (size_t)i) * size, size * sizeof *x);
        PSLD_TRY(psld_exec_set(f->exec, f->z, count, PSLD_F32, f->states));
        PSLD_TRY(psld_exec_set(f->exec, f->t, count, PSLD_F32, f->times));
        PSLD_TRY(psld_exec_run(f->exec, count, &run));
        if (out)
            PSLD_TRY(psld_exec_get(f->exec, f->mean, count, PSLD_F32, out + first * psld_classifier_features_dim(f)));
        if (logits)
            PSLD_TRY(psld_exec_get(f->exec, f->logits, count, PSLD_F32, logits + first * (size_t)config->out_ch));
    }
    return PSLD_OK;
}
