/* The process itself, as exact transitions. */
#include "base/random.h"
#include "process/recipe.h"

static void move_coordinate(const psld_recipe *recipe, const psld_gaussian *transition, size_t dim, const double *noise,
                            double *z)
{
    int k = recipe->spec.k;
    double next[PSLD_MAX_K];
    for (int a = 0; a < k; a++) {
        next[a] = 0;
        for (int b = 0; b < k; b++)
            next[a] += transition->mean[a * k + b] * z[(size_t)b * dim] + transition->factor[a * k + b] * noise[b];
    }
    for (int a = 0; a < k; a++) z[(size_t)a * dim] = next[a];
}

psld_status psld_recipe_move(const psld_recipe *recipe, double s, double t, uint64_t seed, uint64_t move,
                             uint64_t first, size_t count, size_t dim, double *z)
{
    if (!(s >= 0 && t >= s && t <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "move: expected times 0 <= s <= t <= 1, found %g and %g", s, t);
    psld_gaussian transition;
    size_t k = (size_t)recipe->spec.k;
    psld_transition(recipe, PSLD_FORWARD, psld_beta_integral(recipe, s, t), NULL, &transition);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < dim; j++) {
            double noise[PSLD_MAX_K];
            psld_random_normal(seed, PSLD_FOR_MOVE, first + i, move, k * j, k, noise);
            move_coordinate(recipe, &transition, dim, noise, z + i * k * dim + j);
        }
    return PSLD_OK;
}
