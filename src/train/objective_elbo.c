/* A network, and with process.learn a recipe, by the variational bound of sample/bound.h: the loss is an upper bound of bits
 * per dimension,
 *
 *     -1/(d log 2) [ ends(x_0) - int_e^1 1/2 E |s_theta - s*|^2_G dt ].
 *
 * The integral is a mean over random times, each weighed by the density of uniform times over its own. The metric M of
 * perturb.h makes it r' M r with r = eps_theta - eps; the ends are in closed form (bound_ends.c). */
#include <math.h>

#include "sample/bound.h"
#include "train/objective.h"

double psld_elbo_unit(const psld_perturbation *how)
{
    return 1 / ((double)how->dim * log(2));
}

double psld_elbo_scale(const psld_perturbation *how)
{
    return (1 - how->t_min) * psld_elbo_unit(how);
}

static void elbo_set_options(const psld_settings *settings, const psld_model *model, psld_trainer_options *options)
{
    (void)settings;
    options->power = 2;
    options->metric = (int)psld_objective_variables(model);
}

static size_t elbo_target_size(const psld_model *model)
{
    return psld_model_size(model) * psld_objective_variables(model);
}

/* What the ends say of each sample: linear in |x_0|^2. */
static psld_status fill_base(const psld_perturbation *how, psld_microbatch *b)
{
    psld_bound_data data = {.dim = (double)how->dim, .cell = how->cell};
    psld_bound none = {0}, one = {0};
    PSLD_TRY(psld_bound_add_ends(how->recipe, how->t_min, &data, -psld_elbo_unit(how), &none));
    data.square = 1;
    PSLD_TRY(psld_bound_add_ends(how->recipe, how->t_min, &data, -psld_elbo_unit(how), &one));
    for (size_t i = 0; i < b->n; i++) {
        double square = 0;
        for (size_t j = 0; j < how->dim; j++) square += (double)b->x[i * how->dim + j] * (double)b->x[i * how->dim + j];
        b->base[i] = (float)(none.value + square * (one.value - none.value));
    }
    return PSLD_OK;
}

/* The loss of the plan is the mean of r' M r over d coordinates and the variables; here it is to be their sum, times
 * psld_elbo_scale / 2. */
static psld_status elbo_fill(const psld_perturbation *how, psld_phase phase, psld_microbatch *b)
{
    size_t variables = how->data_deviation > 0 ? 1 : (size_t)how->recipe->predicted;
    double factor = psld_elbo_scale(how) / 2 * (double)(variables * how->dim);
    if (how->classes) psld_objective_fill_labels(how, phase, b);
    PSLD_TRY(psld_perturb(how, phase, b));
    for (size_t i = 0; i < b->n * variables * variables; i++) b->metric[i] = (float)(factor * (double)b->metric[i]);
    return fill_base(how, b);
}

static void elbo_judge(const psld_settings *settings, const psld_model *model, psld_microbatch *b)
{
    size_t dim = psld_model_size(model), variables = psld_objective_variables(model);
    (void)settings;
    for (size_t i = 0; i < b->n; i++)
        b->loss[i] = (float)((double)b->base[i] + psld_objective_error(b, i, dim, variables, 2));
}

const psld_objective psld_objective_elbo = {
    .name = "score network",
    .prefix = "score_fn.",
    .own_loss = 1,
    .has_base = 1,
    .set_options = elbo_set_options,
    .target_size = elbo_target_size,
    .fill = elbo_fill,
    .judge = elbo_judge,
};
