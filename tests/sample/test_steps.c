/* Euler-Maruyama and splitting against trajectories in exact arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"
#include "process/recipe.h"

enum { MAX_STATE = 16, MAX_DRAWS = 64 };

typedef struct trajectory {
    psld_recipe *recipe;
    size_t state;
    double noise[MAX_DRAWS][MAX_STATE];
} trajectory;

/* The golden network: eps = tanh(z) t, elementwise. */
static psld_status golden_network(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    const double *z = states->z, *t = states->t;
    const psld_recipe *recipe = user;
    int k = recipe->spec.k, predicted = recipe->predicted;
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < predicted; c++)
            for (size_t j = 0; j < dim; j++) {
                size_t variable = (size_t)recipe->order[k - predicted + c];
                eps[(i * (size_t)predicted + (size_t)c) * dim + j] =
                    tanh(z[(i * (size_t)k + variable) * dim + j]) * t[i];
            }
    return PSLD_OK;
}

static void golden_noise(void *user, uint64_t sample, uint64_t draw, size_t first, size_t count, double *noise)
{
    const trajectory *given = user;
    (void)sample;
    memcpy(noise, given->noise[draw] + first, count * sizeof *noise);
}

static void read_trajectory(const json_t *row, trajectory *out)
{
    psld_recipe_spec spec;
    golden_spec(row, &spec);
    spec.stabiliser = golden_number(json_object_get(row, "stabiliser"));
    assert_int_equal(psld_recipe_create(&spec, &out->recipe), PSLD_OK);
    out->state = json_array_size(json_object_get(row, "z0"));
    const json_t *noise = json_object_get(row, "noise");
    for (size_t i = 0; i < json_array_size(noise); i++) golden_numbers(json_array_get(noise, i), out->noise[i]);
}

static double relative_error(const double *found, const json_t *truth, size_t n)
{
    double expected[MAX_STATE], worst = 0, largest = 0;
    assert_int_equal(golden_numbers(truth, expected), n);
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(found[i] - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
    }
    return worst / largest;
}

static double check_trajectory(const json_t *row)
{
    trajectory given;
    psld_source *source;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    double z0[MAX_STATE], z[MAX_STATE];
    uint64_t nfe;
    read_trajectory(row, &given);
    golden_numbers(json_object_get(row, "z0"), z0);
    assert_int_equal(
        psld_source_callback(
            &(psld_callback){.size = sizeof(psld_callback), .predict = golden_network, .user = given.recipe}, &source),
        PSLD_OK);
    options.sampler = golden_text(row, "sampler");
    options.grid = golden_text(row, "grid");
    options.nfe = (int)golden_number(json_object_get(row, "nfe"));
    options.noise = golden_noise;
    options.noise_user = &given;
    size_t dim = given.state / (size_t)given.recipe->spec.k;
    assert_int_equal(psld_sample(given.recipe, source, &options, 0, 1, dim, z0, z, &nfe), PSLD_OK);
    assert_int_equal(nfe, options.nfe);
    double error = relative_error(z, json_object_get(row, "denoised"), given.state);

    const json_t *states = json_object_get(row, "states"); /* the state before the last step is the last of these */
    options.denoise = 0;
    options.nfe--;
    assert_int_equal(psld_sample(given.recipe, source, &options, 0, 1, dim, z0, z, &nfe), PSLD_OK);
    error = fmax(error, relative_error(z, json_array_get(states, json_array_size(states) - 1), given.state));
    psld_source_free(source);
    psld_recipe_free(given.recipe);
    return error;
}

static void check_steps(const char *folder)
{
    json_t *golden = golden_json(folder, "steps.json");
    const json_t *cases = json_object_get(golden, "cases");
    double worst = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *row = json_array_get(cases, i);
        double error = check_trajectory(row);
        worst = fmax(worst, error);
        if (!(error <= 1e-11))
            fail_msg("%s %s %s: off by %g", golden_text(row, "name"), golden_text(row, "sampler"),
                     golden_text(row, "grid"), error);
    }
    printf("%s: %zu trajectories: largest relative error %.2g, tolerance 1e-11\n", folder, json_array_size(cases),
           worst);
    json_decref(golden);
}

static void golden_steps(void **state)
{
    (void)state;
    const golden_list *list = golden_find("steps.json");
    for (size_t i = 0; i < list->count; i++) check_steps(list->folders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
