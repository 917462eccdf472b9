/* A network that predicts eps of the noisy variables, or clean data. The loss is the error of its output, or that of
 * the score in the metric of the likelihood bound, or that of the clean data. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "train/objective.h"

size_t psld_objective_variables(const psld_model *model)
{
    return psld_model_predicts_data(model) ? 1 : (size_t)model->recipe->predicted;
}

static size_t score_target_size(const psld_model *model)
{
    return psld_model_size(model) * psld_objective_variables(model);
}

static void score_set_options(const psld_settings *settings, const psld_model *model, psld_trainer_options *options)
{
    options->power = settings->train.l1 ? 1 : 2;
    options->metric = settings->train.weighting != PSLD_WEIGH_EPS ? (int)psld_objective_variables(model) : 0;
}

/* Held-out samples keep their labels. */
void psld_objective_fill_labels(const psld_perturbation *how, psld_phase phase, psld_microbatch *b)
{
    psld_labels_one_hot(b->n, b->label, how->classes, b->one_hot);
    for (size_t i = 0; phase == PSLD_PHASE_TRAIN && i < b->n; i++) {
        double u;
        psld_random_uniform(how->seed, PSLD_FOR_LABEL, b->first + i, 0, 0, 1, &u);
        if (u < how->label_dropout) memset(b->one_hot + i * how->classes, 0, how->classes * sizeof *b->one_hot);
    }
}

static psld_status score_fill(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    if (how->classes) psld_objective_fill_labels(how, phase, batch);
    return psld_perturb(how, phase, batch);
}

double psld_objective_error(const psld_microbatch *b, size_t index, size_t dim, size_t variables, int power)
{
    const float *out = b->out + index * variables * dim, *target = b->target + index * variables * dim;
    const float *metric = b->metric ? b->metric + index * variables * variables : NULL;
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

static void score_judge(const psld_settings *settings, const psld_model *model, psld_microbatch *batch)
{
    size_t dim = psld_model_size(model), variables = psld_objective_variables(model);
    for (size_t i = 0; i < batch->n; i++)
        batch->loss[i] = (float)psld_objective_error(batch, i, dim, variables, settings->train.l1 ? 1 : 2);
}

const psld_objective psld_objective_score = {
    .name = "score network",
    .prefix = "score_fn.",
    .set_options = score_set_options,
    .target_size = score_target_size,
    .fill = score_fill,
    .judge = score_judge,
};
