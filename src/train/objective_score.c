/* A network that predicts eps of the noisy variables, or clean data: the loss is the error of what it says, or of the
 * score in the metric of the likelihood bound, or of clean data. */
#include <math.h>

#include "train/objective.h"

/* Numbers that the network says of each coordinate. */
static size_t variables_of(const psld_model *model)
{
    return psld_model_predicts_data(model) ? 1 : (size_t)model->recipe->predicted;
}

static size_t target_size(const psld_model *model)
{
    return psld_model_size(model) * variables_of(model);
}

static void set_up(const psld_settings *settings, const psld_model *model, psld_trainer_options *options)
{
    options->power = settings->train.l1 ? 1 : 2;
    options->metric = settings->train.weighting != PSLD_WEIGH_EPS ? (int)variables_of(model) : 0;
}

static psld_status fill(const psld_perturbation *how, psld_phase phase, uint64_t first, size_t n, psld_minibatch *batch)
{
    psld_perturbed arrays = {.x = batch->x,
                             .z = batch->z,
                             .target = batch->target,
                             .metric = batch->metric,
                             .time = batch->time,
                             .t = batch->t};
    return psld_perturb(how, phase, first, n, &arrays);
}

/* Mean over a sample of e' M e, or of |e|^power. */
static double error_of(const psld_minibatch *b, size_t row, size_t dim, size_t variables, int power)
{
    const float *out = b->out + row * variables * dim, *target = b->target + row * variables * dim;
    const float *metric = b->metric ? b->metric + row * variables * variables : NULL;
    double sum = 0;
    for (size_t i = 0; i < variables; i++)
        for (size_t j = 0; j < dim; j++) {
            double e = (double)out[i * dim + j] - (double)target[i * dim + j], weighed = metric ? 0 : e;
            for (size_t l = 0; metric && l < variables; l++)
                weighed += (double)metric[i * variables + l] * ((double)out[l * dim + j] - (double)target[l * dim + j]);
            sum += power == 2 ? e * weighed : fabs(e);
        }
    return sum / (double)(variables * dim);
}

static void judge(const psld_settings *settings, const psld_model *model, size_t n, psld_minibatch *batch)
{
    size_t dim = psld_model_size(model), variables = variables_of(model);
    for (size_t i = 0; i < n; i++)
        batch->loss[i] = (float)error_of(batch, i, dim, variables, settings->train.l1 ? 1 : 2);
}

const psld_objective psld_objective_score = {
    .name = "score network",
    .prefix = "score_fn.",
    .set_up = set_up,
    .target_size = target_size,
    .fill = fill,
    .judge = judge,
};
