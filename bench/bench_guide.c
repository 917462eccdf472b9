/* bench_guide [SCORE CLASSIFIER]: the cost of a guided step compared with its parts: an evaluation of the score
 * network, and one of the classifier with its gradient by the state. Models, or configurations, which get initial
 * weights; without arguments the digits of models/ and the CIFAR-10 networks of configs/, from the folder that has
 * both.
 *
 * Parts, one after the other as in a step, and whole walks take turns. Times are medians over rounds, and so is the
 * ratio, of those within a round: others on the machine disturb both alike. The rest of a walk (the change of eps, the
 * arithmetic of the sampler, random numbers with em, the constants of steps) is measured, too: clocks around both parts
 * show their fraction of the walk. If the gradient by weights were computed, too, the operations of the classifier with
 * its gradient would be three times those without; by the state alone they are twice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/model.h"
#include "nn/plan.h"
#include "psld.h"

enum { FEWEST_STEPS = 3, MAX_STEPS = 50, ROUNDS = 11 };

#define ROUND_SECONDS 0.2

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
    double score_seconds, classifier_seconds; /* spent in each since last set to 0 */
} rehearsal;

static psld_status predict(void *user, const psld_states *states, double *eps)
{
    rehearsal *r = user;
    double began = psld_seconds();
    psld_status status = psld_source_predict(r->score, states, eps);
    r->score_seconds += psld_seconds() - began;
    return status;
}

static psld_status classify(void *user, const psld_states *states, const int32_t *label, double *log_p, double *grad_z)
{
    rehearsal *r = user;
    double began = psld_seconds();
    psld_status status = psld_classifier_evaluate(r->classifier, states, label, log_p, grad_z);
    r->classifier_seconds += psld_seconds() - began;
    return status;
}

static void run_parts(rehearsal *r)
{
    for (int i = 0; i < r->steps; i++) {
        psld_states states = PSLD_STATES(r->n, r->dim, r->z, r->t);
        must(predict(r, &states, r->eps));
        must(classify(r, &states, r->label, NULL, r->gradient));
    }
}

static void walk(rehearsal *r)
{
    psld_sample_options o = PSLD_SAMPLE_DEFAULTS;
    o.sampler = r->sampler;
    o.nfe = r->steps;
    o.denoise = 0;
    o.batch = (int)r->n;
    must(psld_sample(r->recipe, r->guided, &o, 0, r->n, r->dim, NULL, r->end, NULL));
}

/* Seconds per step of `turn`. */
static double time_turn(rehearsal *r, void (*turn)(rehearsal *))
{
    r->score_seconds = r->classifier_seconds = 0;
    double began = psld_seconds();
    turn(r);
    return (psld_seconds() - began) / r->steps;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double numbers[ROUNDS])
{
    qsort(numbers, ROUNDS, sizeof *numbers, by_size);
    return numbers[ROUNDS / 2];
}

static void take_turns(rehearsal *r)
{
    double score[ROUNDS], classifier[ROUNDS], step[ROUNDS], ratio[ROUNDS], inside[ROUNDS];
    r->steps = FEWEST_STEPS;
    time_turn(r, walk); /* plans, and warms the caches */
    r->steps = (int)fmin(MAX_STEPS, fmax(FEWEST_STEPS, ROUND_SECONDS / time_turn(r, walk)));
    for (int i = 0; i < ROUNDS; i++) {
        time_turn(r, run_parts);
        score[i] = r->score_seconds / r->steps;
        classifier[i] = r->classifier_seconds / r->steps;
        step[i] = time_turn(r, walk);
        ratio[i] = step[i] / (score[i] + classifier[i]);
        inside[i] = step[i] * r->steps / (r->score_seconds + r->classifier_seconds);
    }
    printf("%-7s  %5zu  %9.2f  %21.2f  %10.2f  %12.3f  %11.3f\n", r->sampler, r->n, 1e3 * median(score),
           1e3 * median(classifier), 1e3 * median(step), median(ratio), median(inside));
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
    psld_source *timed_score;
    psld_classifier *timed_classifier;
    must(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict, .user = &r},
                              &timed_score));
    must(psld_classifier_callback(classify, &r, psld_classifier_classes(r.classifier), &timed_classifier));
    must(psld_source_guide(timed_score, recipe, timed_classifier, 0, 1, &r.guided));
    for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++) {
        r.sampler = samplers[i];
        take_turns(&r);
    }
    psld_source_free(r.guided);
    psld_source_free(timed_score);
    psld_classifier_free(timed_classifier);
    for (int i = 0; i < 4; i++) free(*rooms[i]);
    free(r.t);
    free(r.label);
}

static void measure_pair(const char *score_path, const char *classifier_path)
{
    psld_model *score = open_model(score_path), *classifier = open_model(classifier_path);
    printf("%s, %s\n", score_path, classifier_path);
    printf("sampler  batch  score, ms  classifier + gradient  a step, ms  step / parts  within walk\n");
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
