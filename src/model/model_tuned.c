/* Default sampling options that depend on the model: of those that are tuned for few evaluations, and the end of networks
 * under another recipe. */
#include <math.h>

#include "base/sized.h"
#include "model/model.h"
#include "sample/options.h"
#include "sample/time_grid.h"

int psld_model_is_tuned(const psld_model *model)
{
    return model->tuned > 0;
}

/* The noise of the last of some evaluations, in units of twice the data's deviation: see
 * docs/measurements/beyond.md. */
static double last_noise(int evaluations)
{
    return 0.8 * sqrt(2.0 / evaluations);
}

static int is_open(double number)
{
    return number == 0 || number == PSLD_UNSET;
}

/* A network under another recipe than its own: not later than at the smallest noise that it was trained for. */
static psld_status end_where_trained(const psld_model *model, psld_sample_options *o)
{
    const psld_sampler *sampler = o->sampler ? psld_sampler_row(o->sampler) : NULL;
    double usual;
    int steps;
    if (!sampler || !model->source || !is_open(o->eps) || !is_open(o->end_sigma)) return PSLD_OK;
    if (o->grid && psld_grid_is_list(o->grid, &steps)) return PSLD_OK;
    PSLD_TRY(psld_sample_t_min(model->recipe, sampler, &usual));
    if (usual < model->source->earliest) o->eps = model->source->earliest;
    return PSLD_OK;
}

psld_status psld_model_prefer(const psld_model *model, psld_sample_options *options)
{
    psld_sample_options own;
    int steps;
    PSLD_TRY(psld_sized_check(options, sizeof own, "PSLD_SAMPLE_DEFAULTS"));
    PSLD_TRY(psld_sample_options_copy(options, &own));
    if (!psld_model_is_tuned(model)) {
        PSLD_TRY(end_where_trained(model, &own));
        psld_sized_write(options, &own);
        return PSLD_OK;
    }
    if (!own.sampler) own.sampler = "consistency";
    const psld_sampler *sampler = psld_sampler_row(own.sampler);
    if (!sampler) return PSLD_BAD_ARGUMENT;
    if (!sampler->info.consistency) return PSLD_OK;
    int is_list = own.grid && psld_grid_is_list(own.grid, &steps);
    if (!is_list && is_open(own.nfe)) own.nfe = sampler->info.nfe;
    if (!is_list && is_open(own.eps) && is_open(own.end_sigma) && own.nfe > 1)
        own.end_sigma = 2 * model->tuned * last_noise(own.nfe);
    psld_sized_write(options, &own);
    return PSLD_OK;
}
