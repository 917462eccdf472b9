#include "train/learner.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/bound.h"
#include "train/objective.h"

enum { BLOCK = 256 }; /* coordinates at a time */

struct psld_learner {
    psld_recipe *recipe;
    psld_learned learned;
    double state[3 * PSLD_LEARNED_SIZE]; /* parameters, and Adam's means of the gradient and of its square */
    uint64_t batch;
    size_t width;  /* numbers of a sample: its gradient and |x|^2 */
    double *slots; /* [batch][width] */
};

static void name_learned(psld_recipe *recipe)
{
    static const char ending[] = "-learned";
    char *name = recipe->spec.name, *end;
    size_t room = PSLD_NAME_SIZE - sizeof ending;
    if ((end = strstr(name, ending)) && strlen(end) + 1 == sizeof ending) return;
    if (strlen(name) > room) name[room] = 0;
    strcat(name, ending);
}

psld_status psld_learner_create(psld_recipe *recipe, unsigned what, uint64_t batch, psld_learner **learner)
{
    *learner = NULL;
    psld_learner *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->recipe = recipe;
    made->batch = batch;
    psld_status status = psld_learned_begin(recipe, what, 1, &made->learned, made->state);
    if (status == PSLD_OK) {
        name_learned(recipe);
        memcpy(made->learned.spec.name, recipe->spec.name, sizeof recipe->spec.name);
        made->width = (size_t)made->learned.count + 1;
        made->slots = psld_alloc((size_t)batch, made->width * sizeof *made->slots);
        if (!made->slots) status = PSLD_NO_MEMORY;
    }
    if (status != PSLD_OK) {
        psld_learner_free(made);
        return status;
    }
    *learner = made;
    return PSLD_OK;
}

void psld_learner_free(psld_learner *learner)
{
    if (!learner) return;
    psld_release(learner->slots);
    psld_release(learner);
}

/* ---- Gradients --------------------------------------------------------------------------------------------------- */

void psld_learner_begin(psld_learner *learner)
{
    memset(learner->slots, 0, (size_t)learner->batch * learner->width * sizeof *learner->slots);
}

double *psld_learner_gradients(psld_learner *learner, size_t *count)
{
    *count = (size_t)learner->batch * learner->width;
    return learner->slots;
}

typedef struct learner_job {
    psld_learner *learner;
    const psld_perturbation *how;
    const psld_microbatch *batch;
    atomic_int failed;
} learner_job;

/* Rows of floats of one sample, as doubles. */
static void widen_rows(const float *from, size_t rows, size_t dim, size_t at, size_t count, double *to)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < count; j++) to[r * BLOCK + j] = (double)from[r * dim + at + j];
}

static double add_part(const learner_job *job, const psld_bound_time *time, size_t i, size_t at, double scale,
                       psld_bound_sums *sums)
{
    const psld_recipe *recipe = job->how->recipe;
    const psld_microbatch *b = job->batch;
    double x[BLOCK], eps[PSLD_MAX_K * BLOCK], out[PSLD_MAX_K * BLOCK], by_z[PSLD_MAX_K * BLOCK], square = 0;
    size_t dim = job->how->dim, k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted;
    psld_bound_part part = {
        .count = dim - at < BLOCK ? dim - at : BLOCK, .stride = BLOCK, .x = x, .eps = eps, .out = out};
    widen_rows(b->x + i * dim, 1, dim, at, part.count, x);
    widen_rows(b->eps + i * k * dim, k, dim, at, part.count, eps);
    widen_rows(b->out + i * predicted * dim, predicted, dim, at, part.count, out);
    widen_rows(b->by_z + i * k * dim, k, dim, at, part.count, by_z);
    psld_bound_add_square(recipe, time, &part, scale, NULL, sums);
    psld_bound_add_states(time, &part, by_z, sums);
    for (size_t j = 0; j < part.count; j++) square += x[j] * x[j];
    return square;
}

/* by_z is of the weighed loss, so everything is. */
static psld_status add_learner_sample(const learner_job *job, size_t i)
{
    const psld_recipe *recipe = job->how->recipe;
    const psld_microbatch *b = job->batch;
    psld_learner *learner = job->learner;
    psld_bound_time time;
    psld_bound_sums sums = {0};
    psld_recipe_gradient gradient = {0};
    double *slot = learner->slots + (b->in_step + i) * learner->width;
    PSLD_TRY(psld_bound_time_plan(recipe, b->t[i], &time));
    double scale = (double)b->weight[i] * psld_perturbation_time_weight(job->how, b->t[i]) * psld_elbo_scale(job->how);
    for (size_t at = 0; at < job->how->dim; at += BLOCK)
        slot[learner->learned.count] += add_part(job, &time, i, at, scale, &sums);
    PSLD_TRY(psld_bound_differentiate(recipe, &time, &sums, 1, &gradient));
    psld_learned_differentiate(&learner->learned, learner->state, &gradient, slot);
    return PSLD_OK;
}

static void learner_range(void *context, size_t begin, size_t end)
{
    learner_job *job = context;
    for (size_t i = begin; i < end; i++)
        if (add_learner_sample(job, i) != PSLD_OK) atomic_store(&job->failed, 1);
}

psld_status psld_learner_add(psld_learner *learner, const psld_perturbation *how, const psld_microbatch *batch)
{
    learner_job job = {.learner = learner, .how = how, .batch = batch};
    psld_parallel(batch->n, 1, learner_range, &job);
    if (!atomic_load(&job.failed)) return PSLD_OK;
    return psld_fail(PSLD_NOT_FINITE,
                     "recipe %s: the kernel cannot be differentiated at some time; a larger train.eps helps",
                     how->recipe->spec.name);
}

psld_status psld_learner_finish(psld_learner *learner, const psld_perturbation *how, double *gradient, double *norm)
{
    size_t count = (size_t)learner->learned.count;
    double by_ends[PSLD_LEARNED_SIZE], square = 0;
    psld_bound ends = {0};
    memset(gradient, 0, count * sizeof *gradient);
    for (uint64_t i = 0; i < learner->batch; i++) {
        for (size_t p = 0; p < count; p++) gradient[p] += learner->slots[i * learner->width + p];
        square += learner->slots[i * learner->width + count] / (double)learner->batch;
    }
    psld_bound_data data = {.dim = (double)how->dim, .square = square, .cell = how->cell};
    PSLD_TRY(psld_bound_add_ends(how->recipe, how->t_min, &data, -psld_elbo_unit(how), &ends));
    psld_learned_differentiate(&learner->learned, learner->state, &ends.gradient, by_ends);
    *norm = 0;
    for (size_t p = 0; p < count; p++) {
        gradient[p] += by_ends[p];
        *norm += gradient[p] * gradient[p];
    }
    *norm = sqrt(*norm);
    if (isfinite(*norm)) return PSLD_OK;
    return psld_fail(PSLD_NOT_FINITE, "recipe %s: the norm of its gradient is %g", how->recipe->spec.name, *norm);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static psld_status move_recipe(psld_learner *learner, const double *parameters)
{
    psld_recipe_spec spec;
    psld_recipe *made;
    psld_learned_spec(&learner->learned, parameters, &spec);
    PSLD_TRY(psld_recipe_create(&spec, &made));
    *learner->recipe = *made;
    psld_recipe_free(made);
    return PSLD_OK;
}

psld_status psld_learner_update(psld_learner *learner, const psld_perturbation *how, const psld_learner_step *s,
                                double *norm)
{
    size_t count = (size_t)learner->learned.count;
    double gradient[PSLD_LEARNED_SIZE], next[3 * PSLD_LEARNED_SIZE];
    PSLD_TRY(psld_learner_finish(learner, how, gradient, norm));
    double clip = s->clip > 0 && *norm > s->clip ? s->clip / *norm : 1;
    double first = 1 - pow(s->beta1, (double)s->step), second = 1 - pow(s->beta2, (double)s->step);
    for (size_t p = 0; p < count; p++) {
        double g = clip * gradient[p], *m = next + count + p, *v = next + 2 * count + p;
        *m = s->beta1 * learner->state[count + p] + (1 - s->beta1) * g;
        *v = s->beta2 * learner->state[2 * count + p] + (1 - s->beta2) * g * g;
        next[p] = learner->state[p] - s->rate * (*m / first) / (sqrt(*v / second) + s->epsilon);
    }
    PSLD_TRY(move_recipe(learner, next));
    memcpy(learner->state, next, 3 * count * sizeof *next);
    return PSLD_OK;
}

double *psld_learner_state(psld_learner *learner, size_t *count)
{
    *count = 3 * (size_t)learner->learned.count;
    return learner->state;
}

psld_status psld_learner_restored(psld_learner *learner)
{
    return move_recipe(learner, learner->state);
}
