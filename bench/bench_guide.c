/* bench_guide [SCORE CLASSIFIER]: what a guided step costs beside its parts: an evaluation of the score network, and
 * one of the classifier with its gradient by the state. Models, or configurations, which get initial weights; without
 * arguments the digits of models/ and the CIFAR-10 networks of configs/, from the folder that has both.
 *
 * Parts, one after the other as in a step, and the whole take turns of 4 to 50 steps, about half a second; times are
 * the least, the ratio is the median of those within a round. A step has the sampler's own arithmetic in it and, with
 * em, its random numbers. Should the gradient by weights be computed, too, the operations of the classifier with its
 * gradient would be three times those without; by the state alone they are twice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/model.h"
#include "nn/plan.h"
#include "psld.h"

enum { FEWEST_STEPS = 4, MOST_STEPS = 50, ROUNDS = 5 };

static const char *const samplers[] = {"em", "dpm"};

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
    const char *sampler;
    int steps; /* of a turn */
    const psld_recipe *recipe;
    psld_source *score, *guided;
    psld_classifier *classifier;
    size_t n, dim;
    double *z, *t, *eps, *gradient, *end;
    int32_t *label;
} rehearsal;

/* Seconds of each part, a step. */
static void time_parts(const rehearsal *r, double *score, double *classifier)
{
    *score = *classifier = 0;
    for (int i = 0; i < r->steps; i++) {
        double began = psld_seconds();
        must(psld_source_predict(r->score, r->n, r->dim, r->z, r->t, r->eps));
        double between = psld_seconds();
        must(psld_classifier_evaluate(r->classifier, r->n, r->dim, r->z, r->t, r->label, NULL, r->gradient));
        *score += (between - began) / r->steps;
        *classifier += (psld_seconds() - between) / r->steps;
    }
}

static double time_steps(const rehearsal *r)
{
    double began = psld_seconds();
    psld_sample_options o;
    psld_sample_defaults(&o);
    o.sampler = r->sampler;
    o.nfe = r->steps;
    o.denoise = 0;
    o.batch = r->n;
    must(psld_sample(r->recipe, r->guided, &o, 0, r->n, r->dim, NULL, r->end, NULL));
    return (psld_seconds() - began) / r->steps;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void take_turns(rehearsal *r)
{
    double least[3] = {(double)INFINITY, (double)INFINITY, (double)INFINITY}, ratio[ROUNDS];
    r->steps = FEWEST_STEPS;
    time_steps(r); /* plans, and warms the caches */
    r->steps = (int)fmin(MOST_STEPS, fmax(FEWEST_STEPS, 0.5 / time_steps(r)));
    for (int i = 0; i < ROUNDS; i++) {
        double now[3];
        time_parts(r, &now[0], &now[1]);
        now[2] = time_steps(r);
        for (int j = 0; j < 3; j++) least[j] = fmin(least[j], now[j]);
        ratio[i] = now[2] / (now[0] + now[1]);
    }
    qsort(ratio, ROUNDS, sizeof *ratio, by_size);
    printf("%-7s  %5zu  %9.2f  %21.2f  %10.2f  %12.3f\n", r->sampler, r->n, 1e3 * least[0], 1e3 * least[1],
           1e3 * least[2], ratio[ROUNDS / 2]);
}

/* Operations of the classifier with its gradient over those without. */
static double gradient_share(psld_model *classifier)
{
    must(psld_model_prepare(classifier, 0, 1));
    return psld_plan_flops(psld_runner_plan(classifier->runners[1]), 1) /
           psld_plan_flops(psld_runner_plan(classifier->runners[0]), 1);
}

static void measure(psld_model *score, psld_model *classifier, size_t n)
{
    size_t dim = psld_model_size(score);
    const psld_recipe *recipe = psld_model_recipe(score);
    size_t state = dim * (size_t)psld_recipe_get(recipe)->k;
    rehearsal r = {.recipe = recipe, .score = psld_model_source(score), .n = n, .dim = dim};
    r.classifier = psld_model_classifier(classifier);
    double **rooms[] = {&r.z, &r.eps, &r.gradient, &r.end};
    for (int i = 0; i < 4; i++) *rooms[i] = room(n * state, sizeof(double));
    r.t = room(n, sizeof(double));
    r.label = room(n, sizeof *r.label);
    for (size_t i = 0; i < n * state; i++) r.z[i] = sin((double)i);
    for (size_t i = 0; i < n; i++) r.t[i] = 0.5;
    must(psld_source_guide(r.score, recipe, r.classifier, 0, 1, &r.guided));
    for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++) {
        r.sampler = samplers[i];
        take_turns(&r);
    }
    psld_source_free(r.guided);
    for (int i = 0; i < 4; i++) free(*rooms[i]);
    free(r.t);
    free(r.label);
}

static void measure_pair(const char *score_path, const char *classifier_path)
{
    psld_model *score = open_model(score_path), *classifier = open_model(classifier_path);
    printf("%s, %s\n", score_path, classifier_path);
    printf("sampler  batch  score, ms  classifier + gradient  a step, ms  step / parts\n");
    for (size_t n = 1; n <= 8; n *= 8) measure(score, classifier, n);
    printf("operations of the classifier with its gradient over those without: %.2f\n\n", gradient_share(classifier));
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
