/* Sampling a model: the states of each batch become float samples, which are passed to the caller. */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "model/model.h"
#include "sample/options.h"
#include "sample/sample.h"

/* The receiver of the batches of a call. */
typedef struct sample_sink {
    const psld_model *model;
    size_t width, kept; /* numbers of a state, and how many of them are returned: all, or the positions */
    psld_array *x;      /* [batch, channels, ...]: memory for the largest batch so far */
    psld_samples_fn samples;
    void *user;
} sample_sink;

/* An array of samples or states, of `kept` numbers each. */
static psld_status create_samples(const psld_model *model, size_t count, size_t kept, psld_array **x)
{
    size_t shape[PSLD_MAX_RANK] = {count}, pixels = psld_model_size(model) / model->shape[0];
    for (int i = 0; i < model->rank; i++) shape[i + 1] = i == 0 ? kept / pixels : model->shape[i];
    return psld_array_create(PSLD_F32, model->rank + 1, shape, x);
}

/* A psld_sample_set.done. Only the last batch is smaller than the first. */
static psld_status hand_over_batch(void *user, uint64_t first, size_t count, const double *z)
{
    sample_sink *sink = user;
    uint64_t before = psld_fail_count();
    if (!sink->x) PSLD_TRY(create_samples(sink->model, count, sink->kept, &sink->x));
    sink->x->shape[0] = count;
    sink->x->count = count * sink->kept;
    float *out = sink->x->data;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sink->kept; j++) out[i * sink->kept + j] = (float)z[i * sink->width + j];
    return psld_fail_callback("samples", before, sink->samples(sink->user, first, sink->x));
}

static psld_status read_initial_states(const psld_array *start, size_t count, size_t width, psld_array **states)
{
    if (start->rank < 1 || start->shape[0] != count || start->count != count * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "start: expected %zu states of %zu numbers, found %zu numbers in all",
                         count, width, start->count);
    return psld_array_convert(start, PSLD_F64, states);
}

/* The labels of a call: those of the options, or drawn ones. Guidance is that of the options, or of the model. The
 * array *drawn belongs to the caller. */
static psld_status choose_labels(const psld_model *model, psld_sample_options *options, uint64_t first, size_t count,
                                 int is_started, psld_labels *labels, int32_t **drawn)
{
    *drawn = NULL;
    if (!options->labels && (is_started || psld_model_classes(model) == 0)) return PSLD_OK;
    PSLD_TRY(PSLD_SIZED_READ(psld_labels, options->labels, labels, PSLD_LABELS_DEFAULTS));
    PSLD_FILL_UNSET(labels->cfg, model->cfg);
    options->labels = labels;
    if (labels->label) return PSLD_OK;
    *drawn = psld_alloc(count, sizeof **drawn);
    if (!*drawn) return PSLD_NO_MEMORY;
    PSLD_TRY(psld_model_draw_labels(model, options->seed, first, count, *drawn));
    labels->label = *drawn;
    labels->count = count;
    labels->first = first;
    return PSLD_OK;
}

/* The same for a process with formulas. The data are the first numbers of a state. */
static psld_status draw_process(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                                const psld_array *start, int state, psld_samples_fn samples, void *user, uint64_t *nfe)
{
    psld_array *initial = NULL;
    size_t width = (size_t)model->process->variables;
    sample_sink sink = {.model = model,
                        .width = width,
                        .kept = state ? width : psld_model_size(model),
                        .samples = samples,
                        .user = user};
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample");
    if (!samples) return psld_fail(PSLD_BAD_ARGUMENT, "samples: expected a callback, found NULL");
    if (start) PSLD_TRY(read_initial_states(start, count, width, &initial));
    psld_status status = psld_model_draw_process(model, options, first, count, initial ? initial->data : NULL,
                                                 hand_over_batch, &sink, nfe);
    psld_array_free(sink.x);
    psld_array_free(initial);
    return status;
}

psld_status psld_model_draw(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                            const psld_array *start, int state, psld_samples_fn samples, void *user, uint64_t *nfe)
{
    psld_sample_options own;
    psld_sample_cost cost = {0};
    psld_array *initial = NULL;
    psld_labels labels;
    int32_t *drawn = NULL;
    if (model->process) return draw_process(model, options, first, count, start, state, samples, user, nfe);
    PSLD_TRY(psld_sample_options_read(options, &own));
    if (!model->source) return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    PSLD_TRY(psld_model_prefer(model, &own));
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample");
    if (!samples) return psld_fail(PSLD_BAD_ARGUMENT, "samples: expected a callback, found NULL");
    size_t dim = psld_model_size(model), width = (size_t)model->recipe->spec.k * dim;
    sample_sink sink = {.model = model, .width = width, .kept = state ? width : dim, .samples = samples, .user = user};
    psld_sample_set set = {.first = first, .count = count, .dim = dim, .done = hand_over_batch, .user = &sink};
    PSLD_FILL_ZERO(own.batch, (int)psld_model_batch(model));
    psld_model_ask_batch(model, own.batch);
    if (start) PSLD_TRY(read_initial_states(start, count, width, &initial));
    if (start)
        set.start = initial->data;
    else
        psld_sample_warn(model->recipe);
    psld_status status = choose_labels(model, &own, first, count, start != NULL, &labels, &drawn);
    if (status == PSLD_OK) status = psld_sample_counted(model->recipe, model->source, &own, &set, &cost);
    psld_release(drawn);
    if (nfe && cost.groups) *nfe = psld_sample_nfe(&own, &cost);
    psld_array_free(sink.x);
    psld_array_free(initial);
    return status;
}

/* ---- All of them in one array ------------------------------------------------------------------------------------ */

typedef struct collection {
    uint64_t first;
    psld_array *x;
} collection;

static psld_status collect_samples(void *user, uint64_t first, const psld_array *x)
{
    const collection *c = user;
    size_t each = x->count / x->shape[0];
    memcpy((float *)c->x->data + (first - c->first) * each, x->data, x->count * sizeof(float));
    return PSLD_OK;
}

psld_status psld_model_sample(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                              const psld_array *start, int state, psld_array **x, uint64_t *nfe)
{
    collection all = {.first = first};
    *x = NULL;
    size_t kept = psld_model_size(model);
    if (state && model->recipe) kept *= (size_t)model->recipe->spec.k;
    if (state && model->process) kept = (size_t)model->process->variables;
    psld_status status = create_samples(model, count, kept, &all.x);
    if (status == PSLD_OK)
        status = psld_model_draw(model, options, first, count, start, state, collect_samples, &all, nfe);
    if (status == PSLD_OK)
        *x = all.x;
    else
        psld_array_free(all.x);
    return status;
}
