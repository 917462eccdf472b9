/* The metric comes through the public interface, since the layer of metrics is above this one. Samples are those of the
 * pictures (train.sampler, train.sample_nfe, the run's seed), but more of them. The data are the first positions of the
 * fixed shuffle: held-out data, and then, if these are not enough, training data. */
#include "train/metric.h"

#include <math.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "train/log_read.h"
#include "train/training.h"

static psld_status read_metric(const psld_training_metric *metric, psld_training_metric *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_training_metric, metric, own, PSLD_TRAINING_METRIC_DEFAULTS));
    if (own->open && own->set_reference && own->measure) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "training metric: expected open, set_reference and measure, found NULL");
}

psld_status psld_training_metric_open(psld_training *t, const psld_training_metric *metric)
{
    t->best_distance = (double)INFINITY;
    if (t->settings.train.metric_every == 0) return PSLD_OK;
    if (t->model->kind != PSLD_SCORE_MODEL)
        return psld_fail(PSLD_BAD_INPUT, "train.metric_every: a classifier draws no samples; expected 0");
    if (!metric)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.metric_every: expected 0, since this program sets no metric (psld_training_options)");
    if (t->ranks->rank != 0) return PSLD_OK; /* the first rank measures */
    PSLD_TRY(read_metric(metric, &t->metric));
    PSLD_TRY(psld_training_check_sampler(t));
    psld_status status = t->metric.open(t->settings.train.metric_weights, t->model->rank, &t->metric_state);
    if (status != PSLD_OK) return psld_fail_in(status, "train.metric_weights");
    t->has_metric = 1;
    return PSLD_OK;
}

void psld_training_metric_close(psld_training *t)
{
    if (t->has_metric && t->metric.close) t->metric.close(t->metric_state);
    t->has_metric = 0;
}

static void keep_best_distance(void *user, json_t *entry)
{
    psld_training *t = user;
    const json_t *distance = json_object_get(entry, "metric");
    if (json_is_number(distance)) t->best_distance = fmin(t->best_distance, json_number_value(distance));
}

psld_status psld_training_metric_resume(psld_training *t)
{
    if (!t->has_metric || !t->run) return PSLD_OK;
    return psld_log_read(psld_run_folder_file(t->run, "log.jsonl"), keep_best_distance, t);
}

/* As many items of the data as samples will be drawn, or all of them. */
static psld_status read_reference(psld_training *t, psld_array **data)
{
    size_t shape[PSLD_MAX_RANK + 1];
    uint64_t count = psld_data_count(t->data), wanted = (uint64_t)t->settings.train.metric_count;
    psld_loader *loader;
    psld_loader_options options = {.seed = (uint64_t)t->settings.seed, .end = count < wanted ? count : wanted};
    int rank = psld_data_shape(t->data, shape + 1);
    shape[0] = (size_t)options.end;
    PSLD_TRY(psld_array_create(PSLD_F32, rank + 1, shape, data));
    psld_status status = psld_loader_create(t->data, &options, &loader);
    if (status == PSLD_OK) status = psld_loader_read(loader, 0, shape[0], (*data)->data, NULL);
    psld_loader_free(loader);
    return status;
}

/* The data are read once. */
static psld_status give_reference(psld_training *t)
{
    psld_array *data = NULL;
    if (t->metric_has_data) return PSLD_OK;
    psld_status status = read_reference(t, &data);
    if (status == PSLD_OK) status = t->metric.set_reference(t->metric_state, data);
    psld_array_free(data);
    t->metric_has_data = status == PSLD_OK;
    return status;
}

static psld_status keep_best(psld_training *t, double distance)
{
    if (!(distance < t->best_distance)) return PSLD_OK;
    t->best_distance = distance;
    t->model->steps = psld_training_steps(t);
    PSLD_TRY(psld_training_name_recipe(t));
    return t->run ? psld_model_save(t->model, psld_run_folder_file(t->run, "best.safetensors")) : PSLD_OK;
}

psld_status psld_training_metric_measure(psld_training *t, double *distance)
{
    psld_array *samples;
    *distance = (double)NAN;
    if (!t->has_metric) return PSLD_OK;
    PSLD_TRY(give_reference(t));
    PSLD_TRY(psld_training_draw(t, (size_t)t->settings.train.metric_count, &samples));
    psld_status status = t->metric.measure(t->metric_state, samples, distance);
    psld_array_free(samples);
    return status == PSLD_OK ? keep_best(t, *distance) : status;
}
