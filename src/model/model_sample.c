/* Sampling a model: batch after batch, double inside, float outside.
 *
 * A batch is a whole number of the groups that adaptive samplers step together, so that where it is cut leaves no mark
 * on the bits of a sample. */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "model/model.h"
#include "sample/options.h"
#include "sample/sample.h"

typedef struct drawing {
    psld_model *model;
    psld_sample_options options, asked; /* the caller's; in `options` batch and progress are those of one batch */
    uint64_t first;
    size_t count, before; /* samples asked for; those of the batches before */
    size_t dim, k, batch;
    psld_array *start; /* [count][k * dim], or NULL */
    double *states;    /* [batch][k * dim] */
    psld_array *piece; /* what is handed over: [batch, channels, ...] */
    psld_sample_cost cost;
} drawing;

static size_t batch_now(const drawing *d)
{
    size_t left = d->count - d->before;
    return left < d->batch ? left : d->batch;
}

/* Progress of a batch as that of the whole. */
static int report_whole(void *user, uint64_t done, uint64_t total)
{
    const drawing *d = user;
    uint64_t each = total / batch_now(d); /* units a sample */
    return d->asked.progress(d->asked.progress_user, d->before * each + done, d->count * each);
}

static psld_status read_start(drawing *d, const psld_array *start)
{
    size_t width = d->k * d->dim;
    if (start->rank < 1 || start->shape[0] != d->count || start->count != d->count * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "start: expected %zu states of %zu numbers, found %zu numbers in all",
                         d->count, width, start->count);
    return psld_array_convert(start, PSLD_F64, &d->start);
}

/* An array of samples, or with `variables` = k of states. */
static psld_status create_samples(const psld_model *model, size_t count, size_t variables, psld_array **x)
{
    size_t shape[PSLD_MAX_RANK] = {count};
    for (int i = 0; i < model->rank; i++) shape[i + 1] = model->shape[i] * (i == 0 ? variables : 1);
    return psld_array_create(PSLD_F32, model->rank + 1, shape, x);
}

static psld_status prepare_drawing(drawing *d, const psld_array *start, int state)
{
    d->dim = psld_model_size(d->model);
    d->k = (size_t)d->model->recipe->spec.k;
    PSLD_FILL_ZERO(d->options.batch, (int)psld_model_batch(d->model));
    d->batch = psld_batch_size(d->count, (size_t)d->options.batch, (size_t)d->options.ode_group);
    if (d->asked.progress) d->options.progress = report_whole, d->options.progress_user = d;
    if (start) PSLD_TRY(read_start(d, start));
    PSLD_TRY(create_samples(d->model, d->batch, state ? d->k : 1, &d->piece));
    d->states = psld_alloc(d->batch, d->k * d->dim * sizeof(double));
    return d->states ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status draw_batch(drawing *d)
{
    size_t now = batch_now(d), width = d->k * d->dim, kept = d->piece->count / d->piece->shape[0];
    const double *start = d->start ? (const double *)d->start->data + d->before * width : NULL;
    float *out = d->piece->data;
    PSLD_TRY(psld_sample_counted(d->model->recipe, d->model->source, &d->options, d->first + d->before, now, d->dim,
                                 start, d->states, &d->cost));
    d->piece->shape[0] = now;
    d->piece->count = now * kept;
    for (size_t i = 0; i < now; i++)
        for (size_t j = 0; j < kept; j++) out[i * kept + j] = (float)d->states[i * width + j];
    return PSLD_OK;
}

static psld_status hand_over(const drawing *d, psld_samples_fn take, void *user)
{
    uint64_t before = psld_fail_count();
    return psld_fail_callback("samples", before, take(user, d->first + d->before, d->piece));
}

psld_status psld_model_draw(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                            const psld_array *start, int state, psld_samples_fn take, void *user, uint64_t *nfe)
{
    drawing d = {.model = model, .first = first, .count = count};
    PSLD_TRY(psld_sample_options_read(options, &d.asked));
    d.options = d.asked;
    if (!model->source) return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample");
    if (!take) return psld_fail(PSLD_BAD_ARGUMENT, "samples: expected a callback, found NULL");
    if (!start) psld_sample_warn(model->recipe);
    psld_status status = prepare_drawing(&d, start, state);
    while (status == PSLD_OK && d.before < count) {
        status = draw_batch(&d);
        if (status == PSLD_OK) status = hand_over(&d, take, user);
        d.before += batch_now(&d);
    }
    if (nfe && d.cost.groups) *nfe = psld_sample_nfe(&d.asked, &d.cost);
    psld_release(d.states);
    psld_array_free(d.piece);
    psld_array_free(d.start);
    return status;
}

/* ---- All of them in one array ------------------------------------------------------------------------------------ */

typedef struct collection {
    uint64_t first;
    psld_array *x;
} collection;

static psld_status collect(void *user, uint64_t first, const psld_array *x)
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
    size_t variables = state && model->recipe ? (size_t)model->recipe->spec.k : 1;
    psld_status status = create_samples(model, count, variables, &all.x);
    if (status == PSLD_OK) status = psld_model_draw(model, options, first, count, start, state, collect, &all, nfe);
    if (status == PSLD_OK)
        *x = all.x;
    else
        psld_array_free(all.x);
    return status;
}
