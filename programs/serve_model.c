/* What a model is. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve.h"
#include "serve_jobs.h"

enum { DENSITY = 96 };

/* The classes that its samples may have. */
static json_t *class_names(const psld_model *model)
{
    json_t *list = json_array();
    char name[256];
    size_t classes = psld_model_classes(model);
    for (size_t i = 0; i < classes && i < 10000; i++)
        if (psld_model_class(model, i, name, sizeof name) == PSLD_OK) json_array_append_new(list, json_string(name));
    return list;
}

/* The density of data of two dimensions, within four deviations of its mean. */
static json_t *density(const psld_mixture *mixture)
{
    double mean[2], cov[4], x[2];
    psld_mixture_moments(mixture, mean, cov);
    double side = 4 * sqrt(fmax(cov[0], cov[3]));
    json_t *values = json_array();
    for (int j = 0; j < DENSITY; j++)
        for (int i = 0; i < DENSITY; i++) {
            x[0] = mean[0] + side * (2 * (i + 0.5) / DENSITY - 1);
            x[1] = mean[1] + side * (2 * (j + 0.5) / DENSITY - 1);
            json_array_append_new(values, cli_json_number(psld_mixture_density(mixture, x)));
        }
    return json_pack("{s:[f,f], s:[f,f], s:i, s:o}", "x", mean[0] - side, mean[0] + side, "y", mean[1] - side,
                     mean[1] + side, "size", DENSITY, "values", values);
}

/* What drawing takes when nothing else is asked for. */
static void put_sampling(json_t *object, const psld_model *model)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    const psld_recipe *recipe = psld_model_recipe(model);
    if (psld_model_prefer(model, &options) != PSLD_OK ||
        (!options.sampler && psld_sample_quality(recipe, "normal", &options) != PSLD_OK) ||
        psld_sample_complete(recipe, &options) != PSLD_OK)
        return;
    json_object_set_new(object, "sampler", json_string(options.sampler));
    json_object_set_new(object, "grid", options.grid ? json_string(options.grid) : json_null());
    json_object_set_new(object, "nfe", json_integer(options.nfe));
}

static json_t *describe_model(const char *path, psld_model *model)
{
    static const char *const kinds[] = {
        [PSLD_EXACT_MODEL] = "exact", [PSLD_SCORE_MODEL] = "network", [PSLD_CLASSIFIER] = "classifier"};
    size_t shape[PSLD_MAX_RANK];
    uint64_t steps = 0, planned = 0;
    int rank = psld_model_shape(model, shape);
    const psld_recipe *recipe = psld_model_recipe(model);
    json_t *object = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    psld_model_trained(model, &steps, &planned);
    json_object_set_new(object, "path", json_string(path));
    json_object_set_new(object, "kind", json_string(kinds[psld_model_kind_of(model)]));
    json_object_set_new(object, "shape", sizes);
    json_object_set_new(object, "process", recipe ? json_string(psld_recipe_get(recipe)->name) : json_null());
    json_object_set_new(object, "recipe", recipe ? serve_recipe_describe(recipe) : json_null());
    json_object_set_new(object, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    json_object_set_new(object, "classes", class_names(model));
    json_object_set_new(object, "cfg", cli_json_number(psld_model_cfg(model)));
    json_object_set_new(object, "weak_scale", cli_json_number(psld_model_weak_scale(model)));
    json_object_set_new(object, "predicts", json_string(psld_model_predicts(model)));
    json_object_set_new(object, "tuned", json_boolean(psld_model_is_tuned(model)));
    json_object_set_new(object, "steps", json_integer((json_int_t)steps));
    json_object_set_new(object, "batch", json_integer((json_int_t)psld_model_batch(model)));
    json_object_set_new(object, "has_classifier", json_boolean(psld_model_classifier(model) != NULL));
    if (psld_model_source(model)) put_sampling(object, model);
    if (psld_model_mixture(model) && shape[0] == 2)
        json_object_set_new(object, "density", density(psld_model_mixture(model)));
    return object;
}

enum MHD_Result serve_model_get(serve_request *request)
{
    serve_files files = {0};
    psld_model *model = NULL;
    cli_listener listener = {.progress = NULL};
    const char *path = serve_url_get(&request->url, "path");
    if (!path) return serve_refuse(request, 400, "expected path=P");
    int fd;
    serve_found found = serve_folder_find(serve.folder, path, 0, &fd);
    if (found != SERVE_FOUND)
        return serve_refuse(request, serve_http_status(found), "%s: %s", path, serve_found_text(found));
    close(fd);
    cli_listen(&listener);
    psld_status status = serve_model_open(&files, path, NULL, &model);
    if (status != PSLD_OK) cli_failed(status);
    enum MHD_Result result = status == PSLD_OK ? serve_answer_json(request, 200, describe_model(path, model))
                                               : serve_refuse_status(request, status, &files);
    cli_listen(NULL);
    psld_model_free(model);
    serve_files_close(&files);
    return result;
}
