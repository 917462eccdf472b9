#include "sample/sources/add_gradient.h"

#include "base/threads.h"

typedef struct add_gradient_job {
    const psld_recipe *recipe;
    size_t dim;
    double weight, factor[PSLD_MATRIX_SIZE];
    const double *gradient;
    double *eps;
} add_gradient_job;

static void add_gradient_range(void *context, size_t begin, size_t end)
{
    const add_gradient_job *job = context;
    size_t k = (size_t)job->recipe->spec.k, predicted = (size_t)job->recipe->predicted, dim = job->dim;
    const int *variable = job->recipe->variable;
    for (size_t i = begin; i < end; i++)
        for (size_t b = 0; b < predicted; b++)
            for (size_t a = 0; a < predicted; a++) {
                double f = job->weight * job->factor[(size_t)variable[a] * k + (size_t)variable[b]];
                const double *g = job->gradient + (i * k + (size_t)variable[a]) * dim;
                if (f == 0) continue; /* above the triangle */
                double *eps = job->eps + (i * predicted + b) * dim;
                for (size_t j = 0; j < dim; j++) eps[j] -= f * g[j];
            }
}

psld_status psld_eps_add_gradient(const psld_recipe *recipe, const psld_states *states, double weight,
                                  const double *gradient, double *eps)
{
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted, dim = states->dim;
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        end = psld_states_same_time(states, begin);
        add_gradient_job job = {.recipe = recipe, .dim = dim, .weight = weight};
        job.gradient = gradient + begin * k * dim;
        job.eps = eps + begin * predicted * dim;
        PSLD_TRY(psld_recipe_factor(recipe, states->t[begin], recipe->spec.mode, job.factor, NULL));
        psld_parallel(end - begin, 4096 / (k * dim) + 1, add_gradient_range, &job);
    }
    return PSLD_OK;
}
