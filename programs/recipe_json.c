#include "recipe_json.h"

const char *recipe_variable_name(int k, int i)
{
    static const char *const names[] = {"x", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};
    return k == 2 && i == 1 ? "m" : names[i];
}

const char *recipe_factor_name(const psld_recipe_spec *spec)
{
    return spec->upper ? "upper" : spec->natural ? "natural" : "lower";
}

static json_t *json_process(const psld_recipe *recipe)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    size_t k = (size_t)spec->k;
    int variables[PSLD_MAX_K], predicted = psld_recipe_predicted(recipe, variables);
    json_t *object = json_object(), *predicts = json_array();
    double beta[2] = {spec->beta_min, spec->beta_max};
    json_object_set_new(object, "name", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    json_object_set_new(object, "D", cli_json_matrix(spec->D, k, k));
    json_object_set_new(object, "Q", cli_json_matrix(spec->Q, k, k));
    json_object_set_new(object, "mass", cli_json_numbers(spec->mass, k - 1));
    json_object_set_new(object, "init", cli_json_numbers(spec->init, k - 1));
    json_object_set_new(object, "beta", beta[0] == beta[1] ? cli_json_number(beta[0]) : cli_json_numbers(beta, 2));
    json_object_set_new(object, "stabiliser", cli_json_number(spec->stabiliser));
    for (int i = 0; i < predicted; i++)
        json_array_append_new(predicts, json_string(recipe_variable_name(spec->k, variables[i])));
    json_object_set_new(object, "predicts", predicts);
    json_object_set_new(object, "factor", json_string(recipe_factor_name(spec)));
    json_object_set_new(object, "loss", json_string(spec->mode == PSLD_DSM ? "dsm" : "hsm"));
    return object;
}

static void json_analysis(json_t *object, int k, const psld_analysis *a)
{
    json_t *values = json_array();
    for (int i = 0; i < k; i++) {
        double pair[2] = {a->eigenvalue_re[i], a->eigenvalue_im[i]};
        json_array_append_new(values, cli_json_numbers(pair, 2));
    }
    json_object_set_new(object, "eigenvalues", values);
    json_object_set_new(object, "damping", json_string(psld_damping_name(a->damping)));
    json_object_set_new(object, "distance", cli_json_number(a->distance));
    json_object_set_new(object, "long_enough", json_boolean(a->long_enough));
    json_object_set_new(object, "sigma_max", cli_json_number(a->sigma_max));
}

static psld_status json_kernel(const psld_recipe *recipe, double t, psld_mode mode, json_t *list)
{
    double mean[PSLD_MAX_K * PSLD_MAX_K], cov[PSLD_MAX_K * PSLD_MAX_K], chol[PSLD_MAX_K * PSLD_MAX_K];
    double sigma = 0, distance = 0, first[PSLD_MAX_K], second[PSLD_MAX_K];
    size_t k = (size_t)psld_recipe_get(recipe)->k;
    psld_status status = psld_recipe_kernel(recipe, t, mode, mean, cov, chol);
    if (status == PSLD_OK && t > 0) status = psld_recipe_sigma(recipe, t, &sigma);
    if (status == PSLD_OK && t > 0) status = psld_recipe_distance(recipe, t, &distance);
    if (status == PSLD_OK && t > 0) status = psld_recipe_error_factors(recipe, t, first, second);
    if (status != PSLD_OK) return status;
    json_t *row = json_object();
    json_object_set_new(row, "t", cli_json_number(t));
    json_object_set_new(row, "mean", cli_json_matrix(mean, k, k));
    json_object_set_new(row, "cov", cli_json_matrix(cov, k, k));
    json_object_set_new(row, "chol", cli_json_matrix(chol, k, k));
    if (t > 0) {
        json_object_set_new(row, "sigma", cli_json_number(sigma));
        json_object_set_new(row, "distance", cli_json_number(distance));
        json_object_set_new(row, "lambda", cli_json_numbers(second, k));
        json_object_set_new(row, "lambda_first_order", cli_json_numbers(first, k));
    }
    json_array_append_new(list, row);
    return PSLD_OK;
}

psld_status recipe_json(const psld_recipe *recipe, const double *times, size_t count, psld_mode mode, json_t **object)
{
    psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
    *object = NULL;
    psld_status status = psld_recipe_analyse(recipe, &analysis);
    if (status != PSLD_OK) return status;
    *object = json_process(recipe);
    json_analysis(*object, psld_recipe_get(recipe)->k, &analysis);
    json_object_set_new(*object, "mode", json_string(mode == PSLD_DSM ? "dsm" : "hsm"));
    json_t *kernel = json_array();
    json_object_set_new(*object, "kernel", kernel);
    for (size_t i = 0; status == PSLD_OK && i < count; i++) status = json_kernel(recipe, times[i], mode, kernel);
    return status;
}
