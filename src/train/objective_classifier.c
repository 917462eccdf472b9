/* A network that predicts the class of noisy data: cross-entropy of the labels of z_t, or with train.clean of x_0. */
#include <math.h>

#include "train/objective.h"

static size_t classifier_target_size(const psld_model *model)
{
    (void)model;
    return 1;
}

static void classifier_set_options(const psld_settings *settings, const psld_model *model,
                                   psld_trainer_options *options)
{
    (void)settings, (void)model;
    options->entropy = 1;
}

static psld_status classifier_fill(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    for (size_t i = 0; i < batch->n; i++) batch->target[i] = (float)batch->label[i];
    psld_microbatch states = *batch; /* the target is the label, not eps */
    states.target = states.metric = NULL;
    return psld_perturb(how, phase, &states);
}

static void classifier_judge(const psld_settings *settings, const psld_model *model, psld_microbatch *batch)
{
    size_t classes = psld_model_classes(model);
    (void)settings;
    for (size_t i = 0; i < batch->n; i++) {
        const float *logits = batch->out + i * classes;
        size_t likeliest = 0, label = (size_t)batch->label[i];
        double sum = 0;
        for (size_t c = 1; c < classes; c++)
            if (logits[c] > logits[likeliest]) likeliest = c;
        for (size_t c = 0; c < classes; c++) sum += exp((double)logits[c] - (double)logits[likeliest]);
        batch->loss[i] = (float)(log(sum) + (double)logits[likeliest] - (double)logits[label]);
        batch->hit[i] = likeliest == label;
    }
}

const psld_objective psld_objective_classifier = {
    .name = "classifier",
    .prefix = "clf_fn.",
    .looks_at_output = 1,
    .set_options = classifier_set_options,
    .target_size = classifier_target_size,
    .fill = classifier_fill,
    .judge = classifier_judge,
};
