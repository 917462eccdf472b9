#include "flow_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden_network.h"

static double flow_error(const psld_array *expected, size_t n, size_t dim, int k, const double *z)
{
    double worst = 0, largest = 0;
    size_t per = expected->count / n; /* positions alone, or whole states */
    for (size_t j = 0; j < expected->count; j++) {
        double truth = ((const double *)expected->data)[j], found = z[j / per * (size_t)k * dim + j % per];
        worst = fmax(worst, fabs(found - truth));
        largest = fmax(largest, fabs(truth));
    }
    return worst / largest;
}

/* One file ode_tolX.json: the same number of evaluations, nearly the same result. */
static void check_flow(const char *folder, const char *name, psld_model *model, const psld_array *start)
{
    char other[GOLDEN_PATH], what[128];
    json_t *json = golden_json(folder, name);
    snprintf(other, sizeof other, "%.*s_x.npy", (int)(strlen(name) - strlen(".json")), name);
    psld_array *expected = golden_array(folder, other, PSLD_F64);
    assert_non_null(expected);
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    uint64_t nfe;
    int k = psld_recipe_get(psld_model_recipe(model))->k;
    size_t n = start->shape[0], dim = start->count / n / (size_t)k;
    double *z = malloc(start->count * sizeof *z);
    options.sampler = "ode";
    options.tolerance = golden_number(json_object_get(json, "tol"));
    assert_int_equal(
        psld_sample(psld_model_recipe(model), psld_model_source(model), &options, 0, n, dim, start->data, z, &nfe),
        PSLD_OK);
    int golden_nfe = (int)json_integer_value(json_object_get(json, "nfe_total"));
    snprintf(what, sizeof what, "%s, %d evaluations (%d)", name, (int)nfe, golden_nfe);
    golden_report(folder, what, flow_error(expected, n, dim, k, z), 1e-3);
    assert_int_equal(nfe, golden_nfe);
    free(z);
    psld_array_free(expected);
    json_decref(json);
}

static int is_flow(const struct dirent *entry)
{
    return strncmp(entry->d_name, "ode_tol", 7) == 0 && strstr(entry->d_name, ".json");
}

void flow_check(const char *device)
{
    const golden_list *list = golden_find("ode_z0.npy");
    for (size_t i = 0; i < list->count; i++) {
        const char *folder = list->folders[i];
        char config[GOLDEN_PATH], weights[GOLDEN_PATH];
        psld_model *model;
        psld_model_options opening = PSLD_MODEL_DEFAULTS;
        struct dirent **entries;
        psld_array *start = golden_array(folder, "ode_z0.npy", PSLD_F64);
        golden_weights(folder, weights);
        golden_path(folder, "config.yaml", config);
        opening.config = config;
        opening.device = device;
        assert_int_equal(psld_model_open(weights, &opening, &model), PSLD_OK);
        int count = scandir(folder, &entries, is_flow, alphasort);
        assert_true(count > 0);
        for (int j = 0; j < count; j++) {
            check_flow(folder, entries[j]->d_name, model, start);
            free(entries[j]);
        }
        free(entries);
        psld_array_free(start);
        psld_model_free(model);
    }
}
