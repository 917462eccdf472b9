/* Evaluating a model's network: as a score source or a classifier, whose states are double, and on arrays. Networks are
 * float. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/backend.h"
#include "model/model.h"
#include "nn/plan.h"

/* Bytes of transformed weights that are kept between evaluations; the rest is made anew each time, with the same
 * bits. */
#define PACKED_BUDGET ((size_t)1 << 30)

/* What a network takes at a time, so that its activations stay some hundred megabytes. */
size_t psld_model_batch(const psld_model *model)
{
    if (!model->network) return 16384;
    const psld_network_config *config = &model->network->config;
    size_t size = (size_t)config->image_size, most = ((size_t)1 << 22) / ((size_t)config->nf * size * size);
    return most < 16 ? 16 : most > PSLD_LARGEST_BATCH ? PSLD_LARGEST_BATCH : most;
}

/* A runner for `batch` samples, or as many as are done at once: it cuts larger calls itself. */
psld_status psld_model_prepare(psld_model *model, int gradient, size_t batch)
{
    size_t most = psld_model_batch(model);
    if (batch > most) batch = most;
    if (model->runners[gradient] && model->runner_batch[gradient] >= batch) return PSLD_OK;
    psld_runner_free(model->runners[gradient]);
    model->runners[gradient] = NULL;
    unsigned want = gradient ? PSLD_WANT_GRADIENT_Z : 0;
    if (gradient && model->kind == PSLD_CLASSIFIER) want |= PSLD_WANT_LOG_P;
    model->runner_batch[gradient] = batch;
    psld_runner_options options = {
        .backend = model->backend, .batch = (int)batch, .want = want, .store = PACKED_BUDGET};
    return psld_runner_open(model->network, &options, &model->runners[gradient]);
}

static psld_status grow_row(float **row, size_t n, size_t width)
{
    psld_release(*row);
    *row = psld_alloc(n, width * sizeof(float));
    return *row ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status grow_rows(psld_rows *rows, int gradient, size_t n, size_t in, size_t out)
{
    if (n > rows->capacity) {
        rows->capacity = 0;
        PSLD_TRY(grow_row(&rows->z, n, in));
        PSLD_TRY(grow_row(&rows->t, n, 1));
        PSLD_TRY(grow_row(&rows->eps, n, out));
        rows->capacity = n;
    }
    if (gradient && n > rows->weight_capacity) {
        rows->weight_capacity = 0;
        PSLD_TRY(grow_row(&rows->weight, n, out));
        PSLD_TRY(grow_row(&rows->grad_z, n, in));
        rows->weight_capacity = n;
    }
    return PSLD_OK;
}

static void narrow(const double *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static void widen(const float *from, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++) to[i] = (double)from[i];
}

psld_status psld_model_differentiate(void *user, size_t n, size_t dim, const double *z, const double *t,
                                     const double *weight, double *eps, double *grad_z)
{
    psld_model *model = user;
    psld_rows *rows = &model->rows;
    size_t in = dim * (size_t)model->learned->spec.k, out = dim * (size_t)model->learned->predicted;
    int gradient = grad_z != NULL;
    if (dim != psld_model_size(model))
        return psld_fail(PSLD_BAD_ARGUMENT, "network: states have %zu numbers a variable, the data %zu", dim,
                         psld_model_size(model));
    PSLD_TRY(grow_rows(rows, gradient, n, in, out));
    PSLD_TRY(psld_model_prepare(model, gradient, n));
    narrow(z, n * in, rows->z);
    narrow(t, n, rows->t);
    psld_runner_data data = {.type = PSLD_F32, .z = rows->z, .t = rows->t, .out = rows->eps};
    if (gradient) {
        narrow(weight, n * out, rows->weight);
        data.grad_out = rows->weight;
        data.grad_z = rows->grad_z;
    }
    PSLD_TRY(psld_runner_run(model->runners[gradient], n, &data));
    if (eps) widen(rows->eps, n * out, eps);
    if (gradient) widen(rows->grad_z, n * in, grad_z);
    return PSLD_OK;
}

psld_status psld_model_predict(void *user, size_t n, size_t dim, const double *z, const double *t, double *eps)
{
    return psld_model_differentiate(user, n, dim, z, t, NULL, eps, NULL);
}

/* log p from logits. */
static double log_probability(size_t classes, const float *logits, size_t label)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t c = 1; c < classes; c++) largest = fmax(largest, (double)logits[c]);
    for (size_t c = 0; c < classes; c++) sum += exp((double)logits[c] - largest);
    return (double)logits[label] - largest - log(sum);
}

psld_status psld_model_classify(void *user, size_t n, size_t dim, const double *z, const double *t,
                                const int32_t *label, double *log_p, double *grad_z)
{
    psld_model *model = user;
    psld_rows *rows = &model->rows;
    const psld_network_config *config = &model->network->config;
    size_t classes = (size_t)config->out_ch,
           in = (size_t)config->in_ch * (size_t)config->image_size * (size_t)config->image_size;
    size_t k = model->recipe ? (size_t)model->recipe->spec.k : dim ? in / dim : 0;
    if (dim * k != in)
        return psld_fail(PSLD_BAD_ARGUMENT, "classifier: states have %zu numbers a variable, the network takes %zu",
                         dim, in);
    PSLD_TRY(grow_rows(rows, 1, n, in, classes));
    PSLD_TRY(psld_model_prepare(model, 1, n));
    narrow(z, n * in, rows->z);
    narrow(t, n, rows->t);
    for (size_t i = 0; i < n; i++) rows->weight[i] = (float)label[i];
    psld_runner_data data = {.type = PSLD_F32, .z = rows->z, .t = rows->t, .label = rows->weight};
    data.out = rows->eps;
    data.grad_z = rows->grad_z;
    PSLD_TRY(psld_runner_run(model->runners[1], n, &data));
    for (size_t i = 0; log_p && i < n; i++)
        log_p[i] = log_probability(classes, rows->eps + i * classes, (size_t)label[i]);
    widen(rows->grad_z, n * in, grad_z);
    return PSLD_OK;
}

/* Checks that an array holds `width` numbers for each of its n samples, and makes it float. */
static psld_status as_float(const char *name, const psld_array *array, size_t n, size_t width, psld_array **converted)
{
    if (!array) return psld_fail(PSLD_BAD_ARGUMENT, "%s: is needed here", name);
    if (array->count != n * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected %zu samples of %zu numbers, found %zu numbers in all", name,
                         n, width, array->count);
    return psld_array_convert(array, PSLD_F32, converted);
}

static psld_status make_result(const psld_model *model, size_t n, size_t channels, psld_array **array)
{
    size_t size = (size_t)model->network->config.image_size, shape[4] = {n, channels, size, size};
    int is_image = model->rank == 3 && channels != 0;
    if (!is_image) shape[1] = (size_t)model->network->config.out_ch;
    return psld_array_create(PSLD_F32, is_image ? 4 : 2, shape, array);
}

typedef struct evaluation {
    psld_array *z, *t, *given; /* float copies; given: grad_out or label */
    psld_array *out, *grad_z;
} evaluation;

static psld_status evaluate(psld_model *model, const psld_array *z, const psld_array *t, const psld_array *grad_out,
                            const psld_array *label, int gradient, evaluation *e)
{
    const psld_network_config *config = &model->network->config;
    size_t n = z->rank ? z->shape[0] : 0, pixels = (size_t)config->image_size * (size_t)config->image_size;
    int is_classifier = model->kind == PSLD_CLASSIFIER;
    size_t in = (size_t)config->in_ch * pixels, out = (size_t)config->out_ch * (is_classifier ? 1 : pixels);
    if (n == 0) return psld_fail(PSLD_BAD_ARGUMENT, "z: expected at least one sample");
    PSLD_TRY(as_float("z", z, n, in, &e->z));
    PSLD_TRY(as_float("t", t, n, 1, &e->t));
    if (gradient && is_classifier) PSLD_TRY(as_float("label", label, n, 1, &e->given));
    if (gradient && !is_classifier) PSLD_TRY(as_float("grad_out", grad_out, n, out, &e->given));
    PSLD_TRY(make_result(model, n, is_classifier ? 0 : (size_t)config->out_ch, &e->out));
    if (gradient) PSLD_TRY(psld_array_create(PSLD_F32, z->rank, z->shape, &e->grad_z));
    PSLD_TRY(psld_model_prepare(model, gradient, n));
    psld_runner_data data = {.type = PSLD_F32, .z = e->z->data, .t = e->t->data, .out = e->out->data};
    if (gradient) data.grad_z = e->grad_z->data;
    if (gradient && is_classifier) data.label = e->given->data;
    if (gradient && !is_classifier) data.grad_out = e->given->data;
    return psld_runner_run(model->runners[gradient], n, &data);
}

psld_status psld_model_run(psld_model *model, size_t n, const float *z, const float *t, float *out)
{
    PSLD_TRY(psld_model_prepare(model, 0, n));
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = t, .out = out};
    return psld_runner_run(model->runners[0], n, &data);
}

void psld_model_changed(psld_model *model)
{
    for (int i = 0; i < 2; i++)
        if (model->runners[i]) psld_runner_changed(model->runners[i]);
}

psld_status psld_model_evaluate(psld_model *model, const psld_array *z, const psld_array *t, const psld_array *grad_out,
                                const psld_array *label, psld_array **out, psld_array **grad_z)
{
    evaluation e = {0};
    *out = NULL;
    if (grad_z) *grad_z = NULL;
    if (!model->network) return psld_fail(PSLD_BAD_ARGUMENT, "evaluate: this model is no network");
    psld_status status = evaluate(model, z, t, grad_out, label, grad_z != NULL, &e);
    psld_array_free(e.z);
    psld_array_free(e.t);
    psld_array_free(e.given);
    if (status != PSLD_OK) {
        psld_array_free(e.out);
        psld_array_free(e.grad_z);
        return status;
    }
    *out = e.out;
    if (grad_z) *grad_z = e.grad_z;
    return PSLD_OK;
}
