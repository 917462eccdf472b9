/* Sampling a model: arrays in, arrays out.
 *
 * States are double and large; they exist for a stretch of samples at a time, and what was asked for is kept as float.
 * A stretch is a whole number of batches and of the groups that adaptive samplers step together, so that it leaves no
 * mark on the bits of a sample. */
#include <string.h>

#include "base/alloc.h"
#include "model/model.h"
#include "sample/walk.h"

enum { STRETCH_BYTES = 1 << 26 };

typedef struct drawing {
    psld_model *model;
    psld_sample_options options; /* the caller's, but for the batch and the progress */
    const psld_sample_options *asked;
    uint64_t first;
    size_t count, dim, k;
    size_t kept;       /* numbers of a state that are */
    psld_array *start; /* [count][k * dim], or NULL */
    double *states;    /* [stretch][k * dim] */
    size_t stretch;    /* samples */
    uint64_t before;   /* samples of the stretches before */
} drawing;

/* Progress of a stretch as that of the whole. */
static int report_whole(void *user, uint64_t done, uint64_t total)
{
    const drawing *d = user;
    size_t left = d->count - d->before, now = left < d->stretch ? left : d->stretch;
    uint64_t each = total / now; /* units a sample */
    return d->asked->progress(d->asked->progress_user, d->before * each + done, d->count * each);
}

static size_t choose_stretch(const drawing *d)
{
    size_t batch = d->options.batch, group = d->options.ode_group ? d->options.ode_group : 1;
    size_t whole = (batch + group - 1) / group * group, state = d->k * d->dim * sizeof(double);
    size_t times = STRETCH_BYTES / state / whole;
    size_t stretch = whole * (times ? times : 1);
    return stretch < d->count ? stretch : d->count;
}

static psld_status take_start(drawing *d, const psld_array *start)
{
    size_t width = d->k * d->dim;
    if (start->rank < 1 || start->shape[0] != d->count || start->count != d->count * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "start: expected %zu states of %zu numbers, found %zu numbers in all",
                         d->count, width, start->count);
    return psld_array_convert(start, PSLD_F64, &d->start);
}

static psld_status create_result(const drawing *d, size_t variables, psld_array **x)
{
    const psld_model *model = d->model;
    size_t shape[PSLD_MAX_RANK] = {d->count};
    for (int i = 0; i < model->rank; i++) shape[i + 1] = model->shape[i] * (i == 0 ? variables : 1);
    return psld_array_create(PSLD_F32, model->rank + 1, shape, x);
}

static psld_status draw_stretch(drawing *d, size_t now, float *out, psld_sample_cost *cost)
{
    size_t width = d->k * d->dim;
    const double *start = d->start ? (const double *)d->start->data + d->before * width : NULL;
    PSLD_TRY(psld_sample_counted(d->model->recipe, d->model->source, &d->options, d->first + d->before, now, d->dim,
                                 start, d->states, cost));
    for (size_t i = 0; i < now; i++)
        for (size_t j = 0; j < d->kept; j++) out[i * d->kept + j] = (float)d->states[i * width + j];
    return PSLD_OK;
}

static psld_status draw_all(drawing *d, float *out, psld_sample_cost *cost)
{
    d->stretch = choose_stretch(d);
    d->states = psld_alloc(d->stretch, d->k * d->dim * sizeof(double));
    if (!d->states) return PSLD_NO_MEMORY;
    while (d->before < d->count) {
        size_t left = d->count - d->before, now = left < d->stretch ? left : d->stretch;
        PSLD_TRY(draw_stretch(d, now, out + d->before * d->kept, cost));
        d->before += now;
    }
    return PSLD_OK;
}

psld_status psld_model_sample(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                              const psld_array *start, int state, psld_array **x, uint64_t *nfe)
{
    drawing d = {.model = model, .options = *options, .asked = options, .first = first, .count = count};
    psld_sample_cost cost = {0};
    *x = NULL;
    if (!model->source) return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "expected at least one sample");
    d.dim = psld_model_size(model);
    d.k = (size_t)model->recipe->spec.k;
    d.kept = state ? d.k * d.dim : d.dim;
    if (d.options.batch == 0) d.options.batch = psld_model_batch(model);
    if (options->progress) d.options.progress = report_whole, d.options.progress_user = &d;
    psld_status status = start ? take_start(&d, start) : PSLD_OK;
    if (status == PSLD_OK) status = create_result(&d, state ? d.k : 1, x);
    if (status == PSLD_OK) status = draw_all(&d, (*x)->data, &cost);
    if (status == PSLD_OK && nfe) *nfe = psld_sample_nfe(options, &cost);
    psld_release(d.states);
    psld_array_free(d.start);
    if (status != PSLD_OK) {
        psld_array_free(*x);
        *x = NULL;
    }
    return status;
}

/* ---- Fingerprint ------------------------------------------------------------------------------------------------- */

/* Eight bytes at a time, mixed as FNV-1a does and turned so that high bits reach low ones. No defence against someone
 * who wants two models to look the same. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    return hash;
}

uint64_t psld_model_fingerprint(const psld_model *model)
{
    uint64_t hash = mix(0xcbf29ce484222325u, model->config, strlen(model->config));
    if (model->network)
        hash = mix(hash, model->network->weights, model->network->graph->parameter_elements * sizeof(float));
    if (!model->recipe) return hash;
    const psld_recipe_spec *r = &model->recipe->spec;
    size_t k = (size_t)r->k, aux = k - 1;
    hash = mix(hash, r->D, k * k * sizeof *r->D);
    hash = mix(hash, r->Q, k * k * sizeof *r->Q);
    hash = mix(hash, r->mass, aux * sizeof *r->mass);
    hash = mix(hash, r->init, aux * sizeof *r->init);
    const double rest[4] = {r->beta_min, r->beta_max, r->stabiliser, (double)r->upper};
    return mix(hash, rest, sizeof rest);
}
