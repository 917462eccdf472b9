/* bench_guide [SCORE CLASSIFIER]: what a guided step costs beside its parts: an evaluation of the score network, and one
 * of the classifier with its gradient by the state. Models, or configurations, which get initial weights; without
 * arguments the digits of models/ and the CIFAR-10 networks of configs/, from the folder that has both.
 *
 * Parts and the whole take turns of four steps, and the least of several rounds counts. A step is that of Euler-Maruyama, its own
 * arithmetic and random numbers included. Should the gradient by weights be computed, too, the operations of the
 * classifier with its gradient would be three times those without; by the state alone they are twice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/model.h"
#include "nn/plan.h"
#include "psld.h"

enum { STEPS = 4, ROUNDS = 5 };

static const char *const pairs[][2] = {
    {"models/digits.safetensors", "models/digits-classifier.safetensors"},
    {"configs/cifar10-psld-39m.yaml", "configs/cifar10-classifier.yaml"},
};

static void must(psld_status status)
{
    if (status == PSLD_OK) return;
    fprintf(stderr, "bench_guide: %s\n", psld_error_text());
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *made = calloc(count, size);
    if (!made) exit(1);
    return made;
}

static psld_model *open_model(const char *path)
{
    const char *end = strrchr(path, '.');
    psld_model *model;
    must(end && strcmp(end, ".yaml") == 0 ? psld_model_create(path, NULL, 1, &model)
                                          : psld_model_open(path, NULL, &model));
    return model;
}

typedef struct rehearsal {
    const psld_recipe *recipe;
    psld_source *score, *guided;
    psld_classifier *classifier;
    size_t n, dim;
    double *z, *t, *eps, *gradient, *end;
    int32_t *label;
} rehearsal;

static void run_scores(const rehearsal *r)
{
    for (int i = 0; i < STEPS; i++) must(psld_source_predict(r->score, r->n, r->dim, r->z, r->t, r->eps));
}

static void run_classifiers(const rehearsal *r)
{
    for (int i = 0; i < STEPS; i++)
        must(psld_classifier_evaluate(r->classifier, r->n, r->dim, r->z, r->t, r->label, NULL, r->gradient));
}

static void run_steps(const rehearsal *r)
{
    psld_sample_options o;
    psld_sample_defaults(&o);
    o.sampler = "em";
    o.nfe = STEPS;
    o.denoise = 0;
    o.batch = r->n;
    must(psld_sample(r->recipe, r->guided, &o, 0, r->n, r->dim, NULL, r->end, NULL));
}

/* Seconds of one of the steps. */
static void take_least(void (*run)(const rehearsal *), const rehearsal *r, double *least)
{
    double began = psld_seconds();
    run(r);
    *least = fmin(*least, (psld_seconds() - began) / STEPS);
}

/* Operations of the classifier with its gradient over those without. */
static double gradient_share(psld_model *classifier, size_t n)
{
    must(psld_model_prepare(classifier, 0, n));
    return psld_plan_flops(psld_runner_plan(classifier->runners[1]), 1) /
           psld_plan_flops(psld_runner_plan(classifier->runners[0]), 1);
}

static void measure(psld_model *score, psld_model *classifier, size_t n)
{
    size_t dim = psld_model_size(score);
    const psld_recipe *recipe = psld_model_recipe(score);
    size_t state = dim * (size_t)psld_recipe_get(recipe)->k;
    rehearsal r = {.recipe = recipe, .score = psld_model_source(score), .n = n, .dim = dim};
    double least[3] = {(double)INFINITY, (double)INFINITY, (double)INFINITY};
    r.classifier = psld_model_classifier(classifier);
    double **rooms[] = {&r.z, &r.eps, &r.gradient, &r.end};
    for (int i = 0; i < 4; i++) *rooms[i] = room(n * state, sizeof(double));
    r.t = room(n, sizeof(double));
    r.label = room(n, sizeof *r.label);
    for (size_t i = 0; i < n * state; i++) r.z[i] = sin((double)i);
    for (size_t i = 0; i < n; i++) r.t[i] = 0.5;
    must(psld_source_guide(r.score, recipe, r.classifier, 0, 1, &r.guided));
    run_steps(&r); /* plans, and warms the caches */
    for (int i = 0; i < ROUNDS; i++) {
        take_least(run_scores, &r, &least[0]);
        take_least(run_classifiers, &r, &least[1]);
        take_least(run_steps, &r, &least[2]);
    }
    printf("%5zu  %9.2f  %22.2f  %11.2f  %13.3f  %21.2f\n", n, 1e3 * least[0], 1e3 * least[1], 1e3 * least[2],
           least[2] / (least[0] + least[1]), gradient_share(classifier, n));
    psld_source_free(r.guided);
    for (int i = 0; i < 4; i++) free(*rooms[i]);
    free(r.t);
    free(r.label);
}

static void measure_pair(const char *score_path, const char *classifier_path)
{
    psld_model *score = open_model(score_path), *classifier = open_model(classifier_path);
    printf("%s, %s\n", score_path, classifier_path);
    printf("batch  score, ms  classifier + gradient   a step, ms  step / parts   operations of gradient\n");
    for (size_t n = 1; n <= 8; n *= 8) measure(score, classifier, n);
    psld_model_free(score);
    psld_model_free(classifier);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        measure_pair(argv[1], argv[2]);
        return 0;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) measure_pair(pairs[i][0], pairs[i][1]);
    return 0;
}
