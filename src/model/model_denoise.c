/* Models as denoisers: the clean data in x_0 + sigma n, and the raw output of networks with discrete timesteps.
 *
 * A network of clean data is evaluated directly. Other models are evaluated as score sources of a vp process, to which
 * they are translated if they have other variables: with k = 1 a state is a multiple of y = x_0 + sigma n. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "model/model.h"
#include "model/posed.h"
#include "process/recipe.h"
#include "sample/samplers/multistep.h"
#include "sample/sources/mixture.h"

/* The arguments of a call; arrays are copies in double. */
typedef struct denoising {
    psld_model *model;
    size_t n, dim;
    psld_array *x, *level, *label; /* level: sigma or timestep; label NULL: none */
    psld_array *out;
} denoising;

static psld_status read_numbers(const char *name, const psld_array *array, size_t n, size_t width, psld_array **numbers)
{
    if (!array) return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected an array, found NULL", name);
    if (array->count != n * width)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected %zu samples of %zu numbers, found %zu numbers in all", name,
                         n, width, array->count);
    PSLD_TRY(psld_array_convert(array, PSLD_F64, numbers));
    const double *value = (*numbers)->data;
    for (size_t i = 0; i < n * width; i++)
        if (!isfinite(value[i])) return psld_fail(PSLD_BAD_ARGUMENT, "%s: sample %zu is not finite", name, i / width);
    return PSLD_OK;
}

static psld_status check_needed_labels(const denoising *d)
{
    const int32_t *label = d->label ? d->label->data : NULL;
    if (!psld_source_needs_label(d->model->source)) return PSLD_OK;
    for (size_t i = 0; i < d->n; i++)
        if (!label || label[i] < 0)
            return psld_fail(PSLD_BAD_ARGUMENT, "label: this model needs one for every sample; sample %zu has none", i);
    return PSLD_OK;
}

static psld_status read_arguments(const psld_array *x, const char *name, const psld_array *level,
                                  const psld_array *label, denoising *d)
{
    if (!d->model->source) return psld_fail(PSLD_BAD_ARGUMENT, "denoise: a classifier does not predict clean data");
    d->n = x->rank ? x->shape[0] : 0;
    d->dim = psld_model_size(d->model);
    if (d->n == 0) return psld_fail(PSLD_BAD_ARGUMENT, "x: expected at least one sample");
    PSLD_TRY(read_numbers("x", x, d->n, d->dim, &d->x));
    PSLD_TRY(read_numbers(name, level, d->n, 1, &d->level));
    if (label) PSLD_TRY(psld_model_read_given(d->model, label, d->n, &d->label));
    PSLD_TRY(check_needed_labels(d));
    return psld_array_create(PSLD_F32, x->rank, x->shape, &d->out);
}

static psld_status denoise_finish(denoising *d, psld_status status, psld_array **result)
{
    psld_array_free(d->x);
    psld_array_free(d->level);
    psld_array_free(d->label);
    if (status == PSLD_OK)
        *result = d->out;
    else
        psld_array_free(d->out);
    return status;
}

/* ---- Networks of clean data -------------------------------------------------------------------------------------- */

/* Evaluates the network on x / divide, at its own times. `how` NULL: on x and times unchanged. */
static psld_status run_network(denoising *d, const psld_scaling *how, float *u, float *time, float *told)
{
    const double *x = d->x->data, *level = d->level->data;
    const int32_t *label = d->label ? d->label->data : NULL;
    for (size_t i = 0; i < d->n; i++) {
        time[i] = (float)(how ? how[i].time : level[i]);
        for (size_t j = i * d->dim; j < (i + 1) * d->dim; j++) u[j] = (float)(how ? x[j] / how[i].divide : x[j]);
    }
    psld_posed_batch posed = {.n = d->n, .u = u, .time = time, .label = label, .out = d->out->data};
    if (psld_model_is_posed(d->model)) return psld_posed_run(d->model, &posed);
    const psld_network_config *config = &d->model->network->config;
    psld_model_tell_labels(config, d->n, label, told);
    return psld_model_run(d->model, d->n, u, time, config->classes ? told : NULL, d->out->data);
}

static psld_status run_in_memory(denoising *d, const psld_scaling *how)
{
    const psld_network *network = d->model->network;
    size_t width = network ? (size_t)psld_network_label_width(&network->config) : 0;
    float *u = psld_alloc(d->n, d->dim * sizeof *u), *time = psld_alloc(d->n, sizeof *time);
    float *told = psld_alloc(d->n, (width + 1) * sizeof *told);
    psld_status status = u && time && told ? run_network(d, how, u, time, told) : PSLD_NO_MEMORY;
    psld_release(u);
    psld_release(time);
    psld_release(told);
    return status;
}

/* Values slightly beyond the ends are accepted. They are often computed in float, where sqrt((1 - abar) / abar) loses
 * digits. */
#define END_ROUNDING 5e-3

static psld_status check_sigma(const denoising *d, double least, double most)
{
    const double *sigma = d->level->data;
    for (size_t i = 0; i < d->n; i++) {
        if (!(sigma[i] > 0))
            return psld_fail(PSLD_BAD_ARGUMENT, "sigma: sample %zu has %.6g, expected a positive number", i, sigma[i]);
        if (sigma[i] < least * (1 - END_ROUNDING) || sigma[i] > most * (1 + END_ROUNDING))
            return psld_fail(PSLD_BAD_ARGUMENT, "sigma: sample %zu has %.6g, expected %.6g to %.6g", i, sigma[i], least,
                             most);
    }
    return PSLD_OK;
}

/* Only tables have an end. Formulas of the noise are evaluated for any value. */
static psld_status check_network_sigma(const denoising *d)
{
    const psld_conditioning *c = &d->model->conditioning;
    return c->sigma ? check_sigma(d, c->sigma_min, c->sigma_max) : check_sigma(d, 0, (double)INFINITY);
}

static psld_status denoise_directly(denoising *d)
{
    const double *x = d->x->data, *sigma = d->level->data;
    float *clean = d->out->data;
    PSLD_TRY(check_network_sigma(d));
    psld_scaling *how = psld_alloc(d->n, sizeof *how);
    if (!how) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < d->n; i++) psld_conditioning_at(&d->model->conditioning, sigma[i], &how[i]);
    psld_status status = run_in_memory(d, how);
    for (size_t i = 0; status == PSLD_OK && i < d->n; i++)
        for (size_t j = i * d->dim; j < (i + 1) * d->dim; j++)
            clean[j] = (float)(how[i].keep * (x[j] / how[i].divide) + how[i].scale * (double)clean[j]);
    psld_release(how);
    return status;
}

/* ---- Other models ------------------------------------------------------------------------------------------------ */

/* A vp process whose noise ends at sigma. */
static psld_status open_vp(double sigma, psld_recipe **recipe)
{
    char text[64];
    snprintf(text, sizeof text, "vp beta=[0.1,%.17g]", 2 * log1p(sigma * sigma) - 0.1);
    return psld_recipe_open(text, recipe);
}

/* Samples are evaluated one by one: each has its own constants. */
static psld_status denoise_samples(denoising *d, psld_source *source, const psld_recipe *recipe, double *z, double *t,
                                   double *eps)
{
    const double *x = d->x->data, *sigma = d->level->data;
    psld_collapsed_frame frame;
    psld_denoiser denoiser;
    for (size_t i = 0; i < d->n; i++) {
        PSLD_TRY(psld_recipe_time(recipe, sigma[i], &t[i]));
        PSLD_TRY(psld_collapsed_frame_plan(recipe, source->exact, t[i], &frame));
        for (size_t j = 0; j < d->dim; j++) z[i * d->dim + j] = x[i * d->dim + j] / (frame.sigma * frame.inverse[0]);
    }
    psld_states states = PSLD_STATES(d->n, d->dim, z, t);
    if (d->label) states.label = d->label->data;
    PSLD_TRY(psld_source_predict(source, &states, eps));
    for (size_t i = 0; i < d->n; i++) {
        double *row = z + i * d->dim; /* the memory of the state is reused for the clean data */
        PSLD_TRY(psld_denoiser_plan(recipe, source->exact, t[i], &denoiser));
        for (size_t j = 0; j < d->dim; j++)
            ((float *)d->out->data)[i * d->dim + j] =
                (float)(denoiser.state[0] * row[j] + denoiser.eps[0] * eps[i * d->dim + j]);
    }
    return PSLD_OK;
}

static psld_status denoise_in_memory(denoising *d, psld_source *source, const psld_recipe *recipe)
{
    double *z = psld_alloc(d->n, d->dim * sizeof *z), *eps = psld_alloc(d->n, d->dim * sizeof *eps);
    double *t = psld_alloc(d->n, sizeof *t);
    psld_status status = z && eps && t ? denoise_samples(d, source, recipe, z, t, eps) : PSLD_NO_MEMORY;
    psld_release(z);
    psld_release(eps);
    psld_release(t);
    return status;
}

/* An exact model can be evaluated at any noise. */
static psld_status denoise_exactly(denoising *d)
{
    const double *x = d->x->data, *sigma = d->level->data;
    const int32_t *label = d->label ? d->label->data : NULL;
    PSLD_TRY(check_sigma(d, 0, 1e6));
    double *clean = psld_alloc(d->dim, sizeof *clean);
    if (!clean) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < d->n; i++) {
        psld_mixture_denoise(d->model->mixture, x + i * d->dim, sigma[i], label ? label[i] : -1, NULL, clean, NULL);
        for (size_t j = 0; j < d->dim; j++) ((float *)d->out->data)[i * d->dim + j] = (float)clean[j];
    }
    psld_release(clean);
    return PSLD_OK;
}

static psld_status denoise_by_source(denoising *d)
{
    psld_model *model = d->model;
    psld_recipe *vp = NULL;
    psld_source *base = psld_model_unguided_source(model), *source = NULL;
    double least, most;
    PSLD_TRY(psld_recipe_sigma(model->recipe, 1, &most));
    PSLD_TRY(psld_recipe_sigma(model->recipe, 1e-5, &least));
    PSLD_TRY(check_sigma(d, least, most));
    if (model->recipe->spec.k == 1) return denoise_in_memory(d, base, model->recipe);
    psld_status status = open_vp(most * (1 - 1e-12), &vp);
    if (status == PSLD_OK) status = psld_source_translate(base, model->recipe, vp, &source);
    if (status == PSLD_OK) status = denoise_in_memory(d, source, vp);
    psld_source_free(source);
    psld_recipe_free(vp);
    return status;
}

psld_status psld_model_denoise(psld_model *model, const psld_array *x, const psld_array *sigma, const psld_array *label,
                               psld_array **clean)
{
    denoising d = {.model = model};
    *clean = NULL;
    psld_status status = read_arguments(x, "sigma", sigma, label, &d);
    if (status == PSLD_OK)
        status = psld_model_predicts_data(model) ? denoise_directly(&d)
                 : model->mixture                ? denoise_exactly(&d)
                                                 : denoise_by_source(&d);
    return denoise_finish(&d, status, clean);
}

/* ---- Discrete timesteps ------------------------------------------------------------------------------------------ */

size_t psld_model_timesteps(const psld_model *model)
{
    return model->conditioning.kind == PSLD_CONDITION_TIMESTEPS ? model->conditioning.steps : 0;
}

static psld_status check_timestep(const psld_model *model, double timestep)
{
    size_t steps = psld_model_timesteps(model);
    if (steps == 0) return psld_fail(PSLD_BAD_ARGUMENT, "timestep: this model has no discrete timesteps");
    if (timestep >= 0 && timestep <= (double)(steps - 1)) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "timestep: expected 0 to %zu, found %g", steps - 1, timestep);
}

psld_status psld_model_output(psld_model *model, const psld_array *x, const psld_array *timestep,
                              const psld_array *label, psld_array **out)
{
    denoising d = {.model = model};
    *out = NULL;
    psld_status status = read_arguments(x, "timestep", timestep, label, &d);
    for (size_t i = 0; status == PSLD_OK && i < d.n; i++)
        status = check_timestep(model, ((const double *)d.level->data)[i]);
    if (status == PSLD_OK) status = run_in_memory(&d, NULL);
    return denoise_finish(&d, status, out);
}

psld_status psld_model_timestep_time(const psld_model *model, double timestep, double *t)
{
    psld_collapsed_frame frame;
    PSLD_TRY(check_timestep(model, timestep));
    double sigma = psld_conditioning_sigma(&model->conditioning, timestep), kept = 1 / sqrt(1 + sigma * sigma);
    if (model->recipe->spec.k == 1) {
        PSLD_TRY(psld_recipe_time(model->recipe, sigma, t));
        PSLD_TRY(psld_collapsed_frame_plan(model->recipe, 0, *t, &frame));
        if (fabs(frame.sigma * frame.inverse[0] * kept - 1) < 1e-6) return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "timesteps: need the process vp, the model's process is %s",
                     model->recipe->spec.name);
}

/* ---- What is known about a network ------------------------------------------------------------------------------- */

psld_status psld_model_sigma_range(const psld_model *model, double *sigma_min, double *sigma_max)
{
    *sigma_min = model->conditioning.sigma_min;
    *sigma_max = model->conditioning.sigma_max;
    if (model->conditioning.kind != PSLD_CONDITION_OURS) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "the model file does not say with which noise it was trained");
}

const char *psld_model_family(const psld_model *model)
{
    if (psld_model_is_posed(model)) return psld_conditioning_name(&model->conditioning);
    if (!model->network) return "";
    psld_network_kind kind = model->network->config.kind;
    return kind == PSLD_NET_UNET2D     ? "diffusers UNet2DModel"
           : kind == PSLD_NET_SONGUNET ? "EDM SongUNet"
           : kind == PSLD_NET_ADM      ? "EDM DhariwalUNet"
                                       : "psld";
}
