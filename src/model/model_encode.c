/* Encodes data of a model to states at t = 1, as arrays. */
#include "base/alloc.h"
#include "base/sized.h"
#include "model/model.h"
#include "sample/options.h"

static psld_status create_states(const psld_model *model, size_t n, psld_array **z)
{
    size_t shape[PSLD_MAX_RANK] = {n};
    for (int i = 0; i < model->rank; i++) shape[i + 1] = model->shape[i] * (i == 0 ? (size_t)model->recipe->spec.k : 1);
    return psld_array_create(PSLD_F32, model->rank + 1, shape, z);
}

psld_status psld_model_encode(psld_model *model, const psld_sample_options *options, uint64_t first,
                              const psld_array *x, psld_array **z, uint64_t *nfe)
{
    psld_sample_options own;
    psld_array *data = NULL;
    size_t dim = psld_model_size(model), n = x->rank ? x->shape[0] : 0;
    *z = NULL;
    PSLD_TRY(psld_sample_options_read(options, &own));
    if (!model->source) return psld_fail(PSLD_BAD_ARGUMENT, "a classifier has no samples");
    if (n < 1 || x->count != n * dim)
        return psld_fail(PSLD_BAD_ARGUMENT, "data: expected samples of %zu numbers, found %zu numbers in all", dim,
                         x->count);
    PSLD_FILL_ZERO(own.batch, (int)psld_model_batch(model));
    psld_model_ask_batch(model, own.batch);
    psld_labels labels;
    if (own.labels) {
        PSLD_TRY(PSLD_SIZED_READ(psld_labels, own.labels, &labels, PSLD_LABELS_DEFAULTS));
        PSLD_FILL_UNSET(labels.cfg, model->cfg);
        own.labels = &labels;
    }
    size_t numbers = n * dim * (size_t)model->recipe->spec.k;
    double *states = psld_alloc(numbers, sizeof *states);
    psld_status status = states ? psld_array_convert(x, PSLD_F64, &data) : PSLD_NO_MEMORY;
    if (status == PSLD_OK)
        status = psld_encode(model->recipe, model->source, &own, first, n, dim, data->data, states, nfe);
    if (status == PSLD_OK) status = create_states(model, n, z);
    for (size_t i = 0; status == PSLD_OK && i < numbers; i++) ((float *)(*z)->data)[i] = (float)states[i];
    psld_array_free(data);
    psld_release(states);
    return status;
}
