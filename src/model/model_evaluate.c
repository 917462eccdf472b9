/* Evaluates a model's network: as a score source or a classifier, with states in double, and on arrays. Networks
 * compute in float. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "kernels/backend.h"
#include "model/model.h"
#include "model/posed.h"
#include "nn/plan.h"

/* Bytes of transformed weights that are kept between evaluations; the others are computed again each time, with equal
 * bits. */
#define PACKED_BUDGET ((size_t)1 << 30)

/* The largest batch of a network, which keeps its activations below some hundred megabytes. */
size_t psld_model_batch(const psld_model *model)
{
    if (!model->network) return 16384;
    const psld_network_config *config = &model->network->config;
    size_t size = (size_t)config->image_size, most = ((size_t)1 << 22) / ((size_t)config->nf * size * size);
    return most < 16 ? 16 : most > PSLD_LARGEST_BATCH ? PSLD_LARGEST_BATCH : most;
}

void psld_model_ask_batch(psld_model *model, int batch)
{
    size_t wanted = batch > 0 ? (size_t)batch : 0;
    int here = !model->network || psld_device_of(model->backend) == psld_device_cpu();
    model->at_once = here || wanted == psld_model_batch(model) ? 0 : wanted;
}

/* If nobody asked for a batch, it is halved until it fits into the memory of the device. */
static psld_status open_runner(psld_model *model, int gradient, psld_runner_options *options)
{
    int may_be_cut = !model->at_once && psld_device_of(model->backend) != psld_device_cpu();
    psld_status status = psld_runner_open(model->network, options, &model->runners[gradient]);
    while (status == PSLD_NO_MEMORY && may_be_cut && options->batch > 1) {
        options->batch /= 2;
        status = psld_runner_open(model->network, options, &model->runners[gradient]);
    }
    return status;
}

/* A runner for `batch` samples, or for the largest batch: runners divide larger calls. */
psld_status psld_model_prepare(psld_model *model, int gradient, size_t batch)
{
    size_t most = model->at_once ? model->at_once : psld_model_batch(model);
    if (batch > most) batch = most;
    if (batch > PSLD_LARGEST_BATCH) batch = PSLD_LARGEST_BATCH;
    /* made again if there are more threads now: its plan has no memory for them */
    if (model->runners[gradient] && model->runner_batch[gradient] >= batch &&
        psld_runner_plan(model->runners[gradient])->threads >= psld_threads_get())
        return PSLD_OK;
    psld_runner_free(model->runners[gradient]);
    model->runners[gradient] = NULL;
    unsigned want = gradient ? PSLD_WANT_GRADIENT_Z : 0;
    if (gradient && model->kind == PSLD_CLASSIFIER) want |= PSLD_WANT_LOG_P;
    model->runner_batch[gradient] = batch;
    psld_runner_options options = {
        .backend = model->backend, .batch = (int)batch, .want = want, .store = PACKED_BUDGET};
    return open_runner(model, gradient, &options);
}

uint64_t psld_model_bytes(const psld_model *model)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        if (model->runners[i]) bytes += psld_runner_bytes(model->runners[i]);
    return bytes;
}

static psld_status grow_row(float **row, size_t n, size_t width)
{
    psld_release(*row);
    *row = psld_alloc(n, width * sizeof(float));
    return *row ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status grow_rows(psld_eval_buffers *rows, int gradient, size_t n, size_t in, size_t out, size_t classes)
{
    if (n > rows->capacity) {
        rows->capacity = 0;
        if (classes) PSLD_TRY(grow_row(&rows->one_hot, n, classes));
        PSLD_TRY(grow_row(&rows->z, n, in));
        PSLD_TRY(grow_row(&rows->t, n, 1));
        PSLD_TRY(grow_row(&rows->eps, n, out));
        psld_release(rows->plans);
        rows->plans = psld_alloc(n, sizeof *rows->plans);
        if (!rows->plans) return PSLD_NO_MEMORY;
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

static void double_to_float(const double *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static void float_to_double(const float *from, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++) to[i] = (double)from[i];
}

void psld_labels_one_hot(size_t n, const int32_t *label, size_t classes, float *one_hot)
{
    for (size_t i = 0; i < n * classes; i++) one_hot[i] = 0;
    for (size_t i = 0; label && i < n; i++)
        if (label[i] >= 0) one_hot[i * classes + (size_t)label[i]] = 1;
}

void psld_model_tell_labels(const psld_network_config *config, size_t n, const int32_t *label, float *to)
{
    if (config->class_embedding != PSLD_CLASS_TIMESTEP) {
        psld_labels_one_hot(n, label, (size_t)config->classes, to);
        return;
    }
    for (size_t i = 0; config->classes && i < n; i++) to[i] = label ? (float)label[i] : 0;
}

int psld_model_is_posed(const psld_model *model)
{
    return model->mixture && model->conditioning.kind != PSLD_CONDITION_OURS;
}

int psld_model_predicts_data(const psld_model *model)
{
    if (psld_model_is_posed(model)) return 1;
    return model->network && model->network->config.predicts == PSLD_OUTPUT_DATA;
}

/* ---- Score networks ---------------------------------------------------------------------------------------------- */

/* A batch of a score network; weight and grad_z NULL: no gradient. */
typedef struct score_call {
    psld_eval_buffers *rows;
    size_t dim, k, predicted; /* of states */
    const double *z, *t, *weight;
    double *eps, *grad_z;
} score_call;

static psld_status plan_rows(const psld_model *model, size_t n, const double *t)
{
    psld_precondition *plans = model->rows.plans;
    for (size_t i = 0; i < n; i++) {
        if (i && t[i] == t[i - 1])
            plans[i] = plans[i - 1];
        else
            PSLD_TRY(psld_precondition_plan_as(model->learned, &model->conditioning, t[i], &plans[i]));
        model->rows.t[i] = (float)plans[i].time;
    }
    return PSLD_OK;
}

static void condition_range(void *context, size_t begin, size_t end)
{
    const score_call *c = context;
    size_t dim = c->dim;
    for (size_t i = begin; i < end; i++) {
        const psld_precondition *plan = &c->rows->plans[i];
        psld_precondition_input(plan, dim, c->z + i * c->k * dim, c->rows->z + i * dim);
        if (c->weight)
            psld_precondition_weight(plan, dim, c->weight + i * c->predicted * dim, c->rows->weight + i * dim);
    }
}

static void interpret_range(void *context, size_t begin, size_t end)
{
    const score_call *c = context;
    size_t dim = c->dim, state = c->k * dim, predicted = c->predicted * dim;
    for (size_t i = begin; i < end; i++) {
        const psld_precondition *plan = &c->rows->plans[i];
        if (c->eps) psld_precondition_eps(plan, dim, c->z + i * state, c->rows->eps + i * dim, c->eps + i * predicted);
        if (c->weight)
            psld_precondition_gradient(plan, dim, c->weight + i * predicted, c->rows->grad_z + i * dim,
                                       c->grad_z + i * state);
    }
}

/* States to the network's input ... */
static psld_status give_eps(const psld_model *model, score_call *c, size_t n)
{
    if (psld_model_predicts_data(model)) {
        PSLD_TRY(plan_rows(model, n, c->t));
        psld_parallel(n, 4096 / c->dim + 1, condition_range, c);
        return PSLD_OK;
    }
    double_to_float(c->z, n * c->k * c->dim, c->rows->z);
    double_to_float(c->t, n, c->rows->t);
    if (c->weight) double_to_float(c->weight, n * c->predicted * c->dim, c->rows->weight);
    return PSLD_OK;
}

/* ... and its output to eps. */
static void set_score_outputs(const psld_model *model, score_call *c, size_t n)
{
    if (psld_model_predicts_data(model)) {
        psld_parallel(n, 4096 / c->dim + 1, interpret_range, c);
        return;
    }
    if (c->eps) float_to_double(c->rows->eps, n * c->predicted * c->dim, c->eps);
    if (c->weight) float_to_double(c->rows->grad_z, n * c->k * c->dim, c->grad_z);
}

static psld_status make_room(psld_model *model, int gradient, size_t n)
{
    if (psld_model_is_posed(model))
        return grow_rows(&model->rows, gradient, n, psld_model_size(model), psld_model_size(model), 0);
    const psld_network_config *config = &model->network->config;
    size_t pixels = (size_t)config->image_size * (size_t)config->image_size;
    return grow_rows(&model->rows, gradient, n, (size_t)config->in_ch * pixels, (size_t)config->out_ch * pixels,
                     (size_t)psld_network_label_width(config));
}

static psld_status run_posed(const psld_model *model, int gradient, size_t n, const int32_t *label)
{
    const psld_eval_buffers *rows = &model->rows;
    psld_posed_batch batch = {.n = n, .u = rows->z, .time = rows->t, .label = label, .out = rows->eps};
    if (gradient) {
        batch.weight = rows->weight;
        batch.by_u = rows->grad_z;
    }
    return psld_posed_run(model, &batch);
}

static psld_status run_network(psld_model *model, int gradient, size_t n, const int32_t *label)
{
    psld_eval_buffers *rows = &model->rows;
    PSLD_TRY(psld_model_prepare(model, gradient, n));
    psld_model_tell_labels(&model->network->config, n, label, rows->one_hot);
    psld_runner_data data = {.type = PSLD_F32, .z = rows->z, .t = rows->t, .one_hot = rows->one_hot, .out = rows->eps};
    if (gradient) {
        data.grad_out = rows->weight;
        data.grad_z = rows->grad_z;
    }
    return psld_runner_run(model->runners[gradient], n, &data);
}

psld_status psld_model_differentiate(void *user, const psld_states *states, const double *weight, double *eps,
                                     double *grad_z)
{
    psld_model *model = user;
    psld_eval_buffers *rows = &model->rows;
    size_t n = states->n, dim = states->dim;
    score_call call = {.rows = rows,
                       .dim = dim,
                       .k = (size_t)model->learned->spec.k,
                       .predicted = (size_t)model->learned->predicted,
                       .z = states->z,
                       .t = states->t,
                       .weight = grad_z ? weight : NULL,
                       .eps = eps,
                       .grad_z = grad_z};
    int gradient = grad_z != NULL;
    if (dim != psld_model_size(model))
        return psld_fail(PSLD_BAD_ARGUMENT, "network: states have %zu numbers a variable, the data %zu", dim,
                         psld_model_size(model));
    PSLD_TRY(make_room(model, gradient, n));
    PSLD_TRY(give_eps(model, &call, n));
    PSLD_TRY(psld_model_is_posed(model) ? run_posed(model, gradient, n, states->label)
                                        : run_network(model, gradient, n, states->label));
    set_score_outputs(model, &call, n);
    return PSLD_OK;
}

psld_status psld_model_predict(void *user, const psld_states *states, double *eps)
{
    return psld_model_differentiate(user, states, NULL, eps, NULL);
}

/* ---- Classifiers ------------------------------------------------------------------------------------------------- */

/* log p from logits. */
static double log_probability(size_t classes, const float *logits, size_t label)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t c = 1; c < classes; c++) largest = fmax(largest, (double)logits[c]);
    for (size_t c = 0; c < classes; c++) sum += exp((double)logits[c] - largest);
    return (double)logits[label] - largest - log(sum);
}

psld_status psld_model_classify(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                double *grad_z)
{
    size_t n = states->n, dim = states->dim;
    psld_model *model = user;
    psld_eval_buffers *rows = &model->rows;
    const psld_network_config *config = &model->network->config;
    size_t classes = (size_t)config->out_ch,
           in = (size_t)config->in_ch * (size_t)config->image_size * (size_t)config->image_size;
    size_t k = model->recipe ? (size_t)model->recipe->spec.k : dim ? in / dim : 0;
    if (dim * k != in)
        return psld_fail(PSLD_BAD_ARGUMENT, "classifier: states have %zu numbers a variable, the network takes %zu",
                         dim, in);
    PSLD_TRY(grow_rows(rows, 1, n, in, classes, 0));
    PSLD_TRY(psld_model_prepare(model, 1, n));
    double_to_float(states->z, n * in, rows->z);
    double_to_float(states->t, n, rows->t);
    for (size_t i = 0; i < n; i++) rows->weight[i] = (float)label[i];
    psld_runner_data data = {.type = PSLD_F32, .z = rows->z, .t = rows->t, .label = rows->weight};
    data.out = rows->eps;
    data.grad_z = rows->grad_z;
    PSLD_TRY(psld_runner_run(model->runners[1], n, &data));
    for (size_t i = 0; log_p && i < n; i++)
        log_p[i] = log_probability(classes, rows->eps + i * classes, (size_t)label[i]);
    float_to_double(rows->grad_z, n * in, grad_z);
    return PSLD_OK;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* Checks that an array has `width` numbers for each of its n samples, and converts it to `type`. */
static psld_status check_argument_array(const char *name, const psld_array *array, size_t n, size_t width,
                                        psld_type type, psld_array **converted)
{
    if (!array) return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected an array, found NULL", name);
    if (array->count != n * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected %zu samples of %zu numbers, found %zu numbers in all", name,
                         n, width, array->count);
    return psld_array_convert(array, type, converted);
}

typedef struct evaluation {
    size_t n;
    psld_array *z, *t, *given; /* copies in the type of the computation; given: grad_out, or a classifier's label */
    psld_array *label;         /* of a score network, int32 */
    psld_array *out, *grad_z;
} evaluation;

static psld_status check_labels(const psld_array *label, size_t classes)
{
    const float *value = label->data;
    for (size_t i = 0; i < label->count; i++)
        if (!(value[i] >= 0 && value[i] < (float)classes))
            return psld_fail(PSLD_BAD_ARGUMENT, "label: expected 0 to %zu, found %g", classes - 1, (double)value[i]);
    return PSLD_OK;
}

static psld_status evaluate_classifier(psld_model *model, const psld_array *label, int gradient, evaluation *e)
{
    size_t shape[2] = {e->n, (size_t)model->network->config.out_ch};
    if (gradient) PSLD_TRY(check_argument_array("label", label, e->n, 1, PSLD_F32, &e->given));
    if (gradient) PSLD_TRY(check_labels(e->given, shape[1]));
    PSLD_TRY(psld_array_create(PSLD_F32, 2, shape, &e->out));
    PSLD_TRY(psld_model_prepare(model, gradient, e->n));
    psld_runner_data data = {.type = PSLD_F32, .z = e->z->data, .t = e->t->data, .out = e->out->data};
    if (gradient) {
        data.grad_z = e->grad_z->data;
        data.label = e->given->data;
    }
    return psld_runner_run(model->runners[gradient], e->n, &data);
}

/* Labels of samples for a network that takes them; -1: none. */
psld_status psld_model_read_given(const psld_model *model, const psld_array *label, size_t n, psld_array **numbers)
{
    size_t classes = psld_model_classes(model);
    if (classes == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: this model takes no labels");
    psld_array *wide;
    PSLD_TRY(check_argument_array("label", label, n, 1, PSLD_F64, &wide));
    psld_status status = psld_array_create(PSLD_I32, 1, &n, numbers);
    for (size_t i = 0; status == PSLD_OK && i < n; i++) {
        double value = ((const double *)wide->data)[i];
        if (!(value >= -1 && value < (double)classes && value == floor(value)))
            status = psld_fail(PSLD_BAD_ARGUMENT, "label: expected a class from 0 to %zu, or -1 for none, found %g",
                               classes - 1, value);
        else
            ((int32_t *)(*numbers)->data)[i] = (int32_t)value;
    }
    psld_array_free(wide);
    return status;
}

static psld_status evaluate_score(psld_model *model, const psld_array *grad_out, const psld_array *label, int gradient,
                                  evaluation *e)
{
    size_t size = psld_model_size(model), predicted = (size_t)model->learned->predicted;
    size_t shape[4] = {e->n, predicted * model->shape[0], model->shape[1], model->shape[2]};
    if (gradient) PSLD_TRY(check_argument_array("grad_out", grad_out, e->n, predicted * size, PSLD_F64, &e->given));
    if (label) PSLD_TRY(psld_model_read_given(model, label, e->n, &e->label));
    PSLD_TRY(psld_array_create(PSLD_F64, model->rank + 1, shape, &e->out));
    psld_states states = PSLD_STATES(e->n, size, e->z->data, e->t->data);
    if (label) states.label = e->label->data;
    return psld_model_differentiate(model, &states, gradient ? e->given->data : NULL, e->out->data,
                                    gradient ? e->grad_z->data : NULL);
}

static psld_status evaluate_arrays(psld_model *model, const psld_array *z, const psld_array *t,
                                   const psld_array *grad_out, const psld_array *label, int gradient, evaluation *e)
{
    const psld_network_config *config = &model->network->config;
    int is_classifier = model->kind == PSLD_CLASSIFIER;
    psld_type type = is_classifier ? PSLD_F32 : PSLD_F64;
    size_t width = is_classifier ? (size_t)config->in_ch * (size_t)config->image_size * (size_t)config->image_size
                                 : psld_model_size(model) * (size_t)model->learned->spec.k;
    e->n = z->rank ? z->shape[0] : 0;
    if (e->n == 0) return psld_fail(PSLD_BAD_ARGUMENT, "z: expected at least one sample");
    PSLD_TRY(check_argument_array("z", z, e->n, width, type, &e->z));
    PSLD_TRY(check_argument_array("t", t, e->n, 1, type, &e->t));
    if (gradient) PSLD_TRY(psld_array_create(type, z->rank, z->shape, &e->grad_z));
    return is_classifier ? evaluate_classifier(model, label, gradient, e)
                         : evaluate_score(model, grad_out, label, gradient, e);
}

psld_status psld_model_run(psld_model *model, size_t n, const float *z, const float *t, const float *one_hot,
                           float *out)
{
    PSLD_TRY(psld_model_prepare(model, 0, n));
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = t, .one_hot = one_hot, .out = out};
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
    if (!model->network) return psld_fail(PSLD_BAD_ARGUMENT, "evaluate: this model is not a network");
    psld_status status = evaluate_arrays(model, z, t, grad_out, label, grad_z != NULL, &e);
    if (status == PSLD_OK) status = psld_array_convert(e.out, PSLD_F32, out);
    if (status == PSLD_OK && grad_z) status = psld_array_convert(e.grad_z, PSLD_F32, grad_z);
    psld_array *const made[] = {e.z, e.t, e.given, e.label, e.out, e.grad_z};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) psld_array_free(made[i]);
    if (status != PSLD_OK) {
        psld_array_free(*out);
        *out = NULL;
    }
    return status;
}
