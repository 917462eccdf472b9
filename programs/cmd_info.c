/* psld info: what a file is. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static int show_array(const char *path, int json)
{
    static const char *const types[] = {"float64", "float32", "uint8", "int32", "int64"};
    psld_array *array;
    psld_status status = psld_array_load(path, &array);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *object = json_object(), *shape = json_array();
    json_object_set_new(object, "kind", json_string("array"));
    json_object_set_new(object, "type", json_string(types[array->type]));
    for (int i = 0; i < array->rank; i++) json_array_append_new(shape, json_integer((json_int_t)array->shape[i]));
    json_object_set_new(object, "shape", shape);
    if (json) {
        psld_array_free(array);
        return cli_json_print(object);
    }
    json_decref(object);
    printf("%s: array of %s [", path, types[array->type]);
    for (int i = 0; i < array->rank; i++) printf("%s%zu", i ? ", " : "", array->shape[i]);
    printf("]\n");
    psld_array_free(array);
    return EXIT_DONE;
}

static int show_model(const char *path, const psld_model *model, int json)
{
    const psld_recipe_spec *spec = psld_recipe_get(psld_model_recipe(model));
    size_t dim = psld_mixture_dim(psld_model_mixture(model));
    if (!json) {
        printf("%s: exact model, a mixture in %zu dimensions under the recipe %s (k = %d)\n", path, dim, spec->name,
               spec->k);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("exact model"));
    json_object_set_new(object, "dimensions", json_integer((json_int_t)dim));
    json_object_set_new(object, "process", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    return cli_json_print(object);
}

static int show_recipe(const char *path, const psld_recipe *recipe, int json)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    if (!json) {
        printf("%s: recipe %s, k = %d (psld recipe %s says more)\n", path, spec->name, spec->k, path);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("recipe"));
    json_object_set_new(object, "name", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    return cli_json_print(object);
}

/* YAML is a model if it reads as one; when it reads as neither, the message is about what it looks more like. */
static int show_yaml(const char *path, int json)
{
    psld_model *model = NULL;
    psld_recipe *recipe = NULL;
    int exit_code;
    if (psld_recipe_open(path, &recipe) == PSLD_OK) {
        exit_code = show_recipe(path, recipe, json);
        psld_recipe_free(recipe);
        return exit_code;
    }
    char as_recipe[1024];
    snprintf(as_recipe, sizeof as_recipe, "%s", psld_error_text());
    if (psld_model_open(path, NULL, &model) == PSLD_OK) {
        exit_code = show_model(path, model, json);
        psld_model_free(model);
        return exit_code;
    }
    cli_complain("%s", strstr(as_recipe, "unknown key") ? psld_error_text() : as_recipe);
    return EXIT_FAILED;
}

static int run(const cli_command *command, int argc, char **argv)
{
    const char *words[16];
    int json = 0, count, exit_code;
    const cli_option options[] = {
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one file, found %d", count);
    if (cli_ends_in(words[0], ".npy")) return show_array(words[0], json);
    return show_yaml(words[0], json);
}

const cli_command command_info = {
    .name = "info",
    .summary = "says what a file is",
    .usage = "FILE [--json]",
    .description = "FILE is a recipe or an exact model (.yaml), or an array (.npy).",
    .examples = "  psld info mixture.yaml\n"
                "  psld info samples.npy --json\n",
    .run = run,
};
