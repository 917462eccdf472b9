/* Models whose score is a network: opening weights, and evaluating them as a score source.
 *
 * A configuration comes with the weights (note CONFIG_NOTE of a safetensors file) or from a file of its own, and
 * overrides are applied to it. Names of weights may carry the prefixes of published checkpoints; which of them is
 * meant follows from the kind of network and options->raw. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/backend.h"
#include "model/model.h"
#include "model/process_read.h"
#include "nn/plan.h"

#define CONFIG_NOTE "psld.config"

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status read_config(const char *path, const psld_model_options *options, const psld_tensors *tensors,
                               psld_yaml **yaml)
{
    const char *own = tensors ? psld_tensors_note(tensors, CONFIG_NOTE) : NULL;
    if (options->config)
        PSLD_TRY(psld_yaml_load(options->config, yaml));
    else if (own)
        PSLD_TRY(psld_yaml_parse(own, strlen(own), path, yaml));
    else
        return psld_fail(PSLD_BAD_INPUT, "%s: has no configuration of its own; give one with --config", path);
    for (size_t i = 0; i < options->override_count; i++) {
        psld_status status = psld_yaml_override(*yaml, options->overrides[i]);
        if (status != PSLD_OK) {
            psld_yaml_free(*yaml);
            *yaml = NULL;
            return status;
        }
    }
    return PSLD_OK;
}

static int has_prefix(const psld_tensors *tensors, const char *prefix)
{
    for (size_t i = 0; i < tensors->count; i++)
        if (strncmp(tensors->items[i].name, prefix, strlen(prefix)) == 0) return 1;
    return 0;
}

/* The first of the prefixes, in order of preference, that the file has; "" when none: plain names. */
static const char *choose_prefix(const psld_tensors *tensors, psld_network_kind kind, int raw)
{
    static const char *const score[2][2] = {{"ema_score_fn.", "score_fn."}, {"score_fn.", "ema_score_fn."}};
    static const char *const classifier[2][2] = {{"ema_clf_fn.", "clf_fn."}, {"clf_fn.", "ema_clf_fn."}};
    const char *const *wanted = kind == PSLD_NET_CLASSIFIER ? classifier[raw != 0] : score[raw != 0];
    for (int i = 0; i < 2; i++)
        if (has_prefix(tensors, wanted[i])) return wanted[i];
    return "";
}

static psld_status load_weights(const char *path, const psld_tensors *tensors, const psld_model_options *options,
                                psld_network *network)
{
    psld_tensors *selected;
    const char *prefix = choose_prefix(tensors, network->config.kind, options->raw);
    PSLD_TRY(psld_tensors_verify(tensors));
    PSLD_TRY(psld_tensors_select(tensors, prefix, &selected));
    psld_status status = psld_network_load(network, selected, "");
    psld_tensors_free(selected);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", path) : status;
}

/* The process that a network was trained for. Published configurations of classifiers may leave it to the score
 * network's; one that names none gets the process asked for. */
static psld_status read_process(const psld_node *root, const psld_model_options *options, psld_model *model)
{
    int named = psld_process_named(root);
    if (options->process && (!named || model->kind == PSLD_CLASSIFIER))
        return psld_recipe_open(options->process, &model->recipe);
    if (model->kind == PSLD_CLASSIFIER && !named) return PSLD_OK;
    return psld_process_read(root, &model->recipe);
}

static int same_process(const psld_recipe *a, const psld_recipe *b)
{
    size_t k = (size_t)a->spec.k, square = k * k * sizeof(double), aux = (k - 1) * sizeof(double);
    return a->spec.k == b->spec.k && memcmp(a->spec.D, b->spec.D, square) == 0 &&
           memcmp(a->spec.Q, b->spec.Q, square) == 0 && memcmp(a->spec.mass, b->spec.mass, aux) == 0 &&
           memcmp(a->spec.init, b->spec.init, aux) == 0 && a->spec.beta_min == b->spec.beta_min &&
           a->spec.beta_max == b->spec.beta_max && a->spec.stabiliser == b->spec.stabiliser &&
           a->spec.upper == b->spec.upper;
}

/* Makes a score network of one process one of another, where that is asked for. */
static psld_status change_process(const psld_model_options *options, psld_model *model)
{
    psld_recipe *wanted;
    psld_source *translated;
    if (!options->process) return PSLD_OK;
    PSLD_TRY(psld_recipe_open(options->process, &wanted));
    psld_status status = same_process(wanted, model->recipe)
                             ? PSLD_OK
                             : psld_source_translate(model->source, model->recipe, wanted, &translated);
    if (status != PSLD_OK || same_process(wanted, model->recipe)) {
        psld_recipe_free(wanted);
        return status;
    }
    model->native = model->source;
    model->source = translated;
    model->recipe = wanted;
    return PSLD_OK;
}

/* Channels of z are variables times channels of the data, those of eps predicted ones times channels. */
static psld_status check_channels(const psld_model *model)
{
    const psld_network_config *config = &model->network->config;
    if (!model->recipe) return PSLD_OK;
    int k = model->recipe->spec.k, predicted = model->recipe->predicted, channels = config->in_ch / k;
    if (config->in_ch % k != 0 || (model->kind == PSLD_SCORE_MODEL && config->out_ch != predicted * channels))
        return psld_fail(PSLD_BAD_INPUT,
                         "the network has %d channels in and %d out; recipe %s with %d variables, %d of them "
                         "predicted, needs %d and %d",
                         config->in_ch, config->out_ch, model->recipe->spec.name, k, predicted, channels * k,
                         channels * predicted);
    return PSLD_OK;
}

static psld_status predict_with_network(void *user, size_t n, size_t dim, const double *z, const double *t,
                                        double *eps);
static psld_status differentiate_network(void *user, size_t n, size_t dim, const double *z, const double *t,
                                         const double *weight, double *eps, double *grad_z);

static psld_status classify_with_network(void *user, size_t n, size_t dim, const double *z, const double *t,
                                         const int32_t *label, double *log_p, double *grad_z);

static psld_status build(const char *path, const psld_tensors *tensors, const psld_yaml *yaml,
                         const psld_model_options *options, uint64_t seed, psld_model *model)
{
    psld_network_config config;
    const psld_node *root = psld_yaml_root(yaml);
    PSLD_TRY(psld_network_config_read(root, NULL, &config));
    model->kind = config.kind == PSLD_NET_CLASSIFIER ? PSLD_CLASSIFIER : PSLD_SCORE_MODEL;
    model->backend = options->reference ? &psld_backend_reference : psld_backend_fastest();
    PSLD_TRY(read_process(root, options, model));
    model->learned = model->recipe;
    PSLD_TRY(psld_network_create(&config, &model->network));
    PSLD_TRY(check_channels(model));
    if (tensors)
        PSLD_TRY(load_weights(path, tensors, options, model->network));
    else if (!options->blank)
        psld_network_initialise(model->network, seed);
    PSLD_TRY(psld_yaml_text(yaml, &model->config));
    model->rank = config.kind == PSLD_NET_MLP ? 1 : 3;
    model->shape[0] = (size_t)(config.in_ch / (model->recipe ? model->recipe->spec.k : 1));
    if (model->rank == 3) model->shape[1] = model->shape[2] = (size_t)config.image_size;
    if (model->kind == PSLD_CLASSIFIER)
        return psld_classifier_create(classify_with_network, NULL, model, (size_t)config.out_ch, &model->classifier);
    PSLD_TRY(psld_source_create(predict_with_network, NULL, model, &model->source));
    model->source->gradient = differentiate_network;
    return change_process(options, model);
}

psld_status psld_model_from_config(const psld_yaml *yaml, uint64_t seed, psld_model **model)
{
    psld_model_options options;
    psld_model_defaults(&options);
    *model = NULL;
    psld_model *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = build(NULL, NULL, yaml, &options, seed, made);
    if (status != PSLD_OK) {
        psld_model_free(made);
        return status;
    }
    *model = made;
    return PSLD_OK;
}

psld_status psld_model_read_network(const char *path, const psld_model_options *options, uint64_t seed,
                                    psld_model *model)
{
    psld_tensors *tensors = NULL;
    psld_yaml *yaml = NULL;
    if (path) PSLD_TRY(psld_tensors_open(path, &tensors));
    psld_status status = read_config(path, options, tensors, &yaml);
    if (status == PSLD_OK) status = build(path, tensors, yaml, options, seed, model);
    psld_yaml_free(yaml);
    psld_tensors_free(tensors);
    return status;
}

/* ---- Evaluating -------------------------------------------------------------------------------------------------- */

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

/* The score source: states are double, networks float. */
static psld_status differentiate_network(void *user, size_t n, size_t dim, const double *z, const double *t,
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

static psld_status predict_with_network(void *user, size_t n, size_t dim, const double *z, const double *t, double *eps)
{
    return differentiate_network(user, n, dim, z, t, NULL, eps, NULL);
}

/* log p from logits. */
static double log_probability(size_t classes, const float *logits, size_t label)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t c = 1; c < classes; c++) largest = fmax(largest, (double)logits[c]);
    for (size_t c = 0; c < classes; c++) sum += exp((double)logits[c] - largest);
    return (double)logits[label] - largest - log(sum);
}

static psld_status classify_with_network(void *user, size_t n, size_t dim, const double *z, const double *t,
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

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static psld_status format_of(const char *path, psld_tensor_format *format)
{
    static const struct {
        const char *ending;
        psld_tensor_format format;
    } endings[] = {{".safetensors", PSLD_SAFETENSORS},
                   {".pt", PSLD_TORCH_ZIP},
                   {".pth", PSLD_TORCH_ZIP},
                   {".ckpt", PSLD_TORCH_ZIP}};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(path), end = strlen(endings[i].ending);
        if (length <= end || strcmp(path + length - end, endings[i].ending) != 0) continue;
        *format = endings[i].format;
        return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a name that ends in .safetensors, .pt, .pth or .ckpt", path);
}

static psld_status collect(const psld_network *network, const char *config, psld_tensors *tensors)
{
    PSLD_TRY(psld_tensors_set_note(tensors, CONFIG_NOTE, config));
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        size_t shape[4];
        for (int d = 0; d < p->rank; d++) shape[d] = (size_t)p->shape[d];
        PSLD_TRY(psld_tensors_add(tensors, p->name, PSLD_ELEMENT_F32, p->rank, shape, network->weights + p->offset));
    }
    return PSLD_OK;
}

psld_status psld_model_save(const psld_model *model, const char *path)
{
    psld_tensors *tensors;
    psld_tensor_format format;
    if (!model->network) return psld_fail(PSLD_BAD_ARGUMENT, "save: this model is no network");
    PSLD_TRY(format_of(path, &format));
    PSLD_TRY(psld_tensors_create(&tensors));
    psld_status status = collect(model->network, model->config, tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, format, path);
    psld_tensors_free(tensors);
    return status;
}

psld_status psld_tensors_list(const char *path, psld_tensor_fn visit, void *user)
{
    psld_tensors *tensors;
    PSLD_TRY(psld_tensors_open(path, &tensors));
    for (size_t i = 0; i < tensors->count; i++) {
        const psld_tensor *t = &tensors->items[i];
        visit(user, t->name, psld_element_name(t->type), t->rank, t->shape);
    }
    psld_tensors_free(tensors);
    return PSLD_OK;
}

psld_status psld_tensors_convert(const char *from, const char *to)
{
    psld_tensors *tensors;
    psld_tensor_format format;
    PSLD_TRY(format_of(to, &format));
    PSLD_TRY(psld_tensors_open(from, &tensors));
    psld_status status = psld_tensors_verify(tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, format, to);
    psld_tensors_free(tensors);
    return status;
}
